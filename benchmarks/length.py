"""How well each signal tells a gap's length, and what the fill at that length is worth, by hand on the shipped holes.

    python -m benchmarks.length --cases 100 --threads 2

All lengths are the rows of one canvas batch behind one prefix of at most 512 tokens, two draws of noise each, denoised
for four steps (--look); every signal is read off every step, and the lowest mean over the draws wins. The lengths that
won, the most frequent one and the true one are then denoised for 12 steps, each once. The temperatures fall over the
steps of the search, so a number at step 2 of 4 is not that of a search of two steps. A body's lengths are a coarse grid
in which the true length takes the place of the nearest one: no signal could find it otherwise. Holes whose length is
not among the lengths are left out.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dg_lsp.bench import lists as evaluation
from dg_lsp.bench.holes import Case
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.candidates import rows_with_suffix
from dg_lsp.model.canvas import Canvas, Seam, anchors_after, lay_out, stack
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.denoise import Schedule, Step, denoise
from dg_lsp.model.length import WATCHED, Search, leave_one_out
from dg_lsp.model.likelihood import neg_log_likelihoods
from dg_lsp.model.sampler import AnchoredSampler, Noise, SeededNoise
from dg_lsp.model.tokens import tokenise
from dg_lsp.settings import Settings
from dg_lsp.text.fills import fit
from dg_lsp.text.prompts import prompt

KINDS = ("rest_of_line", "expression", "statement", "function_body")
SIGNALS = (
    "entropy",
    "max probability",
    "agreement",
    "leave-one-out",
    "entropy + leave-one-out",
)
ENCODER = ("encoder, draft and suffix", "encoder, suffix")  # twice as long as all others together
LINE = tuple(range(1, 25))
BODY = (2, 4, 8, 13, 18, 24, 30, 38, 48, 60, 75, 95)
DRAWS, STEPS, PREFIX = 2, 12, 512
FILLED = (1, 2, 4)  # search steps whose choice is filled, too
WEAK = 0.15  # the share of exact fills at the true length under which a checkpoint shows nothing


@dataclass(frozen=True, slots=True)
class Measured:
    """One hole: its true length, what was chosen, and for each length denoised whether the fill was exact.

    chosen: signal -> the length it prefers at each step; the prior's is the same at every step.
    """

    name: str
    kind: str
    truth: int
    chosen: dict[str, list[int]]
    exact: dict[int, bool]


class WatchedNoise:
    """Noise that keeps the highest probability of each free slot's distribution, of which a Step tells nothing."""

    def __init__(self, noise: Noise, canvas: Canvas) -> None:
        self._noise = noise
        self.highest = torch.zeros(len(canvas.free_slots), device=canvas.tokens.device)

    def tokens(self, canvas: Canvas) -> Tensor:
        return self._noise.tokens(canvas)

    def pick(self, probabilities: Tensor, numbers: Tensor) -> Tensor:
        self.highest[numbers] = probabilities.amax(-1)
        return self._noise.pick(probabilities, numbers)


def search(
    network: Any, cache: PrefixCache, layout: tuple[Seam, int], asked: tuple[Search, Sequence[str]], seed: int
) -> dict[str, list[int]]:
    """The length that each signal prefers after each step, on `layout` = (seam, slots); `asked` = (search, signals)."""
    seam, slots = layout
    wanted, names = asked
    lengths, draws = wanted.lengths, wanted.draws
    device = network.model.decoder.embed_tokens.weight.device
    canvas = stack([lay_out(seam, n, slots) for n in lengths for _ in range(draws)]).to(device)
    vocabulary = network.config.text_config.vocab_size
    watch, noise = anchors_after(canvas, WATCHED), WatchedNoise(SeededNoise(seed, vocabulary, device), canvas)
    sampler = AnchoredSampler(canvas, Schedule().entropy_bound, noise)
    chosen: dict[str, list[int]] = {name: [] for name in names}
    for step in denoise(network, cache, sampler, Schedule(steps=wanted.steps), watch):
        signals = [*_signals(canvas, step, watch, (noise.highest, vocabulary))]
        if len(names) > len(signals):
            texts, *starts = rows_with_suffix(canvas, step, seam.filler)
            signals += [torch.tensor(neg_log_likelihoods(network, cache, texts, at)) for at in starts]
        for name, rows in zip(names, signals, strict=True):
            scores = rows.cpu().double().view(len(lengths), draws).mean(1)
            chosen[name].append(lengths[int(scores.argmin())])
    # Rows that have all finished stay as they are.
    return {name: found + found[-1:] * (wanted.steps - len(found)) for name, found in chosen.items()}


def _signals(canvas: Canvas, step: Step, watch: Tensor, more: tuple[Tensor, int]) -> Iterator[Tensor]:
    """Each of SIGNALS for each row, [rows]; lower is better."""
    highest, vocabulary = more
    entropy = _mean(step.entropy.flatten()[canvas.free_slots], canvas.free_slots, canvas)
    alone = _mean(leave_one_out(step.neg_log_likelihood, vocabulary), watch, canvas)
    yield entropy
    yield -_mean(highest, canvas.free_slots, canvas)
    yield _mean(step.neg_log_likelihood, watch, canvas)
    yield alone
    yield entropy + alone


def _mean(values: Tensor, slots: Tensor, canvas: Canvas) -> Tensor:
    """The mean in each row of `values` [N], which stand at `slots` [N]."""
    rows = slots // canvas.length
    total = torch.zeros(canvas.rows, dtype=torch.float64, device=values.device)
    return total.index_add(0, rows, values.double()) / torch.bincount(rows, minlength=canvas.rows)


