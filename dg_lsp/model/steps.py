"""The denoising steps of one batch: start them, stop them early, report each as a Draft; and the request's clock.

Knows batches; knows no length search, and not which batch comes next.
"""

import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TypeVar

from torch import Tensor

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.plan import MENDING, plan_for
from dg_lsp.model.rows import Batch, check_rows, draft
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Step
from dg_lsp.text.messages import Draft, Fill, Reason, Run

# Primes that keep the seeds of a request's batches apart, so that each draws other noise: by what earlier canvases of
# the fill wrote, by the round of repair, by the number of the batch.
CANVAS_SEED, _ROUND_SEED, _BATCH_SEED = 104729, 1299709, 7919

_LATE = 2.0  # deadlines after which nobody waits for a text any more

Event = TypeVar("Event")
Result = TypeVar("Result")


class Clock:
    """The time and steps that a request has taken, and its deadline.

    searched: steps of the length search. steps: steps of canvases that were written full, before the last canvas.
    """

    def __init__(self, deadline: float | None) -> None:
        self._start, self._deadline = time.perf_counter(), deadline
        self.searched = self.steps = 0

    def milliseconds(self) -> float:
        """Milliseconds since the engine took the request up."""
        return (time.perf_counter() - self._start) * 1000

    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return self._deadline is not None and self.milliseconds() > self._deadline * 1000

    def is_hopeless(self) -> bool:
        """Return whether the deadline passed long ago; before that a late text is better than none."""
        return self._deadline is not None and self.milliseconds() > _LATE * self._deadline * 1000

    def left(self) -> float | None:
        """Seconds to the deadline, at least 0.001; None without a deadline."""
        return None if self._deadline is None else max(self._deadline - self.milliseconds() / 1000, 0.001)

    def why_nothing(self) -> str:
        """Return why there is no text, as a sentence."""
        return (
            "the deadline passed before a candidate was ready"
            if self.is_over()
            else "the model left the gap empty"
        )

    def stamp(self, fill: Fill) -> Fill:
        """`fill` with the time and steps of the whole request, and reason "deadline" if the deadline ended it."""
        reason: Reason = "deadline" if self.is_over() and fill.reason != "stable" else fill.reason
        steps, searched = fill.steps + self.steps, self.searched
        return replace(fill, steps=steps, searched=searched, reason=reason, milliseconds=self.milliseconds())


def draft_of(count: int, text: str, clock: Clock) -> Draft:
    """A Draft that shows `text`, `count` tokens long."""
    return Draft(count, (Run(text, anchored=False, accepted=True, entropy=0.0),), clock.milliseconds())


def denoise_batch(
    model: Checkpoint, cache: PrefixCache, batch: Batch, number: int, start: Tensor | None = None
) -> Iterator[Step]:
    """Start to denoise `batch`, the `number`-th one of its canvas or a round of repair; an iterator of its steps.

    start: the tokens that its free slots start from, where it is not noise (see AnchoredSampler).

    The seed depends on the request's seed and on which batch it is, and on nothing that other batches did.
    """
    schedule = replace(model.schedule, steps=MENDING if batch.round else plan_for(batch.request, model).steps)
    seed = (
        batch.request.seed
        + _BATCH_SEED * number
        + CANVAS_SEED * len(batch.before)
        + _ROUND_SEED * batch.round
    )
    noise = SeededNoise(seed, model.vocabulary, model.device)
    sampler = AnchoredSampler(batch.canvas, schedule.entropy_bound, noise, start)
    steps: Iterator[Step] = model.network.denoise(cache, sampler, schedule)
    return steps


def stop_when_enough(model: Checkpoint, batch: Batch, steps: Iterator[Step]) -> Iterator[Step]:
    """Yield `steps` until half of the rows have finished with a fill that can be shown.

    Half of the rows leave a choice between candidates, and nobody waits for the slowest row.
    """
    known, enough = 0, (batch.canvas.rows + 1) // 2
    for step in steps:
        yield step
        finished = step.finished.nonzero().flatten().tolist()
        if len(finished) > known:
            known = len(finished)
            accepted = [c for c in check_rows(model, batch, step, finished) if not c.fill.refusal]
            if len(accepted) >= enough:
                return


def report_steps(
    model: Checkpoint, batch: Batch, steps: Iterator[Step], clock: Clock
) -> Generator[Draft, None, Step]:
    """Run `steps` up to the deadline, and yield a Draft of the first row (the best length) after each.

    Returns the last step.
    """
    last: Step | None = None
    for last in steps:
        yield draft(model, batch, last, clock.milliseconds())
        if clock.is_over():
            break
    assert last is not None, "a schedule has at least one step"
    return last


def run_to_end(events: Generator[Event, None, Result]) -> tuple[list[Event], Result]:
    """All events that the generator yields, and what it returns."""
    seen: list[Event] = []
    while True:
        try:
            seen.append(next(events))
        except StopIteration as end:
            return seen, end.value
