"""Tiny GGUF files, written by the package gguf, with blocks of its quantizers or made by hand."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import MODEL_ARCH, MODEL_ARCH_NAMES, GGMLQuantizationType, GGUFWriter, get_tensor_name_map
from gguf.quants import quantize
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModelForCausalLM

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


# Types of networks in transformers, by their names in GGUF files where those differ, and options beside SHAPE.
KINDS = {"qwen3moe": "qwen3_moe", "gemma3": "gemma3_text"}
FURTHER: dict[str, dict[str, Any]] = {
    "llama biased": {"attention_bias": True},
    "llama all biased": {"attention_bias": True, "mlp_bias": True},
    "deepseek": {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100_000.0}},
    "qwen3": {"head_dim": 32},
    "qwen3moe": {
        "head_dim": 32,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 256,
        "norm_topk_prob": True,
    },
    "granite": {
        "embedding_multiplier": 12.0,
        "residual_multiplier": 0.22,
        "attention_multiplier": 0.03125,
        "logits_scaling": 8.0,
    },
    "starcoder2": {"norm_epsilon": 1e-5},
    "gemma": {"head_dim": 32, "tie_word_embeddings": True},
    "gemma3": {
        "head_dim": 32,
        "tie_word_embeddings": True,
        "query_pre_attn_scalar": 32,
        "sliding_window": 16,
        "num_hidden_layers": 7,
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
    },
}
# The entries of a header that such networks need beside those of all.
ENTRIES: dict[str, dict[str, Any]] = {
    "deepseek": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0, "rope.freq_base": 100_000.0},
    "qwen3": {"attention.key_length": 32, "attention.value_length": 32},
    "qwen3moe": {
        "attention.key_length": 32,
        "attention.value_length": 32,
        "expert_count": 8,
        "expert_used_count": 2,
        "expert_feed_forward_length": 256,
    },
    "granite": {
        "embedding_scale": 12.0,
        "residual_scale": 0.22,
        "attention.scale": 0.03125,
        "logit_scale": 8.0,
        "rope.dimension_count": 64,
        "vocab_size": VOCABULARY,
    },
    "starcoder2": {"attention.layer_norm_epsilon": 1e-5},
    "gemma": {"attention.key_length": 32, "attention.value_length": 32},
    "gemma3": {
        "block_count": 7,
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.sliding_window": 16,
        "rope.freq_base": 1_000_000.0,
        "rope.scaling.type": "linear",
        "rope.scaling.factor": 8.0,
    },
}


def architecture_of(kind: str) -> str:
    """The architecture of the files of `kind`: DeepSeek-Coder and Granite's code models are Llamas."""
    name = kind.split(maxsplit=1)[0]
    return "llama" if name == "deepseek" else name


def source(kind: str) -> Any:
    """A random network of transformers whose biases and norms matter: an architecture, or a key of FURTHER."""
    torch.manual_seed(2)
    architecture = architecture_of(kind)
    ids = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    options = {"tie_word_embeddings": False, **ids, **SHAPE, **FURTHER.get(kind, {})}
    if architecture == "starcoder2":
        options.pop("rms_norm_eps")
    made = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(KINDS.get(architecture, architecture), **options)
    )
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if weight.ndim == 1:
                centre = "norm" in name and "gemma" not in architecture and name.endswith("weight")
                weight.copy_(torch.randn_like(weight) * 0.3 + centre)
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
    """The tensors of `network` as llama.cpp writes them: with the names of the package gguf, in its order."""
    arch = next(arch for arch in MODEL_ARCH if MODEL_ARCH_NAMES[arch] == architecture)
    names = get_tensor_name_map(arch, network.config.num_hidden_layers)
    found = dict[str, NDArray[np.float32]]()
    for name, weight in network.named_parameters():
        value = weight.detach().float().numpy()
        if name.endswith("experts.gate_up_proj"):
            halves = np.split(value, 2, 1)
            parts = {
                name.replace("gate_up", half): some for half, some in zip(("gate", "up"), halves, strict=True)
            }
        else:
            parts = {name: value}
        for own, some in parts.items():
            whole = own if own.endswith(("weight", "bias")) else f"{own}.weight"
            ours = names.get_name(whole, (".weight", ".bias"))
            assert ours is not None, f"{whole} has no name in files of {architecture}"
            if architecture in ("llama", "granite") and ("attn_q." in ours or "attn_k." in ours):
                heads = SHAPE["num_attention_heads" if "attn_q" in ours else "num_key_value_heads"]
                some = turned(some, heads)  # noqa: PLW2901 - as the converter permutes it
            found[ours] = some + 1 if "gemma" in architecture and "norm" in ours else some
    return found


