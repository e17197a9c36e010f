"""Counts by hand what the tests count in small: anchors changed over many steps, bytes changed outside the gap, cases
on tiny networks that break one of laws 1 to 4.

    python -m benchmarks.laws --steps 10000 --fills 1000 --cases 270

Prints each zero together with the share of the same requests that got a real fill, of the same rows that stopped.
"""

import asyncio
import random
import sysconfig
import time
from collections import Counter, defaultdict
from pathlib import Path

import torch

from benchmarks import parser_of
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.fill import fill_gap
from dg_lsp.gaps.find import Gap, NoGap, find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.denoise import denoise
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule
from dg_lsp.settings import Settings, override
from dg_lsp.source.document import Document, read_document
from dg_lsp.source.history import splits_character
from tests.model.conftest import teach_counting
from tests.model.test_law_cases import GRID, Verdict, case_of, judge, network_of


def random_canvas(rng: random.Random, vocabulary: int) -> Canvas:
    """One to three rows with anchors wherever they fall, from almost none to almost all."""
    shape = (rng.choice((1, 1, 2, 3)), rng.choice((64, 64, 128)))
    tokens = torch.tensor([[rng.randrange(vocabulary) for _ in range(shape[1])] for _ in range(shape[0])])
    anchored = torch.rand(shape) < rng.uniform(0.05, 0.95)
    anchored[:, rng.randrange(shape[1])] = False
    return Canvas(tokens, anchored)


def changed_anchors(model: Checkpoint, steps: int, seed: int) -> tuple[int, int, int]:
    """(steps made, anchors looked at, anchors changed) over at least `steps` denoising steps."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    made = looked = changed = 0
    while made < steps:
        canvas = random_canvas(rng, model.vocabulary)
        cache = PrefixCache(model.network.config.text_config)
        prefix = [model.bos, *(rng.randrange(model.vocabulary) for _ in range(rng.randrange(60)))]
        list(extend_to(model.network, cache, prefix))
        noise = SeededNoise(rng.randrange(2**31), model.vocabulary, model.device)
        schedule = Schedule(steps=rng.randrange(1, 20), entropy_bound=rng.choice((0.01, 0.1, 1.0, 30.0)))
        sampler = AnchoredSampler(canvas, schedule.entropy_bound, noise)
        for step in denoise(model.network, cache, sampler, schedule):
            made += 1
            looked += int(canvas.anchored.sum())
            for tokens in (step.best, step.canvas):
                changed += int((tokens != canvas.tokens)[canvas.anchored].sum())
    return made, looked, changed


def random_gap(rng: random.Random, files: list[Path]) -> tuple[Document, Gap] | None:
    """A gap at a random place of a random file: often in the middle of nowhere, as users ask too."""
    document = read_document(rng.choice(files))
    if not 0 < len(document.data) < 100_000:
        return None
    offset = rng.randrange(len(document.data) + 1)
    while splits_character(document.data, offset):
        offset += 1
    try:
        return document, find_gap(document, offset, rng.choice((None, "rest_of_line", "function_body")))
    except NoGap:
        return None


async def changed_outside(fills: int, settings: Settings) -> Counter[str]:
    """Fill random gaps of the standard library's files; count what happened."""
    rng = random.Random(settings.seed)
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    engine = LocalEngine.open(settings)
    count: Counter[str] = Counter()
    while count["asked"] < fills:
        found = random_gap(rng, files)
        if found is None:
            continue
        document, gap = found
        count["asked"] += 1
        asked = override(settings, {"seed": rng.randrange(2**31)})
        outcome = await fill_gap(engine, document, gap, asked)
        count[gap.kind] += 1
        if outcome.edit is None:
            count[f"{gap.kind}: nothing offered"] += 1
            count["refusals without a reason"] += not outcome.why
            continue
        count[f"{gap.kind}: real fill"] += 1
        new = apply_edit(document, outcome.edit).data
        tail = len(document.data) - gap.end
        same = new.startswith(document.data[: gap.start]) and new.endswith(document.data[gap.end :])
        count["fills that changed a byte outside"] += not same or len(new) < gap.start + tail
    await engine.close()
    return count


def broken_laws(cases: int) -> dict[str, list[Verdict]]:
    """`cases` cases spread over the grid of tests/model/test_law_cases.py, by their group."""
    counting = teach_counting()
    found: dict[str, list[Verdict]] = defaultdict(list)
    for number in range(cases):
        # 5 and the size of the grid have no common divisor, so that few cases are of all kinds, too.
        group = GRID[5 * number % len(GRID)]
        verdict = judge(network_of(group, number, counting), case_of(group, number))
        found[str(group)].append(verdict)
        if verdict.broken:
            print(f"case {number} of {group} breaks the laws {verdict.broken}", flush=True)
    return found


def print_cases(found: dict[str, list[Verdict]]) -> None:
    """One line for each group, then the sum."""
    for group, verdicts in sorted(found.items()):
        differ, stopped = (
            sum(bool(v.broken) for v in verdicts),
            sum(v.stopped for v in verdicts) / len(verdicts),
        )
        print(f"{differ} of {len(verdicts)} cases differ, {stopped:4.0%} of the rows stopped: {group}")
    verdicts = [v for of_group in found.values() for v in of_group]
    counts = Counter(law for v in verdicts for law in v.broken)
    laws = ", ".join(f"law {law} in {counts[law]}" for law in (1, 2, 3, 4))
    print(
        f"{sum(bool(v.broken) for v in verdicts)} of {len(verdicts)} cases in {len(found)} groups differ: {laws}"
    )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--fills", type=int, default=20)
    parser.add_argument("--cases", type=int, default=15)
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--effort", default="low")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.perf_counter()
    if options.cases:
        print_cases(broken_laws(options.cases))
        print(f"({time.perf_counter() - start:.0f} s)", flush=True)
    model = load_checkpoint(options.checkpoint, "cpu")
    made, looked, changed = changed_anchors(model, options.steps, options.seed)
    print(f"{changed} of {looked} anchors changed over {made} steps ({time.perf_counter() - start:.0f} s)")
    settings = Settings(checkpoint=options.checkpoint, effort=options.effort, seed=options.seed)
    for name, number in sorted(asyncio.run(changed_outside(options.fills, settings)).items()):
        print(f"{number:6d}  {name}")
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
