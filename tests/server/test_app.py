"""The real server over a real wire, with the scripted engine in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types as lsp

import dg_lsp
from dg_lsp.server import client
from tests.processes import own_runtime
from tests.server.wire import NoMessage, Wire, notification, request
from tests.waiting import wait_until

URI = "file:///w/shop.py"
TEXT = "def add(a, b):\n    raise NotImplementedError\n\n\nx = \n"
AT_X = {"line": 4, "character": 4}
RESOLVES = {"textDocument": {"codeAction": {"resolveSupport": {"properties": ["edit"]}}}}
APPLIES = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
EDITS = {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}}
ANNOTATES = {"workspace": {"applyEdit": True, "workspaceEdit": EDITS}}
ASKS = {"experimental": {"dgLsp": {"confirm": True}}}
STATUS = {"experimental": {"dgLsp": {"status": True}}}
Start = Callable[..., Wire]
# The seconds that the engine LONG works on one fill; what ends it early ends it in half of them.
LONG, WHOLE = "scripted:150:200", 30.0


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """The quick engine, which serves one server after the other."""
    with own_runtime():
        yield


@pytest.fixture
def start(quick: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Start the server with an engine and some capabilities, and open a document.

    The quick engine runs already, maybe; a test that takes `runtime`, too, and each other engine begin without one.
    """
    running: list[Wire] = []

    def begin(engine: str = "scripted", **params: Any) -> Wire:
        monkeypatch.setenv("DG_LSP_CHECKPOINT", engine)
        if engine != "scripted":
            request.getfixturevalue("runtime")
        wire = Wire([sys.executable, "-m", "dg_lsp", "--stdio"])
        running.append(wire)
        wire.initialize(**params)
        opened(wire, TEXT)
        return wire

    yield begin
    for wire in running:
        wire.__exit__()


def opened(wire: Wire, text: str, uri: str = URI, version: int = 1, language: str = "python") -> None:
    document = {"uri": uri, "languageId": language, "version": version, "text": text}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))


