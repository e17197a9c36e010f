"""The open notebooks: which documents are their cells, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a notebook: the uri of its document, and whether it holds code."""

    uri: str
    is_code: bool


class Notebooks:
    """The cells of the open notebooks, by the notebooks' uris."""

    def __init__(self) -> None:
        self._cells: dict[str, list[Cell]] = {}
        self._holding: dict[str, str] = {}

    def splice(self, uri: str, start: int, count: int, cells: Sequence[Cell]) -> None:
        """Replace `count` cells of the notebook `uri`, from number `start` on, by `cells`; a new notebook has none."""
        known = self._cells.setdefault(uri, [])
        start = max(start, 0)
        for gone in known[start : start + max(count, 0)]:
            self._holding.pop(gone.uri, None)
        known[start : start + max(count, 0)] = cells
        self._holding |= {cell.uri: uri for cell in cells}

    def close(self, uri: str) -> tuple[str, ...]:
        """Remove the notebook `uri`; return the uris of its cells."""
        gone = tuple(cell.uri for cell in self._cells.pop(uri, ()))
        for cell in gone:
            self._holding.pop(cell, None)
        return gone

    def holding(self, cell: str) -> str:
        """Return the uri of the notebook with the document `cell`; empty if there is none."""
        return self._holding.get(cell, "")

    def above(self, cell: str) -> tuple[str, ...]:
        """Return the uris of the code cells above the document `cell`, in order."""
        cells = self._cells.get(self.holding(cell), [])
        at = next((number for number, one in enumerate(cells) if one.uri == cell), 0)
        return tuple(one.uri for one in cells[:at] if one.is_code)
