"""Break: where a fill stops being the beginning of something that parses, and how far the damage may reach.

Knows the parser's log and what `syntax` finds; knows no tokens of a model and changes no text.
"""

import re
from dataclasses import dataclass

from dg_lsp.text.documents.lines import line_end, line_start
from dg_lsp.text.fills.check import faults
from dg_lsp.text.fills.fault import Fault, given_up
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.messages import Infill
from dg_lsp.text.syntax.baseline import neutral_text
from dg_lsp.text.syntax.lexer import Span, tokens

NEAR = 2_000  # bytes behind the fill that the parser is watched on
_SPACE = re.compile(rb"\s*")


@dataclass(frozen=True, slots=True)
class Break:
    """The first damaged place of a fill; all are byte offsets in it.

    point: here every reading of the fill had failed, so the damage is before it, mostly near, or just behind it.
    end: of the first fault, at most a quarter of the fill behind the point. line: the end of the point's line.
    shut: from the first bracket that nothing closes to the end of its line. statement: the lines that the point is in,
    from the outermost bracket that is open there. faults: all of them.
    """

    point: int
    end: int
    line: int
    shut: Span | None
    statement: Span
    faults: tuple[Fault, ...]

    def behind(self, before: str) -> "Break":
        """Return the same, counted from the end of `before`, a beginning of the fill; places inside that become 0."""
        skipped = len(_bytes(before))

        def moved(*offsets: int) -> list[int]:
            return [max(offset - skipped, 0) for offset in offsets]

        point, end, line, first, last = moved(self.point, self.end, self.line, *self.statement)
        left = moved(*self.shut) if self.shut else ()
        shut = (left[0], left[1]) if left else None
        return Break(point, end, line, shut, (first, last), self.faults)


def find_break(request: Infill, fill: str) -> Break | None:
    """Return the first damaged place of `fill` in the gap of `request`; None if it adds no fault (law 5).

    1. Find the faults.  2. Take the place where the parser gave up; if only `ast` or the container object, the place of
    their fault.  3. Find how far the damage may reach, by the fault and by open brackets.
    """
    # 1.
    found = faults(request.language, request.kind, request.prefix, fill, request.suffix)
    if not found:
        return None
    # 2.
    language, data = load_language(request.language), _bytes(fill)
    parts = (_bytes(request.prefix), data, _bytes(request.suffix))
    point = resume_point(language, request.kind, parts)
    if point is None:
        point = found[0].start
    # 3. An error may be as long as the fill; its end tells nothing then.
    end = min(max(found[0].end, point), point + len(data) // 4)
    opened = _unclosed(language, data)
    shut = (opened[0], line_end(data, opened[0])) if opened else None
    statement = _statement(language, data, (point, end))
    return Break(point, end, line_end(data, point), shut, statement, found)


def resume_point(language: Language, kind: str, parts: tuple[bytes, bytes, bytes]) -> int | None:
    """Return where in the fill of `parts` = (before, fill, after) the parser first gave up; None if nowhere.

    The text before that place is the beginning of something that parses.
    """
    before, fill, after = parts
    neutral = neutral_text(language, kind, before, after)
    # A parser that logs is slow, and how it goes on far behind the fill is not asked for.
    behind = neutral.after[:NEAR]
    # What is broken before the fill is not the fill's fault.
    point = next((p for p in given_up(language, neutral, fill + behind) if p >= 0), None)
    cut = behind != neutral.after and point is not None and point >= len(fill + behind.rstrip())
    return None if point is None or cut else min(point, len(fill))


def _unclosed(language: Language, fill: bytes) -> list[int]:
    """Return the places of the brackets of `fill` that nothing in it closes."""
    opened: list[int] = []
    for token in tokens(language, fill, 0, len(fill)):
        if token.kind == "open":
            opened.append(token.start)
        elif token.kind == "close" and opened:
            opened.pop()
    return opened


def _statement(language: Language, fill: bytes, span: Span) -> Span:
    """Return the lines of `span`, from the line of the outermost bracket that is open at its beginning."""
    point, end = span
    start = min([*_unclosed(language, fill[:point]), point])
    # The parser stands before the white space; the token that could not follow is behind it.
    space = _SPACE.match(fill, point)
    assert space is not None, "it matches nothing, too"
    return line_start(fill, start), line_end(fill, max(end, space.end()))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
