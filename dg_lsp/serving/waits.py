"""Waits: the time in which the threads of this process were ready to run, and other programs had the cores."""

from contextlib import suppress
from pathlib import Path

_THREADS = Path("/proc/self/task")


def waits() -> dict[str, float]:
    """Return the seconds that each thread of this process has waited for a core so far; none where nobody counts them.

    The kernel counts them beside the time on a core: `54785843 481773108 37` are nanoseconds of both, and turns.
    """
    found = {}
    for thread in _THREADS.glob("*/schedstat"):
        with suppress(OSError):
            found[thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
    return found


def longest_wait(before: dict[str, float]) -> float:
    """Return the seconds that the thread that has waited longest has waited since `waits` returned `before`."""
    return max((seconds - before.get(thread, 0.0) for thread, seconds in waits().items()), default=0.0)
