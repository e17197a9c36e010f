"""Tiny GGUF files, written by the package gguf, with blocks of its quantizers or made by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from numpy.typing import NDArray
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from dg_lsp.model.networks.gguf_causal import _NAMES, _PARTS
from tests.model.tiny import byte_tokenizer

Kind = GGMLQuantizationType
HIDDEN, VOCABULARY = 256, 272
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
}
# The kinds that the released files mix, by the part of a layer.
MIXED = {"ffn_down": Kind.Q6_K, "attn_v": Kind.Q8_0, "attn_k": Kind.Q5_0, "output": Kind.Q6_K}


def source(kind: str) -> Any:
    """A random network of transformers whose biases and norms matter: "qwen2", "llama" or "llama biased"."""
    torch.manual_seed(2)
    made: Any = (
        Qwen2ForCausalLM(Qwen2Config(**SHAPE, tie_word_embeddings=False))
        if kind == "qwen2"
        else LlamaForCausalLM(
            LlamaConfig(**SHAPE, tie_word_embeddings=False, attention_bias=kind == "llama biased")
        )
    )
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if weight.ndim == 1:
                weight.copy_(torch.randn_like(weight) * 0.3 + ("norm" in name))
    return made.eval()


def blocks_of(weight: NDArray[np.float32], kind: GGMLQuantizationType) -> NDArray[np.uint8]:
    """The blocks of `kind` for `weight`; those that gguf cannot make hold random numbers of about its size."""
    if kind in (Kind.Q4_K, Kind.Q6_K):
        return (q4_k if kind == Kind.Q4_K else q6_k)(weight.shape, float(weight.std()))
    return quantize(weight, kind)


def q4_k(shape: tuple[int, ...], size: float) -> NDArray[np.uint8]:
    """Random blocks of 256 weights: two scales in fp16, twelve bytes of six-bit scales and minima, the numbers."""
    blocks = np.random.default_rng(3).integers(0, 256, (shape[0], shape[1] // 256, 144), dtype=np.uint8)
    blocks[..., 4:8] |= 0xA0  # no scale is small
    blocks[..., 0:2] = np.array([size / 140], np.float16).view(np.uint8)
    blocks[..., 2:4] = np.array([size / 20], np.float16).view(np.uint8)
    return blocks.reshape(shape[0], -1)


def q6_k(shape: tuple[int, ...], size: float) -> NDArray[np.uint8]:
    """Random blocks of 256 weights: the numbers, sixteen scales of eight bits, their scale in fp16."""
    blocks = np.random.default_rng(4).integers(0, 256, (shape[0], shape[1] // 256, 210), dtype=np.uint8)
    blocks[..., 208:210] = np.array([size / 1400], np.float16).view(np.uint8)
    return blocks.reshape(shape[0], -1)


def turned(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """The outputs of a Llama's query or key matrix in the order in which llama.cpp keeps them."""
    parts = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return parts.swapaxes(1, 2).reshape(weight.shape)


def tensors_of(network: Any, architecture: str) -> dict[str, NDArray[np.float32]]:
    """The tensors of `network` under the names that a GGUF file has, in its order of outputs."""
    theirs = {own: name for name, own in _NAMES.items()}
    parts = {own: name for name, own in _PARTS.items()}
    found = {}
    for name, weight in network.named_parameters():
        ours = theirs.get(name)
        if ours is None:
            _, _, layer, part, end = (
                name.replace(".self_attn.", ".self_attn-").replace(".mlp.", ".mlp-").split(".")
            )
            ours = f"blk.{layer}.{parts[part.replace('-', '.')]}.{end}"
        value = weight.detach().float().numpy()
        if architecture == "llama" and ("attn_q" in ours or "attn_k" in ours):
            heads = SHAPE["num_attention_heads" if "attn_q" in ours else "num_key_value_heads"]
            value = turned(value, heads)
        found[ours] = value
    return found


def write(  # noqa: PLR0917
    path: Path,
    tensors: Mapping[str, NDArray[np.float32]],
    architecture: str = "qwen2",
    kinds: Mapping[str, GGMLQuantizationType] = MIXED,
    least: GGMLQuantizationType = Kind.Q4_K,
    entries: Mapping[str, Any] | None = None,
) -> Path:
    """Write `tensors` to `path`; matrices have the kind that `kinds` names for their part, else `least`."""
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(SHAPE["num_hidden_layers"])
    writer.add_context_length(SHAPE["max_position_embeddings"])
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(SHAPE["intermediate_size"])
    writer.add_head_count(SHAPE["num_attention_heads"])
    writer.add_head_count_kv(SHAPE["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    for name, value in (entries or {}).items():
        writer.add_uint32(f"{architecture}.{name}", value)
    add_tokenizer(writer)
    for name, value in tensors.items():
        part = name.split(".")[-2]
        if value.ndim == 1:
            writer.add_tensor(name, value.astype(np.float32))
        else:
            kind = kinds.get(part, least)
            data = value if kind == Kind.F32 else blocks_of(value, kind)
            writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_tokenizer(writer: Any) -> None:
    """A vocabulary of bytes with the special tokens of Qwen."""
    letters = [
        t for t, _ in sorted(byte_tokenizer().get_vocab().items(), key=lambda pair: pair[1]) if len(t) == 1
    ]
    special = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    named = [*letters, *special, "ab"]
    unused = [f"[PAD{number}]" for number in range(len(named), VOCABULARY)]
    writer.add_token_list([*named, *unused])
    writer.add_token_types([1] * len(letters) + [3] * len(special) + [1] + [5] * len(unused))
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(len(letters))
    writer.add_bos_token_id(len(letters))
