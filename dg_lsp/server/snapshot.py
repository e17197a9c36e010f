"""Snapshot: a document with the settings, position encoding and client capabilities that hold for one request."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from dg_lsp.gaps import Edit
from dg_lsp.server.capabilities import Capabilities
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document, Encoding, OnDisk

_NOTE = "dg-lsp"  # the name of the one annotation of an edit


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document as the client saw it when it sent a request. settings, encoding, client: those of that moment."""

    document: Document
    settings: Settings
    encoding: Encoding = "utf-16"
    client: Capabilities = field(default_factory=Capabilities)

    def offset(self, position: types.Position) -> int:
        """Return the byte offset of `position`; the end of the document for a line after the last one."""
        if position.line >= len(self.document.line_starts):
            return len(self.document.data)
        return self.document.offset(position.line, position.character, self.encoding)

    def position(self, offset: int) -> types.Position:
        """Return the position of a byte offset."""
        return types.Position(*self.document.position(offset, self.encoding))

    def range(self, start: int, end: int) -> types.Range:
        """Return the range of the bytes [start, end)."""
        return types.Range(self.position(start), self.position(end))

    def workspace_edit(self, edits: Sequence[Edit]) -> types.WorkspaceEdit:
        """Return `edits` as one WorkspaceEdit, with the document's version if the client supports that."""
        changes = [types.TextEdit(self.range(edit.start, edit.end), edit.text) for edit in edits]
        if not self.client.versions:
            return types.WorkspaceEdit(changes={self.document.uri: changes})
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(self._versioned, changes)])

    def edit_to_confirm(self, edit: Edit, label: str, why: str) -> types.WorkspaceEdit:
        """Return `edit`, called `label`, so that the client makes it only once a person has confirmed it, and `why`."""
        note = types.ChangeAnnotation(label, needs_confirmation=True, description=why)
        change = types.AnnotatedTextEdit(_NOTE, self.range(edit.start, edit.end), edit.text)
        changes = [types.TextDocumentEdit(self._versioned, [change])]
        return types.WorkspaceEdit(document_changes=changes, change_annotations={_NOTE: note})

    @property
    def _versioned(self) -> types.OptionalVersionedTextDocumentIdentifier:
        document = self.document
        # The content on disk, as the protocol has it.
        version = None if isinstance(document.state, OnDisk) else document.version
        return types.OptionalVersionedTextDocumentIdentifier(document.uri, version)
