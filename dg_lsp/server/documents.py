"""The open documents, kept in step with the client's edits.

Holds the text of each open document as lines and splices edits into it in the units that the client counts.
Knows positions as plain (line, column) pairs; knows no lsprotocol type, no file and no engine.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from dg_lsp.text.document import Document, Encoding

Position = tuple[int, int]
# A range and the text that replaces it; no range means the whole document.
Change = tuple[tuple[Position, Position] | None, str]

_LINE_END = re.compile(r"\r\n|\n|\r")
_SURROGATE = re.compile("[\ud800-\udfff]")
_log = logging.getLogger(__name__)


class UnknownDocument(ValueError):
    """The client speaks of a document that it has not opened; the message says which."""


class Buffer:
    """The text of one open document, as lines that end at LF, CRLF or CR and nowhere else.

    `lines` keep their line ends; the last one has none and may be empty. Lone surrogates stay as they are.
    """

    __slots__ = ("lines",)

    def __init__(self, text: str, encoding: Encoding = "utf-16") -> None:
        self.lines = _split(_paired(text, encoding))

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.lines)

    def replace(self, start: Position, end: Position, text: str, encoding: Encoding) -> None:
        """Put `text` in the place of what lies between two positions, which may come in either order.

        Columns count units of `encoding`. A column past the end of its line is the line's end, before its
        line end; a line past the last one is the end of the text.
        """
        (first, column), (last, end_column) = sorted((self._clamped(start), self._clamped(end)))
        head = _cut(self.lines[first], column, encoding)[0]
        tail = _cut(self.lines[last], end_column, encoding)[1]
        # A CR that ends the line before may meet an LF at the seam, so that line is split anew as well. The
        # line after cannot be concerned: the tail keeps its own line end, and no column lies inside one.
        before = max(first - 1, 0)
        joined = "".join((*self.lines[before:first], head, text, tail))
        lines = _split(_paired(joined, encoding))
        if last + 1 < len(self.lines):
            lines.pop()  # what comes after the last line end is the next line, which is there already
        self.lines[before : last + 1] = lines

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
        for span, text in changes:
            if span is None:
                document.buffer = Buffer(text, self.encoding)
            else:
                document.buffer.replace(*span, text, self.encoding)

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
            found.snapshot = Document(uri, found.language, found.version, _utf8(found.buffer.text))
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
    """One open document and its last snapshot, None from each change until it is asked for."""

    __slots__ = ("buffer", "language", "snapshot", "version")

    def __init__(self, language: str, version: int, buffer: Buffer) -> None:
        self.language, self.version, self.buffer = language, version, buffer
        self.snapshot: Document | None = None


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


def _utf8(text: str) -> bytes:
    """`text` as UTF-8, with U+FFFD for lone surrogates: as many units in each encoding, so columns agree."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode("utf-8")
