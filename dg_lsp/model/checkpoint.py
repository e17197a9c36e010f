"""Checkpoint: the network, tokenizer, schedule and special tokens of a name.

Only safetensors weights are read, and no code of a checkpoint is executed. Knows no canvas.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from transformers import DiffusionGemmaConfig

from dg_lsp.checkpoints import (
    FETCH_AGAIN,
    CheckpointError,
    find_directory,
    named,
    network_in,
    pinned,
    read_about,
    read_json,
)
from dg_lsp.model.costs import Costs
from dg_lsp.model.manifest import JUDGE, verify
from dg_lsp.model.networks import gguf_causal, gguf_gemma
from dg_lsp.model.networks.base import Denoiser
from dg_lsp.model.networks.causal import ends_of, keeps_text, read_config, read_tokenizer
from dg_lsp.model.networks.compressed import is_compressed, load_compressed, scheme_of
from dg_lsp.model.networks.gguf_file import GgufFile
from dg_lsp.model.networks.loading import Source, check_logits, kind_of, load_network, open_source
from dg_lsp.model.networks.packed import pack
from dg_lsp.model.networks.packing import is_packed, load_packed, packed_as
from dg_lsp.model.networks.streaming import empty_network, files_of, load_quantised
from dg_lsp.model.prompts.styles import STYLES, style_of
from dg_lsp.model.sound import check_about, check_files, check_judge, check_numbers, check_size, refusing
from dg_lsp.model.step import Schedule

GEMMA = "diffusion_gemma"  # as config.json names it


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A loaded model with its tokenizer and settings.

    style: the name of the prompt's style. canvas_lengths: the numbers of slots that a canvas may have, ascending.
    max_prefix: the most tokens of a file's prefix that are encoded. special: token ids that are not text of a file.
    digest: sha256 of manifest.json, or of config.json without a manifest; hex. judge: the fitted weights of the
    judge of candidates, {} if it has none (model/judge.py). texts: of each token alone. denoises: whether its
    decoder has learned to denoise; an imported network that has not only writes from left to right. ends: the tokens
    that a network which sees both sides of a gap writes at the gap's end; () for any other network. costs: the seconds
    of its passes here, None where they were not measured.
    """

    name: str
    network: Any
    tokenizer: Tokenizer
    schedule: Schedule
    style: str
    canvas_lengths: tuple[int, ...]
    bos: int
    eos: int
    max_prefix: int
    special: frozenset[int]
    digest: str
    judge: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    denoises: bool = True
    ends: tuple[int, ...] = ()
    costs: Costs | None = None

    @property
    def device(self) -> torch.device:
        """The device that canvases are put on."""
        return torch.device(self.network.device)

    @property
    def vocabulary(self) -> int:
        """The size of the vocabulary; noise is drawn from 0 up to it."""
        return int(self.network.text_config.vocab_size)

    def encode(self, text: str) -> tuple[int, ...]:
        """The token ids of `text`, without added special tokens."""
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)


def load_checkpoint(
    name: str, device: str = "auto", progress: Callable[[str], None] = lambda _: None, *, bits: int = 16
) -> Checkpoint:
    """Load the checkpoint `name` ("embedded", "small", a directory or a hub name) onto `device`.

    progress: called with a few words before each part of the work. bits: of the experts' weights, or of the matrices of
    a causal GGUF file; 16 keeps those of the files, 8 and 4 round them, but no matrix of a file in few bits to fewer.

    1. Find its directory.  2. Compare its files with the manifest.  3. Load the weights; refuse missing, unexpected and
    misshapen ones.  4. Drop the vision tower; put matrices into the order in which they are read.  5. Check that logits
    are finite.

    Raises:
        CheckpointError: any of these fails, or there is not enough memory.
    """
    # 1.
    path = find_directory(name)
    with refusing(path):
        # 2. Without this check a damaged file would load without an error. A file alone may be of any size, so it first
        # has to be a GGUF file.
        progress(f"checking {path.name}")
        pin, alone = pinned(name), _open(path) if path.is_file() else None
        digest = verify(path, pins=pin.files if pin else None)
        opened = alone or _open(path)
        if opened.kind != GEMMA and bits != 16 and not isinstance(opened.source, GgufFile):
            raise CheckpointError(
                f"{path} holds a {opened.kind!r} model, whose weights are not rounded; set weightBits to 16"
            )
        # 3. to 5.
        progress(f"loading {path.name}")
        network = _load_network(path, opened.source, device, bits)
        loaded = _described(name, path, opened.tokenizer, network)
        check_logits(network, path)
        return replace(
            loaded,
            schedule=_schedule(network.generation_config) if opened.kind == GEMMA else Schedule(),
            digest=digest,
            texts=texts_of(opened.tokenizer),
        )


