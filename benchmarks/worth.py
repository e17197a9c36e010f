"""Fills worth accepting: the fills of this code and of an older commit's over one list of holes, compared.

    python -m benchmarks.worth run shipped OUT.jsonl --code CHECKOUT
    python -m benchmarks.worth run benchmarks/unseen/new.json OUT.jsonl --folder FOLDER
    python -m benchmarks.worth report BEFORE.jsonl AFTER.jsonl

`run` fills every hole once: length unknown, no deadline, one torch thread, repeatable. `report` gives for each kind
the exact share, the paired difference, what is shown and right from each threshold of `Fill.chance` on, and the times.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import calibration_error, curve, difference, interval, percentile

THRESHOLDS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)
_SHORT = 4  # characters: what is shorter is counted apart


@dataclass(frozen=True, slots=True)
class Hole:
    """What became of one hole.

    offered: a fill can be shown. right: the text is the truth; of a partial one, it is the beginning of the truth.
    chance: the probability of being right that the engine states; 1 where it states none, since it shows all.
    """

    key: str
    kind: str
    text: str
    offered: bool
    exact: bool
    right: bool
    partial: bool
    chance: float
    stated: bool
    source: str
    milliseconds: float


def read(path: Path) -> dict[str, Hole]:
    """The results that `run` wrote to `path`, by the holes' keys."""
    return {hole.key: hole for hole in map(_hole, path.read_text("utf-8").splitlines())}


def _hole(line: str) -> Hole:
    """The result in one line."""
    item: dict[str, Any] = json.loads(line)
    chance, partial = item["chance"], item["partial"]
    right = is_begun(item["text"], item["truth"]) if partial else item["exact"]
    return Hole(
        *(item["key"], item["kind"], item["text"].strip(), item["offered"], item["exact"]),
        *(right, partial, 1.0 if chance is None else chance, chance is not None, item["source"]),
        item["milliseconds"],
    )


def is_begun(text: str, truth: str) -> bool:
    """Whether the truth begins with `text` and no word of it is cut: `foo(a` begins `foo(a, b)`, `fo` does not."""
    said, true = text.strip(), truth.strip()
    if not said or not true.startswith(said):
        return False
    behind = true[len(said) : len(said) + 1]
    return not (_in_word(said[-1]) and _in_word(behind))


def _in_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def table(before: dict[str, Hole], after: dict[str, Hole]) -> list[str]:
    """The lines of the comparison, for each kind that both have holes of."""
    keys = [key for key in before if key in after]
    lines = [f"{len(keys)} holes in both"]
    for kind in dict.fromkeys(before[key].kind for key in keys):
        old = [before[key] for key in keys if before[key].kind == kind]
        new = [after[key] for key in keys if before[key].kind == kind]
        mean, low, high = difference([h.exact for h in old], [h.exact for h in new])
        lines += [f"\n{kind}, n = {len(old)}", f"  before  {_exact(old)}", f"  after   {_exact(new)}"]
        lines += [f"  difference {mean:+.1%} [{low:+.1%}, {high:+.1%}]", *shown(new)]
    return lines


def _exact(holes: Sequence[Hole]) -> str:
    """The exact share with its interval, the share offered, and the times."""
    low, high = interval([hole.exact for hole in holes])
    times = [hole.milliseconds for hole in holes]
    sources = sorted({hole.source for hole in holes if hole.exact and hole.source})
    by_source = ", ".join(f"{sum(h.exact and h.source == s for h in holes)} {s}" for s in sources)
    return (
        f"exact {_mean([h.exact for h in holes]):.1%} [{low:.1%}, {high:.1%}]"
        f" offered {_mean([h.offered for h in holes]):.1%}"
        f" p50 {percentile(times, 0.5):.0f} ms p95 {percentile(times, 0.95):.0f} ms"
        + (f" (exact: {by_source})" if by_source else "")
    )


def shown(holes: Sequence[Hole]) -> list[str]:
    """The lines of the curves: whole offers of four characters and more, shorter ones, partial ones, and all."""
    sorts: dict[str, Callable[[Hole], bool]] = {
        "four characters or more": lambda hole: len(hole.text) >= _SHORT and not hole.partial,
        "under four": lambda hole: len(hole.text) < _SHORT and not hole.partial,
        "partial": lambda hole: hole.partial,
        "all": lambda _: True,
    }
    lines = []
    for name, fits in sorts.items():
        offers = [hole for hole in holes if hole.offered and fits(hole)]
        chances, right = [hole.chance for hole in offers], [hole.right for hole in offers]
        known = bool(offers) and all(hole.stated for hole in offers)
        error = f", calibration error {calibration_error(chances, right):.3f}" if known else ""
        lines.append(f"  {name}: {len(offers)} offers{error}")
        points = curve(chances, right, len(holes), THRESHOLDS if known else (0.0,))
        told = [
            f"{p.threshold:.2f}: shown {p.shown:.1%}, right {p.right:.1%} of {p.count}"
            for p in points
            if p.count
        ]
        lines += ["    " + line for line in told]
    return lines


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def run(given: argparse.Namespace) -> int:
    """Run `worth_run.py` with the code in `given.code`; its exit status."""
    here = Path(__file__).resolve()
    code = (given.code or here.parents[1]).resolve()
    named = given.list if given.list == "shipped" else str(Path(given.list).resolve())
    command = [sys.executable, "-P", str(here.with_name("worth_run.py")), named, str(given.out.resolve())]
    command += ["--kinds", given.kinds, "--count", str(given.count), "--related", given.related]
    environment = {**os.environ, "PYTHONPATH": str(code), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=given.folder, env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    filling = commands.add_parser("run", help="fill the holes of a list")
    filling.add_argument("list", help="a list of holes, or `shipped`")
    filling.add_argument("out", type=Path, help="gets a JSON line a hole; holes that it has are skipped")
    filling.add_argument("--folder", type=Path, default=Path(), help="what the list's names are relative to")
    filling.add_argument(
        "--code", type=Path, help="the checkout whose dg_lsp is measured (default: this one)"
    )
    filling.add_argument("--kinds", default="rest_of_line,expression,statement")
    filling.add_argument("--count", type=int, default=300)
    filling.add_argument(
        "--related", choices=("yes", "no"), default="yes", help="read the rest of the project"
    )
    comparing = commands.add_parser("report", help="compare two runs")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "run":
        return run(given)
    print("\n".join(table(read(given.before), read(given.after))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
