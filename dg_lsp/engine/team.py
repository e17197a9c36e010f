"""The engine of a team's server as an Engine: over HTTPS, with spare connections; and that of this machine behind it.

A cancel closes its stream and with it the connection (HTTP/1.1), so others are kept open: a keystroke waits for no
handshake.
"""

import asyncio
import hashlib
import hmac
import secrets
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

import httpx2

from dg_lsp.engine.client import SILENCE, Pace, RemoteEngine
from dg_lsp.engine.http import (
    CONNECT,
    Backoff,
    EngineAbsent,
    EngineDied,
    EngineFailed,
    EngineRefused,
    EngineSilent,
    EngineStrange,
    check_leaving,
    client_options,
    in_the_way,
    pause_after,
    trusted,
)
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.wire import WIRE
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.messages import Draft, Fill, Infill, Status
from dg_lsp.settings import Settings, check_url, is_team

_SPARE = 2  # open connections that wait for the next request
_KEPT = 240.0  # seconds that one is kept; the server keeps it longer
_SLOW = 3.0  # seconds without a draft after which the engine of this machine takes over
_FOLLOW = 0.2  # seconds between two looks at an engine that loads
_GONE = "the engine ended while it loaded; the next request starts it again"
# Errors that concern the server, and not only one request.
_AWAY = (EngineAbsent, EngineBusy, EngineDied, EngineFailed, EngineRefused)

# Messages in place of an error's own words, which speak of an engine on this machine.
_WORDS: dict[type[EngineError], str] = {
    EngineAbsent: "no engine answers at {url}; ask its administrator, or empty the setting engineUrl",
    EngineSilent: "the server at {url} answers too slowly",
    EngineStrange: "the program at {url} is not a dg-lsp engine",
    EngineDied: "the connection to {url} was lost in the middle of an answer; try again",
    EngineRefused: "{error}; see the setting engineTokenFile",
}


def open_engine(
    settings: Settings, tell: Callable[[Status], None] = lambda _: None
) -> "TeamEngine | ResidentEngine":
    """Return the engine for `settings`: a team's server, or this user's process, which may ask a foreign server."""
    if is_team(settings.engine_url):
        return TeamEngine(settings, tell)
    return ResidentEngine(settings, tell)


async def load(engine: "TeamEngine | ResidentEngine", tell: Callable[[Status], None]) -> Status:
    """Start `engine` and wait until it is loaded; `tell` is called with each status meanwhile. Return the last one."""
    status = await engine.start()
    while status.state in ("starting", "loading"):
        await asyncio.sleep(_FOLLOW)
        status = await engine.status() or Status("failed", why=_GONE)
        tell(status)
    return status


@dataclass(slots=True)
class _Lane:
    """One connection to the server, kept open between requests. busy: a request or its renewal has it."""

    client: httpx2.AsyncClient
    remote: RemoteEngine
    open: bool = False
    busy: bool = False