def inspect(name: str) -> None:
    """Check all that the files of the checkpoint `name` say, their headers included, without loading its weights.

    Raises:
        CheckpointError: `load_checkpoint` would refuse it for that.
    """
    path = find_directory(name)
    with refusing(path):
        opened = _open(path)
        _described(name, path, opened.tokenizer, _Absent(opened.config))
        if isinstance(opened.source, GgufFile):
            if opened.kind != GEMMA:
                gguf_causal.matched(opened.source, torch.bfloat16)
            return
        if is_packed(path):
            packed_as(path)
        elif is_compressed(path):
            scheme_of(path)
            del opened.config.quantization_config  # as where it is loaded
        if opened.kind == GEMMA:
            empty_network(opened.config)
        if not (files := files_of(path)):
            raise CheckpointError(
                f"{path} has no *.safetensors file, and no other format is read; {FETCH_AGAIN}"
            )
        for file in files:
            with safe_open(file, "pt") as weights:
                weights.keys()


@dataclass(frozen=True, slots=True)
class _Opened:
    """The files of a checkpoint, all read except the weights. source: its folder or GGUF file. kind: of its network."""

    source: Source
    kind: str
    tokenizer: Tokenizer
    config: Any


def _open(path: Path) -> _Opened:
    """Read the small files and headers of the checkpoint in `path`, and check what they say of themselves."""
    check_files(path)
    source = open_source(network_in(path))
    kind, tokenizer = kind_of(source), _load_tokenizer(source)
    if kind != GEMMA and not keeps_text(tokenizer):
        raise CheckpointError(f"the tokenizer of {path} changes text, so no file could be filled with it")
    if isinstance(source, GgufFile):
        check_numbers(source.path, source.entries_of_kind())
        config = (gguf_gemma if kind == GEMMA else gguf_causal).config_of(source)
        size = source.path.stat().st_size
    else:
        file = path / "config.json"
        check_numbers(file, read_json(file))
        config = DiffusionGemmaConfig.from_pretrained(path, local_files_only=True) if kind == GEMMA else None
        config = config or read_config(path)
        size = sum(file.stat().st_size for file in files_of(path))
    if size:
        check_size(path, config, size)
    return _Opened(source, kind, tokenizer, config)


def _load_network(path: Path, source: Source, device: str, bits: int) -> Any:
    """The network of the checkpoint in `path`, whose files are `source`, in the form that they have."""
    if is_packed(path):
        return load_packed(path, device, bits)
    if kind_of(source) == GEMMA and isinstance(source, GgufFile):
        network = gguf_gemma.load_gguf_gemma(source, device, bits)
    elif kind_of(source) == GEMMA and is_compressed(path):
        network = load_compressed(path, device, bits)
    else:
        kept = bits == 16 or isinstance(source, GgufFile)
        network = load_network(source, device, bits) if kept else load_quantised(path, device, bits)
    pack(network)
    return network


def load_tokenizer(name: str) -> Checkpoint:
    """The checkpoint `name` for an engine whose network is elsewhere: `network` holds its config and no weights.

    Only config.json and tokenizer.json are read, and dg_lsp.json if it is there.

    Raises:
        CheckpointError: one of the two is missing, or is none of DiffusionGemma.
    """
    path = find_directory(name)
    if network_in(path).suffix == ".gguf":
        raise CheckpointError(
            f"{name} is a GGUF file, which has no tokenizer of DiffusionGemma; name the checkpoint that the server runs"
        )
    with refusing(path):
        kind = read_json(path / "config.json").get("model_type")
        if kind != GEMMA:
            raise CheckpointError(f"{path} holds a {kind!r} model, not diffusion_gemma; {FETCH_AGAIN}")
        opened = _open(path)
        return _described(name, path, opened.tokenizer, _Absent(opened.config))


