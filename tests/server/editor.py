"""An editor in this process: a whole server whose messages come and go as JSON, and an engine that records requests."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from dg_lsp.engine import wire
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.messages import Fill, Infill
from dg_lsp.server.app import make_server
from dg_lsp.settings import Settings
from tests.server.wire import notification, request
from tests.waiting import until

HANGS = object()
"""Given as the answer for the settings: the editor does not answer."""


class Recorder(ScriptedEngine):
    """An engine that keeps the bytes of each request, as they would leave this process."""

    def __init__(self) -> None:
        super().__init__(lambda asked: Fill("1"))
        self.bytes: list[bytes] = []
        self.heard: Callable[[bytes], None] = self.bytes.append

    def infill(self, request: Infill) -> Any:
        # A name of the document leaves for a server as a hash only, which `TeamEngine` makes.
        packed = {**wire.pack(request), "session": ""}
        self.heard(json.dumps(packed, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        return super().infill(request)


class Editor:
    """A client of a server. settings: what it answers for each section; HANGS for none, an exception for an error.

    open_engine: makes the engines of the server, by default one Recorder for all.
    """

    def __init__(self, settings: Settings | None = None, open_engine: Any = None) -> None:
        self.engine, self.settings = Recorder(), dict[str, Any]()
        self.refuses: Any = None
        self.server = make_server(settings or Settings(), open_engine or (lambda *_: self.engine))
        self.protocol, self.heard = self.server.protocol, list[dict[str, Any]]()
        self.protocol.set_writer(self)  # type: ignore[arg-type]
        self.answers: dict[Any, Any] = {}
        self._count = 0

    def write(self, data: bytes) -> None:
        """Take a message of the server's, and answer its requests."""
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        self.heard.append(message)
        if "method" not in message:
            self.answers[message["id"]] = message
        elif "id" in message:
            self._answer(message)

    @property
    def status(self) -> dict[str, Any]:
        """The newest status that was sent."""
        told = (one["params"] for one in reversed(self.heard) if one.get("method") == "dg-lsp/status")
        return next(told, {})

    def send(self, message: dict[str, Any]) -> None:
        self.protocol.handle_body(json.dumps(message).encode())

    async def tell(self, method: str, params: Any = None) -> None:
        """Send a notification, and wait until the server has done with it."""
        self.send(notification(method, params))
        await self.quiet()

    async def quiet(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        await until(lambda: len(self.protocol._tasks) <= self.waiting)

    @property
    def waiting(self) -> int:
        """The tasks of the server that wait for an answer that does not come."""
        return sum(one is HANGS for one in self.settings.values())

    def begin(self, method: str, params: Any) -> Any:
        """Send a request; return what `ended` waits for."""
        self._count += 1
        self.send(request(self._count, method, params))
        return self._count

    async def ended(self, msg_id: Any) -> Any:
        await until(lambda: msg_id in self.answers)
        return self.answers.pop(msg_id).get("result")

    async def ask(self, method: str, params: Any) -> Any:
        return await self.ended(self.begin(method, params))

    async def start(self, own: Any = None, *, folders: tuple[str, ...] = (), **capabilities: Any) -> None:
        able = {
            "workspace": {"configuration": True, **capabilities.pop("workspace", {})},
            **capabilities,
        }
        named = [{"uri": uri, "name": uri.rpartition("/")[2]} for uri in folders]
        given = {"processId": None, "rootUri": None, "capabilities": able, "workspaceFolders": named}
        await self.ask("initialize", {**given, "initializationOptions": own or {}})
        self.send(notification("initialized", {}))

    async def ghost(self, uri: str, line: int, column: int) -> list[Any]:
        """Return the ghost text that is asked for at a place."""
        return list((await self.ended(self.begin_ghost(uri, line, column)))["items"])

    def begin_ghost(self, uri: str, line: int, column: int) -> Any:
        at, why = {"line": line, "character": column}, {"triggerKind": 1}
        about = {"textDocument": {"uri": uri}, "position": at, "context": why}
        return self.begin("textDocument/inlineCompletion", about)

    async def close(self) -> None:
        for one in [*self.protocol._tasks]:
            one.cancel()
        await self.ask("shutdown", None)

    def _answer(self, message: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"], "result": None}
        if message["method"] == "workspace/configuration":
            found = [self.settings.get(item["section"]) for item in message["params"]["items"]]
            if any(one is HANGS for one in found):
                return
            if self.refuses is not None:
                reply = {"jsonrpc": "2.0", "id": message["id"], **self.refuses}
            else:
                reply["result"] = found
        elif message["method"] == "workspace/applyEdit":
            reply["result"] = {"applied": True}
        asyncio.get_running_loop().call_soon(self.send, reply)
