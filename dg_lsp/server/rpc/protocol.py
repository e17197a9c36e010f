"""The server's builtin methods, and the Server that handlers are registered with.

It keeps the open documents in step, agrees on the position encoding, and states the server's capabilities. Handlers are
`async def` and never threads, because only a task can be cancelled. Knows no settings and no engine.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from inspect import signature
from itertools import chain
from typing import Any

from lsprotocol import types as lsp
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.exceptions import JsonRpcException as ClientError
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.progress import Progress as Sender
from pygls.protocol import lsp_method

from dg_lsp.server.documents import Change, Documents, Opened, UnknownDocument
from dg_lsp.server.notebooks import Cell
from dg_lsp.server.rpc.conversation import Conversation
from dg_lsp.server.rpc.envelope import Message, RequestError, strict_converter
from dg_lsp.server.rpc.watchdog import is_alive

__all__ = ["ClientError", "Protocol", "RequestError", "Sender", "Server"]

# A builtin method yields the registered handler as (handler, args, kwargs), and is sent its result.
_Steps = Generator[Any, Any, Any]
_AT_ONCE = 50  # handlers that are begun before others run
_log = logging.getLogger(__name__)


class Protocol(Conversation):
    """The conversation of a Server, which keeps its documents; the workspace of pygls has folders only.

    client_seen: the client's process, which it names in `initialize`, was alive then.
    """

    ignored = (UnknownDocument,)
    client_seen = False
    _done: Any = None  # the params of the message whose texts `prepare` has put
    _server: "Server"

    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams) -> _Steps:
        """Choose the position encoding."""
        chosen = ServerCapabilitiesBuilder.choose_position_encoding(params.capabilities)
        self._server.documents.encoding = lsp.PositionEncodingKind(chosen).value
        self.client_seen = is_alive(params.process_id)
        return (yield from super().lsp_initialize(params))

    @lsp_method(lsp.EXIT)
    def lsp_exit(self, *args: Any) -> _Steps:
        """Set the exit code, at which the loop ends."""
        self.exit_code = self.status()
        yield from self._registered(lsp.EXIT, *args)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: lsp.DidOpenTextDocumentParams) -> _Steps:
        """Open a document."""
        self._settle(params)
        yield from self._registered(lsp.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: lsp.DidChangeTextDocumentParams) -> _Steps:
        """Change a document."""
        self._settle(params)
        yield from self._registered(lsp.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: lsp.DidCloseTextDocumentParams) -> _Steps:
        """Close a document."""
        self._server.documents.close(params.text_document.uri)
        yield from self._registered(lsp.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(
        self, params: lsp.DidOpenNotebookDocumentParams
    ) -> Coroutine[Any, Any, None]:
        """Open a notebook: each of its cells is a document."""
        notebook, notebooks = params.notebook_document, self._server.documents.notebooks
        notebooks.open(notebook.uri, _cells(notebook.cells))
        return self._cells_changed(params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(
        self, params: lsp.DidChangeNotebookDocumentParams
    ) -> Coroutine[Any, Any, None]:
        """Add, remove and change cells of a notebook, all before the next message is read."""
        changes = params.change.cells or lsp.NotebookDocumentCellChanges()
        if (structure := changes.structure) is not None:
            array = structure.array
            notebooks, uri = self._server.documents.notebooks, params.notebook_document.uri
            notebooks.splice(uri, array.start, array.delete_count, _cells(array.cells or ()))
        return self._cells_changed(params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(
        self, params: lsp.DidCloseNotebookDocumentParams
    ) -> Coroutine[Any, Any, None]:
        """Close a notebook with all its cells."""
        known = self._server.documents.notebooks.close(params.notebook_document.uri)
        self.begin(lsp.TEXT_DOCUMENT_DID_CLOSE, _closed(params.notebook_document.uri))
        return self._cells_changed(params, known)

    @lsp_method(lsp.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(self, params: lsp.ExecuteCommandParams) -> _Steps:
        """Call the command's handler with its arguments in their declared types."""
        handler = self.fm.commands.get(params.command)
        try:
            if handler is not None:
                own = [self._server] if hasattr(handler, "func") else []
                signature(getattr(handler, "func", handler)).bind(*own, *(params.arguments or ()))
            return (yield from super().lsp_workspace__execute_command(params))
        except (JsonRpcInvalidParams, TypeError) as error:
            reason = "there is no such command, or its arguments do not fit it"
            raise RequestError(lsp.ErrorCodes.InvalidParams, reason) from error

    def not_taken(self, method: str, body: dict[str, Any]) -> None:
        """Close a document whose change cannot be read, because its text would differ from the client's text.

        With a notebook all its cells are closed.
        """
        fields = {
            lsp.TEXT_DOCUMENT_DID_CHANGE: "textDocument",
            lsp.NOTEBOOK_DOCUMENT_DID_CHANGE: "notebookDocument",
        }
        params = body.get("params")
        named = params.get(fields.get(method, "")) if isinstance(params, dict) else None
        uri, documents = named.get("uri") if isinstance(named, dict) else None, self._server.documents
        if not isinstance(uri, str):
            return
        for one in {uri, *documents.notebooks.close(uri)}.intersection(documents.uris()):
            documents.close(one)
            _log.error("%s is out of step with the client and closed until the client opens it again", one)

    def is_slow(self, message: Message) -> bool:
        """Return whether a message changes a large document, or is about documents while one of them is unread."""
        documents, params = self._server.documents, message.body.get("params")
        if message.method == lsp.TEXT_DOCUMENT_DID_CHANGE:
            about = params.get("textDocument") if isinstance(params, dict) else None
            return documents.is_large(str(about.get("uri"))) if isinstance(about, dict) else False
        asks = message.method is not None and (message.id is not None or message.method.startswith("dg-lsp/"))
        return asks and bool(documents.unread())

    async def prepare(self, method: str, params: Any) -> None:
        """Change the documents as a message says; read large ones, but between two changes."""
        documents = self._server.documents
        with suppress(UnknownDocument):  # which its handler reports
            for work in self._texts(params):
                documents.put(await self.in_thread(work))
            self._done = params
        if method != lsp.TEXT_DOCUMENT_DID_CHANGE:
            for uri, document in documents.unread():
                await self.in_thread(partial(document.read, uri))
                documents.read((uri, document))

    def _settle(self, params: Any) -> None:
        """Change the documents as a message says, unless `prepare` has done so."""
        done, self._done = self._done, None
        if done is not params:
            for work in self._texts(params):
                self._server.documents.put(work())

    def _texts(self, params: Any) -> Iterator[Callable[[], Opened]]:
        """Yield functions, each of which opens or changes one document for `Documents.put`; any thread may call them.

        Each result must be kept before the next one is made. Unknown documents of cells are ignored.
        """
        documents = self._server.documents
        opened, changed, _ = _cell_texts(params)
        if isinstance(params, lsp.DidOpenTextDocumentParams):
            opened = [params.text_document]
        for new in opened:
            # A language that lsprotocol knows arrives as an enumeration's member.
            language = str(getattr(new.language_id, "value", new.language_id))
            yield partial(documents.opening, new.uri, language, new.version, new.text)
        if isinstance(params, lsp.DidChangeTextDocumentParams):
            about = params.text_document
            change = documents.changing(about.uri, about.version)
            yield lambda: change(changes_of(params.content_changes))
        for one in changed:
            with suppress(UnknownDocument):
                change = documents.changing(one.text_document.uri, one.text_document.version)
                yield lambda one=one, change=change: change(changes_of(one.content_changes))  # type: ignore[misc]

    def complete(self, record: dict[str, Any]) -> None:
        """Give a document whose version is missing the next one."""
        if isinstance(uri := record.get("uri"), str):
            record.setdefault("version", self._server.documents.next_version(uri))

    async def _cells_changed(self, params: Any, closed: Sequence[str] = ()) -> None:
        """Open, change and close documents of cells, all before any handler runs; unknown ones are ignored.

        Each handler runs by itself: none waits for another one, and none is left out if another one fails.
        """
        self._settle(params)
        documents, (opened, changed, gone) = self._server.documents, _cell_texts(params)
        known = {*documents.uris()}
        closed = [uri for uri in dict.fromkeys((*closed, *gone)) if uri in known]
        for uri in closed:
            documents.close(uri)
        calls: Iterator[tuple[str, Any]] = chain(
            ((lsp.TEXT_DOCUMENT_DID_CLOSE, _closed(uri)) for uri in closed),
            ((lsp.TEXT_DOCUMENT_DID_OPEN, lsp.DidOpenTextDocumentParams(new)) for new in opened),
            ((lsp.TEXT_DOCUMENT_DID_CHANGE, one) for one in changed),
        )
        for number, (method, told) in enumerate(calls, 1):
            self.begin(method, told)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _registered(self, method: str, *args: Any) -> _Steps:
        """Yield the registered handler of `method`, if there is one."""
        if (handler := self.fm.features.get(method)) is not None:
            yield handler, args, None