def changed(version: int, text: str, span: Any = None) -> dict[str, Any]:
    change = {"text": text} | ({"range": span} if span else {})
    document = {"uri": URI, "version": version}
    return notification("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})


def inline(position: dict[str, int], kind: int = 2, **context: Any) -> dict[str, Any]:
    told = {"triggerKind": kind, **context}
    return {"textDocument": {"uri": URI}, "position": position, "context": told}


def ghost(wire: Wire, msg_id: Any, position: dict[str, int], kind: int = 2, **context: Any) -> list[Any]:
    reply = wire.ask(msg_id, "textDocument/inlineCompletion", inline(position, kind, **context))
    return reply["result"]["items"]  # type: ignore[no-any-return]


def actions(wire: Wire, line: int, character: int, **context: Any) -> list[Any]:
    at = {"line": line, "character": character}
    params = {
        "textDocument": {"uri": URI},
        "range": {"start": at, "end": at},
        "context": {"diagnostics": [], **context},
    }
    return wire.ask("actions", "textDocument/codeAction", params)["result"]  # type: ignore[no-any-return]


def fill(wire: Wire, **target: Any) -> dict[str, Any]:
    send_fill(wire, **target)
    return wire.answer("fill")


def send_fill(wire: Wire, **target: Any) -> None:
    params = {"command": "dg-lsp.fill", "arguments": [{"uri": URI, **target}]}
    wire.send(request("fill", "workspace/executeCommand", params))


def edited_text(reply: dict[str, Any]) -> str:
    """The new text of the one change that a reply to `dg-lsp.fill` brings."""
    ((change,),) = reply["result"]["edit"]["changes"].values()
    return str(change["newText"])


def begin_progress(wire: Wire) -> Any:
    """Let the work tell how far it is; the token of its progress."""
    asked = wire.until("window/workDoneProgress/create")
    wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
    return asked["params"]["token"]


def wait_for_steps(wire: Wire, steps: int = 1) -> dict[str, Any]:
    """The engine's status once it works on a fill and has made `steps`, however slow the machine is."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status: dict[str, Any] = wire.ask("status", "dg-lsp/status")["result"]
        if status["state"] == "busy" and status["passes"] >= steps:
            return status
        time.sleep(0.05)
    raise AssertionError(f"the engine does not work: {status}")


# -- ghost text


def test_ghost_text_begins_at_the_cursor(start: Start) -> None:
    (item,) = ghost(start(), 1, AT_X)
    assert item["insertText"] == "None"
    assert item["range"] == {"start": AT_X, "end": AT_X}


def test_who_asks_gets_several_and_no_two_alike(start: Start) -> None:
    items = ghost(start(), 1, AT_X, kind=1)
    texts = [item["insertText"] for item in items]
    assert len(texts) == len(set(texts)) == 3


def test_an_empty_body_is_filled_at_the_cursor(start: Start) -> None:
    wire = start()
    wire.send(changed(2, "def add(a, b):\n    \n"))
    at = {"line": 1, "character": 4}
    (item,) = ghost(wire, 1, at)
    assert item == {"insertText": "return None", "range": {"start": at, "end": at}}


def test_nothing_is_an_empty_list_with_its_reason_in_the_log(start: Start) -> None:
    wire = start()
    assert ghost(wire, 1, {"line": 1, "character": 10}) == []
    wire.send(notification("textDocument/didClose", {"textDocument": {"uri": URI}}))
    assert ghost(wire, 2, AT_X) == []
    assert wire.logged("nothing offered: the function body to fill is not at the cursor")
    assert wire.logged("not open")
    assert "NotImplementedError" not in wire.stderr


def test_an_unknown_language_is_an_empty_list_with_its_reason(start: Start) -> None:
    wire = start()
    document = {"uri": URI, "languageId": "klingon", "version": 1, "text": TEXT}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))
    assert ghost(wire, 1, AT_X) == []
    assert wire.logged("klingon")


def test_half_a_word_becomes_a_word_in_sight_or_nothing(start: Start) -> None:
    wire = start()
    other = {"uri": "file:///w/other.py", "languageId": "python", "version": 1, "text": "fiasco = wide = 1\n"}
    wire.send(notification("textDocument/didOpen", {"textDocument": other}))
    at = {"line": 1, "character": 10}
    for number, (typed, rest) in enumerate(
        (("fi", "rst"), ("fia", "sco"), ("filt", "er"), ("wide", "()")), start=2
    ):
        wire.send(changed(number, f"first = 1\ntotal = {typed}\n"))
        (item,) = ghost(wire, number, {**at, "character": 8 + len(typed)})
        assert item["insertText"] == rest
    wire.send(changed(8, "first = 1\ntotal = fx\n"))
    assert ghost(wire, 8, at) == []
    assert wire.logged("no word of the open files begins with the half-typed word before the cursor")
    # Who asks gets all that fit, and nothing else.
    wire.send(changed(9, "first = 1\ntotal = fi\n"))
    texts = [item["insertText"] for item in ghost(wire, 9, at, kind=1)]
    assert texts == ["rst", "asco", "lter"]


def test_in_the_middle_of_a_word_and_in_prose_nothing_is_offered_unless_asked_for(start: Start) -> None:
    wire = start()
    for number, (text, why) in enumerate(
        (
            ("x = fo|o\n", "in the middle of a word"),
            ("x = 1  # so |\n", "by the setting prose"),
            ("# TODO: this |\n", "by the setting prose"),
            ("x = 'so |'\n", "by the setting prose"),
        ),
        start=2,
    ):
        wire.send(changed(number, text.replace("|", "")))
        at = {"line": 0, "character": text.index("|")}
        assert ghost(wire, f"a{number}", at) == []
        assert wire.logged(why), text
        assert ghost(wire, f"b{number}", at, kind=1), text


def test_prose_is_completed_where_a_setting_says_so(start: Start) -> None:
    wire = start(initializationOptions={"prose": True})
    wire.send(changed(2, "x = 1  # so mu\n"))
    # Words of prose need not be in sight.
    assert ghost(wire, 1, {"line": 0, "character": 14})


@pytest.mark.parametrize("method", ["dg-lsp/yanked", "dg-lsp/left", "dg-lsp/used", "dg-lsp/dismissed"])
def test_a_notification_about_a_document_that_is_not_open_is_ignored(start: Start, method: str) -> None:
    wire = start()
    uri, at = "file:///w/unknown.py", {"line": 0, "character": 0}
    about = {"uri": uri, "textDocument": {"uri": uri}, "position": at, "range": {"start": at, "end": at}}
    wire.send(notification(method, {**about, "kind": "tab", "characters": 1, "text": "x"}))
    assert wire.logged(f"ignored a notification {method} (NoGap)")
    assert ghost(wire, 1, AT_X)


def test_what_was_dismissed_is_not_offered_again_at_its_place(start: Start) -> None:
    wire = start()
    (item,) = ghost(wire, 1, AT_X)

    def dismiss(**params: Any) -> None:
        sent = {"uri": URI, "version": 1, "position": AT_X, "text": item["insertText"], **params}
        wire.send(notification("dg-lsp/dismissed", sent))

    dismiss(uri="file:///w/unknown.py")
    dismiss(position=None)
    dismiss(text="something else")
    assert ghost(wire, 2, AT_X) == [item]
    dismiss()
    assert ghost(wire, 3, AT_X) == []
    assert wire.logged("this text was dismissed here")
    assert len(ghost(wire, 4, AT_X, kind=1)) == 3
    # The place moves with the lines above it, and is another one after another head or line above.
    wire.send(changed(2, "import os\n" + TEXT))
    assert ghost(wire, 5, {**AT_X, "line": 5}) == []
    wire.send(changed(3, TEXT.replace("x = ", "y = ")))
    assert ghost(wire, 6, AT_X)
    wire.send(notification("textDocument/didClose", {"textDocument": {"uri": URI}}))
    opened(wire, TEXT)
    assert ghost(wire, 7, AT_X) == [item]


def test_a_newer_request_takes_the_place_of_an_older_one(start: Start) -> None:
    wire = start("scripted:30:200")
    wire.send(request(1, "textDocument/inlineCompletion", inline(AT_X)))
    wait_for_steps(wire)
    wire.send(request(2, "textDocument/inlineCompletion", inline(AT_X)))
    # One that was filled would have items.
    assert wire.answer(1)["result"] == {"items": []}
    assert wire.answer(2)["result"]["items"]


def test_typing_on_answers_what_is_out_of_date_at_once(start: Start) -> None:
    wire = start(LONG)
    wire.send(request(1, "textDocument/inlineCompletion", inline(AT_X)))
    wait_for_steps(wire)
    before = time.monotonic()
    wire.send(changed(2, TEXT + "y"))
    assert wire.answer(1)["result"] == {"items": []}
    assert time.monotonic() - before < WHOLE / 2


def test_closing_answers_what_was_asked_about_the_document_at_once(start: Start) -> None:
    wire = start(LONG)
    wire.send(request(1, "textDocument/inlineCompletion", inline(AT_X)))
    wait_for_steps(wire)
    before = time.monotonic()
    wire.send(notification("textDocument/didClose", {"textDocument": {"uri": URI}}))
    assert wire.answer(1)["result"] == {"items": []}
    assert time.monotonic() - before < WHOLE / 2


def test_closing_another_document_leaves_what_was_asked_to_be_answered(start: Start) -> None:
    wire = start("scripted:30:20")
    other = {"uri": "file:///w/other.json", "languageId": "json", "version": 1, "text": "{}\n"}
    wire.send(notification("textDocument/didOpen", {"textDocument": other}))
    wire.send(request(1, "textDocument/inlineCompletion", inline(AT_X)))
    wait_for_steps(wire)
    wire.send(notification("textDocument/didClose", {"textDocument": {"uri": other["uri"]}}))
    assert wire.answer(1)["result"]["items"]


def test_a_cancelled_request_is_answered_once_and_at_once(start: Start) -> None:
    wire = start(LONG)
    wire.send(request(1, "textDocument/inlineCompletion", inline(AT_X)))
    wait_for_steps(wire)
    before = time.monotonic()
    wire.send(notification("$/cancelRequest", {"id": 1}))
    assert wire.answer(1)["error"]["code"] == -32800
    assert time.monotonic() - before < WHOLE / 2
    assert not [m for m in wire.rest(0.5) if m.get("id") == 1]


def test_typing_what_was_offered_needs_no_engine(start: Start, runtime: Path) -> None:
    wire = start(initializationOptions={"prefetch": False})
    ghost(wire, 1, AT_X)
    for number, (text, rest) in enumerate((("N", "one"), ("No", "ne"), ("Non", "e")), start=2):
        end = {"line": 4, "character": 3 + number}
        wire.send(
            changed(
                number,
                text[-1],
                {"start": {**end, "character": 2 + number}, "end": {**end, "character": 2 + number}},
            )
        )
        (item,) = ghost(wire, f"t{number}", end)
        assert item == {"insertText": rest, "range": {"start": end, "end": end}}
    assert wire.ask("s", "dg-lsp/status")["result"]["fills"] == 1
    # After a fill that was taken whole nobody wants more, unless they ask.
    wire.send(changed(8, TEXT.replace("x = ", "x = None")))
    taken = {"line": 4, "character": 8}
    assert ghost(wire, "taken", taken) == []
    assert wire.ask("s2", "dg-lsp/status")["result"]["fills"] == 1
    # What does not agree asks the engine.
    wire.send(changed(9, TEXT.replace("x = ", "x = (")))
    ghost(wire, "q", {"line": 4, "character": 5})
    assert wire.ask("s", "dg-lsp/status")["result"]["fills"] == 2


def typed(version: int, character: int, text: str) -> dict[str, Any]:
    """The change in which `text` is typed at a character of the line with `x = `."""
    at = {"line": 4, "character": character}
    return changed(version, text, {"start": at, "end": at})


def begun(wire: Wire) -> None:
    """Ask for ghost text after `x = `, until the engine works on it."""
    wire.send(request("first", "textDocument/inlineCompletion", inline(AT_X)))
    wait_for_steps(wire)


def ended(wire: Wire) -> dict[str, Any]:
    """The status of the engine, which has nothing to do and makes no step more."""
    wait_until(lambda: wire.ask("s", "dg-lsp/status")["result"]["state"] == "ready")
    before: dict[str, Any] = wire.ask("s", "dg-lsp/status")["result"]
    time.sleep(0.3)
    assert wire.ask("s", "dg-lsp/status")["result"]["passes"] == before["passes"]
    return before


def test_a_fill_goes_on_while_a_word_is_typed_that_it_may_begin_with(start: Start) -> None:
    wire = start("scripted:40:50")
    begun(wire)
    for number, letter in enumerate("No"):
        wire.send(typed(2 + number, 4 + number, letter))
        where = {**AT_X, "character": 5 + number}
        wire.send(request(number, "textDocument/inlineCompletion", inline(where)))
    assert wire.answer("first")["result"] == {"items": []} == wire.answer(0)["result"]
    (item,) = wire.answer(1)["result"]["items"]
    assert item["insertText"] == "ne" and ended(wire)["fills"] == 1


def test_a_fill_that_does_not_begin_with_the_typed_word_is_followed_by_another(start: Start) -> None:
    wire = start("scripted:20:50")
    begun(wire)
    wire.send(typed(2, 4, "a"))
    assert ghost(wire, 2, {**AT_X, "character": 5})[0]["insertText"] == "()"
    assert ended(wire)["fills"] == 2


@pytest.mark.parametrize("text", ["(", " ", "N(", "1"])
def test_a_fill_ends_when_something_else_than_a_word_is_typed(start: Start, text: str) -> None:
    wire = start(LONG)
    begun(wire)
    wire.send(typed(2, 4, text))
    assert ended(wire)["fills"] == 0


def test_a_fill_ends_when_text_changes_elsewhere(start: Start) -> None:
    wire = start(LONG)
    begun(wire)
    wire.send(typed(2, 4, "N"))
    wire.send(typed(3, 0, "y"))
    assert ended(wire)["fills"] == 0


def test_a_cancel_ends_a_fill_that_has_gone_on_while_a_word_was_typed(start: Start) -> None:
    wire = start(LONG)
    begun(wire)
    wire.send(typed(2, 4, "N"))
    wire.send(request("next", "textDocument/inlineCompletion", inline({**AT_X, "character": 5})))
    time.sleep(0.3)
    assert wire.ask("s", "dg-lsp/status")["result"]["state"] == "busy"
    wire.send(notification("$/cancelRequest", {"id": "next"}))
    assert wire.answer("next")["error"]["code"] == -32800
    assert ended(wire)["fills"] == 0


def accept(wire: Wire) -> None:
    """Take the ghost text after `x = ` over, and wait until the engine works ahead."""
    assert ghost(wire, "shown", AT_X)
    wire.send(changed(2, TEXT.replace("x = ", "x = None")))
    assert ghost(wire, "behind", {**AT_X, "character": 8}) == []


def test_after_an_accepted_line_the_next_one_is_filled_ahead(start: Start) -> None:
    wire = start("scripted:8:50")
    accept(wire)
    # Enter is pressed before the fill has ended, but for a busy machine; the request takes it over.
    wait_until(lambda: wire.ask("s", "dg-lsp/status")["result"]["passes"] >= 9)
    wire.send(changed(3, TEXT.replace("x = ", "x = None\n")))
    (item,) = ghost(wire, "next", {"line": 5, "character": 0})
    assert item["insertText"] == "None"
    assert wire.ask("s", "dg-lsp/status")["result"]["fills"] == 2
    # The line after that is not begun before this one is accepted.
    time.sleep(0.3)
    assert wire.ask("s", "dg-lsp/status")["result"]["state"] == "ready"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("vue", "<p>ä</p>\n<script>\nlet x = \n</script>\n"),
        ("markdown", "# Größe\n```python\nx = \n```\n"),
    ],
)
def test_work_ahead_in_code_of_another_language_continues_while_it_is_typed(
    start: Start, language: str, text: str
) -> None:
    wire, uri, line = start("scripted:8:50"), f"file:///w/a.{language}", text.split("\n")[2]
    opened = {"uri": uri, "languageId": language, "version": 1, "text": text}
    wire.send(notification("textDocument/didOpen", {"textDocument": opened}))

    def typed(version: int, new: str) -> None:
        whole = [{"text": text.replace(line, new)}]
        versioned = {"uri": uri, "version": version}
        wire.send(
            notification("textDocument/didChange", {"textDocument": versioned, "contentChanges": whole})
        )

    def asked(name: str, at: int, after: int = 0) -> list[Any]:
        place = inline({"line": 2 + after, "character": at}) | {"textDocument": {"uri": uri}}
        return wire.ask(name, "textDocument/inlineCompletion", place)["result"]["items"]  # type: ignore[no-any-return]

    assert asked("shown", len(line))
    typed(2, f"{line}None")
    # The next line is begun ahead, and a request takes it over.
    wait_until(lambda: wire.ask("s", "dg-lsp/status")["result"]["passes"] >= 9)
    typed(3, f"{line}None\n")
    assert asked("next", 0, after=1)
    assert wire.ask("s", "dg-lsp/status")["result"]["fills"] == 2


@pytest.mark.parametrize("typed", ["x = None\n(", "x = None "])
def test_another_change_ends_what_was_begun_ahead(start: Start, typed: str) -> None:
    wire = start("scripted:60:50")
    accept(wire)
    wait_for_steps(wire, 62)
    wire.send(changed(3, TEXT.replace("x = ", typed)))
    wait_until(lambda: wire.ask("s", "dg-lsp/status")["result"]["state"] == "ready")
    # It did not come to its end, and nothing else is begun.
    before = wire.ask("s", "dg-lsp/status")["result"]
    time.sleep(0.4)
    assert before["passes"] == wire.ask("s", "dg-lsp/status")["result"]["passes"]
    assert before["fills"] == 1


def test_nothing_is_begun_ahead_where_the_setting_says_no(start: Start) -> None:
    wire = start("scripted:8:50", initializationOptions={"prefetch": False})
    accept(wire)
    time.sleep(0.3)
    assert wire.ask("s", "dg-lsp/status")["result"]["state"] == "ready"
    assert wire.ask("s", "dg-lsp/status")["result"]["passes"] == 8


def test_ghost_text_after_the_selected_entry_of_a_menu(start: Start) -> None:
    wire = start()
    wire.send(changed(2, "import os\nx = os.pa\n"))
    span = {"start": {"line": 1, "character": 7}, "end": {"line": 1, "character": 9}}
    wire.send(changed(3, "value = pa\n"))
    span = {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 10}}
    chosen = {"range": span, "text": "path or "}
    (item,) = ghost(wire, 1, {"line": 0, "character": 10}, selectedCompletionInfo=chosen)
    assert item["range"] == span and item["insertText"] == "path or None"
    # The entry is a word, in sight or not; asked for, several texts may follow it.
    chosen = {"range": span, "text": "pathlib"}
    (item,) = ghost(wire, 2, {"line": 0, "character": 10}, selectedCompletionInfo=chosen)
    assert item["range"] == span and item["insertText"] == "pathlib()"
    chosen = {"range": span, "text": "path or "}
    items = ghost(wire, 3, {"line": 0, "character": 10}, kind=1, selectedCompletionInfo=chosen)
    assert [i["insertText"] for i in items] == ["path or None", "path or True", "path or False"]
    assert len(ghost(wire, 4, {"line": 0, "character": 10}, selectedCompletionInfo=chosen)) == 1
    # Half a character in an entry has no bytes.
    chosen = {"range": span, "text": "path\ud800 or "}
    (item,) = ghost(wire, 5, {"line": 0, "character": 10}, selectedCompletionInfo=chosen)
    assert item["insertText"] == "path\ufffd or None"


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 16), ("utf-16", 14), ("utf-32", 13)])
def test_columns_count_in_the_units_that_were_agreed(start: Start, encoding: str, column: int) -> None:
    wire = start(capabilities={"general": {"positionEncodings": [encoding]}})
    wire.send(changed(2, "f('\U0001f600', y, zz=)  # a\U0001f600nd more\n"))
    at = {"line": 0, "character": column}
    (item,) = ghost(wire, 1, at)
    assert item == {"insertText": "None", "range": {"start": at, "end": at}}


def test_line_ends_and_form_feeds_do_not_move_the_cursor(start: Start) -> None:
    wire = start()
    wire.send(changed(2, "a = 1\r\n\x0cb = '\u2028'\r\nx = \r\n"))
    at = {"line": 2, "character": 4}
    (item,) = ghost(wire, 1, at)
    assert item == {"insertText": "None", "range": {"start": at, "end": at}}


def test_what_stands_after_the_cursor_stays(start: Start) -> None:
    wire = start()
    wire.send(changed(2, "y = '\U0001f600'; x =   \n"))
    at = {"line": 0, "character": 14}
    (item,) = ghost(wire, 1, at)
    assert item == {"insertText": "None", "range": {"start": at, "end": at}}
    wire.send(changed(3, "f('\U0001f600', y, zz=)  # and more\n"))
    at = {"line": 0, "character": 14}
    (item,) = ghost(wire, 2, at)
    assert item == {"insertText": "None", "range": {"start": at, "end": at}}


def test_an_unusable_runtime_directory_is_told_once_and_is_the_status(
    start: Start, monkeypatch: pytest.MonkeyPatch, runtime: Path
) -> None:
    (runtime / "file").touch()
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(runtime / "file"))
    wire = start()
    assert ghost(wire, 1, AT_X) == [] and ghost(wire, 2, AT_X, kind=1) == []
    told = wire.ask("s", "dg-lsp/status")["result"]
    assert told["state"] == "failed" and "set DG_LSP_RUNTIME_DIR" in told["why"]
    shown = [m["params"]["message"] for m in wire.messages if m.get("method") == "window/showMessage"]
    assert len(shown) == 1 and "set DG_LSP_RUNTIME_DIR" in shown[0]
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(runtime))


# -- the code action


def test_the_action_is_listed_and_filled_when_it_is_resolved(start: Start) -> None:
    wire = start(capabilities={**RESOLVES, **APPLIES})
    (action,) = actions(wire, 1, 6)
    assert action["title"] == "Fill this function body" and action["kind"].startswith("refactor.rewrite")
    assert action["isPreferred"] and "edit" not in action
    solved = wire.ask("r", "codeAction/resolve", action)["result"]
    (change,) = solved["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    assert change["edits"][0]["newText"] == "return None"
    assert change["edits"][0]["range"]["start"] == {"line": 1, "character": 4}


def test_an_action_of_an_older_version_comes_back_unchanged(start: Start) -> None:
    wire = start(capabilities=RESOLVES)
    (action,) = actions(wire, 1, 6)
    wire.send(changed(2, TEXT + "y = 1\n"))
    assert wire.ask("r", "codeAction/resolve", action)["result"] == action
    assert wire.logged("has changed since")


def test_an_action_whose_document_changes_meanwhile_comes_back_unchanged(start: Start) -> None:
    wire = start(LONG, capabilities=RESOLVES)
    (action,) = actions(wire, 1, 6)
    wire.send(request("r", "codeAction/resolve", action))
    wait_for_steps(wire)
    wire.send(changed(2, TEXT + "y = 1\n"))
    assert wire.answer("r", WHOLE / 2)["result"] == action


def test_a_client_that_cannot_resolve_gets_a_command(start: Start) -> None:
    (action,) = actions(start(), 1, 6)
    assert action["command"]["command"] == "dg-lsp.fill" and "data" not in action


def test_actions_are_for_functions_and_for_who_wants_them(start: Start) -> None:
    wire = start(capabilities=RESOLVES)
    assert actions(wire, 4, 2) == []
    assert wire.logged("shop.py: nothing offered: the cursor is in no function")
    assert actions(wire, 1, 6, only=["quickfix"]) == []
    assert wire.logged("shop.py: nothing offered: the client asked for code actions of other kinds: quickfix")
    assert len(actions(wire, 1, 6, only=["refactor"])) == 1


def test_a_function_with_holes_offers_them_first_and_fills_them_at_once(start: Start) -> None:
    wire = start(capabilities={**RESOLVES, **ANNOTATES})
    wire.send(changed(2, "def f(x):\n    y = 1\n    ...\n    print(y)\n    ...\n    return y\n"))
    holes, body = actions(wire, 1, 6)
    assert (holes["title"], body["title"]) == (
        "Fill the 2 holes in this function",
        "Rewrite this function body",
    )
    assert holes["isPreferred"] and "isPreferred" not in body
    solved = wire.ask("r", "codeAction/resolve", holes)["result"]
    ((change,),) = (one["edits"] for one in solved["edit"]["documentChanges"])
    assert "annotationId" not in change
    assert change["newText"] == "None\n    print(y)\n    None"
    assert change["range"] == {"start": {"line": 2, "character": 4}, "end": {"line": 4, "character": 7}}


def test_a_selection_offers_each_function_in_it(start: Start) -> None:
    wire = start(capabilities=RESOLVES)
    wire.send(changed(2, "def f():\n    pass\n\n\nclass A:\n    def g(self):\n        pass\n"))
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    params = {"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": []}}
    found = wire.ask("a", "textDocument/codeAction", params)["result"]
    assert [a["title"] for a in found] == ["Fill this function body: f", "Fill this function body: A.g"]
    for action in found:
        assert "edit" in wire.ask("r", "codeAction/resolve", action)["result"]


WRITTEN = "def f(a):\n    b = a + 1\n    return b\n"


def selected(wire: Wire, span: tuple[tuple[int, int], tuple[int, int]], **context: Any) -> list[Any]:
    start, end = ({"line": line, "character": character} for line, character in span)
    params = {
        "textDocument": {"uri": URI},
        "range": {"start": start, "end": end},
        "context": {"diagnostics": [], **context},
    }
    return list(wire.ask("selected", "textDocument/codeAction", params)["result"])


def test_selected_code_of_a_function_is_written_again(start: Start) -> None:
    wire = start(capabilities={**RESOLVES, **ANNOTATES})
    wire.send(changed(2, WRITTEN))
    # White space at both ends of the selection stays.
    action, body = selected(wire, ((1, 2), (2, 0)))
    assert (action["title"], body["title"]) == ("Rewrite the selection", "Rewrite this function body")
    assert action["kind"] == "refactor.rewrite.selection"
    (change,) = wire.ask("r", "codeAction/resolve", action)["result"]["edit"]["documentChanges"]
    (edit,) = change["edits"]
    assert edit["newText"] == "return None"
    assert edit["range"] == {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 13}}
    (only,) = selected(wire, ((1, 4), (1, 13)), only=["refactor.rewrite.selection"])
    assert only["title"] == action["title"]


@pytest.mark.parametrize(
    ("about", "titles", "why"),
    [
        ('{"denoises": true}', ["Rewrite the selection", "Rewrite this function body"], ""),
        ('{"denoises": false}', ["Rewrite this function body"], "cannot rewrite a selection"),
        ('{"languages": ["rust"]}', [], "was trained on Rust only"),
    ],
)
def test_only_what_the_checkpoint_can_do_is_offered(
    start: Start, tmp_path: Path, about: str, titles: list[str], why: str
) -> None:
    (tmp_path / "dg_lsp.json").write_text(about)
    wire = start(str(tmp_path), capabilities={**RESOLVES, **ANNOTATES})
    wire.send(changed(2, WRITTEN))
    assert [action["title"] for action in selected(wire, ((1, 2), (2, 0)))] == titles
    assert [action["title"] for action in actions(wire, 1, 6)] == titles[-1:]
    assert not why or wire.logged(why)


def test_only_code_within_one_body_is_written_again(start: Start) -> None:
    wire = start(capabilities={**RESOLVES, **ANNOTATES})
    wire.send(changed(2, WRITTEN + "\n\ndef g():\n    pass\n"))
    for span in (((0, 0), (2, 0)), ((1, 4), (6, 8)), ((6, 4), (6, 8)), ((1, 13), (2, 2))):
        assert "Rewrite the selection" not in [action["title"] for action in selected(wire, span)]
    asked = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 5}}
    assert "within the body of one function" in fill(wire, range=asked, kind="span")["result"]["why"]


def test_a_rewriting_that_changes_nothing_has_that_reason(start: Start) -> None:
    wire = start()
    wire.send(changed(2, WRITTEN.replace("return b", "return None")))
    span = {"start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 15}}
    result = fill(wire, range=span, kind="span")["result"]
    assert result["edit"] is None and result["why"] == "the model wrote the text that is already there"


def test_a_selection_without_a_function_has_its_reason_in_the_log(start: Start) -> None:
    wire = start(capabilities=RESOLVES)
    span = {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 3}}
    params = {"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": []}}
    assert wire.ask("a", "textDocument/codeAction", params)["result"] == []
    assert wire.logged("nothing offered: no function is in the selection")


def test_the_titles_of_two_methods_of_one_name_say_their_types(start: Start) -> None:
    wire = start(capabilities=RESOLVES)
    text = "func (e *Parse) Error() string {\n}\n\nfunc (e *Lookup) Error() string {\n}\n"
    uri = "file:///w/errors.go"
    opened(wire, text, uri, language="go")
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    params = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
    found = wire.ask("a", "textDocument/codeAction", params)["result"]
    assert [a["title"].rpartition(": ")[2] for a in found] == ["Parse.Error", "Lookup.Error"]


# -- what a person must confirm


def shown(wire: Wire) -> list[str]:
    """The messages that were shown to the user so far."""
    return [m["params"]["message"] for m in wire.messages if m.get("method") == "window/showMessage"]


BEFORE = 'def f(a):\n    """Add."""\n    # one more\n    b = a + 1\n    return b\n'


@pytest.mark.parametrize("text", [WRITTEN, BEFORE])
def test_a_written_body_is_rewritten_only_once_a_person_has_seen_how(start: Start, text: str) -> None:
    wire = start(capabilities={**RESOLVES, **ANNOTATES})
    wire.send(changed(2, text))
    (action,) = actions(wire, 1, 6)
    assert action["title"] == "Rewrite this function body" and "isPreferred" not in action
    edit = wire.ask("r", "codeAction/resolve", action)["result"]["edit"]
    (note,) = edit["changeAnnotations"].values()
    count = text.count("\n") - 1 - text.count('"""') // 2
    assert note == {
        "label": "Rewrite this function body",
        "needsConfirmation": True,
        "description": f"this replaces {count} written lines",
    }
    ((change,),) = (one["edits"] for one in edit["documentChanges"])
    assert change["annotationId"] in edit["changeAnnotations"] and change["newText"] == "return None"


def test_who_cannot_ask_is_not_offered_a_written_body(start: Start) -> None:
    wire = start(capabilities={**RESOLVES, **APPLIES})
    wire.send(changed(2, WRITTEN))
    assert actions(wire, 1, 6) == []
    assert wire.logged("nothing offered: Rewrite this function body replaces written code, and this client")
    assert selected(wire, ((1, 2), (2, 0))) == []
    wire.send(changed(3, TEXT))
    assert [a["title"] for a in actions(wire, 1, 6)] == ["Fill this function body"]


def test_a_client_that_asks_by_itself_gets_commands(start: Start) -> None:
    wire = start(capabilities={**RESOLVES, **ANNOTATES, **ASKS})
    assert actions(wire, 1, 6)[0]["command"]["title"] == "Fill this function body"
    wire.send(changed(2, WRITTEN))
    (action,) = actions(wire, 1, 6)
    assert "data" not in action and action["command"]["command"] == "dg-lsp.fill"
    (target,) = action["command"]["arguments"]
    result = fill(wire, **target)["result"]
    assert (result["applied"], result["confirm"]) == (False, "this replaces 2 written lines")
    assert result["edit"]["documentChanges"][0]["edits"][0]["newText"] == "return None"
    # Nobody was asked to apply it, and nobody needs a message.
    sent = [m.get("method") for m in wire.messages + wire.rest()]
    assert "workspace/applyEdit" not in sent and "window/showMessage" not in sent


def test_the_command_leaves_written_code_unless_that_is_confirmed(start: Start) -> None:
    wire = start(capabilities=APPLIES)
    wire.send(changed(2, WRITTEN))
    result = fill(wire, name="f")["result"]
    assert (result["applied"], result["confirm"]) == (False, "this replaces 2 written lines")
    assert result["edit"] and not result["why"]
    assert shown(wire)[-1].startswith("dg-lsp: nothing changed: this replaces 2 written lines")
    # A bot that has the edit returned gets it as ever.
    result = fill(wire, name="f", kind="function_body", apply=False)["result"]
    assert result["edit"] and not result["applied"] and result["confirm"]
    send_fill(wire, name="f", confirmed=True)
    asked = wire.until("workspace/applyEdit")
    wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"applied": True}})
    result = wire.answer("fill")["result"]
    assert result["applied"] and result["confirm"] == ""


