"""The engine as an ASGI application: infill, status, stop. Knows HTTP and one Service; knows no socket and no model.

An answer is a stream of lines in the format of `wire`. A client cancels by closing the stream.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dg_lsp.host import wire
from dg_lsp.host.service import Service
from dg_lsp.text.messages import Infill

_LARGEST = 16 << 20  # bytes of a request


def make_app(service: Service, stop: Callable[[], None]) -> Starlette:
    """The application: POST /v1/infill, GET /v1/status, POST /v1/stop, which calls `stop`."""

    async def infill(request: Request) -> Response:
        try:
            wanted = wire.unpack(Infill, wire.parsed(await _body(request)))
        except wire.WireError as error:
            return JSONResponse({"error": wire.pack(wire.Failure(str(error)))}, 400)
        return _Lines(service.lines(wanted))

    async def status(_: Request) -> Response:
        return JSONResponse(wire.pack(service.status()))

    async def end(_: Request) -> Response:
        stop()
        return JSONResponse({})

    return Starlette(
        routes=[
            Route("/v1/infill", infill, methods=["POST"]),
            Route("/v1/status", status, methods=["GET"]),
            Route("/v1/stop", end, methods=["POST"]),
        ]
    )


async def _body(request: Request) -> bytes:
    """The body of `request`; raises WireError beyond _LARGEST bytes."""
    body = b""
    with suppress(ClientDisconnect):
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST:
                raise wire.WireError(f"a request of more than {_LARGEST >> 20} MiB is not taken")
    return body


class _Lines(Response):
    """A response that sends lines as they come, and closes their generator as soon as the client disconnects."""

    def __init__(self, lines: AsyncGenerator[bytes, None]) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        # While `_send` waits for the next line it would not notice that the client has left.
        tasks = [asyncio.create_task(self._send(send)), asyncio.create_task(_disconnected(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._lines) as lines:
            async for line in lines:
                await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
