"""Repeats: the next edits that were offered to a client, which of them it has taken, and which it has dismissed."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from dg_lsp.edits import Place
from dg_lsp.gaps import Edit, apply_edit
from dg_lsp.messages import Infill
from dg_lsp.source.bursts import Burst
from dg_lsp.source.document import Document

_OFFERED, _DISMISSED, _WRITTEN = 32, 200, 64
Key = tuple[str, int, str, bytes]


@dataclass(frozen=True, slots=True)
class Repeat:
    """An `edit` of `document` that was offered because of the burst `number` of the document `source`."""

    id: str
    source: str
    number: int
    document: Document
    edit: Edit

    @property
    def key(self) -> Key:
        """The burst, and the line as the edit would make it."""
        return _key(self.source, self.number, (self.document, self.edit))


class Repeats:
    """The next edits of a client."""

    def __init__(self) -> None:
        self._offered: deque[Repeat] = deque(maxlen=_OFFERED)
        self._dismissed: deque[Key] = deque(maxlen=_DISMISSED)
        self._count = 0
        self._taken: tuple[str, int, Repeat] | None = None
        self._sure = deque[tuple[str, int]](maxlen=_OFFERED)
        self._written = deque[tuple[Infill, str]](maxlen=_WRITTEN)

    def taken(self, document: Document) -> Repeat | None:
        """Return the last edit that was offered and made, if `document` is still as that edit has made it."""
        newest, state = self._offered[-1] if self._offered else None, (document.uri, hash(document.data))
        if newest is not None and newest.document.uri == document.uri:
            made = apply_edit(newest.document, newest.edit).data == document.data
            self._taken = (*state, newest) if made else self._taken
        return self._taken[2] if self._taken is not None and self._taken[:2] == state else None

    def offer(self, source: str, burst: Burst, place: Place) -> Repeat:
        """Return the Repeat for `place`, which is remembered."""
        self._count += 1
        made = Repeat(str(self._count), source, burst.number, *place)
        self._offered.append(made)
        return made

    def note_sure(self, source: str, burst: Burst) -> None:
        """Note that the rules have found the places of this burst, so that no model is asked for others."""
        self._sure.append((source, burst.number))

    def is_sure(self, source: str, burst: Burst) -> bool:
        """Return whether the rules have found the places of this burst."""
        return (source, burst.number) in self._sure

    def text_for(self, request: Infill) -> str | None:
        """Return what a model has written for `request`; None if it was not asked."""
        return next((text for asked, text in self._written if asked == request), None)

    def note_text(self, request: Infill, text: str) -> None:
        """Note what a model has written for `request`, so that it is not asked again for the same line."""
        self._written.append((request, text))

    def left(self, source: str, burst: Burst, places: Iterable[Place]) -> list[Place]:
        """Return those of `places` that were not dismissed for this burst."""
        return [p for p in places if _key(source, burst.number, p) not in self._dismissed]

    def dismiss(self, number: str) -> None:
        """Do not offer the edit of this number again for the same burst."""
        self._dismissed += [one.key for one in self._offered if one.id == number]

    def closed(self, uri: str) -> None:
        """Drop what is known of the document `uri`, and of edits that are offered because of it."""
        kept = (one for one in self._offered if uri not in (one.source, one.document.uri))
        self._offered = deque(kept, _OFFERED)
        # The bursts of a document that is opened again are numbered from the beginning.
        self._sure = deque((one for one in self._sure if one[0] != uri), _OFFERED)
        self._dismissed = deque((key for key in self._dismissed if uri not in (key[0], key[2])), _DISMISSED)
        self._taken = None
        self._written.clear()


def _key(source: str, number: int, place: Place) -> Key:
    document, edit = place
    line = document.line_at(edit.start)
    start, end = document.line_starts[line], max(document.line_end(line), edit.end)
    data = document.data
    return source, number, document.uri, data[start : edit.start] + edit.text.encode() + data[edit.end : end]
