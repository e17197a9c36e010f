"""A matrix in eight bits, such as that of a linear layer, and its products. Knows tensors only."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dg_lsp.model.networks.stacks import many_rows

_TILE = 1 << 21  # weights that are dequantised at a time, so that they stay in the CPU's cache
# Rows that are multiplied at once as bytes: what each operation on more of them writes does not fit the cache. And rows
# whose products with several matrices are small enough to be put side by side.
_ROWS, _FEW = 128, 16
_LEVELS = 127 * 256  # the largest of the whole numbers that states become
_TINY = 256  # numbers that a product has at most for which oneDNN takes a hundred times as long


class Eight(torch.nn.Module):
    """A matrix in eight bits, with a scale for each output: int8 [outputs, inputs], bf16 [outputs].

    Where a CPU multiplies bytes the numbers are in oneDNN's order, and states are whole numbers of 16 bits, elsewhere
    bf16: a pass of four tokens through Qwen2.5-Coder-0.5B takes 78 instead of 112 ms.
    """

    numbers: Tensor
    scale: Tensor

    def __init__(self, numbers: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.outputs, self.inputs = numbers.shape
        self.in_bytes = numbers.device.type == "cpu" and multiplies_bytes()
        # Dequantising eight bits takes a quarter of the time that four take.
        self.many = 0 if numbers.device.type != "cpu" else many_rows() // 4
        packed = torch.ops.onednn.qlinear_prepack(numbers, None) if self.in_bytes else numbers
        self.register_buffer("numbers", packed, persistent=False)
        self.register_buffer("scale", scale, persistent=False)
        self._factors = scale.float(), scale.new_zeros(len(scale), dtype=torch.int32)

    @classmethod
    def of(cls, weights: Iterable[Tensor], shape: tuple[int, int], device: torch.device) -> "Eight":
        """Round `weights`, a matrix of `shape` (outputs, inputs) in pieces of some outputs, one after another."""
        numbers = torch.empty(shape, dtype=torch.int8, device=device)
        scale = torch.empty(shape[0], dtype=torch.bfloat16, device=device)
        first = 0
        for piece in weights:
            here = slice(first, first := first + len(piece))
            scale[here] = (piece.abs().amax(1) / 127).clamp(min=1e-12)
            # Numbers are chosen for the scale as bf16 rounds it.
            numbers[here] = (piece / scale[here, None].float().cpu()).round_().clamp_(-127, 127)
        assert first == shape[0]
        return cls(numbers, scale)

    @staticmethod
    def joined(matrices: Iterable["Eight"]) -> "Beside":
        """The outputs of all `matrices` in turn; oneDNN's order does not allow one matrix of them."""
        return Beside([*matrices])

    def dequantised(self) -> Tensor:
        """The weights in fp32 [outputs, inputs], exactly as they are stored."""
        numbers = self.numbers
        if self.in_bytes:  # oneDNN does not give them back
            numbers = _product_of_bytes(
                torch.eye(self.inputs, dtype=torch.int8), self.numbers, *self._factors
            )
            numbers = (numbers.T / self.scale.float()[:, None]).round_()
        return numbers.float() * self.scale.float()[:, None]

    def product(self, states: Tensor) -> Tensor:
        """The product of bf16 `states` [rows, inputs] with the matrix."""
        if self.in_bytes:
            parts = [_products_in_bytes(some, [self]) for some in states.split(_ROWS)]
            return parts[0] if len(parts) == 1 else torch.cat(parts)
        if len(states) < self.many and hasattr(torch.ops.aten, "_weight_int8pack_mm"):
            few: Tensor = torch.ops.aten._weight_int8pack_mm(states, self.numbers, self.scale)
            return few
        step = max(_TILE // self.inputs, 1)
        tiles = zip(self.numbers.split(step), self.scale[:, None].split(step), strict=True)
        # Scaled before the product, not behind it, so that the product is rounded once.
        return torch.cat([F.linear(states, tile.to(states.dtype).mul_(scale)) for tile, scale in tiles], 1)


class Beside(torch.nn.Module):
    """Matrices in eight bits that read the same states, as one matrix with the outputs of all in turn."""

    def __init__(self, matrices: Sequence[Eight]) -> None:
        super().__init__()
        self.matrices = torch.nn.ModuleList(matrices)
        self.inputs, self.outputs = matrices[0].inputs, sum(matrix.outputs for matrix in matrices)

    def product(self, states: Tensor) -> Tensor:
        """The product of bf16 `states` [rows, inputs] with the matrix; few states become whole numbers only once."""
        matrices: Any = self.matrices
        if len(states) <= _FEW and matrices[0].in_bytes:
            return _products_in_bytes(states, matrices)
        return torch.cat([matrix.product(states) for matrix in matrices], 1)


def _products_in_bytes(states: Tensor, matrices: Sequence[Eight]) -> Tensor:
    """The products of states as whole numbers with `matrices`: the largest of each row is _LEVELS or its negative.

    One product has the high bytes of all rows and the low ones, which are -128 to 127.
    """
    size = states.abs().amax(1, keepdim=True).float().clamp_(min=1e-30).div_(_LEVELS)
    whole = states.div(size).round_().to(torch.int16)
    parts = torch.cat([(whole + 128) >> 8, whole]).to(torch.int8)
    found = [_product_of_bytes(parts, matrix.numbers, *matrix._factors) for matrix in matrices]
    high, low = (found[0] if len(found) == 1 else torch.cat(found, 1)).chunk(2)
    return low.add_(high, alpha=256).mul_(size).to(states.dtype)


@lru_cache(maxsize=1)
def multiplies_bytes() -> bool:
    """Return whether this CPU and this torch multiply bytes, with exact sums. The operations are private."""
    if not getattr(torch.cpu, "_is_vnni_supported", lambda: False)():
        return False
    numbers = torch.arange(-127, 129, dtype=torch.int32).clamp(max=127).to(torch.int8).view(2, 128)
    ones, middle = torch.ones(2), torch.zeros(2, dtype=torch.int32)
    try:
        found = _product_of_bytes(numbers, torch.ops.onednn.qlinear_prepack(numbers, None), ones, middle)
    except (AttributeError, TypeError, RuntimeError):
        return False
    return torch.equal(found, numbers.float() @ numbers.float().T)


def _product_of_bytes(states: Tensor, packed: Tensor, scale: Tensor, middle: Tensor) -> Tensor:
    """The product in fp32 of int8 `states` [rows, inputs] with a packed matrix.

    scale, middle: of each output, fp32, and the number that means zero, int32.
    """
    qlinear = torch.ops.onednn.qlinear_pointwise
    rows, least = len(states), _TINY // len(scale) + 1
    states = F.pad(states, (0, 0, 0, least - rows)) if rows < least else states
    found: Tensor = qlinear(
        states, 1.0, 0, packed, scale, middle, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found[:rows]
