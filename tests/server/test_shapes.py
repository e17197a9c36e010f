"""Messages with members that are missing, empty or odd: no handler fails in the middle of its work."""

import copy
import os
import random
from collections.abc import Iterator
from typing import Any

from tests.server.wire import Wire, notification, request

URI, TEXT = "file:///w/shapes.py", "def add(a, b):\n    raise NotImplementedError\n"
BOOK, CELL = "file:///w/shapes.ipynb", "vscode-notebook-cell:/w/shapes.ipynb#1"
AT = {"line": 1, "character": 4}
SPAN = {"start": AT, "end": {"line": 1, "character": 5}}
ABOUT = {"textDocument": {"uri": URI}, "position": AT}
ITEM = {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}
NOTEBOOK = {"uri": BOOK, "notebookType": "jupyter-notebook", "version": 1}
CELLS = {
    "structure": {
        "array": {"start": 0, "deleteCount": 0, "cells": [{"kind": 2, "document": CELL}]},
        "didOpen": [{**ITEM, "uri": CELL}],
        "didClose": [{"uri": CELL}],
    },
    "textContent": [{"document": {"uri": CELL, "version": 2}, "changes": [{"range": SPAN, "text": "x"}]}],
}
TOLD: dict[str, Any] = {
    "textDocument/didOpen": {"textDocument": ITEM},
    "textDocument/didChange": {
        "textDocument": {"uri": URI, "version": 2},
        "contentChanges": [{"range": SPAN, "rangeLength": 1, "text": "x"}, {"text": TEXT}],
    },
    "textDocument/didSave": {"textDocument": {"uri": URI}, "text": TEXT},
    "textDocument/didClose": {"textDocument": {"uri": URI}},
    "notebookDocument/didOpen": {
        "notebookDocument": {**NOTEBOOK, "cells": [{"kind": 2, "document": CELL}]},
        "cellTextDocuments": [{**ITEM, "uri": CELL}],
    },
    "notebookDocument/didChange": {"notebookDocument": NOTEBOOK, "change": {"cells": CELLS}},
    "notebookDocument/didClose": {"notebookDocument": NOTEBOOK, "cellTextDocuments": [{"uri": CELL}]},
    "workspace/didChangeConfiguration": {"settings": {"dg-lsp": {"exclude": ["*.x"], "debounce": 5}}},
    "workspace/didChangeWorkspaceFolders": {
        "event": {"added": [{"uri": "file:///w", "name": "w"}], "removed": []}
    },
    "workspace/didChangeWatchedFiles": {"changes": [{"uri": URI, "type": 2}, {"uri": URI, "type": 3}]},
    "dg-lsp/dismissed": {"uri": URI, "position": AT, "text": "x"},
    "dg-lsp/used": {"textDocument": {"uri": URI}, "kind": "tab", "characters": 3},
    "dg-lsp/yanked": {"textDocument": {"uri": URI}, "range": SPAN},
    "dg-lsp/left": ABOUT,
    "dg-lsp/nextEdit/dismiss": {"id": "1"},
}
ASKED: dict[str, Any] = {
    "dg-lsp/status": {"uri": URI},
    "dg-lsp/nextEdit": ABOUT,
    "textDocument/codeAction": {
        "textDocument": {"uri": URI}, "range": SPAN, "context": {"diagnostics": [], "only": ["refactor"]},
    },
    "textDocument/inlineCompletion": {
        **ABOUT, "context": {"triggerKind": 2, "selectedCompletionInfo": {"range": SPAN, "text": "x"}},
    },
    "codeAction/resolve": {"title": "x", "data": {"uri": URI, "version": 1, "revision": 1, "range": SPAN}},
    "workspace/executeCommand": {
        "command": "dg-lsp.fill",
        "arguments": [{"uri": URI, "name": "add", "version": 1, "seed": 1, "apply": False, "kind": "holes"}],
    },
}  # fmt: skip
ODD: tuple[Any, ...] = (None, [], {}, "", "x", 0, -1, 1 << 40, 1.5, True, [None], [{}], [[]])
GONE = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all members and elements of `value`."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inside:
        yield (*path, name)
        yield from places(one, (*path, name))


def changed(params: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """`params` with `odd` at `path`, or without what is there."""
    new = copy.deepcopy(params)
    *above, last = path
    at = new
    for name in above:
        at = at[name]
    if odd is GONE:
        del at[last]
    else:
        at[last] = odd
    return new


def cases(known: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (method, changed(params, path, odd))
        for method, params in known.items()
        for path in places(params)
        for odd in (*ODD, GONE)
    ]


def test_no_handler_fails_however_odd_the_members_are(wire: Wire) -> None:
    """All notifications and a part of the requests; DG_LSP_SHAPES=1 sends all of them."""
    wire.initialize(capabilities={"workspace": {"applyEdit": True}})
    asked = cases(ASKED)
    if not os.environ.get("DG_LSP_SHAPES"):
        asked = random.Random(7).sample(asked, 150)
    opened = notification("textDocument/didOpen", {"textDocument": ITEM})
    for number, (method, params) in enumerate(cases(TOLD)):
        wire.send(opened, notification(method, params))
        if number % 20 == 0:
            wire.ask(f"alive {number}", "dg-lsp/status", {})
    for number, (method, params) in enumerate(asked):
        wire.send(opened, request(number, method, params))
        reply = wire.answer(number)
        assert reply.get("error", {}).get("code") not in (-32603, -32001), (method, params, reply)
    wire.ask("end", "dg-lsp/status", {})
    failed = [
        line for line in wire.stderr.splitlines() if "the handler of" in line or "internal error" in line
    ]
    assert not failed, failed[:5]


def test_a_notification_without_changes_leaves_nothing_out(wire: Wire) -> None:
    """The work on the older version ends, and the next change is followed."""
    wire.initialize()
    wire.send(notification("textDocument/didOpen", {"textDocument": ITEM}))
    for version in (2, 3, 4):
        about = {"textDocument": {"uri": URI, "version": version}, "contentChanges": []}
        wire.send(notification("textDocument/didChange", about))
    target = {"uri": URI, "name": "add", "version": 4}
    reply = wire.ask("fill", "workspace/executeCommand", {"command": "dg-lsp.fill", "arguments": [target]})
    assert reply["result"]["edit"] and "the handler of" not in wire.stderr
