"""`python -m benchmarks.gaps`: its options, its languages in processes, its output.

Prints the tables of each language as soon as they are there; what is measured is in `language_report`.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from benchmarks.gaps import fill_tables, tables
from benchmarks.gaps.fills import KINDS, holes
from benchmarks.gaps.language_report import FILES, PARTS, LanguageReport, Plan, judged, report_of
from benchmarks.gaps.real import real_fills
from benchmarks.gaps.scenarios import scenarios_of
from benchmarks.gaps.sources import find_corpus, parse_sources
from dg_lsp.cli import options
from dg_lsp.settings import Settings, UsageError
from dg_lsp.text.languages.language import known_languages

# name, default, sentence
_NUMBERS = (
    ("positions", 200, "places for each scenario and kind"),
    ("fills", 1000, "true texts of each language that are spoiled and filled in"),
    ("real", 0, "fills by the checkpoint for each language"),
    ("show", 0, "failures of each cell to print"),
    ("jobs", 1, "languages to measure at once; times are worth something only with 1"),
)


def add_arguments(group: argparse.ArgumentParser) -> None:
    """The options."""
    options.add_settings(group)
    group.add_argument("--json", metavar="FILE", help="also write everything to FILE")
    known = ",".join(known_languages())
    group.add_argument(
        "--languages", default=known, metavar="NAMES", help="with commas (default: %(default)s)"
    )
    group.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="LANGUAGE=DIR",
        help="sources of a language; may be repeated",
    )
    parts = ", ".join((*_scenarios(), *PARTS))
    group.add_argument("--only", default="", metavar="PARTS", help=f"with commas, of {parts} (default: all)")
    for name, default, sentence in _NUMBERS:
        told = f"{sentence} (default: {default})"
        group.add_argument(f"--{name}", type=_whole, default=default, metavar="N", help=told)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Measure and print; 0 when there was something to measure.

    Raises:
        UsageError: a language, a source or a part is unknown, or no language has any sources.
        EngineError: the checkpoint cannot be used.
    """
    parts = frozenset(part for part in arguments.only.split(",") if part)
    if strange := parts - {*_scenarios(), *PARTS}:
        known = ", ".join((*_scenarios(), *PARTS))
        raise UsageError(f"--only knows no {', '.join(sorted(strange))}; it knows {known}")
    numbers = (arguments.positions, arguments.fills, arguments.show, settings.seed)
    plan = Plan(parse_sources(arguments.source), parts, *numbers)
    names = [name for name in arguments.languages.split(",") if name]
    told: dict[tuple[str, str], None] = {}
    data = []
    for report in _reports(names, plan, arguments.jobs):
        _say(*report.texts)
        told |= dict.fromkeys(report.told)
        data += [report.data] if report.data else []
    if not data:
        raise UsageError("no language has any sources; give some with --source LANGUAGE=DIR")
    _say(tables.scenarios_told(list(told)))
    measured: dict[str, Any] = {"languages": data, "real": _real(names, plan, arguments.real, settings)}
    if arguments.json:
        text = json.dumps(measured, indent=1, ensure_ascii=False) + "\n"
        Path(arguments.json).write_text(text, encoding="utf-8")
    return 0


def _reports(names: Sequence[str], plan: Plan, jobs: int) -> Iterator[LanguageReport]:
    if jobs < 2:
        yield from map(report_of, names, repeat(plan))
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(report_of, names, repeat(plan))


def _real(names: Sequence[str], plan: Plan, count: int, settings: Settings) -> list[dict[str, Any]]:
    """What the checkpoint fills in, printed and as data; nothing where it is not asked for."""
    if not count:
        return []
    found = [corpus for name in names if (corpus := find_corpus(name, plan.given, FILES, plan.seed)).valid]
    asked = {
        (corpus.language.name, str(kind)): list(
            holes(corpus, kind, max(round(count * share), 1), plan.seed + 2)
        )
        for corpus in found
        for kind, share in KINDS
    }
    real = real_fills(asked, settings, _tell)
    _say(fill_tables.fills_table("fills by the checkpoint", real), fill_tables.shown_told(real, plan.show))
    for corpus in found:
        name = corpus.language.name
        _say(judged(name, [f for f in real if f.language == name], plan.seed))
    return [fill_tables.summary(f) for f in real]


def _scenarios() -> list[str]:
    return sorted({s.name for style in ("indent", "brace") for s in scenarios_of(style)})


def _say(*texts: str) -> None:
    for text in texts:
        if text:
            print(text, end="\n\n", flush=True)


def _tell(doing: str) -> None:
    print(f"dg-lsp: {doing}", file=sys.stderr, flush=True)


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"takes a whole number, not {text!r}")
    return int(text)
