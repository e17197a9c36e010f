"""The request `dg-lsp/nextEdit`: places that are offered, taken and dismissed, and documents that are not read."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.gaps.gap import Edit
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.reasons import NoGap
from dg_lsp.server.capabilities import Capabilities
from dg_lsp.server.handlers import next_edit as handler
from dg_lsp.server.handlers.context import Context
from dg_lsp.server.handlers.next_edit import dismiss, next_edit
from dg_lsp.server.session import Session
from dg_lsp.server.uses import Uses
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

STORE, MAIN, SECRET = "file:///w/store.py", "file:///w/main.py", "file:///w/secrets.py"
OTHER = "file:///w/other.py"
TEXT = "def load(key):\n    return key\n\n\nprint(load(1))\nprint(load(2))\n"
USES = "from store import load\n\nprint(load(3))\n"


def made(**settings: Any) -> Context:
    """A context with three open documents, one of which is excluded."""

    def no_engine(*_: object) -> Any:
        raise AssertionError("an engine was asked for")

    workspace = Workspace(Settings(exclude=("secrets.py",), **settings))
    client: Any = SimpleNamespace(can=Capabilities())
    board: Any = SimpleNamespace(record=None)
    session, uses = Session(workspace, no_engine, lambda _: None), Uses(workspace.documents.snapshot)
    context = Context(workspace, session, client, board, uses)
    documents = workspace.documents
    for uri, text in ((STORE, TEXT), (MAIN, USES), (SECRET, USES)):
        documents.open(uri, "python", 1, text)
    return context


def replace(context: Context, uri: str, span: types.Range, text: str) -> None:
    start, end = ((side.line, side.character) for side in (span.start, span.end))
    documents = context.workspace.documents
    known = documents.snapshot(uri)
    assert known is not None
    documents.change(uri, known.version + 1, [((start, end), text)])
    context.session.changed(uri)


def renamed(context: Context, name: str = "fetch") -> None:
    """Rename `load` where it is defined."""
    span = types.Range(types.Position(0, 4), types.Position(0, 8))
    replace(context, STORE, span, name)


async def asked(context: Context, uri: str = STORE, line: int = 0, character: int = 9) -> dict[str, Any]:
    at = {"line": line, "character": character}
    return await next_edit(context, {"textDocument": {"uri": uri}, "position": at})


def test_places_are_taken_one_after_the_other_and_then_in_the_other_document() -> None:
    async def scenario() -> list[tuple[str, int, str]]:
        context, taken = made(), list[tuple[str, int, str]]()
        renamed(context)
        found = await asked(context)
        while (edit := found["edit"]) is not None:
            end = edit["range"].start
            taken.append((edit["uri"], end.line, edit["label"]))
            replace(context, edit["uri"], edit["range"], edit["newText"])
            found = await asked(context, edit["uri"], end.line, end.character + len(edit["newText"]))
        assert found["reason"]
        return taken

    label = "load → fetch"
    assert asyncio.run(scenario()) == [
        (STORE, 4, label), (STORE, 5, label), (MAIN, 0, label), (MAIN, 2, label),
    ]  # fmt: skip


def test_the_nearest_place_after_the_cursor_comes_first() -> None:
    async def scenario() -> Any:
        context = made()
        renamed(context)
        return [(await asked(context, STORE, line, 0))["edit"]["range"].start.line for line in (0, 5)]

    assert asyncio.run(scenario()) == [4, 5]


def test_a_dismissed_place_is_left_for_this_edit_and_not_for_the_next_one() -> None:
    async def scenario() -> list[int]:
        context, lines = made(), list[int]()
        renamed(context)
        for _ in range(2):
            edit = (await asked(context))["edit"]
            lines.append(edit["range"].start.line)
            await dismiss(context, {"id": edit["id"]})
        await dismiss(context, None)
        await dismiss(context, {"id": "no such edit"})
        lines.append((await asked(context))["edit"]["range"].start.line)
        return lines

    # The last one is in the other document.
    assert asyncio.run(scenario()) == [4, 5, 0]


def test_a_document_that_is_opened_again_has_no_dismissed_places() -> None:
    async def scenario() -> Any:
        context = made()
        for _ in range(2):
            renamed(context)
            edit = (await asked(context))["edit"]
            await dismiss(context, {"id": edit["id"]})
            context.workspace.documents.close(STORE)
            context.session.closed(STORE)
            context.workspace.documents.open(STORE, "python", 1, TEXT)
        return edit

    assert asyncio.run(scenario())["range"].start.line == 4


def test_an_edit_that_was_undone_is_not_repeated() -> None:
    async def scenario() -> Any:
        context = made()
        renamed(context)
        span = types.Range(types.Position(0, 4), types.Position(0, 9))
        replace(context, STORE, span, "load")
        return await asked(context)

    assert asyncio.run(scenario())["edit"] is None


@pytest.mark.parametrize(
    ("settings", "uri", "why"),
    [
        ({"next_edit": False}, STORE, "nextEdit"),
        ({"disabled_languages": ("python",)}, STORE, "disabledLanguages"),
        ({}, SECRET, "excluded"),
        ({}, "file:///w/unknown.py", "not open"),
        ({}, MAIN, "edited here"),
    ],
)
def test_no_place_is_offered_without_a_reason(settings: dict[str, Any], uri: str, why: str) -> None:
    async def scenario() -> Any:
        context = made(**settings)
        renamed(context)
        return await asked(context, uri)

    found = asyncio.run(scenario())
    assert found["edit"] is None
    assert why in found["reason"]


def test_excluded_and_closed_documents_are_not_read() -> None:
    async def scenario() -> list[str]:
        context, uris = made(), list[str]()
        context.workspace.documents.close(MAIN)
        context.session.closed(MAIN)
        renamed(context)
        while (edit := (await asked(context))["edit"]) is not None:
            uris.append(edit["uri"])
            await dismiss(context, edit)
        with pytest.raises(NoGap):
            context.workspace.document(SECRET)
        return uris

    assert asyncio.run(scenario()) == [STORE, STORE]


def test_a_malformed_request_gets_a_reason() -> None:
    endless = {"line": float("inf"), "character": 0}
    about: dict[str, Any] = {"textDocument": {"uri": STORE}}
    for params in (
        None,
        {},
        about,
        {"textDocument": 1, "position": {"line": "x"}},
        {**about, "position": endless},
    ):
        found = asyncio.run(next_edit(made(), params))
        assert found["edit"] is None
        assert "nextEdit" in found["reason"]


POINT = "file:///w/point.py"
# A type in quotes is repeated in no other line by itself.
FIELDS = 'class Point:\n    x:"int"\n    y:"int"\n    z:"int"\n'
PLAIN = FIELDS.replace('"', "").replace(":", ": ").replace("Point: ", "Point:")


def guessing(
    monkeypatch: pytest.MonkeyPatch, answer: Fill | Callable[[Infill], Fill], fields: str = FIELDS
) -> tuple[Context, ScriptedEngine]:
    """A context in which the first field of a class has become a float, and an engine that is loaded."""
    monkeypatch.setattr(handler, "_PAUSE", 0.0)
    context, engine = made(), ScriptedEngine(answer)
    context.session._engine = engine
    context.workspace.documents.open(POINT, "python", 1, fields)
    replace(context, POINT, types.Range(types.Position(1, 7), types.Position(1, 10)), "float")
    return context, engine


def following(asked: Infill) -> Fill:
    """A model that lets every line follow: `y: int` becomes `y: float`."""
    return Fill(asked.edits[-1].removed.replace("int", "float"))


def test_lines_that_the_model_lets_follow_are_offered_until_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> list[tuple[int, str]]:
        context, _ = guessing(monkeypatch, following)
        taken, found = list[tuple[int, str]](), await asked(context, POINT, 1, 12)
        while (edit := found["edit"]) is not None:
            taken.append((edit["range"].start.line, edit["label"]))
            replace(context, POINT, edit["range"], edit["newText"])
            end = edit["range"].start
            found = await asked(context, POINT, end.line, end.character + len(edit["newText"]))
        return taken

    assert asyncio.run(scenario()) == [(2, "int → float"), (3, "int → float")]


@pytest.mark.parametrize(("gain", "lines"), [(6.1, [2, 3]), (5.9, [])])
def test_lines_in_which_the_edit_is_repeated_are_rated_once_and_offered_if_they_are_likely(
    gain: float, lines: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> list[int]:
        context, engine = guessing(monkeypatch, lambda asked: Fill(asked.edits[-1].added, -gain), PLAIN)
        found = list[int]()
        while (edit := (await asked(context, POINT, 1, 12))["edit"]) is not None:
            found.append(edit["range"].start.line)
            await dismiss(context, edit)
        assert [one.edits[-1].added for one in engine.requests] == ["    y: float\n    z: float\n"]
        return found

    assert asyncio.run(scenario()) == lines


def test_a_line_that_was_dismissed_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> list[int]:
        context, engine = guessing(monkeypatch, following)
        lines = list[int]()
        while (edit := (await asked(context, POINT, 1, 12))["edit"]) is not None:
            lines.append(edit["range"].start.line)
            await dismiss(context, edit)
        assert len(engine.requests) == 2
        return lines

    assert asyncio.run(scenario()) == [2, 3]


@pytest.mark.parametrize("answer", [Fill("", refusal="nothing surely follows"), Fill("    y: = (\n")])
def test_a_line_that_does_not_surely_follow_or_is_broken_is_not_offered(
    answer: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, engine = guessing(monkeypatch, answer)
    assert asyncio.run(asked(context, POINT, 1, 12))["edit"] is None
    assert len(engine.requests) == 2 and {one.priority for one in engine.requests} == {"ahead"}


def test_no_model_is_asked_where_the_rules_know_the_places_or_none_was_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        context, engine = guessing(monkeypatch, following)
        renamed(context)
        while (edit := (await asked(context))["edit"]) is not None:
            await dismiss(context, edit)
        assert engine.requests == []
        context.session._engine = None
        assert (await asked(context, POINT, 1, 12))["edit"] is None

    asyncio.run(scenario())


def test_lines_that_took_too_long_are_asked_about_by_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> tuple[object, object, int]:
        answers = [Fill("", refusal="nothing surely follows"), Fill("", refusal="late", reason="deadline")]
        context, engine = guessing(monkeypatch, lambda asked: answers.pop(0) if answers else following(asked))
        late = (await asked(context, POINT, 1, 12))["edit"]
        found = (await asked(context, POINT, 1, 12))["edit"]
        return late, found["label"], len(engine.requests)

    assert asyncio.run(scenario()) == (None, "int → float", 3)


def test_nothing_of_another_file_is_sent_that_may_not_be_read_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> tuple[object, int]:
        context, engine = guessing(monkeypatch, following)
        context.workspace.documents.open(OTHER, "python", 1, "count: int = 3\n")
        permit = context.workspace.permit

        def refused(uri: str, language: str) -> None:
            if uri == OTHER:
                raise NoGap("git ignores it now")
            permit(uri, language)

        beside = context.workspace.beside(context.workspace.document(POINT))
        monkeypatch.setattr(context.workspace, "beside", lambda _: beside)
        monkeypatch.setattr(context.workspace, "permit", refused)
        replace(context, POINT, types.Range(types.Position(2, 0), types.Position(4, 0)), "")
        return (await asked(context, POINT, 1, 12))["edit"], len(engine.requests)

    assert asyncio.run(scenario()) == (None, 0)


def test_the_next_key_ends_the_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        context, engine = guessing(monkeypatch, following)
        engine._drafts, engine._pause = (Draft(0, (), 0.0),) * 1000, 0.01
        task = asyncio.create_task(asked(context, POINT, 1, 12))
        while not engine.passes:
            await asyncio.sleep(0.001)
        replace(context, POINT, types.Range(types.Position(1, 12), types.Position(1, 12)), "s")
        assert (await task)["edit"] is None
        passes = engine.passes
        await asyncio.sleep(0.05)
        assert engine.passes == passes < 1000

    asyncio.run(scenario())


def test_a_place_in_a_document_that_changes_while_it_is_checked_is_not_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = made()
    documents, checked = context.workspace.documents, list[str]()

    def is_sound(document: Document, _: Edit) -> bool:
        checked.append(document.uri)
        if document.uri == MAIN:
            documents.close(MAIN)
            documents.open(MAIN, "python", 1, "# another text\n" + USES)
        return document.uri == MAIN

    async def scenario() -> dict[str, Any]:
        renamed(context)
        return await asked(context)

    monkeypatch.setattr(handler, "is_sound", is_sound)
    assert asyncio.run(scenario())["edit"] is None
    assert MAIN in checked


def test_imports_that_new_text_needs_are_taken_one_after_the_other() -> None:
    async def scenario() -> tuple[list[str], str]:
        context, labels = made(), list[str]()
        head = "from store import load\n\n\ndef f():\n    return load(1)\n"
        context.workspace.documents.open("file:///w/new.py", "python", 1, head)
        end = types.Position(4, 18)
        new = ", json.dumps(Path(token()))"
        replace(context, "file:///w/new.py", types.Range(end, end), new)
        found = await asked(context, "file:///w/new.py", 4, 18 + len(new))
        while (edit := found["edit"]) is not None:
            labels.append(edit["label"])
            replace(context, edit["uri"], edit["range"], edit["newText"])
            at = edit["range"].start
            found = await asked(context, edit["uri"], at.line, at.character)
        document = context.workspace.documents.snapshot("file:///w/new.py")
        assert document is not None
        return labels, document.text

    labels, text = asyncio.run(scenario())
    assert labels == ["+ import json", "+ from pathlib import Path"]
    assert text.startswith("import json\nfrom pathlib import Path\n\nfrom store import load\n\n\n")


def test_imports_of_an_excluded_document_are_not_offered() -> None:
    async def scenario(name: str) -> Any:
        context = made()
        documents = context.workspace.documents
        documents.open("file:///w/new.py", "python", 1, "import os\n\n\ndef f():\n    return 1\n")
        where = types.Range(types.Position(0, 0), types.Position(0, 0))
        replace(context, name, where, "from vault import Token\n")
        replace(
            context, "file:///w/new.py", types.Range(types.Position(4, 11), types.Position(4, 12)), "Token(1)"
        )
        return (await asked(context, "file:///w/new.py", 4, 19))["edit"]

    assert asyncio.run(scenario(MAIN))["newText"] == "\n\nfrom vault import Token"
    assert asyncio.run(scenario(SECRET)) is None
