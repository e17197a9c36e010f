"""The bracket matcher: pairs of brackets in a broken text, and those open at an offset, by kind and indentation."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

from dg_lsp.budget import check
from dg_lsp.source import lexer
from dg_lsp.source.items import LONG, focus, top_level_item
from dg_lsp.source.jsx import Mark
from dg_lsp.source.language import Language

# A template that holds code counts as a bracket of that code.
# That of three quotes has a byte of its own.
PAIRS = {b"(": b")", b"[": b"]", b"{": b"}", b"`": b"`", b'"': b'"', b"'": b"'", b"\1": b'"""', b"\2": b"'''"}
_TRIPLE = {b'"""': b"\1", b"'''": b"\2"}
_LINE = re.compile(rb"[\r\n]+([ \t\f]*)(?=[^\s])")
_TEXT = re.compile(rb"[^ \t\f]")
_WORD = re.compile(rb"[\w$\x80-\xff]+")
_LAST_WORD = re.compile(rb"(\w+)[ \t]*\Z")
# A line that begins with one of these continues what is above it.
_JOINED = re.compile(rb"[.)\]},?:&|+\-*/=<>%^{]")
# The brackets after these hold semicolons.
_PARTED = re.compile(rb"\b(?:for(?:\s+await)?|try)\s*\Z")
_OPENERS = {b")": b"(", b"]": b"[", b"}": b"{"}
# The text between two lines of one statement.
_JOINING = re.compile(rb"[=+\-*/%&|?<>.(\[][ \t]*\Z")
# A line that may be as deep as the header of its block.
_OUTSET = re.compile(rb"(?:case|default|else|catch|finally)\b|[\w$]+[ \t]*:(?![:=])")
_CLOSERS = re.compile(rb"[)\]} \t]*")


@dataclass(frozen=True, slots=True)
class State:
    """The brackets that are open at an offset.

    brackets: those that nothing has closed, outermost first; opened: their offsets. string: the quotes of an open
    string, else empty. comment: the offset is in one. begins: where the open string or comment begins, else -1. line:
    where the logical line begins. start: where reading began. text: the offset is in text without quotes, between JSX
    tags or in a regular expression, which begins at `begins`.
    """

    brackets: bytes
    opened: tuple[int, ...]
    string: bytes
    comment: bool
    begins: int
    line: int
    start: int = 0
    text: bool = False

    def closing(self, places: Iterable[int]) -> bytes:
        """Return the text that closes the open brackets at `places`, offsets of `opened` in any order: `"` for `$"`."""
        wanted = set(places)
        pairs = zip(self.brackets, self.opened, strict=True)
        return closers(bytes(bracket for bracket, at in pairs if at in wanted))


@dataclass(slots=True, eq=False)
class OpenBracket:
    """A bracket: its offset, the columns its line is indented by, and where its statement begins.

    base: the columns of its statement's first line; width: the lesser of the two. inner: those of the first line in it,
    -1 before there is one. closed: the offset of its closer, -1 without one. stop: the end of its text then.
    """

    at: int
    bracket: bytes
    columns: int
    width: int
    line: int
    base: int
    inner: int = -1
    closed: int = -1
    stop: int = -1


