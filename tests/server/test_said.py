"""What a client gets to show: whatever files, settings and errors are called, it is one line that controls nothing."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.filling.engine import EngineError
from dg_lsp.server import client as client_module
from dg_lsp.server import progress as progress_module
from dg_lsp.server.rpc.envelope import readable
from dg_lsp.settings import Settings
from tests.server.editor import Editor
from tests.server.wire import request

EVIL = "e\x1b]0;title\x07\x15touch x\n\x9b31m\u202eb\r\u2028\u200f"
BAD = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# The members that hold texts of documents, or what is compared with what the client has: they come as they are.
EXACT = {
    "newText",
    "insertText",
    "text",
    "uri",
    "id",
    "arguments",
    "data",
    "runs",
    "files",
    "registerOptions",
}
LONG = 1_000


def sentences(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings of a message that are for a person, with the name of the member that each is in."""
    if isinstance(value, str) and name not in EXACT:
        yield name, value
    elif isinstance(value, dict) and name not in EXACT:
        for key, one in value.items():
            yield from sentences(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from sentences(one, name)


def bad(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (name, text)
        for message in messages
        for name, text in sentences(message)
        if BAD.search(text) or len(text) > LONG
    ]


def broken(_: Any) -> Any:
    """An engine whose error is hostile."""
    raise EngineError(EVIL * 200)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose name, files and settings control a terminal."""
    folder = tmp_path / EVIL
    folder.mkdir()
    (folder / f"{EVIL}.py").write_text("def price(x):\n    raise NotImplementedError\n")
    (folder / "shop.js").write_text(f'class A {{ "{EVIL[:9]}"(x) {{\n    throw new Error("TODO")\n}} }}\n')
    monkeypatch.setattr(progress_module, "_AFTER", 0.0)
    monkeypatch.setattr(client_module, "APPLYING", 1.0)
    return folder


async def play(folder: Path) -> list[dict[str, Any]]:
    """Let a client do what is answered by names, settings and errors; return all that it got."""
    editor = Editor(Settings(checkpoint=str(folder / "model")))
    editor.settings = {
        "dg-lsp": {
            "exclude": [f"{EVIL}.py", "a" * 4_000],
            "effort": EVIL,
            "checkpoint": EVIL,
            EVIL: 1,
            "x" * 4_000: 1,
        },
        "dg-lsp-user": {"device": EVIL, "disabledLanguages": [EVIL], "deadline": EVIL},
    }
    able = {
        "window": {"workDoneProgress": True, "showMessage": {}},
        "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
        "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}},
        "experimental": {"dgLsp": {"status": True, "draft": True, "apart": True}},
    }
    own = {"logLevel": EVIL, EVIL: EVIL}
    await editor.start(own, folders=(folder.as_uri(),), **able)
    await editor.quiet()
    uris = []
    for path in sorted(folder.glob("*.*")):
        language = "python" if path.suffix == ".py" else "javascript"
        item = {"uri": path.as_uri(), "languageId": language, "version": 1, "text": path.read_text()}
        await editor.tell("textDocument/didOpen", {"textDocument": item})
        uris.append(path.as_uri())
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 3, "character": 0}}
    for uri in (*uris, f"file:///{EVIL}.py", EVIL):
        await editor.ghost(uri, 1, 4)
        about = {"textDocument": {"uri": uri}, "range": whole, "context": {"diagnostics": []}}
        await editor.ask("textDocument/codeAction", about)
        await editor.ask("dg-lsp/status", {"uri": uri})
        at = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 4}}
        await editor.ask("dg-lsp/nextEdit", at)
        for target in ({"name": EVIL}, {"name": "price"}, {"name": "price", "kind": EVIL}, {"seed": EVIL}):
            given = {"command": "dg-lsp.fill", "arguments": [{"uri": uri, **target, EVIL: EVIL}]}
            await editor.ask("workspace/executeCommand", given)
        given = {"command": "dg-lsp.fillAll", "arguments": [{"uri": uri}]}
        await editor.ask("workspace/executeCommand", given)
    for command in ("dg-lsp.fetchModel", "dg-lsp.useModel", EVIL):
        await editor.ask("workspace/executeCommand", {"command": command, "arguments": [EVIL]})
    await editor.ask("dg-lsp/models", {})
    editor.send(request(f"own {EVIL}", EVIL, {}))
    # An engine and a client that say such words themselves.
    editor.engine.infill = broken  # type: ignore[assignment, method-assign]
    editor.refuses = {"error": {"code": -1, "message": EVIL}}
    await editor.tell("workspace/didChangeConfiguration", {"settings": {"dg-lsp": {EVIL: EVIL}}})
    for uri in uris:
        await editor.ghost(uri, 1, 4)
        given = {"command": "dg-lsp.fillAll", "arguments": [{"uri": uri}]}
        await editor.ask("workspace/executeCommand", given)
    editor.refuses = None
    await editor.close()
    return editor.heard


def test_no_message_controls_anything_where_it_is_shown(hostile: Path) -> None:
    heard = asyncio.run(play(hostile))
    methods = {message.get("method", "answer") for message in heard}
    assert {"answer", "window/showMessage", "dg-lsp/status", "$/progress"} <= methods
    assert "title" in json.dumps(heard), "no name came into a message"
    assert bad(heard) == []


def test_a_sentence_is_one_line_and_not_too_long_and_texts_stay_as_they_are() -> None:
    message = {
        "error": {"code": 1, "message": f"no file\n  {EVIL}\x1b[1m"},
        "result": {"items": [{"insertText": EVIL, "why": ("a\tb", "é 日 ok\u200d")}], "uri": EVIL},
        "params": {"value": {"title": "x" * 5_000}, "data": {"name": EVIL}},
    }
    said = readable(message)
    assert bad([said]) == []
    assert said["error"]["message"].startswith("no file e\\x1b]0;title\\x07\\x15touch x")
    assert said["result"]["items"][0] == {"insertText": EVIL, "why": ["a\\tb", "é 日 ok\u200d"]}
    assert said["result"]["uri"] == EVIL and said["params"]["data"] == {"name": EVIL}
    assert len(said["params"]["value"]["title"]) <= LONG and "…" in said["params"]["value"]["title"]
