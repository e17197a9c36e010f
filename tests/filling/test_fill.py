"""The one path from a gap to an edit: what is offered, what is refused and why, and what stays as it was."""

import asyncio
import random
import threading
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from dg_lsp.context import prompt
from dg_lsp.context.index import Index
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling import fill as filling
from dg_lsp.filling.engine import Engine, EngineError
from dg_lsp.filling.fill import FillOptions, Outcome, fill_gap
from dg_lsp.gaps.find import Gap, NoGap, find_gap, find_named
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.messages import Draft, Fill, Infill, Piece, Run
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from tests.source.test_bounds import SHAPES

SOURCE = b"def f(x):\r\n\tpass\r\n\r\ndef g():\r\n\treturn f(1)  # \xf0\x9f\x99\x82\r\n"
CHAT = Settings(checkpoint="google/diffusiongemma-26B-A4B-it")  # a model that reads definitions
DRAFT = Draft(1, (Run("return", anchored=False, accepted=True, entropy=0.1),), 5.0)


def document(data: bytes = SOURCE) -> Document:
    return Document("file:///m.py", "python", 3, data)


def outcome(engine: Engine, doc: Document, gap: Gap) -> Outcome:
    return asyncio.run(fill_gap(engine, doc, gap, Settings()))


def test_drafts_pass_and_the_fill_becomes_an_edit() -> None:
    engine, drafts, doc = ScriptedEngine(Fill("return x"), [DRAFT]), list[Draft](), document()
    options = FillOptions(show=drafts.append)
    last = asyncio.run(fill_gap(engine, doc, find_named(doc, "f"), Settings(seed=7), options))
    assert drafts == [DRAFT] and last.edit is not None
    changed = apply_edit(document(), last.edit)
    assert changed.data == SOURCE.replace(b"pass", b"return x")
    assert engine.requests[0].seed == 7
    assert engine.requests[0].prefix == "def f(x):\r\n\t"


@pytest.mark.parametrize(
    "text", ["return (x", "return x)", "return x\ndef h():\n\tpass", "if x:", "return = 1"]
)
def test_a_fill_that_would_add_an_error_is_not_shown(text: str) -> None:
    doc = document()
    found = outcome(ScriptedEngine(Fill(text)), doc, find_named(doc, "f"))
    if found.edit is not None:  # what runs over the end may be cut to what is right
        assert apply_edit(doc, found.edit).data == SOURCE.replace(b"pass", b"return x")
    else:
        assert "syntax error" in found.why


def test_where_the_first_text_does_harm_another_one_is_offered() -> None:
    doc = document()
    found = outcome(ScriptedEngine(Fill("return (x", others=("return x",))), doc, find_named(doc, "f"))
    assert found.edit is not None and found.edit.text == "return x" and not found.others


def test_an_empty_fill_keeps_its_reason() -> None:
    doc = document()
    gap = find_named(doc, "f")
    assert outcome(ScriptedEngine(Fill("", refusal="because of this")), doc, gap).why == "because of this"
    assert outcome(ScriptedEngine(Fill(" \n")), doc, gap).why


def test_a_text_that_the_deadline_has_cut_is_late_first_of_all() -> None:
    doc = document()
    gap, late = find_named(doc, "f"), "the deadline passed before"
    drafts = "none of 1 drafts could be shown; the best one: it would add a syntax error, a missing `)`"
    cut = (Fill("return (x", reason="deadline"), Fill("", parses=False, refusal=drafts, reason="deadline"))
    for fill in cut:
        why = outcome(ScriptedEngine(fill), doc, gap).why
        assert why.startswith(late) and "syntax error" in why
        assert late not in outcome(ScriptedEngine(replace(fill, reason="stable")), doc, gap).why
    for refusal, parses in ((f"{late} a candidate was ready", False), ("the engine was busy", True)):
        fill = Fill("", parses=parses, refusal=refusal, reason="deadline")
        assert outcome(ScriptedEngine(fill), doc, gap).why == refusal


def test_an_engine_that_stops_without_an_answer_is_an_error() -> None:
    class Silent(ScriptedEngine):
        async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
            yield DRAFT

    doc = document()
    with pytest.raises(EngineError, match="without an answer"):
        outcome(Silent(Fill("")), doc, find_named(doc, "f"))


