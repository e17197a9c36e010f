"""Stacks of matrices in few bits, such as those of a layer's experts, and their products. Knows tensors only.

How products are computed, `way`; states are bf16:
- "cpu": torch's own kernel for four bits on a CPU; for many rows a tile of the matrix is dequantised and multiplied at
  a time, in bf16 or, where that is slow, in fp32.
- "kernel": ours (kernel.py), which dequantises in registers; on a GPU with Triton.
- "each": the matrices that have rows, dequantised one after another, then products in bf16; elsewhere on a CPU.
- "whole": all matrices dequantised into memory, then one grouped product in bf16; anywhere.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from dg_lsp.model.networks.quanta import Format, Quanta, QuantizedError

_TILE = 1 << 20  # weights that are dequantised at a time, so that they stay in the CPU's cache
# Rows of a bf16 product whose number the text decides, as an expert's: oneDNN compiles code for each size, which takes
# longer than the product and 2 MB, and the rows that fill it up take less than dequantising the matrix. And the weights
# are put into oneDNN's order at each product, so as many rows as possible are multiplied at once.
_SIZES = (64, 128, 192, 256, 384, 512)
_X86 = ("AVX2", "AVX512")  # as torch names kinds of CPU
_STACKED = 16  # fp4 matrices that are dequantised together: their bytes become indices of four bytes each
_BLOCKS = (64, 32)  # outputs whose numbers torch's kernel interleaves, with AVX-512 and with AVX2
# A computed order of rows, shared by the matrices that are given the same rows.
Tiles = tuple[Tensor, Tensor, Tensor]


def best_way(device: torch.device, format_: Format) -> str:
    """Return the name of the way in which `device` computes products.

    Raises:
        QuantizedError: torch has no operation for it.
    """
    if device.type == "cpu" and format_.bits == 4:
        if hasattr(torch.ops.aten, "_weight_int4pack_mm_for_cpu"):
            return "cpu"
        raise QuantizedError("this torch has no product with four bits on a CPU; install torch 2.11 or later")
    if device.type == "cpu":
        return "each"
    triton = device.type == "cuda" and importlib.util.find_spec("triton") is not None
    return "kernel" if triton else "whole"


@dataclass(frozen=True, slots=True)
class Many:
    """From how many rows on it is faster to dequantise a matrix as `dtype`: one of four bits, and one of eight."""

    in_four: int = sys.maxsize
    in_eight: int = sys.maxsize
    dtype: torch.dtype = torch.bfloat16


@lru_cache(maxsize=1)
def many_rows() -> Many:
    """Return when products of dequantised matrices are faster on this CPU than those of torch's kernels for few bits.

    On a Xeon with AMX and torch 2.13, dequantising takes as long as the four-bit product of some 50 rows, that of
    eight bits a quarter. With AVX2 alone, fp32 is multiplied twice as fast as few bits, and few rows of it slowly.
    """
    for name, rows in (("_is_amx_tile_supported", 56), ("_is_avx512_bf16_supported", 96)):
        if getattr(torch.cpu, name, lambda: False)():
            return Many(rows, rows // 4)
    return Many(88, 64, torch.float32) if torch.backends.cpu.get_cpu_capability() in _X86 else Many()


@lru_cache(maxsize=1)
def block() -> int:
    """Return how many outputs torch packs together in four bits, as `Packed.tile` reads them; 0 if in another order.

    The order is private.
    """
    for outputs in _BLOCKS:
        numbers = torch.arange(2 * outputs, dtype=torch.int32).view(outputs, 2) % 15
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1).view(2, outputs // 2)
        if torch.equal(torch.cat([packed & 15, packed >> 4], 1).T.int(), numbers):
            return outputs
    return 0


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
        self.count, self.many = len(quanta), Many()
        if way == "cpu":
            self.register_buffer("both", scales[0], persistent=False)
            self.outputs, self.inputs = scales[0].shape[2], scales[0].shape[1] * format_.group
            if block() and self.outputs % block() == 0:
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

    def dequantised(self, some: slice = slice(None)) -> Tensor:
        """Some or all of the matrices in bf16 [matrices, inputs, outputs]; not of the way "cpu"."""
        assert self.way != "cpu"
        rows = self.quanta[some]
        if self.format.bits == 4:
            rows = torch.stack([rows & 15, rows >> 4], 1)
            rows = rows.unflatten(2, (-1, self.format.group // 2)).transpose(1, 2).flatten(1, 3)
        parts = rows.bfloat16().sub_(2 ** (self.format.bits - 1)).unflatten(1, (-1, self.format.group))
        return parts.mul_(self.scale[some, :, None]).add_(self.zero[some, :, None]).flatten(1, 2)

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
        return product_of_each(states, counts, self.outputs, self._product)

    def product(self, states: Tensor) -> Tensor:
        """The product of bf16 `states` [rows, inputs] with the only matrix."""
        if self.way in ("cpu", "each"):
            return self._product(states, 0)
        return self(states, torch.full((1,), len(states), device=states.device))

    def _product(self, states: Tensor, number: int) -> Tensor:
        if self.way == "each":
            return product_in_few_sizes(states, self.dequantised(slice(number, number + 1))[0])
        if len(states) < self.many.in_four:
            kernel = torch.ops.aten._weight_int4pack_mm_for_cpu
            found: Tensor = kernel(states, self.quanta[number], self.format.group, self.both[number])
            return found
        step = max(_TILE // self.inputs // block(), 1) * block()
        multiply = product_in_few_sizes if self.many.dtype == torch.bfloat16 else torch.matmul
        rows, found = states.to(self.many.dtype), states.new_empty(len(states), self.outputs)
        for first in range(0, self.outputs, step):
            outputs = slice(first, first + step)
            found[:, outputs] = multiply(rows, self.tile(number, outputs))
        return found

    def tile(self, number: int, outputs: slice) -> Tensor:
        """Some outputs of a matrix [inputs, outputs] for products of many rows: whole blocks, of the way "cpu"."""
        half = block() // 2
        packed = self.quanta[number].view(-1, self.inputs, half)[
            outputs.start // block() : outputs.stop // block()
        ]
        # The outputs of a row are put side by side as eight bytes at a time; long rows are what torch is fast with.
        made = torch.empty(self.inputs, len(packed), 2, half // 8, dtype=torch.int64)
        for part, numbers in enumerate((packed & 15, packed >> 4)):
            made[:, :, part] = numbers.view(torch.int64).transpose(0, 1)
        numbers = made.view(torch.int8).view(-1, self.format.group, len(packed) * block()).sub_(8)
        numbers = numbers.to(self.many.dtype)
        scale, zero = (
            some.to(self.many.dtype).contiguous() for some in self.both[number][:, None, outputs].unbind(-1)
        )
        return torch.addcmul(zero, numbers, scale, out=numbers).flatten(0, 1)

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


class SideBySide(torch.nn.Module):
    """Two stacks of as many matrices that read the same states, as one with the outputs of both in turn."""

    def __init__(self, first: Packed, second: Packed) -> None:
        super().__init__()
        self.first, self.second, self.count = first, second, first.count

    def forward(self, states: Tensor, counts: Tensor, tiles: Tiles | None = None) -> Tensor:
        """The products of bf16 `states` [rows, inputs], sorted by matrix, int `counts` [matrices] rows of each."""
        return torch.cat([stack(states, counts, tiles) for stack in (self.first, self.second)], -1)

    def tiles(self, states: Tensor, counts: Tensor) -> Tiles | None:
        """The tiles of `states`, which are the same for both."""
        return self.first.tiles(states, counts)


def product_in_few_sizes(states: Tensor, matrix: Tensor) -> Tensor:
    """The product of `states` [rows, inputs], filled up with rows of zeros to parts of `_SIZES`, with a matrix."""
    rest = len(states) % _SIZES[-1]
    last = next(size for size in (0, *_SIZES) if size >= rest)
    parts = [part @ matrix for part in F.pad(states, (0, 0, 0, last - rest)).split(_SIZES[-1])]
    return (parts[0] if len(parts) == 1 else torch.cat(parts))[: len(states)]


def product_of_each(
    states: Tensor, counts: Tensor, outputs: int, product: Callable[[Tensor, int], Tensor]
) -> Tensor:
    """The products of `states` [rows, inputs], sorted by matrix, by a call of `product` for each that has rows."""
    parts = enumerate(states.split(counts.tolist()))
    rows = [product(part, number) for number, part in parts if len(part)]
    return torch.cat(rows) if rows else states.new_empty(0, outputs)


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
    "each" on a CPU, else "whole", since a GPU would wait for the numbers of rows.
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
        self.way = "each" if numbers.device.type == "cpu" else "whole"

    def forward(self, states: Tensor, counts: Tensor, tiles: Tiles | None = None) -> Tensor:
        """The products of bf16 `states` [rows, inputs], sorted by matrix, int `counts` [matrices] rows of each."""
        assert tiles is None
        divisors = self.divisor.repeat_interleave(counts, 0, output_size=len(states))
        if self.way == "each":
            found = product_of_each(states, counts, self.divisor.shape[1], self._product)
        else:
            some = range(0, self.count, _STACKED)
            whole = torch.cat([self._times_scale(n, n + _STACKED) for n in some])
            found = grouped_product(states, whole.transpose(1, 2), counts)
        return (found.float() / divisors).to(states.dtype)

    def _product(self, states: Tensor, number: int) -> Tensor:
        return product_in_few_sizes(states, self._times_scale(number, number + 1)[0].T)

    def _times_scale(self, first: int, last: int) -> Tensor:
        """The matrices from `first` up to `last` in bf16 [matrices, outputs, inputs], before they are divided."""
        scale = self.scale[first:last].bfloat16()
        numbers = halves_of(self.numbers[first:last]).unflatten(2, (scale.shape[2], -1))
        return numbers.mul_(scale[:, :, :, None]).flatten(2)

    def tiles(self, states: Tensor, counts: Tensor) -> Tiles | None:
        """No tiles: no kernel reads this stack."""
