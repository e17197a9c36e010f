"""A Triton kernel: products of rows with matrices in four or eight bits, unpacked in registers. Knows tensors only.

The method is that of the fused kernels for quantised experts of vLLM (fused_moe.py), rewritten: rows are sorted by
their matrix, each program computes a tile of one matrix's rows, and the matrices are read once, as they are stored. The
numbers are multiplied as they are, and scales and zeros are applied to the sums of a group, of which there are fewer
than weights. Imported only where Triton is installed.
"""

# mypy: ignore-errors
# ruff: noqa: PLR0913, PLR0917

import torch
import triton
import triton.language as tl
from torch import Tensor

# Of a tile: the fastest, or nearly so, of eleven for 64, 256 and 2048 slots on an H100 (docs/research/graphs.md).
COLUMNS, WARPS, STAGES = 64, 4, 3
# 0x43 above a number below 128 is 128 and the number in bf16: no cast, which would take longer than the product.
_ADDED = 128


@triton.jit
def _grouped(
    states, sums, quanta, scale, zero, result, matrix_of, first_of, last_of, width, depth,
    GROUP: tl.constexpr, BITS: tl.constexpr, MIDDLE: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One tile of the result: ROWS rows of one matrix from row `first` on, before row `last`, and WIDE columns."""
    tile = tl.program_id(1)
    first = tl.load(first_of + tile)
    last = tl.load(last_of + tile)
    if first >= last:
        return
    matrix = tl.load(matrix_of + tile).to(tl.int64)
    rows = first + tl.arange(0, ROWS)
    columns = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    READ: tl.constexpr = GROUP // 2 if BITS == 4 else GROUP
    inner = tl.arange(0, READ)
    groups = depth // GROUP
    present = columns < width
    inside = rows < last
    quanta += matrix * groups * READ * width + inner[:, None] * width + columns[None, :]
    scale += matrix * groups * width + columns
    zero += matrix * groups * width + columns
    sums += rows * groups
    states += rows[:, None].to(tl.int64) * depth + inner[None, :]
    total = tl.zeros((ROWS, WIDE), dtype=tl.float32)
    for group in range(0, groups):
        packed = tl.load(quanta + group * READ * width, mask=present[None, :], other=0)
        some = tl.load(states + group * GROUP, mask=inside[:, None], other=0.0)
        if BITS == 4:
            wide = packed.to(tl.int16)
            low = ((wide & 15) | 0x4300).to(tl.bfloat16, bitcast=True)
            high = ((wide >> 4) | 0x4300).to(tl.bfloat16, bitcast=True)
            others = tl.load(states + group * GROUP + READ, mask=inside[:, None], other=0.0)
            part = tl.dot(some, low)
            part = tl.dot(others, high, part)
        else:
            part = tl.dot(some, packed.to(tl.float32).to(tl.bfloat16))
        factor = tl.load(scale + group * width, mask=present, other=0.0).to(tl.float32)
        added = tl.load(zero + group * width, mask=present, other=0.0).to(tl.float32) - MIDDLE * factor
        mean = tl.load(sums + group, mask=inside, other=0.0)
        total += part * factor[None, :] + mean[:, None] * added[None, :]
    places = result + rows[:, None].to(tl.int64) * width + columns[None, :]
    tl.store(places, total.to(tl.bfloat16), mask=inside[:, None] & present[None, :])


def tile_rows(rows: int, matrices: int) -> int:
    """The rows of a tile that suit `rows` rows spread over `matrices` matrices."""
    mean = rows / matrices
    return 16 if mean <= 16 else 32 if mean <= 48 else 64


def tiles_of(counts: Tensor, rows: int, height: int) -> tuple[Tensor, Tensor, Tensor]:
    """The matrix, the first row and the row after the last of each tile, int32, computed without asking the device.

    counts: int [matrices], the rows of each matrix; `rows` in all. height: rows of a tile. There are as many tiles as
    could be needed; those that are not are empty.
    """
    most = rows // height + min(len(counts), rows)
    ends = counts.cumsum(0)
    tiles = (counts + height - 1) // height
    tile_ends = tiles.cumsum(0)
    numbers = torch.arange(most, device=counts.device)
    matrix = torch.searchsorted(tile_ends, numbers, right=True).clamp(max=len(counts) - 1)
    first = ends[matrix] - counts[matrix] + (numbers - tile_ends[matrix] + tiles[matrix]) * height
    last = torch.where(numbers < tile_ends[-1], ends[matrix], 0)
    return matrix.int(), first.int(), last.int()


def products(
    states: Tensor,
    stored: tuple[Tensor, Tensor, Tensor],
    tiles: tuple[Tensor, Tensor, Tensor],
    sizes: tuple[int, int, int],
) -> Tensor:
    """The products of bf16 `states` [rows, depth], sorted by matrix, with matrices as `stored`: bf16 [rows, width].

    stored: quanta, scales and zeros of a Packed. tiles: those of `tiles_of`. sizes: bits, inputs of a group, rows of a
    tile.
    """
    quanta, scale, zero = stored
    depth, width = states.shape[1], scale.shape[2]
    bits, group, height = sizes
    result = states.new_empty(len(states), width)
    sums = states.unflatten(1, (-1, group)).sum(-1, dtype=torch.float32)
    grid = (triton.cdiv(width, COLUMNS), len(tiles[0]))
    middle = 128 if bits == 8 else 8 + _ADDED
    _grouped[grid](
        states, sums, quanta, scale, zero, result, *tiles, width, depth,
        GROUP=group, BITS=bits, MIDDLE=middle, ROWS=height, WIDE=COLUMNS,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return result
