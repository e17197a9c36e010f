"""Ahead: ghost text that is computed for the text of a document, and for one that it is likely to have next."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dg_lsp.gaps import Edit, half_word
from dg_lsp.source.document import Document

_Computing = Coroutine[Any, Any, list[Edit]]


@dataclass(slots=True)
class _Work:
    """The task that computes ghost text for `cursor` of `document`. waiting: how many requests wait for it.

    shown: the text that is shown there, below which the task writes; empty if it writes another. again: the task was
    cancelled because it may have read text that is gone, so that requests which wait for it begin another.
    """

    document: Document
    cursor: int
    task: asyncio.Future[list[Edit]]
    shown: bytes = b""
    waiting: int = 0
    again: bool = False

    def typed(self, document: Document) -> bytes | None:
        """Return the text typed or accepted at the cursor until `document`; None if the work is of no use for that.

        Of shown text it is a beginning. Else it is a part of a word: work for `x = ` is good for `x = No`, but neither
        for `x = (` nor for `y = No`. Once the work has ended, what it found is a recent offer.
        """
        old, new, cursor = self.document.data, document.data, self.cursor
        end = len(new) - (len(old) - cursor)
        if end < cursor or new[:cursor] != old[:cursor] or new[end:] != old[cursor:]:
            return None
        typed = new[cursor:end]
        if not typed:
            return typed
        agrees = self.shown.startswith(typed) if self.shown else half_word(typed, len(typed)) == typed
        return typed if agrees and not self.task.done() else None


class _Again(Exception):
    """The work was cancelled, and is to begin once more."""


class Ahead:
    """At most one piece of work for each document; its fill becomes a recent offer.

    It continues while a word is typed at its place, because its text may begin with that word; and below shown text
    while that is typed or accepted. state: returns the state of an open document.
    """

    def __init__(self, state: Callable[[str], int | None]) -> None:
        self._state = state
        self._work: dict[str, _Work] = {}

    def begin(self, document: Document, cursor: int, computing: _Computing, shown: bytes = b"") -> None:
        """Begin work, ghost text at `cursor` of `document` or the lines below `shown` there, that nothing waits for."""
        self._begin(document, cursor, computing).shown = shown

    async def result(self, document: Document, cursor: int, compute: Callable[[], _Computing]) -> list[Edit]:
        """Begin the work `compute()`, ghost text at `cursor` of `document`, and return what it finds.

        If this is cancelled because a word is typed, the work continues.
        """
        while True:
            with suppress(_Again):
                return await self._end_of(self._begin(document, cursor, compute()), document)

    async def ended(self, document: Document, cursor: int) -> None:
        """Wait for the end of running work for `cursor` of `document`, or for it before a word was typed there.

        Raise the error of the work if nothing was typed. Work that has ended says nothing: its text is a recent offer,
        and the cause of its error, such as an engine that has died, may be gone.
        """
        work = self._work.get(document.uri)
        waits = work is not None and not work.shown and not work.task.done()
        typed = work.typed(document) if work and waits else None
        if work is None or typed is None or work.cursor + len(typed) != cursor:
            return
        try:
            await self._end_of(work, document)
        except _Again:
            return
        except Exception:
            if not typed:
                raise

    def line(self, uri: str) -> int | None:
        """Return the line of the work for the document `uri`; None if there is none."""
        work = self._work.get(uri)
        return work.document.line_at(work.cursor) if work else None

    def stop(self) -> None:
        """Cancel all work."""
        for uri in list(self._work):
            self._stop(uri)

    def restart(self) -> None:
        """Cancel all work, since text that it may have read is gone; what a request waits for begins again."""
        for work in self._work.values():
            work.again = True
        self.stop()

    def stop_unasked(self) -> None:
        """Cancel the work that no request waits for."""
        for uri in [uri for uri, work in self._work.items() if not work.waiting]:
            self._stop(uri)

    def changed(self, document: Document) -> None:
        """Cancel the work for a document if it cannot be right for the text that it has now, that of `document`."""
        if not self.is_for(document):
            self._stop(document.uri)

    def is_for(self, document: Document) -> bool:
        """Return whether there is work for `document`, as it is or as it was before a word was typed at the place."""
        work = self._work.get(document.uri)
        return work is not None and work.typed(document) is not None

    def grows(self, document: Document) -> bool:
        """Return whether lines are being written below text that `document` shows."""
        work = self._work.get(document.uri)
        return work is not None and bool(work.shown) and not work.task.done() and self.is_for(document)

    def _begin(self, document: Document, cursor: int, computing: _Computing) -> _Work:
        self._stop(document.uri)
        self.stop_unasked()
        task = asyncio.ensure_future(computing)
        # Its result may never be used.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        work = self._work[document.uri] = _Work(document, cursor, task)
        return work

    async def _end_of(self, work: _Work, document: Document) -> list[Edit]:
        """Return what `work` finds for a request about `document`; cancel it if the request is cancelled for good.

        Raises:
            _Again: the work may have read text that is gone.
        """
        work.waiting += 1
        try:
            await asyncio.wait([work.task])
        except asyncio.CancelledError:
            overtaken = self._state(document.uri) not in (None, document.state)
            if not overtaken and self._work.get(document.uri) is work:
                self._stop(document.uri)
            raise
        finally:
            work.waiting -= 1
        if work.again:
            raise _Again
        return work.task.result()

    def _stop(self, uri: str) -> None:
        if work := self._work.pop(uri, None):
            work.task.cancel()
