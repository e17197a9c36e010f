"""The open documents, kept in step with the client's edits.

The text of each is held as lines, and edits are applied in the units that the client counts columns in. Positions are
plain (line, column) pairs. Knows no lsprotocol type, no file and no engine.
"""

import logging
from collections.abc import Callable, Sequence
from copy import copy
from itertools import islice, pairwise

from dg_lsp.files.excluded import key_of
from dg_lsp.server.notebooks import Notebooks
from dg_lsp.source.bursts import LARGEST, Bursts
from dg_lsp.source.document import (
    LINE_END,
    SURROGATE,
    UNITS,
    Document,
    Encoding,
    has_surrogate,
    pieces,
    utf8,
)
from dg_lsp.source.history import MOST, Changes, History, begun, splits_character, trimmed

Position = tuple[int, int]
# A range and the text that replaces it; None means the whole document.
Change = tuple[tuple[Position, Position] | None, str]

# The uri of a document, its recent edits, the line where the user was, and the first and last line that were copied.
Use = tuple[str, Bursts, int | None, tuple[int, int] | None]
Record = Callable[[tuple[int, int], str, str, str], tuple[int, int, int]]

# Changes of one notification that are recorded one by one.
_MANY = 100
# Characters of a text from which reading all of it would hold up the event loop; documents that are read beside one.
_LARGE, _AT_HAND = 1_000_000, 200
_log = logging.getLogger(__name__)


class UnknownDocument(ValueError):
    """The client changes or closes a document that it has not opened; the message says which."""


class Buffer:
    """The text of one open document, as lines that end at LF, CRLF or CR and nowhere else.

    lines: with their line ends; the last one has none and may be empty. Lone surrogates are kept.
    """

    __slots__ = ("_near", "lines", "size")

    def __init__(self, text: str, encoding: Encoding = "utf-16") -> None:
        self.lines = _split(_paired(text, encoding))
        self.size = len(text)  # in characters
        self._near = (0, 0)  # a line and its byte offset, to count from: successive edits are close together

    def copy(self) -> "Buffer":
        """Return a buffer with the same text."""
        new = Buffer("")
        new.lines, new.size, new._near = self.lines.copy(), self.size, self._near
        return new

    @property
    def text(self) -> str:
        """Return the whole text."""
        return "".join(self.lines)

    def replace(self, start: Position, end: Position, text: str, encoding: Encoding) -> tuple[int, int, int]:
        """Replace the text between two positions, given in either order, with `text`.

        Columns count units of `encoding`. A column past the end of its line means the end of the line, before its
        line end; a line past the last one means the end of the text. Returns (start, end, stop): the bytes
        [start, end) of the UTF-8 text became the bytes [start, stop). Example: in "ab\n" replacing (0, 1) to (0, 2)
        with "xyz" gives "axyz\n" and returns (1, 2, 4).
        """
        return self._replace((start, end), text, encoding, self._recorded)

    def splice(self, start: Position, end: Position, text: str, encoding: Encoding) -> None:
        """Do as `replace` does, but find no bytes, which takes longer than the change itself."""
        self._replace((start, end), text, encoding, lambda *_: (0, 0, 0))
        self._near = (0, 0)

    def _replace(
        self, span: tuple[Position, Position], text: str, encoding: Encoding, record: Record
    ) -> tuple[int, int, int]:
        """Replace the text of `span` with `text`; return what `record` makes of it before the lines change.

        record: called with the first line that is split again, the last one, the text before and after `text` in
        these, and all of it together.
        """
        (first, column), (last, end_column) = sorted(map(self._clamped, span))
        head = _cut(self.lines[first], column, encoding)[0]
        tail = _cut(self.lines[last], end_column, encoding)[1]
        # The line before is split again too: if it ends with CR, and LF comes next, they become one line end. The line
        # after is not affected, because the tail keeps its own line end.
        before = max(first - 1, 0)
        joined = "".join((*self.lines[before:first], head, text, tail))
        # Only here halves can have come together; a search of a long line takes milliseconds.
        if SURROGATE.search("".join((head[-1:], text, tail[:1]))):
            joined = _paired(joined, encoding)
        lines = _split(joined)
        if last + 1 < len(self.lines):
            lines.pop()  # after the last line end comes the next line, which is in `self.lines` already
        found = record((before, last), "".join((*self.lines[before:first], head)), tail, joined)
        self.size += len(joined) - sum(map(len, self.lines[before : last + 1]))
        self.lines[before : last + 1] = lines
        return found

    def _recorded(self, lines: tuple[int, int], head: str, tail: str, joined: str) -> tuple[int, int, int]:
        """Return the bytes that a change replaces, for `replace`; `_replace` says what it is called with."""
        before, last = lines
        old = "".join(self.lines[before : last + 1])
        # Half of a surrogate pair at a seam changes its character, which therefore counts as replaced.
        head = head[:-1] if SURROGATE.match(head[-1:]) else head
        tail = tail[1:] if SURROGATE.match(tail[:1]) else tail
        begin = self._offset(before) + _size(head)
        gone, come = (text[len(head) : len(text) - len(tail)] for text in (old, joined))
        return begin, begin + _size(gone), begin + _size(come)

    def _offset(self, line: int) -> int:
        """Return the byte offset of `line`, counted from the line of the last call."""
        near, offset = self._near
        between = _size("".join(self.lines[min(near, line) : max(near, line)]))
        self._near = line, offset + between if line >= near else offset - between
        return self._near[1]

    def _clamped(self, position: Position) -> Position:
        """Return `position` moved to an existing line, and to a column that is not negative."""
        line, column = max(position[0], 0), max(position[1], 0)
        if line >= len(self.lines):
            line = len(self.lines) - 1
            column = len(self.lines[line]) * 4  # the end: no character has more than 4 units
        return line, column