class Server(LanguageServer):
    """A language server; register `async def` handlers with `feature`, and have `streams.serve` serve it.

    documents: those that the client has opened. protocol: the conversation with the client. languages: those of the
    cells of notebooks that the client keeps in step.
    """

    protocol: Protocol

    def __init__(self, name: str, version: str, languages: Sequence[str] = ()) -> None:
        # At lower levels pygls logs whole messages, which hold source text.
        logging.getLogger("pygls").setLevel(logging.WARNING)
        self.documents = Documents()
        cells = [lsp.NotebookCellLanguage(language) for language in languages]
        wanted = lsp.NotebookDocumentFilterWithCells(cells, notebook="*")
        super().__init__(
            name,
            version,
            protocol_cls=Protocol,
            converter_factory=strict_converter,
            notebook_document_sync=lsp.NotebookDocumentSyncOptions([wanted]) if cells else None,
        )

    def set_commands(self, handlers: Mapping[str, Callable[..., Any]]) -> None:
        """Register `handlers` by their commands' names, in place of the commands registered before."""
        self.protocol.fm.commands.clear()
        for name, handler in handlers.items():
            self.command(name)(handler)


def _cells(cells: Sequence[lsp.NotebookCell]) -> list[Cell]:
    return [Cell(cell.document, cell.kind == lsp.NotebookCellKind.Code) for cell in cells]


