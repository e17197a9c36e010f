"""Latency by hand: one denoising step, then whole warm requests.

For a request the prefix is cached by a first one with another seed; then the second one is timed.

    python -m benchmarks.latency --cases 60

Lines, and bodies of 8 to 10 lines, out of held-out files, with at most 1,000 tokens of prefix; length search included.
"""

import argparse
import asyncio
import statistics
import time
from dataclasses import replace
from itertools import pairwise

import torch

from dg_lsp.bench.files import find_heldout
from dg_lsp.bench.holes import Case, make_cases
from dg_lsp.engine.local import LocalEngine
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.canvas import Seam, lay_out, stack
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.denoise import Schedule, denoise
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Fill, Infill, Kind
from dg_lsp.text.prompts import prompt

BYTES = 3000  # about 1,000 tokens of this tokenizer


def measure_step(checkpoint: str) -> None:
    """Print the median of 50 denoising steps: canvas 64 with 10 free slots, prefix of 512 tokens, one thread."""
    torch.set_num_threads(1)
    model = load_checkpoint(checkpoint, "cpu")
    cache = PrefixCache(model.network.config.text_config)
    list(extend_to(model.network, cache, [model.bos, *range(5, 516)]))
    for rows in (1, 2):
        canvas = stack([lay_out(Seam((), tuple(range(100)), model.eos), 10, 64)] * rows)
        noise = SeededNoise(0, model.vocabulary, model.device)
        sampler = AnchoredSampler(canvas, 0.1, noise)
        schedule = Schedule(steps=52, confidence=0.0)
        times = [time.perf_counter()]
        for _ in denoise(model.network, cache, sampler, schedule):
            times.append(time.perf_counter())
        spent = [1000 * (b - a) for a, b in pairwise(times)][2:]
        print(f"one step, canvas 64, {rows} row(s), one thread: median {statistics.median(spent):.1f} ms")


async def ask(engine: LocalEngine, request: Infill) -> tuple[Fill, float]:
    """The Fill and the seconds until it came."""
    start = time.perf_counter()
    found = [event async for event in engine.infill(request)][-1]
    assert isinstance(found, Fill)
    return found, time.perf_counter() - start


async def measure(kind: Kind, cases: list[Case], settings: Settings) -> None:
    """Print p50 and p95 of all requests, and of those that got a fill."""
    engine = LocalEngine.open(settings)
    timed: list[tuple[Fill, float]] = []
    for case in cases:
        request = prompt.build(case.document, case.gap, settings)
        await ask(engine, replace(request, effort="low", seed=1))
        timed.append(await ask(engine, request))
    await engine.close()
    for name, chosen in (("all", timed), ("filled", [t for t in timed if t[0].text])):
        seconds = sorted(s for _, s in chosen)
        if seconds:
            p95 = seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))]
            print(
                f"{kind:14} {name:6} n={len(seconds):3} p50 {statistics.median(seconds):.3f} s p95 {p95:.3f} s"
            )
    steps = [f.steps for f, _ in timed if f.text]
    if steps:
        print(f"{kind:14} steps of filled: mean {statistics.fmean(steps):.1f}, at most {max(steps)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--effort", default="normal")
    options = parser.parse_args()
    settings = Settings(checkpoint=options.checkpoint, effort=options.effort, prefix_bytes=BYTES)
    measure_step(options.checkpoint)
    documents = find_heldout().documents
    for kind in ("rest_of_line", "function_body"):
        cases = make_cases(documents, kind, 40 * options.cases, 1)
        if kind == "function_body":
            cases = [c for c in cases if 8 <= len(c.truth.splitlines()) <= 10]
        asyncio.run(measure(kind, cases[: options.cases], settings))


if __name__ == "__main__":
    main()
