"""A line for the cursor in an empty block: where it is, how it is indented, and that nothing else changes."""

import asyncio
import itertools

import pytest

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.fill import FillOptions, fill_gap
from dg_lsp.filling.growth import may_grow
from dg_lsp.filling.inside import place_inside, with_line_inside
from dg_lsp.filling.offers import next_place, offer_of, still_good, used_up
from dg_lsp.gaps import Edit, apply_edit, find_gap
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

GO = "package a\n\nfunc f() error {\n\terr := g()\n\t|\n\treturn nil\n}\n"
INSIDE = FillOptions(priority="ghost", inside=True)


def document(text: str, language: str = "go") -> tuple[Document, int]:
    """The document `text` without its `|`, and where that was."""
    at = len(text[: text.index("|")].encode())
    return Document("file:///a", language, 1, text.replace("|", "").encode()), at


@pytest.mark.parametrize(
    ("text", "language", "fill", "wanted"),
    [
        (GO, "go", "if err != nil {\n\t}", "if err != nil {\n\t\t\n\t}"),
        ("f() {\n  |\n}\n", "typescript", "if (a) {\n  }", "if (a) {\n    \n  }"),
        ("f() {\n    a()\n    |\n}\n", "typescript", "if (a) {\n    }", "if (a) {\n        \n    }"),
        ("f() {\r\n  |\r\n}\r\n", "typescript", "if (a) {\r\n  }", "if (a) {\r\n    \r\n  }"),
        ("|\n", "typescript", "test('é', () => {\n});", "test('é', () => {\n  \n});"),
        ("|\n", "rust", "mod a {\n    fn b() {\n    }\n}", "mod a {\n    fn b() {\n        \n    }\n}"),
        ("x = |\n", "python", "{\n}", "{\n    \n}"),
        # No block that is empty, or none at the end.
        (GO, "go", "if err != nil {\n\t\treturn err\n\t}", None),
        (GO, "go", "if err != nil {\n\t}\n\treturn g()", None),
        (GO, "go", "x := map[string]int{}", None),
        ("|\n", "typescript", "a = '{\\\n}'", None),
        ("|\n", "typescript", "// {\n}", None),
    ],
)
def test_an_empty_block_at_the_end_gets_a_line(
    text: str, language: str, fill: str, wanted: str | None
) -> None:
    doc, at = document(text, language)
    edit = with_line_inside(doc, Edit(at, at, fill))
    assert edit.text == (wanted or fill)
    place = place_inside(edit.text)
    if wanted is None:
        assert place is None
    else:
        line = wanted.encode()[:place].rpartition(b"\n")[2]
        assert line and not line.strip() and wanted.encode()[place:][:1] in b"\r\n"


def test_other_brackets_than_the_last_one_cost_no_time() -> None:
    assert place_inside("{\n\t" + "\n}" * 20_000 + "x") is None
    assert place_inside("{\n" * 20_000) is None
    assert place_inside("{" + " " * 20_000 + "\n}" * 20_000 + "x") is None


def filled(options: FillOptions) -> str:
    doc, at = document(GO)
    outcome = asyncio.run(
        fill_gap(ScriptedEngine(Fill("if err != nil {\n\t}")), doc, find_gap(doc, at), Settings(), options)
    )
    assert outcome.edit is not None
    return outcome.edit.text


def test_a_fill_has_the_line_for_a_client_that_goes_there_alone() -> None:
    assert filled(INSIDE) == "if err != nil {\n\t\t\n\t}"
    assert filled(FillOptions(priority="ghost")) == "if err != nil {\n\t}"


def test_the_user_goes_on_in_the_line() -> None:
    doc, at = document(GO)
    engine = ScriptedEngine(Fill("if err != nil {\n\t}", chance=0.5, grows=True))
    offer = offer_of(doc, asyncio.run(fill_gap(engine, doc, find_gap(doc, at), Settings(), INSIDE)))
    assert offer is not None
    text = offer.texts[0]
    taken = apply_edit(doc, Edit(at, at, text))
    inside = at + len("if err != nil {\n\t\t")
    assert next_place(offer, taken) == (taken, inside)
    # There it is no text that was just accepted, and nothing of it is offered.
    assert used_up(offer, taken, at + len(text)) and not used_up(offer, taken, inside)
    assert still_good(offer, taken, inside) == []
    # Nothing grows below the block that the user is about to go into.
    assert not may_grow(offer, doc)


def test_each_beginning_of_the_text_is_continued() -> None:
    doc, at = document(GO)
    engine = ScriptedEngine(Fill("if err != nil {\n\t}"))
    offer = offer_of(doc, asyncio.run(fill_gap(engine, doc, find_gap(doc, at), Settings(), INSIDE)))
    assert offer is not None
    text = offer.texts[0]
    for head in itertools.accumulate(text[:-1]):
        typed = apply_edit(doc, Edit(at, at, head))
        assert [one.text for one in still_good(offer, typed, at + len(head))] == [text], head
