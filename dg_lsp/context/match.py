"""Matches: other occurrences of the words before a gap, and the texts that follow them."""

from collections.abc import Iterator
from dataclasses import dataclass

from dg_lsp.context.rows import CLOSERS, DEEPER, LEVEL, LINE_ENDS, OPENERS, Rows, read_rows
from dg_lsp.gaps import Gap, half_word
from dg_lsp.source.document import Document
from dg_lsp.source.history import common
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import indentation, line_end, line_start

# Words and signs that are compared on each side of a gap, and those that a text has at most.
_BEFORE, _AFTER, _LONGEST = 16, 8, 48
# Runs of words are looked for from the longest to the shortest; the shortest one in the nearest files only.
_RUNS, _NEAREST, _LINE = (6, 4, 3, 2, 1), 5, 10
# So many places are enough to look for no shorter runs, and the most: in this document and in the nearest files, and
# in all others.
_OWN, _OTHERS = (8, 200), (100, 400)
# A part of a line ends where its brackets are closed and one of these follows.
_STOPS = CLOSERS + ",:=;" + LINE_ENDS
# Bytes that are read on each side of a gap.
NEAR = 64 << 10
PARTNER = dict(zip(CLOSERS, OPENERS, strict=True))
# So many brackets at most may a text leave open for what follows the gap to close.
_OPEN = 2


@dataclass(frozen=True, slots=True)
class Place:
    """The text before and after a gap.

    half: the beginning of a word directly before the gap; it is not in `before`. tail: the words of the gap's line
    after it. opened: the brackets that are open before the gap. closes: how many of them a text for the gap must
    close; if negative, open and leave open. blanks: the white space that a text on an empty line must begin with.
    """

    before: Rows
    after: Rows
    half: bytes
    tail: str
    opened: str
    closes: int
    blanks: str


@dataclass(frozen=True, slots=True)
class Match:
    """A place like the gap: after entry `at` of `rows`, `before` words agree. near: 1 at the gap, 0 in other files."""

    rows: Rows
    at: int
    before: int
    near: float


def place_of(document: Document, gap: Gap) -> Place:
    """The Place of `gap` in `document`."""
    language = load_language(document.language, document.macros)
    data = document.data
    half = half_word(data[: gap.start], gap.start) if gap.endings is not None else b""
    first = line_start(data, max(gap.start - NEAR, 0))
    stop = gap.span[1]
    above = data[first : gap.start - len(half)] + gap.insert_before.encode("utf-8")
    head = above[line_start(above, len(above)) :]
    blank = not (head + data[stop : line_end(data, stop)]).strip() and gap.indent.encode().startswith(head)
    blanks = gap.indent[len(head) :] if blank else ""
    above += blanks.encode()
    before = read_rows(language, above, indentation(above, 0))
    below = gap.parts[-1].insert_after.encode("utf-8") + data[stop : stop + NEAR]
    after = read_rows(language, below, indentation(above, len(above)))
    opened, closed = _opened(before), _closed(after)
    line = before.kinds[max(map(before.kinds.rfind, LINE_ENDS)) + 1 :]
    closes = len(opened) - len(closed)
    if closes < -_OPEN or not opened.endswith(_opened_in(line)):
        closes = 0
    ends = [at for at in map(after.kinds.find, LINE_ENDS) if at >= 0]
    tail = after.words[: min(ends, default=len(after))]
    return Place(before, after, half, tail, opened, min(closes, len(_opened_in(line))), blanks)


def matches(place: Place, others: list[Rows]) -> Iterator[Match]:
    """The places with the longest runs of words before the gap: in this document, then in the `others`."""
    words = place.before.words
    for rows in (place.before, place.after):
        for at in _places([rows], words, _RUNS, _OWN):
            away = len(rows) - at[1] if rows is place.before else at[1]
            yield Match(*at, _agreeing(*at, words), 1 / (1 + away / _LINE))
    near = _places(others[:_NEAREST], words, _RUNS, _OWN)
    for found in (*near, *_places(others[_NEAREST:], words, _RUNS[:-1], _OTHERS)):
        yield Match(*found, _agreeing(*found, words), 0.0)