# A document that is opened or changed, by its uri.
Opened = tuple[str, "_Open"]


class Documents:
    """The open documents by their uris, as the client writes them.

    A client spells the uri of a document in the same way, from its opening to its closing. A request for one may spell
    it in another way. encoding: the units of columns, agreed on in `initialize`. notebooks: those whose cells are
    documents.
    """

    def __init__(self, encoding: Encoding = "utf-16") -> None:
        self.encoding: Encoding = encoding
        self.notebooks = Notebooks()
        self._open: dict[str, _Open] = {}
        self._large: set[str] = set()
        self._changes = self._texts = 0

    def open(self, uri: str, language_id: str, version: int, text: str) -> None:
        """Add a document; one that is open already is replaced."""
        self.put(self.opening(uri, language_id, version, text))

    def opening(self, uri: str, language_id: str, version: int, text: str) -> "Opened":
        """Return a document for `put`; any thread may call this."""
        if uri in self._open:
            _log.warning("%s was opened twice; its text is now that of the second time", uri)
        return uri, _Open(key_of(uri), language_id, version, Buffer(text, self.encoding))

    def change(self, uri: str, version: int, changes: Sequence[Change]) -> None:
        """Apply `changes` one after another, each to the result of the one before."""
        self.put(self.changing(uri, version)(changes))

    def changing(self, uri: str, version: int) -> "Callable[[Sequence[Change]], Opened]":
        """Return a function that applies changes, one after another, to a copy of the document `uri`, for `put`.

        Any thread may call it. Meanwhile the document is as it was before.
        """
        document = copy(self._known(uri, "changed"))
        if version < document.version:
            _log.warning("the version of %s went back from %d to %d", uri, document.version, version)
        self._changes += 1
        document.version, document.snapshot, document.edited = version, None, self._changes
        document.place = document.copied = None
        return lambda changes: (uri, document.changed(changes, self.encoding))

    def put(self, opened: "Opened") -> None:
        """Keep a document that was opened or changed, in place of the one that was open before."""
        self._texts += 1
        uri, document = opened
        document.state = self._texts
        self._open[uri] = document
        self._large.discard(uri)
        if document.buffer.size > _LARGE:
            self._large.add(uri)

    def is_large(self, uri: str) -> bool:
        """Return whether so much text is in the document `uri` that only a thread should work on all of it."""
        return self._spelled(uri) in self._large

    def is_unread(self, uri: str) -> bool:
        """Return whether the document `uri` is large and has changed since its last snapshot."""
        return self.is_large(uri) and self._open[self._spelled(uri)].snapshot is None

    def unread(self) -> "list[Opened]":
        """Return copies of the large documents that have changed since their last snapshot, for `read`."""
        return [(uri, copy(self._open[uri])) for uri in self._large if self._open[uri].snapshot is None]

    def at_once(self, uri: str) -> Document | None:
        """Return the document as `snapshot` does, but None if it is large and has to be read first."""
        return None if self.is_unread(uri) else self.snapshot(uri)

    def read(self, opened: "Opened") -> None:
        """Keep a copy of a document, which any thread may have read meanwhile, unless the document has changed."""
        uri, document = opened
        if self.state(uri) == document.state:
            self._open[uri] = document

    def close(self, uri: str) -> None:
        """Remove a document."""
        self._known(uri, "closed")
        del self._open[uri]
        self._large.discard(uri)
        self.notebooks.closed(uri)

    def snapshot(self, uri: str) -> Document | None:
        """Return the document as it is now, immutable; None if it is not open."""
        uri = self._spelled(uri)
        if (found := self._open.get(uri)) is None:
            return None
        return found.read(uri)

    def state(self, uri: str) -> int | None:
        """Return the `state` of the snapshot of the document `uri`, without making one; None if it is not open."""
        found = self._open.get(self._spelled(uri))
        return found.state if found else None

    def next_version(self, uri: str) -> int:
        """Return the version after that of the document `uri`; 0 if it is not open."""
        found = self._open.get(uri)
        return found.version + 1 if found else 0

    def bursts(self, uri: str) -> Bursts:
        """Return the recent edits of the document `uri`; none if it is not open."""
        found = self._open.get(uri)
        return found.bursts if found else Bursts()

    def visit(self, uri: str, line: int) -> None:
        """Note that the user is at `line` of the document `uri`."""
        if (found := self._open.get(uri)) is not None:
            self._changes += 1
            found.place, found.edited = line, self._changes

    def copy(self, uri: str, lines: tuple[int, int]) -> None:
        """Note that the user has copied text in `lines`, the first and the last one, of the document `uri`."""
        if (found := self._open.get(uri)) is not None:
            self._changes += 1
            found.copied, found.edited = lines, self._changes

    def edited(self) -> list[Use]:
        """Return the uses of the documents that were edited, copied from or visited, the last one at the end.

        A place and copied lines are those after the last change of the document; None where there are none.
        """
        by_last = sorted(self._open.items(), key=lambda pair: pair[1].edited)
        uses = ((uri, one.bursts, one.place, one.copied) for uri, one in by_last)
        return [use for use in uses if use[1].recent or use[2:] != (None, None)]

    def fingerprint(self, uri: str) -> int:
        """Return a hash of the text of the document `uri`; 0 if it is not open."""
        found = self._open.get(uri)
        if found is None:
            return 0
        # Of a line that did not change the hash is known. Of a large text none is made, so it seems to be a new one.
        return found.state if uri in self._large else hash(tuple(found.buffer.lines))

    def absorb(self, uri: str) -> None:
        """Take the newest burst of the document `uri` for a part of the one before it."""
        self._open[uri].bursts = self._open[uri].bursts.absorbed()

    def at_hand(self) -> list[str]:
        """Return the uris of the documents opened last, the newest first, whose text can be had at once.

        At most _AT_HAND, however many are open, and no large one that has changed since it was read.
        """
        newest = islice(reversed(self._open), _AT_HAND)
        return [uri for uri in newest if not self.is_unread(uri)]

    def uris(self) -> tuple[str, ...]:
        """Return the uris of the open documents, in the order of opening."""
        return tuple(self._open)

    def _spelled(self, uri: str) -> str:
        """Return `uri` as the client spells the open document that it names; as it is if there is none."""
        if uri in self._open:
            return uri
        own = key_of(uri)
        return next((other for other, one in self._open.items() if one.key == own), uri)

    def _known(self, uri: str, done: str) -> "_Open":
        if uri not in self._open:
            raise UnknownDocument(f"{uri} was {done} but is not open; the client must open it first")
        return self._open[uri]


