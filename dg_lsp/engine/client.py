"""An engine process as its clients see it: its answers over HTTP, its states in words, its pace.

Knows the wire; starts none.
"""

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median_low

import httpcore2
import httpx2

import dg_lsp
from dg_lsp.checkpoints import FAST_ENOUGH, advice_if_slow
from dg_lsp.engine import wire
from dg_lsp.engine.http import (
    EngineAbsent,
    EngineDied,
    EngineFailed,
    EngineRefused,
    EngineSilent,
    EngineStrange,
    SameUser,
    busy_for,
)
from dg_lsp.engine.runtime import sockets
from dg_lsp.engine.wire import Failure, Loading
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.messages import OFF, Draft, Fill, Infill, Priority, State, Status
from dg_lsp.source.document import whole

# Seconds without a line after which an engine is asked whether it lives; a living one sends one each second.
SILENCE = 15.0

_END = 1.0  # seconds for the end of a stream after its last line
# Seconds after which a request that the user ended by typing on says that its text came too late: they had paused.
_PAUSE = 1.0
_FILLS = 8  # ghost texts that are looked at
_FEW = 3  # with fewer than that nothing is said

# An answer that no engine gives: not packed as it says, or not in the format of `wire`.
_UNREADABLE = (httpx2.DecodingError, wire.WireError)


class Pace:
    """The times of the last requests for ghost text, in seconds; infinite for those whose text came too late.

    checkpoint: the one that fills them, "" if that is not known here, as with a server.
    """

    def __init__(self, checkpoint: str = "") -> None:
        self._checkpoint = checkpoint
        self._took: deque[float] = deque(maxlen=_FILLS)
        self._why, self._off = "", ""

    def after(self, event: Draft | Fill, priority: Priority) -> Status:
        """Return the status of the engine after the last `event` of an answer, which is noted if it is a Fill."""
        if isinstance(event, Draft):
            return Status(self.state, 1.0, self.why)
        self.note(event, priority)
        return Status(self.state, 1.0, self.why, milliseconds=event.milliseconds, steps=event.steps)

    def note(self, fill: Fill, priority: Priority) -> None:
        """Keep the time of `fill`, if it was for ghost text, or why there is none.

        Other fills may take long, and so may text of several lines.
        """
        if priority != "ghost" or len(fill.text.splitlines()) > 1:
            return
        self._off = fill.refusal if fill.refusal.startswith(OFF) else ""
        self._add(math.inf if self._off else fill.milliseconds / 1000)

    def gave_up(self, seconds: float, priority: Priority) -> None:
        """Note that a request ended without a Fill after so many `seconds`, since the user typed on.

        Those that lasted less than a pause were ended by the next key of a word, and say nothing.
        """
        if priority == "ghost" and seconds >= _PAUSE:
            self._add(math.inf)

    def forget(self) -> None:
        """Forget the times, which were those of a busier machine."""
        self._took.clear()
        self._why, self._off = "", ""

    def _add(self, seconds: float) -> None:
        self._took.append(seconds)
        # Found here, because it reads files, and a status is made for each Draft.
        self._why = self._off or (self._advice() if self.usual > FAST_ENOUGH else "")

    @property
    def usual(self) -> float:
        """The median of the seconds that they took; 0 while they are few, infinite while ghost text is off."""
        if self._off:
            return math.inf
        return median_low(self._took) if len(self._took) >= _FEW else 0.0

    @property
    def off(self) -> str:
        """Return why ghost text is off, as a clause that follows the checkpoint's name; empty if it is not off."""
        return self._off.removeprefix(OFF).partition(";")[0].strip()

    @property
    def state(self) -> State:
        """The state of an engine that waits for work: "ready", or "slow"."""
        return "slow" if self._why else "ready"

    @property
    def why(self) -> str:
        """Return how to fix the state "slow", as a sentence; empty if the engine is not slow."""
        return self._why

    def _advice(self) -> str:
        advice = advice_if_slow(self._checkpoint, at_least(self.usual))
        return f"ghost text usually {duration(self.usual)}, which is too long while one types; {advice}"


