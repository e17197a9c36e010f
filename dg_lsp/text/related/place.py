"""Place: the text around a gap as rows, and the number of brackets that a fill must close."""

from dataclasses import dataclass

from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.gaps.words import half_word
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.related.rows import CLOSERS, LINE_ENDS, OPENERS, Rows, read_rows
from dg_lsp.text.syntax.lexer import indentation, line_end, line_start

# Bytes that are read on each side of a gap.
NEAR = 64 << 10
PARTNER = dict(zip(CLOSERS, OPENERS, strict=True))
# So many brackets at most may a text leave open for what follows the gap to close.
_OPEN = 2


@dataclass(frozen=True, slots=True)
class Place:
    """The text before and behind a gap.

    half: the beginning of a word directly before the gap; it is not in `before`. tail: the words of the gap's line
    behind it. opened: the brackets that are open before the gap. closes: how many of them a text for the gap must
    close; if negative, so many it must open and leave open. blanks: the white space that a text on an empty line must
    begin with.
    """

    before: Rows
    behind: Rows
    half: bytes
    tail: str
    opened: str
    closes: int
    blanks: str


def place_of(document: Document, gap: Gap) -> Place:
    """The Place of `gap` in `document`."""
    language = load_language(document.language, document.macros)
    data = document.data
    half = half_word(data[: gap.start], gap.start) if gap.endings else b""
    first = line_start(data, max(gap.start - NEAR, 0))
    stop = gap.span[1]
    above = data[first : gap.start - len(half)] + gap.insert_before.encode("utf-8")
    head = above[line_start(above, len(above)) :]
    blank = not (head + data[stop : line_end(data, stop)]).strip() and gap.indent.encode().startswith(head)
    blanks = gap.indent[len(head) :] if blank else ""
    above += blanks.encode()
    before = read_rows(language, above, indentation(above, 0))
    below = gap.parts[-1].insert_after.encode("utf-8") + data[stop : stop + NEAR]
    behind = read_rows(language, below, indentation(above, len(above)))
    opened, closed = _opened(before), _closed(behind)
    line = before.kinds[max(map(before.kinds.rfind, LINE_ENDS)) + 1 :]
    closes = len(opened) - len(closed)
    if closes < -_OPEN or not opened.endswith(_opened_in(line)):
        closes = 0
    ends = [at for at in map(behind.kinds.find, LINE_ENDS) if at >= 0]
    tail = behind.words[: min(ends, default=len(behind))]
    return Place(before, behind, half, tail, opened, min(closes, len(_opened_in(line))), blanks)


def _opened(rows: Rows) -> str:
    """The brackets that are open at the end of `rows`; those above the last item of the file do not count."""
    item = max(
        (at for at, kind in enumerate(rows.kinds) if kind in LINE_ENDS and _at_margin(rows, at)), default=0
    )
    return _opened_in(rows.kinds[item:])


def _opened_in(kinds: str) -> str:
    """The brackets that `kinds` opens and does not close."""
    opened: list[str] = []
    for kind in kinds:
        if kind in OPENERS:
            opened.append(kind)
        elif kind in CLOSERS and opened:
            opened.pop()
    return "".join(opened)


def _closed(rows: Rows) -> str:
    """The brackets that `rows` closes and has not opened, up to the next item of the file."""
    closed, depth = "", 0
    for at, kind in enumerate(rows.kinds):
        if kind in OPENERS:
            depth += 1
        elif kind in CLOSERS:
            closed, depth = (closed, depth - 1) if depth else (closed + kind, 0)
        elif kind in LINE_ENDS and _at_margin(rows, at) and rows.kinds[at + 1 : at + 2] not in tuple(CLOSERS):
            break
    return closed


def _at_margin(rows: Rows, at: int) -> bool:
    """Return whether the line behind the line end `at` begins without indentation."""
    end = rows.starts[at + 1] if at + 1 < len(rows) else len(rows.data)
    return rows.data[end - 1 : end] in (b"\n", b"\r")