def write(  # noqa: PLR0917
    path: Path,
    tensors: Mapping[str, NDArray[np.float32]],
    architecture: str = "qwen2",
    kinds: Mapping[str, GGMLQuantizationType] = MIXED,
    least: GGMLQuantizationType = Kind.Q4_K,
    entries: Mapping[str, Any] | None = None,
    tokens: Callable[[Any], None] | None = None,
) -> Path:
    """Write `tensors` to `path`; matrices have the kind that `kinds` names for their part, else `least`."""
    writer = GGUFWriter(path, architecture)
    common = {
        "block_count": SHAPE["num_hidden_layers"],
        "context_length": SHAPE["max_position_embeddings"],
        "embedding_length": HIDDEN,
        "feed_forward_length": SHAPE["intermediate_size"],
        "attention.head_count": SHAPE["num_attention_heads"],
        "attention.head_count_kv": SHAPE["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 10_000.0,
    }
    if architecture == "starcoder2":
        common.pop("attention.layer_norm_rms_epsilon")
    for name, value in (common | dict(entries or {})).items():
        add: Any = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)]
        add(f"{architecture}.{name}", value)
    (tokens or add_tokenizer)(writer)
    for name, value in tensors.items():
        part = name.split(".")[-2]
        if value.ndim == 1:
            writer.add_tensor(name, value.astype(np.float32))
        else:
            kind = Kind.F32 if part == "ffn_gate_inp" else kinds.get(part.removesuffix("_exps"), least)
            data = value if kind == Kind.F32 else blocks_of(value.reshape(-1, value.shape[-1]), kind)
            data = data.reshape(*value.shape[:-1], -1)
            writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_tokenizer(
    writer: Any,
    pre: str = "qwen2",
    special: tuple[str, ...] = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
) -> None:
    """A vocabulary of bytes with control tokens, of which the first ends a text; the default ones are Qwen's."""
    letters = [
        t for t, _ in sorted(byte_tokenizer().get_vocab().items(), key=lambda pair: pair[1]) if len(t) == 1
    ]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    named = [*letters, *special, "ab", "12"]
    unused = [f"[PAD{number}]" for number in range(len(named), VOCABULARY)]
    writer.add_token_list([*named, *unused])
    writer.add_token_types([1] * len(letters) + [3] * len(special) + [1, 1] + [5] * len(unused))
    writer.add_token_merges(["a b", "1 2"])
    writer.add_eos_token_id(len(letters))
    writer.add_bos_token_id(len(letters))


def add_pieces(writer: Any, special: tuple[str, ...]) -> None:
    """A vocabulary of SentencePiece without letters but those of bytes: it is as large as the others."""
    named = ["<unk>", "<s>", "</s>", *special]
    pieces = ["\u2581", "d", "e", "f", "\u2581d", "de", "def"][: VOCABULARY - 256 - len(named)]
    tokens = [*named, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * (len(tokens) - len(pieces)) + [-float(n) for n in range(len(pieces))])
    writer.add_token_types([2, *[3] * (len(named) - 1), *[6] * 256, *[1] * len(pieces)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