def test_a_fill_at_a_cursor_goes_only_where_something_is_open(start: Start) -> None:
    wire = start()
    for version, (text, confirm) in enumerate(
        (
            ("x = |first(a)\n", "this line is finished"),
            ("x = fi|rst(a)\n", "the cursor is in the middle of a word"),
            ("a.b.|c(a)\n", "this line is finished"),
            ("x = |\n", ""),
            ("f(|)\n", ""),
            ("f(a, |)\n", ""),
            ("f(|\n", ""),
            ("doubtful = |\n", "unsure: right with 4 %"),
        ),
        2,
    ):
        wire.send(changed(version, text.replace("|", "")))
        result = fill(wire, position={"line": 0, "character": text.index("|")})["result"]
        assert result["edit"] and result["confirm"] == confirm, text


def test_an_unsure_fill_is_annotated_or_kept_back(start: Start) -> None:
    text = "def doubtful(a):\n    pass\n"
    wire = start(capabilities={**RESOLVES, **ANNOTATES})
    wire.send(changed(2, text))
    (action,) = actions(wire, 1, 6)
    (note,) = wire.ask("r", "codeAction/resolve", action)["result"]["edit"]["changeAnnotations"].values()
    assert note["needsConfirmation"] and note["description"] == "unsure: right with 4 %"
    wire = start(capabilities={**RESOLVES, **APPLIES})
    wire.send(changed(2, text))
    (action,) = actions(wire, 1, 6)
    assert "edit" not in wire.ask("r", "codeAction/resolve", action)["result"]
    assert shown(wire)[-1].startswith(
        "dg-lsp: nothing offered: unsure: right with 4 %, and this client cannot ask"
    )


