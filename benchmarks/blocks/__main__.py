"""Statements of several lines and empty blocks as an editor gets them, out of code newer than the models.

    python -m benchmarks.blocks SOURCES --checkpoint coder-0.5b --languages python go --count 25 --report out.json
    python -m benchmarks.blocks SOURCES --checkpoint coder-0.5b --languages python go --count 25 --raw
    python -m benchmarks.blocks --tables out.json raw.json

A text of 1 to 8 lines is taken out of a file, the rest of which stays, and ghost text is asked for: `empty`, unasked on
the empty line of a statement; `word`, after its first word; `header`, on the empty line of a block, or between two
brackets; `rest`, unasked where all further statements of a block are gone; `key`, by key on the empty line. With
`--look`, shown text may grow for some seconds. `--raw` asks the network itself at the same places. Packages that are
missing in SOURCES are fetched into it; nothing of them is run.
"""

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import parser_of
from benchmarks.blocks import raw, wire
from benchmarks.blocks.places import Place, places
from benchmarks.blocks.score import HEAD, Row, Score, row_of, score
from benchmarks.blocks.sources import SETS, SUFFIXES, fetch, files, packages
from benchmarks.blocks.wire import Answer
from benchmarks.server import stop_all

SITUATIONS = ("empty", "word", "header", "key", "rest")
_FORMS = {"header": ("block", "brackets"), "rest": ("rest",)}


def chosen(given: argparse.Namespace, language: str, situation: str) -> list[Place]:
    """Return the places of a situation in a language; those of `empty`, `word` and `key` are the same."""
    sources = given.sources.resolve() / given.set
    roots = [
        (package.root(sources), files(package, sources))
        for package in packages(given.set, language)
        if fetch(package, sources)
    ]
    forms = _FORMS.get(situation, ("statement",))
    return list(islice(places(roots, language, forms, given.seed), given.count))


def asked(
    given: argparse.Namespace, found: Sequence[Place], situation: str
) -> Iterator[tuple[Place, Answer]]:
    """Yield the answer at each of the places `found`, of the product or of the network itself."""
    if given.raw:
        return raw.answers(found, situation, given.checkpoint)
    options = {} if given.deadline == "usual" else {"ghostDeadline": 0}
    return wire.answers(found, situation, given.checkpoint, options, given.look)


def measure(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a record of each place: what was taken out, what is offered, and its score."""
    for language in given.languages:
        for situation in given.situations:
            for place, answer in asked(given, chosen(given, language, situation), situation):
                truth = place.truth.removeprefix(place.word if situation == "word" else "")
                record = {
                    "language": language,
                    "situation": situation,
                    "form": place.form,
                    "place": f"{place.root.name} {place.name}",
                    "truth": truth,
                    "offered": answer.grown or answer.text,
                    "at once": answer.text,
                    "seconds": round(answer.seconds, 3),
                    "why": answer.why,
                    **asdict(score(answer.grown or answer.text, truth)),
                }
                print(json.dumps(record), flush=True)
                yield record


def rows(cases: Sequence[dict[str, Any]]) -> dict[tuple[str, str], Row]:
    """Return the Row of each situation and language of `cases`."""
    found: dict[tuple[str, str], Row] = {}
    for key in dict.fromkeys((case["situation"], case["language"]) for case in cases):
        own = [case for case in cases if (case["situation"], case["language"]) == key]
        scores = [Score(**{name: case[name] for name in Score.__slots__}) for case in own]
        found[key] = row_of(scores, [case["seconds"] for case in own if case["offered"]])
    return found


def table(reports: Sequence[dict[str, Any]]) -> str:
    """Return a table of `reports`, with the rows of a situation and language side by side."""
    head = ("situation", "language", "asked", *HEAD)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    all_rows = [(report["asked"], rows(report["cases"])) for report in reports]
    for key in dict.fromkeys(key for _, own in all_rows for key in own):
        for name, own in all_rows:
            if key in own:
                lines.append(f"| {' | '.join((*key, name, *own[key].cells()))} |")
    return "\n".join(lines)


def _report(given: argparse.Namespace, cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the report of `cases` as JSON holds it."""
    numbers = [
        {"situation": situation, "language": language, **row.record()}
        for (situation, language), row in rows(cases).items()
    ]
    about = {name: getattr(given, name) for name in ("checkpoint", "set", "seed", "deadline", "look")}
    name = f"{given.checkpoint}{', raw' if given.raw else ''}"
    return {"asked": name, **about, "load": os.getloadavg()[0], "rows": numbers, "cases": list(cases)}


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    parser.add_argument("sources", type=Path, nargs="?", help="the folder of the packages")
    parser.add_argument("--checkpoint", default="coder-0.5b")
    parser.add_argument("--languages", nargs="+", choices=SUFFIXES, default=list(SUFFIXES))
    parser.add_argument("--situations", nargs="+", choices=SITUATIONS, default=list(SITUATIONS))
    parser.add_argument("--count", type=int, default=25, help="places of a language and situation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", choices=SETS, default="fit", help="`new` is for what is reported")
    parser.add_argument("--deadline", choices=("usual", "none"), default="usual")
    parser.add_argument("--look", type=float, default=0.0, help="seconds in which shown text may grow")
    parser.add_argument("--raw", action="store_true", help="ask the network itself")
    parser.add_argument("--report", type=Path, help="also write the numbers and each place to this file")
    parser.add_argument(
        "--tables", type=Path, nargs="+", help="measure nothing; print the table of these reports"
    )
    return parser


def main() -> None:
    parser = _parser()
    given = parser.parse_args()
    if given.tables:
        print(table([json.loads(path.read_text("utf-8")) for path in given.tables]))
        return
    if given.sources is None:
        parser.error("name the folder of the packages, or reports after --tables")
    os.environ["DG_LSP_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="dg-")
    try:
        report = _report(given, list(measure(given)))
    finally:
        stop_all()
        shutil.rmtree(os.environ["DG_LSP_RUNTIME_DIR"], ignore_errors=True)
    if given.report:
        given.report.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(table([report]))


if __name__ == "__main__":
    main()
