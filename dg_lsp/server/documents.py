"""The open documents, kept in step with the client's edits.

Holds the text of each open document as lines and splices edits into it in the units that the client counts.
Knows positions as plain (line, column) pairs; knows no lsprotocol type, no file and no engine.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from dg_lsp.text.documents.changes import MOST, Changes
from dg_lsp.text.documents.document import Document, Encoding
from dg_lsp.text.documents.history import History, begun

Position = tuple[int, int]
# A range and the text that replaces it; no range means the whole document.
Change = tuple[tuple[Position, Position] | None, str]

_LINE_END = re.compile(r"\r\n|\n|\r")
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF_AT_START, _HALF_AT_END = re.compile(r"\A[\ud800-\udfff]"), re.compile(r"[\ud800-\udfff]\Z")
_log = logging.getLogger(__name__)


class UnknownDocument(ValueError):
    """The client speaks of a document that it has not opened; the message says which."""


class Buffer:
    """The text of one open document, as lines that end at LF, CRLF or CR and nowhere else.

    `lines` keep their line ends; the last one has none and may be empty. Lone surrogates stay as they are.
    """

    __slots__ = ("_near", "lines")

    def __init__(self, text: str, encoding: Encoding = "utf-16") -> None:
        self.lines = _split(_paired(text, encoding))
        self._near = (0, 0)  # a line and the byte that it begins at: edits come close together

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.lines)

    def replace(self, start: Position, end: Position, text: str, encoding: Encoding) -> tuple[int, int, int]:
        """Put `text` in the place of what lies between two positions, which may come in either order.

        Columns count units of `encoding`. A column past the end of its line is the line's end, before its
        line end; a line past the last one is the end of the text. Returns which bytes of the UTF-8 text gave way to
        which: [start, end) became [start, stop).
        """
        (first, column), (last, end_column) = sorted((self._clamped(start), self._clamped(end)))
        head = _cut(self.lines[first], column, encoding)[0]
        tail = _cut(self.lines[last], end_column, encoding)[1]
        # A CR that ends the line before may meet an LF at the seam, so that line is split anew as well. The
        # line after cannot be concerned: the tail keeps its own line end, and no column lies inside one.
        before = max(first - 1, 0)
        joined = _paired("".join((*self.lines[before:first], head, text, tail)), encoding)
        lines = _split(joined)
        if last + 1 < len(self.lines):
            lines.pop()  # what comes after the last line end is the next line, which is there already
        begin = self._offset(before)
        gone, come = _size("".join(self.lines[before : last + 1])), _size(joined)
        # Half a character at a seam loses its other half or meets one, so that character does not stay.
        head, tail = _HALF_AT_END.sub("", head), _HALF_AT_START.sub("", tail)
        kept, behind = _size("".join((*self.lines[before:first], head))), _size(tail)
        self.lines[before : last + 1] = lines
        return begin + kept, begin + gone - behind, begin + come - behind

    def _offset(self, line: int) -> int:
        """The byte that `line` begins at; what lies between it and the last line asked for is counted."""
        near, offset = self._near
        between = _size("".join(self.lines[min(near, line) : max(near, line)]))
        self._near = line, offset + between if line >= near else offset - between
        return self._near[1]

    def _clamped(self, position: Position) -> Position:
        """`position` on a line that exists and in a column that this line may have."""
        line, column = max(position[0], 0), max(position[1], 0)
        if line >= len(self.lines):
            line = len(self.lines) - 1
            column = len(self.lines[line]) * 4  # no character has more units than that
        return line, column


class Documents:
    """The open documents by their uris, which are compared exactly as the client writes them.

    A client spells the uri of one document always in the same way, and two spellings may name two documents.
    `encoding` is what columns count; it is agreed on when the client introduces itself.
    """

    def __init__(self, encoding: Encoding = "utf-16") -> None:
        self.encoding: Encoding = encoding
        self._open: dict[str, _Open] = {}

    def open(self, uri: str, language_id: str, version: int, text: str) -> None:
        """Take up a document; one that is open already is replaced."""
        if uri in self._open:
            _log.warning("%s was opened twice; its text is now that of the second time", uri)
        self._open[uri] = _Open(language_id, version, Buffer(text, self.encoding))

    def change(self, uri: str, version: int, changes: Sequence[Change]) -> None:
        """Apply `changes` in their order, each to what the one before has left.

        Raises:
            UnknownDocument: the document is not open.
        """
        document = self._known(uri, "changed")
        if version < document.version:
            _log.warning("the version of %s went back from %d to %d", uri, document.version, version)
        document.version, document.snapshot = version, None
        if document.history is None:
            # What was opened is likely to be whole; a text in the middle of being typed is not.
            document.history = begun(_utf8(document.buffer.text))
        for change in changes:
            document.apply(change, self.encoding)

    def close(self, uri: str) -> None:
        """Forget a document.

        Raises:
            UnknownDocument: the document is not open.
        """
        self._known(uri, "closed")
        del self._open[uri]

    def snapshot(self, uri: str) -> Document | None:
        """The document as it is now, or None where it is not open; later changes do not touch it."""
        found = self._open.get(uri)
        if found is None:
            return None
        if found.snapshot is None:
            data = _utf8(found.buffer.text)
            found.history = found.history.after(data, found.changes) if found.history else begun(data)
            found.changes = Changes()
            found.snapshot = Document(uri, found.language, found.version, data, found.history)
        return found.snapshot

    def uris(self) -> tuple[str, ...]:
        """The uris of the open documents, in the order of opening."""
        return tuple(self._open)

    def __iter__(self) -> Iterator[str]:
        return iter(self.uris())

    def _known(self, uri: str, done: str) -> "_Open":
        if uri not in self._open:
            raise UnknownDocument(f"{uri} was {done} but is not open; the client must open it first")
        return self._open[uri]


class _Open:
    """One open document and its last snapshot, None from each change until it is asked for.

    history: what was remembered at the last snapshot. changes: what has changed since; None: too much.
    """

    __slots__ = ("buffer", "changes", "history", "language", "snapshot", "version")

    def __init__(self, language: str, version: int, buffer: Buffer) -> None:
        self.language, self.version, self.buffer = language, version, buffer
        self.snapshot: Document | None = None
        self.history: History | None = None
        self.changes: Changes | None = Changes()

    def apply(self, change: Change, encoding: Encoding) -> None:
        """Change the text, and note which bytes of it have changed."""
        span, text = change
        if span is None:
            old, self.buffer = self.buffer, Buffer(text, encoding)
            edit = 0, _size(old.text), _size(self.buffer.text)
        else:
            edit = self.buffer.replace(*span, text, encoding)
        if self.changes is not None:
            self.changes = self.changes.then(*edit)
            if len(self.changes.spans) > MOST:
                self.changes = None


def _split(text: str) -> list[str]:
    """The lines of `text` with their line ends; after the last line end comes one more line."""
    starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def _cut(line: str, column: int, encoding: Encoding) -> tuple[str, str]:
    """`line` in two at `column`, at most at its line end, which stays in the second part."""
    content = line.rstrip("\r\n")
    if encoding == "utf-32" or content.isascii():
        at = min(column, len(content))
        return line[:at], line[at:]
    if encoding == "utf-16":
        # A column inside a surrogate pair really parts it: the client that sends it counts, and edits, halves.
        units = content.encode("utf-16-le", "surrogatepass")
        at = min(2 * column, len(units))
        parts = units[:at], units[at:]
        head, tail = (part.decode("utf-16-le", "surrogatepass") for part in parts)
    else:
        data = content.encode("utf-8", "surrogatepass")
        at = min(column, len(data))
        while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
            at -= 1  # a column inside a character is its beginning
        head, tail = (part.decode("utf-8", "surrogatepass") for part in (data[:at], data[at:]))
    return head, tail + line[len(content) :]


def _paired(text: str, encoding: Encoding) -> str:
    """`text` with each two halves of a character that stand together made that character, as in UTF-16."""
    if encoding != "utf-16" or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _size(text: str) -> int:
    """How many bytes `_utf8` makes of `text`."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _utf8(text: str) -> bytes:
    """`text` as UTF-8, with U+FFFD for lone surrogates: as many units in each encoding, so columns agree."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode("utf-8")