# -- the command


def test_the_command_has_the_client_apply_the_edit_to_its_version(start: Start) -> None:
    wire = start(capabilities=APPLIES)
    send_fill(wire, name="add")
    asked = wire.until("workspace/applyEdit")
    assert asked["params"]["edit"]["documentChanges"][0]["textDocument"]["version"] == 1
    wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"applied": True}})
    result = wire.answer("fill")["result"]
    assert result["applied"] and result["fill"]["text"] == "return None" and not result["why"]


def test_a_bot_may_have_the_edit_of_a_seed_without_its_being_applied(start: Start) -> None:
    wire = start(capabilities=APPLIES)
    result = fill(wire, name="add", seed=2, apply=False)["result"]
    assert not result["applied"] and not result["why"] and result["fill"]["text"] == "return False"
    (change,) = result["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    assert change["edits"][0]["newText"] == "return False"
    # Nobody was asked to apply it.
    assert "workspace/applyEdit" not in [m.get("method") for m in wire.messages + wire.rest()]


def test_a_client_that_refuses_the_edit_is_quoted(start: Start) -> None:
    wire = start(capabilities=APPLIES)
    send_fill(wire, name="add")
    asked = wire.until("workspace/applyEdit")
    wire.send(
        {"jsonrpc": "2.0", "id": asked["id"], "result": {"applied": False, "failureReason": "read only"}}
    )
    result = wire.answer("fill")["result"]
    assert not result["applied"] and result["why"] == "read only"


@pytest.mark.parametrize("command", ["dg-lsp.fill", "dg-lsp.fillAll"])
def test_an_edit_that_the_client_does_not_take_is_kept_with_the_reason(start: Start, command: str) -> None:
    wire = start(capabilities=APPLIES)
    for answer, why in (
        ({"error": {"code": -32603, "message": "the buffer is locked"}}, "the buffer is locked"),
        ({"error": {"code": -32601, "message": ""}}, "did not apply"),
        ({"result": None}, "did not apply"),
        ({"result": {}}, "did not apply"),
        ({"result": {"applied": False}}, "did not apply"),
    ):
        target = {"uri": URI} if command == "dg-lsp.fillAll" else {"uri": URI, "name": "add"}
        wire.send(request("fill", "workspace/executeCommand", {"command": command, "arguments": [target]}))
        asked = wire.until("workspace/applyEdit")
        wire.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
        result = wire.answer("fill")["result"]
        assert not result["applied"] and why in result["why"], answer
        (change,) = result["edit"]["documentChanges"]
        assert change["edits"][0]["newText"] == "return None"


def test_an_edit_that_the_client_does_not_answer_is_kept_and_may_still_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask() -> str:
        unanswered = asyncio.get_running_loop().create_future()
        server: Any = SimpleNamespace(workspace_apply_edit_async=lambda _: unanswered)
        why = await client.Client(server).apply(lsp.WorkspaceEdit(), "Fill")
        # A late answer is nobody's.
        assert unanswered.cancelled()
        return why

    monkeypatch.setattr(client, "APPLYING", 0.05)
    why = asyncio.run(ask())
    assert "did not answer within 0.05 s" in why and "may still apply" in why


def test_a_bot_without_any_capability_gets_plain_changes(start: Start) -> None:
    result = fill(start(), position={"line": 1, "character": 6})["result"]
    assert list(result["edit"]["changes"]) == [URI] and not result["applied"]


def test_a_file_that_is_not_open_is_read_from_the_disk(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "a b.py"
    path.write_text(TEXT)
    wire = start()
    uri = path.as_uri()
    result = fill(wire, uri=uri, name="add")["result"]
    assert result["edit"]["changes"][uri][0]["newText"] == "return None"


def test_a_target_that_is_wrong_gets_a_reason(start: Start) -> None:
    wire = start()
    for target, reason in (
        ({}, "say where"),
        ({"position": "here"}, "say where"),
        ({"position": {"line": -1, "character": 0}}, "say where"),
        ({"name": "nothing"}, "no function nothing"),
        ({"name": "add", "version": 7}, "at version 1, not 7"),
        ({"name": "add", "effort": "most"}, "effort"),
        ({"name": "add", "uri": "untitled:x"}, "not open"),
        ({"name": "add", "uri": "file:///nowhere/x.py"}, "no file"),
        ({"position": {"line": 4, "character": 4}, "kind": "function_body"}, "no function"),
        ({"name": "add", "kind": "novel"}, "kind is"),
    ):
        result = fill(wire, **target)["result"]
        assert result["edit"] is None and reason in result["why"], target


def test_the_same_seed_gives_the_same_result(start: Start) -> None:
    wire = start()
    seeds = (3, 3, 2, None)
    texts = [edited_text(fill(wire, name="add", **({} if n is None else {"seed": n}))) for n in seeds]
    assert texts == ["return 0", "return 0", "return False", "return None"]


def test_a_change_meanwhile_is_content_modified(start: Start) -> None:
    wire = start(LONG)
    send_fill(wire, name="add")
    wait_for_steps(wire)
    wire.send(changed(2, TEXT + "y"))
    assert wire.answer("fill", WHOLE / 2)["error"]["code"] == -32801


# -- drafts, progress, status


def test_drafts_come_to_who_asked_and_not_too_many(start: Start) -> None:
    wire = start("scripted:100:15", capabilities={"experimental": {"dgLsp": {"drafts": True}}})
    before = time.monotonic()
    fill(wire, name="add")
    took = time.monotonic() - before
    drafts = [m["params"] for m in wire.messages if m.get("method") == "dg-lsp/draft"]
    assert 2 <= len(drafts) <= 20 * took + 1
    assert drafts[0]["requestId"] == "fill" and drafts[0]["version"] == 1 and drafts[0]["uri"] == URI
    assert drafts[0]["range"]["start"] == {"line": 1, "character": 4}
    assert drafts[0]["runs"] == [["?", False, False, 1.0]]


def test_nobody_else_gets_drafts_or_states(start: Start) -> None:
    wire = start("scripted:20:5")
    fill(wire, name="add")
    assert not [m for m in wire.messages if m.get("method", "").startswith("dg-lsp/")]


def test_long_work_shows_progress_and_quick_work_none(start: Start) -> None:
    wire = start("scripted:30:50", capabilities={"window": {"workDoneProgress": True}})
    send_fill(wire, name="add")
    begin_progress(wire)
    wire.answer("fill")
    told = [m["params"]["value"] for m in wire.messages if m.get("method") == "$/progress"]
    assert told[0]["kind"] == "begin" and told[0]["cancellable"] and told[-1]["kind"] == "end"
    assert any("step" in t.get("message", "") for t in told)


def test_quick_work_shows_no_progress(start: Start) -> None:
    wire = start("scripted", capabilities={"window": {"workDoneProgress": True}})
    fill(wire, name="add")

    def shows_none() -> bool:
        before = len(wire.messages)
        fill(wire, name="add")
        return not [m for m in wire.messages[before:] if "progress" in m.get("method", "").lower()]

    # On a busy machine quick work may take long.
    wait_until(shows_none)


def test_a_client_that_never_answers_about_progress_holds_nothing_up(start: Start) -> None:
    wire = start("scripted:20:50", capabilities={"window": {"workDoneProgress": True}})
    assert fill(wire, name="add")["result"]["edit"]


def test_cancelling_the_progress_cancels_the_work(start: Start) -> None:
    wire = start(LONG, capabilities={"window": {"workDoneProgress": True}})
    send_fill(wire, name="add")
    token = begin_progress(wire)
    wire.until("$/progress")
    wire.send(notification("window/workDoneProgress/cancel", {"token": token}))
    assert "error" in wire.answer("fill", WHOLE / 2)


def test_states_come_to_who_asked(start: Start, runtime: Path) -> None:
    wire = start(capabilities=STATUS)
    ghost(wire, 1, AT_X)
    states = [m["params"]["state"] for m in wire.messages if m.get("method") == "dg-lsp/status"]
    assert states[0] == "starting" and states[-1] == "ready"
    last = [m["params"] for m in wire.messages if m.get("method") == "dg-lsp/status"][-1]
    assert last["checkpoint"] == "scripted" and last["steps"] == 1


def test_the_state_has_one_name_and_says_why(start: Start, runtime: Path) -> None:
    wire = start(initializationOptions={"automatic": False})
    status = wire.ask("s", "dg-lsp/status")["result"]
    assert (status["state"], status["checkpoint"], status["last"]) == ("idle", "scripted", None)
    assert "no engine is running" in status["why"] and status["version"] == dg_lsp.__version__
    ghost(wire, 1, AT_X, kind=1)
    status = wire.ask("s", "dg-lsp/status")["result"]
    assert (status["state"], status["why"], status["device"]) == ("ready", "", "none")
    last = status["last"]
    assert (last["uri"], last["offered"], last["why"]) == (URI, True, "") and last["milliseconds"] > 0


def test_an_engine_that_loads_when_a_document_is_opened_tells_that_it_is_ready(
    start: Start, runtime: Path
) -> None:
    wire = start(capabilities=STATUS)
    states = [wire.until("dg-lsp/status")["params"]["state"]]
    while states[-1] != "ready":
        states.append(wire.until("dg-lsp/status")["params"]["state"])
    assert states[0] == "starting"


@pytest.mark.parametrize(
    ("options", "language", "why"),
    [
        ({"disabledLanguages": ["python"]}, "python", "disabledLanguages"),
        ({"automatic": False}, "python", "the setting automatic"),
        ({}, "klingon", "no grammar for klingon"),
    ],
)
def test_the_state_of_a_document_that_gets_nothing_is_off(
    start: Start, options: dict[str, Any], language: str, why: str
) -> None:
    wire = start(initializationOptions=options)
    opened(wire, TEXT, language=language)
    told = wire.ask("s", "dg-lsp/status", {"uri": URI})["result"]
    assert told["state"] == "off" and why in told["why"]
    assert wire.ask("s", "dg-lsp/status", {"uri": "file:///w/closed.py"})["result"]["state"] == "off"
    assert wire.ask("s", "dg-lsp/status")["result"]["state"] != "off"


UNSURE = "def f(unsure):\n    unsure = \n"
AT_UNSURE = {"line": 1, "character": 13}


def last_of(wire: Wire) -> dict[str, Any]:
    """How the last request ended, as the server tells it."""
    return dict(wire.ask("s", "dg-lsp/status")["result"]["last"])


def test_an_unsure_fill_is_shown_only_if_it_is_asked_for(start: Start) -> None:
    wire = start()
    wire.send(changed(2, UNSURE))
    assert ghost(wire, 1, AT_UNSURE) == []
    assert last_of(wire)["why"] == (
        "the best fill is right with a probability of 12 %, less than confidence (25 %)"
    )
    assert last_of(wire)["offered"] is False
    # Nothing is answered from a fill that was not shown.
    assert ghost(wire, 2, AT_UNSURE) == []
    assert [item["insertText"] for item in ghost(wire, 3, AT_UNSURE, kind=1)] == ["None", "True", "False"]
    last = last_of(wire)
    assert (last["offered"], last["chance"], last["source"]) == (True, 0.12, "denoised")
    assert last["note"] == "right with 12 %, denoised from noise"
    # What is shown stays, though one types on.
    wire.send(changed(3, UNSURE.replace("= \n", "= No\n")))
    (item,) = ghost(wire, 4, {"line": 1, "character": 15})
    assert item["insertText"] == "ne"


def test_the_confidence_is_the_users(start: Start) -> None:
    wire = start(initializationOptions={"confidence": 0.1})
    wire.send(changed(2, UNSURE))
    assert ghost(wire, 1, AT_UNSURE)


def test_what_is_asked_for_by_name_is_done_however_unsure(start: Start) -> None:
    wire = start()
    wire.send(changed(2, UNSURE))
    reply = fill(wire, position=AT_UNSURE, kind="expression")
    assert edited_text(reply) == "None" and reply["result"]["fill"]["chance"] == 0.12


def test_how_each_request_ended_is_told_and_the_last_one_is_never_lost(start: Start) -> None:
    wire = start(capabilities=STATUS)
    ghost(wire, "warm", AT_X)
    before, began = len(wire.messages), time.monotonic()
    for number in range(30):
        ghost(wire, number, {"line": 1, "character": 10})
    ghost(wire, "last", {"line": 4, "character": 2})
    wire.rest()
    last = wire.ask("s", "dg-lsp/status")["result"]["last"]

    def reported() -> list[Any]:
        return [m["params"]["last"] for m in wire.messages[before:] if m.get("method") == "dg-lsp/status"]

    while not (reports := reported()) or reports[-1] != last:
        wire.until("dg-lsp/status")
    took = time.monotonic() - began
    assert 1 <= len(reports) <= 10 * took + 1
    assert not reports[0]["offered"] and "the function body to fill is not at the cursor" in reports[0]["why"]
    assert reports[-1] != reports[0]


# -- all stubs of a file

STUBS = """A = "\U0001f600"


def first(x):
    pass


def written(x):
    return x


class Shop:
    def second(self):
        ...

    def third(self):
        raise NotImplementedError
""".replace("\n", "\r\n")


def fill_all(wire: Wire, **target: Any) -> dict[str, Any]:
    params = {"command": "dg-lsp.fillAll", "arguments": [{"uri": URI, **target}]}
    return wire.ask("all", "workspace/executeCommand", params)


def applied(text: str, changes: list[Any]) -> str:
    """`text` (columns in UTF-16) after the changes of one edit, all of which count in the old text."""
    lines = text.splitlines(keepends=True)

    def offset(place: dict[str, int]) -> int:
        head = lines[place["line"]].encode("utf-16-le")[: 2 * place["character"]].decode("utf-16-le")
        return sum(map(len, lines[: place["line"]])) + len(head)

    for change in sorted(changes, key=lambda c: offset(c["range"]["start"]), reverse=True):
        start, end = (offset(change["range"][name]) for name in ("start", "end"))
        text = text[:start] + change["newText"] + text[end:]
    return text


def test_all_stubs_of_a_file_are_filled_by_one_edit(start: Start) -> None:
    wire = start(capabilities=APPLIES)
    wire.send(changed(2, STUBS))
    params = {"command": "dg-lsp.fillAll", "arguments": [{"uri": URI, "version": 2, "seed": 2}]}
    wire.send(request("all", "workspace/executeCommand", params))
    asked = wire.until("workspace/applyEdit")
    (change,) = asked["params"]["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 2}
    filled = STUBS.replace("pass", "return False").replace("...", "return False")
    assert applied(STUBS, change["edits"]) == filled.replace("raise NotImplementedError", "return False")
    wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"applied": True}})
    result = wire.answer("all")["result"]
    assert result["applied"] and result["filled"] == ["first", "Shop.second", "Shop.third"]
    assert result["left"] == [] and result["why"] == ""


