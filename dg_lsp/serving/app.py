"""The engine as an ASGI application: infill, status, stop. Knows HTTP and one Service; knows no socket and no model.

An answer is a stream of lines in the format of `wire`. A client cancels by closing the stream.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dg_lsp.engine import wire
from dg_lsp.messages import Infill
from dg_lsp.serving.service import Service

CLIENT = "dg_lsp.client"  # the key of a scope for the name of the token that a request came with
_LARGEST = 16 << 20  # bytes of a request
_UNREAD = 30.0  # seconds in which a client must have read a line


def make_app(
    service: Service, stop: Callable[[], None] | None = None, routes: Sequence[Route] = ()
) -> Starlette:
    """Return the application: POST /v1/infill, GET /v1/status, `routes`, and POST /v1/stop if `stop` is given."""

    async def infill(request: Request) -> Response:
        try:
            wanted = wire.unpack(Infill, wire.parsed(await _body(request)))
        except _TooLong as error:
            return refusal(413, str(error))
        except wire.WireError as error:
            return JSONResponse({"error": wire.pack(wire.Failure(str(error)))}, 400)
        if client := request.scope.get(CLIENT):
            # What a client calls itself could be another's name.
            wanted = replace(wanted, window=client, session=f"{client} {wanted.session}")
        return _Lines(partial(service.answer, wanted))

    async def status(_: Request) -> Response:
        return JSONResponse(wire.pack(service.status()))

    async def end(request: Request) -> Response:
        assert stop is not None
        if request.query_params.get("if") == "idle" and service.in_use:
            return refusal(409, "a request is under way")
        stop()
        return JSONResponse({})

    ours = [
        Route("/v1/infill", infill, methods=["POST"]),
        Route("/v1/status", status, methods=["GET"]),
        *([Route("/v1/stop", end, methods=["POST"])] if stop else []),
    ]
    return Starlette(routes=[*ours, *routes])


def refusal(code: int, message: str, wait: float = 0.0) -> Response:
    """Return an answer with a reason that a client can show.

    wait: seconds after which another attempt makes sense; 0 if it never does, and then the connection is closed.
    """
    headers = {"retry-after": str(max(round(wait), 1))} if wait else {"connection": "close"}
    if code == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse({"error": wire.pack(wire.Failure(message))}, code, headers)


def config_of(app: ASGIApp, http: type[H11Protocol], **own: Any) -> uvicorn.Config:
    """Return uvicorn's configuration for `app`, which writes its own log; own: further options."""
    plain: dict[str, Any] = {"loop": "asyncio", "lifespan": "off", "ws": "none"}
    return uvicorn.Config(app, http=http, log_config=None, access_log=False, **plain, **own)


async def _body(request: Request) -> bytes:
    """Return the body of `request`; raise _TooLong if it has, or says that it has, more than _LARGEST bytes."""
    body, length = bytearray(), request.headers.get("content-length", "0")
    too_long = _TooLong(f"a request of more than {_LARGEST >> 20} MiB is not taken")
    if len(length) > 12 or not length.isdecimal() or int(length) > _LARGEST:
        raise too_long
    with suppress(ClientDisconnect):
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST:
                raise too_long
    return bytes(body)


class _TooLong(wire.WireError):
    """A request is longer than any that an editor sends."""


class _Lines(Response):
    """A response that sends lines as they come, and cancels the answer as soon as the client disconnects."""

    def __init__(self, answer: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]]) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        # While `_send` waits for the next line, it would not notice that the client has left.
        tasks = [asyncio.create_task(self._send(send)), asyncio.create_task(_disconnected(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        async def send_line(line: bytes) -> None:
            # A client that reads nothing for so long blocks others.
            async with asyncio.timeout(_UNREAD):
                await send({"type": "http.response.body", "body": line, "more_body": True})

        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._answer(send_line)
        await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
