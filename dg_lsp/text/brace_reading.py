"""Reading: which brackets of a broken text belong together, by their kinds and by the indentation of their lines.

Knows tokens, lines and the words of a language; knows no cursor, no grammar and no tree.
"""

import re
from dataclasses import dataclass, field

from dg_lsp.text.brace_tokens import Mark, marks
from dg_lsp.text.language import Language
from dg_lsp.text.lines import line_end, line_start, width

_TEXT = re.compile(rb"[^ \t\f]")
_LINE = re.compile(rb"[\r\n][ \t]*([^\s])")
_VALUE = re.compile(rb"[\w$\x80-\xff)\]}\"'`]\Z")
_WORD = re.compile(rb"[\w$\x80-\xff]+")
# A line that begins with one of these goes on with what is above it.
_JOINED = re.compile(rb"[.)\]},?:&|+\-*/=<>%^{]")
# A label may stand less deep than what it is in.
_LABEL = re.compile(rb"(?:case|default)\b|[\w$]+[ \t]*:(?![:=])")
_OPENERS = {b")": b"(", b"]": b"[", b"}": b"{"}


@dataclass(slots=True, eq=False)
class Opened:
    """A bracket: its offset, the columns its line is indented by, and where its statement begins.

    base: the columns of its statement's first line; width: the lesser of the two. inner: the columns of the first line
    in it, -1 before there is one. doubtful: a line below says that it was closed. closed: where what closes it
    stands, -1 where nothing does. stop: where its text ends then.
    """

    at: int
    bracket: bytes
    columns: int
    width: int
    line: int
    base: int
    inner: int = -1
    doubtful: bool = False
    closed: int = -1
    stop: int = -1


@dataclass(slots=True, eq=False)
class Reading:
    """What has been read of data[start:...]: the brackets still open, all there were, and the statement at the end.

    line: where that statement begins, -1 between two. last: the last token that is no plain text. end: what is read.
    strays: what closes nothing. quotes: those that nothing on their line closes.
    """

    language: Language
    data: bytes
    end: int
    stack: list[Opened] = field(default_factory=list)
    all: list[Opened] = field(default_factory=list)
    strays: list[int] = field(default_factory=list)
    quotes: list[tuple[int, int]] = field(default_factory=list)
    line: int = -1
    last: Mark | None = None
    # The columns of the present line and of the statement's first; whether nothing of the line was read yet.
    columns: int = 0
    base: int = 0
    fresh: bool = True
    # A brace has just been closed: whether the statement ends there is told by what follows.
    shut: bool = False


def read(language: Language, data: bytes, start: int, stop: int) -> Reading:
    """The brackets of data[start:stop], from a place that is in no string."""
    reading = Reading(language, data, start)
    for mark in marks(language, data, start, stop):
        kind, first, end = mark
        if found := _TEXT.search(data, reading.end, first):
            _text(reading, found.start())
        reading.last, reading.end = mark, end
        if kind == "newline":
            reading.fresh = True
        elif kind == "open":
            _open(reading, first)
        elif kind == "close":
            _close(reading, first)
        elif kind == "end":
            _end(reading, first)
        elif kind in ("string", "open_string"):
            _text(reading, first)
            if kind == "open_string":
                reading.quotes.append((first, reading.line))
    if found := _TEXT.search(data, reading.end, stop):
        _text(reading, found.start())
    return reading


def _text(reading: Reading, at: int) -> None:
    """Plain text or a string begins at `at`."""
    if reading.fresh:
        _begin_line(reading, at)
    elif reading.shut:
        word = _WORD.match(reading.data, at)
        if word is not None and word[0] not in reading.language.words.blocks:
            reading.line = -1
    reading.shut = False
    if reading.line < 0:
        reading.line, reading.base = at, reading.columns


def _begin_line(reading: Reading, at: int) -> None:
    """`at` is the first text of its line: it may show that brackets above have lost their mates."""
    data, stack, words = reading.data, reading.stack, reading.language.words
    reading.fresh = False
    columns = reading.columns = width(data[line_start(data, at) : at])
    if stack and stack[-1].inner < 0:
        stack[-1].inner = columns
    joined = _JOINED.match(data, at) is not None
    if data[at : at + 1] == b",":
        _doubt(stack, at, columns)
    if joined or _LABEL.match(data, at):
        if not joined:
            reading.line = -1
        return
    # 1. Round brackets do not go on over the beginning of a statement.
    word = _WORD.match(data, at)
    starts, value = word is not None and word[0] in words.starts, word is not None and _is_value(data, at)
    # Where nothing asks for more, a word that only begins a statement does so at any depth.
    while stack and stack[-1].bracket != b"{":
        if not (starts and value) and columns >= stack[-1].width + (starts or value):
            break
        _drop(reading, at)
        reading.line = -1
    # 2. Nor does a brace over a line that is less deep than what is in it.
    _doubt(stack, at, columns)
    # 3. A statement ends where a line is no deeper than its first, and a header where what it holds may begin.
    if not stack or stack[-1].bracket == b"{":
        first = _WORD.match(data, reading.line) if reading.line >= 0 else None
        headed = first is not None and first[0] in words.blocks and _is_value(data, at)
        headed = headed or (reading.line >= 0 and _LABEL.match(data, reading.line) is not None)
        reading.line = -1 if columns <= reading.base or reading.shut or headed else reading.line