def test_a_file_without_stubs_gets_no_edit_and_the_reason(start: Start) -> None:
    wire = start()
    wire.send(changed(2, "x = 1\n"))
    result = fill_all(wire)["result"]
    assert result["edit"] is None and "has a body" in result["why"]
    assert result["filled"] == result["left"] == []
    assert "at version 2, not 7" in fill_all(wire, version=7)["result"]["why"]


def test_cancelling_the_progress_keeps_what_is_filled(start: Start) -> None:
    wire = start("scripted:10:400", capabilities={"window": {"workDoneProgress": True}})
    wire.send(changed(2, STUBS))
    params = {"command": "dg-lsp.fillAll", "arguments": [{"uri": URI}]}
    wire.send(request("all", "workspace/executeCommand", params))
    token, message = begin_progress(wire), ""
    while not message.startswith("2 of 3: Shop.second"):
        message = wire.until("$/progress")["params"]["value"].get("message", "")
    wire.send(notification("window/workDoneProgress/cancel", {"token": token}))
    result = wire.answer("all")["result"]
    assert result["filled"] == ["first"]
    assert result["left"] == [["Shop.second", "cancelled"], ["Shop.third", "cancelled"]]
    (changes,) = result["edit"]["changes"].values()
    assert applied(STUBS, changes) == STUBS.replace("pass", "return None")


