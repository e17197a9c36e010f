"""Every case by every method: fills of an engine and of two baselines, scored.

One path for held-out files, files of one's own and HumanEval-Infilling: cases, methods, scores.
"""

import difflib
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from dg_lsp.bench import baselines
from dg_lsp.bench.holes import HOLES, Case
from dg_lsp.bench.score import METHODS, Score
from dg_lsp.host.base import Engine, settle
from dg_lsp.host.local import LocalEngine
from dg_lsp.settings import Settings
from dg_lsp.text.documents.lines import line_start
from dg_lsp.text.fills import check, fit
from dg_lsp.text.fills.edit import Edit, apply_edit
from dg_lsp.text.messages import Fill
from dg_lsp.text.prompts import prompt
from dg_lsp.text.syntax.indented_bodies import STUB

KINDS = tuple(HOLES)
_BASELINES = {"copy": baselines.copy_near, "ngram": baselines.count_tokens}


async def measure(cases: Sequence[Case], methods: Sequence[str], settings: Settings) -> list[Score]:
    """Every case by every method. The model is asked once uncounted, as its first answer is the slowest."""
    scores = [_by_baseline(case, name) for name in methods if name in _BASELINES for case in cases]
    asked = [name for name in METHODS if name in methods and name not in _BASELINES]
    if not asked:
        return scores
    engine = LocalEngine.open(settings, _tell)
    try:
        await _by_engine(engine, cases[0], settings, asked[0])
        # A method at a time: of two questions about one prefix in a row the second would profit from it.
        for name in asked:
            for number, case in enumerate(cases, start=1):
                scores.append(await _by_engine(engine, case, settings, name))
                if number % 20 == 0:
                    _tell(f"{name}: {number} of {len(cases)}")
    finally:
        await engine.close()
    return scores


def _by_baseline(case: Case, method: str) -> Score:
    start = time.perf_counter()
    text = _BASELINES[method](case.document, case.gap)
    seconds = time.perf_counter() - start
    edit = fit.make_edit(case.document, case.gap, text) if text.strip() else None
    return score_of(case, method, edit, Fill(text, milliseconds=seconds * 1000))


async def _by_engine(engine: Engine, case: Case, settings: Settings, method: str) -> Score:
    """Ask the engine as `fill` does; the time is the caller's, from the request to the Fill."""
    request = prompt.build(case.document, case.gap, settings)
    request = replace(request, like=case.truth if method == "given" else None)
    start = time.perf_counter()
    fill = Fill("", refusal="the engine gave no answer")
    async with aclosing(engine.infill(request)) as events:
        async for event in events:
            if isinstance(event, Fill):
                fill = event
    fill = replace(fill, milliseconds=(time.perf_counter() - start) * 1000)
    outcome = settle(case.document, case.gap, fill)
    return replace(score_of(case, method, outcome.edit, fill), why=outcome.why)


def score_of(case: Case, method: str, edit: Edit | None, fill: Fill) -> Score:
    """What `edit`, made of `fill`, is worth against the truth."""
    text, truth = edit.text.strip() if edit else "", case.truth.strip()
    # One statement may well be `raise NotImplementedError`; a body that is nothing else is not written.
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
    """Whether `text` is the truth, white space at its end apart, and at its beginning if the gap's line has begun.

    Behind `x =` the fills `1` and ` 1` are the same; on an empty line `    x = 1` and `x = 1` are not.
    """
    data, start = case.document.data, case.gap.start
    if data[line_start(data, start) : start].strip():
        return text.strip() == case.truth.strip()
    return text.rstrip() == case.truth.rstrip()


def _tell(doing: str) -> None:
    print(f"dg-lsp: {doing}", file=sys.stderr, flush=True)
