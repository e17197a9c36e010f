"""Tokens and logical lines where indentation holds bodies together (Python), for text that no parser can read yet.

Knows strings, brackets, comments and indentation; knows no grammar, no tree and no document.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from dg_lsp.text.documents.lines import indentation, line_end, line_start
from dg_lsp.text.syntax.reach import FARTHEST, UNKNOWN
from dg_lsp.text.syntax.tokens import LogicalLine, State, Token

_TOKEN = re.compile(
    rb"(?P<space>[ \t\f]+)"
    rb"|(?P<newline>\r\n|\n|\r)"
    rb"|(?P<joined>\\(?:\r\n|\n|\r))"
    rb"|(?P<comment>#[^\r\n]*)"
    rb"|(?P<triple>(?:\b[rRbBuUfFtT]{1,2})?(?P<quotes>\"\"\"|'''))"
    rb"|(?P<string>(?:\b[rRbBuUfFtT]{1,2})?(?P<quote>[\"'])(?:[^\"'\\\r\n]|\\(?:\r\n|.|\Z)|(?!(?P=quote))[\"'])*(?P<shut>(?P=quote))?)"
    rb"|(?P<open>[(\[{])"
    rb"|(?P<close>[)\]}])"
    rb"|(?P<word>[A-Za-z_\x80-\xff][\w\x80-\xff]*)"
    rb"|(?P<other>.)",
    re.DOTALL,
)


def _run_of(parts: bytes) -> bytes:
    """A pattern of plain text and any number of `parts` in it; what begins each is told by one byte, so it is quick."""
    plain = rb"[^\"'#()\[\]{}\\\r\n]*"
    return plain + rb"(?:(?:" + parts + rb")" + plain + rb")*"


# Lines that close all they open: where nothing is open before them, nothing is behind them. No possessive quantifiers:
# before Python 3.11.5 they match wrongly.
_SHORT = rb"(?!\"\"\"|''')(?:\"[^\"\\\r\n]*\"|'[^'\\\r\n]*')"
_INNER = rb"[(\[{]" + _run_of(_SHORT) + rb"[)\]}]"
_OUTER = rb"[(\[{]" + _run_of(_SHORT + rb"|" + _INNER) + rb"[)\]}]"
_LINE = _run_of(_SHORT + rb"|" + _OUTER) + rb"(?:#[^\r\n]*)?(?:\r\n|\n|\r)"
_CLOSED = re.compile(rb"(?:" + _LINE + rb")*")
# Inside brackets such a line must not look as if a statement began there.
_ITEMS = re.compile(rb"(?:[ \t\f]*(?![A-Za-z_\x80-\xff@ \t\f])" + _LINE + rb")*")
# No line inside brackets begins with one of these, so where one does a bracket has lost its mate.
_HARD = frozenset(
    (b"def", b"class", b"return", b"import", b"while", b"with", b"try", b"raise", b"del", b"global")
)
_ANCHOR = re.compile(rb"(?<![^\r\n])(?:async[ \t]+def[ \t]+\w|def[ \t]+\w|class[ \t]+\w+[ \t]*[:(\[]|@\w)")
_HEAD = re.compile(rb"(?<![^\r\n])[ \t]*(?:async[ \t]+def|def|class)[ \t]+\w+[ \t]*[:(\[]")
# How many bytes are looked at in one go on the way up, and how long the head of an item may be.
STRIDE = 4_096
LONGEST_HEAD = 400
OUTERMOST = re.compile(rb"[\r\n](?=[^\s#)\]}\"'])")


def tokens(data: bytes, start: int, stop: int) -> Iterator[Token]:
    """The tokens of data[start:stop], white space included, from a place that is in no string."""
    at = start
    while at < stop:
        match = _TOKEN.match(data, at, stop)
        assert match is not None and match.lastgroup is not None
        kind, end = match.lastgroup, match.end()
        if match["triple"] is not None:
            kind, end = _close_triple(data, end, stop, match["quotes"])
        elif match["string"] is not None:
            kind = "string" if match["shut"] else "open_string"
        yield Token(kind, at, end)
        at = end


def _close_triple(data: bytes, at: int, stop: int, quotes: bytes) -> tuple[str, int]:
    while (end := data.find(quotes, at, stop)) >= 0:
        slashes = end - len(data[at:end].rstrip(b"\\")) - at
        if slashes % 2 == 0:
            return "string", end + 3
        at = end + 1
    return "open_string", stop


def logical_lines(data: bytes, start: int, stop: int) -> Iterator[LogicalLine]:
    """The logical lines of data[start:stop], from a place that begins one."""
    depth, first, end, comment, fresh = 0, -1, start, True, True
    for token in tokens(data, start, stop):
        if fresh and depth and _begins_statement(data, token, first):
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


def _begins_statement(data: bytes, token: Token, line: int) -> bool:
    """Whether `token`, the first of a line inside brackets, begins a statement: then a bracket was lost.

    So does a keyword, a decorator, or a word less deep than `line`, where the brackets were opened.
    """
    text = data[token.start : token.end]
    if text in _HARD or (text == b"@" and data[token.end : token.end + 1].isalpha()):
        return True
    return token.kind == "word" and indentation(data, token.start) < indentation(data, line)


@lru_cache(maxsize=8)
def state_at(data: bytes, offset: int, start: int) -> State:
    """What is open at `offset`, read from `start`, a place that begins a logical line.

    The last answers are kept, for one gap asks the same several times.
    """
    stack: list[int] = []
    at = line = start
    here, fresh = max(line_start(data, offset), start), True
    last: Token | None = None
    while closed := (_ITEMS if stack else _CLOSED).match(data, at, here):
        at = closed.end()
        line = line if stack else at
        for last in tokens(data, at, offset):
            if last.kind == "newline":
                fresh, at = True, last.end
                line = line if stack else at
                break
            if last.kind in ("space", "joined", "comment"):
                continue
            if fresh and stack and _begins_statement(data, last, line):
                stack, line = [], line_start(data, last.start)
            fresh = False
            if last.kind == "open":
                stack.append(last.start)
            elif last.kind == "close":
                stack = stack[:-1]
        else:
            break
    brackets = b"".join(data[at : at + 1] for at in stack)
    if last is not None and last.kind == "open_string":
        opened = data[last.start : last.end].lstrip(b"rRbBuUfFtT")
        quotes = opened[:3] if opened[:3] in (b'"""', b"'''") else opened[:1]
        return State(brackets, tuple(stack), quotes, False, last.start, line, start)
    comment = last is not None and last.kind == "comment"
    begins = last.start if last and comment else -1
    return State(brackets, tuple(stack), b"", comment, begins, line, start)


