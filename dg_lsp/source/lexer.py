"""The lexer: physical lines, tokens and logical lines of text that no parser can read yet, for all languages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from dg_lsp.budget import check
from dg_lsp.source import jsx
from dg_lsp.source.jsx import Mark
from dg_lsp.source.language import Language
from dg_lsp.source.words import Quotes

Span = tuple[int, int]

_KINDS = {"end": "other", "directive": "other", "joined": "space", "open_text": "open_string"}
_PLAIN = re.compile(
    rb"(?P<space>(?:[ \t\f]|\xef\xbb\xbf)+)|(?P<word>[A-Za-z_$\x80-\xff][\w$\x80-\xff]*)|(?P<other>\d[\w.]*|.)",
    re.DOTALL,
)
_SIMPLE = frozenset(("newline", "open", "close", "end", "joined", "tag"))
_REGEX = re.compile(rb"/(?![*/>])(?:[^/\\\[\r\n]|\\[^\r\n]|\[(?:[^\]\\\r\n]|\\[^\r\n])*\])+/[A-Za-z]*")
# One that is being typed, up to the end of what is read.
_REGEX_BEGUN = re.compile(
    rb"/(?![*/>])(?:[^/\\\[\r\n]|\\[^\r\n]|\[(?:[^\]\\\r\n]|\\[^\r\n])*(?:\]|\\?\Z))*\\?\Z"
)
_OFTEN = 256  # tokens between two looks at the budget
_WORD = re.compile(rb"[\w$\x80-\xff]+\Z")
_NAME = re.compile(rb"(?!\d)[\w$\x80-\xff]+")
# A number up to here, in which an apostrophe parts digits.
_NUMBER = re.compile(rb"(?<![\w$])\d[\w']*\Z")
# What a value ends with, so that a slash after it divides.
_VALUE = (b")", b"]", b'"', b"'", b"`", b"<")
# A header whose statement a regular expression may begin, such as `if (x)`.
_HEADER = re.compile(
    rb"(?<![\w$.])(?:if|while|for(?:\s+await)?|with)\s*\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)\Z"
)
# The words of a pattern itself: names of groups, flags and classes.
_WORDS = re.compile(rb"\?P<\w+>|\?i:|\\[A-Za-z]")
_LONGEST_CHARACTER = 16  # bytes of a character in quotes, such as an escaped one
_FAR = 20_000  # bytes in which open braces are counted
_DEEPEST = 60  # braces that may be open where code in a string is read


class Token(NamedTuple):
    """A token and its half-open span. `kind` is open_string for a string that nothing closes."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Line:
    """A physical line around an offset: its span, and its text before and after the offset."""

    start: int
    end: int
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """One statement's header, one simple statement or one comment line: [start, end) without indentation.

    `width`: its indentation in columns, tabs to the next multiple of 8; `comment`: it is only one.
    """

    start: int
    end: int
    width: int
    comment: bool


def tokens(language: Language, data: bytes, start: int, stop: int) -> list[Token]:
    """The tokens of data[start:stop], white space included, from a place that is in no string."""
    return list(_tokens(language, data, start, stop))


def first_token(language: Language, data: bytes, start: int) -> Token:
    """The token that begins at `start`, a place before the end of `data` and in no string."""
    return next(_tokens(language, data, start, len(data)))


def _tokens(language: Language, data: bytes, start: int, stop: int) -> Iterator[Token]:
    at = start
    for kind, first, end in marks(language, data, start, stop):
        yield from _plain(data, at, first)
        yield Token(_KINDS.get(kind, kind), first, end)
        at = end
    yield from _plain(data, at, stop)


def marks(language: Language, data: bytes, start: int, stop: int) -> Iterator[Mark]:
    """The tokens of data[start:stop] that are no plain text: strings, comments, brackets, semicolons, line ends.

    A string that nothing closes reaches to `stop`; one that ends with its line is only its quotes where the line ends
    before that: the brackets after them are mostly code. The text between JSX tags is a string, line by line; an
    open_text where it reaches to `stop`.
    """
    read = partial(_marks, language, data)
    yield from jsx.marks(read, data, start, stop) if language.jsx else read(start, stop)


