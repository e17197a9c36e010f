"""Import: convert a left-to-right network of the Llama family to a DiffusionGemma checkpoint with the same logits.

The encoder of the made checkpoint gives the source's logits, and so does its decoder for a canvas of one slot; on
longer canvases the decoder has learned nothing. Two facts make this possible. A norm with a huge epsilon E divides any
input by sqrt(E), so the norms that Llama does not have change nothing. And a residual stream scaled by S
meets an epsilon of E / S**2, so the norms that Llama has keep their own epsilon.

Knows both architectures and the files of a checkpoint; knows no training.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import DiffusionGemmaConfig
from transformers.utils import logging

from dg_lsp.checkpoints import CheckpointError, folder_of, is_hub_name, pinned
from dg_lsp.model.manifest import verify
from dg_lsp.model.networks.causal import (
    FAMILY,
    ends_of,
    keeps_text,
    read_config,
    read_network,
    read_tokenizer,
)
from dg_lsp.model.networks.gguf_causal import read_in_full
from dg_lsp.model.networks.gguf_file import GGUF, read_gguf
from dg_lsp.settings import UsageError
from dg_lsp.training.export import export, schedule
from dg_lsp.training.shape import VISION, fresh_network

_ROPE = ("default", "linear", "llama3")
# sqrt(E). With a smaller one the divisor would depend on the input (2**12 is too small for SmolLM2).
_ROOT = 2.0**20
_CANVASES = (64, 128, 256)
# The cap of logits, which the configuration must name: this one changes them by less than bfloat16 rounds them.
NO_CAP = 1e4
# Tokens of a prefix; a CPU encodes some 500 a second with 135 million weights.
_MAX_PREFIX = 1024
_CARD = """# {name}, imported