class TeamEngine:
    """The engine at `settings.engine_url`; `tell` is called with a Status whenever it changes."""

    def __init__(self, settings: Settings, tell: Callable[[Status], None] = lambda _: None) -> None:
        check_url(settings.engine_url)
        self._settings, self._tell = settings, tell
        # Names of documents leave this machine only as a hash that nobody else can make.
        self._key = secrets.token_bytes(32)
        self._trusted: ssl.SSLContext | bool | None = None
        self._lanes: list[_Lane] = []
        self._background: set[asyncio.Task[None]] = set()
        self._agreed: Status | None = None
        self._pace = Pace()
        self._backoff = Backoff(first=1.0)
        self._here: ResidentEngine | None = None

    def exclude(self, globs: tuple[str, ...]) -> None:
        """Keep the text of files that `globs` name on this machine from now on."""
        self._settings = replace(self._settings, exclude=globs)

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts, then one Fill. Closing the generator cancels."""
        # Refuse what must not leave this machine.
        check_leaving(request, self._settings.exclude)
        answered, count, wait = False, self._backoff.count, self._backoff.left
        # Ask the server, unless it was away or busy a moment ago.
        if wait <= 0:
            try:
                async with aclosing(self._asked(request)) as events:
                    async for event in events:
                        answered = True
                        yield event
                self._backoff.succeed()
                return
            except _AWAY as error:
                self._fail(error, count)
                if answered or not self._settings.engine_fallback:
                    raise self._backoff.why from error
        elif not self._settings.engine_fallback:
            why = self._backoff.why
            again = f"{why} (it is asked again in {wait:.0f} s)"
            raise EngineBusy(again, wait) if isinstance(why, EngineBusy) else EngineError(again)
        # If it is, or is slow, and nothing has come yet, ask the engine of this machine, if the settings say so.
        async with aclosing(self._local().infill(request)) as events:
            async for event in events:
                yield event

    async def start(self) -> Status:
        """Open connections and return the server's status; with the fallback, that of this machine's engine."""
        try:
            status = await self._agree()
        except _AWAY as error:
            self._fail(error, self._backoff.count)
            if not self._settings.engine_fallback:
                raise self._backoff.why from error
            return await self._local().start()
        self._keep_open()
        self._tell(status)
        return status

    async def status(self) -> Status | None:
        """Return the server's status, or why it cannot be used; with the fallback, that of this machine's engine."""
        if self._backoff.left <= 0:
            try:
                return await self._agree()
            except EngineError as error:
                self._fail(error, self._backoff.count)
        found = await self._local().status() if self._settings.engine_fallback else None
        return found or Status("failed", why=str(self._backoff.why))

    async def close(self) -> None:
        """Close the connections; the server runs on, and so does the engine of this machine."""
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        for lane in self._lanes:
            await lane.client.aclose()
        if self._here is not None:
            await self._here.close()

    async def _asked(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield the server's answer to `request`; ask once more if the connection is lost or the engine dies.

        After one address there may be several engines, of which another one answers; its Drafts begin again.
        """
        session = hmac.new(self._key, request.session.encode("utf-8", "surrogatepass"), hashlib.sha256)
        sent = replace(request, session=session.hexdigest()[:32], window="")
        for again in (False, True):
            if self._agreed is None:
                await self._agree()
            lane, whole = self._lane(), False
            self._keep_open()
            try:
                async with aclosing(lane.remote.infill(sent)) as events:
                    yield await self._first(events)
                    async for event in events:
                        yield event
                whole = True
                return
            except (EngineAbsent, EngineDied) as error:
                # One that is silent would be silent for as long again.
                if again or isinstance(error, EngineSilent):
                    raise
                # What answers next may be another version.
                self._agreed = None
            except EngineBusy:
                whole = True
                raise
            finally:
                lane.busy, lane.open = False, whole

    async def _agree(self) -> Status:
        """Return the server's status; raise EngineFailed if it speaks another version of the wire."""
        lane = self._lane()
        try:
            status = await lane.remote.status(CONNECT)
            lane.open, self._agreed = True, None
        finally:
            lane.busy = False
        if status.wire != WIRE:
            newer = "this dg-lsp" if status.wire > WIRE else "the server's"
            raise EngineFailed(
                f"the server has dg-lsp {status.package}, which speaks version {status.wire} of the wire, and here it "
                f"is {WIRE}; install a newer version of {newer}"
            )
        self._agreed = status
        return status

    def _lane(self) -> _Lane:
        """Return a free connection, preferably an open one; it is the caller's until its `busy` is False again."""
        free = [lane for lane in self._lanes if not lane.busy]
        lane = next((lane for lane in free if lane.open), None) or next(iter(free), None) or self._new_lane()
        lane.busy = True
        return lane

    def _new_lane(self) -> _Lane:
        if self._trusted is None:
            self._trusted = trusted(self._settings.engine_ca)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=1, keepalive_expiry=_KEPT)
        client = httpx2.AsyncClient(**client_options(self._settings, self._trusted, SILENCE), limits=limits)
        lane = _Lane(client, RemoteEngine(client, self._say, pace=self._pace))
        self._lanes.append(lane)
        return lane

    def _keep_open(self) -> None:
        """Open connections in the background until _SPARE of them wait for the next request."""
        waiting = sum(lane.open and not lane.busy for lane in self._lanes)
        for _ in range(_SPARE - waiting - len(self._background)):
            closed = (lane for lane in self._lanes if not lane.open and not lane.busy)
            lane = next(closed, None) or self._new_lane()
            lane.busy = True
            task = asyncio.create_task(_opened(lane))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _first(self, events: AsyncGenerator[Draft | Fill, None]) -> Draft | Fill:
        """Wait for the first event; where this machine's engine can fill, raise EngineSilent after _SLOW seconds."""
        try:
            async with asyncio.timeout(_SLOW if self._settings.engine_fallback else None):
                return await anext(events)
        except TimeoutError as error:
            raise EngineSilent(f"the server has drafted nothing for {_SLOW:.0f} s") from error

    def _fail(self, error: EngineError, count: int) -> None:
        """Note that the attempt that began after `count` failures failed, and tell why."""
        why = _named(error, self._settings)
        if self._backoff.fail(why, count, pause_after(error)) and not isinstance(error, EngineBusy):
            # It may be another one by then.
            self._agreed = None
            if not self._settings.engine_fallback:
                self._tell(Status("failed", why=str(why)))

    def _local(self) -> ResidentEngine:
        """Return the engine of this machine, whose states are reported with the reason why it is used."""
        if self._here is None:
            self._here = ResidentEngine(replace(self._settings, engine_url=""), self._say_here)
        return self._here

    def _say_here(self, status: Status) -> None:
        why = f"{self._backoff.why}; the engine of this machine fills meanwhile"
        self._tell(status if status.state == "failed" else replace(status, why=why))

    def _say(self, status: Status) -> None:
        self._tell(replace(status, checkpoint=self._agreed.checkpoint if self._agreed else ""))


async def _opened(lane: _Lane) -> None:
    """Open the connection of `lane`, or see that it is open."""
    try:
        with suppress(httpx2.HTTPError, OSError, EngineError):
            lane.open = (await lane.client.get("/healthz")).status_code == 200
    finally:
        lane.busy = False


def _named(error: EngineError, settings: Settings) -> EngineError:
    """Return `error` in words that name the server at `engine_url`, and the proxy on the way to it."""
    if found := in_the_way(settings, error.__cause__):
        return found
    kind = next((kind for kind in _WORDS if isinstance(error, kind)), None)
    return kind(_WORDS[kind].format(error=error, url=settings.engine_url)) if kind else error
