"""The parts of a network in training whose forms in transformers take many small kernels, in forms that take few.

The results are the same up to rounding. Knows the modules of transformers' DiffusionGemma; knows no data and no loss.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.models.diffusion_gemma import modeling_diffusion_gemma as parts

from dg_lsp.model.networks.norms import fuse_norms


def fuse(network: Any) -> None:
    """Give norms, routers and experts of `network` forms that a GPU computes in a third of the time.

    Meant for few experts: all of them are computed for every token, and a weight of 0 leaves out those not chosen.
    """
    forms: dict[type, Callable[..., Any]] = {
        parts.DiffusionGemmaTextRouter: _route,
        parts.DiffusionGemmaTextExperts: _mix,
    }
    fuse_norms(network)
    for module in network.modules():
        if form := forms.get(type(module)):
            module.forward = partial(form, module)


def _route(router: Any, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The chances of all experts [tokens, experts], their weights, of the same shape, and the chosen ones.

    transformers picks the scale of each chosen expert by its index. The gradient of that alone takes a sixth of a step,
    since all tokens add to the same few numbers.
    """
    states = router.norm(states) * router.scale * router.scalar_root_size
    chances = router.proj(states).softmax(-1, dtype=torch.float32)
    top, index = chances.topk(router.config.top_k_experts, dim=-1)
    weights = torch.zeros_like(chances).scatter(-1, index, top / top.sum(-1, keepdim=True))
    return chances, weights * router.per_expert_scale, index


def _mix(experts: Any, states: Tensor, _: Tensor, weights: Tensor) -> Tensor:
    """Return the outputs of the experts for `states` [tokens, hidden], summed by the `weights` of `_route`."""
    inner = F.linear(states, experts.gate_up_proj.flatten(0, 1))
    inner = inner.view(*inner.shape[:-1], experts.num_experts, -1)
    gate, up = inner.chunk(2, dim=-1)
    weighted = experts.act_fn(gate) * up * weights[..., None].to(up.dtype)
    mixed: Tensor = weighted.flatten(-2) @ experts.down_proj.mT.flatten(0, 1)
    return mixed
