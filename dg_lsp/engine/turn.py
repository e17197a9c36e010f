"""Turns on the model thread: the order in which live infills compute their steps. Knows asyncio and the records only.

An infill holds a seat for its whole life and takes a turn for each step, so a long fill delays others by one step.
Ghost texts are short, and worth nothing late: one that has begun is finished before the next of them begins.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from dg_lsp.filling.engine import EngineBusy
from dg_lsp.messages import PRIORITIES, Infill

_MOST = 64  # live infills


@dataclass(eq=False, slots=True)
class Seat:
    """One live infill.

    rank: the place of its priority, 0 first. number: counts the infills as they come. begun: whether it had a turn.
    """

    rank: int
    window: str
    document: str
    number: int
    begun: bool = False


class Turns:
    """The seats of the live infills, and the one turn that they share.

    The turn goes to the highest priority; among ghost texts to the one that has begun; then to the window, and then to
    the document, that has waited longest for a step; in a document to the newest infill.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._seats: set[Seat] = set()
        self._waiting: dict[Seat, asyncio.Future[None]] = {}
        self._taken = self._choosing = False
        self._count = 0
        self._served: dict[tuple[str, ...], int] = {}

    @property
    def waiting(self) -> int:
        """The number of live infills besides the one that is running."""
        return max(len(self._seats) - 1, 0)

    @contextmanager
    def seat(self, request: Infill) -> Iterator[Seat]:
        """Hold a seat for `request` during the block; raise EngineBusy if all are taken."""
        if len(self._seats) >= self._most:
            raise EngineBusy(
                f"the engine is busy: {len(self._seats)} fills are asked for already; try again later"
            )
        self._count += 1
        seat = Seat(PRIORITIES.index(request.priority), request.window, request.session, self._count)
        self._seats.add(seat)
        try:
            yield seat
        finally:
            self._seats.discard(seat)
            if not self._seats:
                self._served.clear()

    @asynccontextmanager
    async def turn(self, seat: Seat) -> AsyncIterator[None]:
        """Wait for the turn, and hold it for one step; a waiter that is cancelled leaves the queue."""
        ready = self._waiting[seat] = asyncio.get_running_loop().create_future()
        self._choose_soon()
        try:
            await ready
        except asyncio.CancelledError:
            # If the turn was given just before the cancellation, it goes to the next waiter.
            if ready.done() and not ready.cancelled():
                self._give_back()
            raise
        finally:
            self._waiting.pop(seat, None)
        try:
            yield
        finally:
            self._give_back()

    def _give_back(self) -> None:
        self._taken = False
        self._choose_soon()

    def _choose_soon(self) -> None:
        """Choose after the running callback, so that the infill whose step has just ended can ask for the next one."""
        if not self._taken and not self._choosing:
            self._choosing = True
            asyncio.get_running_loop().call_soon(self._choose)

    def _choose(self) -> None:
        self._choosing = False
        waiting = [seat for seat, ready in self._waiting.items() if not ready.done()]
        if self._taken or not waiting:
            return
        seat = min(waiting, key=self._order)
        self._taken = seat.begun = True
        self._count += 1
        for served in ((seat.window,), (seat.window, seat.document)):
            self._served[served] = self._count
        self._waiting[seat].set_result(None)

    def _order(self, seat: Seat) -> tuple[int, ...]:
        finishes = seat.begun and seat.rank == 0
        window = self._served.get((seat.window,), 0)
        document = self._served.get((seat.window, seat.document), 0)
        return (seat.rank, not finishes, window, document, -seat.number)