class _Open:
    """An open document.

    key: the spelling that all uris of the same file share. snapshot: the last one; None after a change. history: the
    older texts kept at the last snapshot. changes: those since the last snapshot; None if they were too many. bursts:
    the recent edits. edited: how many changes, copies and visits all documents had got with its last one. place: the
    line of the last visit since the last change; copied: the lines of the last copy since then. state: a number that
    no other text has had.
    """

    __slots__ = (
        "buffer", "bursts", "changes", "copied", "edited", "history", "key", "language", "place", "snapshot", "state",
        "version",
    )  # fmt: skip

    def __init__(self, key: str, language: str, version: int, buffer: Buffer) -> None:
        self.key, self.language, self.version, self.buffer, self.state = key, language, version, buffer, 0
        self.snapshot: Document | None = None
        self.history: History | None = None
        self.changes: Changes | None = Changes()
        self.bursts = Bursts()
        self.edited = 0
        self.place: int | None = None
        self.copied: tuple[int, int] | None = None

    def read(self, uri: str) -> Document:
        """Return the document as it is now, immutable."""
        if self.snapshot is None:
            data = utf8(self.buffer.text)
            self.history = self.history.after(data, self.changes) if self.history else begun(data)
            self.changes = Changes()
            self.snapshot = Document(uri, self.language, self.version, data, self.history, state=self.state)
        return self.snapshot

    def changed(self, changes: Sequence[Change], encoding: Encoding) -> "_Open":
        """Return this document, which shares its text with no other yet, with `changes` applied to a copy of it."""
        if self.history is None:
            # The text as it was opened is likely to be syntactically whole.
            self.history = begun(utf8(self.buffer.text))
        self.buffer = self.buffer.copy()
        if len(changes) > _MANY:
            self.apply_many(changes, encoding)
            return self
        for change in changes:
            self.apply(change, encoding)
        return self

    def apply(self, change: Change, encoding: Encoding) -> None:
        """Apply `change` to the text, and record the bytes that it changed."""
        span, text = change
        if span is None:
            old, self.buffer = self.buffer, Buffer(text, encoding)
            edit = 0, _size(old.text), _size(self.buffer.text)
            self._rewrite(old.text, self.buffer.text)
        else:
            edit = self._replace(span, text, encoding)
        self._record(edit)

    def apply_many(self, changes: Sequence[Change], encoding: Encoding) -> None:
        """Apply `changes` to the text, and record that the whole text has changed, which is narrowed to what differs.

        Recording each of thousands would hold up the event loop.
        """
        size = _size(self.buffer.text)
        for span, text in changes:
            if span is None:
                self.buffer = Buffer(text, encoding)
            else:
                self.buffer.splice(*span, text, encoding)
        self.bursts = Bursts()
        self._record((0, size, _size(self.buffer.text)))

    def _rewrite(self, before: str, now: str) -> None:
        """Record a change of the whole text, by a client that knows no other, as that of the lines that differ."""
        if before == now or max(len(before), len(now)) > LARGEST:
            self.bursts = self.bursts if before == now else Bursts()
            return
        old, new = utf8(before), utf8(now)
        changes = trimmed(Changes().then(0, len(old), len(new)), old, new)
        if not changes.spans:
            return
        start, end, _, stop = changes.spans[0]
        first, last = old.count(b"\n", 0, start), old.count(b"\n", 0, end)
        if not self.bursts.continues(first, last):
            self.bursts = self.bursts.begin(old, first)
        self.bursts = self.bursts.then((start, end, stop), (first, last), new.count(b"\n") - old.count(b"\n"))

    def _replace(
        self, span: tuple[Position, Position], text: str, encoding: Encoding
    ) -> tuple[int, int, int]:
        """Replace `span` by `text` in the newest burst, or in a new one; return what `Buffer.replace` does."""
        (first, _), (last, _) = sorted(span)
        count = len(self.buffer.lines)
        if not self.bursts.continues(first, last):
            small = self.history is not None and len(self.history.now.data) <= LARGEST
            self.bursts = self.bursts.begin(utf8(self.buffer.text), first) if small else Bursts()
        edit = self.buffer.replace(*span, text, encoding)
        if self.bursts.recent:
            self.bursts = self.bursts.then(edit, (first, last), len(self.buffer.lines) - count)
        return edit

    def _record(self, edit: tuple[int, int, int]) -> None:
        if self.changes is not None:
            self.changes = self.changes.then(*edit)
            if len(self.changes.spans) > MOST:
                self.changes = None


