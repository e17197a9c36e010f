"""The notification `dg-lsp/used`."""

import logging
from typing import Any

from dg_lsp.server.counts import REPORTED
from dg_lsp.server.handlers.context import Context
from dg_lsp.text.reasons import NoGap

_LONGEST = 1_000_000  # characters of one use
_log = logging.getLogger("dg_lsp.server")


async def used(context: Context, params: Any) -> None:
    """Count a use of ghost text; `params` has textDocument, kind and characters."""
    try:
        uri, kind = str(params["textDocument"]["uri"]), params["kind"]
        characters = min(max(int(params["characters"]), 0), _LONGEST)
        if kind not in REPORTED:
            raise ValueError(kind)
        snapshot = context.around(context.workspace.document(uri))
    except (KeyError, TypeError, ValueError, OverflowError, NoGap) as error:
        _log.info("ignored a notification dg-lsp/used (%s)", type(error).__name__)
        return
    document, shown = snapshot.document, context.session.offers.shown(snapshot.document.uri)
    context.uses.note(document, snapshot.settings, (kind, characters), shown)