def usual_length(kind: str, truths: Sequence[int], number: int) -> int:
    """The most frequent length in the half of the cases to which case `number` does not belong, on the kind's grid."""
    others = Counter(nearest(_grid(kind), n) for n in truths[(number + 1) % 2 :: 2])
    return min(others, key=lambda n: (-others[n], n), default=1)


def nearest(lengths: Sequence[int], wanted: int) -> int:
    """The length nearest to the one wanted."""
    return min(lengths, key=lambda n: (abs(n - wanted), n))


def lengths_for(kind: str, truth: int, room: int) -> tuple[int, ...]:
    """The lengths that are tried for a hole of `kind`, as far as there is room."""
    grid = set(_grid(kind))
    if kind == "function_body":
        grid = grid - {nearest(BODY, truth)} | {truth}
    return tuple(n for n in sorted(grid) if n <= room)


def _grid(kind: str) -> tuple[int, ...]:
    return BODY if kind == "function_body" else LINE


def measure(
    model: Checkpoint, case: Case, usual: int, look: tuple[int, Sequence[str]], seed: int
) -> Measured | None:
    """One hole, searched for `look` = (steps, signals); None if its true length is not among the lengths tried."""
    ahead, names = look
    request = prompt.build(case.document, case.gap, Settings())
    prefix, seam = tokenise(replace(model, max_prefix=PREFIX), request)
    slots = next(n for n in model.canvas_lengths if n >= (128 if case.kind == "function_body" else 64))
    truth = len(model.encode(case.truth))
    lengths = lengths_for(case.kind, truth, seam.room(slots, WATCHED))
    if truth not in lengths:
        return None
    cache = PrefixCache(model.network.config.text_config)
    for _ in extend_to(model.network, cache, prefix):
        pass
    chosen = search(model.network, cache, (seam, slots), (Search(lengths, DRAWS, ahead), names), seed)
    chosen["prior"] = [nearest(lengths, usual)] * ahead
    wanted = sorted(
        {truth} | {n for found in chosen.values() for step, n in enumerate(found, 1) if step in FILLED}
    )
    canvas = stack([lay_out(seam, n, slots) for n in wanted]).to(model.device)
    noise = SeededNoise(seed, model.vocabulary, model.device)
    sampler = AnchoredSampler(canvas, model.schedule.entropy_bound, noise)
    *_, last = denoise(model.network, cache, sampler, replace(model.schedule, steps=STEPS))
    exact = {}
    for row, length in enumerate(wanted):
        text = model.tokenizer.decode(
            last.best[row][~canvas.anchored[row]].tolist(), skip_special_tokens=False
        )
        exact[length] = fit.fit(request, text).strip() == case.truth.strip()
    return Measured(case.name, case.kind, truth, chosen, exact)


def as_table(found: Sequence[Measured], cases: int) -> str:
    """The Markdown table of one kind: shares of exact lengths (off by at most one), then of exact fills."""
    steps = range(1, len(found[0].chosen["prior"]) + 1)
    filled = [n for n in steps if n in FILLED]
    head = [f"length, step {n}" for n in steps] + [f"fill, step {n}" for n in filled]
    oracle = sum(m.exact[m.truth] for m in found) / len(found)
    lines = [
        f"**{found[0].kind}**: {len(found)} holes; {cases - len(found)} more are left out",
        "",
        f"| signal | {' | '.join(head)} |",
        f"|---{'|---' * len(head)}|",
    ]
    for name in ("prior", *(name for name in found[0].chosen if name != "prior")):
        cells = [_near(found, name, step) for step in steps]
        cells += [_share(m.exact[m.chosen[name][step - 1]] for m in found) for step in filled]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    cells = ["100 % (100)"] * len(steps) + [f"{100 * oracle:.0f} %"] * len(filled)
    lines.append(f"| the true length | {' | '.join(cells)} |")
    if oracle < WEAK:
        lines += [
            "",
            f"The true length gives {100 * oracle:.0f} % exact fills: this checkpoint is too weak to tell.",
        ]
    return "\n".join(lines)


def _near(found: Sequence[Measured], name: str, step: int) -> str:
    off = [abs(m.chosen[name][step - 1] - m.truth) for m in found]
    return f"{_share(n == 0 for n in off)} ({_share(n <= 1 for n in off).removesuffix(' %')})"


def _share(hits: Iterator[bool]) -> str:
    told = list(hits)
    return f"{100 * sum(told) / len(told):.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=300, help="holes of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--look", type=int, default=4, help="steps of the search")
    parser.add_argument("--encoder", action="store_true", help="also what the encoder makes of each draft")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every hole to FILE")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = load_checkpoint(options.checkpoint, "cpu")
    everything: list[Measured] = []
    look = options.look, (*SIGNALS, *(ENCODER if options.encoder else ()))
    for kind in options.kinds.split(","):
        cases, _ = evaluation.read(evaluation.shipped(), [kind], options.cases)
        truths = [len(model.encode(case.truth)) for case in cases]
        found, begin = list[Measured](), time.perf_counter()
        for number, case in enumerate(cases):
            measured = measure(model, case, usual_length(kind, truths, number), look, number)
            found += [measured] if measured else []
            if (number + 1) % 10 == 0 or number + 1 == len(cases):
                seconds = time.perf_counter() - begin
                left = seconds / (number + 1) * (len(cases) - number - 1)
                told = f"{kind}: {number + 1} of {len(cases)}, {seconds:.0f} s, {left:.0f} s to go"
                print(told, file=sys.stderr, flush=True)
        if found:
            print(as_table(found, len(cases)), end="\n\n", flush=True)
        everything += found
    if options.json:
        options.json.write_text(
            json.dumps([asdict(m) for m in everything], indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
