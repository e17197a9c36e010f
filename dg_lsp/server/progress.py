"""Progress of a task, shown by the client if the task takes a while."""

import asyncio
import itertools
import logging
import time
from typing import Any

from lsprotocol import types

from dg_lsp.engine.client import name_of_state
from dg_lsp.messages import Status
from dg_lsp.server.capabilities import Capabilities
from dg_lsp.server.rpc.protocol import Sender

_AFTER = 0.3  # seconds of work after which the progress begins
_EVERY = 0.1  # seconds between two reports
_numbers = itertools.count(1)
_log = logging.getLogger("dg_lsp.server")


class Progress:
    """The progress of the current task, which the client's cancel button cancels: `async with ... as progress`.

    token: the client's, if it sent one. can: its abilities.
    """

    def __init__(
        self, sender: Sender, title: str, token: types.ProgressToken | None, can: Capabilities
    ) -> None:
        self._sender, self._title, self._token, self._can = sender, title, token, can
        self._begun = False
        self._latest: tuple[str, int | None] = ("", None)
        self._sent = 0.0

    async def __aenter__(self) -> "Progress":
        """Start the timer after which the progress begins."""
        self._timer = asyncio.create_task(self._begin(asyncio.current_task()))
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the progress, if it has begun."""
        self._timer.cancel()
        if self._token is not None:
            self._sender.tokens.pop(self._token, None)
        if self._begun and self._token is not None:
            self._sender.end(self._token, types.WorkDoneProgressEnd())

    def report(self, message: str, percentage: int | None = None) -> None:
        """Report the state of the work; a report within 0.1 seconds of the last one is dropped."""
        self._latest = (message, percentage)
        now = time.monotonic()
        if self._begun and self._token is not None and now - self._sent >= _EVERY:
            self._sent = now
            report = types.WorkDoneProgressReport(message=message, percentage=percentage)
            self._sender.report(self._token, report)

    def report_loading(self, status: Status) -> None:
        """Report how much of the engine is loaded."""
        if status.state in ("starting", "loading"):
            self.report(name_of_state(status), int(status.done * 100))

    async def _begin(self, task: Any) -> None:
        await asyncio.sleep(_AFTER)
        if self._token is None:
            if not self._can.progress:
                return
            token = f"dg-lsp-{next(_numbers)}"
            try:
                # Only the progress waits for the client's consent; the work continues.
                await self._sender.create_async(token)
            except Exception as error:
                _log.info("the client refused a progress token (%s)", type(error).__name__)
                return
            self._token = token
        self._sender.tokens[self._token] = task
        message, percentage = self._latest
        begin = types.WorkDoneProgressBegin(
            title=self._title, cancellable=True, message=message or None, percentage=percentage
        )
        self._sender.begin(self._token, begin)
        self._begun = True
