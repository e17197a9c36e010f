"""The share of right gaps at frozen places: `python -m benchmarks.gaps.table choose|judge|compare`.

`choose` freezes places (see `places`), `judge` writes a record for each place, condition and kind asked for and prints
the shares, and `compare` prints the paired differences of two such files, of two versions of the code.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import Any

from benchmarks.gaps.closed import is_bracketed
from benchmarks.gaps.places import Spot, choose, loaded, sampled, saved
from benchmarks.gaps.sources import FILES, find_corpus, parse_sources
from benchmarks.gaps.user_judge import judged
from dg_lsp.bench.score import quantile, table

CONDITIONS = ("typing", "disk", "editor")
LANGUAGES = ("python", "typescript", "java", "go", "rust", "c", "cpp", "csharp", "javascript")
# Places of one language that a process judges in one go.
_BATCH = 500
Key = tuple[str, str, str]


def main(argv: Sequence[str] | None = None) -> int:
    """Do what `argv` says; 0 when there was something to do."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps.table", description=__doc__)
    commands = parser.add_subparsers(required=True)
    chooser = commands.add_parser("choose", help="freeze places in valid files")
    chooser.set_defaults(run=_choose)
    chooser.add_argument("places", type=Path)
    chooser.add_argument("--languages", default=",".join(LANGUAGES))
    chooser.add_argument("--source", action="append", default=[], metavar="LANGUAGE=DIR")
    chooser.add_argument("--count", type=int, default=3_000, help="places a language (default: %(default)s)")
    chooser.add_argument("--seed", type=int, default=0)
    chooser.add_argument(
        "--bracketed",
        action="store_true",
        help="only places whose line has opened brackets, for benchmarks.gaps.closed",
    )
    judge = commands.add_parser("judge", help="judge the gaps at frozen places")
    judge.set_defaults(run=_judge)
    judge.add_argument("places", type=Path)
    judge.add_argument("records", type=Path)
    judge.add_argument("--sample", type=int, help="only so many places a language and condition")
    judge.add_argument("--languages", default="", help="with commas (default: all)")
    judge.add_argument("--conditions", default=",".join(CONDITIONS))
    judge.add_argument("--jobs", type=int, default=1)
    judge.add_argument(
        "--show", type=int, default=0, help="wrong gaps of each language and condition to name"
    )
    compare = commands.add_parser("compare", help="print the paired differences of two files of records")
    compare.set_defaults(run=_compare)
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument("--show", type=int, default=0, help="ids to name of each change for the worse")
    arguments = parser.parse_args(argv)
    return int(arguments.run(arguments))


def _choose(arguments: argparse.Namespace) -> int:
    files: dict[str, str] = {}
    spots: list[Spot] = []
    given = parse_sources(arguments.source)
    for name in arguments.languages.split(","):
        corpus = find_corpus(name, given, FILES, arguments.seed)
        texts, found = choose(
            corpus, arguments.count, arguments.seed, is_bracketed if arguments.bracketed else None
        )
        files |= texts
        spots += found
        print(f"{name}: {len(found)} places in {len(texts)} files {corpus.missing}", flush=True)
    saved(arguments.places, files, spots)
    return 0 if spots else 1


def _judge(arguments: argparse.Namespace) -> int:
    files, spots = loaded(arguments.places)
    conditions = arguments.conditions.split(",")
    if arguments.languages:
        spots = [s for s in spots if s.language in arguments.languages.split(",")]
    # Typing and damage are sampled apart, so that a small sample has both.
    spots = [s for s in spots if ("typing" if s.own == len(s.changes) else "disk") in _groups(conditions)]
    if arguments.sample:
        kinds = [[s for s in spots if (s.own == len(s.changes)) == typing] for typing in (True, False)]
        spots = [s for group in kinds for s in sampled(group, arguments.sample)]
    batches = [spots[at : at + _BATCH] for at in range(0, len(spots), _BATCH)]
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        texts = [{s.file: files[s.file] for s in batch} for batch in batches]
        for records in pool.map(_records, batches, texts, repeat(conditions)):
            found += records
            print(f"{records[-1]['language']}: {len(found)} records", flush=True)
    arguments.records.write_text(json.dumps(found), encoding="utf-8")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in found:
        groups.setdefault((record["language"], record["condition"]), []).append(record)
    print(table([("language", "condition", "n", "right %", "p95 ms"), *map(_shares, groups.values())]))
    for records in groups.values():
        for record in [r for r in records if not r["right"]][: arguments.show]:
            print(record["id"], record["condition"], record["asked"] or "(none)", record["how"], sep=": ")
    return 0 if found else 1


