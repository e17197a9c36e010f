"""The model menu: the request `dg-lsp/models`, and the commands that fetch a model and switch to one."""

from typing import Any

from lsprotocol import types

from dg_lsp.checkpoints import OFFERED
from dg_lsp.engine.choice import Model, better_in, fetch
from dg_lsp.filling.engine import EngineError
from dg_lsp.server.handlers.context import Context
from dg_lsp.server.rpc.envelope import RequestError

FETCH, USE = "dg-lsp.fetchModel", "dg-lsp.useModel"


async def models(context: Context, _: Any = None) -> dict[str, Any]:
    """Return the models that can be used or fetched, and the name of one that is better than the one in use."""
    found = await context.session.models()
    return {"models": [*map(_entry, found)], "better": better_in(found)}


async def fetch_model(context: Context, name: str) -> dict[str, Any]:
    """Run the command `dg-lsp.fetchModel`."""
    if name not in OFFERED:
        raise RequestError(
            types.ErrorCodes.InvalidParams,
            f"there is no model {name[:80]!r} to fetch, only {', '.join(OFFERED)}",
        )
    try:
        async with context.client.progress(f"Fetch the model {name}", None) as progress:
            await fetch(name, progress.report)
    except EngineError as error:
        raise RequestError(types.LSPErrorCodes.RequestFailed, str(error)) from error
    return {"name": name}


async def use_model(context: Context, name: str) -> dict[str, Any]:
    """Run the command `dg-lsp.useModel`: the next request goes to an engine with that model, which starts to load."""
    try:
        await context.session.use(name)
    except (EngineError, OSError) as error:
        raise RequestError(types.LSPErrorCodes.RequestFailed, str(error)) from error
    context.board.begin(name)
    context.session.warm()
    return {"name": name}


def _entry(model: Model) -> dict[str, Any]:
    """Return a model as the protocol has it."""
    return {
        "name": model.name,
        "bytes": model.bytes,
        "memoryBytes": model.memory,
        "secondsPerLine": model.seconds,
        "can": [*model.can],
        "state": model.state,
        "note": model.note or None,
    }
