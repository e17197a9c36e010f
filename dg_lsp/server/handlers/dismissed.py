"""The notification `dg-lsp/dismissed`."""

import logging
from typing import Any

from lsprotocol import types

from dg_lsp.server.handlers.context import Context

_log = logging.getLogger("dg_lsp.server")


async def dismissed(context: Context, params: Any) -> None:
    """Do not offer the dismissed ghost text there again; `params` has uri, position and text."""
    try:
        snapshot = context.around(context.workspace.document(params["uri"]))
        position = types.Position(int(params["position"]["line"]), int(params["position"]["character"]))
        text = str(params["text"])
    except (KeyError, TypeError, ValueError) as error:
        _log.info("ignored a notification dg-lsp/dismissed (%s)", type(error).__name__)
        return
    context.session.offers.dismiss(snapshot.document, snapshot.offset(position), text)
