"""Cells: one scenario for one kind of gap in one language, measured at many places.

Knows scenarios and `find_gap`; prints nothing.
"""

import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.gaps.case import Case, alone, is_right, remembers, replayed
from benchmarks.gaps.scenarios import Scenario
from benchmarks.gaps.sources import Corpus
from benchmarks.gaps.truth import truth_of
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import Gap, NoGap, find_gap
from dg_lsp.text.messages import Kind
from dg_lsp.text.reasons import OutOfTime

# A place that does not lend itself to a scenario costs a try; a corpus may have few that do.
TRIES = 60


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that went wrong: `column` says in which respect, `how` in a word or two, `got` what came instead."""

    case: Case
    column: str
    how: str
    got: str


@dataclass(frozen=True, slots=True)
class Cell:
    """What came of `count` positions; shares are of those that the column can be asked of, None without any.

    alone, replayed: the gap is right, from the damaged file alone and with its edits since it was valid. chosen: the
    kind is acceptable where none is asked for. fits: what stood in a right gap makes the file parse again.
    """

    language: str
    scenario: str
    told: str
    kind: Kind
    count: int
    alone: float | None
    replayed: float | None
    chosen: float | None
    fits: float | None
    p50: float
    p95: float
    most: float
    failures: tuple[Failure, ...] = ()


@dataclass(slots=True)
class _Tally:
    """What is counted while a cell is measured."""

    alone: list[bool]
    replayed: list[bool]
    chosen: list[bool]
    fits: list[bool]
    milliseconds: list[float]
    failures: list[Failure]


def measure(corpus: Corpus, scenario: Scenario, kind: Kind, count: int, seed: int) -> Cell:
    """The cell of `scenario` and `kind` over `count` positions, or as many as the corpus has."""
    tally = _Tally([], [], [], [], [], [])
    for case in cases(corpus, scenario, kind, count, seed):
        _measure(case, tally)
    times = sorted(tally.milliseconds) or [0.0]
    return Cell(
        language=corpus.language.name,
        scenario=scenario.name,
        told=scenario.told,
        kind=kind,
        count=len(tally.alone),
        alone=_share(tally.alone),
        replayed=_share(tally.replayed),
        chosen=_share(tally.chosen),
        fits=_share(tally.fits),
        p50=at_rank(times, 0.5),
        p95=at_rank(times, 0.95),
        most=times[-1],
        failures=tuple(tally.failures),
    )


def cases(corpus: Corpus, scenario: Scenario, kind: Kind, count: int, seed: int) -> Iterator[Case]:
    """At most `count` cases; the same corpus, scenario, kind and seed give the same ones."""
    rng = random.Random(f"{corpus.language.name} {scenario.name} {kind} {seed}")
    found = 0
    for _ in range(count * TRIES if corpus.valid else 0):
        case = scenario.make(truth_of(corpus.language, rng.choice(corpus.valid)), kind, rng)
        if case is not None:
            found += 1
            yield case
        if found == count:
            return


def at_rank(ordered: Sequence[float], share: float) -> float:
    """The least of the `ordered` values that `share` of them do not pass."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def _measure(case: Case, tally: _Tally) -> None:
    document = alone(case)
    begun = time.perf_counter()
    gap = _find(document, case.cursor, case.kind)
    tally.milliseconds.append((time.perf_counter() - begun) * 1000)
    _note(case, tally, "alone", document, gap)
    # A comment at the end of the text would take in what stands behind the gap.
    comments = any(p.outer[1] == case.place.end for p in case.truth.of("comment"))
    if isinstance(gap, Gap) and tally.alone[-1] and not case.damaged and not comments:
        unfit = _misfit(case, document, gap)
        tally.fits.append(not unfit)
        if unfit:
            tally.failures.append(Failure(case, "fits", unfit, _told(document, gap)))
    if remembers():
        document = replayed(case)
        _note(case, tally, "replayed", document, _find(document, case.cursor, case.kind))
    chosen = _find(alone(case), case.cursor, None)
    tally.chosen.append(isinstance(chosen, Gap) and chosen.kind in case.acceptable)
    if not tally.chosen[-1]:
        got = chosen.kind if isinstance(chosen, Gap) else chosen
        tally.failures.append(Failure(case, "chosen", got.partition(":")[0], got))


def _find(document: Document, cursor: int, kind: Kind | None) -> Gap | str:
    """The gap, or why there is none; an exception is a failure like any other here, and is told."""
    try:
        return find_gap(document, cursor, kind)
    except NoGap as error:
        return f"no gap: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _note(case: Case, tally: _Tally, column: str, document: Document, gap: Gap | str) -> None:
    right = isinstance(gap, Gap) and is_right(case, document.data, (gap.start, gap.end))
    (tally.alone if column == "alone" else tally.replayed).append(right)
    if not right:
        tally.failures.append(Failure(case, column, _how(case, document, gap), _told(document, gap)))


def _how(case: Case, document: Document, gap: Gap | str) -> str:
    """In which way a gap is wrong."""
    if isinstance(gap, str):
        return gap.partition(":")[0]
    wrong = []
    for name, got, right in zip(("start", "end"), (gap.start, gap.end), case.span, strict=True):
        if document.data[min(got, right) : max(got, right)].strip():
            wrong.append(f"{name} {'early' if got < right else 'late'}")
    return " and ".join(wrong)


def _misfit(case: Case, document: Document, gap: Gap) -> str:
    """Return why the missing text, between the gap's own insertions, makes no valid file; empty if it does."""
    data = document.data
    text = gap.insert_before + case.text + gap.insert_after
    whole = data[: gap.start] + text.encode() + data[gap.end :]
    try:
        return "does not parse" if case.truth.language.parse(whole).root_node.has_error else ""
    except OutOfTime:
        return "out of time"


def _told(document: Document, gap: Gap | str) -> str:
    if isinstance(gap, str):
        return gap
    text = document.data[gap.start : gap.end].decode("utf-8", "replace")
    short = text if len(text) < 160 else f"{text[:80]} … {text[-80:]}"
    return f"{gap.start}-{gap.end} lead {gap.insert_before!r} tail {gap.insert_after!r}: {short!r}"


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
