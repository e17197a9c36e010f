"""Waiting for a condition instead of a time: a busy machine is late, and never wrong."""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable

# Seconds for something that takes a moment on an idle machine; fewer where the tests are expected to fail.
PATIENCE = float(os.environ.get("TESTS_PATIENCE", "60"))
# Seconds before the second look; each pause is twice as long as the one before, up to the longest.
_FIRST, _LONGEST = 0.0005, 0.01


def wait_until(met: Callable[[], object], patience: float = PATIENCE) -> None:
    """Poll until `met` returns something true.

    Raises:
        AssertionError: it did not within `patience` seconds.
    """
    end, pause = time.monotonic() + patience, _FIRST
    while not met():
        assert time.monotonic() < end, f"not within {patience:.0f} s"
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)


async def until(met: Callable[[], object | Awaitable[object]], patience: float = PATIENCE) -> None:
    """Poll as `wait_until` does, and let the event loop run; `met` may be asynchronous.

    Raises:
        AssertionError: it was not met within `patience` seconds.
    """
    end, pause = time.monotonic() + patience, _FIRST
    while True:
        found = met()
        if await found if inspect.isawaitable(found) else found:
            return
        assert time.monotonic() < end, f"not within {patience:.0f} s"
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST)
