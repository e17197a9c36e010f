"""Notifications about the user: `dg-lsp/dismissed` and `dg-lsp/used` of ghost text, `dg-lsp/yanked`, `dg-lsp/left`."""

import logging
from typing import Any

from dg_lsp.server.convert import position_of
from dg_lsp.server.counts import REPORTED
from dg_lsp.server.handlers.context import Context
from dg_lsp.server.snapshot import Snapshot

_LONGEST = 1_000_000  # characters of one use
# Errors for params that are wrong, or a document that is.
_WRONG = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
_log = logging.getLogger("dg_lsp.server")


async def dismissed(context: Context, params: Any) -> None:
    """Do not offer the dismissed ghost text there again; `params` has uri, position and text."""
    try:
        snapshot = await _snapshot(context, params["uri"])
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
        snapshot = await _snapshot(context, uri)
    except _WRONG as error:
        _log.info("ignored a notification dg-lsp/used (%s)", type(error).__name__)
        return
    document, shown = snapshot.document, context.session.offers.shown(snapshot.document.uri)
    context.uses.note(document, snapshot.settings, (kind, characters), shown)


async def yanked(context: Context, params: Any) -> None:
    """Note which lines the user has copied; `params` has textDocument and range."""
    try:
        snapshot = await _snapshot(context, params["textDocument"]["uri"])
        span = params["range"]
        start, end = (snapshot.offset(position_of(span[name])) for name in ("start", "end"))
    except _WRONG as error:
        _log.info("ignored a notification dg-lsp/yanked (%s)", type(error).__name__)
        return
    document, (start, end) = snapshot.document, sorted((start, end))
    # After a line end nothing of the next line is copied.
    first, last = document.line_at(start), document.line_at(max(end - 1, start))
    context.workspace.documents.copy(document.uri, (first, last))


async def left(context: Context, params: Any) -> None:
    """Note where the user has left a document; `params` has textDocument and position."""
    try:
        snapshot = await _snapshot(context, params["textDocument"]["uri"])
        line = snapshot.document.line_at(snapshot.offset(position_of(params["position"])))
    except _WRONG as error:
        _log.info("ignored a notification dg-lsp/left (%s)", type(error).__name__)
        return
    context.workspace.documents.visit(snapshot.document.uri, line)


async def _snapshot(context: Context, uri: str) -> Snapshot:
    """Return the open document `uri` with its settings; raise NoGap, a ValueError, if it may not be read."""
    await context.workspace.git_answered(uri)
    return context.around(context.workspace.document(uri))
