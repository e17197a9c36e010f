"""Layers whose matrices are in few bits: a linear layer, a stack of experts."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from dg_lsp.model.networks.eight import Beside, Eight
from dg_lsp.model.networks.stacks import Float4, Packed, SideBySide

_AT_ONCE = 1024  # tokens that experts are computed for together: some 250 MB at the released shape


class QuantizedLinear(torch.nn.Module):
    """A linear layer whose matrix is in few bits."""

    def __init__(self, matrix: Packed | Eight | Beside, bias: Tensor | None = None) -> None:
        super().__init__()
        self.matrix, self.bias = matrix, bias
        self.in_features, self.out_features = matrix.inputs, matrix.outputs

    def forward(self, states: Tensor) -> Tensor:
        """[..., inputs] -> [..., outputs]."""
        found = self.matrix.product(states.reshape(-1, self.in_features).bfloat16()).to(states.dtype)
        if self.bias is not None:
            found = found.add_(self.bias)
        return found.view(*states.shape[:-1], self.out_features)


class QuantizedExperts(torch.nn.Module):
    """A stack of experts with the call of transformers' own, such as `Qwen3MoeExperts`, its matrices in few bits."""

    def __init__(
        self, gate_up: Packed | Float4 | SideBySide, down: Packed | Float4, act: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.gate_up, self.down, self.act = gate_up, down, act

    def forward(self, states: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        """States [tokens, hidden], the experts' numbers and weights [tokens, k] -> [tokens, hidden].

        Some tokens at a time: each takes k rows in and k rows out, most of the memory that a large batch needs.
        """
        parts = (given.split(_AT_ONCE) for given in (states, index, weights))
        return torch.cat([self._of_some(*some) for some in zip(*parts, strict=True)])

    def _of_some(self, states: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        chosen, order = index.flatten().sort(stable=True)
        # Neither bincount nor histc: the one asks the device for the largest number, the other takes no int on a CPU.
        counts = torch.zeros(self.gate_up.count, dtype=torch.int64, device=chosen.device)
        counts = counts.index_add(0, chosen, torch.ones_like(chosen))
        token = order // index.shape[1]
        sorted_ = states.bfloat16()[token]
        tiles = self.gate_up.tiles(sorted_, counts)
        gate, up = self.gate_up(sorted_, counts, tiles).chunk(2, -1)
        found = self.down(self.act(gate) * up, counts, tiles)
        if found.device.type == "cpu":
            # One operation, where those below write three tensors of this size: 2 of 31 ms for 256 tokens.
            places = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order))).view_as(index)
            whole = F.embedding_bag(places, found.float(), mode="sum", per_sample_weights=weights.float())
            return whole.to(states.dtype)
        found = found * weights.flatten()[order, None]
        # Put back in order and summed, rather than added in place: the sum of a token does not depend on the others.
        back = torch.empty_like(found).index_copy_(0, order, found)
        return back.unflatten(0, index.shape).sum(1).to(states.dtype)
