"""The canvas: rows of token slots, of which some are given (anchors) and the others free, and how to lay them out.

Knows nothing of networks or sampling. A slot number counts over all rows: slot = row * length + column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

FREE = -1  # among the tokens of a seam: a slot that is free, of another gap than the one that is looked at


class LayoutError(ValueError):
    """What is to be laid out does not fit the canvas; the message gives the numbers."""


@dataclass(frozen=True)
class Canvas:
    """Rows of slots. A value: nothing here is ever changed in place.

    tokens: int64 [rows, length]; at a free slot the number says nothing until noise is put there.
    anchored: bool [rows, length]; an anchored slot keeps its token to the very end.
    """

    tokens: Tensor
    anchored: Tensor

    def __post_init__(self) -> None:
        assert self.tokens.shape == self.anchored.shape
        assert self.tokens.ndim == 2
        assert self.tokens.dtype == torch.int64
        assert self.anchored.dtype == torch.bool

    @property
    def rows(self) -> int:
        return int(self.tokens.shape[0])

    @property
    def length(self) -> int:
        return int(self.tokens.shape[1])

    @cached_property
    def free_slots(self) -> Tensor:
        """Slot numbers of the free slots of all rows, ascending: int64 [F]."""
        return (~self.anchored).flatten().nonzero().squeeze(1)

    def to(self, device: torch.device) -> "Canvas":
        """The same canvas on `device`."""
        return Canvas(self.tokens.to(device), self.anchored.to(device))


def open_canvas(length: int) -> Canvas:
    """One row without anchors: every slot is free."""
    return Canvas(torch.zeros(1, length, dtype=torch.int64), torch.zeros(1, length, dtype=torch.bool))


@dataclass(frozen=True, slots=True)
class Seam:
    """What stands on both sides of one gap, in tokens.

    head: the tokens of the gap's line before the gap (may be empty). suffix: the tokens after the gap, which
    the canvas takes as far as it has room. filler: what every slot after the end of the suffix holds. All three may
    hold FREE.
    """

    head: tuple[int, ...]
    suffix: tuple[int, ...]
    filler: int

    def room(self, length: int, anchors: int) -> int:
        """The most free slots a canvas of `length` offers beside the head and `anchors` slots of suffix."""
        return length - len(self.head) - anchors


def lay_out(seam: Seam, gap: int, length: int) -> Canvas:
    """One row: the head as anchors, `gap` free slots, the suffix (then the filler) as anchors; FREE is none.

    Where head and gap fill the canvas, the layout is open: the gap goes on beyond it.

    Raises:
        LayoutError: head and gap are longer than the canvas.
    """
    left = length - len(seam.head) - gap
    if left < 0 or gap < 1:
        raise LayoutError(
            f"a gap of {gap} tokens behind a head of {len(seam.head)} does not fit a canvas of {length} slots"
        )
    tail = list(seam.suffix[:left]) + [seam.filler] * (left - len(seam.suffix))
    row = torch.tensor([[*seam.head, *([FREE] * gap), *tail]], dtype=torch.int64)
    return Canvas(row.clamp(min=0), row != FREE)


def stack(canvases: Sequence[Canvas]) -> Canvas:
    """Canvases of equal length as the rows of one."""
    return Canvas(torch.cat([c.tokens for c in canvases]), torch.cat([c.anchored for c in canvases]))


def anchors_from(canvas: Canvas, columns: Sequence[int], count: int) -> Tensor:
    """Slot numbers of the anchors among the `count` slots from columns[row] on, for each row: int64 [W]."""
    offsets = torch.arange(canvas.length)
    first = torch.tensor(columns)[:, None]
    wanted = (offsets >= first) & (offsets < first + count)
    return (canvas.anchored & wanted.to(canvas.anchored.device)).flatten().nonzero().flatten()


def anchors_after(canvas: Canvas, count: int) -> Tensor:
    """Slot numbers of up to `count` anchors that follow each row's last free slot: int64 [W]."""
    free = [(~row).nonzero().flatten() for row in canvas.anchored]
    return anchors_from(canvas, [int(slots[-1]) + 1 if len(slots) else 0 for slots in free], count)
