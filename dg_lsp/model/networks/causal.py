"""Causal networks as networks of the model: transformers' own, without a conversion."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GgufConfig
from transformers.cache_utils import Cache
from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask

from dg_lsp.budget import BOT, current
from dg_lsp.model.cache import CHUNK, windows_of
from dg_lsp.model.networks.base import added
from dg_lsp.model.networks.gguf_file import GGUF, GgufFile, read_gguf
from dg_lsp.model.networks.gguf_tokens import tokenizer_of
from dg_lsp.reasons import OutOfTime

FAMILY = ("llama", "qwen2", "mistral")  # which `dg-lsp import` converts
CAUSAL = (*FAMILY, "qwen3", "qwen3_moe", "granite", "starcoder2", "gemma", "gemma3_text")
_LOCAL: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
# What a tokenizer must give back unchanged.
_TEXTS = (
    "def f(a, *b):\n\treturn {a: 'é'}\r\n\n\n    # 😀  x\n",
    "  x = 1234.5e-6 ;y\t\n",
    "\ufeffclass A:\n\n",
)


class Causal(torch.nn.Module):
    """A Reader (networks/base.py): a causal network of transformers, which reads from left to right."""

    chunk = 2 * CHUNK  # dequantising a matrix takes a CPU longer than multiplying it by 256 rows

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        for layer in network.model.layers:
            layer.register_forward_pre_hook(_end_spare_work)

    @property
    def device(self) -> torch.device:
        """The device of the last norm."""
        return torch.device(self.network.model.norm.weight.device)

    @property
    def text_config(self) -> Any:
        """The configuration of its layers."""
        return self.network.config

    def encode(self, cache: Cache, tokens: Sequence[int]) -> Iterator[None]:
        """Append the keys and values of `tokens` to the layers of `cache`.

        Yields between layers, of a chunk after each, of few tokens after as many as take as long as one of CHUNK. The
        model of transformers, which computes the same, cannot be left there.
        """
        model, windows = self.network.model, windows_of(self.text_config)
        states = model.embed_tokens(torch.tensor([tokens], device=self.device))
        if (multiplier := getattr(model, "embedding_multiplier", None)) is not None:
            states = states * multiplier
        start = cache.get_seq_length()
        positions = torch.arange(start, start + len(tokens), device=self.device)[None]
        masks = {
            window: (create_sliding_window_causal_mask if window else create_causal_mask)(
                config=self.text_config,
                inputs_embeds=states,
                attention_mask=None,
                past_key_values=cache,
                position_ids=positions,
            )
            for window in {*windows}
        }
        kinds = self._rotaries()
        turned = {kind: model.rotary_emb(states, positions, *filter(None, (kind,))) for kind in {*kinds}}
        for number, (layer, window) in enumerate(zip(model.layers, windows, strict=True)):
            if number and len(tokens) * number % CHUNK < len(tokens):
                yield
            states = layer(
                states,
                attention_mask=masks[window],
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                position_embeddings=turned[kinds[number]],
            )

    def _rotaries(self) -> list[str | None]:
        """The kind of each layer where kinds have rotary embeddings of their own, else None for each."""
        config = self.text_config
        kinds: list[str] = getattr(config, "layer_types", None) or []
        own = bool(kinds) and {*kinds} <= config.rope_parameters.keys()
        return [*kinds] if own else [None] * config.num_hidden_layers

    def read(
        self, cache: Cache, tokens: Tensor, positions: Tensor, masks: Mapping[int | None, Tensor]
    ) -> Tensor:
        """Return the hidden states [tokens, hidden] of `tokens`, and append their keys and values to `cache`."""
        kind = self.network.model.norm.weight.dtype
        by_window = {window: added(mask, kind) for window, mask in masks.items()}
        mask: Any = next(iter(by_window.values()))
        if len(by_window) > 1:
            windows = windows_of(self.text_config)
            mask = {kind: by_window[w] for kind, w in zip(self.text_config.layer_types, windows, strict=True)}
        read = self.network.model(
            input_ids=tokens[None],
            attention_mask=mask,
            position_ids=positions[None],
            past_key_values=cache,
        )
        states: Tensor = read.last_hidden_state[0]
        return states

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits in fp32."""
        logits: Tensor = self.network.lm_head(states).float()
        scale = getattr(self.text_config, "logits_scaling", 1.0)
        return logits if scale == 1.0 else logits / scale

    def trial(self, tokens: Tensor) -> Tensor:
        """Return the logits of a whole pass over `tokens` [1, tokens]."""
        logits: Tensor = self.network(input_ids=tokens).logits
        return logits


def _end_spare_work(*_: Any) -> None:
    """Raise OutOfTime where the work is spare and was cancelled: a pass of many tokens takes seconds."""
    budget = current(BOT)
    if budget.spare and budget.cancelled:
        raise OutOfTime("somebody asked for something else")


def where_of(path: Path) -> tuple[str, dict[str, Any]]:
    """The name and the options by which transformers finds the network in `path`, a folder or a GGUF file."""
    if path.suffix == GGUF:
        return str(path.parent), _LOCAL | {"gguf_file": path.name}
    return str(path), _LOCAL


def read_config(path: Path) -> Any:
    """The configuration of the network in `path`, a folder or a GGUF file."""
    name, where = where_of(path)
    return AutoConfig.from_pretrained(name, **where)


def read_network(path: Path, **options: Any) -> Any:
    """Load the network in `path`, a folder or a GGUF file, by transformers, with further `options`."""
    name, where = where_of(path)
    how: dict[str, Any] = {"use_safetensors": True}
    if path.suffix == GGUF:
        how = {"quantization_config": GgufConfig(gguf_file=path.name, dequantize=True)}
    return AutoModelForCausalLM.from_pretrained(name, **where, **how, **options)


def read_tokenizer(source: Path | GgufFile) -> Tokenizer:
    """The tokenizer of the network in `source`, a folder or a GGUF file; that of a GGUF file is made of its header.

    Tokens that the header calls control tokens, such as `<|fim_prefix|>`, are special tokens.
    """
    opened = read_gguf(source) if isinstance(source, Path) and source.suffix == GGUF else source
    if isinstance(opened, GgufFile):
        tokenizer = tokenizer_of(opened)
    elif (opened / "tokenizer.json").is_file():
        tokenizer = Tokenizer.from_file(str(opened / "tokenizer.json"))
    else:
        tokenizer = AutoTokenizer.from_pretrained(where_of(opened)[0], **_LOCAL).backend_tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def keeps_text(tokenizer: Tokenizer) -> bool:
    """Return whether text survives `tokenizer`; with one that changes it no file could be filled."""
    encoded = [tokenizer.encode(text, add_special_tokens=False).ids for text in _TEXTS]
    return [tokenizer.decode(ids) for ids in encoded] == list(_TEXTS)


def ends_of(tokenizer: Tokenizer, config: Any) -> tuple[int, int]:
    """The ids of the tokens before and after a file: the end of a text, where the tokenizer has one."""
    between = tokenizer.token_to_id("<|endoftext|>")
    if between is not None:
        return between, between
    eos = config.eos_token_id
    eos = int(eos[0] if isinstance(eos, list) else eos)
    return eos if config.bos_token_id is None else int(config.bos_token_id), eos
