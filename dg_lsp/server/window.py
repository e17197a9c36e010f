"""The server of one window: its session, the documents that may be read, and messages to the user.

Knows the protocol and the session; knows no handler.
"""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsprotocol import types

import dg_lsp
from dg_lsp.server import convert
from dg_lsp.server.project import Project
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.server.session import Open, Session, short_name, without_quotes
from dg_lsp.server.status import Last, StatusBoard
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.excluded import key_of, path_of
from dg_lsp.text.fills.confirm import note_of
from dg_lsp.text.gaps.find import NoGap
from dg_lsp.text.languages.language import knows
from dg_lsp.text.messages import Fill, Status

_log = logging.getLogger("dg_lsp.server")


class DgLsp(Server):
    """The server with its session.

    watchers: functions that are called with each Status of the engine. board: what the client is told of the server.
    prefix: what the names of the commands begin with. configured: set once the client's settings are read.
    """

    def __init__(self, settings: Settings, open_engine: Open) -> None:
        super().__init__("dg-lsp", dg_lsp.__version__)
        self.session = Session(settings, open_engine, self.tell)
        self.session.project = Project(self.beside, self.folders)
        self.options: dict[str, Any] = {}
        self.watchers: set[Any] = set()
        self.board = StatusBoard(self._notify_status, settings.checkpoint)
        self.prefix = ""
        self.configured = asyncio.Event()
        self._told: set[str] = set()

    def snapshot(self, uri: str) -> Document:
        """The open document `uri` as it is now.

        Raises:
            NoGap: it is not open, or excluded, or its language is switched off.
        """
        document = self.documents.snapshot(uri)
        if document is None:
            raise NoGap("the document is not open; send textDocument/didOpen first")
        self.permit(uri, document.language)
        macros = self.session.settings.macros
        return replace(document, macros=macros) if macros else document

    async def permitted(self, uri: str) -> Document:
        """Return the open document `uri` as it is now, once it is known whether it may be filled.

        Raises:
            NoGap: it may not, or changed meanwhile.
        """
        document = self.documents.snapshot(uri)
        if document is not None:
            await self.session.git_answered(uri)
        if self.documents.snapshot(uri) is not document:
            raise NoGap("the document changed while git was asked about it; ask again")
        return self.snapshot(uri)

    def beside(self, document: Document) -> list[Document]:
        """The other open documents that may be read, those that were opened last first."""
        found, own = list[Document](), key_of(document.uri)
        for uri in reversed(self.documents.uris()):
            # Nothing is read of a document that the settings leave out.
            with suppress(NoGap):
                found += [self.snapshot(uri)] if key_of(uri) != own else []
        return found

    def folders(self) -> list[Path]:
        """The folders of the workspace."""
        workspace = self.protocol.workspace
        uris = dict.fromkeys([*workspace.folders, *filter(None, [workspace.root_uri])])
        return [Path(path) for path in map(path_of, uris) if path]

    def permit(self, uri: str, language: str = "") -> None:
        """Do nothing if the document `uri` may be filled.

        Raises:
            NoGap: it is excluded, or its language is switched off.
        """
        if refusal := self.session.refusal(uri, [*map(str, self.folders())], language):
            raise NoGap(refusal)

    def tell(self, status: Status) -> None:
        """Pass the engine's status to the watchers, to a client that wants it, and as a warning if it has failed."""
        for watcher in list(self.watchers):
            watcher(status)
        self.board.engine_said(status)
        if status.state == "failed":
            self.warn(status.mend)

    def warn(self, message: str) -> None:
        """Show a warning to the user; the same one only once in a session."""
        _log.warning("%s", message)
        if message not in self._told:
            self._told.add(message)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"dg-lsp: {message}"))

    def inform(self, message: str) -> None:
        """Show a message to the user, who has asked for something."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"dg-lsp: {message}"))

    def refuse(self, uri: str, reason: str) -> None:
        """Log why the document `uri` gets an empty answer (law 9)."""
        _log.info("%s: nothing offered: %s", short_name(uri), without_quotes(reason))

    def ended(
        self, uri: str, began: float, why: str = "", fill: Fill | None = None, files: tuple[str, ...] = ()
    ) -> None:
        """Tell that a request for the document `uri` has ended; `why` nothing was offered, empty if something was.

        began: time.monotonic() of its beginning. fill: what was offered. files: the uris of those that it is from.
        """
        if why:
            self.refuse(uri, why)
        last = Last(uri, not why, why, (time.monotonic() - began) * 1000)
        if fill is not None and not why:
            last = replace(last, chance=fill.chance, source=fill.source, note=note_of(fill), files=files)
        self.board.ended(last)

    def off(self, uri: str) -> str:
        """Return why the document `uri` gets no ghost text while one types, as a sentence; empty if it does."""
        try:
            language = self.snapshot(uri).language
        except NoGap as error:
            return str(error)
        if not knows(language):
            return f"there is no grammar for {language}"
        return self.session.silence(language)

    def _notify_status(self, told: dict[str, Any]) -> None:
        if convert.asked_for(self.client_capabilities, "status"):
            self.protocol.notify("dg-lsp/status", told)