def test_no_byte_outside_the_gap_changes_whatever_is_filled() -> None:
    chance = random.Random(4)
    pieces = [
        "return x",
        "\n",
        "\r\n",
        "\t",
        "(",
        ")",
        '"""',
        "é🙂",
        "\u2028",
        "\x0c",
        "def f():",
        "  ",
        "#",
        "x = 1",
    ]
    shown = 0
    for _ in range(800):
        doc = document(
            chance.choice([SOURCE, SOURCE.replace(b"\r\n", b"\n"), b"\xef\xbb\xbf" + SOURCE, b"x = 1"])
        )
        try:
            at = len(doc.text[: chance.randrange(len(doc.text) + 1)].encode())
            gap = find_gap(doc, at, chance.choice([None, "rest_of_line"]))
        except NoGap:
            continue
        text = "".join(chance.choices(pieces, k=chance.randrange(1, 6)))
        found = outcome(ScriptedEngine(Fill(text)), doc, gap)
        if found.edit is None:
            assert found.why
            continue
        shown += 1
        new = apply_edit(doc, found.edit).data
        assert new[: gap.start] == doc.data[: gap.start]
        assert new.endswith(doc.data[gap.end :])
        assert len(new) >= gap.start + len(doc.data) - gap.end
    # A number sign in front of code would turn it into a comment, so many of these texts are refused.
    assert shown > 30


HOLES = b"def f(x):\r\n\ty = x\r\n\t...\r\n\tz = y\r\n\t...\r\n\tprint(z)\r\n\t...\r\n\treturn z\r\n"


@pytest.mark.parametrize(
    ("texts", "filled", "why"),
    [
        (("y += 1", "z += 1", "z += 2"), ("y += 1", "z += 1", "z += 2"), ""),
        (
            ("y += 1", "z += (", "z += 2"),
            ("y += 1", "...", "z += 2"),
            "1 of 3 gaps got no fill; the fill would add",
        ),
        (
            ("", "z += 1", ""),
            ("...", "z += 1", "..."),
            "2 of 3 gaps got no fill; the model left the gap empty",
        ),
    ],
)
def test_several_gaps_become_one_edit_and_those_without_a_fill_stay(
    texts: tuple[str, ...], filled: tuple[str, ...], why: str
) -> None:
    doc = document(HOLES)
    found = outcome(ScriptedEngine(Fill(texts[0], further=texts[1:])), doc, find_gap(doc, 12, "holes"))
    parts = HOLES.split(b"...")
    assert found.edit is not None
    whole = b"".join(a + b.encode() for a, b in zip(parts, (*filled, ""), strict=True))
    assert apply_edit(doc, found.edit).data == whole
    assert found.why.startswith(why) and bool(found.why) == bool(why)


def test_several_gaps_without_any_fill_are_no_edit() -> None:
    doc = document(HOLES)
    fill = Fill("", refusal="no luck", further=("(", ""))
    found = outcome(ScriptedEngine(fill), doc, find_gap(doc, 12, "holes"))
    assert (found.edit, found.why) == (None, "no luck")


