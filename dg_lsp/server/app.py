"""The language server: one handler for each method, which takes a snapshot, calls a function and replies.

A handler runs to its first `await` before the next message is read, so the snapshot that it takes at its beginning is
the document as the client saw it.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types

from dg_lsp.filling.engine import EngineError
from dg_lsp.server import actions, commands, convert, ghost
from dg_lsp.server.rpc.conversation import log_failure
from dg_lsp.server.rpc.protocol import RequestError
from dg_lsp.server.session import Open, Superseded
from dg_lsp.server.window import DgLsp
from dg_lsp.settings import Settings
from dg_lsp.text.budget import ASKED, within
from dg_lsp.text.documents.document import Document, DocumentError
from dg_lsp.text.documents.excluded import excluding_names
from dg_lsp.text.gaps.find import Gap, NoGap, find_function, find_selected
from dg_lsp.text.languages.language import UnknownLanguage, suffixes
from dg_lsp.text.messages import Status

SECTION = "dg-lsp"
Command = Callable[[DgLsp, dict[str, Any]], Awaitable[dict[str, Any]]]
_log = logging.getLogger("dg_lsp.server")


def make_server(settings: Settings, open_engine: Open) -> DgLsp:
    """The server with all its handlers; `open_engine` makes an Engine from settings."""
    server = DgLsp(settings, open_engine)
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.SHUTDOWN)(shutdown)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(did_change)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(did_close)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(did_change_folders)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(did_change_files)
    everything = types.FileOperationFilter(types.FileOperationPattern("**/*"))
    operations = types.FileOperationRegistrationOptions([everything])
    server.feature(types.WORKSPACE_DID_RENAME_FILES, operations)(did_rename_files)
    server.feature(types.WORKSPACE_DID_DELETE_FILES, operations)(did_delete_files)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(inline_completion)
    options = types.CodeActionOptions([actions.ACTION, actions.SELECTION], resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(code_action)
    server.feature(types.CODE_ACTION_RESOLVE)(resolve)
    server.feature("dg-lsp/status")(status)
    server.feature("dg-lsp/dismissed")(dismissed)
    return server


async def initialize(ls: DgLsp, params: types.InitializeParams) -> None:
    """Keep the client's initialization options and whether it debounces by itself; register the commands.

    The option commandPrefix is put before the commands' names: two clients in one editor may not use the same names.
    """
    given = params.initialization_options
    if given is not None and not isinstance(given, dict):
        _log.warning("initializationOptions must be an object; the defaults are taken")
    ls.options = dict(given) if isinstance(given, dict) else {}
    prefix = ls.options.pop("commandPrefix", None)
    ls.prefix = prefix if isinstance(prefix, str) else ""
    ls.set_commands({ls.prefix + actions.FILL: fill, ls.prefix + commands.FILL_ALL: fill_all})
    # At once, so that the first document that is opened warms the right engine. `initialized` tells what is wrong.
    ls.session.configure(ls.options, {})
    ls.board.checkpoint = ls.session.settings.checkpoint
    ls.session.covers = convert.asked_for(params.capabilities, "covers")
    # Neovim itself waits 200 ms before it asks.
    ls.session.eager = params.client_info is not None and params.client_info.name.startswith("Neovim")
    _log.info("dg-lsp %s for %s", ls.version, params.client_info.name if params.client_info else "a client")


async def initialized(ls: DgLsp, _: types.InitializedParams) -> None:
    """Read the settings from the client, and register for changes of them and of the workspace's files."""
    await _configure(ls)
    if registrations := _registrations(ls):
        await ls.client_register_capability_async(types.RegistrationParams(registrations))


def _registrations(ls: DgLsp) -> list[types.Registration]:
    """Registrations for changes of settings and of files, as far as the client can tell of them."""
    workspace, found = ls.client_capabilities.workspace, list[types.Registration]()
    settings, files = (
        (workspace.did_change_configuration, workspace.did_change_watched_files)
        if workspace
        else (None, None)
    )
    if settings and settings.dynamic_registration:
        section = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        found.append(types.Registration("dg-lsp-configuration", method, section))
    if files and files.dynamic_registration:
        glob = f"**/*{{{','.join(suffixes())}}}"
        watched = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(glob)])
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        found.append(types.Registration("dg-lsp-files", method, watched))
        ls.session.watch_files()
    return found


async def shutdown(ls: DgLsp, *_: Any) -> None:
    """Stop all work; the engine process runs on for other windows until it is idle."""
    await ls.session.close()


async def did_open(ls: DgLsp, params: types.DidOpenTextDocumentParams) -> None:
    """Start the engine, because loading takes longer than typing the first line."""
    ls.session.opened(params.text_document.uri)
    # The client's settings may name another engine than the command line does.
    await ls.configured.wait()
    await ls.session.git_answered(params.text_document.uri)
    if not ls.off(params.text_document.uri):
        ls.session.warm()


