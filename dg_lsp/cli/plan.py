"""`dg-lsp plan`: how many engines a team needs, and how long its requests will take."""

import argparse
import asyncio
import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path

from dg_lsp.bench.queueing import Load, Waiting, simulate
from dg_lsp.cli.options import add_settings, explain, settings_of
from dg_lsp.settings import Settings, UsageError, named

# GPUs by name: their memory in GB and its bandwidth in TB/s, from the makers' data sheets.
GPUS = {
    "a100-80": (80, 2.04),
    "h100": (80, 3.35),
    "h200": (141, 4.8),
    "l40s": (48, 0.864),
    "rtx-4090": (24, 1.01),
    "rtx-5090": (32, 1.79),
}
# Of the released checkpoint, by its configuration (docs/memory.md): GB of weights in bf16. A canvas of 64 slots asks
# nearly all experts, so a pass reads all of them.
RELEASED_GB = 50.5
_PREFIXES_GB = 4.0  # GB of cached prefixes on a GPU
_LATE = 0.05  # the share of requests that may be given up at their deadline
_MOST = 64  # engines that are tried
_WIDTH = 40  # of the plot, in characters
_CODES = "0 a plan was made; 1 no number of engines is enough; 2 usage or bad input; 130 interrupted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp plan`."""
    explain(
        parser,
        "Reckon how many engines a team needs: fill some holes here to see what a fill takes, or take the times of "
        "another machine, and simulate so many editors that share engines.",
        "dg-lsp plan --editors 32 --every 5 --target 1",
        _CODES,
    )
    parser.add_argument("--editors", type=int, default=8, metavar="COUNT", help="people who type (8)")
    parser.add_argument(
        "--every",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="mean time between two requests of one editor (5)",
    )
    parser.add_argument(
        "--target", type=float, default=1.0, metavar="SECONDS", help="the p95 that is wanted (1)"
    )
    parser.add_argument(
        "--cases", type=int, default=40, metavar="COUNT", help="holes that are filled here to measure (40)"
    )
    parser.add_argument(
        "--times", type=Path, metavar="FILE", help="a JSON list of seconds, one a fill, instead of measuring"
    )
    parser.add_argument(
        "--write-times", type=Path, metavar="FILE", help="write what was measured, for --times"
    )
    parser.add_argument(
        "--gpu",
        choices=GPUS,
        help="the released checkpoint on such a GPU, reckoned from the bandwidth of its memory; nobody has run it",
    )
    parser.add_argument(
        "--passes",
        type=int,
        default=20,
        metavar="COUNT",
        help="with --gpu: passes of the network in a fill (20)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the plan to FILE")
    add_settings(parser, ("checkpoint", "device", "effort", "threads"))


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; 0 if some number of engines is enough.

    Raises:
        UsageError, SettingsError, EngineError: an argument, a setting or the checkpoint cannot be used.
    """
    if min(arguments.editors, arguments.cases, arguments.passes) < 1 or not arguments.every > 0:
        raise UsageError("--editors, --cases, --passes and --every take numbers above 0")
    settings = settings_of(arguments)
    seconds, memory, source = _times(arguments, settings)
    load = Load(seconds, arguments.editors, arguments.every, settings.ghost_deadline or math.inf)
    tried, enough = list[tuple[int, Waiting]](), False
    while not enough and len(tried) < min(_MOST, arguments.editors):
        engines = len(tried) + 1
        tried.append((engines, simulate(load, engines)))
        found = tried[-1][1]
        enough = load.busy(engines) < 1 and found.p95 <= arguments.target and found.late < _LATE
    print(f"{arguments.editors} editors, each with a request every {arguments.every:g} s; {source}")
    if memory:
        print(f"An engine takes {memory:.1f} GB.")
    print()
    print(_table(load, tried))
    if arguments.json:
        rows = [{"engines": n, "busy": load.busy(n), **asdict(waiting)} for n, waiting in tried]
        told = {"source": source, "gigabytes": memory, "enough": enough, "plan": rows}
        arguments.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if not enough:
        print(
            f"\nNo number of engines keeps the p95 below {arguments.target:g} s: a fill alone takes longer."
        )
        return 1
    print(
        f"\n{len(tried)} keep the p95 below {arguments.target:g} s. The p95 as the team grows on as many:\n"
    )
    print(_plot(load, len(tried)))
    return 0


def _table(load: Load, tried: list[tuple[int, Waiting]]) -> str:
    """A line for each number of engines that was tried."""
    lines = ["engines  busy  p50 s  p95 s  late  overtaken by the next key"]
    for engines, found in tried:
        work = f"{engines:7}  {load.busy(engines):4.0%}"
        lines.append(f"{work}  {found.p50:5.2f}  {found.p95:5.2f}  {found.late:4.0%}  {found.overtaken:9.0%}")
    return "\n".join(lines)


def _plot(load: Load, engines: int) -> str:
    """The p95 over the number of editors, from a quarter of those planned to twice as many, as bars."""
    numbers = sorted({max(round(load.editors * part / 4), 1) for part in range(1, 9)})
    found = [(n, simulate(replace(load, editors=n), engines).p95) for n in numbers]
    most = max(p95 for _, p95 in found)
    return "\n".join(
        f"{n:5} editors  {p95:6.2f} s  {'#' * max(round(_WIDTH * p95 / most), 1)}" for n, p95 in found
    )


def _times(arguments: argparse.Namespace, settings: Settings) -> tuple[list[float], float, str]:
    """The seconds of fills that are alone on an engine, the GB that it takes (0: unknown), and where both come from."""
    if arguments.gpu:
        from dg_lsp.engine.room import MARGIN

        holds, bandwidth = GPUS[arguments.gpu]
        needed = RELEASED_GB * MARGIN + _PREFIXES_GB
        if needed > holds:
            raise UsageError(
                f"the released checkpoint needs {needed:.0f} GB and {arguments.gpu} has {holds}; docs/memory.md says "
                "how it is split over devices, which no plan covers"
            )
        step = RELEASED_GB / bandwidth / 1000
        return (
            [arguments.passes * step],
            needed,
            f"reckoned: {arguments.passes} passes of {1000 * step:.0f} ms",
        )
    if arguments.times:
        seconds = _read(arguments.times)
        return seconds, 0.0, f"{_of(seconds)}, {arguments.times}"
    seconds, memory = asyncio.run(_measured(settings, arguments.cases))
    if arguments.write_times:
        arguments.write_times.write_text(json.dumps(seconds) + "\n", encoding="utf-8")
    return seconds, memory, f"{_of(seconds)}, {named(settings.checkpoint)}, measured here"


def _of(seconds: list[float]) -> str:
    return f"{len(seconds)} fills of {sum(seconds) / len(seconds):.2f} s"


def _read(path: Path) -> list[float]:
    """The times in a file.

    Raises:
        UsageError: it is no list of positive numbers.
    """
    try:
        found = [float(number) for number in json.loads(path.read_text("utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{path} is no JSON list of seconds ({error}); --write-times makes one") from error
    if not found or min(found) <= 0 or not all(map(math.isfinite, found)):
        raise UsageError(f"{path} has no times, or one that is not above 0; --write-times makes such a file")
    return found


async def _measured(settings: Settings, count: int) -> tuple[list[float], float]:
    """The seconds of `count` fills of gaps within a line, document by document, and the GB that the engine takes."""
    from dg_lsp.bench import lists
    from dg_lsp.engine.base import Want, fill_gap, outcome_of
    from dg_lsp.engine.local import LocalEngine

    kinds = ("rest_of_line", "expression", "statement")
    cases, _ = lists.read(lists.shipped(), kinds, -(-count // len(kinds)))
    if not cases:
        raise UsageError("none of the files that are measured with is installed; give --times")
    cases = sorted(cases, key=lambda case: case.document.uri)[:count]
    engine = LocalEngine.open(settings)
    settings = replace(settings, deadline=0.0, alternatives=1)
    try:
        taken = []
        for number, case in enumerate((cases[0], *cases)):  # a model's first fill is slow
            if number % 10 == 0:
                print(f"dg-lsp: {number} of {len(cases)} fills measured", file=sys.stderr, flush=True)
            events = fill_gap(engine, case.document, case.gap, settings, Want(priority="ghost"))
            outcome = await outcome_of(events, lambda _: None)
            taken.append(outcome.fill.milliseconds / 1000)
        return [seconds for seconds in taken[1:] if seconds > 0], engine.memory() / 1e9
    finally:
        await engine.close()
