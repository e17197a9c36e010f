"""Files and folders of the workspace that change."""

from lsprotocol import types

from dg_lsp.server.handlers.context import Context


async def did_change_folders(context: Context, _: types.DidChangeWorkspaceFoldersParams) -> None:
    """Forget the files of the old folders; the globs of settings are relative to other folders now."""
    context.session.files_moved()


async def did_change(context: Context, params: types.DidChangeWatchedFilesParams) -> None:
    """Read the files that have changed again, and drop those that are gone; a rename is one of each."""
    # A link may lead elsewhere now.
    context.workspace.refusals.forget_globs()
    project = context.workspace.project
    project.deleted(change.uri for change in params.changes if change.type == types.FileChangeType.Deleted)
    project.changed(change.uri for change in params.changes)
