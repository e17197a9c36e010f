"""Workspace: the open documents and folders of a client, and the settings that say which of them may be filled."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dg_lsp.context import Edited
from dg_lsp.files.excluded import key_of, path_of
from dg_lsp.reasons import NoGap
from dg_lsp.server.documents import Documents
from dg_lsp.server.project import Project
from dg_lsp.server.refusals import Refusals, no_file
from dg_lsp.server.settings import is_stricter, silence
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document, DocumentError, OnDisk, read_document
from dg_lsp.source.injections import injected
from dg_lsp.source.language import knows
from dg_lsp.source.magics import without_magics

# Seconds that a client has to report its settings before text is read without them.
PATIENCE = 5.0
CHANGED = "the document changed, or a newer request replaced this one"


class Workspace:
    """The files of one client.

    base: the settings of the command line; settings: those with the client's on top, as the session derives them.
    configured: set unless the client was asked for its settings and may still report them. unknown: why they are not
    known, as a sentence; empty if they are. documents: the open ones. folders: returns those of the workspace.
    project: the text of other files.
    """

    def __init__(
        self,
        settings: Settings,
        documents: Documents | None = None,
        folders: Callable[[], list[Path]] = list,
    ) -> None:
        self.base = self.settings = settings
        self.documents, self.folders = documents or Documents(), folders
        self.configured, self.unknown, self._until = asyncio.Event(), "", 0.0
        self.configured.set()
        self.refusals = Refusals()
        self.project = Project(self.beside, folders)

    def expect_settings(self) -> None:
        """Let no text be read before the client has reported its settings, or has had PATIENCE seconds to do so."""
        self.configured.clear()
        self.unknown, self._until = "the client has not reported its settings", time.monotonic() + PATIENCE

    def settle(self, unknown: str = "") -> None:
        """Expect no settings any more: they are known, or `unknown` says why they are not."""
        self.unknown = unknown
        self.configured.set()

    async def settled(self) -> None:
        """Wait until the client has reported its settings, or has had its time to do so."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(self._until - time.monotonic(), 0.0)):
                await self.configured.wait()

    def document(self, uri: str) -> Document:
        """Return the open document `uri` as it is now, without a cell's magics; raise NoGap if it may not be filled."""
        document = self.documents.snapshot(uri)
        if document is None:
            raise NoGap("the document is not open; send textDocument/didOpen first")
        self.permit(document.uri, document.language)
        if self.documents.notebooks.holding(document.uri):
            plain = without_magics(document.data) if document.language == "python" else document.data
            if plain != document.data:
                document = replace(document, data=plain, history=None)
        macros = self.settings.macros
        return replace(document, macros=macros) if macros else document

    def part(self, document: Document, offset: int) -> tuple[Document, int]:
        """Return the code around `offset` in a file of another language, and the offset in it; other files as they are.

        Raises:
            NoGap: nothing is filled there.
        """
        found = injected(document, offset)
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

    async def git_answered(self, uri: str, beside: Iterable[str] = ()) -> None:
        """Wait until git has said whether it ignores the file of the document `uri`, if the settings ask for that.

        Nothing has to be read from the disk afterwards to know whether it and the documents `beside` may be filled.
        """
        own = (uri, *self.documents.notebooks.holding(uri))
        folders = [*map(str, self.folders())]
        async with self.refusals.turn(uri):
            await self.refusals.look({*own, *beside}, self.settings, folders)
            for one in own:
                await self.refusals.git_answered(one, self.settings)

    async def permitted(self, uri: str) -> Document:
        """Return the open document `uri`, once its settings are known and git has answered if need be.

        Raises:
            NoGap: it may not be filled.
        """
        await self.settled()
        document = self.documents.snapshot(uri)
        if document is not None:
            await self.git_answered(uri, self.documents.at_hand())
        if document is not None and self.documents.state(uri) != document.state:
            raise NoGap(CHANGED)
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
        await self.settled()
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
        """Raise NoGap with the reason if the document `uri` may not be filled, or a notebook that it is a cell of."""
        if reason := self._unsettled():
            raise NoGap(reason)
        folders, notebooks = [*map(str, self.folders())], self.documents.notebooks.holding(uri)
        # Clients name cells by schemes of all kinds.
        if reason := next(filter(None, map(no_file, notebooks or (uri,))), ""):
            raise NoGap(reason)
        for one, its in ((uri, language), *((notebook, "") for notebook in notebooks)):
            if reason := self.refusals.reason(one, its, self.settings, folders):
                raise NoGap(reason)

    async def still_permit(self, document: Document, settings: Settings) -> None:
        """Raise NoGap if `document`, read with `settings`, may not be filled any more, or less of other files."""
        await self.git_answered(document.uri)
        if is_stricter(self.settings, settings):
            raise NoGap("the settings have changed meanwhile; try again")
        self.permit(document.uri, document.language)

    def _unsettled(self) -> str:
        """Return why nothing may be read as far as the settings are unknown, as a sentence; empty if it may."""
        if self.unknown and not self.configured.is_set() and time.monotonic() < self._until:
            return f"{self.unknown} yet; try again in a moment"
        if self.unknown and self.settings.engine_url:
            return (
                f"{self.unknown}, which may exclude this file, so nothing is sent to the server that engineUrl names; "
                "start the client again, and see its log"
            )
        return ""
