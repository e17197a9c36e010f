"""Lack: what is missing round a cursor, told by what is open there and by the indentation of the lines below.

Knows brackets, headers and lines; knows no forms of any language and no tree.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from dg_lsp.text.documents.lines import indentation, leading, line_end, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.languages.words import Form
from dg_lsp.text.syntax.braced_below import depth_of, goes_on, next_line, unclosed
from dg_lsp.text.syntax.braced_headers import Head, head_of
from dg_lsp.text.syntax.braced_reading import read
from dg_lsp.text.syntax.braced_tokens import marks, quotes_at, wants_operand
from dg_lsp.text.syntax.tokens import PAIRS, State

# What the cursor's body holds is read no further back.
LONGEST = 4_000
_ASSIGNS = re.compile(rb"[^=!<>]=(?![=>])")
_LIST: Form = (re.compile(b""), b"")
_FIRST = re.compile(rb"\}? *([\w$]+)")
_ENDED = re.compile(rb"[;{}]\Z|\S:\Z")


@dataclass(frozen=True, slots=True)
class Lack:
    """A cursor and what is missing there. Brackets are given by their offsets, the innermost first.

    before: the statement up to the cursor. rest: the code of the line behind it; eol: the line's end. columns: how
    deep the next line with text is; deeper: that is deeper than the cursor's; joined: it goes on with what is above.
    heads: of those brackets that open bodies. missing: the brackets open at the cursor that no line below closes;
    all: those that are open; behind: those missing behind the rest of the line.
    """

    language: Language
    data: bytes
    offset: int
    state: State
    before: bytes
    rest: bytes
    eol: int
    columns: int
    joined: bool
    heads: dict[int, Head]
    missing: tuple[int, ...]
    all: tuple[int, ...]
    behind: tuple[int, ...]

    @property
    def is_header(self) -> bool:
        """Whether the statement at the cursor begins with a word that wants a body."""
        words, first = self.language.words, _FIRST.match(self.before)
        return first is not None and first[1] in words.blocks | words.functions | words.classes

    @property
    def before_rest(self) -> tuple[int, ...]:
        """The brackets that the rest of the line shows to be closed before it."""
        return _before_rest(self)

    @property
    def inside(self) -> bytes:
        """The text up to the cursor of the body that it is in, the last of it where that is long."""
        body = next((at for at in self.all if at in self.heads), -1)
        return self.data[max(body + 1, self.offset - LONGEST) : self.offset]

    @property
    def newline(self) -> bytes:
        """The line end at the cursor."""
        return b"\r\n" if self.data.startswith(b"\r\n", self.eol) else b"\n"

    @property
    def deeper(self) -> bool:
        """Whether the next line with text is deeper than the statement at the cursor."""
        return self.columns > indentation(self.data, min(self.state.line, self.offset))

    @property
    def dangles(self) -> bool:
        """Whether the line below begins another statement, though the one at the cursor has no end."""
        inner = self.heads.get(self.all[0]) if self.all else None
        quoted = bool(self.state.string) or self.state.comment
        held = (
            inner is not None
            and inner.owner != "class"
            and not quoted
            and not self.rest
            and self.list_of is None
        )
        begun = self.before.strip() and not _ENDED.search(self.before.rstrip())
        below = self.columns >= 0 and not self.deeper and not self.joined
        # Where a line end can end a statement, only one that wants more has none.
        wanted = self.language.words.ends[0] or wants_operand(self.language, self.data, self.offset)
        return bool(held and begun and below and wanted)

    @property
    def list_of(self) -> Form | None:
        """What the list is like that the statement at the cursor is a part of; None for statements."""
        around = next((at for at in self.all if at not in self.missing), -1)
        return self._list(around) if around >= 0 else None

    def closing(self, brackets: Sequence[int], end: bytes) -> bytes:
        """What closes `brackets`; the statements in them that do not end by themselves end with `end`.

        What stands in a list ends with a comma there, and not at all in front of what closes it.
        """
        data, text = self.data, b""
        ended = not self.before.strip()
        here = line_start(data, self.offset)
        for at in brackets:
            head, listed = self.heads.get(at), self._list(at) is not None
            if head is not None:
                text += b"" if ended or listed else end
                lines = at < here and not data[at + 1 : line_end(data, at)].strip()
                text += self.newline + leading(data, head.start) if lines else b" " * bool(text)
            closer = PAIRS.get(data[at : at + 1]) or quotes_at(self.language, data, at).close
            text += closer + (self._behind(head) if head else b"")
            ended = head is not None and not _ASSIGNS.search(head.text)
        left = [at for at in self.all if at not in brackets]
        listed = bool(left) and self._list(left[0]) is not None
        return text + (b"," if listed and end else b"" if ended or listed else end)

    def _list(self, at: int) -> Form | None:
        """The form of the list that the bracket at `at` opens, None where it holds statements."""
        head = self.heads.get(at)
        if head is None:
            return _LIST
        return next((form for form in self.language.words.lists if form[0].search(head.text)), None)

    def _behind(self, head: Head) -> bytes:
        """What a block with such a header lacks behind its brace where nothing of it stands there."""
        return next((text for pattern, text in self.language.words.behind if pattern.search(head.text)), b"")


def lack_at(language: Language, data: bytes, offset: int, state: State) -> Lack:
    """What is missing at `offset`, where `state` is open."""
    start, eol = state.start, line_end(data, offset)
    reading = read(language, data, start, offset)
    known = {o.at: o for o in reading.stack}
    opened = [
        (at, depth_of(known[at]) if at in known else indentation(data, at)) for at in reversed(state.opened)
    ]
    rest = data[offset:eol].strip() if state.string or state.comment else _code(language, data, offset, eol)
    behind = opened
    if rest:
        stack = [o for o in read(language, data, start, eol).stack if not o.doubtful]
        behind = [(o.at, depth_of(o)) for o in reversed(stack)]
        known |= {o.at: o for o in stack}
    braces = [o for o in known.values() if o.bracket == b"{"]
    heads = {o.at: head for o in braces if (head := head_of(language, data, o.line, o.at))}
    columns, below = next_line(language, data, eol)
    missing = unclosed(data, opened, columns, below)
    return Lack(
        language=language,
        data=data,
        offset=offset,
        state=state,
        before=data[state.line : state.begins if state.comment else offset].lstrip(),
        rest=rest,
        eol=eol,
        columns=columns,
        joined=goes_on(data, below, b"{") or data[below : below + 1] in (b")", b"]", b"}"),
        heads=heads,
        missing=missing,
        all=tuple(at for at, _ in opened),
        behind=unclosed(data, behind, columns, below),
    )


def _before_rest(lack: Lack) -> tuple[int, ...]:
    """The innermost of the open brackets that the rest of the line shows to be closed before it.

    Those are at least the ones inside of what its first closer closes; and where it closes fewer than the statement
    has opened in vain, as many more.
    """
    closers, depth = [], 0
    for kind, first, end in marks(lack.language, lack.data, lack.offset, lack.eol):
        if kind == "open":
            depth += 1
        elif kind == "close" and depth:
            depth -= 1
        elif kind == "close":
            closers.append(lack.data[first:end])
    own = tuple(takewhile(lambda at: at not in lack.heads, lack.all))
    if not closers and not depth:
        return own if lack.rest.startswith(b";") else ()
    # Behind a header's brackets its body begins, on whichever line.
    if not depth and not lack.is_header:
        own = tuple(at for at in own if at in lack.missing)
    fitting = [
        n for n, at in enumerate(lack.all) if closers and PAIRS.get(lack.data[at : at + 1]) == closers[0]
    ]
    least = fitting[0] if fitting else 0
    return lack.all[: max(least, len(own) - len(closers))]


def _code(language: Language, data: bytes, start: int, stop: int) -> bytes:
    """data[start:stop], part of a line, without a comment at its end."""
    ends = [
        first for kind, first, end in marks(language, data, start, stop) if kind == "comment" and end == stop
    ]
    return data[start : ends[0] if ends else stop].strip()