def unclosed(data: bytes, offset: int, start: int) -> bytes:
    """The quotes that a string open at `offset` lacks, as its end lies behind the head of a def or class."""
    state = state_at(data, offset, start)
    return state.string if len(state.string) == 3 and lacks_end(data, offset, state) else b""


def lacks_end(data: bytes, offset: int, state: State) -> bool:
    """Whether the head of a def or class stands between `offset` and the next quotes like those of the open string."""
    end = data.find(state.string, offset)
    return _HEAD.search(data, offset, end if end >= 0 else len(data)) is not None


@lru_cache(maxsize=8)
def window(data: bytes, offset: int) -> tuple[int, int]:
    """The top-level item round `offset`: from the last def, class or decorator at column 0 to the next.

    The last answers are kept, as those of `state_at`.
    """
    here = line_start(data, offset)
    eol = line_end(data, offset)
    low, high = max(here - FARTHEST, 0), min(eol + FARTHEST, len(data))
    # An item is looked for no further: then what is near must do.
    start = line_start(data, here - UNKNOWN) if low else 0
    # The last one above is mostly near, and matching from the top down would read all.
    for top in range(here + 1, low, -STRIDE):
        near = _ANCHOR.finditer(data, max(top - STRIDE, low), min(top + LONGEST_HEAD, eol))
        if found := [match.start() for match in near if match.start() < top]:
            start = found[-1]
            break
    while start > 0 and data[line_start(data, start - 1) : start].startswith(b"@"):
        start = line_start(data, start - 1)
    after = _ANCHOR.search(data, min(eol + 1, len(data)), high)
    if after is not None:
        return start, after.start()
    return start, len(data) if high == len(data) else line_start(data, eol + UNKNOWN)


def block(data: bytes, offset: int) -> tuple[int, int]:
    """The part of `window` that ends where the next line with text stands at column 0, closing brackets apart."""
    start, stop = window(data, offset)
    found = OUTERMOST.search(data, line_end(data, offset), stop)
    return start, found.end() if found else stop
