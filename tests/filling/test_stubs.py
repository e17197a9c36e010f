"""The unwritten functions of a document, filled one after another."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.fill import FillOptions
from dg_lsp.filling.stubs import StubEnded, StubStarted, fill_stubs, mark_partial, stubs_of
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit, apply_edit
from dg_lsp.text.messages import Fill, Infill

SOURCE = "def one():\n    pass\n\n\ndef two():\n    return 2\n\n\ndef three():\n    ...\n"
DOCUMENT = Document("file:///m.py", "python", 1, SOURCE.encode())


def fills(request: Infill) -> Fill:
    return (
        Fill("a = 1\n    return a", others=("return 1",)) if "three" in request.suffix else Fill("return 3")
    )


def run(engine: ScriptedEngine, **more: object) -> list[StubStarted | StubEnded]:
    async def work() -> list[StubStarted | StubEnded]:
        return [event async for event in fill_stubs(engine, DOCUMENT, Settings(), **more)]  # type: ignore[arg-type]

    return asyncio.run(work())


def test_each_stub_is_filled_in_the_text_that_the_earlier_fills_have_left() -> None:
    assert [stub.name for stub in stubs_of(DOCUMENT)] == ["one", "three"]
    engine = ScriptedEngine(fills)
    first, ended, second, last = run(engine)
    assert isinstance(first, StubStarted) and isinstance(ended, StubEnded) and ended.started is first
    assert isinstance(second, StubStarted) and isinstance(last, StubEnded)
    assert (first.number, first.gap.name, second.number, second.gap.name) == (1, "one", 2, "three")
    assert second.document == ended.document
    filled = SOURCE.replace("pass", "a = 1\n    return a").replace("...", "return 3")
    assert last.document.text == filled
    assert engine.requests[1].prefix in filled


def test_the_fill_that_is_chosen_is_kept_and_without_one_the_stub_stays() -> None:
    seen: list[list[str]] = []

    async def choose(stub: StubStarted, documents: Sequence[Document]) -> tuple[int | None, str]:
        seen.append([document.text for document in documents])
        return (1, "shorter") if len(documents) > 1 else (None, "too short")

    ended = [
        e
        for e in run(ScriptedEngine(fills), choose=choose, options=FillOptions(2))
        if isinstance(e, StubEnded)
    ]
    assert [(e.edit is not None, e.why) for e in ended] == [(True, "shorter"), (False, "too short")]
    assert ended[-1].document.text == SOURCE.replace("pass", "return 1")
    assert [len(texts) for texts in seen] == [2, 1]


def test_a_marked_body_is_a_stub_until_somebody_changes_it() -> None:
    written = "def f(a):\n    return 1\n\n\ndef g(a):\n    return 2\n"
    marked = mark_partial(Document("file:///a.py", "python", 0, written.encode()), "g")
    assert [gap.name for gap in stubs_of(marked)] == ["g"]
    assert (
        marked.data.startswith(written[:-13].encode())
        and b"    # dg-lsp: partial, its tests fail (" in marked.data
    )
    for old, new in ((b"return 2", b"return 3"), (b"partial", b"")):
        assert stubs_of(replace(marked, data=marked.data.replace(old, new))) == []
    # The next fill takes the mark away with the body.
    (gap,) = stubs_of(marked)
    filled = apply_edit(marked, Edit(gap.start, gap.end, "return 4"))
    assert filled.data.decode() == written.replace("return 2", "return 4")
    for language, text in (("typescript", "function f() {\r\n  return 1;\r\n}\r\n"), ("json", "{}")):
        document = Document("file:///a", language, 0, text.encode())
        assert len(stubs_of(mark_partial(document, "f"))) == (language == "typescript")