def test_a_change_while_all_stubs_are_filled_is_content_modified(start: Start) -> None:
    wire = start(LONG)
    wire.send(changed(2, STUBS))
    params = {"command": "dg-lsp.fillAll", "arguments": [{"uri": URI}]}
    wire.send(request("all", "workspace/executeCommand", params))
    wait_for_steps(wire)
    wire.send(changed(3, STUBS + "y"))
    assert wire.answer("all", WHOLE / 2)["error"]["code"] == -32801


def test_an_engine_that_dies_between_two_stubs_leaves_the_others_with_the_reason(start: Start) -> None:
    wire = start("scripted:10:400")
    wire.send(changed(2, STUBS))
    params = {"command": "dg-lsp.fillAll", "arguments": [{"uri": URI}]}
    wire.send(request("all", "workspace/executeCommand", params))
    os.kill(wait_for_steps(wire, 11)["process"], signal.SIGKILL)
    result = wire.answer("all")["result"]
    assert result["filled"] == ["first"] and [name for name, _ in result["left"]] == [
        "Shop.second",
        "Shop.third",
    ]
    assert all("died" in why for _, why in result["left"])


# -- the names of the commands


def test_a_client_may_put_a_prefix_before_the_names_of_the_commands(start: Start) -> None:
    wire = start(initializationOptions={"commandPrefix": "two."})
    told = wire.messages[0]["result"]["capabilities"]["executeCommandProvider"]["commands"]
    assert sorted(told) == [f"two.dg-lsp.{name}" for name in ("fetchModel", "fill", "fillAll", "useModel")]
    (action,) = actions(wire, 1, 6)
    assert action["command"]["command"] == "two.dg-lsp.fill"
    reply = wire.ask(
        "x",
        "workspace/executeCommand",
        {"command": "two.dg-lsp.fill", "arguments": [{"uri": URI, "name": "add"}]},
    )
    assert reply["result"]["edit"]
    assert not [m for m in wire.messages if m.get("method") == "window/showMessage"]


