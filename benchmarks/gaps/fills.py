"""Fills: true texts put back into holes, spoiled on purpose or not, on the path that every real fill takes.

Counts what is shown and what is wrong with it; knows no engine and prints nothing.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from benchmarks.gaps.case import Case, Change, alone, is_right
from benchmarks.gaps.place import Truth, is_whole, line_of
from benchmarks.gaps.scenarios import stubs_of
from benchmarks.gaps.shown import Shown, shown
from benchmarks.gaps.sources import Corpus
from benchmarks.gaps.spoil import spoiled
from benchmarks.gaps.truth import truth_of
from dg_lsp.filling.fill import finish
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import Gap, NoGap, find_gap
from dg_lsp.text.messages import Fill, Kind

# Bodies count for half: they are what fills go wrong in.
KINDS: tuple[tuple[Kind, float], ...] = (
    ("function_body", 0.5), ("block", 0.1), ("statement", 0.1), ("rest_of_line", 0.1), ("arguments", 0.1),
    ("expression", 0.05), ("string", 0.05),
)  # fmt: skip
TRIES = 30


@dataclass(frozen=True, slots=True)
class Hole:
    """A valid file with a hole in it, and the right gap there."""

    case: Case
    document: Document
    gap: Gap

    @property
    def behind(self) -> str:
        """What follows the gap in the file."""
        return self.document.data[self.gap.end :].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Fills:
    """What came of `count` fills of one kind in one language; `refused` are reasons of those that were not shown."""

    language: str
    kind: str
    count: int
    shown: tuple[Shown, ...]
    refused: tuple[tuple[Case, str, str], ...]


def holes(corpus: Corpus, kind: Kind, count: int, seed: int, *, broken: bool = False) -> Iterator[Hole]:
    """At most `count` holes of `kind`; with `broken`, in files that the grammar cannot read whole."""
    rng = random.Random(f"{corpus.language.name} {kind} {broken} {seed}")
    files = corpus.broken if broken else corpus.valid
    found = 0
    for _ in range(count * TRIES if files else 0):
        case = _hole(truth_of(corpus.language, rng.choice(files)), kind, rng)
        hole = case and _opened(case)
        if hole:
            found += 1
            yield hole
        if found == count:
            return


def spoiled_fills(corpus: Corpus, kind: Kind, count: int, seed: int) -> Fills:
    """`count` true texts, each spoiled in one way."""
    rng = random.Random(f"spoil {corpus.language.name} {kind} {seed}")
    return _fills(
        corpus.language.name,
        kind,
        holes(corpus, kind, count, seed),
        lambda h: spoiled(h.case.text, h.behind, rng),
    )


def true_fills(corpus: Corpus, kind: Kind, count: int, seed: int, *, broken: bool = False) -> Fills:
    """`count` true texts as they are."""
    found = holes(corpus, kind, count, seed + 1, broken=broken)
    return _fills(corpus.language.name, kind, found, lambda h: (h.case.text, "true"))


def _fills(
    language: str, kind: str, found: Iterator[Hole], write: Callable[[Hole], tuple[str, str]]
) -> Fills:
    good: list[Shown] = []
    refused = []
    for hole in found:
        text, name = write(hole)
        outcome = finish(hole.document, hole.gap, Fill(text))
        if outcome.edit is None:
            refused.append((hole.case, name, outcome.why))
        else:
            good.append(shown(hole.case, name, hole.document, outcome.edit))
    return Fills(language, kind, len(good) + len(refused), tuple(good), tuple(refused))


def _opened(case: Case) -> Hole | None:
    """The hole with its gap; None where another gap is found, which is counted elsewhere."""
    document = alone(case)
    try:
        gap = find_gap(document, case.cursor, case.kind)
    except NoGap:
        return None
    right = is_right(case, document.data, (gap.start, gap.end))
    return Hole(case, document, gap) if right else None


def _hole(truth: Truth, kind: Kind, rng: random.Random) -> Case | None:
    """A place of `kind` without its text: a stub in a function's body, nothing elsewhere."""
    if kind == "rest_of_line":
        return _rest(truth, rng)
    places = list(truth.of(kind))
    if kind == "statement":
        places = [s for s in places if s.leaf and _stands_alone(truth, s.start, s.end)]
    if not places:
        return None
    place = rng.choice(places)
    text = b""
    if kind in ("function_body", "block") and truth.language.style == "indent":
        text = b"pass"
    elif kind == "function_body":
        text = stubs_of(truth.language.name)[0].encode()
    return Case(truth, place, (Change(place.start, place.end, text),), place.end)


def _rest(truth: Truth, rng: random.Random) -> Case | None:
    """A line of a statement cut at a random character, its rest gone."""
    statements = [s for s in truth.of("statement") if s.leaf and s.end - s.start > 4]
    if not statements:
        return None
    statement = rng.choice(statements)
    at = rng.randrange(statement.start + 1, statement.end)
    stop = min(line_of(truth.data, at)[1], statement.end)
    if not is_whole(truth.data, at) or not truth.data[at:stop].strip():
        return None
    place = replace(statement, kind="rest_of_line", opens=at, start=at, end=stop, closes=stop)
    return Case(truth, place, (Change(at, stop),), at)


def _stands_alone(truth: Truth, start: int, end: int) -> bool:
    """Whether nothing else stands on the lines of a statement."""
    data = truth.data
    return not data[line_of(data, start)[0] : start].strip() and not data[end : line_of(data, end)[1]].strip()
