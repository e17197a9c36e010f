"""`dg-lsp bench`: fill holes whose text is known, and report quality and times beside baselines."""

import argparse
import asyncio
import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dg_lsp.bench import files, humaneval, lists
from dg_lsp.bench.holes import HOLES, Case
from dg_lsp.bench.measure import measure
from dg_lsp.bench.score import METHODS, as_text, make_report
from dg_lsp.cli import options
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import Waiting
from dg_lsp.files.writing import write_whole
from dg_lsp.settings import UsageError

KINDS = tuple(HOLES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp bench`."""
    options.explain(
        parser,
        "Make holes in real files, fill them, and report how often the fill is right and how long it takes. The model "
        "is loaded in this process.",
        "dg-lsp bench --cases 20 --json report.json",
        "0 measured, 2 usage or bad input, 130 interrupted",
    )
    parser.add_argument(
        "--cases", type=_count, default=20, metavar="N", help="holes of each kind (default: 20)"
    )
    parser.add_argument(
        "--kinds",
        metavar="KINDS",
        help=f"kinds of holes, with commas (default: {','.join(KINDS)}; with --humaneval: "
        f"{','.join(humaneval.KINDS)})",
    )
    explained = "; ".join(f"{name}: {sentence}" for name, sentence in METHODS.items())
    parser.add_argument(
        "--methods", default=",".join(METHODS), help=f"with commas (default: all). {explained}"
    )
    parser.add_argument(
        "--files",
        nargs="+",
        metavar="FILE",
        help="make holes in these Python files, or those in these folders, instead of the held-out files",
    )
    parser.add_argument(
        "--holes", type=Path, metavar="FILE", help="fill the holes of this list instead of the shipped one"
    )
    parser.add_argument(
        "--write-holes", type=Path, metavar="FILE", help="only write the list of the holes, for --holes"
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


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when there was something to measure."""
    options.check_output(arguments.json)
    options.check_output(arguments.write_holes)
    known = humaneval.KINDS if arguments.humaneval else KINDS
    methods, named = _choice(arguments.methods, METHODS), _choice(arguments.kinds or ",".join(known), known)
    kinds = [kind for kind in known if kind in named]
    settings = options.settings_of(arguments)
    with Waiting("reading the files"):
        tests, cases, skipped = _cases(arguments, kinds, settings.seed, settings.exclude)
    if not cases:
        why = "".join(f" ({reason})" for reason in skipped[:1])
        raise UsageError(f"there is nothing to fill in these files{why}; name others with --files")
    if arguments.write_holes:
        lists.write(arguments.write_holes, cases)
        return 0
    with Waiting("measuring"):
        scores = asyncio.run(measure(cases, methods, settings))
        if arguments.execute:
            limits = humaneval.Limits(arguments.timeout, arguments.memory << 20)
            scores = [
                replace(
                    s, passed=s.offered and humaneval.execute(s.filled + tests[s.case], limits) == "passed"
                )
                for s in scores
            ]
    report = make_report(scores, settings) | {"files_skipped": skipped}
    show(as_text(report))
    if arguments.json:
        text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
        write_whole(Path(arguments.json), text.encode("utf-8", "replace"))
    return 0


def _cases(
    arguments: argparse.Namespace, kinds: Sequence[str], seed: int, exclude: Sequence[str]
) -> tuple[dict[str, str], list[Case], list[str]]:
    """Return the tests by the names of their cases, the cases, and the skipped files with the reasons."""
    if arguments.humaneval:
        if arguments.execute and not hasattr(os, "killpg"):
            raise UsageError(
                "--execute needs process groups and limits, which this system does not have; use Linux or macOS"
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
        found = files.read_files(arguments.files, exclude)
        cases = lists.choose(found.documents, kinds, arguments.cases, seed)
        return {}, cases, list(found.skipped)
    return {}, *lists.read(arguments.holes or lists.shipped(), kinds, arguments.cases)


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
