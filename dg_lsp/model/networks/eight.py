"""A matrix in eight bits, such as that of a linear layer, and its products. Knows tensors only."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dg_lsp.model.networks.stacks import Many, many_rows

_TILE = 1 << 19  # weights that are dequantised at a time, so that they stay in the CPU's cache
# Rows that are multiplied at once as bytes: what each operation on more of them writes does not fit the cache.
_ROWS = 256
# Up to so many rows all states have two bytes. Of more rows, only those have two for which one byte would be off by
# more than this share of their mean size. After a text of 400 tokens the distribution of the next ones then differs by
# 0.001 nats; eight bits of the matrices cost 0.0017 (docs/research/speed-and-memory.md).
_EXACT, _COARSE = 32, 0.1
_LEVELS = 127 * 256  # the largest of the whole numbers that states become
_ZERO = 128  # the byte that means 0 in states
_TINY = 256  # numbers that a product has at most for which oneDNN takes a hundred times as long
_LEAST = 4  # rows for which oneDNN reads a matrix faster than for two, the bytes of one row of states (EPYC, Zen 4)
# Rows and outputs of the product that is tried, how often it is timed, and how many times as long as one in bf16 it may
# take: number by number takes 100 times as long.
_PROBED, _TRIES, _SLOWER = 256, 3, 8


class Eight(torch.nn.Module):
    """A matrix in eight bits, with a scale for each output: int8 [outputs, inputs], bf16 [outputs].

    Where a CPU multiplies bytes the numbers are in oneDNN's order, and states are whole numbers of 16 bits, mostly of
    eight where there are many rows; elsewhere bf16. Numbers may be given in that order.
    """

    numbers: Tensor
    scale: Tensor

    def __init__(self, numbers: Tensor, scale: Tensor) -> None:
        super().__init__()
        is_packed = numbers.layout == torch._mkldnn  # type: ignore[attr-defined]
        self.outputs, self.inputs = numbers.shape[::-1] if is_packed else numbers.shape
        self.in_bytes = is_packed or (numbers.device.type == "cpu" and multiplies_bytes())
        self.many = many_rows() if numbers.device.type == "cpu" else Many(in_eight=0)
        if self.in_bytes and not is_packed:
            numbers = torch.ops.onednn.qlinear_prepack(numbers, None)
        self.register_buffer("numbers", numbers, persistent=False)
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
            ones = torch.eye(self.inputs, dtype=torch.uint8).add_(_ZERO)
            numbers = _product_of_bytes(ones, self.numbers, *self._factors)
            numbers = (numbers.T / self.scale.float()[:, None]).round_()
        return numbers.float() * self.scale.float()[:, None]

    def product(self, states: Tensor) -> Tensor:
        """The product of bf16 `states` [rows, inputs] with the matrix."""
        if self.in_bytes:
            return _products_in_bytes(states, [self])
        if len(states) < self.many.in_eight and hasattr(torch.ops.aten, "_weight_int8pack_mm"):
            few: Tensor = torch.ops.aten._weight_int8pack_mm(states, self.numbers, self.scale)
            return few
        step = max(_TILE // self.inputs, 1)
        tiles = zip(self.numbers.split(step), self.scale[:, None].split(step), strict=True)
        # Scaled before the product, not after it, so that the product is rounded once.
        rows = states.to(self.many.dtype)
        found = torch.cat([F.linear(rows, tile.to(rows.dtype).mul_(scale)) for tile, scale in tiles], 1)
        return found.to(states.dtype)


class Beside(torch.nn.Module):
    """Matrices in eight bits that read the same states, as one matrix with the outputs of all in turn."""

    def __init__(self, matrices: Sequence[Eight]) -> None:
        super().__init__()
        self.matrices = torch.nn.ModuleList(matrices)
        self.inputs, self.outputs = matrices[0].inputs, sum(matrix.outputs for matrix in matrices)

    def product(self, states: Tensor) -> Tensor:
        """The product of bf16 `states` [rows, inputs] with the matrix; states become whole numbers only once."""
        matrices: Any = self.matrices
        if matrices[0].in_bytes:
            return _products_in_bytes(states, matrices)
        return torch.cat([matrix.product(states) for matrix in matrices], 1)


def _products_in_bytes(states: Tensor, matrices: Sequence[Eight]) -> Tensor:
    """The products of states as whole numbers with `matrices`: the largest of each row is _LEVELS or its negative."""
    made = states.new_empty(len(states), sum(matrix.outputs for matrix in matrices))
    for some, own in zip(states.split(_ROWS), made.split(_ROWS), strict=True):
        _multiply(some, matrices, own)
    return made


def _multiply(states: Tensor, matrices: Sequence[Eight], made: Tensor) -> None:
    """Write the products of `states` with `matrices` to `made`, the outputs of all in turn.

    One product has the high bytes of all rows, and the low ones, which mean -128 to 127, of those that need them: of
    many rows those whose states are mostly small beside their largest one.
    """
    whole = states.float()
    sizes = whole.abs()
    unit = sizes.amax(1, keepdim=True).clamp_(min=1e-30).div_(_LEVELS)
    needing: Tensor | None = None
    if len(states) > _EXACT:
        error = unit.squeeze(1).mul(256 * 12**-0.5)  # of rounding to whole high bytes, root mean square
        needing = (error > _COARSE * sizes.mean(1)).nonzero().squeeze(1)
    whole = whole.div_(unit).round_().to(torch.int16).add_(_ZERO)
    low_bytes = whole if needing is None else whole[needing]
    parts = torch.cat([(whole >> 8).add_(_ZERO).to(torch.uint8), low_bytes.to(torch.uint8)])
    found = [_product_of_bytes(parts, matrix.numbers, *matrix._factors) for matrix in matrices]
    if needing is None and len(found) > 1:
        found = [torch.cat(found, 1)]
    for product, own in zip(found, made.split([product.shape[1] for product in found], 1), strict=True):
        high, low = product.tensor_split([len(states)])
        sums = low.add_(high, alpha=256) if needing is None else high.mul_(256).index_add_(0, needing, low)
        own.copy_(sums.mul_(unit))


@lru_cache(maxsize=1)
def multiplies_bytes() -> bool:
    """Return whether this CPU and this torch multiply bytes quickly, with exact sums. The operations are private.

    oneDNN computes what it has no kernel for number by number, so a product is timed beside one in bf16.
    """
    if not getattr(torch.cpu, "_is_vnni_supported", lambda: False)():
        return False
    numbers = torch.arange(-127, 129, dtype=torch.int32).clamp(max=127).to(torch.int8)
    numbers = numbers.repeat(_PROBED // 2).view(_PROBED, 128)
    states = (numbers.int() + _ZERO).to(torch.uint8)
    ones, middle = torch.ones(_PROBED), torch.zeros(_PROBED, dtype=torch.int32)
    try:
        packed = torch.ops.onednn.qlinear_prepack(numbers, None)
        product = partial(_product_of_bytes, states, packed, ones, middle)
        found = product()
    except (AttributeError, TypeError, RuntimeError):
        return False
    if not torch.equal(found, numbers.float() @ numbers.float().T):
        return False
    return least_seconds(product) < _SLOWER * least_seconds(
        partial(F.linear, numbers.bfloat16(), numbers.bfloat16())
    )


def least_seconds(product: Callable[[], object]) -> float:
    """Return the processor seconds that `product` takes in this thread alone, the least of some tries."""
    taken = []
    for _ in range(_TRIES):
        began = time.thread_time()
        product()
        taken.append(time.thread_time() - began)
    return min(taken)


def _product_of_bytes(states: Tensor, packed: Tensor, scale: Tensor, middle: Tensor) -> Tensor:
    """Return the product in fp32 of uint8 `states` [rows, inputs], of which _ZERO means 0, with a packed matrix.

    oneDNN multiplies signed states number by number where the CPU has VNNI and no AMX. scale, middle: of each output,
    fp32, and the number that means zero, int32.
    """
    qlinear = torch.ops.onednn.qlinear_pointwise
    rows, least = len(states), max(_TINY // len(scale) + 1, _LEAST)
    states = F.pad(states, (0, 0, 0, least - rows), value=_ZERO) if rows < least else states
    found: Tensor = qlinear(
        states, 1.0, _ZERO, packed, scale, middle, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found[:rows]
