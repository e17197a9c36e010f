"""The request `dg-lsp/status`."""

from typing import Any

from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Status
from dg_lsp.server.handlers.context import Context


async def status(context: Context, params: Any = None) -> dict[str, Any]:
    """Return the object that docs/clients.md describes, for a document if `params` name one."""
    uri = params.get("uri") if isinstance(params, dict) else None
    off = ""
    if isinstance(uri, str):
        await context.workspace.git_answered(uri)
        off = context.workspace.off(uri)
    try:
        found = await context.session.status()
    except EngineError as error:
        found = Status("failed", why=str(error), checkpoint=context.board.checkpoint)
    return context.board.payload(found, off)