@pytest.mark.parametrize("language", ["python", "typescript"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_of_a_file_takes_long_to_fill(shape: str, language: str) -> None:
    """Law 11 after the gap: what is asked of the project, fitted and checked is bounded, too."""
    doc = Document("file:///shape", language, 1, SHAPES[shape])
    engine = ScriptedEngine(Fill("None"))
    for at in (len(doc.data), len(doc.data) // 2):
        gap, began = find_gap(doc, at), time.process_time()
        found = asyncio.run(fill_gap(engine, doc, gap, Settings(), FillOptions(index=Index())))
        assert time.process_time() - began < 5
        assert found.edit or found.why
    # Where no edit could be checked the engine is not asked.
    assert len(engine.requests) == (2 if "lines" in shape and "brackets" not in shape else 0)


def test_definitions_of_other_files_go_with_the_request_to_a_model_that_reads_them() -> None:
    index = Index()
    index.put("file:///shapes.py", "python", b"def area(shape):\n    return 1\n")
    doc = document(b"import shapes\n\n\ndef f(x):\n    shapes.area(x)\n    pass\n")
    gap, engine = find_gap(doc, len(doc.data) - 1, "statement"), ScriptedEngine(Fill("return x"))
    room = [replace(CHAT, definition_bytes=n) for n in (500, 10)]
    found = [
        asyncio.run(fill_gap(engine, doc, gap, settings, FillOptions(index=index)))
        for settings in (*room, Settings(definition_bytes=500))
    ]
    assert [r.context for r in engine.requests] == [(Piece("shapes.py", "def area(shape): ...\n"),), (), ()]
    assert [("file:///shapes.py" in outcome.files) for outcome in found] == [True, False, False]


def test_a_placeholder_in_the_place_of_a_placeholder_is_no_fill() -> None:
    doc = document(b"def f(x):\n    a = x\n    ...\n    return a\n")
    gap = find_gap(doc, doc.data.index(b"..."))
    assert gap.stub
    result = outcome(ScriptedEngine(Fill("...")), doc, gap)
    assert result.edit is None and result.why == "the model wrote the text that is already there"
    assert outcome(ScriptedEngine(Fill("a += 1")), doc, gap).edit is not None


def test_no_text_is_read_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a fill that reads the document runs in a thread, whatever the size of the file."""
    where: dict[str, threading.Thread] = {}

    def noted(name: str) -> None:
        place = filling if hasattr(filling, name) else prompt
        own = getattr(place, name)

        def work(*arguments: Any) -> Any:
            where[name] = threading.current_thread()
            return own(*arguments)

        monkeypatch.setattr(place, name, work)

    for name in ("unchecked", "build", "search", "context_of", "finish"):
        noted(name)
    opened = Document("file:///a.py", "python", 1, b"x = \n")
    options = FillOptions(index=Index())
    work = fill_gap(ScriptedEngine(Fill("1")), opened, find_gap(opened, 4), CHAT, options)
    assert asyncio.run(work).edit
    assert {*where} == {"unchecked", "build", "search", "context_of", "finish"}
    assert threading.main_thread() not in where.values()


def test_the_names_that_nothing_imports_go_with_the_request_for_an_import() -> None:
    doc = document(b"import \n\n\ndef f(x):\n    return json.loads(x)\n")
    engine = ScriptedEngine(Fill("json"))
    asyncio.run(fill_gap(engine, doc, find_gap(doc, 7), Settings()))
    asyncio.run(fill_gap(engine, doc, find_gap(doc, 28, "statement"), Settings()))
    assert [request.unimported for request in engine.requests][:1] == [("json",)]
    assert not any(request.unimported for request in engine.requests[1:])


@pytest.mark.parametrize(
    ("language", "text", "fill", "wanted"),
    [
        ("typescript", "const a = [1];\nlet b = a[|\nlet c = 1;\n", "0];", "let b = a[0];"),
        ("typescript", "const a = [1];\nlet b = a[|\nlet c = 1;\n", "0", "let b = a[0]"),
        (
            "typescript",
            "function f(x) {\n  if (|\n    return x;\n  }\n  return 1;\n}\n",
            "x) {",
            "  if (x) {",
        ),
        ("typescript", "const all = {\n  a: f(|\n  b: 1,\n};\n", "0),", "  a: f(0),"),
        ("java", "class A {\n  void f() {\n    g(|\n  }\n}\n", "1);", "    g(1);"),
        ("python", "def f(count):\n    return count if g(|\n\n\nx = 1\n", "count) else None", None),
        ("python", "def f(|\n\n\nx = 1\n", "count: int) -> int:", None),
        ("python", "def f(|\n\n\nx = 1\n", "count", "def f(count):"),
        ("python", "def f():\n    with open(|\n\n\nx = 1\n", "path) as file:", None),
        ("python", "def f():\n    if |\n\n\nx = 1\n", "count", "    if count:"),
        ("python", "class A(|\n\n\nx = 1\n", "B):", None),
    ],
)
def test_a_gap_reaches_to_the_end_of_a_line_that_has_left_a_bracket_open(
    language: str, text: str, fill: str, wanted: str | None
) -> None:
    """A bracket that nothing closes: the text closes it, and says what follows."""
    before, after = text.encode().split(b"|")
    doc = Document("file:///m", language, 0, before + after)
    gap, engine = find_gap(doc, len(before)), ScriptedEngine(Fill(fill))
    found = outcome(engine, doc, gap)
    line = before.decode().rsplit("\n", 1)[-1]
    assert found.edit is not None
    assert apply_edit(doc, found.edit).data.decode() == text.replace(line + "|", wanted or line + fill)
    assert (engine.requests[0].kind, engine.requests[0].suffix) == ("rest_of_line", after.decode())


@pytest.mark.parametrize("text", ["x = f(|)\n", "x = f(|, y)\n", "x = [|1]\n"])
def test_a_gap_in_closed_brackets_ends_with_them(text: str) -> None:
    before, after = text.encode().split(b"|")
    gap = find_gap(document(before + after), len(before))
    assert (gap.kind == "rest_of_line", gap.insert_after, gap.end) == (False, "", len(before))


def test_a_kind_that_was_asked_for_stays() -> None:
    doc = document(b"x = f(\n\n\ny = 1\n")
    assert find_gap(doc, 6).kind == "rest_of_line"
    assert find_gap(doc, 6, "arguments").kind == "arguments"
    found = outcome(ScriptedEngine(Fill("1")), doc, find_gap(doc, 6, "arguments"))
    assert found.edit is not None and found.edit.text == "1)"