class RemoteEngine:
    """The engine that is found at `place`, as `runtime.Address` has it, or that an HTTP client reaches.

    tell: called with a Status whenever it changes. silence: seconds without a line after which the engine counts as
    dead. pace: that of its fills. heard: time.monotonic() of its last word in any answer; 0 before the first.
    """

    def __init__(
        self,
        place: Path | httpx2.AsyncClient,
        tell: Callable[[Status], None] = lambda _: None,
        silence: float = SILENCE,
        pace: Pace | None = None,
    ) -> None:
        self._tell, self._pace = tell, pace or Pace()
        self.heard = 0.0
        self._client = _client_of(place, silence) if isinstance(place, Path) else place
        self._place = place if isinstance(place, Path) else place.base_url

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts, then one Fill. Closing the generator closes the stream, which cancels the request."""
        request = replace(request, session=whole(request.session))
        headers = {"x-session-id": request.session.encode("utf-8").hex()[-64:]}
        body, answered, last, began = wire.pack(request), False, None, time.monotonic()
        # Work that nobody has asked for keeps nobody waiting.
        tell = (lambda _: None) if request.priority == "ahead" else self._tell
        try:
            async with self._client.stream("POST", "/v1/infill", json=body, headers=headers) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise _refusal(answer)
                lines = answer.aiter_lines()
                async for line in lines:
                    answered, self.heard = True, time.monotonic()
                    event = wire.event(line)
                    if isinstance(event, Loading):
                        began = time.monotonic()
                        self._tell(Status("loading", event.done))
                    elif isinstance(event, Failure):
                        if last is None and not event.failed:
                            tell(Status(self._pace.state, 1.0, self._pace.why))
                        raise (EngineFailed if event.failed else EngineError)(event.message)
                    elif event is not None:
                        if last is None:
                            tell(Status("busy", 1.0))
                        last = event
                        began = math.inf if isinstance(event, Fill) else began
                        yield event
                    if isinstance(event, Fill):
                        # Read to its end, the stream leaves a connection that can be used again.
                        with suppress(httpx2.HTTPError, OSError):
                            async with asyncio.timeout(_END):
                                await anext(lines, None)
                        return
        except (httpx2.HTTPError, OSError, wire.WireError) as error:
            raise self._broken(error, answered=answered) from error
        except (GeneratorExit, asyncio.CancelledError):
            self._pace.gave_up(time.monotonic() - began, request.priority)
            raise
        finally:
            # The engine is free again, also after a cancellation.
            if last is not None:
                tell(self._pace.after(last, request.priority))
        raise EngineDied("the engine ended in the middle of an answer; the next request starts it again")

    async def status(self, patience: float = SILENCE) -> Status:
        """Return the engine's status; an engine that does not answer within `patience` seconds counts as silent."""
        ask = partial(self._client.get, "/v1/status", timeout=patience)
        try:
            try:
                answer = await ask()
            except (httpx2.ReadError, httpx2.RemoteProtocolError):
                # The connection was closed unanswered. If the engine has ended, the second attempt cannot connect.
                answer = await ask()
            self.heard = time.monotonic()
            if answer.status_code != 200:
                raise _refusal(answer)
            return wire.unpack(Status, wire.parsed(answer.content))
        except httpx2.ConnectError as error:
            raise EngineAbsent("no engine is running") from error
        except httpx2.TimeoutException as error:
            raise EngineSilent("the engine does not answer; end it with dg-lsp engine stop") from error
        except (httpx2.RemoteProtocolError, *_UNREADABLE) as error:
            # An engine that ends closes its socket first, so this is no HTTP.
            raise self._strange(error) from error
        except (httpx2.HTTPError, OSError) as error:
            raise EngineDied("the engine does not answer; end it with dg-lsp engine stop") from error

    async def stop(self) -> None:
        """Ask the engine to exit."""
        try:
            await self._client.post("/v1/stop", timeout=2)
        except httpx2.ConnectError as error:
            raise EngineAbsent("no engine is running") from error
        except httpx2.HTTPError as error:
            raise EngineDied("the engine does not answer") from error

    async def stop_idle(self) -> bool:
        """Ask the engine to exit unless a request is under way; return whether it does."""
        with suppress(httpx2.HTTPError):
            return (await self._client.post("/v1/stop", params={"if": "idle"}, timeout=2)).status_code == 200
        return False

    async def close(self) -> None:
        """Close the connections; the engine runs on."""
        await self._client.aclose()

    def _strange(self, error: Exception) -> EngineStrange:
        return EngineStrange(
            f"the program at {self._place} is not an engine of this dg-lsp ({error}); end it with dg-lsp engine stop"
        )

    def _broken(self, error: Exception, *, answered: bool) -> EngineError:
        """Return the error of an answer that `error` ended. answered: a line of it had come."""
        # No HTTP at all looks like an engine that has ended; `status` distinguishes them.
        if isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError) and not answered:
            return EngineAbsent("no engine is running")
        if isinstance(error, _UNREADABLE):
            return self._strange(error)
        if isinstance(error, httpx2.TimeoutException):
            return EngineSilent("the engine answers too slowly; try again")
        return EngineDied("the engine died in the middle of an answer; the next request starts it again")