def _doubt(stack: list[Opened], at: int, columns: int) -> None:
    """Braces that the line at `at` shows to be closed above it are doubtful, unless a later line takes that back."""
    for opened in reversed(stack):
        if opened.bracket == b"{" and not opened.doubtful and opened.inner > opened.width >= columns:
            opened.doubtful, opened.stop = True, at
        elif opened.bracket == b"{":
            if opened.doubtful and columns == opened.inner:
                opened.doubtful = False
            break


def _is_value(data: bytes, at: int) -> bool:
    """Whether the line above the one at `at` ends with a value, so that nothing asks for more."""
    start = line_start(data, at)
    above = data[line_start(data, start - 1) : start].rstrip() if start else b""
    return _VALUE.search(above) is not None and b"//" not in above


def _open(reading: Reading, at: int) -> None:
    fresh = reading.fresh
    if fresh:
        _begin_line(reading, at)
    if reading.line < 0:
        reading.line, reading.base = at, reading.columns
    reading.shut = False
    bracket = reading.data[at : at + 1]
    opened = Opened(
        at, bracket, reading.columns, min(reading.columns, reading.base), reading.line, reading.base
    )
    reading.stack.append(opened)
    reading.all.append(opened)
    if bracket == b"{":
        reading.line = -1


def _close(reading: Reading, at: int) -> None:
    """What closes a bracket: of the nearest that fits; a brace at a line's beginning of one as deep as that line."""
    data, stack = reading.data, reading.stack
    fresh, opener = reading.fresh, _OPENERS[data[at : at + 1]]
    level: list[int] = []
    if fresh:
        _begin_line(reading, at)
    fitting = [n for n, opened in enumerate(stack) if opened.bracket == opener]
    if opener == b"{":
        level = [n for n in fitting if fresh and reading.columns in (stack[n].columns, stack[n].width)]
        sure = [n for n in fitting if not stack[n].doubtful]
        found = (level or sure or fitting or [-1])[-1]
    else:
        braces = [n for n, opened in enumerate(stack) if opened.bracket == b"{"]
        found = (fitting or [-1])[-1]
        inside = not braces or found > braces[-1]
        if not inside and not (fresh and stack[found].width >= reading.columns and found >= 0):
            found = -1
    left = (
        opener == b"{" and fitting and not level and _is_left(data, at, reading.columns, stack[found].columns)
    )
    if found < 0 or left:
        reading.strays.append(at)
        return
    while len(stack) > found + 1:
        _drop(reading, at)
    opened = stack.pop()
    opened.closed = opened.stop = at
    reading.line, reading.base, reading.shut = opened.line, opened.base, opener == b"{"


def _is_left(data: bytes, at: int, columns: int, outer: int) -> bool:
    """Whether the brace at `at`, deeper than the line that opened what it could close, has lost its mate.

    It has where a later line closes that: the next one that is no deeper than the one that opened it, at `outer`.
    """
    while columns > outer and (found := _LINE.search(data, at)):
        at = found.start(1)
        depth = width(data[line_start(data, at) : at])
        if depth <= outer:
            return depth == outer and data.startswith(b"}", at)
    return False


def _drop(reading: Reading, at: int) -> None:
    """Take the innermost bracket away, which nothing has closed before `at`."""
    opened = reading.stack.pop()
    opened.stop = opened.stop if opened.doubtful else at


def _end(reading: Reading, at: int) -> None:
    """A semicolon ends a statement; round brackets that are still open have then lost their mates."""
    data, stack = reading.data, reading.stack
    if reading.fresh:
        _begin_line(reading, at)
    reading.shut = False
    if stack and stack[-1].bracket != b"{":
        behind = data[at + 1 : line_end(data, at)].lstrip()
        begins = data[max(stack[-1].at - 20, 0) : stack[-1].at].rstrip()
        if re.search(rb"\bfor(?:\s+await)?\Z", begins) or (behind and not behind.startswith((b"//", b"/*"))):
            return
        while stack and stack[-1].bracket != b"{":
            _drop(reading, at)
    # Go's headers hold statements of their own.
    word = _WORD.match(data, reading.line) if reading.line >= 0 else None
    if (
        word is None
        or word[0] not in reading.language.words.blocks
        or not data[at + 1 : line_end(data, at)].strip()
    ):
        reading.line = -1
