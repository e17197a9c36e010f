"""A fake server in a thread, and an engine that asks it."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette

from dg_lsp.engine.local import LocalEngine
from dg_lsp.messages import Draft, Fill, Infill

E = TypeVar("E", bound=LocalEngine)


@contextmanager
def served(app: Starlette, certificate: tuple[Path, Path] | None = None) -> Iterator[str]:
    """Serve `app` in a thread, over TLS with a certificate and its key; yield its address."""
    door = socket.create_server(("127.0.0.1", 0))
    files: dict[str, Any] = dict(
        zip(("ssl_certfile", "ssl_keyfile"), certificate or (None, None), strict=True)
    )
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, **files))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([door])), daemon=True)
    thread.start()
    try:
        yield f"http{'s' if certificate else ''}://127.0.0.1:{door.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        with suppress(OSError):
            door.close()


def with_engine(make: Callable[[], E], work: Callable[[E], Awaitable[None]]) -> None:
    """Do `work` with the engine that `make` returns, in two minutes at most, and close it."""

    async def whole() -> None:
        engine = await asyncio.to_thread(make)
        try:
            async with asyncio.timeout(120):
                await work(engine)
        finally:
            await engine.close()

    asyncio.run(whole())


async def answer_of(engine: Any, request: Infill) -> Fill:
    """Return the Fill of `request`, which comes after any number of Drafts."""
    events = [event async for event in engine.infill(request)]
    assert isinstance(events[-1], Fill) and all(isinstance(e, Draft) for e in events[:-1])
    return events[-1]
