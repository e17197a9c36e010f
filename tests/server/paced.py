"""The server, with one request more: the processor time that its event loop has spent at most in one go. A script."""

import asyncio
import sys
import time
from typing import Any

from dg_lsp.engine.team import open_engine
from dg_lsp.server.app import make_server
from dg_lsp.server.rpc.streams import serve
from dg_lsp.settings import Settings

_spent = [0.0]


def measure() -> None:
    """Note the processor time of each callback of the event loop, in which waiting and other threads do not count."""
    run = asyncio.events.Handle._run

    def timed(handle: asyncio.events.Handle) -> None:
        began = time.thread_time()
        run(handle)
        _spent.append(time.thread_time() - began)

    asyncio.events.Handle._run = timed  # type: ignore[assignment, method-assign]


async def longest(_: Any) -> float:
    """Return the longest time since the last question."""
    found = max(_spent)
    _spent[:] = [0.0]
    return found


if __name__ == "__main__":
    measure()
    server = make_server(Settings(checkpoint=sys.argv[1]), open_engine)
    server.feature("test/longest")(longest)
    sys.exit(serve(server))
