"""Text below a shown one: the edit begins with what is shown, and the item below it is checked as any fill."""

import asyncio
from dataclasses import replace

import pytest

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.fill import FillOptions, Outcome, fill_gap
from dg_lsp.filling.growth import NOTHING, grow, may_grow
from dg_lsp.filling.offers import Offer, offer_of
from dg_lsp.gaps.find import find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

HEAD, TAIL = b"def f(a, b):\n    a += 1\n    ", b"\n\n\ndef g():\n    return 1\n"
SHOWN, ALL = "c = a + b", Settings()


def document(data: bytes = HEAD + TAIL) -> Document:
    return Document("file:///m.py", "python", 1, data)


def offered(text: str = SHOWN, doc: Document | None = None, at: int = len(HEAD)) -> Offer:
    """The offer of a fill of the gap at a place."""
    doc = doc or document()
    engine = ScriptedEngine(Fill(text, chance=0.5, grows=True))
    found = offer_of(doc, asyncio.run(fill_gap(engine, doc, find_gap(doc, at), ALL)))
    assert found is not None
    return found


def grown(below: str, offer: Offer | None = None) -> tuple[Outcome, ScriptedEngine]:
    offer = offer or offered()
    engine = ScriptedEngine(lambda request: Fill(request.shown + below, chance=request.chance / 2))
    return asyncio.run(grow(engine, offer, document(), ALL, FillOptions(priority="ahead"))), engine


def test_the_item_is_below_what_is_shown_and_both_are_one_edit() -> None:
    found, engine = grown("\n    return c")
    assert found.edit is not None and found.edit.text == SHOWN + "\n    return c"
    assert apply_edit(document(), found.edit).data == HEAD + b"c = a + b\n    return c" + TAIL
    (request,) = engine.requests
    assert (request.shown, request.chance, request.priority) == (SHOWN, 0.5, "ahead")
    # It may grow again.
    again = offer_of(document(), found)
    assert again is not None and again.fill is not None and again.fill.chance == 0.25


@pytest.mark.parametrize(
    "below",
    [
        "\n    return (c",
        "\n    return = c",
        "\n    '''",
        "\nreturn c",
        "\n        return c",
    ],
)
def test_an_item_that_does_harm_is_not_shown(below: str) -> None:
    found, _ = grown(below)
    assert found.edit is None and found.why


def test_an_item_that_is_there_already_is_not_written_again() -> None:
    doc = document(HEAD + b"\n    return a + b" + TAIL)
    offer = offered(doc=doc)
    engine = ScriptedEngine(lambda request: Fill(request.shown + "\n    return a + b"))
    found = asyncio.run(grow(engine, offer, doc, ALL, FillOptions()))
    assert found.edit is None and found.why


@pytest.mark.parametrize("text", ["", SHOWN, "d = a\n    return d"])
def test_an_answer_that_does_not_begin_with_the_shown_text_is_not_shown(text: str) -> None:
    engine = ScriptedEngine(Fill(text))
    found = asyncio.run(grow(engine, offered(), document(), ALL, FillOptions()))
    assert (found.edit, found.why) == (None, NOTHING)


def test_only_a_text_that_ends_its_line_may_grow() -> None:
    offer = offered()
    assert may_grow(offer, document())
    assert offer.fill is not None and not may_grow(
        replace(offer, fill=replace(offer.fill, grows=False)), document()
    )
    assert not may_grow(replace(offer, gap=None), document())
    inner = document(HEAD + b"c = f(, b)" + TAIL)
    assert not may_grow(offered("a", inner, len(HEAD) + 6), inner)
    prose = document(HEAD + b"# the " + TAIL)
    assert not may_grow(offered("sum", prose, len(HEAD) + 6), prose)
    long = replace(offer, texts=("\n    ".join(["a += 1"] * 40),))
    assert not may_grow(long, document())
