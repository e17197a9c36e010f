"""Mending by hand: what denoising the broken span again is worth beside denoising the whole fill again.

    python -m benchmarks.mend --cases 100
    python -m benchmarks.mend --cases 200 --real

The first damages one token of true bodies and lines of the held-out list and lays them on a canvas as if the model had
written them; mending and doing all again then have the same rows and steps. The second counts what becomes of real
fills without and with repair. Seconds are those of the processor, so that they hold on a busy machine, too.
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from unittest import mock

import torch

from dg_lsp.bench import lists as evaluation
from dg_lsp.bench.holes import Case
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.candidates import Batch, Candidate, rank_by_likelihood, why_refused
from dg_lsp.model.canvas import lay_out, stack
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.denoise import Step, denoise
from dg_lsp.model.fill import infill
from dg_lsp.model.repair import CHANGES, Origin, mend
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.steps import Clock, run_to_end
from dg_lsp.model.tokens import tokenise
from dg_lsp.settings import Settings
from dg_lsp.text.fills import fit
from dg_lsp.text.fills.stitch import shorten
from dg_lsp.text.messages import Fill, Infill
from dg_lsp.text.prompts import prompt

BRACKET = re.compile(r"[()\[\]{}]")


@dataclass
class Tally:
    """What became of the cases of one kind, one way."""

    cases: int = 0
    parses: int = 0
    truth: int = 0
    steps: int = 0
    seconds: float = 0.0

    def add(self, fill: Fill, truth: str, seconds: float) -> None:
        """Count `fill`."""
        self.cases += 1
        self.parses += not fill.refusal
        self.truth += not fill.refusal and fill.text == truth
        self.steps += fill.steps
        self.seconds += seconds

    def words(self) -> str:
        """The shares and the means."""
        return (
            f"{self.cases:4d} cases  {self.parses / self.cases:6.1%} parse  {self.truth / self.cases:6.1%} truth  "
            f"{self.steps / self.cases:5.1f} steps  {self.seconds / self.cases:5.2f} s"
        )


class Canvases:
    """The canvases of one request."""

    def __init__(self, model: Checkpoint, request: Infill, truth: str) -> None:
        self.model, self.request = model, request
        need = len(model.encode(truth)) + 64
        self.slots = next((n for n in model.canvas_lengths if n >= need), model.canvas_lengths[-1])
        prefix, self.seam = tokenise(model, request)
        self.cache = PrefixCache(model.network.config.text_config)
        for _ in extend_to(model.network, self.cache, prefix):
            pass

    def mend(self, text: str) -> Fill:
        """`text` mended, or refused; `steps` are those of all rounds."""
        place = Origin(self.request, (self.seam, self.slots), "", 0)
        written = Candidate(0, Fill(text, parses=False, refusal="it is damaged"), whole=True)
        events = mend(self.model, self.cache, place, [written], Clock(None))
        drafts, mended = run_to_end(events)
        return mended or replace(written.fill, steps=len(drafts))

    def redo(self, text: str, steps: int) -> Fill:
        """The whole gap again, as long as `text`, longer and shorter, in `steps` steps."""
        long = len(self.model.encode(text))
        lengths = [long + change for change in CHANGES if long + change >= 1]
        batch = Batch(stack([lay_out(self.seam, n, self.slots) for n in lengths]), self.request)
        noise = SeededNoise(self.request.seed, self.model.vocabulary, self.model.device)
        schedule = replace(self.model.schedule, steps=steps)
        sampler = AnchoredSampler(batch.canvas, schedule.entropy_bound, noise)
        last: Step | None = None
        for step in denoise(self.model.network, self.cache, sampler, schedule):
            last = step
        assert last is not None
        return rank_by_likelihood(self.model, self.cache, batch, last)[0].fill


def damaged(model: Checkpoint, truth: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """(what was done, `truth` with one token or bracket damaged), each way once."""
    ids = list(model.encode(truth))
    at = chance.randrange(len(ids))
    ways = {
        "token deleted": [*ids[:at], *ids[at + 1 :]],
        "token replaced": [*ids[:at], chance.randrange(260, model.vocabulary), *ids[at + 1 :]],
        "two swapped": [*ids[:at], *ids[at : at + 2][::-1], *ids[at + 2 :]],
    }
    for name, tokens in ways.items():
        yield name, str(model.tokenizer.decode(tokens, skip_special_tokens=False))
    brackets = [found.start() for found in BRACKET.finditer(truth)]
    if brackets:
        place = chance.choice(brackets)
        yield "bracket deleted", truth[:place] + truth[place + 1 :]
        yield "bracket doubled", truth[: place + 1] + truth[place:]


def compare(model: Checkpoint, cases: Sequence[Case], settings: Settings, seed: int) -> None:
    """Damaged texts: mended beside done again."""
    chance = random.Random(seed)
    tallies: dict[tuple[str, str], Tally] = {}
    unbroken = 0
    for case in cases:
        request, truth = prompt.build(case.document, case.gap, settings), case.truth.strip()
        canvases = Canvases(model, request, truth)
        for name, raw in damaged(model, truth, chance):
            text = fit.fit(request, raw)
            if "\ufffd" in text or not why_refused(request, text).startswith("it would add"):
                unbroken += 1
                continue
            start = time.process_time()
            mended = canvases.mend(text)
            middle = time.process_time()
            again = canvases.redo(text, max(mended.steps, 1))
            end = time.process_time()
            for group in (name, "all"):
                tallies.setdefault((group, "mended"), Tally()).add(mended, truth, middle - start)
                tallies.setdefault((group, "redone"), Tally()).add(again, truth, end - middle)
    print(f"{cases[0].kind}: {unbroken} damages broke nothing")
    for (name, way), tally in sorted(tallies.items()):
        print(f"  {name:16s} {way:7s} {tally.words()}")


def real(model: Checkpoint, cases: Sequence[Case], settings: Settings, *, like: bool) -> None:
    """Real fills: offered as written, mended, shortened; all of it beside the same without repair."""
    tallies: dict[str, Tally] = {}
    reasons: Counter[str] = Counter()
    for case in cases:
        request = prompt.build(case.document, case.gap, settings)
        request = replace(request, like=case.truth) if like else request
        short: list[str] = []

        def noted(asked: Infill, text: str, short: list[str] = short) -> str:
            short.append(shorten(asked, text))
            return short[-1]

        for way in ("without", "with"):
            start = time.process_time()
            with mock.patch(
                "dg_lsp.model.sources.denoised.shorten", noted if way == "with" else lambda *_: ""
            ):
                fill = filled(model, request, rounds=None if way == "with" else 0)
            spent = time.process_time() - start
            tallies.setdefault(f"{way} repair", Tally()).add(fill, case.truth.strip(), spent)
        made = "mended" if fill.repairs else "shortened" if any(short) else "as written"
        tallies.setdefault(f"  {made if fill.text else 'nothing'}", Tally()).add(
            fill, case.truth.strip(), spent
        )
        if fill.refusal:
            reasons[re.sub(r".*best one: |`.*", "", fill.refusal)] += 1
    print(f"{cases[0].kind}{', its true length given' if like else ''}:")
    for name, tally in tallies.items():
        print(f"  {name:16s} {tally.words()}")
    print("  refused:", dict(reasons.most_common(6)))


def filled(model: Checkpoint, request: Infill, rounds: int | None) -> Fill:
    """The Fill of `request`, mended in `rounds` rounds at most; None is what the effort allows."""
    changed = {} if rounds is None else {request.effort: rounds}
    with mock.patch.dict("dg_lsp.model.plan.ROUNDS", changed):
        *_, last = infill(model, PrefixCache(model.network.config.text_config), request)
    assert isinstance(last, Fill)
    return last


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--kinds", nargs="+", default=["function_body", "rest_of_line"])
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--real", action="store_true", help="count what becomes of real fills")
    parser.add_argument("--like", action="store_true", help="real fills have the length of the truth")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = load_checkpoint(options.checkpoint, "cpu")
    settings = Settings(effort=options.effort, prefix_bytes=2000, suffix_bytes=1000)
    for kind in options.kinds:
        cases, _ = evaluation.read(evaluation.shipped(), [kind], options.cases)
        if options.real:
            real(model, cases, settings, like=options.like)
        else:
            compare(model, cases, settings, options.seed)


if __name__ == "__main__":
    main()
