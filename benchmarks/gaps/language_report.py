"""Everything that `bench --gaps` measures of one language: its tables as text, its numbers as data.

Knows what is measured; prints nothing, so that languages can be measured in processes of their own.
"""

import dataclasses
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gaps import fill_tables, tables
from benchmarks.gaps.cells import Cell, measure
from benchmarks.gaps.fills import KINDS, Fills, spoiled_fills, true_fills
from benchmarks.gaps.judges import judge_of
from benchmarks.gaps.scenarios import scenarios_of
from benchmarks.gaps.sizes import measure_sizes
from benchmarks.gaps.sources import Corpus, find_corpus

LENGTHS = (10_000, 100_000)
PARTS = ("sizes", "fills", "real")
# More files than this make a run longer and no number better.
FILES = 150
# A compiler takes a second for some files.
JUDGED = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured: `parts` are names of scenarios and of PARTS, all where there are none.

    positions: for each scenario and kind. fills: true texts to spoil. show: failures to tell of each cell.
    """

    given: Mapping[str, Path]
    parts: frozenset[str]
    positions: int
    fills: int
    show: int
    seed: int

    def has(self, part: str) -> bool:
        """Whether `part` is to be measured."""
        return not self.parts or part in self.parts


@dataclass(frozen=True, slots=True)
class LanguageReport:
    """The tables and the numbers of one language; `told` are the sentences of its scenarios."""

    texts: tuple[str, ...]
    told: tuple[tuple[str, str], ...] = ()
    data: dict[str, Any] = dataclasses.field(default_factory=dict)


def report_of(language: str, plan: Plan) -> LanguageReport:
    """Measure one language.

    1. Find its files; without any it is skipped, and the text says so.  2. Gaps in broken files.
    3. Gaps in long files.  4. Spoiled and true fills, and what an outside judge says of them.
    """
    # 1.
    corpus = find_corpus(language, plan.given, FILES, plan.seed)
    if corpus.missing:
        return LanguageReport((f"{language}: skipped, {corpus.missing}",))
    # 2.
    cells = list(_cells(corpus, plan))
    texts = [
        tables.cells_table(language, cells),
        tables.classes_told(cells),
        tables.failures_told(cells, plan.show),
    ]
    texts = texts if cells else []
    data: dict[str, Any] = {"language": language, "cells": [_plain(cell) for cell in cells]}
    # 3.
    if plan.has("sizes"):
        sizes = measure_sizes(corpus, LENGTHS, plan.positions, plan.seed)
        texts.append(tables.sizes_table(sizes))
        data["sizes"] = [dataclasses.asdict(size) for size in sizes]
    # 4.
    if plan.has("fills"):
        found, true = _fills(corpus, plan)
        texts += _fill_texts(corpus, plan, found, true)
        data["fills"] = [fill_tables.summary(f) for f in found]
        data["true fills"] = [fill_tables.summary(f) for f in true]
    return LanguageReport(tuple(texts), tuple((c.scenario, c.told) for c in cells), data)


def judged(language: str, fills: Sequence[Fills], seed: int) -> str:
    """How many of the fills shown an outside judge refuses though it takes the true file."""
    judge = judge_of(language)
    if judge.missing:
        return f"{language}: outside judge {judge.name}: {judge.missing}"
    given = list(itertools.chain.from_iterable(f.shown for f in fills))
    given = random.Random(seed).sample(given, min(len(given), JUDGED))
    true = sorted({s.case.truth.data for s in given})
    accepted = {data for data, good in zip(true, judge.accepts(true), strict=True) if good}
    asked = [s for s in given if s.case.truth.data in accepted]
    refused = [s for s, good in zip(asked, judge.accepts([s.data for s in asked]), strict=True) if not good]
    return fill_tables.judged_told(language, judge.name, len(asked), refused)


def _cells(corpus: Corpus, plan: Plan) -> Iterator[Cell]:
    for scenario in scenarios_of(corpus.language.style):
        for kind in scenario.kinds if plan.has(scenario.name) else ():
            cell = measure(corpus, scenario, kind, plan.positions, plan.seed)
            if cell.count:
                yield cell


def _fills(corpus: Corpus, plan: Plan) -> tuple[list[Fills], list[Fills]]:
    """The spoiled and the true ones by kind."""
    found, true = [], []
    for kind, share in KINDS:
        count = max(round(plan.fills * share), 1)
        found.append(spoiled_fills(corpus, kind, count, plan.seed))
        true.append(true_fills(corpus, kind, _true(count), plan.seed))
    return found, true


def _fill_texts(corpus: Corpus, plan: Plan, found: Sequence[Fills], true: Sequence[Fills]) -> Iterator[str]:
    name = corpus.language.name
    yield fill_tables.fills_table(f"{name}: true texts spoiled", found)
    yield fill_tables.shown_told(found, plan.show)
    yield fill_tables.true_table(f"{name}: true texts as they are", true)
    yield fill_tables.refused_told(true, plan.show)
    if corpus.broken and corpus.language.style == "brace":
        broken = true_fills(corpus, "function_body", _true(plan.fills // 2), plan.seed, broken=True)
        yield fill_tables.true_table(
            f"{name}: the same in files that the grammar cannot read whole", [broken]
        )
    yield judged(name, found, plan.seed)


def _true(count: int) -> int:
    """How many true texts stand beside `count` spoiled ones: 300 bodies beside 500."""
    return max(count * 3 // 5, 1)


def _plain(cell: Cell) -> dict[str, Any]:
    """A cell as data, with its failures counted."""
    told = {f.name: getattr(cell, f.name) for f in dataclasses.fields(cell) if f.name != "failures"}
    return told | {"failures": tables.classes(cell)}
