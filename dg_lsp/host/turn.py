"""The queue for the model thread. Knows asyncio only."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turn:
    """A lock whose waiters are served by rank, the lowest first, and within a rank in the order of arrival."""

    def __init__(self) -> None:
        self._taken = False
        self._count = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @property
    def waiting(self) -> int:
        """The number of waiters."""
        return sum(not place[2].done() for place in self._waiting)

    @asynccontextmanager
    async def take(self, rank: int) -> AsyncIterator[None]:
        """Wait for the lock, with a given rank, and hold it; a waiter that is cancelled leaves the queue."""
        if self._taken:
            self._count += 1
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (rank, self._count, ready))
            try:
                await ready
            except asyncio.CancelledError:
                # If the lock was handed over just before the cancellation, it goes to the next waiter.
                if ready.done() and not ready.cancelled():
                    self._pass_on()
                raise
        self._taken = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            ready = heapq.heappop(self._waiting)[2]
            if not ready.done():
                # `_taken` stays True, so that nobody takes the lock before the woken waiter runs.
                ready.set_result(None)
                return
        self._taken = False
