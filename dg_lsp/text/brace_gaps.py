"""Lack: what is missing round a cursor, told by what is open there and by the indentation of the lines below.

Knows brackets and lines; knows no forms of any language and no tree.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dg_lsp.text.brace_headers import head_of
from dg_lsp.text.brace_reading import Opened, read
from dg_lsp.text.brace_tokens import marks
from dg_lsp.text.brace_window import window
from dg_lsp.text.language import Language
from dg_lsp.text.lines import indentation, leading, line_end, line_start
from dg_lsp.text.tokens import PAIRS, Span, State

_LINE = re.compile(rb"[\r\n]+([ \t\f]*)(?=[^\s])")
_CLOSERS = re.compile(rb"[)\]} \t]*")
# A line that goes on with what is above it, or may stand as deep as that.
_JOINED = re.compile(rb"[.?:&|+\-*/=<>%^]|(?:case|default|else|catch|finally)\b|[\w$]+[ \t]*:(?![:=])")


@dataclass(frozen=True, slots=True)
class Lack:
    """A cursor and what is missing there. Brackets are given by their offsets, the innermost first.

    before: the statement up to the cursor. rest: the text of the line behind it; eol: the line's end. deeper: the
    next line with text is deeper than the cursor's. missing: the brackets open at the cursor that no line below
    closes; all: those that are open; behind: those missing behind the rest of the line; before_rest: those of the
    statement that the rest does not close.
    """

    language: Language
    data: bytes
    offset: int
    state: State
    before: bytes
    rest: bytes
    eol: int
    newline: bytes
    deeper: bool
    missing: tuple[int, ...]
    all: tuple[int, ...]
    behind: tuple[int, ...]
    before_rest: tuple[int, ...]

    def closing(self, brackets: Sequence[int], end: bytes) -> bytes:
        """What closes `brackets`; statements in front of a brace, and the last one, end with `end`."""
        data, text = self.data, b""
        here = line_start(data, self.offset)
        for at in brackets:
            bracket = data[at : at + 1]
            closer = PAIRS[bracket]
            if bracket != b"{":
                text += closer
                continue
            body = head_of(self.language, data, _statement(data, at), at) is not None
            if body and end != b"," and not text.endswith((b"}", b";")):
                text += end
            lines = at < here and data[at + 1 : line_end(data, at)].strip() == b""
            text += (self.newline + leading(data, at) if lines else b" " * (body and bool(text))) + closer
        ended = text.endswith((b"}", b";"))
        return text if ended and end != b"," else text + end


def lack_at(language: Language, data: bytes, offset: int, state: State) -> Lack:
    """What is missing at `offset`, where `state` is open."""
    start = window(language, data, offset)[0]
    eol = line_end(data, offset)
    rest = data[offset:eol].strip()
    columns, below = _next_line(language, data, eol)
    widths = {o.at: _depth(o) for o in read(language, data, start, offset).stack}
    opened = [(at, widths.get(at, indentation(data, at))) for at in reversed(state.opened)]
    behind = opened
    if rest:
        stack = [o for o in read(language, data, start, eol).stack if not o.doubtful]
        behind = [(o.at, _depth(o)) for o in reversed(stack)]
    missing = _missing(data, opened, columns, below)
    return Lack(
        language=language,
        data=data,
        offset=offset,
        state=state,
        before=data[state.line : offset].lstrip() if state.line < offset else b"",
        rest=rest,
        eol=eol,
        newline=b"\r\n" if data.startswith(b"\r\n", eol) else b"\n",
        deeper=columns > indentation(data, min(state.line, offset)),
        missing=missing,
        all=tuple(at for at, _ in opened),
        behind=_missing(data, behind, columns, below),
        before_rest=_before_rest(language, data, (offset, eol), [at for at, _ in opened], missing),
    )


def _before_rest(
    language: Language, data: bytes, rest: Span, opened: Sequence[int], missing: Sequence[int]
) -> tuple[int, ...]:
    """The innermost of the `opened` brackets that the `rest` of the line shows to be closed before it.

    Those are at least the ones inside of what its first closer closes; and where it closes fewer than the statement
    has opened in vain, as many more.
    """
    closers, depth = [], 0
    for kind, first, end in marks(language, data, *rest):
        if kind == "open":
            depth += 1
        elif kind == "close" and depth:
            depth -= 1
        elif kind == "close":
            closers.append(data[first:end])
    if not closers and not depth:
        return ()
    here = line_start(data, rest[0])
    own = [at for at in opened if (at >= here if depth else at in missing) and data[at : at + 1] != b"{"]
    fitting = [n for n, at in enumerate(opened) if closers and PAIRS[data[at : at + 1]] == closers[0]]
    least = fitting[0] if fitting else 0
    return tuple(opened[: max(least, len(own) - len(closers))])


def _depth(opened: Opened) -> int:
    """How deep the line is that closes a bracket: as the line that opens it, or a brace's header."""
    return opened.width if opened.bracket == b"{" else opened.columns


def _missing(data: bytes, opened: Sequence[tuple[int, int]], columns: int, below: int) -> tuple[int, ...]:
    """Those of the `opened` brackets that the next line with text shows to be closed before it.

    It is at `below`, indented by `columns`. Where it closes brackets itself, those as deep as it are not missing.
    """
    run = _CLOSERS.match(data, below)
    closers = [bytes([c]) for c in run[0] if c in b")]}"] if run else []
    joined = _JOINED.match(data, below) is not None
    found: list[int] = []
    for at, width in opened:
        if width == columns and closers and closers[0] == PAIRS[data[at : at + 1]]:
            closers.pop(0)
            break
        if width < columns or (width == columns and joined):
            break
        found.append(at)
    return tuple(found)


def _next_line(language: Language, data: bytes, eol: int) -> tuple[int, int]:
    """How deep the next line with text below `eol` is, and where its text begins; comments do not count."""
    at = eol
    while found := _LINE.search(data, at):
        at = found.end()
        line = data[at : line_end(data, at)]
        directive = language.words.directive
        if line.startswith((language.comment.encode(), b"/*", b"* ", b"*/")) or line == b"*":
            continue
        if not (directive and line.startswith(directive)):
            return indentation(data, at), at
    return -1, len(data)


def _statement(data: bytes, at: int) -> int:
    """Where the header of the brace at `at` may begin: behind the last semicolon, brace or line that is less deep."""
    start = line_start(data, at)
    while start > 0 and not data[start:at].strip():
        start = line_start(data, start - 1)
    return start