def _split(text: str) -> list[str]:
    """Return the lines of `text` with their line ends; after the last line end there is one more line."""
    if "\r" not in text:
        lines = [""]
        for piece in pieces(text, "\n"):
            *ended, last = piece.split("\n")
            lines[-1:] = [*(f"{line}\n" for line in ended), last]
        return lines
    starts = [0, *(end.end() for end in LINE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def _cut(line: str, column: int, encoding: Encoding) -> tuple[str, str]:
    """Split `line` at `column`, or before its line end if that comes first."""
    content = line.rstrip("\r\n")
    if content.isascii():
        at = min(column, len(content))
        return line[:at], line[at:]
    # No character has less than a unit, so the text after need not be looked at.
    near, (codec, size) = content[:column], UNITS[encoding]
    units = near.encode(codec, "surrogatepass")
    # A column inside a surrogate pair splits the pair, because such a client edits halves.
    at = min(size * column, len(units))
    while encoding == "utf-8" and splits_character(units, at):
        at -= 1  # a column inside a character means its beginning
    head, rest = (part.decode(codec, "surrogatepass") for part in (units[:at], units[at:]))
    return head, rest + line[len(near) :]


def _paired(text: str, encoding: Encoding) -> str:
    """Return `text` with adjacent halves of surrogate pairs joined to characters, in UTF-16 only."""
    if encoding != "utf-16" or not has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _size(text: str) -> int:
    """Return the length of `utf8(text)` in bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