def texts(place: Place, match: Match) -> Iterator[tuple[str, int, int]]:
    """Yield the texts that follow `match`, up to each possible end, with the entry there and the words that agree."""
    for stop, after in _stops(place, match):
        text = _text(place, match, stop)
        if text.strip():
            yield text, stop, after


def _places(
    texts: list[Rows], words: str, runs: tuple[int, ...], limits: tuple[int, int]
) -> list[tuple[Rows, int]]:
    """The entries of `texts` after the last of `words`, last first; `limits`: enough for shorter runs, the most."""
    enough, most = limits
    found: dict[tuple[int, int], None] = {}
    for run in runs:
        wanted = words[-run:]
        for number, rows in enumerate(texts if len(words) >= run else ()):
            at = rows.words.rfind(wanted, 0, len(rows) - 1)
            while at >= 0 and len(found) < most:
                found[number, at + run] = None
                at = rows.words.rfind(wanted, 0, at + run - 1)
        if len(found) >= enough:
            break
    return [(texts[number], at) for number, at in found]


def _agreeing(rows: Rows, at: int, words: str) -> int:
    """Return how many words before the entry `at` of `rows` are the last of `words`."""
    return common(rows.words[max(at - _BEFORE, 0) : at][::-1], words[-_BEFORE:][::-1])


def _stops(place: Place, match: Match) -> Iterator[tuple[int, int]]:
    """Return up to three ends of a candidate that begins with `match`, each with the number of words that agree.

    There its brackets are as the gap needs them, and the next word is that after the gap, or the line ends with the
    gap's; if no such word comes, the first sign that ends an expression will do.
    """
    rows, opened, count, own = match.rows, list(place.opened), 0, 0
    for at in range(match.at, min(match.at + _LONGEST, len(rows)) + 1):
        kind = rows.kinds[at] if at < len(rows) else LEVEL
        closed = len(place.opened) - len(opened)
        if at > match.at and closed == place.closes:
            after = common(rows.words[at : at + _AFTER], place.after.words[:_AFTER])
            wanted = _ends_line(place, kind) if not place.tail else after or (kind in _STOPS and not count)
            if wanted:
                yield at, after
                count += 1
        if kind in LINE_ENDS or count == 3:
            return
        if kind in OPENERS:
            opened.append(kind)
            own += 1
        elif kind in CLOSERS:
            allowed = own or closed < place.closes
            if not allowed or not opened or opened[-1] != PARTNER[kind]:
                return
            opened.pop()
            own = max(own - 1, 0)


def _ends_line(place: Place, kind: str) -> bool:
    """Return whether a text that ends before `kind` can be the rest of a line; a header only above a body."""
    if kind not in LINE_ENDS or place.before.kinds[-1:] not in tuple(LINE_ENDS):
        return kind in LINE_ENDS
    return (kind == DEEPER) == place.after.kinds.startswith(DEEPER)


def _text(place: Place, match: Match, stop: int) -> str:
    """The text of a candidate, with the white space that is missing before it; empty if it does not fit.

    After `x =` the text `1` becomes ` 1` where it follows a space; after `na`, the text `name` becomes `me`.
    """
    rows, before = match.rows, place.before.data
    text = rows.text(match.at, stop)
    if place.half:
        return text.removeprefix(place.half).decode("utf-8", "replace") if text.startswith(place.half) else ""
    spaced = (
        before[-1:].strip() and rows.data[max(rows.starts[match.at] - 1, 0) : rows.starts[match.at]] == b" "
    )
    return (" " if spaced else place.blanks) + text.decode("utf-8", "replace")


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
    """Return whether the line after the line end `at` begins without indentation."""
    end = rows.starts[at + 1] if at + 1 < len(rows) else len(rows.data)
    return rows.data[end - 1 : end] in (b"\n", b"\r")