def element_end(language: Language, data: bytes) -> int:
    """Return where the tag begins that closes the element in whose text `data` begins; its length where none does."""
    return jsx.element_end(partial(_marks, language, data), data)


def _marks(language: Language, data: bytes, start: int, stop: int) -> Iterator[Mark]:
    """The marks of code alone; with JSX also each `<` that may begin a tag."""
    pattern, at = _pattern(language), start
    # The last comments with only white space between.
    comments, count = (start, start), 0
    while at < stop:
        for match in pattern.finditer(data, at, stop):
            count += 1
            if not count % _OFTEN:
                check()
            kind = match.lastgroup or ""
            if kind in _SIMPLE:
                yield kind, match.start(), match.end()
                continue
            before = match.start()
            if kind == "slash" and not data[comments[1] : before].strip():
                before = comments[0]
            mark, end = _special(language, data, match, stop, before)
            if mark is not None:
                if mark[0] == "comment":
                    apart = data[comments[1] : mark[1]].strip()
                    comments = mark[1] if apart else comments[0], mark[2]
                yield mark
            if end != match.end():
                at = end
                break
        else:
            return


def logical_lines(language: Language, data: bytes, start: int, stop: int) -> Iterator[LogicalLine]:
    """The logical lines of data[start:stop], from a place that begins one."""
    depth, first, end, comment, fresh = 0, -1, start, True, True
    for token in _tokens(language, data, start, stop):
        if token.kind == "newline":
            fresh = True
            if depth == 0 and first >= 0:
                yield LogicalLine(first, end, indentation(data, first), comment)
                first, comment = -1, True
            continue
        if token.kind == "space":
            continue
        if fresh and depth and begins_statement(language, data, token.start, indentation(data, first)):
            yield LogicalLine(first, end, indentation(data, first), comment)
            depth, first, comment = 0, -1, True
        fresh, end = False, token.start + 1 if token.kind == "joined" else token.end
        first = token.start if first < 0 else first
        comment = comment and token.kind == "comment"
        depth = max(depth + (token.kind == "open") - (token.kind == "close"), 0)
    if first >= 0:
        yield LogicalLine(first, end, indentation(data, first), comment)


def holes_at(language: Language, data: bytes, start: int, stop: int) -> tuple[int, ...]:
    """Return where code begins that is open at `stop` in the string from `start` on: two in Python's `f"{a:{b}}"`."""
    quotes = quotes_at(language, data, start)
    return _close(language, data, quotes, (start + len(quotes.open), stop))[1]


def closed_string(quotes: Quotes) -> bytes:
    """The pattern of a string with what closes it; the code in its holes is text."""
    close = re.escape(quotes.close)
    if quotes.varies:
        return quotes.opening + b".*?" + re.sub(rb"\\\{(\w+)\\\}", rb"(?P=\1)", close)
    return _string(replace(quotes, hole=b"")) + close


def comment_patterns(language: Language) -> tuple[bytes, ...]:
    """The patterns of comments: up to the end of the line, and those between two marks."""
    blocks = (re.escape(a) + b".*?" + re.escape(b) for a, b in language.block_comments)
    return re.escape(language.comment) + rb"[^\r\n]*+", *blocks


def comment_end(language: Language, data: bytes, start: int, stop: int) -> int:
    """Return where the block comment that begins at `start` ends, -1 where nothing before `stop` ends it."""
    opening, closing = language.block_comments[0]
    at, depth = start + len(opening), 1
    marks_of = re.compile(re.escape(closing) + (b"|" + re.escape(opening) if language.nested else b""))
    while found := marks_of.search(data, at, stop):
        at = found.end()
        depth += -1 if found[0] == closing else 1
        if depth == 0:
            return at
    return -1


