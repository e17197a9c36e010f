"""Progress for the client: work-done progress, which begins only if the work takes a while, and Drafts.

Knows pygls; knows no engine.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lsprotocol import types

from dg_lsp.engine.states import name_of_state
from dg_lsp.server import convert
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.messages import Draft, Status

_AFTER = 0.3  # seconds of work after which the progress begins
_EVERY = 0.1  # seconds between two reports
_DRAFTS = 1 / 20  # seconds between two Drafts
_numbers = itertools.count(1)
_log = logging.getLogger("dg_lsp.server")


class Progress:
    """The progress of one task: `async with Progress(...) as progress`, then `progress.report(...)`.

    task: what the client's cancel button cancels. token: the client's, if it sent one.
    """

    def __init__(self, server: Server, title: str, task: Any, token: types.ProgressToken | None = None):
        self._server, self._title, self._task = server, title, task
        self._asked, self._token = token, token
        self._begun = False
        self._latest: tuple[str, int | None] = ("", None)
        self._sent = 0.0
        self._timer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Progress":
        """Start the timer after which the progress begins."""
        self._timer = asyncio.create_task(self._begin())
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the progress, if it has begun."""
        assert self._timer is not None
        self._timer.cancel()
        if self._token is not None:
            self._server.work_done_progress.tokens.pop(self._token, None)
        if self._begun and self._token is not None:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())

    def report(self, message: str, percentage: int | None = None) -> None:
        """Report the state of the work; a report within 0.1 seconds of the last one is dropped."""
        self._latest = (message, percentage)
        now = time.monotonic()
        if self._begun and self._token is not None and now - self._sent >= _EVERY:
            self._sent = now
            report = types.WorkDoneProgressReport(message=message, percentage=percentage)
            self._server.work_done_progress.report(self._token, report)

    async def _begin(self) -> None:
        await asyncio.sleep(_AFTER)
        progress = self._server.work_done_progress
        if self._token is None:
            window = self._server.client_capabilities.window
            if not (window and window.work_done_progress):
                return
            token = f"dg-lsp-{next(_numbers)}"
            try:
                # Only the progress waits for the client's consent; the work goes on.
                await progress.create_async(token)
            except Exception as error:
                _log.info("the client refused a progress token (%s)", type(error).__name__)
                return
            self._token = token
        progress.tokens[self._token] = self._task
        message, percentage = self._latest
        begin = types.WorkDoneProgressBegin(
            title=self._title, cancellable=True, message=message or None, percentage=percentage
        )
        progress.begin(self._token, begin)
        self._begun = True


@contextmanager
def loading_to(progress: Progress, watchers: set[Callable[[Status], None]]) -> Iterator[None]:
    """Report how far the engine is loaded while the block runs; `watchers` are called with each Status."""

    def watch(status: Status) -> None:
        if status.state in ("starting", "loading"):
            progress.report(name_of_state(status), int(status.done * 100))

    watchers.add(watch)
    try:
        yield
    finally:
        watchers.discard(watch)


def drafts_to(ls: Server, document: Document, gap: Gap) -> Callable[[Draft], None]:
    """A function that sends a Draft to the client, at most 20 a second; it does nothing if the client wants none."""
    if not convert.asked_for(ls.client_capabilities, "drafts"):
        return lambda _: None
    span = convert.range_of(document, gap.span, ls.documents.encoding)
    plain = {"start": convert.plain(span.start), "end": convert.plain(span.end)}
    where = {"uri": document.uri, "version": document.version, "range": plain}
    request = ls.protocol.msg_id
    sent = 0.0

    def show(draft: Draft) -> None:
        nonlocal sent
        if draft.step and time.monotonic() - sent >= _DRAFTS:
            sent = time.monotonic()
            ls.protocol.notify("dg-lsp/draft", convert.draft_params(draft, request, where))

    return show
