"""Session: settings, engine, the live request of each document, recent fills. Knows no protocol message.

All of it lives on the event loop; what is slow happens in the engine's process or in a worker thread.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import unquote, urlsplit

from dg_lsp.host.base import Engine, EngineError, Outcome, fill_gap
from dg_lsp.settings import Settings, SettingsError, override
from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.edit import Edit
from dg_lsp.text.fills.offers import Offer, still_good, used_up
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.messages import Draft, Status

Result = TypeVar("Result")
Open = Callable[[Settings, Callable[[Status], None]], Engine]

_RECENT = 16  # offers kept
_FAST = 0.3  # seconds between two requests of somebody who types fast
_log = logging.getLogger("dg_lsp.server")


@runtime_checkable
class Resident(Protocol):
    """An engine that has to be started, and that can say how it fares."""

    async def start(self) -> Status:
        """Start it unless it runs."""
        ...

    async def status(self) -> Status | None:
        """How it fares; None where it does not run."""
        ...


class Superseded(Exception):
    """Something newer made this piece of work pointless."""


class Session:
    """One client's session. `open_engine` makes the engine for some settings; `tell` hears how it fares."""

    def __init__(self, settings: Settings, open_engine: Open, tell: Callable[[Status], None]) -> None:
        self._base, self.settings = settings, settings
        self._open_engine, self._tell = open_engine, tell
        self._engine: Engine | None = None
        self._live: dict[str, set[asyncio.Future[Any]]] = {}
        self._ghost: dict[str, asyncio.Future[Any]] = {}
        self._asked: dict[str, float] = {}
        self._offers: deque[Offer] = deque(maxlen=_RECENT)
        self._background: set[asyncio.Future[Any]] = set()
        self.eager = False  # a client that has debounced already gets its answer at once

    @property
    def engine(self) -> Engine:
        """The engine of the current settings."""
        if self._engine is None:
            self._engine = self._open_engine(self.settings, self._tell)
        return self._engine

    def configure(self, *layers: Mapping[str, Any]) -> list[str]:
        """Put the client's settings over those of the command line; return what is wrong with them, in sentences.

        What cannot be used is left out; the rest holds. Another checkpoint or device means another engine.
        """
        settings, wrong = self._base, []
        for name, value in (item for layer in layers for item in layer.items()):
            try:
                settings = override(settings, {name: value})
            except SettingsError as error:
                wrong.append(str(error))
        old, self.settings = self.settings, settings
        if self._engine is not None and any(
            getattr(old, name) != getattr(settings, name) for name in ("checkpoint", "device", "threads")
        ):
            # The old engine goes on for other windows; here only the connections end.
            self.later(self._engine.close())
            self._engine = None
        if old != settings:
            self._offers.clear()
        return wrong

    def refusal(self, language: str) -> str:
        """Why documents of `language` get nothing, or an empty sentence."""
        if language in self.settings.disabled_languages:
            return f"{language} is switched off by the setting disabledLanguages"
        return ""

    def recent(self, document: Document, cursor: int) -> list[Edit]:
        """What a recent fill comes to at `cursor`, when what was typed since agrees with it."""
        for offer in reversed(self._offers):
            if edits := still_good(offer, document, cursor):
                return edits
        return []

    def taken(self, document: Document, cursor: int) -> bool:
        """Whether a recent fill ends at `cursor`: it was accepted, or typed out."""
        return any(used_up(offer, document, cursor) for offer in self._offers)

    async def fill(
        self, document: Document, gap: Gap, settings: Settings, show: Callable[[Draft], None]
    ) -> Outcome:
        """Fill `gap`; `show` gets the Drafts. Cancelling closes the engine's stream. Raises EngineError."""
        outcome = None
        async with aclosing(fill_gap(self.engine, document, gap, settings, settings.alternatives)) as events:
            async for event in events:
                if isinstance(event, Outcome):
                    outcome = event
                else:
                    show(event)
        if outcome is None:
            raise EngineError("the engine stopped without an answer")
        if outcome.edit:
            edits = (outcome.edit, *outcome.others)
            start, end = outcome.edit.start, outcome.edit.end
            self._offers.append(Offer(document, start, end, tuple(e.text for e in edits)))
        return outcome

    def ghost_settings(self, *, automatic: bool) -> Settings:
        """The settings of a ghost text request: one fill in time, or several where they are asked for."""
        deadline = self.settings.ghost_deadline
        if automatic:
            return replace(self.settings, deadline=deadline, alternatives=1)
        # Somebody who asks waits longer than somebody who types.
        return replace(self.settings, deadline=2 * deadline)

    async def debounce(self, uri: str) -> None:
        """Wait a moment while keys come fast, so that not each of them costs the engine a step."""
        now = time.monotonic()
        last, self._asked[uri] = self._asked.get(uri, 0.0), now
        if not self.eager and now - last < _FAST:
            await asyncio.sleep(self.settings.debounce / 1000)

    async def newest(self, uri: str, work: Coroutine[Any, Any, Result]) -> Result:
        """Do `work`, ghost text for the document `uri`; it takes the place of ghost text still being made.

        Raises:
            Superseded: something newer took its place.
        """
        if (old := self._ghost.get(uri)) is not None:
            old.cancel()
        task = asyncio.ensure_future(work)
        self._ghost[uri] = task
        try:
            return await self.current(uri, task)
        finally:
            if self._ghost.get(uri) is task:
                del self._ghost[uri]

    async def current(self, uri: str, work: Coroutine[Any, Any, Result] | asyncio.Future[Result]) -> Result:
        """Do `work` as long as the document `uri` stays as it is.

        Raises:
            Superseded: the document changed or was closed.
        """
        task = asyncio.ensure_future(work)
        self._live.setdefault(uri, set()).add(task)
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise Superseded from None
        finally:
            task.cancel()
            self._live[uri].discard(task)
            if not self._live[uri]:
                del self._live[uri]

    def warm(self) -> None:
        """Have the engine loaded soon, without anybody waiting for it."""
        if isinstance(self.engine, Resident):
            self.later(self.engine.start())

    async def status(self) -> Status:
        """How the engine fares."""
        if isinstance(self.engine, Resident) and (found := await self.engine.status()):
            return found
        return Status("starting", checkpoint=self.settings.checkpoint)

    def changed(self, uri: str) -> None:
        """End the work on the document `uri`: what it would find is for a text that is no more."""
        for task in list(self._live.get(uri, ())):
            task.cancel()

    def closed(self, uri: str) -> None:
        """Forget the document `uri`."""
        self.changed(uri)
        self._asked.pop(uri, None)
        self._offers = deque((o for o in self._offers if o.document.uri != uri), _RECENT)

    def later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do `work` in the background; what it raises is logged."""

        async def guarded() -> None:
            try:
                await work
            except EngineError as error:
                _log.warning("%s", error)
            except Exception as error:
                _log.error("background work failed: %s", type(error).__name__)

        task = asyncio.ensure_future(guarded())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """End what is running; the engine's process goes on."""
        for tasks in list(self._live.values()):
            for task in list(tasks):
                task.cancel()
        for task in list(self._background):
            task.cancel()
        if self._engine is not None:
            await self._engine.close()


def short_name(uri: str) -> str:
    """The file's name, for the log."""
    return PurePosixPath(unquote(urlsplit(uri).path)).name or uri[:80]
