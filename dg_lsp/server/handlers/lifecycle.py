"""The beginning and the end of a session, and its settings."""

import asyncio
import logging
from typing import Any

from lsprotocol import types

from dg_lsp.files.excluded import excluding_names
from dg_lsp.server.client import SECTION
from dg_lsp.server.handlers.context import Context
from dg_lsp.server.settings import Reported
from dg_lsp.server.workspace import PATIENCE
from dg_lsp.source.language import suffixes

_WITHOUT = (
    "until it does, a model of this machine is used with the settings that are known, and nothing is sent to a server "
    "that engineUrl names"
)


async def initialize(context: Context, params: types.InitializeParams) -> None:
    """Keep the client's capabilities and options, and apply its settings.

    At once, so that the first document that is opened starts the right engine. `initialized` shows what is wrong. What
    the client is asked for later is waited for before any text is read.
    """
    context.client.introduce(params)
    if context.client.can.configuration:
        context.workspace.expect_settings()
    context.session.configure(context.client.options, {})
    context.board.checkpoint = context.workspace.settings.checkpoint


async def initialized(context: Context, _: types.InitializedParams) -> None:
    """Read the settings from the client, and register for changes of them and of the workspace's files.

    A client that does not answer in time is registered with all the same, and its answer is used when it comes.
    """
    reading = asyncio.ensure_future(configure(context))
    await asyncio.wait([reading], timeout=PATIENCE)
    if not reading.done():
        context.workspace.settle(f"the client did not answer workspace/configuration within {PATIENCE:g} s")
        context.client.warn(f"{context.workspace.unknown}; {_WITHOUT}")
    await _register(context)
    await reading


async def _register(context: Context) -> None:
    """Register for changes of the settings and of the workspace's files."""
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
    """Apply the client's settings: requested from it if it supports that, else as `sent`.

    What the client does not report, or reports wrongly, stays as it is known.
    """
    client, workspace = context.client, context.workspace
    if client.can.configuration:
        answer = await client.settings()
    else:
        section = sent.get(SECTION, sent or None) if isinstance(sent, dict) else None
        answer = Reported(section) if isinstance(section, dict) else None
    for sentence in context.session.report(client.options, answer):
        client.warn(sentence)
    settings = workspace.settings
    # In a thread, since many globs take a while to read.
    await asyncio.to_thread(excluding_names, (), settings.exclude)
    if answer is None and workspace.unknown:
        workspace.settle("the client did not report its settings")
        client.warn(f"{workspace.unknown}; {_WITHOUT}")
    else:
        workspace.settle()
    logging.getLogger("dg_lsp").setLevel(settings.log_level.upper())