@dataclass(slots=True, eq=False)
class BracketMatcher:
    """An incremental reading of data[start:...]: open brackets, all brackets, and the statement at the end.

    line: where that statement begins, -1 between two. last: the last token that is no plain text. end: of the text
    read. holder: the bracket that holds statements; empty where indentation does. columns, base: those of the present
    line, and of the statement's first. fresh: nothing of the line was read yet; is_first: the bracket that is read
    begins it. closed: a brace was just closed: the text that follows shows if the statement ends there.
    """

    language: Language
    data: bytes
    end: int
    holder: bytes
    stack: list[OpenBracket] = field(default_factory=list)
    all: list[OpenBracket] = field(default_factory=list)
    line: int = -1
    last: Mark | None = None
    columns: int = 0
    base: int = 0
    fresh: bool = True
    is_first: bool = False
    closed: bool = False

    @property
    def is_between_statements(self) -> bool:
        """Return whether the next token may begin a statement, since no bracket is open that holds none."""
        return not self.stack or self.stack[-1].bracket == self.holder

    def read_to(self, stop: int) -> None:
        """Read the tokens up to `stop`."""
        data = self.data
        steps = {"open": self._open, "close": self._close, "end": self._end}
        for mark in chain(lexer.marks(self.language, data, self.end, stop), [("stop", stop, stop)]):
            kind, first, end = mark
            if found := _TEXT.search(data, self.end, first):
                self._begin_text(found.start())
            if kind == "stop":
                break
            self.last, self.end = mark, end
            if kind == "newline":
                check()
                self.fresh = True
            elif kind in ("string", "open_string", "open_text"):
                self._begin_text(first)
            elif kind in steps:
                self.is_first = self.fresh
                if self.fresh:
                    self._begin_line(first)
                steps[kind](first)

    def _begin_text(self, at: int) -> None:
        """Plain text or a string begins at `at`."""
        if self.fresh:
            self._begin_line(at)
        elif self.closed:
            word = _WORD.match(self.data, at)
            if word is not None and word[0] not in self.language.words.blocks:
                self.line = -1
        elif self.stack and self.stack[-1].inner < 0:
            # The text on the line of its bracket continues deeper than that.
            self.stack[-1].inner = self.columns + 1
        self._begin_statement(at)

    def _begin_statement(self, at: int) -> None:
        """A statement begins at `at`, unless one has begun already."""
        self.closed = False
        if self.line < 0:
            self.line, self.base = at, self.columns

    def _begin_line(self, at: int) -> None:
        """`at` is the first text of its line: it may show that brackets above have lost their mates."""
        stack = self.stack
        self.fresh, self.columns = False, lexer.width(self.data[lexer.line_start(self.data, at) : at])
        if stack and stack[-1].inner < 0:
            stack[-1].inner = self.columns
        if self.holder:
            self._begin_braced_line(at)
            return
        # A line end ends a statement but inside brackets, and those do not go on over the beginning of one.
        if stack and lexer.begins_statement(self.language, self.data, at, self.base):
            stack.clear()
        self.line = self.line if stack else -1

    def _begin_braced_line(self, at: int) -> None:
        """The same where braces hold statements."""
        data, stack, columns = self.data, self.stack, self.columns
        if _JOINED.match(data, at):
            return
        # A label may be less deep than the block that it is in.
        if self.language.words.labels.match(data, at):
            self.line = -1
            return
        # Brackets go on only over deeper lines, and braces over lines that are as deep as the text in them.
        while stack and columns <= stack[-1].width:
            if self.is_between_statements and stack[-1].inner <= stack[-1].width:
                break
            self._drop(at)
            self.line = -1
        # A statement ends where a line is no deeper than its first, and a header where its body may begin.
        if self.line >= 0 and self.is_between_statements:
            headed = self._is_header() or self.language.words.labels.match(data, self.line)
            if columns <= self.base or self.closed or headed:
                self.line = -1

    def _is_header(self) -> bool:
        """Return whether the statement at the end begins with the word of a block."""
        word = _WORD.match(self.data, self.line) if self.line >= 0 else None
        return word is not None and word[0] in self.language.words.blocks

    def _open(self, at: int) -> None:
        self._begin_statement(at)
        bracket, columns, base = self.data[at : at + 1], self.columns, self.base
        opened = OpenBracket(at, bracket, columns, min(columns, base), self.line, base)
        self.stack.append(opened)
        self.all.append(opened)
        if bracket == self.holder:
            self.line = -1

    def _close(self, at: int) -> None:
        """Close the nearest bracket that fits; one that fits none closes nothing."""
        found = self._fitting(at)
        if found < 0:
            return
        while len(self.stack) > found + 1:
            self._drop(at)
        opened = self.stack.pop()
        opened.closed = opened.stop = at
        self.line, self.base, self.closed = opened.line, opened.base, opened.bracket == self.holder

    def _fitting(self, at: int) -> int:
        """The place in the stack of the bracket that is closed at `at`, -1 without one.

        A brace at the beginning of a line closes one as deep as that line, where there is one. A round bracket closes
        none beyond a brace, unless its line is no deeper than that one's.
        """
        data, stack, columns = self.data, self.stack, self.columns
        opener = _OPENERS[data[at : at + 1]]
        fitting = [n for n, opened in enumerate(stack) if opened.bracket == opener]
        if not fitting:
            return -1
        if opener != self.holder:
            braces = [n for n, opened in enumerate(stack) if opened.bracket == self.holder]
            inside = not braces or fitting[-1] > braces[-1]
            return fitting[-1] if inside or (self.is_first and stack[fitting[-1]].width >= columns) else -1
        # Only the innermost may be closed as deep as its own line; a header's brace is closed as deep as the header.
        near = [n for n in fitting[-1:] if columns == stack[n].columns]
        level = (near or [n for n in fitting if columns == stack[n].width]) if self.is_first else []
        # One that is deeper than what it would close has lost its mate.
        lost = self.is_first and not level and columns > stack[fitting[-1]].width
        return -1 if lost else (level or fitting)[-1]

    def _drop(self, at: int) -> None:
        """Take the innermost bracket away, which nothing has closed before `at`."""
        opened = self.stack.pop()
        opened.stop = at

    def _end(self, at: int) -> None:
        """A semicolon ends a statement; round brackets that are still open have then lost their mates."""
        data, stack = self.data, self.stack
        self.closed = False
        after = data[at + 1 : lexer.line_end(data, at)].lstrip()
        if not self.is_between_statements:
            header = _PARTED.search(data, max(stack[-1].at - 20, 0), stack[-1].at)
            parted = header or self.language.words.parted.fullmatch(data, stack[-1].at, at)
            if parted or (after and not after.startswith((b"//", b"/*"))):
                return
            while not self.is_between_statements:
                self._drop(at)
        # Go's headers hold statements of their own.
        if not (after and self._is_header()):
            self.line = -1


