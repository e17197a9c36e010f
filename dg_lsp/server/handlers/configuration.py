"""Changes of the client's settings."""

import asyncio
import logging
from typing import Any

from lsprotocol import types

from dg_lsp.server.client import SECTION
from dg_lsp.server.handlers.context import Context
from dg_lsp.text.documents.excluded import excluding_names


async def did_change(context: Context, params: types.DidChangeConfigurationParams) -> None:
    """Apply the new settings."""
    await configure(context, params.settings)


async def configure(context: Context, sent: Any = None) -> None:
    """Apply the client's settings: requested from it if it supports that, else as `sent`."""
    changed = None
    if context.client.can.configuration:
        changed = await context.client.settings()
    elif isinstance(sent, dict):
        changed = sent.get(SECTION, sent)
    own, workspace = context.client.options, context.workspace
    for sentence in context.session.configure(own, changed if isinstance(changed, dict) else {}):
        context.client.warn(sentence)
    settings = workspace.settings
    # In a thread, since many globs take a while to read.
    await asyncio.to_thread(excluding_names, (), settings.exclude)
    workspace.configured.set()
    logging.getLogger("dg_lsp").setLevel(settings.log_level.upper())
