"""An editor's window without an editor: a real server, the documents as the editor has them, and all answers.

A thread takes what the server says, so that each answer has its time and none is missed; a server's own request is
answered at once, or after a while where a test wants a slow editor.
"""

import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from tests.server.wire import NoMessage, Wire, notification, request

CAPABILITIES = {
    "workspace": {"configuration": True, "applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "textDocument": {"codeAction": {"resolveSupport": {"properties": ["edit"]}}},
    "experimental": {"dgLsp": {"status": True}},
}
ANSWERS: Mapping[str, Any] = {"workspace/configuration": [None], "workspace/applyEdit": {"applied": True}}


def position(text: str, at: int) -> dict[str, int]:
    """The place of the character `at` of `text`, whose lines end at LF, in units of UTF-16."""
    line = text.count("\n", 0, at)
    head = text[text.rfind("\n", 0, at) + 1 : at]
    return {"line": line, "character": len(head.encode("utf-16-le")) // 2}


class Window:
    """One window. texts: its open documents. sent: the methods of its requests, whose ids count from 0.

    answers: by the id of the request, each with the time when it came.

    late: seconds after which the server's own requests are answered. silence: see `server.py`; None for the real one.
    """

    def __init__(self, late: float = 0.0, silence: float | None = None, **params: Any) -> None:
        options = [] if silence is None else [str(silence)]
        self.wire = Wire([sys.executable, "-P", "-m", "tests.robustness.server", *options])
        self.texts: dict[str, str] = {}
        self.answers: dict[Any, list[tuple[float, dict[str, Any]]]] = {}
        self.statuses: list[dict[str, Any]] = []
        self.sent: list[str] = []
        self._versions: dict[str, int] = {}
        self._late = late
        self._news = threading.Condition()
        self._sending = threading.Lock()
        threading.Thread(target=self._take, daemon=True).start()
        given = {"processId": os.getpid(), "rootUri": None, "capabilities": CAPABILITIES, **params}
        assert "result" in self.wait(self.ask("initialize", given), 120)
        self.tell("initialized", {})

    def ask(self, method: str, params: Any, before: tuple[dict[str, Any], ...] = ()) -> int:
        """Send `before` and a request in one write; the request's id."""
        with self._sending:
            number = len(self.sent)
            self.sent.append(method)
            self.wire.send(*before, request(number, method, params))
        return number

    def tell(self, method: str, params: Any) -> None:
        """Send a notification."""
        with self._sending:
            self.wire.send(notification(method, params))

    def wait(self, number: int, timeout: float = 120) -> dict[str, Any]:
        """The answer to the request `number`."""
        with self._news:
            if not self._news.wait_for(lambda: number in self.answers, timeout):
                raise NoMessage(f"no answer within {timeout} s")
            return self.answers[number][0][1]

    def open(self, uri: str, text: str, language: str = "python") -> None:
        """Open a document, or open it anew."""
        if uri in self.texts:
            self.close_document(uri)
        self.texts[uri], self._versions[uri] = text, 1
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})

    def close_document(self, uri: str) -> None:
        """Close a document."""
        del self.texts[uri]
        self.tell("textDocument/didClose", {"textDocument": {"uri": uri}})

    def edit(self, uri: str, start: int, end: int, new: str) -> dict[str, Any]:
        """Replace the characters [start, end) of a document; the notification that tells of it, to be sent."""
        text = self.texts[uri]
        span = {"start": position(text, start), "end": position(text, end)}
        self.texts[uri] = text[:start] + new + text[end:]
        self._versions[uri] += 1
        document = {"uri": uri, "version": self._versions[uri]}
        changes = [{"range": span, "text": new}]
        return notification("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def inline(self, uri: str, at: int, kind: int = 2) -> dict[str, Any]:
        """The params of a request for ghost text; kind 1 is asked for, 2 automatic."""
        where = position(self.texts[uri], at)
        return {"textDocument": {"uri": uri}, "position": where, "context": {"triggerKind": kind}}

    def same_text(self, uri: str) -> bool:
        """Whether the server has the document as the editor has it."""
        answer = self.wait(self.ask("test/text", {"uri": uri}))
        return bool(answer["result"]["text"] == self.texts[uri])

    def status(self, timeout: float = 120) -> dict[str, Any]:
        """The object of `dg-lsp/status`."""
        return self.wait(self.ask("dg-lsp/status", {}), timeout)["result"]  # type: ignore[no-any-return]

    def not_once(self) -> int:
        """How many requests have no answer, or more than one."""
        return len(self.odd())

    def odd(self) -> list[str]:
        """The requests that have no answer, or more than one."""
        with self._news:
            counts = [(method, len(self.answers.get(number, ()))) for number, method in enumerate(self.sent)]
        return [f"{method} answered {count} times" for method, count in counts if count != 1]

    def close(self) -> int:
        """Take leave as an editor does; the exit code."""
        self.wait(self.ask("shutdown", None))
        self.tell("exit", None)
        code = self.wire.wait()
        self.wire.__exit__()
        return code

    def _take(self) -> None:
        while True:
            try:
                message = self.wire.read(3600)
            except NoMessage:
                return
            self.wire.messages.clear()
            method = message.get("method")
            if method is None:
                with self._news:
                    came = (time.monotonic(), message)
                    self.answers.setdefault(message.get("id"), []).append(came)
                    self._news.notify_all()
            elif "id" in message:
                threading.Timer(self._late, self._reply, [message["id"], method]).start()
            elif method == "dg-lsp/status":
                self.statuses.append(message["params"])

    def _reply(self, number: Any, method: str) -> None:
        with self._sending:
            self.wire.send({"jsonrpc": "2.0", "id": number, "result": ANSWERS.get(method)})
