"""The beginning and the end of a session, and its settings."""

import asyncio
import logging
from typing import Any

from lsprotocol import types

from dg_lsp.server.client import SECTION
from dg_lsp.server.handlers.context import Context
from dg_lsp.text.documents.excluded import excluding_names
from dg_lsp.text.languages.language import suffixes


async def initialize(context: Context, params: types.InitializeParams) -> None:
    """Keep the client's capabilities and options, and apply its settings.

    At once, so that the first document that is opened starts the right engine. `initialized` shows what is wrong.
    """
    context.client.introduce(params)
    context.session.configure(context.client.options, {})
    context.board.checkpoint = context.workspace.settings.checkpoint


async def initialized(context: Context, _: types.InitializedParams) -> None:
    """Read the settings from the client, and register for changes of them and of the workspace's files."""
    await configure(context)
    found, can = list[types.Registration](), context.client.can
    if can.tells_settings:
        section = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        found.append(types.Registration("dg-lsp-configuration", method, section))
    if can.tells_files:
        glob = f"**/*{{{','.join(suffixes())}}}"
        watched = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(glob)])
        found.append(types.Registration("dg-lsp-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, watched))
        context.workspace.project.watched = True
    if found:
        await context.client.register(found)


async def shutdown(context: Context, _: Any = None) -> None:
    """Stop all work, and write the counts; the engine process runs on for other windows until it is idle."""
    await context.session.close()
    await context.uses.write()


async def did_change_configuration(context: Context, params: types.DidChangeConfigurationParams) -> None:
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
