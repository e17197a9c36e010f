"""Load the weights of a checkpoint onto a device, and check that every tensor is there and logits are finite.

Only safetensors and GGUF files are read. Knows transformers' loader and torch's devices; knows no tokenizer.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers.utils import logging

from dg_lsp.checkpoints import FETCH_AGAIN, CheckpointError, read_json
from dg_lsp.model.networks.attention import GROUPED
from dg_lsp.model.networks.causal import CAUSAL, Causal, read_network
from dg_lsp.model.networks.gemma import DiffusionGemma
from dg_lsp.model.networks.gguf_causal import load_gguf
from dg_lsp.model.networks.gguf_file import GGUF, GgufFile, read_gguf
from dg_lsp.model.networks.layouts import LAYOUTS
from dg_lsp.model.networks.lean import without_compiler
from dg_lsp.model.networks.norms import fuse_norms
from dg_lsp.model.networks.replay import enable
from dg_lsp.settings import GRAPHS

Source = Path | GgufFile  # of a network
SPREAD = {"balanced", "sequential"}  # accelerate's device maps over several GPUs and the CPU
_SPLIT = re.compile(r"(cpu|cuda(?::\d+)?)\+(cpu|disk):(\d+)")
# Kinds of CPU that have no fast product of bfloat16 matrices; bytes of weights that may take twice as much memory.
_SLOW, _SMALL = {"DEFAULT", "AVX2"}, 4 << 30
_UNSPLIT = ("embed_tokens", "norm", "rotary_emb")


def device_map(device: str) -> Any:
    """The device map of transformers and accelerate for the setting `device`; "auto" is the first GPU, else the CPU.

    Raises:
        CheckpointError: there is no such device here.
    """
    if device in SPREAD:
        return device
    if device == "auto":
        return {"": "cuda" if torch.cuda.is_available() else "cpu"}
    try:
        wanted = torch.device(device)
    except RuntimeError as error:
        raise CheckpointError(
            f"there is no device called {device!r}; --device takes auto, cpu, cuda, cuda:1, balanced, sequential or a "
            "split such as cuda+cpu:20"
        ) from error
    if wanted.type == "cuda" and (wanted.index or 0) >= torch.cuda.device_count():
        raise CheckpointError(
            f"there is no device {device} here (torch sees {torch.cuda.device_count()} GPUs); try --device cpu"
        )
    return {"": device}


def split_layers(path: Path, device: str) -> dict[str, str]:
    """The device map for a split such as `cuda+cpu:20`: the first 20 layers of the network in `path` on the GPU.

    The later layers stay on the second place, `cpu` or `disk` (in the checkpoint's own files), and are copied to the
    first place when they are used. Everything else is on the first place. The encoder's and the decoder's layer of the
    same number share their weights, so they go together; if they were split, accelerate would not find the weights.
    Every module is named, because accelerate would hook an entry "" as a block of its own.

    Raises:
        CheckpointError: `device` is no such split, or there is no such device here.
    """
    found = _SPLIT.fullmatch(device)
    if not found:
        raise CheckpointError(
            f"--device {device} is not understood; a split is written like cuda+cpu:20 or cpu+disk:8, the number being "
            "how many layers stay on the first place"
        )
    first, second, kept = device_map(found[1])[""], found[2], int(found[3])
    config = read_json(path / "config.json")
    encoder, decoder = "model.encoder.language_model", "model.decoder"
    parts = [f"{side}.{part}" for side in (encoder, decoder) for part in _UNSPLIT]
    parts += [f"{decoder}.self_conditioning", "model.encoder.vision_tower", "model.encoder.embed_vision"]
    count = config["text_config"]["num_hidden_layers"]
    layers = {f"{side}.layers.{i}": i for side in (encoder, decoder) for i in range(count)}
    return {
        "lm_head": first,
        **dict.fromkeys(parts, first),
        **{name: first if i < kept else second for name, i in layers.items()},
    }


def number_type(path: Path, placed: Any) -> str:
    """The type that the numbers of the weights in `path` get: "auto" is that of the file, usually bfloat16.

    placed: the device map. A CPU of the x86 family without AVX-512 multiplies matrices of bfloat16 eleven times slower
    than those of float32 (AVX2, torch 2.13, 96 x 256 by 256 x 512), so small networks get float32 there.
    """
    slow = torch.backends.cpu.get_cpu_capability() in _SLOW and placed == {"": "cpu"}
    small = sum(file.stat().st_size for file in path.glob("*.safetensors")) <= _SMALL
    return "float32" if slow and small else "auto"


def open_source(path: Path) -> Source:
    """`path` itself, a folder, or the open file where it is a GGUF file; its header is read once.

    Raises:
        CheckpointError: it cannot be read.
    """
    return read_gguf(path) if path.suffix == GGUF else path


def load_network(source: Source, device: str, bits: int = 16) -> Any:
    """The network in `source`, a folder or a GGUF file, on `device`; NETWORKS says how it is loaded.

    bits: 8 puts all matrices of a causal GGUF file in eight bits.

    Raises:
        CheckpointError: a weight is missing, unexpected or misshapen, there is not enough memory, or there
            is no such device.
    """
    source = open_source(source) if isinstance(source, Path) else source
    path = source if isinstance(source, Path) else source.path
    if path is source and not list(path.glob("*.safetensors")):
        raise CheckpointError(f"{path} has no *.safetensors file, and no other format is read; {FETCH_AGAIN}")
    logging.disable_progress_bar()  # it would break into our own progress line
    try:
        return NETWORKS[kind_of(source)](source, device, bits).eval()
    except CheckpointError:
        # It names its own fix: of a device that is not there, another device.
        raise
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise CheckpointError(f"{path} does not fit the memory of {device}; try --device cpu") from error
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"the weights of {path} cannot be loaded: {first}; {FETCH_AGAIN}") from error


def kind_of(source: Source) -> str:
    """The type of the network in `source`, a folder or a GGUF file, which NETWORKS has an entry for.

    Raises:
        CheckpointError: it has none.
    """
    if isinstance(source, Path):
        source = open_source(source)
    if isinstance(source, Path):
        kind, where, kinds = (
            read_json(source / "config.json").get("model_type"),
            source,
            {n: n for n in NETWORKS},
        )
    else:
        kind, where = source.architecture, source.path
        kinds = {kind.replace("_", "-"): kind for kind in NETWORKS if kind not in CAUSAL}
        kinds |= {name: layout.kind for name, layout in LAYOUTS.items()}
    if not isinstance(kind, str) or kind not in kinds:
        known = ", ".join(kinds)
        raise CheckpointError(f"{where} holds a {kind!r} model, and only {known} can be run; {FETCH_AGAIN}")
    return kinds[kind]


def _load_gemma(path: Source, device: str, _: int) -> Any:
    """DiffusionGemma without its vision tower; with `cuda+graphs` its decoder passes are replayed."""
    if isinstance(path, GgufFile):
        raise path.error("DiffusionGemma of a GGUF file is loaded by gguf_gemma.py")
    device, graphs = device.removesuffix(GRAPHS), device.endswith(GRAPHS)
    placed = split_layers(path, device) if "+" in device else device_map(device)
    if graphs and not (isinstance(placed, dict) and placed.get("", "").startswith("cuda")):
        raise CheckpointError(f"graphs are recorded on one CUDA device, not on {device}; leave {GRAPHS} out")
    with without_compiler():
        network, info = DiffusionGemma.from_pretrained(
            str(path),
            dtype=number_type(path, placed),
            device_map=placed,
            local_files_only=True,
            use_safetensors=True,
            attn_implementation=GROUPED,
            experts_implementation="grouped_mm",
            output_loading_info=True,
        )
    _refuse_faults(path, info)
    # Text needs no vision tower, and its weights take memory.
    network.model.encoder.vision_tower = network.model.encoder.embed_vision = None
    fuse_norms(network)
    if graphs:
        enable(network)
    return network


def _load_causal(path: Source, device: str, bits: int) -> Any:
    """A causal network by transformers' own class; that of a GGUF file with its blocks as they are or in eight bits."""
    if "+" in device:
        raise CheckpointError(f"a causal network is not split: use cpu, cuda or balanced instead of {device}")
    placed = device_map(device)
    if isinstance(path, GgufFile):
        if device in SPREAD:
            raise CheckpointError(f"{path.path} stays on one device; use --device cuda, cpu or auto")
        place = torch.device(placed[""])
        slow = place.type == "cpu" and torch.backends.cpu.get_cpu_capability() in _SLOW
        return load_gguf(path, place, torch.float32 if slow else torch.bfloat16, bits)
    with without_compiler():
        network, info = read_network(
            path,
            dtype=number_type(path, placed),
            device_map=placed,
            attn_implementation=GROUPED,
            output_loading_info=True,
        )
    _refuse_faults(path, info)
    return Causal(network)


def _refuse_faults(path: Path, info: Mapping[str, Any]) -> None:
    """Raise CheckpointError if weights are missing, unexpected or misshapen."""
    faults = [(kind, sorted(map(str, info[kind]))) for kind in info if info[kind]]
    if faults:
        listed = "; ".join(f"{kind}: {', '.join(names[:3])}" for kind, names in faults)
        raise CheckpointError(f"the weights of {path} do not fit its config ({listed}); {FETCH_AGAIN}")


# How a network is loaded from a path onto a device in some bits, by its type in config.json. A new one is a file and an
# entry here.
NETWORKS: dict[str, Callable[[Source, str, int], Any]] = {
    "diffusion_gemma": _load_gemma,
    **dict.fromkeys(CAUSAL, _load_causal),
}


@torch.inference_mode()
def check_logits(network: Any, path: Path) -> None:
    """Run `network` once on 8 tokens; `path` is named in the messages.

    Raises:
        CheckpointError: the logits are not finite, or there is no memory left to run it.
    """
    device = network.device
    tokens = torch.arange(8, device=device)[None]
    try:
        logits = network.trial(tokens)
    except torch.OutOfMemoryError as error:
        raise CheckpointError(
            f"{path} leaves no memory on {device} to work with; try --device cpu"
        ) from error
    if not bool(torch.isfinite(logits).all()):
        raise CheckpointError(
            f"{path} gives logits that are no numbers: its weights are damaged; {FETCH_AGAIN}"
        )
