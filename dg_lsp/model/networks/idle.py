"""Idle parts of an imported network, which compute nothing and are left out.

Knows the modules of transformers' DiffusionGemma. The Llama family has no experts, fewer norms and two layers less,
since the first and last layer of DiffusionGemma are special. An imported network (training/importing.py) has these with
weights that change nothing.
"""

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

# An epsilon of a norm beside which what it is given does not matter; 1e-6 is usual.
_HUGE = 1e9
# The norms that see no states of the residual stream, which an imported network scales up.
_NORMS = (
    "self_attn.q_norm",
    "self_attn.k_norm",
    "self_attn.v_norm",
    "post_attention_layernorm",
    "post_feedforward_layernorm_1",
    "post_feedforward_layernorm",
)


def leave_out_idle_parts(network: Any) -> None:
    """Let `network` not compute idle layers, experts and norms; what it gives stays the same.

    Without layers and norms a token of `small` takes a tenth less time on a CPU, beside what idle experts take
    (docs/research/speed-and-memory.md). Layers that stay on the disk are not looked at.
    """
    leave_out_idle_experts(network)
    huge = network.config.text_config.rms_norm_eps >= _HUGE
    for layers, caches in ((network.model.decoder.layers, False), (_encoder_layers(network), True)):
        for number, layer in enumerate(layers):
            added = layer.post_attention_layernorm.weight, layer.post_feedforward_layernorm.weight
            if any(weight.device.type == "meta" for weight in added):
                continue
            if not any(weight.any() for weight in added):
                layers[number] = _IdleLayer(layer.layer_scalar, number if caches else None)
            elif huge:
                for name in _NORMS:
                    parent, _, own = name.rpartition(".")
                    parent = layer.get_submodule(parent)
                    setattr(parent, own, _constant(getattr(parent, own)))


def leave_out_idle_experts(network: Any) -> None:
    """Let the layers whose experts have learned nothing not compute them.

    What such experts add is zero: a sixth of the time of a token on a CPU. Layers that stay on the disk are not looked
    at, and of experts that have learned something only the first one is.
    """
    for layer in (*network.model.decoder.layers, *_encoder_layers(network)):
        weights = layer.experts.down_proj
        if weights.device.type != "meta" and not weights[0].any() and not weights.any():
            layer.router, layer.experts = _NoRouter(), _NoExperts()
            layer.pre_feedforward_layernorm_2 = layer.post_feedforward_layernorm_2 = torch.nn.Identity()


def _encoder_layers(network: Any) -> Any:
    return network.model.encoder.language_model.layers


def _constant(norm: Any) -> torch.nn.Module:
    """Return a module for `norm` with a huge epsilon: a product with its weight over the root of that epsilon."""
    weight = norm.weight.detach() if norm.with_scale else torch.ones(1)
    if not bool((weight == weight[0]).all()):
        return norm  # type: ignore[no-any-return]
    factor = float(weight[0]) / norm.eps**0.5
    return torch.nn.Identity() if factor == 1 else _Factor(factor)


class _Factor(torch.nn.Module):
    """Multiplies by a constant."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, states: Tensor) -> Tensor:
        return states * self.factor


class _IdleLayer(torch.nn.Module):
    """A layer that adds nothing, so only its scalar is left.

    number: its place in the cache, whose length the other layers must find there; None if it has none.
    """

    layer_scalar: Tensor

    def __init__(self, scalar: Tensor, number: int | None) -> None:
        super().__init__()
        self.register_buffer("layer_scalar", scalar)
        self._number = number

    def forward(self, hidden_states: Tensor, past_key_values: Cache | None = None, **_: Any) -> Tensor:
        if past_key_values is not None and self._number is not None:
            nothing = hidden_states.new_zeros(len(hidden_states), 1, hidden_states.shape[1], 1)
            past_key_values.update(nothing, nothing, self._number)
        return hidden_states * self.layer_scalar


class _NoRouter(torch.nn.Module):
    """Routes to no expert."""

    def forward(self, _: Tensor) -> tuple[None, None, None]:
        return None, None, None


class _NoExperts(torch.nn.Module):
    """The sum of experts that have learned nothing: zeros."""

    def forward(self, states: Tensor, *_: Any) -> Tensor:
        return torch.zeros_like(states)