@dataclass(frozen=True, slots=True)
class _Absent:
    """The place of a network that is not here; its config is."""

    config: Any

    @property
    def text_config(self) -> Any:
        """The configuration of its text layers."""
        return self.config.get_text_config()


def _described(name: str, path: Path, tokenizer: Tokenizer, network: Any) -> Checkpoint:
    """The Checkpoint that the files in `path` describe, without the parts that need its weights.

    Raises:
        CheckpointError: its files contradict each other.
    """
    text = network.text_config
    if tokenizer.get_vocab_size() > text.vocab_size:
        raise CheckpointError(f"the tokenizer of {path} has more tokens than the network; {FETCH_AGAIN}")
    bos, eos = ends_of(tokenizer, text)
    if text.model_type.startswith(GEMMA):
        ends = text.eos_token_id
        bos, eos = int(text.bos_token_id), int(ends[0] if isinstance(ends, list) else ends)
    extra = read_about(path)
    check_about(path, extra)
    judge = read_json(path / JUDGE) if (path / JUDGE).exists() else None
    if judge is not None:
        check_judge(path, judge)
    style = STYLES[_style(extra, tokenizer, path)]
    # Not every tokenizer says that these are special, and then they would be found in the text of a file.
    tokenizer.add_special_tokens(list(style.names(tokenizer) or ()))
    return Checkpoint(
        name=named(name),
        network=network,
        tokenizer=tokenizer,
        schedule=Schedule(),
        style=style.name,
        canvas_lengths=tuple(sorted(extra.get("canvas_lengths", [_canvas(network)]))),
        bos=bos,
        eos=eos,
        max_prefix=int(extra.get("max_prefix_tokens", min(style.reads, text.max_position_embeddings // 2))),
        special=frozenset(i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special),
        digest="",
        judge=style.judge() if judge is None else judge,
        denoises=bool(extra.get("denoises", isinstance(network, (Denoiser, _Absent)))),
        ends=style.ends(tokenizer),
    )


def _canvas(network: Any) -> int:
    """The slots of a network's canvas; a causal one has none, and this number bounds the text read around a gap."""
    return int(getattr(getattr(network, "config", None), "canvas_length", 256))


def _load_tokenizer(source: Source) -> Tokenizer:
    file = source.path if isinstance(source, GgufFile) else source / "tokenizer.json"
    try:
        if isinstance(source, GgufFile):
            tokenizer = read_tokenizer(source)
        elif file.exists():
            tokenizer = Tokenizer.from_file(str(file))
        else:
            raise CheckpointError(f"{file} is missing; {FETCH_AGAIN}")
    except CheckpointError:
        raise
    except Exception as error:  # the tokenizers library raises bare Exception
        first = next(iter(str(error).splitlines()), "")[:200]
        raise CheckpointError(f"{file} is no tokenizer ({first}); {FETCH_AGAIN}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # In the text of a file the name of a special token is plain text.
    tokenizer.encode_special_tokens = True
    return tokenizer


def texts_of(tokenizer: Tokenizer) -> tuple[str, ...]:
    """The text of each token alone; a part of a character gives "\ufffd"."""
    numbers = [[number] for number in range(tokenizer.get_vocab_size())]
    return tuple(tokenizer.decode_batch(numbers, skip_special_tokens=False))


def _style(extra: dict[str, Any], tokenizer: Tokenizer, path: Path) -> str:
    """The prompt's style: from dg_lsp.json if stated there, else by the tokens that the tokenizer has."""
    style = extra.get("prompt", style_of(tokenizer))
    if style not in STYLES or not STYLES[style].fits(tokenizer):
        raise CheckpointError(
            f"{path} asks for a prompt of the style {style!r}, which its tokenizer does not know"
        )
    return str(style)


def _schedule(config: Any) -> Schedule:
    sampler = config.sampler_config or {}
    stated = {
        "steps": config.max_denoising_steps,
        "t_min": config.t_min,
        "t_max": config.t_max,
        "entropy_bound": sampler.get("entropy_bound") if isinstance(sampler, dict) else sampler.entropy_bound,
        "confidence": config.confidence_threshold,
        "stability": config.stability_threshold,
    }
    # A value that the checkpoint does not state is the released one's.
    return Schedule(**{name: value for name, value in stated.items() if value is not None})