async def did_change(ls: DgLsp, params: types.DidChangeTextDocumentParams) -> None:
    """Cancel the work on the old text of the document."""
    ls.session.changed(params.text_document.uri)
    ghost.look_ahead(ls, params.text_document.uri)


async def did_close(ls: DgLsp, params: types.DidCloseTextDocumentParams) -> None:
    """Drop what the session holds of the document."""
    ls.session.closed(params.text_document.uri)


async def did_change_folders(ls: DgLsp, _: types.DidChangeWorkspaceFoldersParams) -> None:
    """Forget the files of the folders that were; paths count from other folders now."""
    ls.session.moved()


async def did_change_files(ls: DgLsp, params: types.DidChangeWatchedFilesParams) -> None:
    """Read the files that have changed again, and drop those that are gone."""
    deleted = [change.uri for change in params.changes if change.type == types.FileChangeType.Deleted]
    ls.session.files_changed(deleted, [change.uri for change in params.changes])


async def did_rename_files(ls: DgLsp, params: types.RenameFilesParams) -> None:
    """Drop the files of the old names, and read those of the new ones."""
    ls.session.files_changed([file.old_uri for file in params.files], [file.new_uri for file in params.files])


async def did_delete_files(ls: DgLsp, params: types.DeleteFilesParams) -> None:
    """Drop the files."""
    ls.session.files_changed([file.uri for file in params.files], [])


async def did_change_configuration(ls: DgLsp, params: types.DidChangeConfigurationParams) -> None:
    """Apply the new settings."""
    await _configure(ls, params.settings)


async def inline_completion(ls: DgLsp, params: types.InlineCompletionParams) -> types.InlineCompletionList:
    """Ghost text: at most one item while the user types, several different ones if asked for.

    Always a list, because clients keep showing old ghost text after null or an error.
    """
    uri, began = params.text_document.uri, time.monotonic()
    items: list[types.InlineCompletionItem] = []
    try:
        document = await ls.permitted(uri)
        items = await ls.session.newest(uri, ghost.ghost_text(ls, document, params))
        offer = ls.session.offered(uri)
        ls.ended(uri, began, fill=offer.fill if offer else None, files=offer.files if offer else ())
    except Superseded:
        ls.ended(uri, began, "the document changed meanwhile, or a newer request took the place of this one")
    except (NoGap, UnknownLanguage, DocumentError, EngineError) as error:
        ls.ended(uri, began, str(error))
    except Exception as error:
        log_failure("ghost text", error)
        ls.ended(uri, began, f"an error of dg-lsp's own ({type(error).__name__}); see the server's log")
    return types.InlineCompletionList(items=items)


async def dismissed(ls: DgLsp, params: Any) -> None:
    """Do not offer the dismissed ghost text again at its place; `params` has uri, position and text."""
    try:
        document = ls.snapshot(params["uri"])
        position = types.Position(int(params["position"]["line"]), int(params["position"]["character"]))
        text = str(params["text"])
    except (KeyError, TypeError, ValueError) as error:
        _log.info("ignored a notification dg-lsp/dismissed (%s)", type(error).__name__)
        return
    ls.session.dismiss(document, convert.offset_of(document, position, ls.documents.encoding), text)


