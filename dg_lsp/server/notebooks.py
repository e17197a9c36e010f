"""The open notebooks: which documents are their cells, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a notebook: the uri of its document, and whether it holds code."""

    uri: str
    is_code: bool


class Notebooks:
    """The cells of the open notebooks, by the notebooks' uris.

    A cell that was taken out of its notebook still counts as one of it until its document is closed: clients move a
    cell in two steps, in any order.
    """

    def __init__(self) -> None:
        self._cells: dict[str, list[Cell]] = {}
        self._holding: dict[str, tuple[str, ...]] = {}

    def open(self, uri: str, cells: Sequence[Cell]) -> None:
        """Add the notebook `uri` with `cells`, which replace those of a notebook that is open already."""
        self.splice(uri, 0, len(self._cells.get(uri, ())), cells)

    def splice(self, uri: str, start: int, count: int, cells: Sequence[Cell]) -> None:
        """Replace `count` cells of the notebook `uri`, from number `start` on, by `cells`; a new notebook has none."""
        known = self._cells.setdefault(uri, [])
        start = max(start, 0)
        known[start : start + max(count, 0)] = cells
        found = dict[str, dict[str, None]]()
        for name, ones in self._cells.items():
            for cell in ones:
                found.setdefault(cell.uri, {})[name] = None
        self._holding |= {cell: tuple(names) for cell, names in found.items()}

    def close(self, uri: str) -> tuple[str, ...]:
        """Remove the notebook `uri`; return the uris of its cells, whose documents are to be closed."""
        gone = tuple(cell.uri for cell in self._cells.pop(uri, ()))
        for cell in gone:
            self.closed(cell)
        return gone

    def closed(self, cell: str) -> None:
        """Forget the notebooks of the document `cell`, which was closed, unless they still list it."""
        left = [uri for uri in self.holding(cell) if any(one.uri == cell for one in self._cells.get(uri, ()))]
        if left:
            self._holding[cell] = tuple(left)
        else:
            self._holding.pop(cell, None)

    def holding(self, cell: str) -> tuple[str, ...]:
        """Return the uris of the notebooks with the document `cell`; of one that is in none, those that had it last."""
        return self._holding.get(cell, ())

    def above(self, cell: str) -> tuple[str, ...]:
        """Return the uris of the code cells above the document `cell`, in order."""
        cells = self._cells.get(next(iter(self.holding(cell)), ""), [])
        at = next((number for number, one in enumerate(cells) if one.uri == cell), 0)
        return tuple(one.uri for one in cells[:at] if one.is_code)
