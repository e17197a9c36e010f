"""Measure: fill cases by an engine or a baseline, and score the fills."""

import difflib
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from dg_lsp.bench import baselines
from dg_lsp.bench.holes import HOLES, Case
from dg_lsp.bench.projects import project_of
from dg_lsp.bench.score import METHODS, Score
from dg_lsp.context import search
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.fill import FillOptions, fill_gap
from dg_lsp.gaps import Edit, apply_edit
from dg_lsp.guard import check, fit
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings
from dg_lsp.source.lexer import line_start
from dg_lsp.source.python import STUB
from dg_lsp.source.shown import shown

KINDS = tuple(HOLES)
_BASELINES = ("retrieved", "ngram")
_SILENCE = 2.0  # seconds after which the progress is reported


async def measure(cases: Sequence[Case], methods: Sequence[str], settings: Settings) -> list[Score]:
    """The score of every case by every method. One fill before that is not counted, as a model's first one is slow."""
    scores = [_by_baseline(case, name) for name in methods if name in _BASELINES for case in cases]
    asked = [name for name in METHODS if name in methods and name not in _BASELINES]
    if not asked:
        return scores
    engine = LocalEngine.open(settings, _tell)
    try:
        await _by_engine(engine, cases[0], settings, asked[0])
        # One method after the other: a second request with the same prefix would find it in the cache.
        reported = time.monotonic()
        for name in asked:
            for number, case in enumerate(cases, start=1):
                scores.append(await _by_engine(engine, case, settings, name))
                if time.monotonic() - reported > _SILENCE:
                    reported = time.monotonic()
                    _tell(f"{number} of {len(cases)} holes are filled ({name})")
    finally:
        await engine.close()
    return scores


def _by_baseline(case: Case, method: str) -> Score:
    """The score of a baseline's fill."""
    index = project_of(case)
    start = time.perf_counter()
    if method == "retrieved":
        text = next((found.text for found in search(case.document, case.gap, index).texts), "")
    else:
        text = baselines.count_tokens(case.document, case.gap)
    seconds = time.perf_counter() - start
    edit = fit.make_edit(case.document, case.gap, text) if text.strip() else None
    return score_of(case, method, edit, Fill(text, milliseconds=seconds * 1000))


async def _by_engine(engine: Engine, case: Case, settings: Settings, method: str) -> Score:
    """Return the score of the engine's fill, made as a user gets it; its time is that from the gap to the edit."""
    options = FillOptions(
        index=project_of(case) if settings.related else None, like=case.truth if method == "given" else None
    )
    start = time.perf_counter()
    outcome = await fill_gap(engine, case.document, case.gap, settings, options)
    fill = replace(outcome.fill, milliseconds=(time.perf_counter() - start) * 1000)
    return replace(score_of(case, method, outcome.edit, fill), why=outcome.why)


def score_of(case: Case, method: str, edit: Edit | None, fill: Fill) -> Score:
    """The score of `edit`, which was made from `fill`; None is no edit."""
    text, truth = edit.text.strip() if edit else "", case.truth.strip()
    # `raise NotImplementedError` may be a right statement, but a body of nothing else is a stub.
    stub = case.kind == "function_body" and STUB.fullmatch(text.encode()) is not None
    offered = bool(text) and not stub
    return Score(
        case=case.name,
        kind=case.kind,
        method=method,
        truth=truth,
        text=text,
        filled=(apply_edit(case.document, edit) if edit else case.document).text,
        exact=edit is not None and _is_exact(case, edit.text),
        similarity=difflib.SequenceMatcher(None, text, truth, autojunk=False).ratio() if text else 0.0,
        offered=offered,
        parses=edit is not None and offered and not check.faults_of_edit(case.document, case.gap, edit),
        seconds=fill.milliseconds / 1000,
        steps=fill.steps,
        searched=fill.searched,
    )


def _is_exact(case: Case, text: str) -> bool:
    """Return whether `text` is the truth, without white space at its end, and at its start if the line has begun.

    After `x =` the fills `1` and ` 1` are the same; on an empty line `    x = 1` and `x = 1` are not.
    """
    data, start = case.document.data, case.gap.start
    if data[line_start(data, start) : start].strip():
        return text.strip() == case.truth.strip()
    return text.rstrip() == case.truth.rstrip()


def _tell(doing: str) -> None:
    print("dg-lsp:", shown(doing), file=sys.stderr, flush=True)
