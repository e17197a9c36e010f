"""Matrices in four and eight bits, and the layers made of them: a linear layer, a stack of experts. Knows tensors only.

A matrix has groups of neighbouring inputs, each with a scale and a zero of its own: a weight is
(q - middle) * scale + zero, where q is a whole number of four or eight bits and `middle` is 8 or 128. States are bf16.

How products are computed, `way`:
- "cpu": torch's own kernel for four bits on a CPU; for many rows, where bf16 is fast, a tile of the matrix is
  dequantised and multiplied at a time.
- "kernel": ours (kernel.py), which dequantises in registers; on a GPU with Triton.
- "whole": the matrices dequantised into memory, then products in bf16; anywhere.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

GROUPS = (128, 64, 32)  # inputs of a group; the larger, the fewer scales
_AT_ONCE = 1024  # tokens that experts are computed for together: some 250 MB at the released shape
_TILE = 1 << 21  # weights that are dequantised at a time, so that they stay in the CPU's cache
# Rows of a bf16 product whose number the text decides, as an expert's: oneDNN compiles code for each size, which takes
# longer than the product and 2 MB, and the rows that fill it up take less than dequantising the matrix.
_SIZES = (64, 128, 256)
_STACKED = 16  # fp4 matrices that are dequantised together: their bytes become indices of four bytes each
_LEVELS = 127 * 256  # the largest of the whole numbers that states become
_BLOCK = 64  # outputs whose numbers torch's kernel interleaves, with AVX-512
# A computed order of rows, shared by the matrices that are given the same rows.
Tiles = tuple[Tensor, Tensor, Tensor]


class QuantizedError(Exception):
    """The matrices cannot be used here; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Format:
    """bits: 4 or 8. group: inputs that share a scale and a zero, a multiple of 32."""

    bits: int
    group: int

    def check(self, inputs: int) -> None:
        """Raise QuantizedError unless a matrix of `inputs` inputs can be kept in this format."""
        if self.bits not in (4, 8) or self.group not in GROUPS:
            raise QuantizedError(
                f"{self} is no format known here; use 4 or 8 bits and groups of 32, 64 or 128"
            )
        if inputs % self.group:
            raise QuantizedError(
                f"{inputs} inputs do not divide into groups of {self.group}; use smaller groups"
            )


@dataclass(frozen=True, slots=True)
class Quanta:
    """Quantised matrices: whole numbers uint8 [matrices, outputs, inputs], scales and zeros bf16 [..., groups]."""

    numbers: Tensor
    scale: Tensor
    zero: Tensor
    format: Format

    def dequantised(self) -> Tensor:
        """The weights in fp32 [matrices, outputs, inputs], exactly as the format defines them."""
        scale, zero = (t.float().repeat_interleave(self.format.group, -1) for t in (self.scale, self.zero))
        return (self.numbers.float() - 2 ** (self.format.bits - 1)) * scale + zero


def quantise(weight: Tensor, format_: Format) -> Quanta:
    """Round `weight` [matrices, outputs, inputs] to the nearest number, with the smallest and largest of each group."""
    format_.check(weight.shape[-1])
    parts = weight.float().unflatten(-1, (-1, format_.group))
    low, high = parts.aminmax(dim=-1)
    most = 2**format_.bits - 1
    scale = ((high - low) / most).clamp(min=1e-8).bfloat16()
    # Numbers are chosen for the scale and the zero as bf16 rounds them.
    zero = (low + (most + 1) // 2 * scale.float()).bfloat16()
    numbers = (parts - zero.float()[..., None]) / scale.float()[..., None] + (most + 1) // 2
    return Quanta(numbers.round_().clamp_(0, most).to(torch.uint8).flatten(-2), scale, zero, format_)


def quantise_each(weights: Iterable[Tensor], format_: Format) -> Quanta:
    """Round matrices [outputs, inputs] as `quantise` does, one after another: one is in memory at a time."""
    parts = [quantise(weight[None], format_) for weight in weights]
    numbers, scale, zero = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("numbers", "scale", "zero")
    )
    return Quanta(numbers, scale, zero, format_)


