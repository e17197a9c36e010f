"""The clock of a request: the time and steps that it has taken, and its deadline."""

import time
from dataclasses import replace

from dg_lsp.messages import Draft, Fill, Reason, Run

LATE = 2.0  # deadlines after which nobody waits for a text any more


class Clock:
    """The time and steps that a request has taken, and its deadline.

    searched: steps of the length search. steps: steps of canvases that were written full, before the last canvas.
    """

    def __init__(self, deadline: float | None) -> None:
        self._start, self._deadline = time.perf_counter(), deadline
        self.searched = self.steps = 0
        self._over = False

    def milliseconds(self) -> float:
        """Milliseconds since the engine took the request up."""
        return (time.perf_counter() - self._start) * 1000

    def is_over(self) -> bool:
        """Return whether the deadline has passed, or left no room for the work that was to follow."""
        return not self.has_room(0.0)

    def has_room(self, seconds: float) -> bool:
        """Return whether the deadline leaves `seconds` for what follows; if it does not, the request is over."""
        late = self._deadline is not None and self.milliseconds() / 1000 + seconds > self._deadline
        self._over = self._over or late
        return not self._over

    def is_hopeless(self, late: float = LATE) -> bool:
        """Return whether `late` deadlines have passed; before that a late text is better than none."""
        return self._deadline is not None and self.milliseconds() > late * self._deadline * 1000

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
