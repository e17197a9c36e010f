"""Scores of filled holes, and a report of them, as data and as a table. Knows no engine and no document."""

import hashlib
import math
import os
import platform
import shlex
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import dg_lsp
from dg_lsp.checkpoints import folder_of
from dg_lsp.settings import Settings

METHODS = {
    "given": "the model, given the true length in tokens",
    "searched": "the model, searching the length itself",
    "retrieved": "no model: what follows the same words elsewhere in the project, the best one",
    "ngram": "4-grams with back-off, counted in the same file outside the hole",
}


@dataclass(frozen=True, slots=True)
class Score:
    """The result of one case by one method.

    similarity: difflib's ratio. offered: there is an edit, and it is not a stub. parses: it is offered and adds no
    syntax error. passed: whether the test passed; None if none ran. steps, searched: as in Fill.
    """

    case: str
    kind: str
    method: str
    truth: str
    text: str
    filled: str
    exact: bool
    similarity: float
    offered: bool
    parses: bool
    seconds: float
    steps: int = 0
    searched: int = 0
    why: str = ""
    passed: bool | None = None


def make_report(scores: Sequence[Score], settings: Settings) -> dict[str, Any]:
    """The scores as data, with machine, load, date, command and settings, so that they can be measured again."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.kind, score.method), []).append(score)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], list(METHODS).index(item[0][1])))
    return {
        "dg_lsp": dg_lsp.__version__,
        "command": shlex.join(["dg-lsp", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores",
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
        "settings": asdict(settings),
        "checkpoint_sha256": _digest(settings.checkpoint),
        "results": [{"kind": kind, "method": method, **_summary(group)} for (kind, method), group in ordered],
        "cases": [{k: v for k, v in asdict(score).items() if k != "filled"} for score in scores],
    }


def _summary(scores: Sequence[Score]) -> dict[str, Any]:
    """The means and percentiles of one kind and method."""

    def share(values: Sequence[float]) -> float:
        return round(statistics.fmean(values), 4)

    seconds = sorted(s.seconds for s in scores)
    tested = [s.passed for s in scores if s.passed is not None]
    return {
        "cases": len(scores),
        "exact": share([s.exact for s in scores]),
        "similarity": share([s.similarity for s in scores]),
        "parses": share([s.parses for s in scores]),
        "offered": share([s.offered for s in scores]),
        # A refusal has no steps, and would lower the mean.
        "steps": share([s.steps for s in scores if s.offered] or [0]),
        "searched": share([s.searched for s in scores if s.offered] or [0]),
        "p50": round(statistics.median(seconds), 4),
        "p95": round(quantile(seconds, 0.95), 4),
        "pass@1": share(tested) if tested else None,
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """By nearest rank: the smallest of `ordered` that at least `share` of them do not exceed; nan if there is none."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else math.nan


def as_text(report: dict[str, Any]) -> str:
    """The report as a table with notes on how to read it."""
    shares = ("exact", "similarity", "parses", "offered", "steps", "searched")
    forms = {"cases": "d", **dict.fromkeys(shares, ".2f"), "p50": ".3f", "p95": ".3f", "pass@1": ".2f"}
    rows = [("kind", "method", *forms)]
    for result in report["results"]:
        values = ("" if result[name] is None else format(result[name], form) for name, form in forms.items())
        rows.append((result["kind"], result["method"], *values))
    used = [name for name in METHODS if name in {result["method"] for result in report["results"]}]
    notes = [f"{name}: {METHODS[name]}" for name in used]
    notes.append(
        "exact, parses, offered: shares of all cases; similarity: difflib's ratio, 0 where nothing came"
    )
    notes.append("steps, searched: means over offered fills; p50, p95: seconds over all cases")
    load = ", ".join(f"{value:.1f}" for value in report["load"])
    notes.append(f"{report['machine']}; load {load}; {report['date']}; {report['command']}")
    if report["files_skipped"]:
        notes.append(
            f"{len(report['files_skipped'])} files were skipped, such as {report['files_skipped'][0]}"
        )
    return "\n".join([table(rows), "", *notes])


def table(rows: Iterable[Sequence[str]]) -> str:
    """Align `rows`, the head first: the first two columns are words, the others numbers."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = (
        [c.ljust(w) if n < 2 else c.rjust(w) for n, (c, w) in enumerate(zip(line, widths, strict=True))]
        for line in lines
    )
    return "\n".join("  ".join(line).rstrip() for line in cells)


def _digest(checkpoint: str) -> str:
    """The sha256 of the checkpoint's manifest; empty if it has none."""
    manifest = folder_of(checkpoint) / "manifest.json"
    return hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else ""
