"""Lack: what is missing at a cursor, told by what is open there and by the indentation of the line below.

Knows brackets, headers and lines; knows no tree.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dg_lsp.text.documents.lines import indentation, leading, line_end, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.brackets import PAIRS, State, depth_of, next_line, read, unclosed
from dg_lsp.text.syntax.headers import Head, head_of
from dg_lsp.text.syntax.lexer import marks, quotes_at

_ASSIGNS = re.compile(rb"[^=!<>]=(?![=>])")
_FIRST = re.compile(rb"\s*\}? *(?:async )?([\w$]+)")


@dataclass(frozen=True, slots=True)
class Lack:
    """A cursor and what is missing there. Brackets are given by their offsets, the innermost first.

    before: the statement up to the cursor. rest: the code of the line behind it; eol: the line's end. deeper: the next
    line with text is deeper than the statement. heads: of those brackets that open bodies. all: the brackets that are
    open; missing: those that no line below closes.
    """

    language: Language
    data: bytes
    offset: int
    state: State
    before: bytes
    rest: bytes
    eol: int
    deeper: bool
    heads: dict[int, Head]
    all: tuple[int, ...]
    missing: tuple[int, ...]

    @property
    def is_header(self) -> bool:
        """Whether the statement at the cursor begins with a word that wants a body."""
        words, first = self.language.words, _FIRST.match(self.before + self.rest)
        return self.owns or (first is not None and first[1] in words.blocks)

    @property
    def owns(self) -> bool:
        """Whether the statement at the cursor begins like a function or a class."""
        words, first = self.language.words, _FIRST.match(self.before + self.rest)
        return first is not None and first[1] in words.functions | words.classes

    def closing(self, brackets: Sequence[int], end: bytes) -> bytes:
        """What closes `brackets`; the statements in them that do not end by themselves end with `end`.

        What stands in a list ends with a comma there, and not at all in front of what closes it.
        """
        data, text = self.data, b""
        ended = not self.before.strip()
        here = line_start(data, self.offset)
        newline = b"\r\n" if data.startswith(b"\r\n", self.eol) else b"\n"
        for at in brackets:
            head = self.heads.get(at)
            if head is not None:
                text += b"" if ended or self._is_list(at) else end
                lines = at < here and not data[at + 1 : line_end(data, at)].strip()
                text += newline + leading(data, head.start) if lines else b" " * bool(text)
            text += PAIRS.get(data[at : at + 1]) or quotes_at(self.language, data, at).close
            ended = head is not None and not _ASSIGNS.search(head.text)
        left = [at for at in self.all if at not in brackets]
        listed = bool(left) and self._is_list(left[0])
        return text + (b"," if listed and end else b"" if ended or listed else end)

    def _is_list(self, at: int) -> bool:
        """Whether the bracket at `at` holds a list and not statements."""
        head = self.heads.get(at)
        return head is None or any(pattern.search(head.text) for pattern in self.language.words.lists)


def lack_at(language: Language, data: bytes, offset: int, state: State) -> Lack:
    """What is missing at `offset`, where `state` is open."""
    eol = line_end(data, offset)
    known = {o.at: o for o in read(language, data, state.start, offset).stack}
    opened = [
        (at, depth_of(known[at]) if at in known else indentation(data, at)) for at in reversed(state.opened)
    ]
    braces = [o for o in known.values() if o.bracket == b"{" and language.style == "brace"]
    rest = data[offset:eol].strip()
    if rest and not (state.string or state.comment):
        # A comment at the end of the line is no code.
        comments = (
            first
            for kind, first, end in marks(language, data, offset, eol)
            if kind == "comment" and end == eol
        )
        rest = data[offset : next(comments, eol)].strip()
    columns, below = next_line(language, data, eol)
    return Lack(
        language=language,
        data=data,
        offset=offset,
        state=state,
        before=data[state.line : state.begins if state.comment else offset].lstrip(),
        rest=rest,
        eol=eol,
        deeper=columns > indentation(data, min(state.line, offset)),
        heads={o.at: head for o in braces if (head := head_of(language, data, o.line, o.at))},
        all=tuple(at for at, _ in opened),
        missing=unclosed(data, opened, columns, below),
    )