def test_without_a_prefix_the_commands_have_their_own_names(start: Start) -> None:
    told = start().messages[0]["result"]["capabilities"]["executeCommandProvider"]["commands"]
    assert sorted(told) == [f"dg-lsp.{name}" for name in ("fetchModel", "fill", "fillAll", "useModel")]


# -- settings


def test_a_language_that_is_off_gets_nothing_and_the_reason(start: Start) -> None:
    wire = start(initializationOptions={"disabledLanguages": ["python"]}, capabilities=RESOLVES)
    assert ghost(wire, 1, AT_X) == [] and actions(wire, 1, 6) == []
    assert wire.logged("switched off")


@pytest.mark.parametrize("folder", ["file:///w", None])
def test_an_excluded_document_gets_nothing_and_no_engine_hears_of_it(
    start: Start, runtime: Path, folder: str | None
) -> None:
    wire = start(capabilities=RESOLVES, rootUri=folder, initializationOptions={"exclude": ["sho?.py", "x"]})
    why = "shop.py is excluded by sho?.py in the setting exclude"
    assert ghost(wire, 1, AT_X) == [] and ghost(wire, 2, AT_X, kind=1) == [] and actions(wire, 1, 6) == []
    assert why in fill(wire, name="add")["result"]["why"] and why in fill_all(wire)["result"]["why"]
    told = wire.ask("s", "dg-lsp/status", {"uri": URI})["result"]
    assert told["state"] == "off" and why in told["why"] and why in told["last"]["why"]
    assert wire.ask("s", "dg-lsp/status")["result"]["state"] == "idle"


def test_an_excluded_file_is_not_even_read(start: Start, tmp_path: Path) -> None:
    path = tmp_path / ".ssh" / "deploy.py"
    path.parent.mkdir()
    path.write_text(TEXT)
    wire = start(rootUri=tmp_path.as_uri())
    assert "excluded by .ssh/" in fill(wire, uri=path.as_uri(), name="add")["result"]["why"]
    assert "excluded by .ssh/" in fill_all(wire, uri=path.as_uri())["result"]["why"]


