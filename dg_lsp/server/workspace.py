"""Workspace: the open documents and folders of a client, and the settings that say which of them may be filled."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dg_lsp.server.documents import Documents
from dg_lsp.server.project import Project
from dg_lsp.server.refusals import Refusals
from dg_lsp.server.settings import silence
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document, DocumentError, OnDisk, read_document
from dg_lsp.text.documents.excluded import key_of, path_of
from dg_lsp.text.documents.fences import fenced
from dg_lsp.text.languages.language import knows
from dg_lsp.text.reasons import NoGap
from dg_lsp.text.related.recent import Edited
from dg_lsp.text.syntax.magics import without_magics


class Workspace:
    """The files of one client.

    base: the settings of the command line; settings: those with the client's on top. configured: set
    once these are read. documents: the open ones. folders: returns those of the workspace. project: the text of other
    files.
    """

    def __init__(
        self,
        settings: Settings,
        documents: Documents | None = None,
        folders: Callable[[], list[Path]] = list,
    ) -> None:
        self.base = self.settings = settings
        self.documents, self.folders = documents or Documents(), folders
        self.configured = asyncio.Event()
        self.refusals = Refusals()
        self.project = Project(self.beside, folders)

    def document(self, uri: str) -> Document:
        """Return the open document `uri` as it is now, without a cell's magics; raise NoGap if it may not be filled."""
        document = self.documents.snapshot(uri)
        if document is None:
            raise NoGap("the document is not open; send textDocument/didOpen first")
        self.permit(uri, document.language)
        if notebook := self.documents.notebooks.holding(document.uri):
            self.permit(notebook)
            plain = without_magics(document.data) if document.language == "python" else document.data
            if plain != document.data:
                document = replace(document, data=plain, history=None)
        macros = self.settings.macros
        return replace(document, macros=macros) if macros else document

    def part(self, document: Document, offset: int) -> tuple[Document, int]:
        """Return the code fence of a Markdown file around `offset`, and the offset in it; other files as they are."""
        found = fenced(document, offset)
        if found[0] is not document:
            self.permit(document.uri, found[0].language)
        return found

    def above(self, document: Document) -> bytes:
        """Return the text of the code cells above `document` in its notebook; empty if it is no cell."""
        found = list[bytes]()
        for uri in self.documents.notebooks.above(document.uri):
            # A cell that the settings exclude is not read.
            with suppress(NoGap):
                cell = self.document(uri)
                found += [cell.data.rstrip() + b"\n\n"] if cell.language == document.language else []
        return b"".join(found)

    async def git_answered(self, uri: str) -> None:
        """Wait until git has said whether it ignores the file of the document `uri`, if the settings ask for that."""
        for one in filter(None, (uri, self.documents.notebooks.holding(uri))):
            await self.refusals.git_answered(one, self.settings)

    async def permitted(self, uri: str) -> Document:
        """Return the open document `uri`, once git has answered if need be; raise NoGap if it may not be filled."""
        document = self.documents.snapshot(uri)
        if document is not None:
            await self.git_answered(uri)
        if document is not None and self.documents.state(uri) != document.state:
            raise NoGap("the document changed while git was asked about it; try again")
        return self.document(uri)

    async def open_or_on_disk(self, uri: str, version: object = None) -> Document:
        """Return the document `uri` as `permitted` does if it is open, else as its file, whose version is 0.

        Raise NoGap if it is not at `version`, if that is given.
        """
        is_open = self.documents.state(uri) is not None
        document = await (self.permitted(uri) if is_open else self._on_disk(uri))
        if version is not None and version != document.version:
            raise NoGap(f"the document is at version {document.version}, not {version}; ask again")
        return document

    async def is_current(self, document: Document) -> bool:
        """Return whether `document` is the text that its uri names now: an open document, or else a file on disk.

        Only then may an edit for it leave, before the next `await`. A file must be readable, permitted, of the same
        bytes, and no link to another one.
        """
        uri, state = document.uri, self.documents.state(document.uri)
        if state is not None or not isinstance(document.state, OnDisk):
            return state == document.state
        # A link may lead elsewhere now.
        self.refusals.opened(uri)
        with suppress(NoGap, DocumentError):
            found = await self._on_disk(uri)
            return found.state == document.state and self.documents.state(uri) is None
        return False

    async def _on_disk(self, uri: str) -> Document:
        """Return the file `uri`, once git has answered if need be; raise NoGap if it may not be filled."""
        await self.git_answered(uri)
        self.permit(uri)
        path = path_of(uri)
        if not path:
            raise DocumentError(f"{uri[:80]!r} is not open and is not a file:// address; open it first")
        # In a thread, because a disk may be slow.
        found = await asyncio.to_thread(read_document, Path(path), self.settings.macros)
        self.permit(uri, found.language)
        return replace(found, uri=uri)

    def beside(self, document: Document) -> list[Document]:
        """Return the other open documents that may be read, those opened last first; not all of very many."""
        found, own = list[Document](), key_of(document.uri)
        for uri in self.documents.at_hand():
            # A document that the settings exclude is not read.
            with suppress(NoGap):
                found += [self.document(uri)] if key_of(uri) != own else []
        return found

    def edited_beside(self, document: Document) -> tuple[Edited, ...]:
        """Return the other open documents that were used and may be read, the one used last at the end."""
        found = {one.uri: one for one in self.beside(document)}
        uses = self.documents.edited()
        return tuple(
            Edited(found[uri], bursts, place, copied) for uri, bursts, place, copied in uses if uri in found
        )

    def off(self, uri: str) -> str:
        """Return why the document `uri` gets no automatic ghost text, as a sentence; empty if it does."""
        try:
            language = self.document(uri).language
        except NoGap as error:
            return str(error)
        return silence(self.settings, language) if knows(language) else f"there is no grammar for {language}"

    def permit(self, uri: str, language: str = "") -> None:
        """Raise NoGap with the reason if the document `uri` may not be filled."""
        folders = [*map(str, self.folders())]
        if reason := self.refusals.reason(uri, language, self.settings, folders):
            raise NoGap(reason)
