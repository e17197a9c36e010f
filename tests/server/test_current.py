"""An edit leaves only for the text that is there: on disk, or in the document that is open by then."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_app import wait_for_steps
from tests.server.wire import Wire, notification, request

TEXT = "def double(x):\n    return x * 2\n\n\ndef add(a, b):\n    raise NotImplementedError\n"
TURNED = (
    "def add(a, b):\n    raise NotImplementedError\n\n\ndef double(x):\n    return x * 2\n\n\nSECRET = 1\n"
)
APPLIES = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
GONE = -32801
Meanwhile = Callable[[Wire, Path], None]


@pytest.fixture
def slow(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """A server whose engine works for a second on each fill."""
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted:10:100")
    with Wire([sys.executable, "-m", "dg_lsp", "--stdio"]) as wire:
        wire.initialize(capabilities=APPLIES)
        yield wire


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(TEXT)
    return path


def opened(wire: Wire, path: Path, text: str, version: int = 7) -> None:
    document = {"uri": path.as_uri(), "languageId": "python", "version": version, "text": text}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))


def closed(wire: Wire, path: Path) -> None:
    wire.send(notification("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}}))


def changed(wire: Wire, path: Path, version: Any, *changes: dict[str, Any]) -> None:
    params = {"textDocument": {"uri": path.as_uri(), "version": version}, "contentChanges": [*changes]}
    wire.send(notification("textDocument/didChange", params))


def send_fill(wire: Wire, path: Path, command: str = "dg-lsp.fill", **target: Any) -> None:
    named = {"name": "add"} if command == "dg-lsp.fill" else {}
    params = {"command": command, "arguments": [{"uri": path.as_uri(), **named, **target}]}
    wire.send(request("fill", "workspace/executeCommand", params))


def settled(wire: Wire) -> dict[str, Any]:
    """The answer to the fill; a request to apply its edit is applied."""
    while True:
        message = wire.read()
        if message.get("method") == "workspace/applyEdit":
            wire.send({"jsonrpc": "2.0", "id": message["id"], "result": {"applied": True}})
        elif message.get("id") == "fill" and "method" not in message:
            return message


def asked_to_apply(wire: Wire) -> bool:
    return any(message.get("method") == "workspace/applyEdit" for message in wire.messages)


def rewritten(_: Wire, path: Path) -> None:
    path.write_text(TURNED)


def rewritten_in_as_many_bytes_and_at_the_same_time(_: Wire, path: Path) -> None:
    before = path.stat()
    path.write_text(TEXT.replace("x * 2", "x + 2"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(_: Wire, path: Path) -> None:
    other = path.with_name("other.py")
    other.write_text(TURNED)
    other.replace(path)


def deleted(_: Wire, path: Path) -> None:
    path.unlink()


def renamed(_: Wire, path: Path) -> None:
    path.rename(path.with_name("moved.py"))


def linked_to_a_file_of_the_same_text(_: Wire, path: Path) -> None:
    other = path.with_name("other.py")
    path.rename(other)
    path.symlink_to(other)


def opened_with_other_text(wire: Wire, path: Path) -> None:
    opened(wire, path, TURNED)


def opened_with_the_same_text(wire: Wire, path: Path) -> None:
    opened(wire, path, TEXT)


def opened_under_another_spelling(wire: Wire, path: Path) -> None:
    document = {"languageId": "python", "version": 1, "text": TURNED}
    uri = path.as_uri().replace("shop", "%73hop")
    wire.send(notification("textDocument/didOpen", {"textDocument": {"uri": uri, **document}}))


def excluded(wire: Wire, _: Path) -> None:
    settings = {"dg-lsp": {"exclude": ["shop.py"]}}
    wire.send(notification("workspace/didChangeConfiguration", {"settings": settings}))


ON_DISK = [
    rewritten,
    rewritten_in_as_many_bytes_and_at_the_same_time,
    replaced,
    deleted,
    renamed,
    linked_to_a_file_of_the_same_text,
    opened_with_other_text,
    opened_with_the_same_text,
    opened_under_another_spelling,
    excluded,
]


@pytest.mark.parametrize("meanwhile", ON_DISK)
def test_a_file_that_becomes_another_one_meanwhile_is_not_edited(
    slow: Wire, path: Path, meanwhile: Meanwhile
) -> None:
    send_fill(slow, path)
    wait_for_steps(slow)
    meanwhile(slow, path)
    assert settled(slow)["error"]["code"] == GONE
    assert not asked_to_apply(slow)


@pytest.mark.parametrize("how", [{}, {"apply": False}])
def test_neither_are_all_its_stubs(slow: Wire, path: Path, how: dict[str, Any]) -> None:
    send_fill(slow, path, "dg-lsp.fillAll", **how)
    wait_for_steps(slow)
    rewritten(slow, path)
    assert settled(slow)["error"]["code"] == GONE
    assert not asked_to_apply(slow)


def reopened_at_the_same_version(wire: Wire, path: Path) -> None:
    closed(wire, path)
    opened(wire, path, TURNED)


def opened_twice(wire: Wire, path: Path) -> None:
    opened(wire, path, TURNED)


def changed_without_a_version(wire: Wire, path: Path) -> None:
    changed(wire, path, None, {"text": TURNED})


@pytest.mark.parametrize(
    "meanwhile", [reopened_at_the_same_version, opened_twice, changed_without_a_version, closed]
)
def test_an_open_document_that_becomes_another_one_meanwhile_is_not_edited(
    slow: Wire, path: Path, meanwhile: Meanwhile
) -> None:
    path.write_text(TURNED)
    opened(slow, path, TEXT)
    send_fill(slow, path)
    wait_for_steps(slow)
    meanwhile(slow, path)
    assert settled(slow)["error"]["code"] == GONE
    assert not asked_to_apply(slow)


def test_the_edit_of_a_file_names_no_version_and_that_of_a_document_its_own(slow: Wire, path: Path) -> None:
    send_fill(slow, path, apply=False)
    ((change,),) = (slow.answer("fill")["result"]["edit"]["documentChanges"],)
    assert change["textDocument"] == {"uri": path.as_uri(), "version": None}
    opened(slow, path, TEXT)
    send_fill(slow, path, apply=False)
    ((change,),) = (slow.answer("fill")["result"]["edit"]["documentChanges"],)
    assert change["textDocument"] == {"uri": path.as_uri(), "version": 7}


def test_a_file_is_at_no_version_that_a_document_had(slow: Wire, path: Path) -> None:
    send_fill(slow, path, version=7)
    result = settled(slow)["result"]
    assert result["edit"] is None and "at version 0, not 7" in result["why"]


@pytest.mark.parametrize("resolves", [True, False])
def test_an_action_of_a_document_that_was_opened_again_changes_nothing(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, path: Path, resolves: bool
) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    support = {"codeAction": {"resolveSupport": {"properties": ["edit"]}}} if resolves else {}
    with Wire([sys.executable, "-m", "dg_lsp", "--stdio"]) as wire:
        wire.initialize(capabilities={**APPLIES, "textDocument": support})
        opened(wire, path, TEXT)
        at = {"line": 5, "character": 8}
        about = {"textDocument": {"uri": path.as_uri()}, "range": {"start": at, "end": at}}
        (action,) = wire.ask("a", "textDocument/codeAction", {**about, "context": {"diagnostics": []}})[
            "result"
        ]
        reopened_at_the_same_version(wire, path)
        if resolves:
            assert "edit" not in wire.ask("b", "codeAction/resolve", action)["result"]
        else:
            command = {name: action["command"][name] for name in ("command", "arguments")}
            wire.send(request("fill", "workspace/executeCommand", command))
            result = settled(wire)["result"]
            assert result["edit"] is None and "has changed" in result["why"]
        assert not asked_to_apply(wire)
