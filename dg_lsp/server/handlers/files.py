"""Files and folders of the workspace that change."""

from collections.abc import Sequence

from lsprotocol import types

from dg_lsp.server.handlers.context import Context


async def did_change_folders(context: Context, _: types.DidChangeWorkspaceFoldersParams) -> None:
    """Forget the files of the old folders; the globs of settings are relative to other folders now."""
    context.session.files_moved()


async def did_change(context: Context, params: types.DidChangeWatchedFilesParams) -> None:
    """Read the files that have changed again, and drop those that are gone."""
    deleted = [change.uri for change in params.changes if change.type == types.FileChangeType.Deleted]
    _changed(context, deleted, [change.uri for change in params.changes])


async def did_rename(context: Context, params: types.RenameFilesParams) -> None:
    """Drop the files of the old names, and read those of the new ones."""
    _changed(context, [file.old_uri for file in params.files], [file.new_uri for file in params.files])


async def did_delete(context: Context, params: types.DeleteFilesParams) -> None:
    """Drop the files."""
    _changed(context, [file.uri for file in params.files], [])


def _changed(context: Context, deleted: Sequence[str], changed: Sequence[str]) -> None:
    # A link may lead elsewhere now.
    context.workspace.refusals.forget_globs()
    context.workspace.project.deleted(deleted)
    context.workspace.project.changed(changed)
