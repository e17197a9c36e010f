"""Pauses between attempts at an engine that keeps failing, each twice as long as the one before."""

import time

from dg_lsp.filling.engine import EngineError

LONGEST = 60.0  # seconds


class Backoff:
    """The times at which an engine that failed may be asked or started again, and the reason for each pause.

    first: the seconds after a first failure, which may be an accident. count: all failures so far; an attempt is
    identified by the count at its beginning, so that the requests that one failure left open count once.
    """

    def __init__(self, first: float) -> None:
        self._first, self._in_a_row, self._not_before = first, 0, 0.0
        self.count = 0
        self.why = EngineError("")

    @property
    def left(self) -> float:
        """The seconds until the next attempt; 0 or less if it may be now."""
        return self._not_before - time.monotonic()

    def fail(self, why: EngineError, count: int, wait: float = 0.0) -> bool:
        """Note that the attempt that began after `count` failures failed; return False if that is known already.

        wait: the seconds that the engine itself asked for; 0 if it did not.
        """
        if count != self.count:
            return False
        self.count += 1
        # Failures that are long apart are accidents, also where no fill came to its end between them.
        accident = time.monotonic() > self._not_before + LONGEST
        self._in_a_row, self.why = 1 if accident else self._in_a_row + 1, why
        pause = wait or (self._first if self._in_a_row == 1 else 2.0 ** (self._in_a_row - 1))
        self._not_before = time.monotonic() + min(pause, LONGEST)
        return True

    def succeed(self) -> None:
        """Note that an attempt succeeded: the next failure is a first one again."""
        self._in_a_row = 0

    def retry(self) -> None:
        """End the pause."""
        self._not_before = time.monotonic()
