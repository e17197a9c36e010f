"""Editors that type against one engine, and the latencies that the queue model (`queueing`) predicts for them.

    python -m benchmarks.load times.json --editors 8 32 --every 8 --seconds 120 --checkpoint embedded

1. Fill each hole alone, document by document, for the times of the queue model.  2. For each number of editors:
each is a client of its own of one resident engine, goes through documents of its own, and asks for ghost text at random
moments (a Poisson process); its next request cancels the one before.  3. Print p50 and p95 beside those of the model.
With --deadline, each request has that many seconds, as ghost text has.
"""

import argparse
import asyncio
import json
import math
import random
import time
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path

from benchmarks.queueing import Load, simulate
from dg_lsp.bench import lists
from dg_lsp.bench.holes import Case
from dg_lsp.bench.score import quantile
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Fill
from dg_lsp.text.prompts import prompt

KINDS = ("rest_of_line", "expression", "statement")
_WARM_UP = 15.0  # seconds in which nothing counts


async def fill(engine: ResidentEngine, case: Case, settings: Settings, editor: int) -> tuple[float, bool]:
    """The seconds until the Fill of `case`, in a document of its own for each editor, and whether it has a text."""
    text, began = "", time.perf_counter()
    request = prompt.build(case.document, case.gap, settings)
    request = replace(request, priority="ghost", session=f"{editor}:{request.session}")
    async with aclosing(engine.infill(request)) as events:
        async for event in events:
            if isinstance(event, Fill):
                text = event.text
                break
    return time.perf_counter() - began, bool(text)


async def alone(settings: Settings, cases: Sequence[Case]) -> list[float]:
    """What each of `cases` takes where nobody else asks."""
    engine = ResidentEngine(settings)
    try:
        await fill(engine, cases[0], settings, 0)
        return [(await fill(engine, case, settings, 0))[0] for case in cases]
    finally:
        await engine.close()


async def together(
    settings: Settings, cases: Sequence[Case], editors: int, every: float, seconds: float
) -> tuple[list[float], dict[str, int]]:
    """The times of the requests that were answered with a text, and how many were not, by what came instead."""
    answered, lost = list[float](), {"overtaken": 0, "failed": 0, "without a text": 0}
    begin = time.monotonic() + _WARM_UP

    async def one(engine: ResidentEngine, case: Case, editor: int) -> None:
        counts = time.monotonic() > begin
        try:
            took, has_text = await fill(engine, case, settings, editor)
            answered.extend([took] if counts and has_text else [])
            lost["without a text"] += counts and not has_text
        except asyncio.CancelledError:
            lost["overtaken"] += counts
        except EngineError as error:
            print(f"editor {editor}: {error}")
            lost["failed"] += counts

    async def type_on(editor: int) -> None:
        chance, engine = random.Random(editor), ResidentEngine(settings)
        # Editors begin at different documents and go through them in order.
        number = editor * len(cases) // editors
        running: asyncio.Task[None] | None = None
        try:
            while time.monotonic() < begin + seconds:
                await asyncio.sleep(chance.expovariate(1 / every))
                if running is not None and running.cancel():
                    with suppress(asyncio.CancelledError):
                        await running
                running = asyncio.create_task(one(engine, cases[number % len(cases)], editor))
                number += 1
            if running is not None:
                await running
        finally:
            await engine.close()

    await asyncio.gather(*(type_on(editor) for editor in range(editors)))
    return answered, lost


async def run(given: argparse.Namespace) -> None:
    settings = Settings(checkpoint=given.checkpoint, threads=1, alternatives=1)
    cases, _ = lists.read(lists.shipped(), KINDS, given.cases // len(KINDS))
    cases = sorted(cases, key=lambda case: (case.document.uri, case.gap.start))
    times = sorted(await alone(settings, cases))
    given.times.write_text(json.dumps(times) + "\n", encoding="utf-8")
    mean = sum(times) / len(times)
    print(
        f"alone: {len(times)} fills, mean {mean:.3f} s, p50 {quantile(times, 0.5):.3f}, p95 {quantile(times, 0.95):.3f}"
    )
    for editors in given.editors:
        typing = replace(settings, deadline=given.deadline)
        answered, lost = await together(typing, cases, editors, given.every, given.seconds)
        answered.sort()
        load = Load(times, editors, given.every, given.deadline or math.inf)
        predicted, count = simulate(load, 1), len(answered) + sum(lost.values())
        others = ", ".join(f"{name} {number / max(count, 1):.0%}" for name, number in lost.items())
        print(
            f"{editors} editors, busy {load.busy(1):.0%}: {len(answered)} of {count} answered; p50 "
            f"{quantile(answered, 0.5):.3f} (model {predicted.p50:.3f}), p95 {quantile(answered, 0.95):.3f} (model "
            f"{predicted.p95:.3f}); {others} (model: overtaken {predicted.overtaken:.0%}, late {predicted.late:.0%})",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("times", type=Path, help="where the times of single fills are written")
    parser.add_argument("--editors", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--every", type=float, default=8.0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--deadline", type=float, default=0.0)
    parser.add_argument("--cases", type=int, default=90)
    parser.add_argument("--checkpoint", default="embedded")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
