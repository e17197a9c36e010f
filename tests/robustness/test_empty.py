"""Law 9: each way to get nothing has a reason, and it arrives in `dg-lsp/status`."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.window import CAPABILITIES, position
from tests.server.wire import Wire, notification, request

URI = "file:///w/shop.py"
STUB = "def add(a, b):\n    pass\n\n\nx = \n"
Serve = Callable[..., Wire]


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """A server for some options, the same one each time; its engine answers as a document says."""
    running: dict[str, Wire] = {}

    def found(**options: Any) -> Wire:
        if str(options) not in running:
            wire = Wire([sys.executable, "-P", "-m", "tests.robustness.answers"])
            wire.initialize(
                capabilities=CAPABILITIES, initializationOptions={"checkpoint": "scripted", **options}
            )
            asked = wire.until("workspace/configuration")
            wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": [None]})
            running[str(options)] = wire
        return running[str(options)]

    yield found
    for wire in running.values():
        wire.__exit__()


def opened(wire: Wire, text: str, uri: str = URI, language: str = "python") -> int:
    """Open `text`, in which | is the cursor, and type the character before that; the cursor's offset."""
    at, text = text.find("|"), text.replace("|", "")
    wire.send(notification("textDocument/didClose", {"textDocument": {"uri": uri}}))
    before = text[: max(at - 1, 0)] + text[max(at, 0) :]
    document = {"uri": uri, "languageId": language, "version": 1, "text": before}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))
    if at > 0:
        place = position(before, at - 1)
        key = {"range": {"start": place, "end": place}, "text": text[at - 1]}
        change = {"textDocument": {"uri": uri, "version": 1}, "contentChanges": [key]}
        wire.send(notification("textDocument/didChange", change))
    return at


def told(wire: Wire, why: str) -> None:
    """The reason is in the answer to the request, and comes as a notification."""
    last = wire.ask(f"s{time.monotonic()}", "dg-lsp/status")["result"]["last"]
    assert not last["offered"] and why in last["why"], last
    # The notification may have come before the answer.
    while not any(why in has for has in reasons(wire)):
        wire.until("dg-lsp/status")
    wire.messages.clear()


def reasons(wire: Wire) -> list[str]:
    """The reasons in the notifications that have come."""
    states = [m["params"]["last"] for m in wire.messages if m.get("method") == "dg-lsp/status"]
    return [last["why"] for last in states if last]


def inline(text: str, at: int, kind: int = 2, uri: str = URI) -> dict[str, Any]:
    where = position(text.replace("|", ""), at)
    return {"textDocument": {"uri": uri}, "position": where, "context": {"triggerKind": kind}}


# The document with its cursor, and a part of the reason. What follows #@ is what the engine does.
GHOST = {
    "middle of a word": ("x = fo|o\n", "the cursor is in the middle of a word"),
    "comment": ("x = 1  # so |\n", "switched off by the setting prose"),
    "string": ("x = 'so |'\n", "switched off by the setting prose"),
    "a stub's body": ("def f():\n    p|ass\n", "the cursor is in the middle of a word"),
    "a body elsewhere": ("def f():\n    pass|\n", "the function body to fill is not at the cursor"),
    "no word in sight": (
        "#@ unknown\nfirst = 1\nsecond = fx|\n",
        "no word of the open files begins with the half-typed word",
    ),
    "left empty": ("#@ empty\nx = |\n", "the model left the gap empty"),
    "no candidate": ("#@ refused\nx = |\n", "none of 3 candidates could be shown"),
    "deadline": ("#@ deadline\nx = |\n", "the deadline passed before a candidate was ready"),
    "syntax error": ("#@ syntax\nx = |\n", "the fill would add a syntax error"),
    "swallows what follows": ("#@ swallows\nx = f(|, 2)\n", "the fill"),
    "busy": ("#@ busy\nx = |\n", "the engine is busy"),
    "out of memory": ("#@ memory\nx = |\n", "out of memory"),
    "died": ("#@ died\nx = |\n", "the engine died"),
    "silent": ("#@ silent\nx = |\n", "the engine answers too slowly"),
    "cannot load": ("#@ failed\nx = |\n", "has no config.json"),
    "another user's": ("#@ foreign\nx = |\n", "belongs to another user"),
    "no end": ("#@ nothing\nx = |\n", "the engine stopped without an answer"),
    "an error of our own": ("#@ bug\nx = |\n", "an internal error of dg-lsp (ValueError)"),
}


