"""DiffusionGemma of GGUF files: experts' blocks in four bits as they are, other experts rounded, the rest in bf16.

Names and layouts are those of the files that llama.cpp's pull requests write, as public dumps of their headers show
them; nobody here has loaded a real one. Every tensor of the file must be one of the network's, and the other way round.
"""

import math
import re
from typing import Any

import torch
from torch import Tensor
from transformers import DiffusionGemmaConfig

from dg_lsp.model.networks import blocks
from dg_lsp.model.networks.gguf_file import GgufFile, Stored
from dg_lsp.model.networks.quanta import size_in
from dg_lsp.model.networks.stacks import Packed
from dg_lsp.model.networks.streaming import Filling

KIND = "diffusion-gemma"
# The options of transformers' configuration, by the names of a header after that of the architecture.
_OPTIONS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_count": "num_experts",
    "expert_used_count": "top_k_experts",
    "attention.head_count": "num_attention_heads",
    "attention.key_length_swa": "head_dim",
    "attention.key_length": "global_head_dim",
    "attention.sliding_window": "sliding_window",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "final_logit_softcapping": "final_logit_softcapping",
}
# Entries that are read apart, and those that must equal another one or have one value.
_APART = (
    "attention.head_count_kv",
    "attention.sliding_window_pattern",
    "rope.freq_base",
    "rope.freq_base_swa",
    "vocab_size",
)
_EQUAL = {
    "attention.value_length": "attention.key_length",
    "attention.value_length_swa": "attention.key_length_swa",
    "rope.dimension_count": "attention.key_length",
    "rope.dimension_count_swa": "attention.key_length_swa",
}
_FIXED = {"attention.shared_kv_layers": 0, "embedding_length_per_layer_input": 0, "attention.causal": False}
_CANVAS, _TOKENS, _FREQUENCIES = "diffusion.canvas_length", "token_embd.weight", "rope_freqs.weight"
_STILL = 1e20  # a frequency divided by more than this turns nothing
_ENDS = (1, 106)  # the end of a text, and that of a turn
_NAMES = {
    _TOKENS: "embed_tokens.weight",
    "output_norm.weight": "norm.weight",
    **{
        f"self_cond_{part}.weight": f"self_conditioning.{own}.weight"
        for part, own in (
            ("pre_norm", "pre_norm"),
            ("gate", "gate_proj"),
            ("up", "up_proj"),
            ("down", "down_proj"),
        )
    },
}
_PARTS = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "pre_ffw_norm_2.weight": "pre_feedforward_layernorm_2.weight",
    "post_ffw_norm_1.weight": "post_feedforward_layernorm_1.weight",
    "post_ffw_norm_2.weight": "post_feedforward_layernorm_2.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "ffn_gate_inp.weight": "router.proj.weight",
    "ffn_gate_inp.scale": "router.scale",
    "ffn_down_exps.scale": "router.per_expert_scale",
    "ffn_gate_up_exps.weight": "experts.gate_up_proj",
    "ffn_down_exps.weight": "experts.down_proj",
    "layer_output_scale.weight": "layer_scalar",
}
_ENCODER = "enc_layer_output_scale.weight"
_LAYER = re.compile(r"blk\.(\d+)\.(.+)")


def config_of(opened: GgufFile) -> DiffusionGemmaConfig:
    """The configuration of the network in `opened`, as transformers would write it.

    Raises:
        CheckpointError: an entry is missing, or says what is not understood.
    """
    own = opened.entries({*_OPTIONS, *_APART, *_EQUAL, *_FIXED}, {*_OPTIONS, *_APART[:4]})
    wanted = _FIXED | {name: own[other] for name, other in _EQUAL.items()}
    for name, value in wanted.items():
        if own.get(name, value) != value:
            raise opened.error(f"its header has {KIND}.{name} {own[name]} instead of {value}")
    for name in (_TOKENS, _FREQUENCIES):
        if name not in opened.tensors:
            raise opened.error(f"{name} is missing")
    heads = _by_kind(opened, own["attention.sliding_window_pattern"], own["attention.head_count_kv"])
    rope = {
        "full_attention": {
            "rope_type": "proportional",
            "partial_rotary_factor": _share_turned(opened),
            "rope_theta": own["rope.freq_base"],
        },
        "sliding_attention": {"rope_type": "default", "rope_theta": own["rope.freq_base_swa"]},
    }
    text = {theirs: own[name] for name, theirs in _OPTIONS.items()} | heads
    ends = [n for n in _ENDS if n < opened.tensors[_TOKENS].shape[0]]
    text |= {
        "vocab_size": opened.tensors[_TOKENS].shape[0],
        "rope_parameters": rope,
        "use_bidirectional_attention": "vision",
        "bos_token_id": opened.fields.get("tokenizer.ggml.bos_token_id", 2),
        "eos_token_id": ends,
        "tie_word_embeddings": True,
    }
    return DiffusionGemmaConfig(text_config=text, canvas_length=opened.fields.get(_CANVAS, 256))


