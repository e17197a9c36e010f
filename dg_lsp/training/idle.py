"""Leaving out the experts of an imported network, which have learned nothing. Knows transformers' DiffusionGemma.

The Llama family has no experts; those of an imported network (training/importing.py) have weights by which they add
nothing.
"""

from typing import Any

import torch
from torch import Tensor


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


class _NoRouter(torch.nn.Module):
    """Routes to no expert."""

    def forward(self, _: Tensor) -> tuple[None, None, None]:
        return None, None, None


class _NoExperts(torch.nn.Module):
    """Experts that have learned nothing, and so add nothing."""

    def forward(self, states: Tensor, *_: Any) -> Tensor:
        return torch.zeros_like(states)