@pytest.mark.parametrize("name", GHOST)
def test_ghost_text_that_does_not_come_says_why(serve: Serve, name: str) -> None:
    (text, why), wire = GHOST[name], serve()
    at = opened(wire, text)
    assert wire.ask(name, "textDocument/inlineCompletion", inline(text, at))["result"]["items"] == []
    told(wire, why)
    assert "text of the file" not in wire.stderr


def test_after_a_complete_word_the_texts_that_end_it_are_offered(serve: Serve) -> None:
    wire, text = serve(), "#@ longer\nx = pa|\n"
    asked = inline(text, opened(wire, text), kind=1)
    span = {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 6}}
    asked["context"]["selectedCompletionInfo"] = {"range": span, "text": "path"}
    (item,) = wire.ask("longer", "textDocument/inlineCompletion", asked)["result"]["items"]
    assert item["insertText"] == "path()"


# The options, the address, the language, and a part of the reason.
OFF: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "excluded": ({}, "file:///w/.env.py", "python", "excluded by .env* in the setting exclude"),
    "language off": ({"disabledLanguages": ["rust"]}, URI, "rust", "by the setting disabledLanguages"),
    "no grammar": ({}, URI, "klingon", "klingon"),
    "no language": ({}, URI, "", "no grammar for the language"),
    "not automatic": ({"automatic": False}, URI, "python", "by the setting automatic"),
    "not learned": ({"checkpoint": "embedded"}, URI, "go", "was trained on Python only"),
}


@pytest.mark.parametrize("name", OFF)
def test_where_it_is_off_the_reason_is_told(serve: Serve, name: str) -> None:
    options, uri, language, why = OFF[name]
    wire = serve(**options)
    at = opened(wire, "x = |\n", uri, language)
    params = inline("x = |\n", at, uri=uri)
    assert wire.ask(name, "textDocument/inlineCompletion", params)["result"]["items"] == []
    told(wire, why)


def test_a_document_that_is_not_open(serve: Serve) -> None:
    wire = serve()
    params = inline("", 0, uri="file:///w/closed.py")
    assert wire.ask("closed", "textDocument/inlineCompletion", params)["result"]["items"] == []
    told(wire, "the document is not open")


def test_what_was_dismissed_and_what_was_accepted(serve: Serve) -> None:
    wire, text = serve(), "#@ good\ny = |\n"
    at = opened(wire, text)
    params = inline(text, at)
    (item,) = wire.ask("shown", "textDocument/inlineCompletion", params)["result"]["items"]
    dismissed = {"uri": URI, "position": params["position"], "text": item["insertText"]}
    wire.send(notification("dg-lsp/dismissed", dismissed))
    assert wire.ask("again", "textDocument/inlineCompletion", params)["result"]["items"] == []
    told(wire, "this text was dismissed here")
    span = {"start": params["position"], "end": params["position"]}
    change = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"range": span, "text": "None"}]}
    wire.send(notification("textDocument/didChange", change))
    after = inline(text.replace("|", "None"), at + 4)
    assert wire.ask("taken", "textDocument/inlineCompletion", after)["result"]["items"] == []
    told(wire, "was just accepted")


@pytest.mark.parametrize("overtaken", ["by a change", "by a request"])
def test_what_was_overtaken(serve: Serve, overtaken: str) -> None:
    wire, text = serve(), "#@ slowly\nx = |\n"
    at = opened(wire, text)
    wire.send(request("old", "textDocument/inlineCompletion", inline(text, at)))
    if overtaken == "by a change":
        whole = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": "x = 1\n"}]}
        wire.send(notification("textDocument/didChange", whole))
    else:
        wire.send(request("new", "textDocument/inlineCompletion", inline(text, at)))
    assert wire.answer("old")["result"]["items"] == []
    told(wire, "the document changed, or a newer request replaced this one")
    opened(wire, "")


