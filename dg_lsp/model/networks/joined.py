"""Layers of transformers with few operations each: matrices that read the same states are joined.

They are those of Llama, Qwen2, Qwen3, whose heads have norms, and Granite; experts stay as they are. Where matrices are
in few bits on a CPU, a token read alone would spend a fifth of its time in small operations (docs/research/speed-and-
memory.md). Knows transformers' modules and cache protocol.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from dg_lsp.model.networks.attention import grouped_attention
from dg_lsp.model.networks.eight import Eight
from dg_lsp.model.networks.quantized import QuantizedLinear
from dg_lsp.model.networks.stacks import Packed

_BLOCK = 64  # outputs that are packed together


def join_layers(model: Any) -> None:
    """Put the modules below in the place of those of `model`, such as a Llama of transformers, on a CPU."""
    model.rotary_emb = Rotary(model.rotary_emb)
    model.norm = Norm(model.norm)
    for layer in model.layers:
        layer.input_layernorm = Norm(layer.input_layernorm)
        layer.post_attention_layernorm = Norm(layer.post_attention_layernorm)
        layer.self_attn = Attention(layer.self_attn)
        if hasattr(layer.mlp, "gate_proj"):
            layer.mlp = GatedUnit(layer.mlp)


class Joined(Module):
    """The outputs in turn of `linears`, which read the same states; neighbours in as many bits become one matrix."""

    def __init__(self, linears: Sequence[Any]) -> None:
        super().__init__()
        self.parts, biases = torch.nn.ModuleList(), [linear.bias for linear in linears]
        self.bias = None if biases[0] is None else torch.nn.Parameter(torch.cat(biases), False)
        for linear in linears:
            linear.bias = None
        for kind, some in groupby(linears, _kind):
            if kind is None:
                self.parts.extend(some)
            else:
                self.parts.append(QuantizedLinear(kind.joined(linear.matrix for linear in some)))

    def forward(self, states: Tensor) -> Tensor:
        """[..., inputs] -> [..., outputs of all]."""
        parts: list[Tensor] = [part(states) for part in self.parts]
        found = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
        return found if self.bias is None else found.add_(self.bias)


def _kind(linear: Any) -> Any:
    """Return the class of the matrix of `linear`; None where it cannot be joined, as four bits in part of a block."""
    matrix = linear.matrix if isinstance(linear, QuantizedLinear) else None
    is_whole = isinstance(matrix, Packed) and matrix.way == "cpu" and matrix.outputs % _BLOCK == 0
    return type(matrix) if is_whole or isinstance(matrix, Eight) else None


class Norm(Module):
    """A norm of transformers; of one row the sum of squares is computed in another order."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight, self.epsilon = norm.weight, norm.variance_epsilon

    def forward(self, states: Tensor) -> Tensor:
        """Normalise the last dimension."""
        size = states.shape[-1]
        if states.numel() == size:
            length = torch.linalg.vector_norm(states, dtype=torch.float32).item()
            return states.mul((length * length / size + self.epsilon) ** -0.5).mul_(self.weight)
        whole = states.float()
        factors = whole.square().mean(-1, keepdim=True).add_(self.epsilon).rsqrt_()
        return (whole * factors).to(states.dtype).mul_(self.weight)


class Rotary(Module):
    """The cosines and sines [rows, slots, 1, size] by which `_turned` turns heads, from those of transformers."""

    def __init__(self, rotary: Module) -> None:
        super().__init__()
        self.rotary = rotary

    def forward(self, states: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return them for `position_ids` [rows, slots], in the type of `states`."""
        cosines, sines = self.rotary(states, position_ids)
        first, second = sines.chunk(2, -1)
        return cosines[:, :, None], torch.cat([-first, second], -1)[:, :, None]


class Attention(Module):
    """The attention of a layer; queries and keys are turned together."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        linears = attention.q_proj, attention.k_proj, attention.v_proj
        self.joined, self.o_proj = Joined(linears), attention.o_proj
        self.size, self.number = attention.head_dim, attention.layer_idx
        self.heads, self.groups, _ = (linear.out_features // self.size for linear in linears)
        self.options = {"scaling": attention.scaling, "dropout": 0.0}
        norms = (getattr(attention, name, None) for name in ("q_norm", "k_norm"))
        self.norms = torch.nn.ModuleList(Norm(norm) for norm in norms if norm is not None)
        # For transformers' function.
        self.num_key_value_groups, self.is_causal = self.heads // self.groups, True

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None,
        past_key_values: Any,
        **__: Any,
    ) -> tuple[Tensor, None]:
        """Return the new states of `hidden_states` [rows, slots, hidden], as transformers' class does."""
        found = self.joined(hidden_states).unflatten(-1, (-1, self.size))
        whole, value = found.split([self.heads + self.groups, self.groups], 2)
        if self.norms:
            parts = whole.split([self.heads, self.groups], 2)
            whole = torch.cat([norm(part) for norm, part in zip(self.norms, parts, strict=True)], 2)
        whole = _turned(whole, *position_embeddings)
        query, key = whole.transpose(1, 2).split([self.heads, self.groups], 1)
        key, value = past_key_values.update(key, value.transpose(1, 2), self.number)
        read, _ = grouped_attention(self, query, key, value, attention_mask, **self.options)
        return self.o_proj(read.flatten(2)), None


def _turned(heads: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Return `heads` [rows, slots, heads, size] turned by rotary embeddings, as transformers rounds them."""
    return (heads * cosines).add_(heads.roll(heads.shape[-1] // 2, -1).mul_(sines))


class GatedUnit(Module):
    """The gated unit of a layer."""

    def __init__(self, unit: Any) -> None:
        super().__init__()
        self.gate_up = Joined([unit.gate_proj, unit.up_proj])
        self.down_proj, self.act_fn = unit.down_proj, unit.act_fn

    def forward(self, states: Tensor) -> Tensor:
        """[..., hidden] -> [..., hidden]."""
        gate, up = self.gate_up(states).chunk(2, -1)
        return self.down_proj(self.act_fn(gate).mul_(up))
