"""The language server: which handler answers which method.

A handler runs to its first `await` before the next message is read, so its Snapshot is the document as the client saw
it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types

import dg_lsp
from dg_lsp.engine import choice
from dg_lsp.files.excluded import path_of
from dg_lsp.messages import Status
from dg_lsp.server.client import Client
from dg_lsp.server.handlers import command, documents, feedback, lifecycle, models
from dg_lsp.server.handlers.code_action import ACTION, SELECTION, code_action, resolve
from dg_lsp.server.handlers.context import Context
from dg_lsp.server.handlers.inline_completion import inline_completion
from dg_lsp.server.handlers.next_edit import dismiss, next_edit
from dg_lsp.server.handlers.status import status
from dg_lsp.server.handlers.target import FILL, FILL_ALL
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.server.session import Open, Session
from dg_lsp.server.status import Sentences, StatusBoard
from dg_lsp.server.uses import Uses
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import AUTO, Settings
from dg_lsp.source.language import language_ids

Handler = Callable[..., Awaitable[Any]]

_OPTIONS = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: types.InlineCompletionOptions(),
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions([ACTION, SELECTION], resolve_provider=True),
}
_HANDLERS: dict[str, Handler] = {
    types.INITIALIZED: lifecycle.initialized,
    types.SHUTDOWN: lifecycle.shutdown,
    types.TEXT_DOCUMENT_DID_OPEN: documents.did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: documents.did_change,
    types.TEXT_DOCUMENT_DID_SAVE: documents.did_save,
    types.TEXT_DOCUMENT_DID_CLOSE: documents.did_close,
    types.TEXT_DOCUMENT_INLINE_COMPLETION: inline_completion,
    types.TEXT_DOCUMENT_CODE_ACTION: code_action,
    types.CODE_ACTION_RESOLVE: resolve,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: lifecycle.did_change_configuration,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: documents.did_change_folders,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: documents.did_change_files,
    "dg-lsp/status": status,
    "dg-lsp/dismissed": feedback.dismissed,
    "dg-lsp/models": models.models,
    "dg-lsp/used": feedback.used,
    "dg-lsp/yanked": feedback.yanked,
    "dg-lsp/left": feedback.left,
    "dg-lsp/nextEdit": next_edit,
    "dg-lsp/nextEdit/dismiss": dismiss,
}
# Each with the type of its argument.
_COMMANDS: dict[str, tuple[Any, Handler]] = {
    FILL: (dict[str, Any], command.fill),
    FILL_ALL: (dict[str, Any], command.fill_all),
    models.FETCH: (str, models.fetch_model),
    models.USE: (str, models.use_model),
}


def make_server(settings: Settings, open_engine: Open) -> Server:
    """Return the server with all its handlers; `open_engine` makes an Engine from settings."""
    server = Server("dg-lsp", dg_lsp.__version__, language_ids())
    context = make_context(server, settings, open_engine)

    async def initialize(params: types.InitializeParams) -> None:
        await lifecycle.initialize(context, params)
        bound = {context.client.prefix + name: _command(*own, context) for name, own in _COMMANDS.items()}
        server.set_commands(bound)

    server.feature(types.INITIALIZE)(initialize)
    for method, handler in _HANDLERS.items():
        server.feature(method, _OPTIONS.get(method))(partial(handler, context))
    return server


def make_context(server: Server, settings: Settings, open_engine: Open) -> Context:
    """Return the Context of the handlers of `server`."""

    def folders() -> list[Path]:
        known = server.protocol.workspace
        uris = dict.fromkeys([*known.folders, *filter(None, [known.root_uri])])
        return [Path(path) for path in map(path_of, uris) if path]

    def use() -> str:
        writer = session.unasked.name or workspace.settings.checkpoint
        return uses.sentence(replace(workspace.settings, checkpoint=writer))

    def changed(status: Status) -> None:
        board.engine_changed(status)
        if status.state == "failed":
            client.warn(status.why)

    auto, settings = settings.checkpoint == AUTO, choice.resolve(settings)
    client, workspace = Client(server), Workspace(settings, server.documents, folders)
    uses = Uses(workspace.documents.at_once)
    session = Session(workspace, open_engine, changed, auto=auto)
    board = StatusBoard(client.send_status, settings.checkpoint, Sentences(use, lambda: session.choice))
    return Context(workspace, session, client, board, uses)


def _command(kind: Any, handler: Handler, context: Context) -> Handler:
    """Return a command with one argument of a `kind`, which pygls reads from its signature."""

    async def call(argument: Any) -> Any:
        return await handler(context, argument)

    call.__annotations__["argument"] = kind
    return call