# The place, the kinds that are wanted, and the reason.
ACTIONS: dict[str, tuple[tuple[int, int], list[str] | None, str]] = {
    "in no function": ((len(STUB) - 1, len(STUB) - 1), None, "the cursor is in no function"),
    "none selected": ((len(STUB) - 4, len(STUB) - 1), None, "no function is in the selection"),
    "other kinds": ((5, 5), ["quickfix", "source"], "code actions of other kinds: quickfix, source"),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_a_code_action_that_is_not_there_says_why(serve: Serve, name: str) -> None:
    wire, (ends, only, why) = serve(), ACTIONS[name]
    opened(wire, STUB)
    span = {side: position(STUB, at) for side, at in zip(("start", "end"), ends, strict=True)}
    context: dict[str, Any] = {"diagnostics": [], "only": only}
    params = {"textDocument": {"uri": URI}, "range": span, "context": context}
    assert wire.ask(name, "textDocument/codeAction", params)["result"] == []
    told(wire, why)
    # An editor that asks at each move of the cursor changes nothing of what is told.
    before = wire.ask("before", "dg-lsp/status")["result"]["last"]
    params["context"] = {**context, "triggerKind": 2}
    assert wire.ask(f"{name} again", "textDocument/codeAction", params)["result"] == []
    assert wire.ask("after", "dg-lsp/status")["result"]["last"] == before


def test_a_code_action_for_an_old_version_says_why(serve: Serve) -> None:
    wire = serve()
    opened(wire, STUB)
    action = {"title": "x", "data": {"uri": URI, "version": 7, "range": None}}
    assert "edit" not in wire.ask("old", "codeAction/resolve", action)["result"]
    told(wire, "has changed since the code action was listed")


# The target of `dg-lsp.fill`, and the reason.
TARGETS: dict[str, tuple[dict[str, Any], str]] = {
    "no place": ({}, "say where to fill"),
    "no such function": ({"name": "sub"}, "the file has no function sub"),
    "no such kind": ({"name": "add", "kind": "novel"}, "the kind is one of"),
    "another version": ({"name": "add", "version": 9}, "is at version 1, not 9"),
    "no such effort": ({"name": "add", "effort": "most"}, "'effort' takes one of"),
    "no holes": ({"position": {"line": 1, "character": 4}, "kind": "holes"}, "has no holes"),
    "no file": ({"uri": "file:///nowhere/x.py", "name": "add"}, "there is no file"),
    "no address": ({"uri": "untitled:1", "name": "add"}, "is not a file:// address"),
    "a directory": ({"uri": "file:///FOLDER/folder.py", "name": "add"}, "is a directory"),
    "a pipe": ({"uri": "file:///FOLDER/pipe.py", "name": "add"}, "is a pipe or a device"),
    "not UTF-8": ({"uri": "file:///FOLDER/latin.py", "name": "add"}, "is not UTF-8"),
    "too large": ({"uri": "file:///FOLDER/large.py", "name": "add"}, "is larger than 32 MiB"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_command_that_fills_nothing_says_why(serve: Serve, name: str, tmp_path: Path) -> None:
    wire, (target, why) = serve(), TARGETS[name]
    opened(wire, STUB)
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")
    with (tmp_path / "large.py").open("wb") as large:
        large.truncate((32 << 20) + 1)
    given = {"uri": URI, **target}
    given["uri"] = given["uri"].replace("/FOLDER", str(tmp_path))
    params = {"command": "dg-lsp.fill", "arguments": [given]}
    result = wire.ask(name, "workspace/executeCommand", params)["result"]
    assert result["edit"] is None and why in result["why"]
    told(wire, why)