def closers(brackets: bytes) -> bytes:
    """Return the closers of the open `brackets`, innermost first."""
    return b"".join(PAIRS[brackets[i : i + 1]] for i in reversed(range(len(brackets))))


def state_at(language: Language, data: bytes, offset: int, start: int | None = None) -> State:
    """Return the state at `offset`, read from `start`, in no string, or the top-level item; of a long one in part."""
    start = top_level_item(language, data, offset)[0] if start is None else start
    if offset - start <= LONG:
        return state_from(language, data, offset, start)
    stop = max(top_level_item(language, data, offset)[1], offset)
    found = _read(language, focus(language, data[start:stop], offset - start), offset - start, 0)
    opened = tuple(at + start for at in found.opened)
    begins = found.begins + start if found.begins >= 0 else -1
    return replace(found, opened=opened, begins=begins, line=found.line + start, start=start)


def state_from(language: Language, data: bytes, offset: int, start: int) -> State:
    """Return the state at `offset`, read from `start`, which is in no string, without a look at other lines."""
    return replace(_read(language, data, offset, start), start=start)


def _read(language: Language, data: bytes, offset: int, start: int) -> State:
    if (begins := lexer.character_at(language, data, start, offset)) >= 0:
        before = _read(language, data, begins, start)
        if not (before.string or before.comment or before.text):
            return replace(before, string=data[begins : begins + 1], begins=begins)
    reading = read(language, data, start, offset)
    at, brackets = tuple(o.at for o in reading.stack), b"".join(o.bracket for o in reading.stack)
    line = _line(reading, offset)
    kind, first, end = reading.last if reading.last and reading.last[2] == offset else ("", -1, -1)
    if kind == "open_text":
        return State(brackets, at, b"", False, first, line, text=True)
    if kind == "open_string":
        quotes = lexer.quotes_at(language, data, first)
        holes = lexer.holes_at(language, data, first, offset) if quotes.hole else ()
        if not holes:
            return State(brackets, at, quotes.close, False, first, line)
        inner = _read(language, data, offset, holes[-1])
        inside = (*at, first, *(hole - 1 for hole in holes), *inner.opened)
        brackets += _TRIPLE.get(quotes.close, quotes.close[:1]) + b"{" * len(holes) + inner.brackets
        return replace(inner, brackets=brackets, opened=inside)
    if kind == "directive":
        inner = _read(language, data, offset, first + len(language.words.directive))
        brackets, at = brackets + inner.brackets, (*at, *inner.opened)
        return replace(inner, brackets=brackets, opened=at)
    ended = (
        lexer.block_end(language, data[first:end]) and lexer.comment_end(language, data, first, end) == end
    )
    comment = kind == "comment" and not ended
    return State(brackets, at, b"", comment, first if comment else -1, line)