def duration(seconds: float) -> str:
    """Say how long something takes: `takes 2.3 s`, or, if the user usually does not wait for its end, that."""
    return f"takes {seconds:.1f} s" if math.isfinite(seconds) else "takes longer than you wait"


def at_least(seconds: float) -> float:
    """Return how long it takes at least: of what the user did not wait for, only that is known."""
    return seconds if math.isfinite(seconds) else FAST_ENOUGH


def name_of_state(status: Status) -> str:
    """Return the state as it is shown everywhere: `loading 40 %`, `failed: CAUSE AND FIX`, else its own word."""
    if status.state == "loading":
        return f"loading {status.done * 100:.0f} %"
    return f"failed: {status.why}" if status.state == "failed" else status.state


def is_older(status: Status) -> bool:
    """Return whether the engine of `status` is of an older dg-lsp than this one, and without a request."""
    theirs, ours = (
        [int(n) for n in re.findall(r"\d+", said)[:3]] for said in (status.package, dg_lsp.__version__)
    )
    return bool(theirs) and theirs < ours and status.state in ("ready", "slow") and not status.queue


def other_version(status: Status) -> str:
    """Say in a sentence that the engine of `status` is of another dg-lsp than this one; empty if it is of the same."""
    if not status.package or status.package == dg_lsp.__version__:
        return ""
    return (
        f"the engine is of dg-lsp {status.package}, and this is {dg_lsp.__version__}: dg-lsp engine stop, and the next "
        "request starts that of this version"
    )


def _client_of(path: Path, silence: float) -> httpx2.AsyncClient:
    """Return an HTTP client of the engine of this user at `path`."""
    # Without `trust_env=False` a proxy from the environment would be used.
    return httpx2.AsyncClient(
        transport=_Transport(path),
        base_url="http://engine",
        trust_env=False,
        timeout=httpx2.Timeout(5.0, connect=silence, read=silence, pool=None),
    )


def _refusal(answer: httpx2.Response) -> EngineError:
    """Return the error for an `answer` with another status than 200."""
    try:
        failure = wire.event(answer.content.decode("utf-8", "replace"))
    except wire.WireError:
        failure = None
    said = failure.message if isinstance(failure, Failure) else ""
    if (wait := busy_for(answer)) is not None:
        return EngineBusy(said or "the engine is busy; try again later", wait)
    if not said:
        raise wire.WireError(f"it answers {answer.status_code} without a reason")
    kind = EngineRefused if answer.status_code in (401, 403) else EngineError
    return kind(f"the engine refused the request: {said}")


class _Transport(httpx2.AsyncHTTPTransport):
    """HTTP to the engine that listens at the socket `path`, and to nobody else."""

    def __init__(self, path: Path) -> None:
        super().__init__(verify=False)
        # A kept connection may belong to an engine that has ended since. No request waits here for another one: the
        # engine schedules them, and refuses those beyond its bound.
        self._pool = httpcore2.AsyncConnectionPool(
            uds=str(path), max_connections=None, max_keepalive_connections=0, network_backend=SameUser()
        )


def running() -> list[Status]:
    """Return the status of each engine of this user that answers within a second."""
    return asyncio.run(_running())


async def _running() -> list[Status]:
    found = []
    for path in sockets():
        remote = RemoteEngine(path)
        with suppress(EngineError):
            found.append(await remote.status(1.0))
        await remote.close()
    return found
