"""Feedback on ghost text: the notifications `dg-lsp/dismissed` and `dg-lsp/used`."""

import logging
from typing import Any

from dg_lsp.server.convert import position_of
from dg_lsp.server.counts import REPORTED
from dg_lsp.server.handlers.context import Context

_LONGEST = 1_000_000  # characters of one use
_WRONG = (
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
)  # errors for params that are wrong, or a document that is
_log = logging.getLogger("dg_lsp.server")


async def dismissed(context: Context, params: Any) -> None:
    """Do not offer the dismissed ghost text there again; `params` has uri, position and text."""
    try:
        snapshot = context.around(context.workspace.document(params["uri"]))
        position, text = position_of(params["position"]), str(params["text"])
    except _WRONG as error:
        _log.info("ignored a notification dg-lsp/dismissed (%s)", type(error).__name__)
        return
    context.session.offers.dismiss(snapshot.document, snapshot.offset(position), text)


async def used(context: Context, params: Any) -> None:
    """Count a use of ghost text; `params` has textDocument, kind and characters."""
    try:
        uri, kind = str(params["textDocument"]["uri"]), params["kind"]
        characters = min(max(int(params["characters"]), 0), _LONGEST)
        if kind not in REPORTED:
            raise ValueError(kind)
        snapshot = context.around(context.workspace.document(uri))
    except _WRONG as error:
        _log.info("ignored a notification dg-lsp/used (%s)", type(error).__name__)
        return
    document, shown = snapshot.document, context.session.offers.shown(snapshot.document.uri)
    context.uses.note(document, snapshot.settings, (kind, characters), shown)