def _line(reading: BracketMatcher, offset: int) -> int:
    """Return where the statement at the end of `reading` begins; on a blank line mostly there."""
    if reading.fresh and reading.is_between_statements:
        here = lexer.line_start(reading.data, offset)
        above = reading.data[max(here - 80, 0) : here].rstrip()
        if not reading.holder or reading.line < 0 or not _JOINING.search(above):
            return here
    if reading.line >= 0:
        return reading.line
    return max(min(reading.end, offset), lexer.line_start(reading.data, offset))


def next_line(language: Language, data: bytes, eol: int) -> tuple[int, int]:
    """Return the depth of the next line with code below `eol`, and where its text begins."""
    at, directive = eol, language.words.directive
    while found := _LINE.search(data, at):
        check()
        at = found.end()
        line = data[at : lexer.line_end(data, at)]
        if line.startswith((language.comment, b"/*", b"* ", b"*/")) or line == b"*":
            continue
        if not (directive and line.startswith(directive)):
            return lexer.indentation(data, at), at
    return -1, len(data)


def lacks_end(language: Language, data: bytes, offset: int, state: State) -> bool:
    """Return whether the triple-quoted string that is open at `offset` has lost its end (Python).

    It has where a line like the head of a def or class is before the next such quotes; after indented quotes, a head
    less deep than they are: a docstring may hold an example.
    """
    if language.style != "indent" or len(state.string) < 3:
        return False
    end = data.find(state.string, offset)
    head = re.compile(rb"(?<![^\r\n])[ \t]*(?:%b)" % language.words.members.pattern)
    heads = head.finditer(data, offset, end if end >= 0 else len(data))
    limit = lexer.indentation(data, state.begins) or math.inf
    return any(lexer.indentation(data, found.start()) < limit for found in heads)


def dangles(language: Language, data: bytes, offset: int, state: State) -> bool:
    """Return whether a parser takes the operand of the operator at `offset` from the next line: `x = |` in Python."""
    eol = lexer.line_end(data, offset)
    before = data[max(state.line, lexer.line_start(data, offset)) : offset].rstrip()
    if data[offset:eol].strip() or not before or before.endswith((b":", b";", b"{", b"}", b"*/")):
        return False
    inside = state.string or state.comment or state.brackets[-1:] not in (b"", b"{")
    deeper = next_line(language, data, eol)[0] > lexer.indentation(data, offset)
    return not inside and not deeper and lexer.wants_operand(language, data, offset)


@dataclass(frozen=True, slots=True)
class Unpaired:
    """The offsets of brackets of a text without a mate in it; outer: how many before it are left open after it."""

    closers: tuple[int, ...]
    openers: tuple[int, ...]
    outer: int


