"""The lexer: physical lines, tokens and logical lines of text that no parser can read yet, for all languages.

Knows strings, brackets and comments from language.toml; knows no grammar and no tree.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from dg_lsp.text.budget import check
from dg_lsp.text.languages.language import Language, Quotes

Span = tuple[int, int]
# A token that is more than plain text: its kind and its half-open span. `end` is a semicolon.
Mark = tuple[str, int, int]

_KINDS = {"end": "other", "directive": "other", "joined": "space"}
_PLAIN = re.compile(
    rb"(?P<space>(?:[ \t\f]|\xef\xbb\xbf)+)|(?P<word>[A-Za-z_$\x80-\xff][\w$\x80-\xff]*)|(?P<other>\d[\w.]*|.)",
    re.DOTALL,
)
_SIMPLE = frozenset(("newline", "open", "close", "end", "joined", "block"))
_REGEX = re.compile(rb"/(?![*/>])(?:[^/\\\[\r\n]|\\[^\r\n]|\[(?:[^\]\\\r\n]|\\[^\r\n])*\])+/[A-Za-z]*")
_OFTEN = 256  # tokens between two looks at the budget
_WORD = re.compile(rb"[\w$\x80-\xff]+\Z")
# Type arguments that a name goes on behind, with others inside of them.
_ARGUMENTS = re.compile(rb"<(?:[^<>]|<[^<>]*>)*>(?=::)")


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its half-open span. `kind` is open_string for a string that nothing closes."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """One statement's header, one simple statement or one comment line: [start, end) without indentation.

    `width` is its indentation in columns, tabs to the next multiple of 8; `comment` says it is only one.
    """

    start: int
    end: int
    width: int
    comment: bool


def tokens(language: Language, data: bytes, start: int, stop: int) -> Iterator[Token]:
    """The tokens of data[start:stop], white space included, from a place that is in no string."""
    at = start
    for kind, first, end in marks(language, data, start, stop):
        yield from _plain(data, at, first)
        yield Token(_KINDS.get(kind, kind), first, end)
        at = end
    yield from _plain(data, at, stop)


def marks(language: Language, data: bytes, start: int, stop: int) -> Iterator[Mark]:
    """The tokens of data[start:stop] that are no plain text: strings, comments, brackets, semicolons, line ends.

    A string that nothing closes reaches to `stop`. One that ends with its line, though, is only its quotes where
    the line ends before `stop`: what follows them is read as code, since the brackets in there mostly are.
    """
    pattern, at = _pattern(language), start
    while at < stop:
        for number, match in enumerate(pattern.finditer(data, at, stop)):
            if not number % _OFTEN:
                check()
            kind = match.lastgroup or ""
            if kind in _SIMPLE:
                yield ("comment" if kind == "block" else kind), match.start(), match.end()
                continue
            mark, end = _special(language, data, match, stop)
            if mark is not None:
                yield mark
            if end != match.end():
                at = end
                break
        else:
            return


def logical_lines(language: Language, data: bytes, start: int, stop: int) -> Iterator[LogicalLine]:
    """The logical lines of data[start:stop], from a place that begins one."""
    depth, first, end, comment, fresh = 0, -1, start, True, True
    for token in tokens(language, data, start, stop):
        if fresh and depth and _begins_statement(language, data, token, first):
            yield LogicalLine(first, end, indentation(data, first), comment)
            depth, first, comment = 0, -1, True
        if token.kind == "newline":
            fresh = True
            if depth == 0 and first >= 0:
                yield LogicalLine(first, end, indentation(data, first), comment)
                first, comment = -1, True
            continue
        if token.kind == "space":
            continue
        fresh, end = False, token.start + 1 if token.kind == "joined" else token.end
        first = token.start if first < 0 else first
        comment = comment and token.kind == "comment"
        depth = max(depth + (token.kind == "open") - (token.kind == "close"), 0)
    if first >= 0:
        yield LogicalLine(first, end, indentation(data, first), comment)


def hole_at(language: Language, data: bytes, start: int, stop: int) -> int:
    """Where the code begins that is open at `stop` inside the string that begins at `start`; -1 in its text."""
    quotes = quotes_at(language, data, start)
    return _close(language, data, quotes, start + len(quotes.open), stop)[1]


def closed_string(quotes: Quotes) -> bytes:
    """The pattern of a string with what closes it; the code in its holes is text."""
    return _string(replace(quotes, hole=b"")) + re.escape(quotes.close)


def comment_patterns(language: Language) -> tuple[bytes, ...]:
    """The patterns of comments: up to the end of the line, and those between two marks."""
    blocks = (re.escape(a.encode()) + b".*?" + re.escape(b.encode()) for a, b in language.block_comments)
    return re.escape(language.comment.encode()) + rb"[^\r\n]*+", *blocks


def quotes_at(language: Language, data: bytes, start: int) -> Quotes:
    """The quotes that begin at `start`."""
    return next(quotes for quotes in language.strings if data.startswith(quotes.open, start))


def wants_operand(language: Language, data: bytes, at: int) -> bool:
    """Whether what stands before `at` on its line is no value, so that no operator can follow."""
    before = data[line_start(data, at) : at].rstrip(b" \t\f")
    word = _WORD.search(before)
    if word is not None:
        return word[0] in language.words.operators
    return not before.endswith((b")", b"]", b"}", b'"', b"'", b"`", b"<"))


def without_arguments(name: bytes) -> bytes:
    """`name` without the type arguments that it goes on behind: `Map::size` of `Map<Key<T>>::size`."""
    return _ARGUMENTS.sub(b"", name)


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
    """How many columns `space` takes; a form feed sets the count back to 0, as in Python."""
    return len(space.rpartition(b"\f")[2].expandtabs(8))


def _plain(data: bytes, start: int, stop: int) -> Iterator[Token]:
    for number, match in enumerate(_PLAIN.finditer(data, start, stop)):
        if number % _OFTEN == _OFTEN - 1:
            check()
        yield Token(match.lastgroup or "other", match.start(), match.end())


@lru_cache(maxsize=32)
def _pattern(language: Language) -> re.Pattern[bytes]:
    """What finds the next mark. The kinds are the names of its groups; those of strings are numbered."""
    directive = re.escape(language.words.directive)
    parts = [
        rb"(?P<newline>[\r\n](?:[ \t\f]*[\r\n]+)*)",
        rb"(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>;)|(?P<joined>\\(?:\r\n|\n|\r))",
        rb"(?P<line>" + re.escape(language.comment.encode()) + rb"[^\r\n]*)",
        *(
            b"(?P<block>" + re.escape(a.encode()) + b".*?(?:" + re.escape(b.encode()) + rb"|\Z))"
            for a, b in language.block_comments[:1]
        ),
        *(b"(?P<s%d>%b)" % (number, _string(quotes)) for number, quotes in enumerate(language.strings)),
        *([rb"(?P<slash>/)"] if language.regex else ()),
        *([rb"(?P<directive>%b(?:[^\r\n\\]|\\(?:\r\n|.))*)" % directive] if directive else ()),
    ]
    return re.compile(b"|".join(parts), re.DOTALL)


def _string(quotes: Quotes) -> bytes:
    """The pattern of a string up to what closes it; of one with holes only of what opens it."""
    opening, shut = re.escape(quotes.open), re.escape(quotes.close)
    if quotes.hole:
        return opening
    escape = rb"|\\(?:\r\n|.|\Z)" if quotes.escapes else b""
    escape += b"|" + shut + shut if quotes.doubled else b""
    if quotes.character:
        code = rb"|\\(?:u\{\w*\}|[^\r\n][0-9a-fA-F]{0,8})" if quotes.escapes else b""
        return (
            opening + rb"(?:[^'\\\r\n\x80-\xff]|[\xc2-\xf4][\x80-\xbf]{1,3}" + code + rb")(?=" + shut + b")"
        )
    # A closing quote of several characters may begin inside.
    rest = (
        rb"|%b(?!%b)" % (re.escape(quotes.close[:1]), re.escape(quotes.close[1:]))
        if len(quotes.close) > 1
        else b""
    )
    left = re.escape(quotes.close[:1]) + rb"\\" * quotes.escapes + rb"\r\n" * (not quotes.lines)
    return opening + b"(?:[^%b]++%b%b)*+" % (left, rest, escape)


def _special(language: Language, data: bytes, match: re.Match[bytes], stop: int) -> tuple[Mark | None, int]:
    """The mark of a match that means what it looks like only here, None where it does not, and where to go on."""
    kind, start, end = match.lastgroup, match.start(), match.end()
    if kind == "line":
        # In the text between tags an address is no comment.
        address = language.regex and data[start - 1 : start] == b":"
        return (None, start + 2) if address else (("comment", start, end), end)
    if kind == "slash":
        found = _REGEX.match(data, start, stop) if wants_operand(language, data, start) else None
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
    if quotes.hole:
        shut, _ = _close(language, data, quotes, end, stop)
    else:
        closed = data.startswith(quotes.close, end) and end + len(quotes.close) <= stop
        shut = end + len(quotes.close) if closed else -1
    if shut >= 0:
        return "string", start, shut
    whole = end == stop or bool(quotes.hole and line_end(data, start) >= stop)
    return "open_string", start, stop if quotes.lines or whole else start + len(quotes.open)


def _may_quote(language: Language, data: bytes, at: int) -> bool:
    """Whether an apostrophe is a quote and not one in the text between tags, as in `don't`."""
    word = _WORD.search(data, max(at - 20, 0), at)
    return word is None or word[0] in language.words.operators


def _close(language: Language, data: bytes, quotes: Quotes, at: int, stop: int) -> tuple[int, int]:
    """The end of a string with holes, -1 where nothing closes it; and where code begins that is open at `stop`."""
    if not quotes.lines:
        stop = min(stop, line_end(data, at))
    shut, hole = re.escape(quotes.close), re.escape(quotes.hole)
    itself = rb"\\.|" if quotes.escapes else b""
    itself += shut + shut + b"|" + hole + hole + b"|" if quotes.doubled else b""
    wanted = re.compile(itself + shut + b"|" + hole, re.DOTALL)
    while found := wanted.search(data, at, stop):
        at = found.end()
        if found[0] == quotes.close:
            return at, -1
        if found[0] == quotes.hole:
            begins, depth = at, 1
            for kind, first, end in marks(language, data, begins, stop):
                at = end
                depth += (
                    (data[first:end] == b"{") - (data[first:end] == b"}") if kind in ("open", "close") else 0
                )
                if depth == 0:
                    break
            else:
                return -1, begins
    return -1, -1


def _begins_statement(language: Language, data: bytes, token: Token, line: int) -> bool:
    """Whether `token`, the first of a line inside brackets, begins a statement: then a bracket was lost.

    So does a keyword, a decorator, or a word less deep than `line`, where the brackets were opened.
    """
    text = data[token.start : token.end]
    if text in language.words.starts or (text == b"@" and data[token.end : token.end + 1].isalpha()):
        return True
    return token.kind == "word" and indentation(data, token.start) < indentation(data, line)