def _closed(uri: str) -> lsp.DidCloseTextDocumentParams:
    return lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri))


def _cell_texts(
    params: Any,
) -> tuple[Sequence[lsp.TextDocumentItem], Sequence[lsp.DidChangeTextDocumentParams], Sequence[str]]:
    """Return the documents of cells that the params of a notebook open and change, and the uris of those they close."""
    if isinstance(params, lsp.DidOpenNotebookDocumentParams):
        return params.cell_text_documents, (), ()
    if isinstance(params, lsp.DidCloseNotebookDocumentParams):
        return (), (), [one.uri for one in params.cell_text_documents]
    cells = params.change.cells if isinstance(params, lsp.DidChangeNotebookDocumentParams) else None
    if cells is None:
        return (), (), ()
    changed = [lsp.DidChangeTextDocumentParams(one.document, one.changes) for one in cells.text_content or ()]
    structure = cells.structure
    closed = [one.uri for one in (structure and structure.did_close) or ()]
    return (structure and structure.did_open) or (), changed, closed


def changes_of(events: Sequence[lsp.TextDocumentContentChangeEvent]) -> list[Change]:
    """Return changes of a notification without types of the protocol."""
    return [_change(event) for event in events]


def _change(event: lsp.TextDocumentContentChangeEvent) -> Change:
    if isinstance(event, lsp.TextDocumentContentChangeWholeDocument):
        return None, event.text
    start, end = event.range.start, event.range.end
    return ((start.line, start.character), (end.line, end.character)), event.text
