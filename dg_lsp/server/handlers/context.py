"""Context: the objects that handlers use beside their Snapshot, and the one way in which requests for fills end."""

import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Generic, TypeVar

from lsprotocol import types

from dg_lsp.files.excluded import split_uri
from dg_lsp.filling.engine import EngineError
from dg_lsp.guard import note_of
from dg_lsp.messages import Fill
from dg_lsp.reasons import NoGap
from dg_lsp.server.client import Client
from dg_lsp.server.rpc.conversation import log_failure
from dg_lsp.server.rpc.envelope import RequestError
from dg_lsp.server.session import Session, Superseded
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.status import Last, StatusBoard
from dg_lsp.server.uses import Uses
from dg_lsp.server.workspace import CHANGED, Workspace
from dg_lsp.source.document import Document, DocumentError
from dg_lsp.source.language import UnknownLanguage

T = TypeVar("T")

_BACKQUOTED = re.compile(r"`(?!dg-lsp)[^`]+`")
_QUOTED = re.compile(r"(?<!\w)'[^']+'")
_log = logging.getLogger("dg_lsp.server")


@dataclass(frozen=True, slots=True)
class Context:
    """The documents of a client, the work on them, the messages and the status for it, and the counts of its use."""

    workspace: Workspace
    session: Session
    client: Client
    board: StatusBoard
    uses: Uses

    def around(self, document: Document) -> Snapshot:
        """Return `document` with the settings, encoding and capabilities of this moment."""
        return Snapshot(document, self.workspace.settings, self.workspace.documents.encoding, self.client.can)

    def log_refusal(self, uri: str, reason: str) -> None:
        """Log why the document `uri` gets an empty answer (law 9)."""
        name = PurePosixPath(split_uri(uri)[1]).name or uri[:80]
        _log.info("%s: nothing offered: %s", name, without_quotes(reason))

    def record(self, request: "Request[Any]", reply: "Reply[Any]") -> None:
        """Log why nothing is offered, and show how the request ended."""
        if reply.why:
            self.log_refusal(request.uri, reply.why)
        if reply.why is None or request.quiet:
            return
        fill = None if reply.why else reply.fill
        last = Last(request.uri, not reply.why, reply.why, (time.monotonic() - request.began) * 1000)
        if fill is not None:
            last = replace(
                last, chance=fill.chance, source=fill.source, note=note_of(fill), files=reply.files
            )
        self.board.record(last)


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A request about the document `uri`. empty: returns the answer to give for a reason why there is no fill.

    raises: an error of the engine, or of a handler, is an error of the request, else a reason for an empty answer.
    quiet: an editor asks by itself, so only the log has the reason.
    """

    uri: str
    empty: Callable[[str], T]
    raises: bool = True
    quiet: bool = False
    began: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """The answer to a request, and how it ended: why nothing is offered, or the fill and the files that it is from.

    why: None if nothing was to be filled, so that the status of the last fill stays.
    """

    answer: T
    why: str | None = ""
    fill: Fill | None = None
    files: tuple[str, ...] = ()


async def answered(
    context: Context,
    request: Request[T],
    handler: Callable[[Snapshot], Awaitable[Reply[T]]],
    document: Awaitable[Document] | None = None,
) -> T:
    """Return the answer of `handler` to a Snapshot, or an empty one; record how the request ended.

    document: the one of the Snapshot, by default the open document of the request, if it may be filled.
    """
    try:
        found = await (document or context.workspace.permitted(request.uri))
        reply = await handler(context.around(found))
    except Superseded:
        reply = Reply(request.empty(CHANGED), CHANGED)
    except (NoGap, UnknownLanguage, DocumentError) as error:
        reply = Reply(request.empty(str(error)), str(error))
    except EngineError as error:
        reply = Reply(request.empty(str(error)), str(error))
        if request.raises:
            context.record(request, reply)
            raise RequestError(types.LSPErrorCodes.RequestFailed, str(error)) from error
    except Exception as error:
        if request.raises:
            raise
        log_failure("ghost text", error)
        why = f"an internal error of dg-lsp ({type(error).__name__}); see the server's log"
        reply = Reply(request.empty(why), why)
    context.record(request, reply)
    return reply.answer


def without_quotes(reason: str) -> str:
    """Return `reason` without the texts that it quotes, which may be source text, for the log (law 8).

    Commands of dg-lsp stay. Example: "unexpected `total = (` at line 1" becomes "unexpected `…` at line 1".
    """
    before, error, message = _BACKQUOTED.sub("`…`", reason).partition("syntax error")
    # Python's own parser quotes names so.
    return before + error + _QUOTED.sub("'…'", message)