def unpaired(language: Language, text: bytes, outer: bytes = b"") -> Unpaired:
    """Return the brackets of `text` without a mate, where the brackets `outer` are open before it; in `(]` both are."""
    stack = [(-1, outer[at : at + 1]) for at in range(len(outer))]
    closers = list[int]()
    for token in lexer.tokens(language, text, 0, len(text)):
        bracket = text[token.start : token.end]
        if token.kind == "open":
            stack.append((token.start, bracket))
        elif token.kind == "close" and stack and PAIRS[stack[-1][1]] == bracket:
            stack.pop()
        elif token.kind == "close":
            closers.append(token.start)
    openers = tuple(at for at, _ in stack if at >= 0)
    return Unpaired(tuple(closers), openers, len(stack) - len(openers))


def template_at(data: bytes, opened: Sequence[int]) -> int:
    """Return the first of the `opened` brackets that is a template's quote; the end of `data` if none is."""
    return next((at for at in opened if data[at] not in b"([{"), len(data))


def depths(data: bytes, places: Iterable[int], opened: Sequence[int]) -> list[int]:
    """Return the indentation of the line of each of `places`; in a template of `opened` at least that of its line."""
    template = template_at(data, opened)
    least = lexer.indentation(data, template) if template < len(data) else 0
    return [max(lexer.indentation(data, at), least if template < at else 0) for at in places]


def unclosed(
    language: Language, data: bytes, opened: Sequence[tuple[int, int]], line: tuple[int, int]
) -> tuple[int, ...]:
    """The brackets, of `opened`, that the next line with text shows to be closed before it.

    `line` is its depth and the place of its text. Where it closes brackets itself, those as deep as it are not missing;
    nor are those within them that it closes first, as `)}` closes `a={` and below it the deeper `f(`. A brace at its
    beginning shows that all of a header is closed, however deep it is, as below `if (f(a`.
    """
    columns, below = line
    headed = [n for n, (at, _) in enumerate(opened) if is_of_header(language, data, at)]
    if headed and data.startswith(b"{", below):
        return tuple(at for at, _ in opened[: headed[0] + 1])
    run = _CLOSERS.match(data, below)
    shut = [bytes([c]) for c in run[0] if c in b")]}"] if run else []
    inner = opened[: len(shut)]
    if inner and shut == [PAIRS.get(data[at : at + 1]) for at, _ in inner] and inner[-1][1] <= columns:
        return ()
    found: list[int] = []
    for at, depth in opened:
        if depth == columns and shut and shut[0] == PAIRS.get(data[at : at + 1]):
            break
        outset = data[at : at + 1] == b"{" and _OUTSET.match(data, below)
        if depth < columns or (depth == columns and outset):
            break
        found.append(at)
    return tuple(found)


def is_left_open(language: Language, data: bytes, offset: int, state: State, first: int) -> bool:
    """Return whether a bracket from `first` on that is open at `offset` is closed neither on its line nor below."""
    eol = lexer.line_end(data, offset)
    own = [(at, n) for n, at in enumerate(state.opened) if at >= first]
    rest = unpaired(language, data[offset:eol], bytes(state.brackets[n] for _, n in own))
    # What closes brackets of lines above leaves those within them open.
    if rest.closers and rest.outer:
        return True
    left = [at for at, _ in reversed(own[: rest.outer])]
    opened = list(zip(left, depths(data, left, state.opened), strict=True))
    return bool(opened and unclosed(language, data, opened, next_line(language, data, eol)))


def is_of_header(language: Language, data: bytes, at: int) -> bool:
    """Return whether the bracket at `at` is that of a header, as in `while (`."""
    word = _LAST_WORD.search(data, max(at - 20, 0), at)
    return data.startswith(b"(", at) and word is not None and word[1] in language.words.blocks


@lru_cache(maxsize=8)
def read(language: Language, data: bytes, start: int, stop: int) -> BracketMatcher:
    """The brackets of data[start:stop], from a place that is in no string. The last answers are kept, unchanged."""
    reading = BracketMatcher(language, data, start, b"{" if language.style == "brace" else b"")
    reading.read_to(stop)
    return reading
