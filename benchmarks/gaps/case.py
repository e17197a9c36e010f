"""Case: a valid file, the changes that damage it, a cursor, and the gap that is right there.

Knows places; knows nothing of how gaps are found. `replayed` gives the damaged file with the valid one known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.gaps.place import Place, Span, Truth
from dg_lsp.gaps.gap import Edit, apply_edit
from dg_lsp.messages import BODIES, Kind
from dg_lsp.source.bodies import MARKER
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import tokens


@dataclass(frozen=True, slots=True)
class Change:
    """Replace the bytes [start, end) of the valid file by `text`."""

    start: int
    end: int
    text: bytes = b""


@dataclass(frozen=True, slots=True)
class Case:
    """The gap that is right is `place`, as `changes` leave it; they are in the order of typing and do not overlap.

    All offsets count in bytes of the valid file, which is `truth`'s. The cursor is where `at` comes to be, less `back`
    bytes. acceptable: the kinds that may be chosen where none is asked for. damaged: there is more damage than that at
    the cursor.
    """

    truth: Truth
    place: Place
    changes: tuple[Change, ...]
    at: int
    back: int = 0
    acceptable: frozenset[str] = frozenset()
    damaged: bool = False

    @property
    def kind(self) -> Kind:
        """The kind of gap that is asked for."""
        return self.place.kind

    @property
    def language(self) -> str:
        """The name of the language."""
        return self.truth.language.name

    @property
    def cursor(self) -> int:
        """The cursor's offset in the damaged file."""
        return moved(self.changes, self.at) - self.back

    @property
    def span(self) -> Span:
        """The right gap in the damaged file, without white space at its ends."""
        return moved(self.changes, self.place.start), moved(self.changes, self.place.end)

    @property
    def text(self) -> str:
        """The text of the gap in the valid file."""
        return self.truth.data[self.place.start : self.place.end].decode()

    @property
    def data(self) -> bytes:
        """The damaged file."""
        data = self.truth.data
        for change in sorted(self.changes, key=lambda c: c.start, reverse=True):
            data = data[: change.start] + change.text + data[change.end :]
        return data

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The changes as edits, each of the file as the ones before have left it."""
        found = []
        for number, change in enumerate(self.changes):
            start = moved(self.changes[:number], change.start)
            found.append(Edit(start, start + change.end - change.start, change.text.decode()))
        return tuple(found)


# Makes one case of a scenario for a kind, or None where the place that chance has chosen does not lend itself to it.
Make = Callable[[Truth, Kind, Random], Case | None]


def alone(case: Case) -> Document:
    """The damaged file as it comes from a disk."""
    return Document(f"file:///case.{case.language}", case.language, 0, case.data)


def replayed(case: Case) -> Document:
    """The damaged file as an editor's buffer that was valid and got the edits one by one."""
    document = Document(f"file:///case.{case.language}", case.language, 0, case.truth.data)
    for edit in case.edits:
        document = apply_edit(document, edit)
    return document


def is_right(case: Case, data: bytes, span: Span) -> bool:
    """Return whether both ends of `span` in `data`, the damaged file, are the true ones; white space does not count."""
    true = case.span
    if case.kind in BODIES:
        true = behind_comments(case.truth.language, data, true), true[1]
    return all(not data[min(a, b) : max(a, b)].strip() for a, b in zip(span, true, strict=True))


def behind_comments(language: Language, data: bytes, span: Span) -> int:
    """The start of a body's `span`; where a cut has left only comments of it, the end of the last one.

    Comments stay, unless they only mark that something is to be done.
    """
    found = [t for t in tokens(language, data, *span) if t.kind not in ("space", "newline")]
    said = [t for t in found if not MARKER.fullmatch(data, t.start, t.end)]
    return said[-1].end if said and all(t.kind == "comment" for t in found) else span[0]


def moved(changes: Sequence[Change], offset: int) -> int:
    """An offset of the valid file after `changes`; one that was removed becomes the end of its replacement."""
    found = offset
    for change in changes:
        if offset > change.start:
            found += len(change.text) + change.start - min(offset, change.end)
    return found
