"""An engine that says what it was told to: for tests, and for trying a front end without a checkpoint.

Keeps the laws of `host.base.Engine` (Drafts, then one Fill; nothing after `close`); knows no model.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from dg_lsp.host.base import EngineError
from dg_lsp.text.messages import Draft, Fill, Infill


class ScriptedEngine:
    """Answers each Infill with `drafts` and then `answer`, which is a Fill or a function that makes one.

    `requests` holds what was asked so far; `closed` says whether `close` was called.
    """

    def __init__(self, answer: Fill | Callable[[Infill], Fill], drafts: Sequence[Draft] = ()) -> None:
        self._answer, self._drafts = answer, tuple(drafts)
        self.requests: list[Infill] = []
        self.closed = False

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield the drafts and the answer.

        Raises:
            EngineError: the engine was closed.
        """
        if self.closed:
            raise EngineError("the engine is closed; open another")
        self.requests.append(request)
        for draft in self._drafts:
            yield draft
            # A real engine gives the event loop a turn between two steps.
            await asyncio.sleep(0)
        yield self._answer if isinstance(self._answer, Fill) else self._answer(request)

    async def close(self) -> None:
        """End the engine; a later `infill` raises."""
        self.closed = True
