"""Notebooks: the cells above one are its prefix, with comments for magics; positions are the cell's own."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.filling.fill import FillOptions
from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.messages import Infill
from dg_lsp.settings import Settings
from dg_lsp.source.magics import without_magics
from tests.server.test_privacy import Window
from tests.server.wire import Wire, notification

BOOK = "file:///w/sums.ipynb"


def cell(name: str, kind: int = 2) -> dict[str, Any]:
    return {"kind": kind, "document": f"vscode-notebook-cell:/w/sums.ipynb#{name}"}


def item(name: str, text: str, language: str = "python") -> dict[str, Any]:
    return {"uri": cell(name)["document"], "languageId": language, "version": 1, "text": text}


def book(*cells: tuple[dict[str, Any], str], uri: str = BOOK) -> dict[str, Any]:
    """The notification that a notebook with these cells is opened."""
    texts = [
        {"uri": one["document"], "languageId": "python", "version": 1, "text": text} for one, text in cells
    ]
    given = {"uri": uri, "notebookType": "jupyter-notebook", "version": 1, "cells": [one for one, _ in cells]}
    return notification("notebookDocument/didOpen", {"notebookDocument": given, "cellTextDocuments": texts})


def change(cells: dict[str, Any], uri: str = BOOK) -> dict[str, Any]:
    given = {"notebookDocument": {"uri": uri, "version": 2}, "change": {"cells": cells}}
    return notification("notebookDocument/didChange", given)


class Book:
    """A window whose engine keeps its requests; messages come as from a wire."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.window = Window([Path("/w")], settings)
        self.protocol = self.window.server.protocol
        self.protocol._initialized = True

    async def tell(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.protocol.handle_body(json.dumps(message).encode())
            while self.protocol._tasks:
                await asyncio.sleep(0)

    async def request(self, name: str, cursor: int) -> Infill:
        """The request for a gap at `cursor` of the cell `name`."""
        document = self.window.workspace.document(cell(name)["document"])
        gap = find_gap(document, cursor)
        await self.window.session.fill(
            document, gap, self.window.workspace.settings, FillOptions(priority="fill")
        )
        return self.window.engine.requests[-1]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("%matplotlib inline\nx = 1\n", "#matplotlib inline\nx = 1\n"),
        ("!pip install a \\\n   'b\nx = 1", "#pip install a \\\n   #b\nx = 1"),
        ("?print\nprint??\ny = a\n", "#print\n#rint??\ny = a\n"),
        ("files = !ls -l\n", "files = 0#s -l\n"),
        ("a, b = %timeit -o f('\nx = 1\n", "a, b = 0#imeit -o f('\nx = 1\n"),
        ("if x:\n    !ls (\nelse:\n    y\n", "if x:\n    0#s (\nelse:\n    y\n"),
        ('%%bash\necho "$x"\n\n  ls (\n', '#%bash\n#cho "$x"\n\n  #s (\n'),
        ("\n%%time\nx = 1\n", "\n#%time\nx = 1\n"),
        ("x = (a\n     % b)\n", "x = (a\n     % b)\n"),
        ('s = """\n% of all\n! now\n"""\n', 's = """\n% of all\n! now\n"""\n'),
        ("x = a \\\n  % b\n", "x = a \\\n  % b\n"),
        ("x = a % b != c\nprint('why?')\n", "x = a % b != c\nprint('why?')\n"),
        ("!echo it's\n% ls\r\n!b\r\n", "#echo it's\n# ls\r\n#b\r\n"),
        ("x = !", "x = #"),
    ],
)
def test_a_magic_is_a_comment_of_the_same_length(text: str, plain: str) -> None:
    assert without_magics(text.encode()).decode() == plain
    assert len(plain) == len(text)


@pytest.mark.parametrize("line", [b"!ls\n", b"!echo (\n", b"% f '\n", b"f?\n"])
def test_many_lines_that_look_like_magics_take_no_time(line: bytes) -> None:
    most = 50_000 // len(line)
    for text in (b'x = """\n' + line * most, b"x = (\n" + line * most):
        assert without_magics(text) == text
    began = time.process_time()
    assert without_magics(line * most) != line * most
    assert time.process_time() - began < 5, "it grows with the square of the length"


def test_the_code_cells_above_are_the_prefix_of_a_cell() -> None:
    async def work() -> None:
        one = Book()
        await one.tell(
            book(
                (cell("a"), "%load_ext x\nrate = 3\n"),
                (cell("b", 1), "# The *sums*"),
                (cell("c"), "total = 0"),
                (cell("d"), "x = "),
                (cell("e"), "below = 1\n"),
            )
        )
        asked = await one.request("d", 4)
        assert asked.prefix == "#load_ext x\nrate = 3\n\ntotal = 0\n\nx = "
        assert (await one.request("a", 0)).prefix == ""

    asyncio.run(work())


