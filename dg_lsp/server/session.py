"""Session: the live work of one client, and the engine that does it.

It runs on the event loop; slow work happens in the engine's process or in a thread.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from dg_lsp.checkpoints import pick, sees_both_sides
from dg_lsp.engine.choice import Model, models, room_for
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.team import TeamEngine, load
from dg_lsp.filling.engine import Checked, Engine, EngineError
from dg_lsp.filling.fill import FillOptions, Outcome, fill_gap
from dg_lsp.filling.growth import grow
from dg_lsp.filling.offers import Offer, offer_of
from dg_lsp.gaps import Gap
from dg_lsp.guard import doubt
from dg_lsp.messages import Status
from dg_lsp.server.ahead import Ahead
from dg_lsp.server.offers import Offers
from dg_lsp.server.repeats import Repeats
from dg_lsp.server.settings import Reported, Sources, derived, is_stricter, reported
from dg_lsp.server.trigger import Trigger
from dg_lsp.server.unasked import Unasked
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import Settings, is_foreign
from dg_lsp.source.document import Document

Result = TypeVar("Result")
Remote = TeamEngine | ResidentEngine
Open = Callable[[Settings, Callable[[Status], None]], Engine]

_OF_THE_INDEX = ("exclude", "exclude_ignored", "include", "related")
_SOON = 0.5  # seconds that the model menu waits for the status of an engine
_log = logging.getLogger("dg_lsp.server")


class Superseded(Exception):
    """The work was cancelled, because a newer request or a change of the document replaced it."""


class Session:
    """The work of one client on the documents of `workspace`.

    open_engine: makes an Engine from settings. tell: called with each Status of the engine. auto: the checkpoint of the
    workspace's settings is what AUTO means. offers: the results that are kept. ahead: work for text that the user has
    not typed yet. unasked: who writes text that nobody has asked for. repeats: the next edits that were offered.
    """

    def __init__(
        self,
        workspace: Workspace,
        open_engine: Open,
        tell: Callable[[Status], None],
        *,
        auto: bool = False,
    ) -> None:
        self._workspace, self._open_engine, self._tell = workspace, open_engine, tell
        self._engine: Engine | None = None
        self._live: dict[str, set[asyncio.Future[Any]]] = {}
        self._ghost: dict[str, asyncio.Future[Any]] = {}
        self._loading: tuple[Remote, asyncio.Task[None]] | None = None
        self._sources = Sources(workspace.base, auto=auto)
        self.unasked = Unasked(open_engine, tell)
        self.ahead = Ahead(workspace.documents.state)
        self.offers, self.repeats, self.trigger = Offers(), Repeats(), Trigger()

    @property
    def engine(self) -> Engine:
        """The engine of the settings."""
        if self._engine is None:
            self._engine = self._open_engine(self._workspace.settings, self._pass_on)
        return self._engine

    def door(self, document: Document, settings: Settings, engine: Engine | None = None) -> Engine:
        """Return the engine for requests about `document` that are made with `settings`.

        What may be read is looked at again when a request is sent, since it may have changed after the text was read.
        """
        allow = partial(self._workspace.still_permit, document, settings)
        return Checked(engine or self.engine, allow)

    def report(self, own: Mapping[str, Any], answer: Reported | None) -> list[str]:
        """Apply the settings that a client has reported; return each error as a sentence.

        own: its initialization options. answer: without one what is known stays.
        """
        known, wrong = self._sources, list[str]()
        user, workspace = known.user, known.workspace
        if answer is not None:
            user, wrong = reported(user, answer.user)
            workspace, others = reported(workspace, answer.workspace)
            wrong += others
        wrong += self._apply(replace(known, own=dict(own), user=user, workspace=workspace))
        return list(dict.fromkeys(wrong))

    def configure(self, own: Mapping[str, Any], workspace: Mapping[str, Any]) -> list[str]:
        """Apply the settings of a client and its workspace in place of earlier ones, as `report` does."""
        return self._apply(replace(self._sources, own=dict(own), user={}, workspace=dict(workspace)))

    def _apply(self, sources: Sources) -> list[str]:
        """Derive the settings from `sources`: nothing else sets them. Return a sentence for each error.

        Offers made with other settings are dropped. If less or more may be read from now on, work ends, and the index
        is read again.
        """
        self._sources, before = sources, self._workspace.settings
        settings, wrong = derived(sources)
        if settings != before:
            self._workspace.settings = settings
            if isinstance(self._engine, Remote):
                self._engine.exclude(settings.exclude)
            self.offers.clear()
            if any(getattr(before, name) != getattr(settings, name) for name in _OF_THE_INDEX):
                self.files_moved()
            elif is_stricter(settings, before):
                self._stop_requests()
        return wrong

    async def fill(self, document: Document, gap: Gap, settings: Settings, wanted: FillOptions) -> Outcome:
        """Fill `gap` with the options `wanted` and those of the session, and keep the fill as an offer.

        Cancelling closes the stream. Ghost text that `settings.confidence` keeps from being shown is not kept.
        """
        priority = wanted.priority
        if priority not in ("ghost", "ahead"):
            self.ahead.stop_unasked()
        options = await self.fill_options(document, settings, wanted)
        began = time.monotonic()
        door, writer = self._writer(document, settings, options)
        try:
            outcome = await fill_gap(door, document, gap, settings, options)
        finally:
            self._noted(options)
        if priority == "ghost":
            self.trigger.filled(time.monotonic() - began)
        if options.index is not None:
            # Not before the first answer, which should not wait for the disk.
            self._workspace.project.begin(document.uri, self._workspace.settings)
        is_ghost = priority in ("ghost", "ahead")
        if offer := offer_of(document, outcome, writer):
            if is_ghost and doubt(outcome.fill, settings.confidence):
                return outcome
            self.offers.keep(offer)
            if is_ghost:
                self.offers.show(offer)
        return outcome

    async def grow(self, document: Document, offer: Offer, settings: Settings) -> bool:
        """Write what belongs below the text of `offer`, made for `document`; keep both as an offer, if there is any.

        Cancelling closes the stream.
        """
        wanted = FillOptions(priority="ahead", soon=True, unasked=True)
        options = await self.fill_options(document, settings, wanted)
        door, writer = self._writer(document, settings, options)
        outcome = await grow(door, offer, document, settings, options)
        if longer := offer_of(document, outcome, writer):
            self.offers.keep(longer)
        return longer is not None

    def _writer(self, document: Document, settings: Settings, options: FillOptions) -> tuple[Engine, str]:
        """Return the engine for a fill with `options`, and the name of its checkpoint if it is a smaller one."""
        if not options.unasked:
            return self.door(document, settings), ""
        engine = self.unasked.engine(self.engine)
        return self.door(document, settings, engine), self.unasked.name

    def _noted(self, options: FillOptions) -> None:
        """Let unasked text change its writer, after a fill with `options`, if the user has left the choice to AUTO."""
        if options.unasked and self._engine is not None and self._sources.is_auto:
            self.unasked.noted(self._engine, self._workspace.settings)

    @property
    def choice(self) -> str:
        """Say who writes unasked text and why, in a sentence; empty if the checkpoint of the settings writes all."""
        engine, settings = self._engine, self._workspace.settings
        return (
            self.unasked.sentence(engine, settings.checkpoint) if isinstance(engine, ResidentEngine) else ""
        )

    async def fill_options(self, document: Document, settings: Settings, wanted: FillOptions) -> FillOptions:
        """Return `wanted` for a fill of `document`: with other files, unless the setting related is off.

        The text above a cell of a notebook is that of the cells above it.
        """
        workspace = self._workspace
        index = await workspace.project.index_for(document) if settings.related else None
        edited = workspace.edited_beside(document) if settings.related and sees_both_sides(settings) else ()
        above = workspace.above(document)
        return replace(wanted, alternatives=settings.alternatives, index=index, above=above, edited=edited)

    async def newest(self, uri: str, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of `work`, ghost text for the document `uri`; cancel older ghost text work on it."""
        if (old := self._ghost.get(uri)) is not None:
            self._cancel(uri, old)
        task = asyncio.ensure_future(work)
        self._ghost[uri] = task
        try:
            return await self.current(uri, task)
        finally:
            if self._ghost.get(uri) is task:
                del self._ghost[uri]

    async def current(self, uri: str, work: Coroutine[Any, Any, Result] | asyncio.Future[Result]) -> Result:
        """Return the result of `work`; if the document `uri` changes or is closed, cancel it and raise Superseded."""
        task = asyncio.ensure_future(work)
        self._live.setdefault(uri, set()).add(task)
        try:
            result = await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise Superseded from None
        finally:
            kept = task in self._live.get(uri, ())
            self._cancel(uri, task)
        # Work that ended just before it was replaced could not be cancelled any more; its result is old all the same.
        if not kept:
            raise Superseded
        return result

    def _cancel(self, uri: str, task: asyncio.Future[Any]) -> None:
        """Cancel `task`, and forget it."""
        task.cancel()
        tasks = self._live.get(uri, set())
        tasks.discard(task)
        if not tasks:
            self._live.pop(uri, None)

    def warm(self) -> None:
        """Start the engine in the background, and pass on its status until it is loaded; do so once at a time."""
        engine, loading = self.engine, self._loading
        if not isinstance(engine, Remote):
            return
        if loading is None or loading[0] is not engine or loading[1].done() or loading[1].cancelling():
            self._loading = engine, asyncio.create_task(self._load(engine))

    def _pass_on(self, status: Status) -> None:
        """Pass on `status`, and follow an engine that loads: the request that has started it may end before."""
        if status.state == "slow" and self.unasked.writes:
            # Only fills on request are slow, and they may take long.
            status = replace(status, state="ready", why="")
        self._tell(status)
        if status.state in ("starting", "loading"):
            self.warm()

    async def _load(self, engine: Remote) -> None:
        try:
            await load(engine, self._tell)
        except EngineError as error:
            _log.warning("%s", error)
        except Exception as error:
            _log.error("the engine was not started: %s", type(error).__name__)

    async def loaded(self) -> Engine | None:
        """Return the engine if it was used before and is loaded: unrequested work must not load a model."""
        engine = self._engine
        if not isinstance(engine, Remote):
            return engine
        status = await engine.status()
        return engine if status is not None and status.state in ("ready", "busy") else None

    async def status(self) -> Status | None:
        """Return the status of the engine that writes unasked text, else of the other one; None if none is running."""
        return await self.unasked.status() or await self._own_status()

    async def _own_status(self) -> Status | None:
        """Return the status of the engine of the settings; None if it is not running."""
        return await self.engine.status() if isinstance(self.engine, Remote) else None

    async def models(self) -> list[Model]:
        """Return the entries of the model menu."""
        settings, status = self._workspace.settings, None
        with suppress(EngineError, TimeoutError):
            async with asyncio.timeout(_SOON):
                status = await self._own_status()
        if settings.engine_url and not self._sources.picked:
            name = (status.checkpoint if status else "") or settings.engine_url
            why = "the server that engineUrl names chooses the model"
            return [Model(name, 0, 0, None, None, (), "in use", why)]
        found = await asyncio.to_thread(models, settings, status.memory if status else 0)
        if said := self.choice or (status.why if status and status.state == "slow" else ""):
            writers = (settings.checkpoint, self.unasked.name)
            found = [replace(m, note=f"{said}; {m.note}") if m.name in writers else m for m in found]
        return found

    async def use(self, checkpoint: str) -> None:
        """Use `checkpoint`, or the server at that address, from now on instead of the settings' one.

        Its engine starts with `warm`.

        The old engine continues to run for other windows, unless its memory is needed.
        """
        found = {one.name: one for one in await self.models()}
        one = found.get(checkpoint)
        if one is None or one.state in ("not fetched", "too large"):
            why = f"{one.state}: {one.note}" if one else f"not among {', '.join(found)}"
            raise EngineError(f"the model {checkpoint} cannot be used; it is {why}")
        if one.state == "in use":
            return
        if not is_foreign(checkpoint):
            await asyncio.to_thread(pick, checkpoint)
        old, self._engine = self._engine, None
        await self.unasked.close()
        self._apply(replace(self._sources, picked=checkpoint))
        self.offers.clear()
        self._stop_work()
        if old is not None:
            if isinstance(old, ResidentEngine) and one.memory > room_for(
                checkpoint, self._workspace.settings
            ):
                await old.stop()
            await old.close()

    def changed(self, uri: str) -> None:
        """Cancel the work on the document `uri`, whose text has changed."""
        for task in list(self._live.get(uri, ())):
            self._cancel(uri, task)

    def closed(self, uri: str) -> None:
        """Cancel the work on the document `uri`; drop its text, its fills, and the fills that contain text from it."""
        self.changed(uri)
        self.ahead.restart()
        self.offers.closed(uri)
        self.repeats.closed(uri)
        self.trigger.closed(uri)
        self._workspace.project.closed(uri)
        self._workspace.refusals.closed(uri)

    def files_moved(self) -> None:
        """Forget the text of other files, and end all work, since other files may be read from now on."""
        self._workspace.refusals.forget()
        self._stop_requests()
        self._workspace.project.forget()

    def _stop_requests(self) -> None:
        """Cancel the requests for all documents."""
        self.ahead.stop()
        for uri in list(self._live):
            self.changed(uri)

    def _stop_work(self) -> None:
        """Cancel all work."""
        self.ahead.stop()
        for task in [one for tasks in self._live.values() for one in tasks]:
            task.cancel()
        if self._loading is not None:
            self._loading[1].cancel()

    async def close(self) -> None:
        """Cancel all work and close the connections to the engine, whose process continues to run."""
        self._workspace.project.forget()
        self._workspace.refusals.close()
        self._stop_work()
        await self.unasked.close()
        if self._engine is not None:
            await self._engine.close()