def _shares(records: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the row of the records of one language and condition."""
    right = f"{100 * sum(r['right'] for r in records) / len(records):.1f}"
    slow = quantile(sorted(r["ms"] for r in records), 0.95)
    return records[0]["language"], records[0]["condition"], str(len(records)), right, f"{slow:.1f}"


def _groups(conditions: Sequence[str]) -> set[str]:
    return {"typing" if c == "typing" else "disk" for c in conditions}


def _records(spots: Sequence[Spot], texts: dict[str, str], conditions: Sequence[str]) -> list[dict[str, Any]]:
    # The places of one file share its tree.
    ordered = sorted(spots, key=lambda s: s.file)
    return [asdict(record) for s in ordered for record in judged(s, texts[s.file], conditions)]


def _compare(arguments: argparse.Namespace) -> int:
    before, after = (_by_key(path) for path in (arguments.before, arguments.after))
    both = [key for key in before if key in after]
    rows = []
    for condition in CONDITIONS:
        keys = [key for key in both if key[1] == condition]
        languages = dict.fromkeys(before[key]["language"] for key in keys)
        for asked in dict.fromkeys(key[2] for key in keys):
            for language in (*languages, "all"):
                own = [k for k in keys if k[2] == asked and language in ("all", before[k]["language"])]
                rows.append((condition, language, asked or "(none)", *_row(before, after, own)))
        for language in languages:
            own = [k for k in keys if before[k]["language"] == language]
            rows.append((condition, language, "both", *_row(before, after, own)))
        if keys:
            rows.append((condition, "all", "both", *_row(before, after, keys)))
    print(table([("condition", "language", "asked", "n", "before %", "after %", "diff", "only before", "only after",
                  "p50", "p50 after", "p95", "p95 after"), *rows]))  # fmt: skip
    if arguments.show:
        print("\n".join(_worse(before, after, both, arguments.show)))
    return 0 if both else 1


def _row(before: dict[Key, Any], after: dict[Key, Any], keys: Sequence[Key]) -> tuple[str, ...]:
    """Shares of right ones, who is right alone, and times, of the records of `keys`."""
    pairs = Counter((before[key]["right"], after[key]["right"]) for key in keys)
    count = max(len(keys), 1)
    first = 100 * (pairs[True, True] + pairs[True, False]) / count
    second = 100 * (pairs[True, True] + pairs[False, True]) / count
    times = [sorted(found[key]["ms"] for key in keys) or [0.0] for found in (before, after)]
    ranks = [f"{quantile(taken, share):.1f}" for share in (0.5, 0.95) for taken in times]
    shares = f"{first:.2f}", f"{second:.2f}", f"{second - first:+.2f}"
    return str(len(keys)), *shares, str(pairs[True, False]), str(pairs[False, True]), *ranks


def _worse(before: dict[Key, Any], after: dict[Key, Any], keys: Sequence[Key], count: int) -> Iterator[str]:
    """The first `count` records of each language and condition that were right and are not."""
    seen: Counter[tuple[str, str]] = Counter()
    for key in keys:
        if before[key]["right"] and not after[key]["right"]:
            group = before[key]["language"], key[1]
            seen[group] += 1
            if seen[group] <= count:
                yield f"{' '.join(key)}: {after[key]['how']}"


def _by_key(path: Path) -> dict[Key, Any]:
    records = json.loads(path.read_text(encoding="utf-8"))
    return {(r["id"], r["condition"], r["asked"]): r for r in records}


if __name__ == "__main__":
    raise SystemExit(main())