def test_what_git_ignores_gets_nothing_where_that_is_wanted(start: Start, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("local.py\n")
    for name in ("local.py", "shop.py"):
        (tmp_path / name).write_text(TEXT)
    local, other = ((tmp_path / name).as_uri() for name in ("local.py", "shop.py"))
    wire = start(rootUri=tmp_path.as_uri(), initializationOptions={"excludeIgnored": True})
    assert "git ignores local.py" in fill(wire, uri=local, name="add")["result"]["why"]
    assert fill(wire, uri=other, name="add", apply=False)["result"]["edit"]
    opened(wire, TEXT, uri=local)
    told = wire.ask("s", "dg-lsp/status", {"uri": local})["result"]
    assert told["state"] == "off" and "excludeIgnored" in told["why"]


@pytest.mark.parametrize("by", ["initializationOptions", "settings"])
def test_no_git_is_started_whoever_wants_its_rules(
    by: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("local.py\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    own = {"excludeIgnored": True}
    wire = start(rootUri=tmp_path.as_uri(), **({by: own} if by == "initializationOptions" else {}))
    if by == "settings":
        wire.send(notification("workspace/didChangeConfiguration", {"settings": {"dg-lsp": own}}))
    local, other = ((tmp_path / name).as_uri() for name in ("local.py", "other.py"))
    for uri in (local, other):
        opened(wire, TEXT, uri=uri)
    asked = inline(AT_X, 2)
    assert wire.ask("o", "textDocument/inlineCompletion", {**asked, "textDocument": {"uri": other}})[
        "result"
    ]["items"]
    told = wire.ask("s", "dg-lsp/status", {"uri": local})["result"]
    assert "git ignores local.py" in told["why"]
    assert not (tmp_path / "started").exists()


def test_a_language_that_is_off_is_off_for_a_file_that_is_not_open(start: Start, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TEXT)
    wire = start(initializationOptions={"disabledLanguages": ["python"]})
    assert "switched off" in fill(wire, uri=(tmp_path / "shop.py").as_uri(), name="add")["result"]["why"]


TYPESCRIPT = "file:///w/shop.ts"
CODE = "function add(a: number, b: number) {\n}\n\nlet x = \n"


def test_what_the_checkpoint_has_not_learned_gets_neither_ghost_text_nor_actions(start: Start) -> None:
    wire = start("embedded", capabilities=RESOLVES, initializationOptions={"disabledLanguages": ["python"]})
    opened(wire, CODE, TYPESCRIPT, language="typescript")
    params = inline({"line": 3, "character": 8}) | {"textDocument": {"uri": TYPESCRIPT}}
    assert wire.ask(1, "textDocument/inlineCompletion", params)["result"]["items"] == []
    told = wire.ask("s", "dg-lsp/status", {"uri": TYPESCRIPT})["result"]
    why = "the embedded checkpoint was trained on Python only; add typescript to the setting ghostLanguages"
    assert told["state"] == "off" and why in told["why"] and why in told["last"]["why"]
    assert wire.ask("s", "dg-lsp/status")["result"]["state"] == "idle"
    at, about = {"line": 0, "character": 3}, {"textDocument": {"uri": TYPESCRIPT}}
    asked = {**about, "range": {"start": at, "end": at}, "context": {"diagnostics": []}}
    assert wire.ask("a", "textDocument/codeAction", asked)["result"] == []
    settings = {"dg-lsp": {"ghostLanguages": ["typescript"], "checkpoint": "embedded"}}
    wire.send(notification("workspace/didChangeConfiguration", {"settings": settings}))
    assert wire.ask("s", "dg-lsp/status", {"uri": TYPESCRIPT})["result"]["state"] != "off"
    assert len(wire.ask("a", "textDocument/codeAction", asked)["result"]) == 1


def test_a_checkpoint_that_says_nothing_of_languages_serves_all_of_them(start: Start) -> None:
    wire = start(initializationOptions={"disabledLanguages": ["python"]})
    opened(wire, CODE, TYPESCRIPT, language="typescript")
    params = inline({"line": 3, "character": 8}) | {"textDocument": {"uri": TYPESCRIPT}}
    assert wire.ask(1, "textDocument/inlineCompletion", params)["result"]["items"]


def test_ghost_text_can_be_off_while_one_types_only(start: Start) -> None:
    wire = start(initializationOptions={"automatic": False})
    assert ghost(wire, 1, AT_X) == []
    assert ghost(wire, 2, AT_X, kind=1)


def test_a_wrong_setting_is_named_once_and_the_rest_holds(start: Start) -> None:
    wire = start(initializationOptions={"effort": "most", "automatic": False})
    shown = wire.until("window/showMessage")
    assert "effort" in shown["params"]["message"]
    assert ghost(wire, 1, AT_X) == []


def test_settings_are_asked_for_and_may_change(start: Start) -> None:
    wire = start(
        capabilities={
            "workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}
        }
    )
    asked = wire.until("workspace/configuration")
    assert asked["params"]["items"] == [{"section": "dg-lsp"}]
    wire.send(
        {
            "jsonrpc": "2.0",
            "id": asked["id"],
            "result": [{"automatic": False, "path": "/x/dg-lsp", "effort": None}],
        }
    )
    registered = wire.until("client/registerCapability")
    assert registered["params"]["registrations"][0]["method"] == "workspace/didChangeConfiguration"
    wire.send({"jsonrpc": "2.0", "id": registered["id"], "result": None})
    assert ghost(wire, 1, AT_X) == []
    wire.send(notification("workspace/didChangeConfiguration", {"settings": None}))
    asked = wire.until("workspace/configuration")
    wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": [None]})
    assert ghost(wire, 2, AT_X)


def test_settings_that_are_sent_along_hold(start: Start) -> None:
    wire = start()
    wire.send(
        notification("workspace/didChangeConfiguration", {"settings": {"dg-lsp": {"automatic": False}}})
    )
    assert ghost(wire, 1, AT_X) == []


@pytest.mark.parametrize(
    "name, value", [("checkpoint", "/tmp/evil"), ("device", "cuda"), ("idleMinutes", 900)]
)
def test_a_workspace_cannot_say_what_runs_on_this_machine(start: Start, name: str, value: Any) -> None:
    wire = start()
    ghost(wire, 1, AT_X)
    first = wire.ask("s", "dg-lsp/status")["result"]["process"]
    settings = {"dg-lsp": {name: value, "disabledLanguages": ["rust"]}}
    wire.send(notification("workspace/didChangeConfiguration", {"settings": settings}))
    assert "DG_LSP_" in wire.until("window/showMessage")["params"]["message"]
    assert ghost(wire, 2, AT_X)
    assert wire.ask("s", "dg-lsp/status")["result"]["process"] == first
    # The rest holds.
    opened(wire, "fn f() {}\n", "file:///a.rs", language="rust")
    assert wire.ask(
        3, "textDocument/inlineCompletion", inline(AT_X) | {"textDocument": {"uri": "file:///a.rs"}}
    )["result"] == {"items": []}


def test_the_checkpoint_of_the_initialization_options_is_the_only_engine(start: Start, runtime: Path) -> None:
    wire = start(initializationOptions={"checkpoint": "scripted:1:1"})
    ghost(wire, 1, AT_X)
    # A client that answers for all its settings says the same again.
    settings = {"dg-lsp": {"checkpoint": "scripted:1:1"}}
    wire.send(notification("workspace/didChangeConfiguration", {"settings": settings}))
    assert wire.ask("s", "dg-lsp/status")["result"]["checkpoint"] == "scripted:1:1"
    assert not [m for m in wire.messages if m.get("method") == "window/showMessage"]
    assert len(list(runtime.glob("*.sock"))) == 1


def test_a_setting_changed_in_a_fill_leaves_the_fill_alone(start: Start) -> None:
    wire = start("scripted:25:200")
    send_fill(wire, name="add", apply=False)
    process = wait_for_steps(wire)["process"]
    settings = {"dg-lsp": {"effort": "high", "device": "cuda"}}
    wire.send(notification("workspace/didChangeConfiguration", {"settings": settings}))
    assert edited_text(wire.answer("fill"))
    told = wire.ask("s", "dg-lsp/status")["result"]
    assert (told["process"], told["state"]) == (process, "ready")
    assert not [m for m in wire.messages if "died" in str(m)]


# -- when the engine is not well


def test_an_engine_killed_in_the_middle_of_a_fill_loses_nothing(start: Start) -> None:
    wire = start("scripted:25:200")
    for number in range(2):
        # The engine has made the steps of earlier fills; one that dies before this fill's first is only started again.
        before = wire.ask("before", "dg-lsp/status")["result"]["passes"]
        wire.send(request(number, "textDocument/inlineCompletion", inline(AT_X)))
        os.kill(wait_for_steps(wire, before + 1)["process"], signal.SIGKILL)
        assert wire.answer(number)["result"] == {"items": []}
        assert ghost(wire, f"again {number}", AT_X)
        wire.send(changed(number + 2, TEXT.replace("x = ", f"{'ab'[number]} = ")))
    told = [m for m in wire.messages if m.get("method") == "window/showMessage"]
    assert len(told) == 1 and "died" in told[0]["params"]["message"]


def test_a_checkpoint_that_cannot_be_used_is_told_once_with_the_mend(start: Start, tmp_path: Path) -> None:
    wire = start(str(tmp_path))
    assert ghost(wire, 1, AT_X) == [] and ghost(wire, 2, AT_X) == []
    reply = fill(wire, name="add")
    assert "config.json" in reply["error"]["message"] and reply["error"]["code"] == -32803
    told = [m["params"]["message"] for m in wire.messages if m.get("method") == "window/showMessage"]
    assert len(told) == 1 and "config.json" in told[0]


# -- the process


def test_the_server_never_loads_torch(start: Start) -> None:
    wire = start()
    ghost(wire, 1, AT_X)
    maps = Path(f"/proc/{wire.process.pid}/maps").read_text()
    assert "torch" not in maps and "tree_sitter" in maps


def test_stdout_carries_the_protocol_only_and_the_log_no_source(start: Start) -> None:
    wire = start()
    ghost(wire, 1, AT_X)
    fill(wire, name="add")
    assert wire.stray == b""
    assert "raise" not in wire.stderr and "return None" not in wire.stderr


def test_shutdown_ends_it_quickly_also_in_the_middle_of_a_fill(start: Start) -> None:
    wire = start(LONG)
    wire.send(request(1, "textDocument/inlineCompletion", inline(AT_X)))
    wait_for_steps(wire)
    before = time.monotonic()
    assert wire.ask("end", "shutdown")["result"] is None
    wire.send(notification("exit"))
    assert wire.wait() == 0 and time.monotonic() - before < WHOLE / 2
    with pytest.raises(NoMessage):
        while True:
            wire.read(0.2)
    assert "Traceback" not in wire.stderr


def test_addresses_that_are_none_and_numbers_without_end_are_answered(start: Start) -> None:
    """Each of these was an error of our own, or the end of the thread that reads the workspace."""
    folders = [{"uri": f"file:///w/{name}", "name": name} for name in ("%00", "\ud800")]
    wire = start(workspaceFolders=folders, initializationOptions={"ghostDeadline": 1e308})
    assert ghost(wire, 1, AT_X, 1)
    for number, uri in enumerate(("a://[b/c.py", "file:///w/%00.py", "file:///w/\ud800.py")):
        opened(wire, "x = \n", uri)
        params = {**inline({"line": 0, "character": 4}, 1), "textDocument": {"uri": uri}}
        assert wire.ask(f"g{number}", "textDocument/inlineCompletion", params)["result"]["items"]
        wire.send(notification("textDocument/didClose", {"textDocument": {"uri": uri}}))
        assert fill(wire, uri=uri, name="f")["result"]["why"]
    assert "Traceback" not in wire.stderr
    assert "ERROR" not in wire.stderr