The weights of {name} (licence: {licence}) in the classes of DiffusionGemma, made by `dg-lsp import`.
Its encoder gives the source's logits. Its decoder has not learned to denoise, so fills are written from left to right,
and the text after a gap serves to choose among them.
"""


class ImportRefusedError(UsageError):
    """The source cannot be imported exactly; the message names why."""


def import_checkpoint(
    source: str,
    to: Path,
    about: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the network `source` (see read_source) as a checkpoint to the directory `to`, in bf16.

    about: further entries of dg_lsp.json, such as `licence`.
    """
    progress(f"reading {source}")
    network, tokenizer = read_source(source)
    progress("importing")
    imported = import_network(network)
    bos, eos = ends_of(tokenizer, network.config)
    text = imported.config.text_config
    text.bos_token_id, text.eos_token_id, text.pad_token_id = bos, eos, eos
    progress(f"writing {to}")
    entries = {
        "prompt": "raw",
        "canvas_lengths": list(_CANVASES),
        "max_prefix_tokens": min(_MAX_PREFIX, text.max_position_embeddings // 2),
        "denoises": False,
        "imported_from": source if not Path(source).exists() else Path(source).name,
        **(about or {}),
    }
    imported.generation_config = schedule(text)
    card = _CARD.format(name=entries["imported_from"], licence=entries.get("licence", "see its source"))
    files: dict[str, str | Path] = {"tokenizer.json": tokenizer.to_str(pretty=True), "README.md": card}
    export(imported.to(torch.bfloat16), to, entries, files)


def import_network(source: Any) -> Any:
    """A DiffusionGemmaForBlockDiffusion in fp32 whose encoder gives the logits of `source`.

    source: a causal language model of the Llama family, fp32. Its layers lie between two further ones that add nothing:
    the first one scales the residual stream by S, the last one is there because the last layer cannot be a sliding one.
    """
    _refuse(source)
    config = _config(source.config)
    # The parts that stay idle are drawn with one seed, so that an import gives the same file each time.
    with torch.random.fork_rng(devices=[]):
        network = fresh_network(config, 0, torch.float32).eval()
    scale = _scale(source.config)
    with torch.no_grad():
        _copy(source, network, scale)
    return network


def freeze_scales(network: Any) -> None:
    """Freeze the parts that keep an import exact: the norms that are huge, the idle expert, the two idle layers."""
    layers = network.config.text_config.num_hidden_layers
    idle = tuple(f".layers.{number}." for number in (0, layers - 1))
    for name, weight in network.named_parameters():
        constant = weight.ndim == 1 and float(weight.detach().abs().max()) >= _ROOT / 2**10
        if constant or any(part in name for part in (".experts.", ".router.", "_layernorm_2", *idle)):
            weight.requires_grad_(requires_grad=False)


def read_source(source: str) -> tuple[Any, Tokenizer]:
    """The network of `source` (a directory, a GGUF file, a fetched hub name) in fp32, and its tokenizer."""
    path = folder_of(source)
    if not path.exists():
        get = f"; run dg-lsp fetch {source}" if is_hub_name(source) else ""
        raise ImportRefusedError(f"{source} is not here{get}")
    if pin := pinned(source):
        try:
            verify(path, pins=pin.files)
        except CheckpointError as error:
            raise ImportRefusedError(str(error)) from error
    logging.disable_progress_bar()
    try:
        opened = read_gguf(path) if path.suffix == GGUF else None
        kind = opened.architecture if opened else read_config(path).model_type
        if kind not in FAMILY:
            raise ImportRefusedError(
                f"{source} is of the type {kind!r}; only {', '.join(FAMILY)} can be imported exactly"
            )
        tokenizer = read_tokenizer(opened or path)
        network = read_in_full(opened) if opened else read_network(path, dtype=torch.float32)
    except ImportRefusedError:
        raise
    except Exception as error:  # a damaged file makes the libraries stumble anywhere
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ImportRefusedError(
            f"{source} cannot be read ({first}); get it again, or name another"
        ) from error
    if not keeps_text(tokenizer):
        raise ImportRefusedError(
            f"the tokenizer of {source} changes text, so no file could be filled with it"
        )
    return network.eval(), tokenizer


def _refuse(source: Any) -> None:
    config, rope = source.config, source.config.rope_parameters
    faults = {
        f"networks of the type {config.model_type!r}": config.model_type not in FAMILY,
        f"rotary embeddings of the type {rope.get('rope_type')!r}": rope.get("rope_type") not in _ROPE,
        "rotary embeddings of a part of a head": rope.get("partial_rotary_factor", 1.0) != 1.0,
        "biases in the dense part of a layer": bool(getattr(config, "mlp_bias", False)),
        "heads of an odd size": _head_size(config) % 2 == 1,
        "layers of several kinds": len(set(getattr(config, "layer_types", None) or ["one"])) > 1,
    }
    for fault, there in faults.items():
        if there:
            raise ImportRefusedError(f"{fault} cannot be imported exactly")


def _head_size(config: Any) -> int:
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def _config(source: Any) -> DiffusionGemmaConfig:
    """The config of the made network."""
    heads, size = source.num_key_value_heads, _head_size(source)
    window = getattr(source, "sliding_window", None) if getattr(source, "use_sliding_window", True) else None
    rope = dict(source.rope_parameters)
    text: dict[str, Any] = {
        "vocab_size": source.vocab_size,
        "hidden_size": source.hidden_size,
        "intermediate_size": source.intermediate_size,
        "moe_intermediate_size": 8,
        "num_experts": 1,
        "top_k_experts": 1,
        "num_hidden_layers": source.num_hidden_layers + 2,
        "layer_types": ["sliding_attention"] * (source.num_hidden_layers + 1) + ["full_attention"],
        "num_attention_heads": source.num_attention_heads,
        "num_key_value_heads": heads,
        "head_dim": size,
        "num_global_key_value_heads": heads,
        "global_head_dim": size,
        "sliding_window": window or source.max_position_embeddings,
        "max_position_embeddings": source.max_position_embeddings,
        "use_bidirectional_attention": "vision",
        "attention_bias": source.model_type == "qwen2" or bool(getattr(source, "attention_bias", False)),
        "final_logit_softcapping": NO_CAP,
        "tie_word_embeddings": source.tie_word_embeddings,
        "hidden_activation": source.hidden_act,
        "rms_norm_eps": _ROOT**2,
        "rope_parameters": {"sliding_attention": rope, "full_attention": rope},
    }
    return DiffusionGemmaConfig(
        text_config=text,
        vision_config=dict(VISION),
        canvas_length=_CANVASES[-1],
        tie_word_embeddings=source.tie_word_embeddings,
    )


def _scale(config: Any) -> float:
    """S: near sqrt(E / epsilon), such that S and S / sqrt(hidden size) are exact in bf16, as nearly as may be."""
    wanted, width = _ROOT / math.sqrt(config.rms_norm_eps), math.sqrt(config.hidden_size)
    near = {_rounded(wanted * (1 + n / 1000)) for n in range(-30, 31)}
    return min(near, key=lambda s: (round(abs(_rounded(s / width) * width / s - 1), 5), abs(s - wanted)))


def _rounded(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.bfloat16))


