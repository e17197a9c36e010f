"""`python -m benchmarks.race`: our engine beside the two others that run this network, and beside itself.

One run, one table each: prefixes against `generate` and diffusers; efforts, and a searched length against a given one.
What was promised stands below, with what was found.
"""

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from benchmarks.race.fills import KINDS, fill_cases, summarise
from benchmarks.race.laps import Course, Lap, run_course
from benchmarks.race.rivals import find_rivals
from benchmarks.race.text import as_text
from dg_lsp.bench.files import installed_path
from dg_lsp.bench.holes import Case
from dg_lsp.bench.score import make_report
from dg_lsp.checkpoints import CheckpointError
from dg_lsp.model.cache import CHUNK
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.settings import Settings, UsageError

COURSES = (
    Course(prefix=512, canvas=128, free=32, steps=16),
    Course(prefix=2048, canvas=128, free=32, steps=16),
    Course(prefix=8192, canvas=128, free=32, steps=16),
    Course(prefix=2048, canvas=256, free=64, steps=48),
)
_TEXT = ("argparse.py", "inspect.py", "typing.py")  # of the standard library: some 90,000 tokens


@dataclass(frozen=True, slots=True)
class Bar:
    """What was promised: that `found` is at least `wanted`, or at most where `most` is set."""

    what: str
    found: float
    wanted: float
    most: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the promise is kept."""
        return self.found <= self.wanted if self.most else self.found >= self.wanted


def run(arguments: argparse.Namespace, cases: Sequence[Case], settings: Settings) -> int:
    """Measure and print; `cases` are the holes to fill, those of other kinds than KINDS left out.

    Raises:
        UsageError: the checkpoint cannot be used.
    """
    torch.set_num_threads(settings.threads or max((os.cpu_count() or 2) // 2, 1))
    try:
        model = load_checkpoint(settings.checkpoint, settings.device, _tell)
    except CheckpointError as error:
        raise UsageError(str(error)) from error
    report = _about(model, settings, arguments.repeats)
    report["courses"] = race(model, arguments.repeats)
    filled = fill_cases(model, [c for c in cases if c.kind in KINDS], settings, _tell)
    report["fills"] = summarise(filled)
    report["bars"] = [asdict(bar) | {"held": bar.is_held} for bar in bars(report)]
    report["load_after"] = _load()
    print(as_text(report))
    if arguments.json:
        report["holes"] = [asdict(f) for f in filled]
        Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def race(model: Checkpoint, repeats: int) -> list[dict[str, Any]]:
    """A record for each of COURSES: what it is, and what each contestant took."""
    text = _read(model, max(c.prefix + c.canvas for c in COURSES) + CHUNK)
    rivals, records = find_rivals(model.network), []
    for course in COURSES:
        _tell(f"prefix of {course.prefix} tokens, canvas of {course.canvas}, {course.steps} steps")
        laps = run_course(model.network, text, course, repeats, rivals)
        records.append(asdict(course) | {"engines": compare(laps)})
    return records


def compare(laps: dict[str, list[Lap]]) -> dict[str, dict[str, Any]]:
    """For each contestant its medians, how many times ours they are, and every lap.

    `of_cold` and `of_typed` are [first step, whole fill] as multiples of what ours took in that state.
    """
    medians = {
        name: (statistics.median(lap.first for lap in some), statistics.median(lap.whole for lap in some))
        for name, some in laps.items()
    }
    found: dict[str, dict[str, Any]] = {}
    for name, some in laps.items():
        (first, whole), memory = medians[name], max(lap.memory for lap in some)
        found[name] = {"first": first, "whole": whole, "steps": some[0].steps, "memory": memory}
        for state in ("cold", "typed"):
            found[name][f"of_{state}"] = [first / medians[state][0], whole / medians[state][1]]
        found[name]["laps"] = [asdict(lap) for lap in some]
    return found


def bars(report: dict[str, Any]) -> list[Bar]:
    """What was promised, with what `report` says of it."""
    found = []
    for course in report["courses"]:
        theirs, name = course["engines"]["generate"], f"prefix {course['prefix']}, canvas {course['canvas']}"
        (_, cold), (first, whole) = theirs["of_cold"], theirs["of_typed"]
        found.append(Bar(f"{name}: generate's whole fill over ours, nothing cached", cold, 1.0))
        if (course["prefix"], course["steps"]) == (2048, 16):
            found.append(Bar(f"{name}: generate's first step over ours after a typed token", first, 5.0))
            found.append(Bar(f"{name}: generate's whole fill over ours after a typed token", whole, 1.8))
    for kind in KINDS:
        took = {
            f["length"]: f["seconds"] for f in report["fills"] if (f["kind"], f["effort"]) == (kind, "normal")
        }
        if took:
            ratio = took["searched"] / took["given"]
            found.append(
                Bar(
                    f"{kind}: seconds with a searched length over those with a given one",
                    ratio,
                    3.0,
                    most=True,
                )
            )
    return found


def _about(model: Checkpoint, settings: Settings, repeats: int) -> dict[str, Any]:
    """What is needed to read the numbers and to repeat them."""
    report = make_report([], settings)
    gpu = torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else ""
    return {
        **{name: value for name, value in report.items() if name not in ("results", "cases")},
        "repeats": repeats,
        "threads": torch.get_num_threads(),
        "processor": ", ".join(filter(None, (_processor(), gpu))),
        "versions": ", ".join(f"{name} {_version(name)}" for name in ("torch", "transformers", "diffusers")),
    }


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        for line in cpus.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _load() -> list[float]:
    return list(os.getloadavg()) if hasattr(os, "getloadavg") else []


def _read(model: Checkpoint, count: int) -> tuple[int, ...]:
    """`count` tokens of real code behind the first token of a file.

    Raises:
        UsageError: this Python comes without the sources of its standard library.
    """
    places = [installed_path(f"stdlib:{name}") for name in _TEXT]
    if not all(place and place.is_file() for place in places):
        raise UsageError("this Python lacks the sources of its standard library; run it with another one")
    text = "".join(place.read_text("utf-8") for place in places if place)
    tokens = (model.bos, *model.encode(text))
    assert len(tokens) >= count, "three modules of the standard library are longer than any course"
    return tokens[:count]


def _tell(doing: str) -> None:
    print(f"dg-lsp: {doing}", file=sys.stderr, flush=True)
