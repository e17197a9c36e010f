"""Document: an immutable snapshot of one buffer, and the way between byte offsets and editor positions."""

import errno
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import AnyStr, Literal

from dg_lsp.source.history import History, character_start
from dg_lsp.source.language import UnknownLanguage, language_of

Encoding = Literal["utf-8", "utf-16", "utf-32"]

LARGEST = 32 << 20  # bytes of a file that is read
_PIECE = 1 << 20
BOM = b"\xef\xbb\xbf"
SURROGATE = re.compile("[\ud800-\udfff]")
LINE_END = re.compile(r"\r\n|\n|\r")
# The codec of each encoding, and the bytes of a unit.
UNITS: dict[Encoding, tuple[str, int]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A file as it was read: its path, once all links are followed, and its bytes."""

    path: str
    data: bytes


def last_line(text: str) -> int:
    """Return where the last line of `text` begins."""
    return max(text.rfind("\n"), text.rfind("\r")) + 1


class DocumentError(ValueError):
    """A file or a position that cannot be used; the message names it and the fix."""


def pieces(text: AnyStr, end: AnyStr) -> Iterator[AnyStr]:
    """Yield the parts of `text`, each of about a million characters or bytes, cut after an `end` if there is one.

    What Python does with a large text in one go, no other thread can interrupt.
    """
    at = 0
    while at + _PIECE < len(text) and (cut := text.rfind(end, at, at + _PIECE) + 1):
        yield text[at:cut]
        at = cut
    yield text[at:] if at else text


def has_surrogate(text: str) -> bool:
    """Return whether half of a surrogate pair is in `text`."""
    if text.isascii():
        return False
    return any(SURROGATE.search(text, at, at + _PIECE) for at in range(0, len(text), _PIECE))


def utf8(text: str) -> bytes:
    """`text` in UTF-8, with U+FFFD for lone surrogates, which has as many units as one in each encoding."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return SURROGATE.sub("\ufffd", text).encode("utf-8")


def whole(text: str) -> str:
    """`text` as its bytes say it: with U+FFFD for lone surrogates."""
    return utf8(text).decode("utf-8")


@dataclass(frozen=True, slots=True)
class Document:
    """One buffer at one version: UTF-8 bytes as they are (byte order mark and line ends included).

    `line_starts`: byte offsets of the lines, which end at LF, CRLF or CR only. `history`: older texts of the same
    buffer. `macros`: names that the parser reads as blanks. `ends`: what would end this text, if it is code in a file
    of another language. `state`: what tells this text from a later one of the same
    uri: a number that no other text of an open document has, or the file that was read.
    """

    uri: str
    language: str
    version: int
    data: bytes
    history: History | None = field(default=None, repr=False, compare=False)
    macros: tuple[str, ...] = ()
    ends: tuple[re.Pattern[bytes], ...] = field(default=(), repr=False, compare=False)
    state: "int | OnDisk | None" = field(default=None, repr=False, compare=False)
    line_starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = [0]
        for piece in pieces(self.data, b"\n"):
            # Of bytes, unlike of text, only LF, CRLF and CR end lines.
            ends = accumulate(map(len, piece.splitlines(keepends=True)), initial=starts.pop())
            starts.extend(ends)
        if len(starts) > 1 and self.data[-1] not in b"\r\n":
            starts.pop()
        object.__setattr__(self, "line_starts", tuple(starts))

    @property
    def text(self) -> str:
        """The whole buffer as text."""
        return self.data.decode("utf-8")

    def offset(self, line: int, column: int, encoding: Encoding = "utf-8") -> int:
        """The byte offset of a 0-based position; `column` counts units of `encoding`.

        A column past the end of its line is the end of the line, and one inside a character is its beginning.

        Raises:
            DocumentError: the file has no such line, or the column is negative.
        """
        count = len(self.line_starts)
        if not 0 <= line < count:
            raise DocumentError(
                f"line {line + 1} is outside {self.uri}, which has {count}; give a line from 1 to {count}"
            )
        if column < 0:
            raise DocumentError(f"column {column + 1} is before the line; columns count from 1")
        start, content = self.line_starts[line], self._content(line)
        if encoding == "utf-8" or content.isascii():
            return start + character_start(content, min(column, len(content)))
        codec, size = UNITS[encoding]
        units = content.decode("utf-8").encode(codec)[: column * size]
        return start + len(units.decode(codec, "ignore").encode("utf-8"))

    def position(self, offset: int, encoding: Encoding = "utf-8") -> tuple[int, int]:
        """The 0-based (line, column in `encoding`'s units) of a byte offset; DocumentError if outside the file."""
        if not 0 <= offset <= len(self.data):
            raise DocumentError(f"byte {offset} is outside {self.uri}, which has {len(self.data)} bytes")
        line = self.line_at(offset)
        start, content = self.line_starts[line], self._content(line)
        content = content[: character_start(content, min(offset - start, len(content)))]
        if encoding == "utf-8" or content.isascii():
            return line, len(content)
        codec, size = UNITS[encoding]
        return line, len(content.decode("utf-8").encode(codec)) // size

    def line_at(self, offset: int) -> int:
        """The number of the line that holds the byte at `offset`, counted from 0."""
        return max(bisect_right(self.line_starts, offset) - 1, 0)

    def line_end(self, line: int) -> int:
        """The offset where the text of `line` ends, before its line end."""
        if line + 1 == len(self.line_starts):
            return len(self.data)
        end = self.line_starts[line + 1]
        return end - (2 if self.data.endswith(b"\r\n", self.line_starts[line], end) else 1)

    def _content(self, line: int) -> bytes:
        """The text of `line` without its line end."""
        return self.data[self.line_starts[line] : self.line_end(line)]


def read_document(path: Path, macros: tuple[str, ...] = ()) -> Document:
    """The file at `path` as a Document of version 0 with `macros`, its language chosen by its name.

    Raises:
        DocumentError: the file is missing, no file, too large, not readable, not UTF-8, or of an unknown language.
    """
    try:
        data = _regular_bytes(path)  # first, so that a directory is called one
        state = OnDisk(os.path.realpath(path), data)
        language = language_of(path)
        data.decode("utf-8")
    except UnknownLanguage as error:
        raise DocumentError(str(error)) from error
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{path} is not UTF-8 (byte {error.start}); convert it to UTF-8 and save it"
        ) from error
    except OSError as error:
        raise DocumentError(why_unread(path, error)) from error
    except DocumentError:
        raise
    except ValueError as error:
        # Such as a NUL or half a character.
        raise DocumentError(f"no file can be called {str(path)!r}; check the path") from error
    return Document(path.absolute().as_uri(), language, 0, data, macros=macros, state=state)


def why_unread(path: Path, error: OSError) -> str:
    """Return why the file at `path` could not be read, as a sentence that says how to go on."""
    why = error.strerror or str(error)
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return f"there is no file {path}; check the path"
        case errno.EISDIR:
            return f"{path} is a directory; name a file in it"
        case errno.ELOOP:
            return f"{path} is a link, or in a folder behind one, that leads back to itself; name the file itself"
        case errno.EACCES | errno.EPERM:
            return f"{path} cannot be read ({why}); check its permissions"
        case _:
            return f"{path} cannot be read: {why}"


def _regular_bytes(path: Path) -> bytes:
    """The bytes of the file at `path`; DocumentError for a pipe, a device, or more than LARGEST bytes."""
    # A pipe without a writer would block the opening, and one with a writer the reading.
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise DocumentError(f"{path} is a pipe or a device; name a file")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DocumentError(f"{path} is larger than {LARGEST >> 20} MiB; nothing is filled in such files")
    return data