def test_cells_that_are_changed_moved_or_removed_are_read_as_they_are_now() -> None:
    async def work() -> None:
        one = Book()
        await one.tell(book((cell("a"), "a = 1"), (cell("b"), "b = 2"), (cell("d"), "x = ")))
        array = {"start": 1, "deleteCount": 1, "cells": [cell("c"), cell("b")]}
        structure = {"array": array, "didOpen": [item("c", "c = 3")]}
        span = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
        text = {"document": {"uri": cell("a")["document"], "version": 2}}
        await one.tell(
            change(
                {"structure": structure, "textContent": [{**text, "changes": [{"range": span, "text": "9"}]}]}
            )
        )
        assert (await one.request("d", 4)).prefix == "a = 9\n\nc = 3\n\nb = 2\n\nx = "
        gone = {"array": {"start": 0, "deleteCount": 1}, "didClose": [{"uri": cell("a")["document"]}]}
        await one.tell(change({"structure": gone}))
        assert (await one.request("d", 4)).prefix == "c = 3\n\nb = 2\n\nx = "

    asyncio.run(work())


def test_a_closed_notebook_leaves_and_others_are_not_above() -> None:
    async def work() -> None:
        one = Book()
        other = {"kind": 2, "document": "vscode-notebook-cell:/w/other.ipynb#a"}
        await one.tell(book((other, "secret = 1"), uri="file:///w/other.ipynb"))
        await one.tell(book((cell("a"), "a = 1"), (cell("d"), "x = ")))
        assert (await one.request("d", 4)).prefix == "a = 1\n\nx = "
        cells = [{"uri": cell(name)["document"]} for name in ("a", "d")]
        await one.tell(
            notification(
                "notebookDocument/didClose", {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": cells}
            )
        )
        documents = one.window.workspace.documents
        assert documents.uris() == (other["document"],) and not documents.notebooks.holding(cells[0]["uri"])
        with pytest.raises(NoGap, match="not open"):
            one.window.workspace.document(cells[1]["uri"])

    asyncio.run(work())


def test_a_change_that_cannot_be_read_closes_the_notebook() -> None:
    async def work() -> None:
        one = Book()
        await one.tell(book((cell("a"), "a = 1"), (cell("d"), "x = ")))
        await one.tell(change({"textContent": "?"}))  # type: ignore[dict-item]
        assert one.window.workspace.documents.uris() == ()

    asyncio.run(work())


def test_a_cell_of_an_excluded_notebook_is_not_read() -> None:
    async def work() -> None:
        one = Book(Settings(exclude=("sums.ipynb",)))
        strange = {"kind": 2, "document": "cell:1"}
        await one.tell(book((strange, "key = 1")))
        with pytest.raises(NoGap, match=r"sums\.ipynb is excluded"):
            one.window.workspace.document("cell:1")

    asyncio.run(work())


def test_a_bare_client_gets_ghost_text_in_the_coordinates_of_the_cell(wire: Wire) -> None:
    able: dict[str, Any] = {"notebookDocument": {"synchronization": {}}}
    given = wire.initialize(capabilities=able)["result"]["capabilities"]["notebookDocumentSync"]
    (selector,) = given["notebookSelector"]
    assert selector["notebook"] == "*" and {"language": "python"} in selector["cells"]
    wire.send(book((cell("a"), "!ls (\nrate = 3\n"), (cell("d"), "%time f()\nx = ")))
    at = {"line": 1, "character": 4}
    params = {"textDocument": {"uri": cell("d")["document"]}, "position": at, "context": {"triggerKind": 2}}
    (one,) = wire.ask(1, "textDocument/inlineCompletion", params)["result"]["items"]
    assert one["insertText"] and one["range"] == {"start": at, "end": at}


@pytest.mark.parametrize("first", ["put in", "taken out"])
def test_a_cell_that_is_moved_in_two_steps_stays_in_its_notebook(first: str) -> None:
    # Their addresses say nothing of the notebook.
    def cell(name: str) -> dict[str, Any]:
        return {"kind": 2, "document": f"vscode-notebook-cell:/cells/{name}"}

    moved, other = cell("a"), cell("d")
    put, take = {"start": 2, "deleteCount": 0, "cells": [moved]}, {"start": 0, "deleteCount": 1}
    steps = [put, take] if first == "put in" else [take, put | {"start": 1}]

    async def work() -> None:
        for exclude in (("sums.ipynb",), ()):
            one = Book(Settings(exclude=exclude))
            await one.tell(book((moved, "a = 1"), (other, "x = ")))
            for step in steps:
                await one.tell(change({"structure": {"array": step}}))
                for which in (moved, other):
                    if exclude:
                        with pytest.raises(NoGap, match=r"sums\.ipynb is excluded"):
                            one.window.workspace.document(which["document"])
            if not exclude:
                assert one.window.workspace.documents.notebooks.above(moved["document"]) == (
                    other["document"],
                )
            # Out of its notebook for good, it is forgotten with its document.
            closing = [{"uri": moved["document"]}]
            gone = {"array": {"start": 1, "deleteCount": 1}, "didClose": closing}
            await one.tell(change({"structure": gone}))
            assert not one.window.workspace.documents.notebooks.holding(moved["document"])

    asyncio.run(work())