async def code_action(ls: DgLsp, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Offer to fill the body or the holes of the function at a cursor, or each body in a selection; or to write the
    selected text again. Runs no model.
    """
    uri, encoding, only = params.text_document.uri, ls.documents.encoding, params.context.only
    began = time.monotonic()
    try:
        if not any(convert.wants(only, kind) for kind in (actions.ACTION, actions.SELECTION)):
            raise NoGap(f"the client asked for code actions of other kinds: {', '.join(only or ())}")
        document = await ls.permitted(uri)
        start = convert.offset_of(document, params.range.start, encoding)
        end = convert.offset_of(document, params.range.end, encoding)
        with within(ASKED):
            if start == end:
                gaps = await asyncio.to_thread(find_function, document, start)
            else:
                gaps = await asyncio.to_thread(find_selected, document, start, end)
        if not gaps:
            raise NoGap("no function is in the selection")
    except (NoGap, UnknownLanguage, DocumentError) as error:
        # Some editors ask at each move of the cursor, which nobody wants to be told of.
        if params.context.trigger_kind == types.CodeActionTriggerKind.Automatic:
            ls.refuse(uri, str(error))
        else:
            ls.ended(uri, began, str(error))
        return []
    gaps = _listed(ls, document, gaps)
    cursor = start if start == end else None
    several = cursor is None and sum(gap.kind != "span" for gap in gaps) > 1
    return [
        actions.action(ls, document, gap, cursor, named=several and gap.kind != "span")
        for gap in gaps
        if convert.wants(only, actions.kind_of(gap))
    ]


def _listed(ls: DgLsp, document: Document, gaps: list[Gap]) -> list[Gap]:
    """The gaps, of `gaps`, for which the client may get code actions; the log says why the others are left out."""
    found = []
    for gap in gaps:
        if reason := actions.refusal_of(ls, document, gap):
            ls.refuse(document.uri, reason)
        else:
            found.append(gap)
    return found


async def resolve(ls: DgLsp, action: types.CodeAction) -> types.CodeAction:
    """Fill the gap of a code action; an action for an older version of the document is returned unchanged."""
    data, began = action.data if isinstance(action.data, dict) else {}, time.monotonic()
    uri = str(data.get("uri", ""))
    try:
        document = await ls.permitted(uri)
        if data.get("version") != document.version:
            ls.ended(uri, began, "the document has changed since the code action was listed")
            return action
        with within(ASKED):
            gap = await actions.gap_of(ls, document, data)
            outcome = await ls.session.current(uri, actions.fill_gap(ls, document, gap, {}))
        if outcome.edit:
            action.edit, outcome = actions.edit_of(ls, document, outcome)
        ls.ended(uri, began, "" if outcome.edit else outcome.why, outcome.fill, outcome.files)
        if outcome.why:
            # The user has asked for this, and an action that silently does nothing looks broken.
            message = outcome.why if outcome.edit else f"nothing offered: {outcome.why}"
            ls.inform(message)
    except Superseded:
        ls.ended(uri, began, "the document changed meanwhile")
    except (NoGap, UnknownLanguage, DocumentError) as error:
        ls.ended(uri, began, str(error))
    except EngineError as error:
        ls.ended(uri, began, str(error))
        raise RequestError(types.LSPErrorCodes.RequestFailed.value, str(error)) from error
    return action


async def fill(ls: DgLsp, target: dict[str, Any]) -> dict[str, Any]:
    """The command `dg-lsp.fill`; docs/bots.md describes `target` and the result."""
    return await _command(ls, target, commands.fill_command, {"fill": None, "confirm": ""})


async def fill_all(ls: DgLsp, target: dict[str, Any]) -> dict[str, Any]:
    """The command `dg-lsp.fillAll`; docs/bots.md describes `target` and the result."""
    return await _command(ls, target, commands.fill_all_command, {"filled": [], "left": []})


async def _command(
    ls: DgLsp, target: dict[str, Any], command: Command, empty: dict[str, Any]
) -> dict[str, Any]:
    """The result of `command` for `target`; where nothing can be filled, `empty` with the reason.

    Raises:
        RequestError: the document changed meanwhile, or the engine gives no answer.
    """
    uri, began = str(target.get("uri", "")), time.monotonic()
    before = ls.documents.snapshot(uri)
    try:
        result = await command(ls, target)
        ls.ended(uri, began, "" if result["edit"] else result["why"])
        return result
    except Superseded as error:
        if ls.documents.snapshot(uri) is before:
            raise RequestError(types.LSPErrorCodes.RequestCancelled.value, "cancelled") from error
        message = "the document changed meanwhile; ask again for the new version"
        raise RequestError(types.LSPErrorCodes.ContentModified.value, message) from error
    except (NoGap, UnknownLanguage, DocumentError) as error:
        ls.ended(uri, began, str(error))
        return {"applied": False, "edit": None, "why": str(error), **empty}
    except EngineError as error:
        ls.ended(uri, began, str(error))
        raise RequestError(types.LSPErrorCodes.RequestFailed.value, str(error)) from error


async def status(ls: DgLsp, params: Any = None) -> dict[str, Any]:
    """The request `dg-lsp/status`: the object that docs/bots.md describes, for a document if `params` name one."""
    uri = params.get("uri") if isinstance(params, dict) else None
    off = ls.off(uri) if isinstance(uri, str) else ""
    try:
        found = await ls.session.status()
    except EngineError as error:
        found = Status("failed", mend=str(error), checkpoint=ls.session.settings.checkpoint)
    return ls.board.told(found, off)


async def _configure(ls: DgLsp, sent: Any = None) -> None:
    """Apply the client's settings: requested from it if it supports that, else as `sent`."""
    workspace = ls.client_capabilities.workspace
    changed: Any = None
    if workspace and workspace.configuration:
        items = [types.ConfigurationItem(section=SECTION)]
        try:
            (changed,) = await ls.workspace_configuration_async(types.ConfigurationParams(items))
        except Exception as error:
            _log.warning("the client did not tell its settings (%s)", type(error).__name__)
    elif isinstance(sent, dict):
        changed = sent.get(SECTION, sent)
    for sentence in ls.session.configure(ls.options, changed if isinstance(changed, dict) else {}):
        ls.warn(sentence)
    # In a thread, since many globs take a while to read.
    await asyncio.to_thread(excluding_names, (), ls.session.settings.exclude)
    ls.configured.set()
    logging.getLogger("dg_lsp").setLevel(ls.session.settings.log_level.upper())
