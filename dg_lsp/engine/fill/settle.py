"""A batch settles: its steps, a Draft after each, until the deadline or until a row can be shown.

Knows batches and the clock of a request; knows no lengths and no order in which batches come.
"""

import time
from collections.abc import Generator, Iterator
from dataclasses import replace

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.denoise import Step, denoise
from dg_lsp.engine.fill.candidates import Batch, candidates, draft
from dg_lsp.engine.fill.plan import MENDING, plan_for
from dg_lsp.engine.load.checkpoint import Checkpoint
from dg_lsp.engine.sampler import AnchoredSampler, SeededNoise
from dg_lsp.text.messages import Draft, Fill, Reason

CANVAS_SEED = 104729  # a prime; so canvases of one fill draw different noise
_ROUND_SEED = 1299709  # another, for the rounds of mending


class Clock:
    """What one request took: milliseconds, steps of searching and of canvases written full; and its deadline."""

    def __init__(self, deadline: float | None) -> None:
        self._start, self._deadline = time.perf_counter(), deadline
        self.searched = self.steps = 0

    def milliseconds(self) -> float:
        """Since the request was taken up."""
        return (time.perf_counter() - self._start) * 1000

    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self._deadline is not None and self.milliseconds() > self._deadline * 1000

    def left(self) -> float | None:
        """Seconds to the deadline, more than none; None where there is none."""
        return None if self._deadline is None else max(self._deadline - self.milliseconds() / 1000, 0.001)

    def stamp(self, fill: Fill) -> Fill:
        """`fill` with what the whole request took, and whether the deadline ended it."""
        reason: Reason = "deadline" if self.is_over() and fill.reason != "stable" else fill.reason
        steps, searched = fill.steps + self.steps, self.searched
        return replace(fill, steps=steps, searched=searched, reason=reason, milliseconds=self.milliseconds())


def denoised(model: Checkpoint, cache: PrefixCache, batch: Batch, number: int) -> Iterator[Step]:
    """The steps of the batch `number` of a canvas, or of a round of mending it."""
    schedule = replace(model.schedule, steps=MENDING if batch.round else plan_for(batch.request).steps)
    seed = batch.request.seed + 7919 * number + CANVAS_SEED * len(batch.before) + _ROUND_SEED * batch.round
    noise = SeededNoise(seed, model.vocabulary, model.device)
    sampler = AnchoredSampler(batch.canvas, schedule.entropy_bound, noise)
    return denoise(model.network, cache, sampler, schedule)


def until_answered(model: Checkpoint, batch: Batch, steps: Iterator[Step]) -> Iterator[Step]:
    """`steps` up to the first at which half of the rows have finished and can be shown: a choice, and no long wait."""
    known, enough = 0, (batch.canvas.rows + 1) // 2
    for step in steps:
        yield step
        finished = step.finished.nonzero().flatten().tolist()
        if len(finished) > known:
            known = len(finished)
            shown = [c for c in candidates(model, batch, step, finished) if not c.fill.refusal]
            if len(shown) >= enough:
                return


def drafts(
    model: Checkpoint, batch: Batch, steps: Iterator[Step], clock: Clock
) -> Generator[Draft, None, Step]:
    """A Draft of the best length's row after each step, until the deadline; returns the last Step."""
    last: Step | None = None
    for last in steps:
        yield draft(model, batch, last, clock.milliseconds())
        if clock.is_over():
            break
    assert last is not None, "a schedule has at least one step"
    return last
