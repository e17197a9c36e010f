"""The canvas: rows of token slots, some of them given (anchors) and the others free; and functions that lay them out.

A slot number counts over all rows: slot = row * length + column. Knows nothing of networks or sampling.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

# In the tokens of a seam: a free slot of another gap. In those of a start: a slot that begins as noise.
FREE = -1


class LayoutError(ValueError):
    """A gap and its surroundings do not fit the canvas; the message gives the numbers."""


@dataclass(frozen=True)
class Canvas:
    """Rows of slots; never changed in place.

    tokens: int64 [rows, length]; at a free slot the token has no meaning.
    anchored: bool [rows, length]; an anchored slot keeps its token to the end.
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
        """The slot numbers of all free slots, ascending: int64 [F]."""
        return (~self.anchored).flatten().nonzero().squeeze(1)

    def to(self, device: torch.device) -> "Canvas":
        """The same canvas on `device`."""
        return Canvas(self.tokens.to(device), self.anchored.to(device))


@dataclass(frozen=True, slots=True)
class Seam:
    """The tokens on both sides of a gap.

    head: those of the gap's line before the gap, may be empty. suffix: those after the gap; the canvas takes as many as
    it has room for. filler: the token of every slot after the end of the suffix. All three may hold FREE.
    """

    head: tuple[int, ...]
    suffix: tuple[int, ...]
    filler: int

    def room(self, length: int, anchors: int) -> int:
        """The free slots that a canvas of `length` has room for beside the head and `anchors` tokens of the suffix."""
        return length - len(self.head) - anchors


def lay_out(seam: Seam, gap: int, length: int) -> Canvas:
    """A canvas of one row: the head as anchors, `gap` free slots, then the suffix and the filler as anchors.

    A FREE among these tokens is a free slot. If head and gap fill the canvas, the gap continues beyond it. Example with
    head [7], suffix [8, 9], filler 0: lay_out(seam, 2, 6) is 7 _ _ 8 9 0.

    Raises:
        LayoutError: head and gap are longer than the canvas.
    """
    left = length - len(seam.head) - gap
    if left < 0 or gap < 1:
        raise LayoutError(
            f"a gap of {gap} tokens after a head of {len(seam.head)} does not fit a canvas of {length} slots"
        )
    tail = list(seam.suffix[:left]) + [seam.filler] * (left - len(seam.suffix))
    row = torch.tensor([[*seam.head, *([FREE] * gap), *tail]], dtype=torch.int64)
    return Canvas(row.clamp(min=0), row != FREE)


def stack(canvases: Sequence[Canvas]) -> Canvas:
    """One canvas with the rows of `canvases`, which have equal lengths."""
    return Canvas(torch.cat([c.tokens for c in canvases]), torch.cat([c.anchored for c in canvases]))


def anchors_from(canvas: Canvas, columns: Sequence[int], count: int) -> Tensor:
    """The slot numbers of the anchors among the `count` slots from column columns[row] on, of all rows: int64 [W]."""
    offsets = torch.arange(canvas.length)
    first = torch.tensor(columns)[:, None]
    wanted = (offsets >= first) & (offsets < first + count)
    return (canvas.anchored & wanted.to(canvas.anchored.device)).flatten().nonzero().flatten()


def start_from(canvas: Canvas, texts: Sequence[Sequence[int]]) -> Tensor:
    """The tokens that the free slots of `canvas` start from, those of a text a row: int64 [rows, length].

    A text begins in its row's first free slot and is cut where the free slots end. FREE is in every other slot, and
    in all slots of a row whose text is empty. Example: the text 5 6 7 in the canvas 1 _ _ 2 gives FREE 5 6 FREE.
    """
    start = torch.full_like(canvas.tokens, FREE)
    for row, text in enumerate(texts):
        slots = (~canvas.anchored[row]).nonzero().flatten()[: len(text)]
        start[row, slots] = torch.tensor(text[: len(slots)], dtype=torch.int64, device=start.device)
    return start


def noised(start: Tensor, share: float, seed: int) -> Tensor:
    """`start` with each of its tokens turned into FREE with the probability `share`, drawn from `seed`."""
    # Drawn on the CPU, so that the same seed leaves the same tokens out on every device.
    drawn = torch.rand(start.shape, generator=torch.Generator().manual_seed(seed % 2**63))
    return start.masked_fill((drawn < share).to(start.device), FREE)
