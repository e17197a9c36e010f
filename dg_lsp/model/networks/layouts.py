"""The layouts of causal networks in GGUF files, by architecture: entries of the header, and the names of tensors.

They are those that llama.cpp's converter writes and its graphs read (`convert_hf_to_gguf.py`, `src/models` of
llama.cpp). A new one is an entry of LAYOUTS. Knows names and numbers; knows no tensors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dg_lsp.model.networks.gguf_file import GgufFile

TOKENS, OUTPUT, FREQUENCIES = "token_embd.weight", "output.weight", "rope_freqs.weight"
# The options of transformers' configuration, by the names of a header after that of the architecture.
_OPTIONS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
}
_RMS = {"attention.layer_norm_rms_epsilon": "rms_norm_eps"}
_EXPERTS = {
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}
_SCALES = {
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}
# Entries that must say what the network does anyway, and others.
HEAD = ("attention.key_length", "attention.value_length", "rope.dimension_count")
OTHER = ("rope.freq_base", "vocab_size", "rope.scaling.type", "rope.scaling.factor")
_ATTENTION = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
_NORMED = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_UNIT = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_AFTER = {"ffn_norm": "post_attention_layernorm"}
_GATED = _ATTENTION | _AFTER | _UNIT
# llama.cpp turns neighbouring numbers of a head together, transformers those half a head apart.
_TURNED = ("self_attn.q_proj", "self_attn.k_proj")
_PERIOD, _LOCAL_BASE = 6, 10_000.0  # of Gemma 3: each sixth layer sees everything
_LARGEST = 62  # layers of the Gemma 3 whose scores are scaled by other than a head's size


def _nothing(_: GgufFile, __: Mapping[str, Any], ___: int) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Layout:
    """The entries and names of the networks of one architecture.

    kind: the type of network, as transformers names it. parts: the modules of a layer, by the names of their tensors.
    options: the options of its configuration, by the entries that must be there. optional: entries that may be there.
    further: options that follow from the file, its entries and a head's size. turned: modules whose outputs are in
    another order. adds_one: whether 1 is added to the weights of norms. joins: whether joined.py knows its layers.
    free: whether its heads may make up another size than that of the states.
    """

    kind: str
    parts: Mapping[str, str] = field(default_factory=lambda: _GATED)
    options: Mapping[str, str] = field(default_factory=lambda: _OPTIONS | _RMS)
    optional: tuple[str, ...] = ()
    further: Callable[[GgufFile, Mapping[str, Any], int], dict[str, Any]] = _nothing
    turned: tuple[str, ...] = ()
    adds_one: bool = False
    joins: bool = True
    free: bool = True


def _llama(opened: GgufFile, _: Mapping[str, Any], head: int) -> dict[str, Any]:
    """Biases are those of Granite's code models."""
    return {
        "head_dim": head,
        "attention_bias": "blk.0.attn_q.bias" in opened.tensors,
        "mlp_bias": "blk.0.ffn_gate.bias" in opened.tensors,
    }


def _granite(opened: GgufFile, own: Mapping[str, Any], head: int) -> dict[str, Any]:
    scales = {theirs: own.get(name, 1.0) for name, theirs in _SCALES.items()}
    scales["attention_multiplier"] = own.get("attention.scale", head**-0.5)
    return scales | {"attention_bias": "blk.0.attn_q.bias" in opened.tensors}


def _qwen3(_: GgufFile, __: Mapping[str, Any], head: int) -> dict[str, Any]:
    return {"head_dim": head}


def _qwen3_moe(_: GgufFile, __: Mapping[str, Any], head: int) -> dict[str, Any]:
    return {"head_dim": head, "norm_topk_prob": True}


def _gemma3(_: GgufFile, own: Mapping[str, Any], head: int) -> dict[str, Any]:
    """Layers that see a window have rotary embeddings of their own."""
    layers = own["block_count"]
    full = [number % _PERIOD == _PERIOD - 1 for number in range(layers)]
    whole = own["embedding_length"] // own["attention.head_count"]
    return {
        "head_dim": head,
        "query_pre_attn_scalar": whole if layers == _LARGEST else head,
        "layer_types": ["full_attention" if one else "sliding_attention" for one in full],
        "rope_parameters": {
            "full_attention": rope_of(own, 1_000_000.0),
            "sliding_attention": {
                "rope_type": "default",
                "rope_theta": own.get("rope.freq_base_swa", _LOCAL_BASE),
            },
        },
    }


def rope_of(own: Mapping[str, Any], base: float = 10_000.0) -> dict[str, Any]:
    """The rotary embeddings that the entries `own` describe, as transformers names them."""
    found = {"rope_type": "default", "rope_theta": own.get("rope.freq_base", base)}
    if own.get("rope.scaling.type") == "linear":
        found |= {"rope_type": "linear", "factor": own.get("rope.scaling.factor", 1.0)}
    return found


LAYOUTS = {
    "llama": Layout("llama", further=_llama, turned=_TURNED),
    "qwen2": Layout("qwen2", free=False),
    "qwen3": Layout("qwen3", _GATED | _NORMED, further=_qwen3),
    "qwen3moe": Layout(
        "qwen3_moe",
        {
            **_ATTENTION,
            **_NORMED,
            **_AFTER,
            "ffn_gate_inp": "mlp.gate",
            "ffn_gate_exps": "mlp.experts.gate_proj",
            "ffn_up_exps": "mlp.experts.up_proj",
            "ffn_down_exps": "mlp.experts.down_proj",
        },
        _OPTIONS | _RMS | _EXPERTS,
        further=_qwen3_moe,
    ),
    "granite": Layout(
        "granite", optional=(*_SCALES, "attention.scale"), further=_granite, turned=_TURNED, free=False
    ),
    "starcoder2": Layout(
        "starcoder2",
        {**_ATTENTION, **_AFTER, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
        _OPTIONS | {"attention.layer_norm_epsilon": "norm_epsilon"},
        joins=False,
        free=False,
    ),
    "gemma": Layout("gemma", further=_qwen3, adds_one=True, joins=False),
    "gemma3": Layout(
        "gemma3_text",
        {
            **_ATTENTION,
            **_NORMED,
            **_UNIT,
            "post_attention_norm": "post_attention_layernorm",
            "ffn_norm": "pre_feedforward_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
        },
        _OPTIONS | _RMS | {"attention.sliding_window": "sliding_window"},
        optional=("rope.freq_base_swa",),
        further=_gemma3,
        adds_one=True,
        joins=False,
    ),
}
