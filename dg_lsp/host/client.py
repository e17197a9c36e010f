"""The client of an engine process: HTTP over a Unix socket. Knows the wire; starts no engine."""

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpcore2
import httpx2

from dg_lsp.host import wire
from dg_lsp.host.base import EngineError
from dg_lsp.host.connection import SameUser
from dg_lsp.host.runtime import sockets
from dg_lsp.text.messages import Draft, Fill, Infill, Status

# Seconds without a line after which an engine is asked whether it lives; a living one sends one each second.
SILENCE = 15.0

Event = TypeVar("Event", Draft, Fill)


class EngineAbsent(EngineError):
    """No engine listens at the socket, or it ended before its first line."""


class EngineDied(EngineError):
    """The engine ended, or became silent, in the middle of an answer."""


class EngineSilent(EngineDied):
    """Not a line came for long, although a living engine sends one each second."""


class EngineFailed(EngineError):
    """The engine cannot load its checkpoint; the message is the engine's own, and says what to do."""


class RemoteEngine:
    """The engine that listens on the Unix socket at `path`.

    tell: called with the share of the loading that is done, 0 to 1. silence: seconds without a line after which the
    engine counts as dead. heard: time.monotonic() of its last word in any answer; 0 before the first.
    """

    def __init__(
        self, path: Path, tell: Callable[[float], None] = lambda _: None, silence: float = SILENCE
    ) -> None:
        self._tell = tell
        self.heard = 0.0
        # Without `trust_env=False` a proxy from the environment would be used.
        self._client = httpx2.AsyncClient(
            transport=_Transport(path),
            base_url="http://engine",
            trust_env=False,
            timeout=httpx2.Timeout(5.0, read=silence, pool=None),
        )

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts, then one Fill. Closing the generator closes the stream, which cancels the request.

        Raises:
            EngineAbsent, EngineDied, EngineSilent, EngineFailed: see their docstrings. EngineError: this request
                failed; the engine still works.
        """
        async with aclosing(self._events(request)) as events:
            async for name, value in events:
                if name == "draft":
                    yield _read(Draft, value)
                elif name == "fill":
                    yield _read(Fill, value)
                    return
                elif name == "error":
                    raise (EngineFailed if value.get("failed") else EngineError)(value["message"])
                elif name == "state":
                    self._tell(value["done"])
        raise EngineDied("the engine ended in the middle of an answer; the next request starts it again")

    async def status(self, patience: float = SILENCE) -> Status:
        """The engine's status; an engine that does not answer within `patience` seconds counts as silent.

        Raises:
            EngineAbsent, EngineDied, EngineSilent: see their docstrings.
        """
        ask = partial(self._client.get, "/v1/status", timeout=patience)
        try:
            try:
                answer = await ask()
            except httpx2.ReadError:
                # The connection was closed unanswered. If the engine has ended, the second attempt cannot connect.
                answer = await ask()
            self.heard = time.monotonic()
            return wire.unpack(Status, answer.json())
        except httpx2.ConnectError as error:
            raise EngineAbsent("no engine is running") from error
        except httpx2.TimeoutException as error:
            raise EngineSilent("the engine does not answer; end it with dg-lsp engine stop") from error
        except (httpx2.HTTPError, OSError, ValueError) as error:
            raise EngineDied("the engine does not answer; end it with dg-lsp engine stop") from error

    async def stop(self) -> None:
        """Ask the engine to exit.

        Raises:
            EngineAbsent, EngineDied: see their docstrings.
        """
        try:
            await self._client.post("/v1/stop", timeout=2)
        except httpx2.ConnectError as error:
            raise EngineAbsent("no engine is running") from error
        except httpx2.HTTPError as error:
            raise EngineDied("the engine does not answer") from error

    async def close(self) -> None:
        """Close the connections; the engine runs on."""
        await self._client.aclose()

    async def _events(self, request: Infill) -> AsyncGenerator[tuple[str, Any], None]:
        """The lines of the answer as (name, value)."""
        headers = {"x-session-id": request.session.encode("utf-8").hex()[-64:]}
        answered = False
        try:
            async with self._client.stream(
                "POST", "/v1/infill", json=wire.pack(request), headers=headers
            ) as answer:
                if answer.status_code != 200:
                    message = json.loads(await answer.aread())["error"]["message"]
                    raise EngineError(f"the engine refused the request: {message}")
                async for line in answer.aiter_lines():
                    answered, self.heard = True, time.monotonic()
                    yield next(iter(json.loads(line).items()))
        except (httpx2.HTTPError, OSError, ValueError, KeyError) as error:
            if isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError) and not answered:
                raise EngineAbsent("no engine is running") from error
            if isinstance(error, httpx2.TimeoutException):
                raise EngineSilent("the engine answers too slowly; try again") from error
            raise EngineDied(
                "the engine died in the middle of an answer; the next request starts it again"
            ) from error


def _read(kind: type[Event], value: Any) -> Event:
    """The record of the class `kind` that an engine sent."""
    try:
        return wire.unpack(kind, value)
    except wire.WireError as error:
        raise EngineError(f"the engine's answer cannot be read: {error}") from error


class _Transport(httpx2.AsyncHTTPTransport):
    """HTTP over the Unix socket at `path`, to a process of the same user only."""

    def __init__(self, path: Path) -> None:
        super().__init__(uds=str(path))
        # A kept connection may belong to an engine that has ended since. No request waits here for another one: the
        # engine says whose turn it is, and which are too many.
        self._pool = httpcore2.AsyncConnectionPool(
            uds=str(path), max_connections=None, max_keepalive_connections=0, network_backend=SameUser()
        )


def running() -> list[Status]:
    """The status of each engine of this user that answers within a second."""
    found = []
    for path in sockets():
        try:
            with httpx2.Client(
                transport=httpx2.HTTPTransport(uds=str(path)), trust_env=False, timeout=1
            ) as client:
                found.append(wire.unpack(Status, client.get("http://engine/v1/status").json()))
        except (httpx2.HTTPError, OSError, ValueError):
            continue
    return found