def block_end(language: Language, comment: bytes) -> bytes:
    """Return what ends the block comment at the beginning of `comment`; empty if there is none."""
    return next((end for begin, end in language.block_comments if comment.startswith(begin)), b"")


def is_closed_comment(language: Language, comment: bytes) -> bool:
    """Return whether `comment` is a block comment with its end: `/*/` has none."""
    pairs = language.block_comments
    return any(comment.startswith(begin) and comment.endswith(end, len(begin)) for begin, end in pairs)


def quotes_at(language: Language, data: bytes, start: int) -> Quotes:
    """The quotes that begin at `start`, with the very text that they begin and end with."""
    begun = ((quotes, re.compile(quotes.opening).match(data, start)) for quotes in language.strings)
    return next(quotes.begun_by(match) for quotes, match in begun if match)


def character_at(language: Language, data: bytes, start: int, offset: int) -> int:
    """Return where the quoted character around `offset` begins, if the code from `start` on holds one; else -1."""
    for quotes in language.strings:
        low = max(start, offset - _LONGEST_CHARACTER)
        at = data.rfind(quotes.open, low, offset) if quotes.character else -1
        while at >= 0:
            found = _character(quotes).match(data, at)
            if found and found.end() >= offset and not _NUMBER.search(data, max(at - 40, 0), at):
                return at
            at = data.rfind(quotes.open, low, at)
    return -1


def wants_operand(language: Language, data: bytes, at: int) -> bool:
    """Return whether the text before `at` on its line is no value, so that no operator can follow."""
    before = data[line_start(data, at) : at].rstrip(b" \t\f")
    word = _WORD.search(before)
    if word is not None:
        return word[0] in language.words.operators
    return not before.endswith((*_VALUE, b"}"))


def line_start(data: bytes, offset: int) -> int:
    """The offset where the physical line of `offset` begins."""
    start = data.rfind(b"\n", 0, offset) + 1
    # Looking for a CR any further would read the whole file, as most have none.
    return max(data.rfind(b"\r", start, offset) + 1, start)


def line_end(data: bytes, offset: int) -> int:
    """The offset where the text of the physical line of `offset` ends."""
    end = data.find(b"\n", offset)
    end = end if end >= 0 else len(data)
    found = data.find(b"\r", offset, end)
    return found if found >= 0 else end


def line_below(data: bytes, offset: int) -> int:
    """The offset where the line below that of `offset` begins; the end of the text if there is none."""
    end = line_end(data, offset)
    return min(end + (2 if data.startswith(b"\r\n", end) else 1), len(data))


def line_at(data: bytes, offset: int) -> Line:
    """The line of `data` at `offset`."""
    start, end = line_start(data, offset), line_end(data, offset)
    return Line(start, end, data[start:offset], data[offset:end])


def newline_at(data: bytes, offset: int) -> str:
    """The line end of the line of `offset`; on the last line that of the line above; LF where there is none."""
    end = line_end(data, offset)
    if end == len(data):
        start = line_start(data, offset)
        end = start - 1 - data.endswith(b"\r\n", 0, start)
    if end < 0:
        return "\n"
    return "\r\n" if data.startswith(b"\r\n", end) else data[end : end + 1].decode()


def leading(data: bytes, offset: int) -> bytes:
    """The white space that the physical line of `offset` begins with."""
    start = line_start(data, offset)
    end = start
    while data[end : end + 1] in (b" ", b"\t", b"\f"):
        end += 1
    return data[start:end]


def indentation(data: bytes, offset: int) -> int:
    """The columns of indentation of the physical line of `offset`."""
    return width(leading(data, offset))


def width(space: bytes) -> int:
    """Return how many columns `space` takes; a form feed sets the count back to 0, as in Python."""
    return len(space.rpartition(b"\f")[2].expandtabs(8))


def _plain(data: bytes, start: int, stop: int) -> Iterator[Token]:
    for number, match in enumerate(_PLAIN.finditer(data, start, stop)):
        if number % _OFTEN == _OFTEN - 1:
            check()
        yield Token(match.lastgroup or "other", match.start(), match.end())


