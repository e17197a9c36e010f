"""Retrieved candidates for a gap: what follows the same words elsewhere, cut at what stands behind the gap.

Knows rows; knows no grammar, no model and no disk.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.messages import STRINGS, Retrieved
from dg_lsp.text.related.index import Index
from dg_lsp.text.related.place import PARTNER, Place, place_of
from dg_lsp.text.related.rows import CLOSERS, LEVEL, LINE_ENDS, OPENERS, Rows
from dg_lsp.text.syntax.lexer import line_start

MOST = 16
# Words and signs that are compared on each side of a gap, and those that a candidate has at most.
_BEFORE, _BEHIND, _LONGEST = 12, 8, 48
# Runs of words are looked for from the longest to the shortest, until so many places are found in a file.
_RUNS, _ENOUGH = (6, 4, 3, 2, 1), 8
# Places that are looked at in one file; files in which a single word is looked for.
_PLACES, _NEAREST = 200, 5
# Words and signs of a usual line.
_LINE = 10
# A part of a line ends where its brackets are closed and one of these follows.
_STOPS = CLOSERS + ",:=;" + LINE_ENDS


@dataclass(frozen=True, slots=True)
class _Match:
    """A place where the words before the gap stand: behind it the entry `at` of `rows`, `before` of them agree."""

    rows: Rows
    at: int
    before: int
    near: float


def retrieve(document: Document, gap: Gap, index: Index) -> tuple[Retrieved, ...]:
    """At most MOST texts that may belong in `gap`, the best first, from this document and the files of `index`.

    1. Read what stands round the gap.  2. Look for the last words before it, in this document and in the others.
    3. Cut what follows them where it fits what stands behind the gap.  4. Count like texts, and rank them.
    """
    if gap.kind in (*STRINGS, "comment") or gap.further:
        return ()
    # 1.
    place = place_of(document, gap)
    found: dict[str, Retrieved] = {}
    # 2.
    for match in _matches(place, [other.rows for other in index.beside(document.uri, document.language)]):
        # 3.
        for stop, behind in _stops(place, match):
            text = _text(place, match, stop)
            if text.strip():
                # 4.
                found[text] = _added(found.get(text), Retrieved(text, match.before, behind, near=match.near))
    return tuple(sorted(found.values(), key=_worth, reverse=True)[:MOST])


def _matches(place: Place, others: list[Rows]) -> Iterator[_Match]:
    """The places with the longest runs of words before the gap: in this document, then in each of the `others`."""
    for rows in (place.before, place.behind):
        for at in _places(rows, place.before.words, _RUNS):
            away = len(rows) - at if rows is place.before else at
            yield _Match(rows, at, _agreeing_before(rows, at, place), 1 / (1 + away / _LINE))
    for rank, rows in enumerate(others):
        runs = _RUNS if rank < _NEAREST else _RUNS[:-1]
        for at in _places(rows, place.before.words, runs):
            yield _Match(rows, at, _agreeing_before(rows, at, place), 0.01 / (2 + rank))


def _places(rows: Rows, words: str, runs: tuple[int, ...]) -> list[int]:
    """The entries of `rows` that stand behind the last of `words`, as many of them as are found often enough."""
    found: dict[int, None] = {}
    for run in runs:
        wanted = words[-run:]
        at = rows.words.find(wanted) if len(words) >= run else -1
        while at >= 0 and len(found) < _PLACES:
            if at + run < len(rows):
                found[at + run] = None
            at = rows.words.find(wanted, at + 1)
        if len(found) >= _ENOUGH:
            break
    return list(found)


def _agreeing_before(rows: Rows, at: int, place: Place) -> int:
    """How many words before the entry `at` of `rows` are those before the gap."""
    one, other = rows.words[max(at - _BEFORE, 0) : at][::-1], place.before.words[-_BEFORE:][::-1]
    return _common(one, other)


def _common(one: str, other: str) -> int:
    """How many characters two strings have in common at their beginning."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _stops(place: Place, match: _Match) -> Iterator[tuple[int, int]]:
    """Where a candidate that begins with `match` may end, and how many words behind it agree; at most three places.

    There its brackets are as the gap needs them, and the next word is that behind the gap, or the line ends with the
    gap's; if no such word comes, the first sign that ends an expression will do.
    """
    rows, opened, count, own = match.rows, list(place.opened), 0, 0
    for at in range(match.at, min(match.at + _LONGEST, len(rows)) + 1):
        kind = rows.kinds[at] if at < len(rows) else LEVEL
        closed = len(place.opened) - len(opened)
        if at > match.at and closed == place.closes:
            behind = _common(rows.words[at : at + _BEHIND], place.behind.words[:_BEHIND])
            wanted = kind in LINE_ENDS if not place.tail else behind or (kind in _STOPS and not count)
            if wanted:
                yield at, behind
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


def _text(place: Place, match: _Match, stop: int) -> str:
    """The text of a candidate, with the white space that lacks before it; empty if it does not fit.

    Behind `x =` the text `1` becomes ` 1` where it stands behind a space; behind `na`, the text `name` becomes `me`.
    """
    rows, before = match.rows, place.before.data
    text = rows.text(match.at, stop)
    if place.half:
        return text.removeprefix(place.half).decode("utf-8", "replace") if text.startswith(place.half) else ""
    head = before[line_start(before, len(before)) :]
    if not head.strip():
        lacks = place.indent.removeprefix(head.decode()) if place.indent.encode().startswith(head) else ""
    else:
        spaced = (
            not head[-1:].isspace() and rows.data[rows.starts[match.at] - 1 : rows.starts[match.at]] == b" "
        )
        lacks = " " if spaced else ""
    return lacks + text.decode("utf-8", "replace")


def _added(known: Retrieved | None, new: Retrieved) -> Retrieved:
    """`new`, or the better of two that are the same text, found once more."""
    if known is None:
        return new
    best = max(known, new, key=_worth)
    near = max(known.near, new.near)
    return Retrieved(best.text, best.before, best.behind, known.count + 1, near)


def _worth(found: Retrieved) -> float:
    """How good a candidate is: a sum of what speaks for it."""
    return (
        min(found.before, 8)
        + 0.7 * min(found.behind, 6)
        + 1.5 * found.near
        + 0.15 * min(found.count, 8)
        + 0.5 * (found.near > 0.005)
    )
