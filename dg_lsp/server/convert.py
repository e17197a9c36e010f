"""Pure functions between the protocol's types (positions, edits, items) and ours (offsets, Edit, Draft)."""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from dg_lsp.text.documents.document import Document, Encoding
from dg_lsp.text.gaps.gap import Edit, Gap
from dg_lsp.text.messages import BODIES, Draft

_NOTE = "dg-lsp"  # the name of the one annotation of an edit


def offset_of(document: Document, position: types.Position, encoding: Encoding) -> int:
    """The byte offset of `position`; the document's end for a line behind the last one."""
    if position.line >= len(document.line_starts):
        return len(document.data)
    return document.offset(position.line, position.character, encoding)


def range_of(document: Document, span: tuple[int, int], encoding: Encoding) -> types.Range:
    """The range of `span`, a half-open pair of byte offsets."""
    start, end = (types.Position(*document.position(at, encoding)) for at in span)
    return types.Range(start, end)


def plain(position: types.Position) -> dict[str, int]:
    """A position as a JSON object."""
    return {"line": position.line, "character": position.character}


def workspace_edit(
    document: Document, edits: Sequence[Edit], encoding: Encoding, client: types.ClientCapabilities
) -> types.WorkspaceEdit:
    """`edits` as one WorkspaceEdit: with the document's version if `client` supports that, else as plain changes."""
    changes = [
        types.TextEdit(range_of(document, (edit.start, edit.end), encoding), edit.text) for edit in edits
    ]
    workspace = client.workspace.workspace_edit if client.workspace else None
    if workspace and workspace.document_changes:
        versioned = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(versioned, [*changes])])
    return types.WorkspaceEdit(changes={document.uri: changes})


def annotated(edit: types.WorkspaceEdit, label: str, why: str) -> types.WorkspaceEdit:
    """`edit`, of one document at a version, which the client makes only once a person has confirmed it.

    label: what it does; why: the reason to confirm it, as a sentence.
    """
    note = types.ChangeAnnotation(label, needs_confirmation=True, description=why)
    changes = [
        types.TextDocumentEdit(
            change.text_document,
            [
                types.AnnotatedTextEdit(_NOTE, one.range, one.new_text)
                for one in change.edits
                if isinstance(one, types.TextEdit)
            ],
        )
        for change in edit.document_changes or ()
        if isinstance(change, types.TextDocumentEdit)
    ]
    return types.WorkspaceEdit(document_changes=changes, change_annotations={_NOTE: note})


def takes_annotations(client: types.ClientCapabilities) -> bool:
    """Return whether `client` asks a person before it makes an edit whose annotation says so."""
    edits = client.workspace.workspace_edit if client.workspace else None
    return bool(edits and edits.document_changes and edits.change_annotation_support)


def not_inline(document: Document, cursor: int, gap: Gap) -> str:
    """Return why a fill of `gap` cannot be shown as ghost text at `cursor`, as a sentence; empty if it can."""
    start, end = gap.start, gap.end
    line_end = document.line_end(document.line_at(cursor))
    if start <= cursor <= end <= line_end and not document.data[start:end].strip(b" \t\f"):
        return ""
    if gap.kind in BODIES:
        return (
            "a function body stands elsewhere than at the cursor; use the code action Fill this function body"
        )
    return f"the {gap.kind.replace('_', ' ')} at the cursor is not empty, and ghost text replaces nothing"


def text_from(document: Document, start: int, edit: Edit) -> str:
    """Return the text between `start` and the end of `edit` once `edit` is made; lines end at LF.

    Example: in `x = fo|`, with `start` at the cursor, an edit that writes `foo(1)` over `fo` gives `o(1)`. Clients put
    in their buffer's own line ends, and would show a carriage return.
    """
    new = document.data[start : edit.start] + edit.text.encode("utf-8")[max(start - edit.start, 0) :]
    return new.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def draft_params(draft: Draft, request: Any, where: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the notification `dg-lsp/draft`; `where` holds uri, version and range."""
    runs = [[run.text, run.anchored, run.accepted, round(run.entropy, 3)] for run in draft.runs]
    return {**where, "requestId": request, "step": draft.step, "runs": runs}


def asked_for(client: types.ClientCapabilities, name: str) -> bool:
    """Return whether the client's capability `experimental.dgLsp` has `name` switched on."""
    ours = client.experimental.get("dgLsp") if isinstance(client.experimental, dict) else None
    return isinstance(ours, dict) and bool(ours.get(name))


def wants(only: Sequence[str] | None, kind: str) -> bool:
    """Return whether a request for code actions of the kinds `only` includes `kind`; None includes all."""
    return only is None or any(kind == o or kind.startswith(f"{o}.") or o == "" for o in only)