def best_way(device: torch.device, format_: Format) -> str:
    """Return the name of the way in which `device` computes products.

    Raises:
        QuantizedError: torch has no operation for it.
    """
    if device.type == "cpu" and format_.bits == 4:
        if hasattr(torch.ops.aten, "_weight_int4pack_mm_for_cpu"):
            return "cpu"
        raise QuantizedError("this torch has no product with four bits on a CPU; install torch 2.11 or later")
    if device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        return "kernel"
    return "whole"


def many_rows() -> int:
    """The number of rows from which bf16 products of dequantised matrices are faster on this CPU than four-bit ones.

    On a Xeon with AMX and torch 2.13, dequantising takes as long as the four-bit product of some 50 rows. Without
    instructions for bf16 it is never faster.
    """
    for name, rows in (("_is_amx_tile_supported", 56), ("_is_avx512_bf16_supported", 96)):
        if getattr(torch.cpu, name, lambda: False)():
            return rows if _is_interleaved() else sys.maxsize
    return sys.maxsize


def _is_interleaved() -> bool:
    """Return whether torch packs four bits as `Packed.tile` reads them; the order is private."""
    numbers = torch.arange(2 * _BLOCK, dtype=torch.int32).view(_BLOCK, 2) % 15
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1).view(2, _BLOCK // 2)
    return torch.equal(torch.cat([packed & 15, packed >> 4], 1).T.int(), numbers)


class Packed(torch.nn.Module):
    """A stack of quantised matrices in the order that its `way` reads.

    "cpu": bytes of torch's kernel, and scales and zeros [matrices, groups, outputs, 2]. Else: bytes [matrices, rows,
    outputs], where a row is an input (eight bits), or a group's first half lies in the low bits and its second half in
    the high bits of half as many rows (four), and scales and zeros [matrices, groups, outputs].
    """

    quanta: Tensor
    scale: Tensor
    zero: Tensor
    both: Tensor

    def __init__(self, tensors: tuple[Tensor, ...], format_: Format, way: str) -> None:
        super().__init__()
        self.format, self.way = format_, way
        quanta, *scales = tensors
        self.register_buffer("quanta", quanta, persistent=False)
        self.count, self.many = len(quanta), sys.maxsize
        if way == "cpu":
            self.register_buffer("both", scales[0], persistent=False)
            self.outputs, self.inputs = scales[0].shape[2], scales[0].shape[1] * format_.group
            if self.outputs % _BLOCK == 0:
                self.many = many_rows()
        else:
            self.register_buffer("scale", scales[0], persistent=False)
            self.register_buffer("zero", scales[1], persistent=False)
            self.outputs, self.inputs = scales[0].shape[2], scales[0].shape[1] * format_.group

    @classmethod
    def of(cls, quanta: Quanta, way: str | None = None) -> "Packed":
        """Pack `quanta`; for the best way of their device unless one is named."""
        format_, numbers = quanta.format, quanta.numbers
        way = way or best_way(numbers.device, format_)
        if way == "cpu":
            packed = [torch.ops.aten._convert_weight_to_int4pack_for_cpu(some.int(), 1) for some in numbers]
            both = torch.stack([quanta.scale, quanta.zero], -1).transpose(1, 2).contiguous()
            return cls((torch.stack(packed), both), format_, way)
        rows = numbers.transpose(1, 2).contiguous()
        if format_.bits == 4:
            halves = rows.unflatten(1, (-1, 2, format_.group // 2))
            rows = (halves[:, :, 0] | (halves[:, :, 1] << 4)).flatten(1, 2).contiguous()
        scale, zero = (t.transpose(1, 2).contiguous() for t in (quanta.scale, quanta.zero))
        return cls((rows, scale, zero), format_, way)

    @classmethod
    def joined(cls, parts: Iterable["Packed"]) -> "Packed":
        """The outputs of all `parts` in turn, stacks of the same way; those of the way "cpu" in whole blocks of 64."""
        some = list(parts)
        return cls._together(some, (1, 2) if some[0].way == "cpu" else (2, 2, 2))

    @classmethod
    def stacked(cls, parts: Iterable["Packed"]) -> "Packed":
        """The matrices of all `parts` in turn, stacks of the same way and shape."""
        return cls._together(list(parts), (0, 0, 0))

    @classmethod
    def _together(cls, parts: list["Packed"], places: tuple[int, ...]) -> "Packed":
        buffers = zip(*(part.buffers() for part in parts), strict=True)
        together = tuple(torch.cat(pieces, place) for place, pieces in zip(places, buffers, strict=False))
        return cls(together, parts[0].format, parts[0].way)

    @classmethod
    def random(
        cls, shape: tuple[int, int, int], format_: Format, device: torch.device, way: str | None = None
    ) -> "Packed":
        """Matrices of random numbers [matrices, outputs, inputs] with a deviation of 1 / sqrt(inputs)."""
        count, outputs, inputs = shape
        format_.check(inputs)
        way = way or best_way(device, format_)
        rows = (
            (outputs, inputs * format_.bits // 8) if way == "cpu" else (inputs * format_.bits // 8, outputs)
        )
        quanta = torch.empty(count, *rows, dtype=torch.uint8, device=device)
        # Every byte is two valid numbers; eight of them are drawn at once.
        quanta.view(-1).view(torch.int64).random_()
        deviation = 4.61 if format_.bits == 4 else 73.9
        scale = torch.full(
            (count, inputs // format_.group, outputs), 1 / (deviation * inputs**0.5), device=device
        )
        scale = scale.bfloat16()
        pair = (scale, scale / 2)
        return cls((quanta, torch.stack(pair, -1)) if way == "cpu" else (quanta, *pair), format_, way)

    def dequantised(self) -> Tensor:
        """The matrices in bf16 [matrices, inputs, outputs]; not of the way "cpu"."""
        assert self.way != "cpu"
        rows = self.quanta
        if self.format.bits == 4:
            rows = torch.stack([rows & 15, rows >> 4], 1)
            rows = rows.unflatten(2, (-1, self.format.group // 2)).transpose(1, 2).flatten(1, 3)
        parts = rows.bfloat16().sub_(2 ** (self.format.bits - 1)).unflatten(1, (-1, self.format.group))
        return parts.mul_(self.scale[:, :, None]).add_(self.zero[:, :, None]).flatten(1, 2)

    def forward(self, states: Tensor, counts: Tensor, tiles: Tiles | None = None) -> Tensor:
        """The products of bf16 `states` [rows, inputs], sorted by matrix, int `counts` [matrices] rows of each.

        tiles: those of `tiles`, computed here unless given.
        """
        if self.way == "kernel":
            from dg_lsp.model.networks import kernel  # noqa: PLC0415 - needs Triton

            height = kernel.tile_rows(len(states), self.count)
            sizes = (self.format.bits, self.format.group, height)
            stored = (self.quanta, self.scale, self.zero)
            tiles = tiles or kernel.tiles_of(counts, len(states), height)
            return kernel.products(states.contiguous(), stored, tiles, sizes)
        if self.way == "whole":
            return grouped_product(states, self.dequantised(), counts)
        parts = states.split(counts.tolist())
        rows = [self._product(part, number) for number, part in enumerate(parts) if len(part)]
        return torch.cat(rows) if rows else states.new_empty(0, self.outputs)

    def product(self, states: Tensor) -> Tensor:
        """The product of bf16 `states` [rows, inputs] with the only matrix."""
        if self.way == "cpu":
            return self._product(states, 0)
        return self(states, torch.full((1,), len(states), device=states.device))

    def _product(self, states: Tensor, number: int) -> Tensor:
        if len(states) < self.many:
            kernel = torch.ops.aten._weight_int4pack_mm_for_cpu
            found: Tensor = kernel(states, self.quanta[number], self.format.group, self.both[number])
            return found
        step = max(_TILE // self.inputs // _BLOCK, 1) * _BLOCK
        tiles = (self.tile(number, slice(first, first + step)) for first in range(0, self.outputs, step))
        parts = parts_of_few_sizes(states)
        made = torch.cat([torch.cat([part @ tile for part in parts]) for tile in tiles], 1)
        return made[: len(states)]

    def tile(self, number: int, outputs: slice) -> Tensor:
        """Some outputs of a matrix in bf16 [inputs, outputs]; of the way "cpu", whole blocks of 64 outputs."""
        groups, group, half = self.inputs // self.format.group, self.format.group, _BLOCK // 2
        packed = self.quanta[number].view(-1, self.inputs, half)[
            outputs.start // _BLOCK : outputs.stop // _BLOCK
        ]
        blocks = len(packed)
        both = (
            self.both[number][:, outputs].view(groups, blocks, 2, half, 2).permute(4, 2, 1, 0, 3).contiguous()
        )
        scale, zero = both[:, :, :, :, None]
        made = torch.empty(groups, group, blocks, 2, half, dtype=torch.bfloat16)
        for part, numbers in enumerate((packed & 15, packed >> 4)):
            centred = numbers.view(torch.int8).sub_(8).bfloat16().view(blocks, groups, group, half)
            into = made[:, :, :, part].permute(2, 0, 1, 3)
            torch.addcmul(zero[part], centred, scale[part], out=into)
        return made.view(self.inputs, -1)

    def tiles(self, states: Tensor, counts: Tensor) -> Tiles | None:
        """The tiles of `states` for the kernel, which are the same for each stack of as many matrices."""
        if self.way != "kernel":
            return None
        from dg_lsp.model.networks import kernel  # noqa: PLC0415 - needs Triton

        return kernel.tiles_of(counts, len(states), kernel.tile_rows(len(states), self.count))

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices with their scales and zeros."""
        return sum(buffer.nbytes for buffer in self.buffers())


def parts_of_few_sizes(states: Tensor) -> tuple[Tensor, ...]:
    """Return `states` [rows, inputs], filled up with rows of zeros, in parts of as many rows as `_SIZES` has."""
    rest = len(states) % _SIZES[-1]
    last = next(size for size in (0, *_SIZES) if size >= rest)
    return F.pad(states, (0, 0, 0, last - rest)).split(_SIZES[-1])


def grouped_product(states: Tensor, matrices: Tensor, counts: Tensor) -> Tensor:
    """The products of `states` [rows, inputs], sorted by matrix, with `matrices` [matrices, inputs, outputs]."""
    grouped: Callable[..., Tensor] | None = getattr(F, "grouped_mm", None) or getattr(
        torch, "_grouped_mm", None
    )
    aligned = all(size % 8 == 0 for size in matrices.shape[1:])
    if grouped is not None and aligned and states.dtype == torch.bfloat16:
        return grouped(states, matrices, offs=counts.cumsum(0).int())
    parts = states.split(counts.tolist())
    return torch.cat([part @ matrix for part, matrix in zip(parts, matrices, strict=True)])


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
            return self._product_in_bytes(states)
        if len(states) < self.many and hasattr(torch.ops.aten, "_weight_int8pack_mm"):
            few: Tensor = torch.ops.aten._weight_int8pack_mm(states, self.numbers, self.scale)
            return few
        step = max(_TILE // self.inputs, 1)
        tiles = zip(self.numbers.split(step), self.scale[:, None].split(step), strict=True)
        # Scaled before the product, not behind it, so that the product is rounded once.
        return torch.cat([F.linear(states, tile.to(states.dtype).mul_(scale)) for tile, scale in tiles], 1)

    def _product_in_bytes(self, states: Tensor) -> Tensor:
        """The product of states as whole numbers: the largest of each row is _LEVELS or its negative.

        One product has the high bytes of all rows and the low ones, which are -128 to 127.
        """
        size = states.abs().amax(1, keepdim=True).float().clamp_(min=1e-30).div_(_LEVELS)
        whole = states.div(size).round_().to(torch.int16)
        parts = torch.cat([(whole + 128) >> 8, whole]).to(torch.int8)
        high, low = _product_of_bytes(parts, self.numbers, *self._factors).chunk(2)
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
    found: Tensor = qlinear(
        states, 1.0, 0, packed, scale, middle, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found


# The sixteen numbers of fp4 (e2m1): a sign, two bits of exponent, one of mantissa.
_FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


def halves_of(packed: Tensor) -> Tensor:
    """The fp4 numbers in bf16 [..., inputs] of bytes uint8 [..., inputs / 2], the first in the low bits."""
    table = torch.tensor(_FP4, dtype=torch.bfloat16, device=packed.device)
    pairs = torch.stack([table.repeat(16), table.repeat_interleave(16)], 1)
    return F.embedding(packed.int(), pairs).flatten(-2)


class Float4(torch.nn.Module):
    """A stack of matrices in NVFP4: fp4 numbers, a scale in fp8 for 16 inputs, and a divisor for each output.

    numbers: bytes [matrices, outputs, inputs / 2]. scale: fp8 [matrices, outputs, groups]. divisor: fp32 [matrices,
    outputs], applied to the outputs: a number times its scale has six significant bits, so it is exact in bf16. way:
    "each" dequantises one matrix after another, "whole" all of them.
    """

    numbers: Tensor
    scale: Tensor
    divisor: Tensor

    def __init__(self, numbers: Tensor, scale: Tensor, divisor: Tensor) -> None:
        super().__init__()
        self.register_buffer("numbers", numbers, persistent=False)
        self.register_buffer("scale", scale, persistent=False)
        self.register_buffer("divisor", divisor, persistent=False)
        self.count = len(numbers)
        # A GPU would wait for the numbers of rows.
        self.way = "each" if numbers.device.type == "cpu" else "whole"

    def forward(self, states: Tensor, counts: Tensor, tiles: Tiles | None = None) -> Tensor:
        """The products of bf16 `states` [rows, inputs], sorted by matrix, int `counts` [matrices] rows of each."""
        assert tiles is None
        divisors = self.divisor.repeat_interleave(counts, 0, output_size=len(states))
        if self.way == "each":  # only the matrices that have rows are dequantised
            parts = enumerate(states.split(counts.tolist()))
            rows = [self._product(part, n) for n, part in parts if len(part)]
            found = torch.cat(rows) if rows else states.new_empty(0, self.divisor.shape[1])
        else:
            some = range(0, self.count, _STACKED)
            whole = torch.cat([self._times_scale(n, n + _STACKED) for n in some])
            found = grouped_product(states, whole.transpose(1, 2), counts)
        return (found.float() / divisors).to(states.dtype)

    def _product(self, states: Tensor, number: int) -> Tensor:
        matrix = self._times_scale(number, number + 1)[0]
        return torch.cat([F.linear(part, matrix) for part in parts_of_few_sizes(states)])[: len(states)]

    def _times_scale(self, first: int, last: int) -> Tensor:
        """The matrices from `first` up to `last` in bf16 [matrices, outputs, inputs], before they are divided."""
        scale = self.scale[first:last].bfloat16()
        numbers = halves_of(self.numbers[first:last]).unflatten(2, (scale.shape[2], -1))
        return numbers.mul_(scale[:, :, :, None]).flatten(2)

    def tiles(self, states: Tensor, counts: Tensor) -> Tiles | None:
        """No tiles: no kernel reads this stack."""


class QuantizedLinear(torch.nn.Module):
    """A linear layer whose matrix is in few bits."""

    def __init__(self, matrix: Packed | Eight, bias: Tensor | None = None) -> None:
        super().__init__()
        self.matrix, self.bias = matrix, bias
        self.in_features, self.out_features = matrix.inputs, matrix.outputs

    def forward(self, states: Tensor) -> Tensor:
        """[..., inputs] -> [..., outputs]."""
        found = self.matrix.product(states.reshape(-1, self.in_features).bfloat16()).to(states.dtype)
        if self.bias is not None:
            found = found + self.bias
        return found.view(*states.shape[:-1], self.out_features)


class QuantizedExperts(torch.nn.Module):
    """A stack of experts with the call of `DiffusionGemmaTextExperts` (transformers), its matrices in few bits."""

    def __init__(
        self, gate_up: Packed | Float4, down: Packed | Float4, act: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.gate_up, self.down, self.act = gate_up, down, act

    @classmethod
    def of(cls, experts: Any, formats: tuple[Format, Format], way: str | None = None) -> "QuantizedExperts":
        """From a module of transformers; one matrix after the other."""
        weights = experts.gate_up_proj.detach(), experts.down_proj.detach()
        gate_up, down = (
            Packed.of(quantise_each(some, format_), way)
            for some, format_ in zip(weights, formats, strict=True)
        )
        return cls(gate_up, down, experts.act_fn)

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
