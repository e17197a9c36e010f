"""`dg-lsp bench`: fill holes whose content is known, and report how well, how fast, and against what.

One path for held-out files, files of one's own and HumanEval-Infilling: cases, methods, scores, one table.
"""

import argparse
import asyncio
import difflib
import json
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from dg_lsp import baselines, evaluation, humaneval, located, options
from dg_lsp.boundaries import run as boundaries
from dg_lsp.holes import HOLES, Case
from dg_lsp.host.base import Engine, settle
from dg_lsp.host.local import LocalEngine
from dg_lsp.options import UsageError
from dg_lsp.score import METHODS, Score, as_text, make_report
from dg_lsp.settings import Settings
from dg_lsp.text import edits, prompt, syntax
from dg_lsp.text.messages import Fill
from dg_lsp.text.offside_bodies import STUB

KINDS = tuple(HOLES)
_BASELINES = {"copy": baselines.copy_near, "ngram": baselines.count_tokens}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dg-lsp bench`."""
    parser.epilog = "Example: dg-lsp bench --cases 20 --json report.json. Exit codes: 0, or 2 for bad input."
    parser.add_argument(
        "--cases", type=_count, default=20, metavar="N", help="holes of each kind (default: 20)"
    )
    parser.add_argument(
        "--kinds", default=",".join(KINDS), help="kinds of holes, with commas (default: %(default)s)"
    )
    told = "; ".join(f"{name}: {sentence}" for name, sentence in METHODS.items())
    parser.add_argument("--methods", default=",".join(METHODS), help=f"with commas (default: all). {told}")
    parser.add_argument(
        "--files", nargs="+", metavar="FILE", help="make holes in these instead of the held-out files"
    )
    parser.add_argument(
        "--holes", type=Path, metavar="FILE", help="fill the holes of this list instead of the shipped one"
    )
    parser.add_argument(
        "--write-holes", type=Path, metavar="FILE", help="only write the list of the holes, for --holes"
    )
    parser.add_argument(
        "--bits",
        action="store_true",
        help="print bits a byte of the holes' true contents instead of filling them",
    )
    parser.add_argument(
        "--engine",
        action="store_true",
        help="race the engine against transformers' generate and diffusers' pipeline instead, and time whole fills",
    )
    parser.add_argument(
        "--repeats", type=_count, default=5, metavar="N", help="with --engine: turns that count (default: 5)"
    )
    parser.add_argument("--json", metavar="FILE", help="also write everything, each case included, to FILE")
    parser.add_argument(
        "--humaneval", metavar="FILE", help="fill the tasks of a HumanEval-Infilling .jsonl or .jsonl.gz"
    )
    parser.add_argument(
        "--execute",
        action="store_true",
        help="with --humaneval: run the filled programs and report pass@1. They are a model's code, run with "
        "limits on time and memory but with your rights: use a container",
    )
    parser.add_argument(
        "--timeout", type=float, default=10.0, metavar="S", help="seconds a program may run (default: 10)"
    )
    parser.add_argument(
        "--memory", type=_count, default=2048, metavar="MB", help="memory it may take (default: 2048)"
    )
    options.add_settings(parser)
    boundaries.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when there was something to measure.

    Raises:
        UsageError, SettingsError, EngineError: an argument, a setting or the checkpoint cannot be used.
    """
    methods, named = _choice(arguments.methods, METHODS), _choice(arguments.kinds, KINDS)
    kinds = [kind for kind in KINDS if kind in named]
    settings = options.settings_of(arguments)
    if arguments.gaps:
        return boundaries.run(arguments, settings)
    tests, cases, skipped = _cases(arguments, kinds, settings.seed)
    if not cases:
        raise UsageError("there is nothing to fill in these files; name others with --files")
    if arguments.write_holes:
        evaluation.write(arguments.write_holes, cases)
        return 0
    if arguments.bits:
        from dg_lsp import bits  # noqa: PLC0415  (the other methods may do without torch)

        return bits.run(arguments, cases, settings)
    if arguments.engine:
        from dg_lsp import race  # noqa: PLC0415  (as above)

        return race.run(arguments, cases, settings)
    scores = asyncio.run(measure(cases, methods, settings))
    if arguments.execute:
        limits = humaneval.Limits(arguments.timeout, arguments.memory << 20)
        scores = [
            replace(s, passed=humaneval.execute(s.filled + tests[s.case], limits) == "passed") for s in scores
        ]
    report = make_report(scores, settings) | {"files_skipped": skipped}
    print(as_text(report))
    if arguments.json:
        Path(arguments.json).write_text(
            json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return 0


def _cases(
    arguments: argparse.Namespace, kinds: Sequence[str], seed: int
) -> tuple[dict[str, str], list[Case], list[str]]:
    """The tests by the name of their case, the cases, and which files were skipped and why."""
    if arguments.humaneval:
        if arguments.execute and not hasattr(os, "killpg"):
            raise UsageError(
                "--execute needs process groups and limits, which this system lacks; use Linux or macOS"
            )
        tasks = humaneval.read_tasks(Path(arguments.humaneval))
        cases = []
        for kind in kinds:
            like = [task.case for task in tasks if task.case.kind == kind]
            cases += random.Random(seed).sample(like, min(arguments.cases, len(like)))
        return {task.case.name: task.check for task in tasks}, cases, []
    if arguments.execute:
        raise UsageError("--execute runs the tests of --humaneval FILE; give that, too")
    if arguments.files:
        found = located.read_files(arguments.files)
        cases = evaluation.choose(found.documents, kinds, arguments.cases, seed)
        return {}, cases, list(found.skipped)
    return {}, *evaluation.read(arguments.holes or evaluation.shipped(), kinds, arguments.cases)


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
    edit = edits.make_edit(case.document, case.gap, text) if text.strip() else None
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


def score_of(case: Case, method: str, edit: edits.Edit | None, fill: Fill) -> Score:
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
        filled=(edits.apply_edit(case.document, edit) if edit else case.document).text,
        exact=text == truth,
        similarity=difflib.SequenceMatcher(None, text, truth, autojunk=False).ratio() if text else 0.0,
        offered=offered,
        parses=edit is not None and offered and not syntax.faults_of_edit(case.document, case.gap, edit),
        seconds=fill.milliseconds / 1000,
        steps=fill.steps,
        searched=fill.searched,
    )


def _choice(text: str, known: Sequence[str] | Mapping[str, Any]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise UsageError(f"{text!r}: name some of {', '.join(known)}, with commas between")
    return names


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"takes a whole number from 1, not {text!r}")
    return int(text)


def _tell(doing: str) -> None:
    print(f"dg-lsp: {doing}", file=sys.stderr, flush=True)
