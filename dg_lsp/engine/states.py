"""The state of an engine in words, and the pace from which it counts as slow. Knows the records only."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median

from dg_lsp.text.messages import OFF, Draft, Fill, Priority, State, Status

# Milliseconds that ghost text usually takes in a slow engine; the user has typed on by then.
SLOW = 1000.0
_FILLS = 8  # ghost texts that are looked at
_FEW = 3  # with fewer than that nothing is said
_FIX = "set the effort or prefixBytes lower, take a smaller checkpoint (embedded is the smallest), or run it on a GPU"


class Pace:
    """The times of the last fills for ghost text."""

    def __init__(self) -> None:
        self._took: deque[float] = deque(maxlen=_FILLS)
        self._off = ""

    def note(self, fill: Fill, priority: Priority) -> None:
        """Keep the time of `fill`, if it was for ghost text, or why there is none; other fills may take long."""
        if priority == "ghost":
            self._off = fill.refusal if fill.refusal.startswith(OFF) else ""
            if not self._off:
                self._took.append(fill.milliseconds)

    @property
    def usual(self) -> float:
        """The median of the milliseconds that they took; 0 while they are few."""
        return median(self._took) if len(self._took) >= _FEW else 0.0

    @property
    def state(self) -> State:
        """The state of an engine that waits for work: "ready", or "slow"."""
        return "slow" if self._off or self.usual > SLOW else "ready"

    @property
    def why(self) -> str:
        """Return how to fix the state "slow", as a sentence; empty if the engine is not slow."""
        if self._off or self.usual <= SLOW:
            return self._off
        return (
            f"ghost text usually takes {self.usual / 1000:.1f} s, which is too long while one types; {_FIX}"
        )


@contextmanager
def telling(
    priority: Priority, pace: Pace, tell: Callable[[Status], None]
) -> Iterator[Callable[[Draft | Fill], None]]:
    """Tell that an engine is busy with a request of `priority`, and at the end of the block that it is ready or slow.

    Yields the function that is called with each event of the answer.
    """
    status: Status | None = None
    # Work that nobody has asked for keeps nobody waiting.
    say = (lambda _: None) if priority == "ahead" else tell

    def note(event: Draft | Fill) -> None:
        nonlocal status
        if status is None:
            status = Status("busy", 1.0)
            say(status)
        if isinstance(event, Fill):
            pace.note(event, priority)
            status = Status("ready", 1.0, milliseconds=event.milliseconds, steps=event.steps)

    try:
        yield note
    finally:
        # The engine is free again, also after a cancellation.
        if status is not None:
            say(replace(status, state=pace.state, why=pace.why))


def name_of_state(status: Status) -> str:
    """Return the state as it is shown everywhere: `loading 40 %`, `failed: CAUSE AND FIX`, else its own word."""
    if status.state == "loading":
        return f"loading {status.done * 100:.0f} %"
    return f"failed: {status.why}" if status.state == "failed" else status.state