@lru_cache(maxsize=32)
def _pattern(language: Language) -> re.Pattern[bytes]:
    """Return the pattern of the next mark. Its groups are named by kinds; those of strings are numbered."""
    directive = re.escape(language.words.directive)
    line = rb"(?:[^\r\n\\]|\\(?:\r\n|.))*" if language.joined else rb"[^\r\n]*"
    parts = [
        rb"(?P<newline>[\r\n](?:[ \t\f]*[\r\n]+)*)",
        rb"(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>;)|(?P<joined>\\(?:\r\n|\n|\r))",
        rb"(?P<line>%b%b)" % (re.escape(language.comment), line),
        *(b"(?P<block>" + re.escape(a) + b")" for a, _ in language.block_comments[:1]),
        *(b"(?P<s%d>%b)" % (number, _string(quotes)) for number, quotes in enumerate(language.strings)),
        *([rb"(?P<slash>/)"] if language.regex else ()),
        *([rb"(?P<tag><(?=[A-Za-z_$>]))"] if language.jsx else ()),
        *([rb"(?P<directive>%b(?:[^\r\n\\]|\\(?:\r\n|.))*)" % directive] if directive else ()),
    ]
    # Most places begin none of them; it is faster to see that first.
    return re.compile(b"(?=[%b])(?:%b)" % (_beginnings(language), b"|".join(parts)), re.DOTALL)


def _beginnings(language: Language) -> bytes:
    """The characters that a mark may begin with, and perhaps some more, for a set in a pattern."""
    texts = [language.comment, language.words.directive]
    texts += [opening for opening, _ in language.block_comments]
    found = b"\r\n()[]{};\\" + b"/<"[: language.regex + language.jsx] + b"".join(t[:1] for t in texts)
    for quotes in language.strings:
        found += quotes.open[:1]
        # Any letter or sign that the pattern holds apart from its own words.
        letters = b"".join(re.findall(rb"[A-Za-z$@]", _WORDS.sub(b"", quotes.begins)))
        found += letters.lower() + letters.upper()
    return b"".join(re.escape(bytes([sign])) for sign in sorted(set(found)))


@lru_cache(maxsize=32)
def _character(quotes: Quotes) -> re.Pattern[bytes]:
    return re.compile(_string(quotes), re.DOTALL)


def _string(quotes: Quotes) -> bytes:
    """The pattern of a string up to what closes it; of what opens it where it has holes or its close varies."""
    opening, close = quotes.opening, re.escape(quotes.close)
    if quotes.hole or quotes.varies:
        return opening
    escape = rb"|\\(?:\r\n|.|\Z)" if quotes.escapes else b""
    escape += b"|" + close + close if quotes.doubled else b""
    if quotes.character:
        code = rb"|\\(?:u\{\w*\}|[^\r\n][0-9a-fA-F]{0,8})" if quotes.escapes else b""
        one = rb"[^'\\\r\n\x80-\xff]|[\xc2-\xf4][\x80-\xbf]{1,3}"
        return opening + b"(?:" + one + code + b")(?=" + close + b")"
    first, others = re.escape(quotes.close[:1]), re.escape(quotes.close[1:])
    # A closing quote of several characters may begin inside.
    rest = rb"|%b(?!%b)" % (first, others) if others else b""
    left = first + rb"\\" * quotes.escapes + rb"\r\n" * (not quotes.lines)
    return opening + b"(?:[^%b]++%b%b)*+" % (left, rest, escape)


