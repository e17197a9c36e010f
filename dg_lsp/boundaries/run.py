"""The command `dg-lsp bench --gaps`: its options, what is measured in which order, and the output.

Prints each table as soon as it is measured; knows all the other modules of the package.
"""

import argparse
import dataclasses
import itertools
import json
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dg_lsp.boundaries import fill_tables, tables
from dg_lsp.boundaries.cells import Cell, measure
from dg_lsp.boundaries.fills import KINDS, Fills, Hole, holes, spoiled_fills, true_fills
from dg_lsp.boundaries.judges import judge_of
from dg_lsp.boundaries.real import real_fills
from dg_lsp.boundaries.scenarios import scenarios_of
from dg_lsp.boundaries.sizes import Size, measure_sizes
from dg_lsp.boundaries.sources import Corpus, find_corpus, parse_sources
from dg_lsp.options import UsageError
from dg_lsp.settings import Settings
from dg_lsp.text.language import known_languages

LENGTHS = (10_000, 100_000)
FILES = 150
JUDGED = 200
PARTS = ("sizes", "fills", "real")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dg-lsp bench` that belong to `--gaps`."""
    names = sorted({s.name for style in ("indent", "brace") for s in scenarios_of(style)})
    group = parser.add_argument_group("with --gaps")
    group.add_argument(
        "--gaps",
        action="store_true",
        help="measure instead whether gaps are chosen right in broken files of many languages, and whether fills fit",
    )
    group.add_argument(
        "--languages",
        default=",".join(known_languages()),
        metavar="NAMES",
        help="with commas (default: %(default)s)",
    )
    group.add_argument(
        "--positions",
        type=_whole,
        default=200,
        metavar="N",
        help="places for each scenario and kind (default: 200)",
    )
    group.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="LANGUAGE=DIR",
        help="sources of a language; may be repeated",
    )
    group.add_argument(
        "--only",
        default="",
        metavar="PARTS",
        help=f"with commas, of {', '.join((*names, *PARTS))} (default: all)",
    )
    group.add_argument(
        "--fills",
        type=_whole,
        default=1000,
        metavar="N",
        help="spoiled true texts for each language (default: 1000)",
    )
    group.add_argument(
        "--real",
        type=_whole,
        default=0,
        metavar="N",
        help="fills by the checkpoint for each language (default: none)",
    )
    group.add_argument(
        "--show",
        type=_whole,
        default=0,
        metavar="N",
        help="print so many failures of each cell (default: none)",
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Measure and print; 0 when there was something to measure.

    Raises:
        UsageError: a language, a source or a part is unknown, or no language has any sources.
    """
    given = parse_sources(arguments.source)
    parts = {part for part in arguments.only.split(",") if part}
    known = {s.name for style in ("indent", "brace") for s in scenarios_of(style)} | set(PARTS)
    if strange := parts - known:
        raise UsageError(f"--only knows no {', '.join(sorted(strange))}; it knows {', '.join(sorted(known))}")
    corpora = []
    for name in arguments.languages.split(","):
        corpus = find_corpus(name, given, FILES, settings.seed)
        if corpus.missing:
            _say(f"{name}: skipped, {corpus.missing}")
        else:
            corpora.append(corpus)
    if not corpora:
        raise UsageError("no language has any sources; give some with --source LANGUAGE=DIR")
    report = _measure(arguments, settings, corpora, parts)
    if arguments.json:
        text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
        Path(arguments.json).write_text(text, encoding="utf-8")
    return 0


def _measure(
    arguments: argparse.Namespace, settings: Settings, corpora: Sequence[Corpus], parts: set[str]
) -> dict[str, Any]:
    """Everything that is asked for, table by table."""
    seed = settings.seed
    cells: list[Cell] = []
    for corpus in corpora:
        wanted = [s for s in scenarios_of(corpus.language.style) if not parts or s.name in parts]
        made = [measure(corpus, s, kind, arguments.positions, seed) for s in wanted for kind in s.kinds]
        made = [cell for cell in made if cell.count]
        if made:
            _say(tables.cells_table(corpus.language.name, made))
            _say(tables.classes_told(made))
            _say(tables.failures_told(made, arguments.show))
        cells += made
    _say(tables.scenarios_told(cells) if cells else "")
    sizes: list[Size] = []
    if not parts or "sizes" in parts:
        for corpus in corpora:
            sizes += measure_sizes(corpus, LENGTHS, arguments.positions, seed)
        _say(tables.sizes_table(sizes))
    fills: list[dict[str, Any]] = []
    if not parts or "fills" in parts:
        for corpus in corpora:
            fills += _fills(corpus, arguments, seed)
    real: list[Fills] = []
    if arguments.real:
        asked: dict[tuple[str, str], Iterable[Hole]] = {
            (c.language.name, kind): holes(c, kind, max(round(arguments.real * share), 1), seed + 2)
            for c in corpora
            for kind, share in KINDS
        }
        real = real_fills(
            asked, settings, lambda doing: print(f"dg-lsp: {doing}", file=sys.stderr, flush=True)
        )
        _say(fill_tables.fills_table("fills by the checkpoint", real))
        _say(fill_tables.shown_told(real, arguments.show))
        for corpus in corpora:
            mine = [f for f in real if f.language == corpus.language.name]
            _say(_judged(corpus, mine, seed))
    return {
        "cells": [_plain(c) for c in cells],
        "sizes": [dataclasses.asdict(s) for s in sizes],
        "fills": fills,
        "real": [fill_tables.summary(f) for f in real],
    }


def _fills(corpus: Corpus, arguments: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    """The spoiled and the true texts of one language, and what its judge says of those that are shown: as data."""
    name = corpus.language.name
    made = []
    for kind, share in KINDS:
        made.append(spoiled_fills(corpus, kind, max(round(arguments.fills * share), 1), seed))
    _say(fill_tables.fills_table(f"{name}: true texts spoiled", made))
    _say(fill_tables.shown_told(made, arguments.show))
    true = [
        true_fills(corpus, kind, max(round(arguments.fills * share / 3), 1), seed) for kind, share in KINDS
    ]
    _say(fill_tables.true_table(f"{name}: true texts as they are", true))
    _say(fill_tables.refused_told(true, arguments.show))
    if corpus.broken and corpus.language.style == "brace":
        broken = [true_fills(corpus, "function_body", max(arguments.fills // 3, 1), seed, broken=True)]
        _say(fill_tables.true_table(f"{name}: the same in files that the grammar cannot read whole", broken))
    _say(_judged(corpus, made, seed))
    return [fill_tables.summary(f) for f in (*made, *true)]


def _judged(corpus: Corpus, fills: Sequence[Fills], seed: int) -> str:
    """How many of the fills shown an outside judge refuses though it takes the true file."""
    name = corpus.language.name
    judge = judge_of(name)
    if judge.missing:
        return f"{name}: outside judge {judge.name}: {judge.missing}"
    given = list(itertools.chain.from_iterable(f.shown for f in fills))
    given = random.Random(seed).sample(given, min(len(given), JUDGED))
    true = sorted({s.case.truth.data for s in given})
    accepted = {data for data, good in zip(true, judge.accepts(true), strict=True) if good}
    asked = [s for s in given if s.case.truth.data in accepted]
    refused = [s for s, good in zip(asked, judge.accepts([s.data for s in asked]), strict=True) if not good]
    return fill_tables.judged_told(name, judge.name, len(asked), refused)


def _plain(cell: Cell) -> dict[str, Any]:
    """A cell as data, with its failures counted."""
    told = {f.name: getattr(cell, f.name) for f in dataclasses.fields(cell) if f.name != "failures"}
    return told | {"failures": tables.classes(cell)}


def _say(text: str) -> None:
    if text:
        print(text, end="\n\n", flush=True)


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"takes a whole number, not {text!r}")
    return int(text)
