"""The score of an offered text: how much of the text that was taken out it brings, and how much of it is wrong."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.languages import interval
from dg_lsp.bench.score import quantile

ENOUGH = 0.8  # of the characters


@dataclass(frozen=True, slots=True)
class Score:
    """An offered text beside the true one; characters are counted without the white space around lines.

    lines: those offered that are not blank. first: the first line is the true one. useful: so it is, 80 % of the
    offered characters are in the truth in order, and they are 80 % of it. whole: the text is the true one. kept: the
    characters of the longest beginning, cut at a line end, that a person would keep. wrong: those offered after it.
    """

    lines: int
    first: bool
    useful: bool
    whole: bool
    kept: int
    wrong: int


def score(offered: str, truth: str) -> Score:
    """Return the Score of a text; an empty one offers nothing."""
    lines, true = _lines(offered), _lines(truth)
    if not lines:
        return Score(0, first=False, useful=False, whole=False, kept=0, wrong=0)
    said, wanted = "".join(lines), "".join(true)
    first = bool(true) and lines[0] == true[0]
    kept = max(
        (_size(lines[:count]) for count in range(1, len(lines) + 1) if is_kept(lines[:count], true)),
        default=0,
    )
    brought = common(said, wanted) >= ENOUGH * len(wanted)
    whole = [line.rstrip() for line in offered.strip().splitlines()] == [
        line.rstrip() for line in truth.strip().splitlines()
    ]
    useful = brought and is_kept(lines, true)
    return Score(len(lines), first=first, useful=useful, whole=whole, kept=kept, wrong=len(said) - kept)


def is_kept(lines: Sequence[str], truth: Sequence[str]) -> bool:
    """Return whether a person would keep `lines`: the first one is right, and 80 % of the characters are in `truth`."""
    said = "".join(lines)
    return lines[0] == truth[0] and common(said, "".join(truth)) >= ENOUGH * len(said)


def common(one: str, other: str) -> int:
    """Return the length of the longest common subsequence of two texts (Hyyrö 2004, a bit for each character)."""
    places: dict[str, int] = {}
    for number, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << number
    free = full = (1 << len(one)) - 1
    for character in other:
        matched = free & places.get(character, 0)
        free = (free + matched | free - matched) & full
    return len(one) - free.bit_count()


def _lines(text: str) -> list[str]:
    """Return the lines of `text` that are not blank, without the white space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines))


@dataclass(frozen=True, slots=True)
class Row:
    """The numbers of one situation in one language; a share is (hits, of how many)."""

    places: int
    shown: int
    lines: float
    first: int
    useful: int
    whole: int
    kept: float
    wrong: float
    seconds: tuple[float, float]

    def cells(self) -> list[str]:
        """Return the cells of a line of the table."""
        return [
            str(self.places),
            share(self.shown, self.places),
            f"{self.lines:.1f}",
            share(self.first, self.places),
            share(self.useful, self.places),
            share(self.useful, self.shown),
            share(self.whole, self.places),
            f"{self.kept:.0f}",
            f"{self.wrong:.0f}",
            "{:.2f} / {:.2f}".format(*self.seconds),
        ]

    def record(self) -> dict[str, object]:
        """Return the numbers, and the 95 % intervals of the shares, for a report."""
        of = {"shown": self.places, "first": self.places, "useful": self.places, "whole": self.places}
        intervals = {name: interval(getattr(self, name), count) for name, count in of.items() if count}
        return {**asdict(self), "intervals": intervals}


HEAD = (
    *("places", "shown", "lines shown", "first line right", "useful", "useful of shown", "whole"),
    *("characters kept a request", "wrong characters a request", "seconds to the text, p50 / p95"),
)


def row_of(scores: Sequence[Score], seconds: Sequence[float]) -> Row:
    """Return the Row of the scores of some places; `seconds` are those to each text that was shown."""
    shown, count, times = [one for one in scores if one.lines], max(len(scores), 1), sorted(seconds)
    late = (quantile(times, 0.5), quantile(times, 0.95)) if times else (math.nan, math.nan)
    return Row(
        len(scores),
        len(shown),
        sum(one.lines for one in shown) / max(len(shown), 1),
        sum(one.first for one in scores),
        sum(one.useful for one in scores),
        sum(one.whole for one in scores),
        sum(one.kept for one in scores) / count,
        sum(one.wrong for one in scores) / count,
        late,
    )


def share(hits: int, count: int) -> str:
    """Return a share in words, with its 95 % interval."""
    if not count:
        return "-"
    low, high = interval(hits, count)
    return f"{hits} ({hits / count:.0%}, {low:.0%} to {high:.0%})"
