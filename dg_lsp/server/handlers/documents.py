"""Documents that are opened, changed and closed; files and folders of the workspace that change."""

import asyncio
from collections.abc import Sequence

from lsprotocol import types

from dg_lsp.server.handlers.context import Context
from dg_lsp.server.handlers.inline_completion import look_ahead
from dg_lsp.server.project import Project
from dg_lsp.server.rpc.protocol import changes_of

_MANY = 50  # files or changes of one notification that are looked at on the event loop


async def did_open(context: Context, params: types.DidOpenTextDocumentParams) -> None:
    """Start the engine, because loading takes longer than typing the first line."""
    uri, workspace = params.text_document.uri, context.workspace
    # From here on its text is not the one on disk, or the one that it had when it was opened before.
    context.session.changed(uri)
    workspace.refusals.opened(uri)
    # The client's settings may name another engine than the command line does.
    await workspace.settled()
    await workspace.git_answered(uri)
    if not workspace.documents.is_unread(uri) and not workspace.off(uri):
        context.session.warm()


async def did_change(context: Context, params: types.DidChangeTextDocumentParams) -> None:
    """Cancel the work on the old text of the document, and note how it was changed."""
    uri, session = params.text_document.uri, context.session
    session.changed(uri)
    shown = session.offers.shown(uri)
    texts = shown.texts if shown else ()
    # More of them, the user has not made by keys.
    session.trigger.changed(
        uri, changes_of(params.content_changes[-_MANY:]), context.workspace.documents, texts
    )
    # Nothing was shown in a large document that is not read yet.
    documents = context.workspace.documents
    if not documents.is_unread(uri):
        await context.workspace.git_answered(uri, documents.at_hand())
        look_ahead(context, uri)


async def did_save(context: Context, params: types.DidSaveTextDocumentParams) -> None:
    """Count which of the taken texts are saved."""
    context.uses.saved(params.text_document.uri)


async def did_close(context: Context, params: types.DidCloseTextDocumentParams) -> None:
    """Drop everything that is known of the document."""
    context.uses.closed(params.text_document.uri)
    context.session.closed(params.text_document.uri)


async def did_change_folders(context: Context, _: types.DidChangeWorkspaceFoldersParams) -> None:
    """Forget the files of the old folders; the globs of settings are relative to other folders now."""
    context.session.files_moved()


async def did_change_files(context: Context, params: types.DidChangeWatchedFilesParams) -> None:
    """Read the files that have changed again, and drop those that are gone; a rename is one of each."""
    # A link may lead elsewhere now.
    context.workspace.refusals.forget()
    project, changes = context.workspace.project, params.changes
    if len(changes) > _MANY:
        # Meanwhile no text of a file that is not on disk any more is used.
        await asyncio.to_thread(_tell, project, changes)
    else:
        _tell(project, changes)


def _tell(project: Project, changes: Sequence[types.FileEvent]) -> None:
    deleted = [change.uri for change in changes if change.type == types.FileChangeType.Deleted]
    project.changed([change.uri for change in changes], deleted)