def _special(
    language: Language, data: bytes, match: re.Match[bytes], stop: int, before: int
) -> tuple[Mark | None, int]:
    """The mark of a match that means what it looks like only here, None where it does not, and where to go on.

    before: where the code before it ends, comments left out.
    """
    kind, start, end = match.lastgroup, match.start(), match.end()
    if kind == "line":
        # In the text between tags an address is no comment.
        address = language.regex and data[start - 1 : start] == b":"
        # In a shell's `${#a}` and in an address of YAML there is none either.
        glued = language.is_plain and data[max(start - 1, 0) : start].strip()
        return (None, start + 1 + bool(address)) if address or glued else (("comment", start, end), end)
    if kind == "block":
        shut = comment_end(language, data, start, stop)
        end = shut if shut >= 0 else stop
        return ("comment", start, end), end
    if kind == "slash":
        may_be = _may_be_regex(language, data, before)
        found = _REGEX.match(data, start) if may_be else None
        # At the beginning of a text, such as a fill, a slash may divide what is before that.
        begun = may_be and not found and data[max(start - 200, 0) : start].strip()
        if (found and found.end() > stop) or (begun and _REGEX_BEGUN.match(data, start, stop)):
            return ("open_text", start, stop), stop
        return (("string", start, found.end()), found.end()) if found else (None, end)
    if kind == "directive":
        alone = not data[line_start(data, start) : start].strip()
        return (("directive", start, end), end) if alone else (None, start + 1)
    mark = _quoted(language, data, match, stop)
    return mark, mark[2] if mark else start + 1


def _quoted(language: Language, data: bytes, match: re.Match[bytes], stop: int) -> Mark | None:
    """The string that a match begins; None where its quote is none."""
    quotes = language.strings[int((match.lastgroup or "s0")[1:])]
    start, end = match.span()
    if language.regex and quotes.open == b"'" and not _may_quote(language, data, start):
        return None
    if quotes.character and _NUMBER.search(data, max(start - 40, 0), start):
        return None
    # What is open at `stop` there, in its text or in code inside of it.
    reaches = end == stop
    varies, quotes = quotes.varies, quotes.begun_by(match) if quotes.varies else quotes
    if quotes.hole:
        shut, _ = _close(language, data, quotes, (end, stop))
        reaches = shut == _OPEN
    elif varies:
        found = data.find(quotes.close, end, stop)
        shut = found + len(quotes.close) if found >= 0 else -1
    else:
        closed = data.startswith(quotes.close, end) and end + len(quotes.close) <= stop
        shut = end + len(quotes.close) if closed else -1
    if shut >= 0:
        return "string", start, shut
    opened = match.end() if quotes.hole else start + len(quotes.open)
    return "open_string", start, stop if quotes.lines or reaches else opened


def _may_be_regex(language: Language, data: bytes, at: int) -> bool:
    """Return whether a slash after the code that ends at `at` begins a regular expression and does not divide it."""
    before = data[max(at - 200, 0) : at].rstrip()
    word = _WORD.search(before)
    if word is not None:
        return word[0] in language.words.operators and not before.endswith(b".", 0, word.start())
    return not before.endswith((*_VALUE, b"++", b"--", b"#!")) or bool(_HEADER.search(before))


def _may_quote(language: Language, data: bytes, at: int) -> bool:
    """Return whether an apostrophe is a quote and not one in the text between tags, as in `don't`."""
    word = _WORD.search(data, max(at - 20, 0), at)
    return word is None or word[0] in language.words.operators


# Where a string with holes is not closed: it is open at the end of what is read, or its line ends before.
_OPEN, _CUT = -1, -2


def _close(language: Language, data: bytes, quotes: Quotes, span: Span) -> tuple[int, tuple[int, ...]]:
    """Return where a string with holes ends, else _OPEN or _CUT, and where code begins that is open after `span`."""
    at, stop = span
    wanted = _in_text(quotes)
    while found := wanted.search(data, at, stop):
        at = found.end()
        if found.lastgroup == "closed":
            return at, ()
        if found.lastgroup == "line":
            return _CUT, ()
        if found.lastgroup == "hole" and not _is_deep(data, at):
            limit = stop if quotes.lines else min(stop, line_end(data, at))
            at, holes = _hole(language, data, quotes, (at, limit))
            if at < 0:
                return (_OPEN, holes) if limit == stop else (_CUT, ())
    return _OPEN, ()