def _copy(source: Any, network: Any, scale: float) -> None:
    """Copy the weights of `source` into `network`; `scale` is S."""
    decoder, encoder = network.model.decoder, network.model.encoder.language_model
    decoder.embed_tokens.weight.copy_(source.model.embed_tokens.weight)
    network.lm_head.weight.copy_(source.lm_head.weight)
    # The signal of self-conditioning is silent; the norm after it divides by sqrt(E).
    decoder.self_conditioning.down_proj.weight.zero_()
    width = math.sqrt(source.config.hidden_size)
    decoder.layers[0].layer_scalar.fill_(_ROOT * scale / width)
    encoder.layers[0].layer_scalar.fill_(scale / width)
    for layer in decoder.layers:
        layer.experts.down_proj.zero_()
    for layer in (decoder.layers[0], decoder.layers[-1]):
        layer.post_attention_layernorm.weight.zero_()
        layer.post_feedforward_layernorm.weight.zero_()
    for layer, old in zip(decoder.layers[1:-1], source.model.layers, strict=True):
        _copy_layer(old, layer, scale)
    decoder.norm.weight.copy_(source.model.norm.weight)
    # transformers ties the encoder's weights to the decoder's, but no biases, and nothing where embeddings are untied.
    copied = dict(decoder.named_parameters())
    for name, weight in encoder.named_parameters():
        weight.copy_(copied[name])


def _copy_layer(old: Any, layer: Any, scale: float) -> None:
    attention, size = layer.self_attn, layer.self_attn.head_dim
    layer.input_layernorm.weight.copy_(old.input_layernorm.weight)
    layer.pre_feedforward_layernorm.weight.copy_(old.post_attention_layernorm.weight)
    for name in ("gate_proj", "up_proj", "down_proj"):
        getattr(layer.mlp, name).weight.copy_(getattr(old.mlp, name).weight)
    layer.post_feedforward_layernorm_1.weight.fill_(_ROOT)
    layer.post_feedforward_layernorm.weight.fill_(_ROOT * scale)
    # DiffusionGemma does not divide scores by sqrt(head size). The power of two is exact in bf16.
    power = 2.0 ** -round(math.log2(size) / 2)
    attention.q_norm.weight.fill_(_ROOT * power)
    attention.k_norm.weight.fill_(_ROOT)
    # The norm of the values divides by sqrt(E), and the norm after the output does it again.
    layer.post_attention_layernorm.weight.fill_(_ROOT * _ROOT * scale)
    factors = {"q_proj": 1 / (math.sqrt(size) * power), "k_proj": 1.0, "v_proj": 1.0, "o_proj": 1.0}
    for name, factor in factors.items():
        new, given = getattr(attention, name), getattr(old.self_attn, name)
        new.weight.copy_(given.weight * factor)
        if new.bias is not None:
            bias: Tensor | None = given.bias
            divided = 1 / _ROOT if name == "o_proj" else factor
            new.bias.zero_() if bias is None else new.bias.copy_(bias * divided)
