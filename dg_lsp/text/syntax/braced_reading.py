"""The bracket matcher: which brackets of a broken text belong together, by kind and by the indentation of their lines.

Knows tokens, lines and the words of a language; knows no cursor, no grammar and no tree.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from dg_lsp.text.documents.lines import line_end, line_start, width
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.braced_opened import OpenBracket, doubt, follows_value, is_left
from dg_lsp.text.syntax.braced_tokens import Mark, marks

_TEXT = re.compile(rb"[^ \t\f]")
_WORD = re.compile(rb"[\w$\x80-\xff]+")
# A line that begins with one of these goes on with what is above it.
_JOINED = re.compile(rb"[.)\]},?:&|+\-*/=<>%^{]")
# A label may stand less deep than what it is in.
_LABEL = re.compile(rb"(?:case|default)\b|[\w$]+[ \t]*:(?![:=])")
# The brackets behind these hold semicolons.
_PARTED = re.compile(rb"\b(?:for(?:\s+await)?|try)\s*\Z")
_OPENERS = {b")": b"(", b"]": b"[", b"}": b"{"}


@dataclass(slots=True, eq=False)
class BracketMatcher:
    """What has been read of data[start:...]: the brackets still open, all there were, and the statement at the end.

    line: where that statement begins, -1 between two. last: the last token that is no plain text. end: what is read.
    """

    language: Language
    data: bytes
    end: int
    stack: list[OpenBracket] = field(default_factory=list)
    all: list[OpenBracket] = field(default_factory=list)
    line: int = -1
    last: Mark | None = None
    # The columns of the present line and of the statement's first; whether nothing of the line was read yet.
    columns: int = 0
    base: int = 0
    fresh: bool = True
    # A brace has just been closed: whether the statement ends there is told by what follows.
    shut: bool = False


@lru_cache(maxsize=8)
def read(language: Language, data: bytes, start: int, stop: int) -> BracketMatcher:
    """The brackets of data[start:stop], from a place that is in no string.

    The last answers are kept, for one pick asks the same several times; nobody changes them.
    """
    reading = BracketMatcher(language, data, start)
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
    if found := _TEXT.search(data, reading.end, stop):
        _text(reading, found.start())
    return reading


def _text(reading: BracketMatcher, at: int) -> None:
    """Plain text or a string begins at `at`."""
    if reading.fresh:
        _begin_line(reading, at)
    elif reading.shut:
        word = _WORD.match(reading.data, at)
        if word is not None and word[0] not in reading.language.words.blocks:
            reading.line = -1
    elif reading.stack and reading.stack[-1].inner < 0:
        # What begins on the line of its bracket goes on deeper than that.
        reading.stack[-1].inner = reading.columns + 1
    reading.shut = False
    if reading.line < 0:
        reading.line, reading.base = at, reading.columns


def _begin_line(reading: BracketMatcher, at: int) -> None:
    """`at` is the first text of its line: it may show that brackets above have lost their mates."""
    data, stack, words = reading.data, reading.stack, reading.language.words
    reading.fresh = False
    columns = reading.columns = width(data[line_start(data, at) : at])
    if stack and stack[-1].inner < 0:
        stack[-1].inner = columns
    joined = _JOINED.match(data, at) is not None
    if data[at : at + 1] == b",":
        doubt(stack, at, columns)
    if joined or _LABEL.match(data, at):
        if not joined:
            reading.line = -1
        return
    # 1. Round brackets do not go on over the beginning of a statement.
    word = _WORD.match(data, at)
    starts, value = word is not None and word[0] in words.starts, word is not None and follows_value(data, at)
    # Where nothing asks for more, a word that only begins a statement does so at any depth.
    while stack and stack[-1].bracket != b"{":
        bare = not data[stack[-1].at + 1 : at].strip()
        if not (starts and value) and columns >= stack[-1].width + (starts or value or bare):
            break
        _drop(reading, at)
        reading.line = -1
    # 2. Nor does a brace over a line that is less deep than what is in it.
    doubt(stack, at, columns)
    # 3. A statement ends where a line is no deeper than its first, and a header where what it holds may begin.
    if not stack or stack[-1].bracket == b"{":
        first = _WORD.match(data, reading.line) if reading.line >= 0 else None
        headed = first is not None and first[0] in words.blocks and follows_value(data, at)
        headed = headed or (reading.line >= 0 and _LABEL.match(data, reading.line) is not None)
        reading.line = -1 if columns <= reading.base or reading.shut or headed else reading.line


def _open(reading: BracketMatcher, at: int) -> None:
    fresh = reading.fresh
    if fresh:
        _begin_line(reading, at)
    if reading.line < 0:
        reading.line, reading.base = at, reading.columns
    reading.shut = False
    bracket = reading.data[at : at + 1]
    opened = OpenBracket(
        at, bracket, reading.columns, min(reading.columns, reading.base), reading.line, reading.base
    )
    reading.stack.append(opened)
    reading.all.append(opened)
    if bracket == b"{":
        reading.line = -1


def _close(reading: BracketMatcher, at: int) -> None:
    """Close the nearest bracket that fits; what fits none closes nothing."""
    fresh = reading.fresh
    if fresh:
        _begin_line(reading, at)
    found = _fitting(reading, at, fresh=fresh)
    if found < 0:
        return
    while len(reading.stack) > found + 1:
        _drop(reading, at)
    opened = reading.stack.pop()
    opened.closed = opened.stop = at
    reading.line, reading.base, reading.shut = opened.line, opened.base, opened.bracket == b"{"


def _fitting(reading: BracketMatcher, at: int, *, fresh: bool) -> int:
    """The place in the stack of the bracket that is closed at `at`, -1 without one.

    A brace at the beginning of a line closes one as deep as that line, where there is one. A round bracket closes
    none beyond a brace, unless its line is no deeper than that one's.
    """
    data, stack, columns = reading.data, reading.stack, reading.columns
    opener = _OPENERS[data[at : at + 1]]
    fitting = [n for n, opened in enumerate(stack) if opened.bracket == opener]
    if not fitting:
        return -1
    if opener != b"{":
        braces = [n for n, opened in enumerate(stack) if opened.bracket == b"{"]
        inside = not braces or fitting[-1] > braces[-1]
        return fitting[-1] if inside or (fresh and stack[fitting[-1]].width >= columns) else -1
    # Only the innermost may be closed as deep as its own line; a header's brace is closed as deep as the header.
    near = [n for n in fitting[-1:] if columns == stack[n].columns]
    level = (near or [n for n in fitting if columns == stack[n].width]) if fresh else []
    sure = [n for n in fitting if not stack[n].doubtful]
    found = (level or sure or fitting)[-1]
    return -1 if not level and is_left(data, at, columns, stack[found].columns) else found


def _drop(reading: BracketMatcher, at: int) -> None:
    """Take the innermost bracket away, which nothing has closed before `at`."""
    opened = reading.stack.pop()
    opened.stop = opened.stop if opened.doubtful else at


def _end(reading: BracketMatcher, at: int) -> None:
    """A semicolon ends a statement; round brackets that are still open have then lost their mates."""
    data, stack = reading.data, reading.stack
    if reading.fresh:
        _begin_line(reading, at)
    reading.shut = False
    behind = data[at + 1 : line_end(data, at)].lstrip()
    if stack and stack[-1].bracket != b"{":
        header = _PARTED.search(data, max(stack[-1].at - 20, 0), stack[-1].at)
        if header or (behind and not behind.startswith((b"//", b"/*"))):
            return
        while stack and stack[-1].bracket != b"{":
            _drop(reading, at)
    # Go's headers hold statements of their own.
    word = _WORD.match(data, reading.line) if behind and reading.line >= 0 else None
    if word is None or word[0] not in reading.language.words.blocks:
        reading.line = -1
