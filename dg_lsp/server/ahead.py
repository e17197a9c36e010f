"""Ahead: ghost text that is computed for the text that a document is likely to have next."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit


class Ahead:
    """At most one piece of work ahead of the user; its fill becomes a recent offer."""

    def __init__(self) -> None:
        self._work: tuple[Document, int, asyncio.Future[list[Edit]]] | None = None

    def begin(self, document: Document, cursor: int, work: Coroutine[Any, Any, list[Edit]]) -> None:
        """Begin `work`, ghost text at `cursor` of an expected `document`; older work is cancelled."""
        self.stop()
        task = asyncio.ensure_future(work)
        # Its result may never be used.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._work = document, cursor, task

    def stop(self) -> None:
        """Cancel the work."""
        if self._work is not None:
            self._work[2].cancel()
            self._work = None

    def is_for(self, document: Document) -> bool:
        """Return whether the work is for the text that `document` has now."""
        if self._work is None:
            return False
        expected = self._work[0]
        return (expected.uri, expected.data) == (document.uri, document.data)

    async def ended(self, document: Document, cursor: int) -> None:
        """Wait for the end of the work for `cursor` of `document`; return at once if there is none."""
        if self._work is not None and self.is_for(document) and self._work[1] == cursor:
            task = self._work[2]
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()