@lru_cache(maxsize=256)
def _in_text(quotes: Quotes) -> re.Pattern[bytes]:
    """A pattern of the marks in the text of a string with holes; a match without a named group is the mark itself."""
    shut, hole = re.escape(quotes.close), re.escape(quotes.hole)
    parts = []
    if quotes.escapes:
        # Where braces are doubled, a backslash takes none along, but for that of a character's name.
        parts.append(rb"\\N\{|\\(?:\r\n|[^{])" if quotes.doubled else rb"\\(?:\r\n|.)")
    if quotes.doubled:
        parts.append(hole + hole)
        parts += [] if quotes.escapes else [shut + shut]
    parts += [b"(?P<closed>%b)" % shut, b"(?P<hole>%b)" % hole]
    parts += [] if quotes.lines else [rb"(?P<line>[\r\n])"]
    return re.compile(b"|".join(parts), re.DOTALL)


def _hole(language: Language, data: bytes, quotes: Quotes, span: Span) -> tuple[int, tuple[int, ...]]:
    """Return where the code of a string's hole that begins with `span` ends, -1 if nowhere; and what is open."""
    check()
    begins, stop = span
    at, depth = begins, 1
    ends = re.compile(quotes.format) if quotes.format else None
    for kind, first, end in chain(marks(language, data, begins, stop), [("", stop, stop)]):
        if ends and depth == 1 and (found := ends.search(data, at, first)):
            shut, holes = _format(language, data, quotes, (found.end(), stop))
            return shut, (begins, *holes) if holes else ()
        at = end
        if kind == "open_string" and end == stop:
            break
        depth += (data[first:end] in b"([{" if kind == "open" else 0) - (kind == "close")
        if depth == 0:
            return end, ()
    return -1, (begins,)


def _is_deep(data: bytes, at: int) -> bool:
    """Return whether more braces are open at `at` than anybody nests, so that reading could overflow the stack."""
    low = max(at - _FAR, 0)
    return data.count(b"{", low, at) - data.count(b"}", low, at) > _DEEPEST


def _format(language: Language, data: bytes, quotes: Quotes, span: Span) -> tuple[int, tuple[int, ...]]:
    """The same for how a value is to be written: text up to the brace that closes its hole, with holes of its own."""
    at, stop = span
    wanted = re.compile(re.escape(quotes.close) + rb"|[{}]")
    while found := wanted.search(data, at, stop):
        at = found.end()
        if found[0] == b"}":
            return at, ()
        if found[0] != b"{":
            # The brace is missing.
            return found.start(), ()
        if _is_deep(data, at):
            break
        at, holes = _hole(language, data, quotes, (at, stop))
        if at < 0:
            return -1, holes
    return -1, ()


def begins_statement(language: Language, data: bytes, at: int, columns: int) -> bool:
    """Return whether the first text of a line in brackets begins a statement (Python): a keyword, `@`, less deep."""
    word = _NAME.match(data, at)
    if word is None:
        return data[at : at + 1] == b"@" and data[at + 1 : at + 2].isalpha()
    return word[0] in language.words.starts or indentation(data, at) < columns


def is_last(language: Language, data: bytes, at: int) -> bool:
    """Return whether nothing of its block is reached below the statement that begins at `at`, such as `return`."""
    word = _NAME.match(data, at)
    return word is not None and word[0] in language.last


def unreached(language: Language, data: bytes, start: int) -> int | None:
    """Return where the first statement at or after `start` begins that the one above it, such as `return`, hides.

    Both begin a line, in the same block and at the same indentation. None if each statement is reached.
    """
    depth, fresh, above = 0, True, None
    for token in _tokens(language, data, 0, len(data)):
        if token.kind in ("newline", "space", "comment"):
            fresh = fresh or token.kind == "newline"
            continue
        if fresh and (above is None or depth <= above[0]):
            place = depth, indentation(data, token.start)
            if place == above and token.start >= start and _NAME.match(data, token.start):
                return token.start
            above = place if is_last(language, data, token.start) else None
        fresh = False
        depth += (token.kind == "open") - (token.kind == "close")
    return None
