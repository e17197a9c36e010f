"""lsprotocol's types to ours and back; nothing else in dg-lsp knows both. Pure functions.

An inline item replaces its line from the beginning: clients match it against what stands before the cursor.
"""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from dg_lsp.text.documents.document import Document, Encoding
from dg_lsp.text.fills.edit import Edit
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.messages import BODIES, Draft


def offset_of(document: Document, position: types.Position, encoding: Encoding) -> int:
    """The byte offset of a position; one behind the last line is the document's end."""
    if position.line >= len(document.line_starts):
        return len(document.data)
    return document.offset(position.line, position.character, encoding)


def range_of(document: Document, span: tuple[int, int], encoding: Encoding) -> types.Range:
    """Byte offsets as a range."""
    start, end = (types.Position(*document.position(at, encoding)) for at in span)
    return types.Range(start, end)


def plain(position: types.Position) -> dict[str, int]:
    """A position as it stands in `data`, which comes back as it went."""
    return {"line": position.line, "character": position.character}


def workspace_edit(
    document: Document, edit: Edit, encoding: Encoding, client: types.ClientCapabilities
) -> types.WorkspaceEdit:
    """An edit for the client: with the document's version where it understands that, else plain changes."""
    change = types.TextEdit(range_of(document, (edit.start, edit.end), encoding), edit.text)
    workspace = client.workspace.workspace_edit if client.workspace else None
    if workspace and workspace.document_changes and document.version is not None:
        versioned = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(versioned, [change])])
    return types.WorkspaceEdit(changes={document.uri: [change]})


def not_inline(document: Document, cursor: int, gap: Gap) -> str:
    """Why a fill of `gap` cannot be shown as ghost text at `cursor`, or an empty sentence."""
    start, end = gap.start, gap.end
    line_end = document.line_end(document.line_at(cursor))
    if start <= cursor <= end <= line_end and not document.data[start:end].strip(b" \t\f"):
        return ""
    if gap.kind in BODIES:
        return (
            "a function body stands elsewhere than at the cursor; use the code action Fill this function body"
        )
    return f"the {gap.kind.replace('_', ' ')} at the cursor is not empty, and ghost text replaces nothing"


def inline_item(
    document: Document, cursor: int, edit: Edit, encoding: Encoding
) -> types.InlineCompletionItem:
    """The ghost text of `edit`, which must agree with what stands between its start and the cursor."""
    # Typed text belongs to the item, so a client can tell how much of it is there already.
    line = document.line_starts[document.line_at(cursor)]
    if edit.start >= line:
        text = document.data[line : edit.start].decode("utf-8") + edit.text
    else:
        text = edit.text.encode("utf-8")[line - edit.start :].decode("utf-8")
    # Clients give a line end the form that their buffer has; a carriage return of ours would be shown.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return types.InlineCompletionItem(
        insert_text=text, range=range_of(document, (line, max(edit.end, cursor)), encoding)
    )


def draft_params(draft: Draft, request: Any, where: dict[str, Any]) -> dict[str, Any]:
    """The parameters of `dg-lsp/draft`; `where` holds uri, version and range."""
    runs = [[run.text, run.anchored, run.accepted, round(run.entropy, 3)] for run in draft.runs]
    return {**where, "requestId": request, "step": draft.step, "runs": runs}


def asked_for(client: types.ClientCapabilities, name: str) -> bool:
    """Whether the client's `experimental.dgLsp` has `name` switched on."""
    ours = client.experimental.get("dgLsp") if isinstance(client.experimental, dict) else None
    return isinstance(ours, dict) and bool(ours.get(name))


def wants(only: Sequence[str] | None, kind: str) -> bool:
    """Whether a client that asked for code actions of the kinds `only` wants `kind`."""
    return only is None or any(kind == o or kind.startswith(f"{o}.") or o == "" for o in only)