def _by_kind(opened: GgufFile, sliding: list[bool], heads: list[int]) -> dict[str, Any]:
    """The kinds of layers, and the heads with keys of their own of each kind."""
    of = {kind: {h for s, h in zip(sliding, heads, strict=True) if s is kind} for kind in (True, False)}
    if any(len(numbers) != 1 for numbers in of.values()):
        raise opened.error("layers of a kind do not have the same number of keys' heads")
    return {
        "layer_types": ["sliding_attention" if one else "full_attention" for one in sliding],
        "num_key_value_heads": of[True].pop(),
        "num_global_key_value_heads": of[False].pop(),
    }


def _share_turned(opened: GgufFile) -> float:
    """The share of a head's numbers that rotary embeddings turn in layers that see everything: the first ones."""
    factors = opened.weights(opened.tensors[_FREQUENCIES], torch.float32)
    turned = int((factors == 1).sum())
    if not turned or not bool((factors[:turned] == 1).all() and (factors[turned:] > _STILL).all()):
        raise opened.error(f"{_FREQUENCIES} holds factors that are not understood")
    return turned / len(factors)


def load_gguf_gemma(opened: GgufFile, device: str, bits: int) -> Any:
    """The network in `opened` on `device`; experts that are not in four bits are rounded to `bits`, at most to 8.

    Raises:
        CheckpointError: a tensor is missing, unknown, misshapen, holds scales that are lost, or does not fit `device`.
    """
    filling = Filling(opened.path, device, min(bits, 8), config_of(opened))
    for stored in opened.tensors.values():
        if stored.name == _FREQUENCIES:
            continue
        name = _name_of(stored.name)
        if not name:
            raise opened.error(f"{stored.name} is no tensor of this network")
        filling.arrive(name, list(stored.shape))
        if ".experts." in name:
            filling.keep(name, _experts(opened, stored, filling, name))
        else:
            kind = torch.float32 if name.endswith("layer_scalar") else torch.bfloat16
            filling.keep(name, opened.weights(stored, kind).to(filling.device))
    return filling.finish()


def loaded_size(opened: GgufFile, bits: int) -> int:
    """The bytes that `load_gguf_gemma` takes for the network in `opened`: experts in few bits, the rest in bf16."""
    total = 0.0
    for stored in opened.tensors.values():
        size, kept = math.prod(stored.shape), 4 if blocks.has_four_bits(stored.kind) else min(bits, 8)
        total += size_in(kept, size) if ".experts." in _name_of(stored.name) else 2 * size
    return int(total)


def _name_of(name: str) -> str:
    """The name of transformers for the tensor `name` of a GGUF file; "" if there is none."""
    layer = _LAYER.fullmatch(name)
    if layer is None:
        return f"model.decoder.{_NAMES[name]}" if name in _NAMES else ""
    if layer[2] == _ENCODER:
        return f"model.encoder.language_model.layers.{layer[1]}.layer_scalar"
    return f"model.decoder.layers.{layer[1]}.{_PARTS[layer[2]]}" if layer[2] in _PARTS else ""


def _experts(opened: GgufFile, stored: Stored, filling: Filling, name: str) -> Packed:
    """The stack of experts in `stored`, one expert after another."""
    count, outputs, _ = stored.shape

    def raw(number: int) -> Tensor:
        return torch.cat([*opened.pieces(stored, number * outputs, (number + 1) * outputs)])

    if blocks.has_four_bits(stored.kind):
        quanta = (blocks.quanta_of(stored.kind, raw(n).to(filling.device)) for n in range(count))
        return Packed.stacked(Packed.of(expert) for expert in quanta)
    return filling.pack(name, stored.shape, lambda number: blocks.weights_of(stored.kind, raw(number)))
