"""The language server: which handler answers which method, with which empty answer.

A handler runs to its first `await` before the next message is read, so its Snapshot is the document as the client saw
it.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types

import dg_lsp
from dg_lsp.server.client import Client
from dg_lsp.server.handlers import command, configuration, documents, files, lifecycle
from dg_lsp.server.handlers.code_action import ACTION, SELECTION, code_action, resolve
from dg_lsp.server.handlers.context import Context, Reply, Request, answered
from dg_lsp.server.handlers.dismissed import dismissed
from dg_lsp.server.handlers.inline_completion import inline_completion
from dg_lsp.server.handlers.status import status
from dg_lsp.server.handlers.target import FILL, FILL_ALL
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.server.session import Open, Session
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.status import StatusBoard
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import Settings
from dg_lsp.text.documents.excluded import path_of
from dg_lsp.text.messages import Status

Result = dict[str, Any]
_EVERYTHING = types.FileOperationRegistrationOptions(
    [types.FileOperationFilter(types.FileOperationPattern("**/*"))]
)
# The methods that are answered with no Snapshot: handler and options.
_PLAIN: dict[str, tuple[Callable[..., Awaitable[Any]], Any]] = {
    types.INITIALIZED: (lifecycle.initialized, None),
    types.SHUTDOWN: (lifecycle.shutdown, None),
    types.TEXT_DOCUMENT_DID_OPEN: (documents.did_open, None),
    types.TEXT_DOCUMENT_DID_CHANGE: (documents.did_change, None),
    types.TEXT_DOCUMENT_DID_CLOSE: (documents.did_close, None),
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: (configuration.did_change, None),
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: (files.did_change_folders, None),
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: (files.did_change, None),
    types.WORKSPACE_DID_RENAME_FILES: (files.did_rename, _EVERYTHING),
    types.WORKSPACE_DID_DELETE_FILES: (files.did_delete, _EVERYTHING),
    "dg-lsp/status": (status, None),
    "dg-lsp/dismissed": (dismissed, None),
}


def make_server(settings: Settings, open_engine: Open) -> Server:
    """Return the server with all its handlers; `open_engine` makes an Engine from settings."""
    server = Server("dg-lsp", dg_lsp.__version__)
    context = make_context(server, settings, open_engine)
    for method, (handler, options) in _PLAIN.items():
        server.feature(method, options)(_bound(handler, context))

    async def initialize(params: types.InitializeParams) -> None:
        await lifecycle.initialize(context, params)
        prefix = context.client.prefix
        server.set_commands(
            {
                prefix + FILL: _command(context, command.fill, {"fill": None, "confirm": ""}),
                prefix + FILL_ALL: _command(context, command.fill_all, {"filled": [], "left": []}),
            }
        )

    async def complete(params: types.InlineCompletionParams) -> types.InlineCompletionList:
        uri = params.text_document.uri
        request = Request(uri, lambda _: types.InlineCompletionList([]), raises=False)
        work = context.workspace.permitted(uri)
        return await answered(context, request, work, lambda one: inline_completion(one, context, params))

    async def list_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        # Some editors ask at each move of the cursor.
        quiet = params.context.trigger_kind == types.CodeActionTriggerKind.Automatic
        request: Request[list[types.CodeAction]] = Request(uri, lambda _: [], quiet=quiet)
        work = context.workspace.permitted(uri)
        return await answered(context, request, work, lambda one: code_action(one, context, params))

    async def resolve_action(action: types.CodeAction) -> types.CodeAction:
        uri = str(action.data.get("uri", "")) if isinstance(action.data, dict) else ""
        work = context.workspace.permitted(uri)
        request = Request(uri, lambda _: action)
        return await answered(context, request, work, lambda one: resolve(one, context, action))

    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(complete)
    options = types.CodeActionOptions([ACTION, SELECTION], resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(list_actions)
    server.feature(types.CODE_ACTION_RESOLVE)(resolve_action)
    return server


def make_context(server: Server, settings: Settings, open_engine: Open) -> Context:
    """Return the Context of the handlers of `server`."""

    def folders() -> list[Path]:
        known = server.protocol.workspace
        uris = dict.fromkeys([*known.folders, *filter(None, [known.root_uri])])
        return [Path(path) for path in map(path_of, uris) if path]

    def changed(status: Status) -> None:
        board.engine_changed(status)
        if status.state == "failed":
            client.warn(status.mend)

    client, workspace = Client(server), Workspace(settings, server.documents, folders)
    board = StatusBoard(client.send_status, settings.checkpoint)
    return Context(workspace, Session(workspace, open_engine, changed), client, board)


def _bound(handler: Callable[..., Awaitable[Any]], context: Context) -> Callable[..., Awaitable[Any]]:
    async def call(*params: Any) -> Any:
        return await handler(context, *params)

    return call


def _command(
    context: Context,
    handler: Callable[[Snapshot, Context, Result], Awaitable[Reply[Result]]],
    empty: Result,
) -> Callable[[Result], Awaitable[Result]]:
    """Return the handler of a command. empty: the fields of its own in a result without a fill."""

    async def call(target: dict[str, Any]) -> dict[str, Any]:
        uri = str(target.get("uri", ""))
        request = Request(uri, lambda why: {"applied": False, "edit": None, "why": why, **empty})
        work = context.workspace.open_or_on_disk(uri, target.get("version"))
        return await answered(context, request, work, lambda one: handler(one, context, target))

    return call
