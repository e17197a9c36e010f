"""A Triton kernel: products of rows with matrices in four or eight bits, dequantised in registers. Knows tensors only.

The method is that of the fused kernels for quantised experts of vLLM (fused_moe.py), written anew: rows are sorted by
their matrix, each program computes a tile of one matrix's rows, and the matrices are read once, as they are stored.
Imported only where Triton is installed.
"""

# mypy: ignore-errors
# ruff: noqa: PLR0913, PLR0917

import torch
import triton
import triton.language as tl
from torch import Tensor

# Columns, warps and stages of a tile by its rows; measured on an H100 (docs/research/graphs.md).
TILES = {16: (64, 4, 5), 32: (64, 4, 5), 64: (64, 4, 4)}


@triton.jit
def _unpacked(
    quanta, scale, zero, offset, row, half, columns, mask, width, GROUP: tl.constexpr, BITS: tl.constexpr
):
    """Half a block of a matrix, bf16 [32, columns]: (q - middle) * scale + zero."""
    if BITS == 4:
        bytes_ = tl.load(quanta + (offset * 32 + row)[:, None] * width + columns[None, :], mask=mask, other=0)
        whole = (bytes_ >> (4 * half)) & 15
        middle = 8.0
    else:
        whole = tl.load(
            quanta + (offset * 64 + half * 32 + row)[:, None] * width + columns[None, :], mask=mask, other=0
        )
        middle = 128.0
    group = (offset * 64 + half * 32) // GROUP
    factor = tl.load(scale + group * width + columns, mask=columns < width, other=0.0).to(tl.float32)
    added = tl.load(zero + group * width + columns, mask=columns < width, other=0.0).to(tl.float32)
    return ((whole.to(tl.float32) - middle) * factor[None, :] + added[None, :]).to(tl.bfloat16)


@triton.jit
def _grouped(
    states, quanta, scale, zero, result, matrix_of, first_of, last_of, width, depth,
    GROUP: tl.constexpr, BITS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One tile of the result: ROWS rows of one matrix from row `first` on, before row `last`, and COLUMNS columns."""
    tile = tl.program_id(1)
    first = tl.load(first_of + tile)
    last = tl.load(last_of + tile)
    if first >= last:
        return
    matrix = tl.load(matrix_of + tile).to(tl.int64)
    rows = first + tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inner = tl.arange(0, 32)
    mask = (columns < width)[None, :]
    blocks = depth // 64
    quanta += matrix * (depth * BITS // 8) * width
    scale += matrix * (depth // GROUP) * width
    zero += matrix * (depth // GROUP) * width
    states += rows[:, None].to(tl.int64) * depth + inner[None, :]
    inside = (rows < last)[:, None]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for block in range(0, blocks):
        low = tl.load(states + block * 64, mask=inside, other=0.0)
        total = tl.dot(
            low, _unpacked(quanta, scale, zero, block, inner, 0, columns, mask, width, GROUP, BITS), total
        )
        high = tl.load(states + block * 64 + 32, mask=inside, other=0.0)
        total = tl.dot(
            high, _unpacked(quanta, scale, zero, block, inner, 1, columns, mask, width, GROUP, BITS), total
        )
    places = result + rows[:, None].to(tl.int64) * width + columns[None, :]
    tl.store(places, total.to(tl.bfloat16), mask=inside & mask)


def tile_rows(rows: int, matrices: int) -> int:
    """The rows of a tile that suit `rows` rows spread over `matrices` matrices."""
    mean = rows / matrices
    return 16 if mean <= 16 else 32 if mean <= 48 else 64


def tiles_of(counts: Tensor, rows: int, height: int) -> tuple[Tensor, Tensor, Tensor]:
    """The matrix, the first row and the row behind the last of each tile, int32, computed without asking the device.

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
    columns, warps, stages = TILES[height]
    result = states.new_empty(len(states), width)
    grid = (triton.cdiv(width, columns), len(tiles[0]))
    _grouped[grid](
        states, quanta, scale, zero, result, *tiles, width, depth,
        GROUP=group, BITS=bits, ROWS=height, COLUMNS=columns, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return result
