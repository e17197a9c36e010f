"""The real server with an engine that does what the document says, as `#@ NAME` before the gap. Run as a script."""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable

from dg_lsp.engine.choice import resolve
from dg_lsp.engine.http import EngineDied, EngineFailed, EngineForeign, EngineSilent
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.messages import Draft, Fill, Infill, Status
from dg_lsp.reasons import NO_WORD
from dg_lsp.server.app import make_server
from dg_lsp.server.rpc.streams import serve
from dg_lsp.settings import Settings, from_environment

FILLS = {
    "empty": Fill(""),
    "unknown": Fill("", refusal=NO_WORD),
    "refused": Fill("", refusal="none of 3 candidates could be shown; the best one: it is odd"),
    "deadline": Fill("", refusal="the deadline passed before a candidate was ready"),
    "syntax": Fill("1 = = 2"),
    "swallows": Fill("1 # '''"),
    "good": Fill("None"),
    "longer": Fill("lib", others=("()",)),
}
ERRORS: dict[str, Exception] = {
    "busy": EngineBusy("the engine is busy: 64 fills are asked for already; try again later"),
    "memory": EngineError("out of memory, also with less text; set prefixBytes or cacheMegabytes lower"),
    "died": EngineDied("the engine died in the middle of an answer; the next request starts it again"),
    "silent": EngineSilent("the engine answers too slowly; try again"),
    "failed": EngineFailed("/nowhere has no config.json; name another with --checkpoint"),
    "foreign": EngineForeign("the engine at /x belongs to another user, so nothing was sent"),
    "bug": ValueError("text of the file"),
}


class Named:
    """An engine that does what the document says."""

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield the fill that the text before the gap names, or raise its error."""
        name = request.prefix.rpartition("#@ ")[2].split()[0]
        if name in ERRORS:
            raise ERRORS[name]
        if name == "slowly":
            await asyncio.sleep(30)
        if name != "nothing":
            yield FILLS.get(name, FILLS["good"])

    async def close(self) -> None:
        """Nothing is held."""


def open_named(_: Settings, __: Callable[[Status], None]) -> Named:
    return Named()


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    sys.exit(serve(make_server(resolve(from_environment()), open_named)))
