"""Ghost text without a wire: an empty answer is a NoGap with its reason, never an empty list."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.fill import FillOptions, Outcome
from dg_lsp.filling.offers import Offer
from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.gaps.gap import Edit, Gap
from dg_lsp.messages import Fill, Infill
from dg_lsp.server import convert
from dg_lsp.server.capabilities import Capabilities
from dg_lsp.server.handlers import inline_completion
from dg_lsp.server.handlers.inline_completion import ghost_text
from dg_lsp.server.rpc.envelope import strict_converter
from dg_lsp.server.session import Session, Superseded
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.trigger import Trigger
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

URI = "file:///a.py"
INVOKED, AUTOMATIC = types.InlineCompletionTriggerKind.Invoked, types.InlineCompletionTriggerKind.Automatic


class _Session(Session):
    """A session whose fills are all `edit`, with the offers `recent`."""

    def __init__(self, edit: Edit, recent: tuple[Offer, ...] = ()) -> None:
        super().__init__(Workspace(Settings()), lambda *_: ScriptedEngine(Fill("")), lambda _: None)
        self._edit = edit
        for offer in recent:
            self.offers.keep(offer)

    async def fill(  # type: ignore[override]
        self, _document: Document, gap: Gap, *_: Any
    ) -> Outcome:
        return Outcome(gap, Fill(self._edit.text), self._edit)


def asked(
    session: _Session, text: bytes, column: int, selected: Any = None, kind: Any = INVOKED, **can: bool
) -> Any:
    client = SimpleNamespace(drafts=lambda *_: lambda _: None)
    context: Any = SimpleNamespace(session=session, workspace=Workspace(Settings()), client=client)
    line = text.count(b"\n")
    params = types.InlineCompletionParams(
        types.InlineCompletionContext(kind, selected),
        types.TextDocumentIdentifier(URI),
        types.Position(line, column),
    )
    snapshot = Snapshot(Document(URI, "python", 1, text), Settings(), "utf-32", client=Capabilities(**can))
    return asyncio.run(ghost_text(snapshot, context, params))


def test_a_fill_that_does_not_begin_with_what_is_typed_has_that_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = b"def f():\n    return 1\n\n\nx = "
    (item,) = asked(_Session(Edit(len(text), len(text), "None")), text, 4)
    assert item.insert_text == "None"
    blank = b"def f():\n    "
    # Blanks before the cursor may be part of a gap.
    monkeypatch.setattr(inline_completion, "find_gap", lambda *_: Gap(9, 13, "function_body", "    "))
    with pytest.raises(NoGap, match="begins with the text before"):
        asked(_Session(Edit(9, 13, "return 1")), blank, 4)


def test_the_text_of_an_item_begins_at_the_cursor_though_its_edit_begins_lines_above() -> None:
    text = "def f():\r\n    a = '😀'\r\n    ret".encode()
    document = Document("file:///a.py", "python", 1, text)
    edit = Edit(14, len(text), "a = '😀'\r\n    return (\r\n        1\r\n    )")
    assert convert.text_from(document, len(text), edit) == "urn (\n        1\n    )"


def test_an_item_after_the_selected_entry_has_its_range_and_begins_with_it() -> None:
    text = b"y = 1\nx = fo"
    span = types.Range(types.Position(1, 4), types.Position(1, 6))
    selected = types.SelectedCompletionInfo(range=span, text="foo")
    # The edit begins after the entry, at its start, or lines before it.
    for edit in (Edit(13, 13, "()"), Edit(10, 13, "foo()"), Edit(0, 13, "y = 1\nx = foo()")):
        session = _Session(edit)
        session.offers.edits_at = lambda *_, edit=edit: [edit, edit]  # type: ignore[method-assign]
        item = asked(session, text, 6, selected)[0]
        assert (item.insert_text, item.range) == ("foo()", span)


def test_an_offer_that_is_being_typed_comes_before_an_entry_of_the_menu_that_disagrees() -> None:
    text = b"x = 1\ny = su"
    offer = Offer("file:///a.py", b"x = 1\ny = ", 10, 10, ("sum(x)",))
    span = types.Range(types.Position(1, 4), types.Position(1, 6))
    for entry, item in (("sum", "sum(x)"), ("super", "m(x)")):
        selected = types.SelectedCompletionInfo(range=span, text=entry)
        (got,) = asked(_Session(Edit(12, 12, "per()"), (offer,)), text, 6, selected, AUTOMATIC)
        assert got.insert_text == item, entry
        assert got.range == (span if entry == "sum" else types.Range(span.end, span.end))


def session() -> Session:
    return Session(Workspace(Settings()), lambda *_: ScriptedEngine(Fill("None")), lambda _: None)


@pytest.mark.parametrize("overtake", ["changed", "closed", "newest"])
def test_work_that_ends_in_the_moment_in_which_it_is_overtaken_has_no_result(overtake: str) -> None:
    async def scenario() -> None:
        open_session, done = session(), asyncio.get_running_loop().create_future()

        async def work() -> str:
            return str(await done)

        asking = asyncio.ensure_future(open_session.newest("a", work()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done.set_result("old text")
        await asyncio.sleep(0)
        # The work has its result, which nobody has looked at yet.
        if overtake == "newest":
            newer = asyncio.sleep(0, "new text")
            assert await open_session.newest("a", newer) == "new text"
        else:
            getattr(open_session, overtake)("a")
        with pytest.raises(Superseded):
            await asking

    asyncio.run(scenario())


def test_a_key_is_waited_for_while_keys_come_faster_than_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("dg_lsp.server.session.time", SimpleNamespace(monotonic=lambda: now[0]))
    document = Document(URI, "python", 1, b"x = ")

    def answer(_: Infill) -> Fill:
        now[0] += 0.4
        return Fill("None")

    def pauses(keys: tuple[float, ...], most: int = 250, **can: bool) -> list[float]:
        waits = []
        for key in keys:
            now[0] += key
            snapshot = Snapshot(document, Settings(debounce=most), client=Capabilities(**can))
            waits.append(open_session.trigger.pause(snapshot, 4))
        return waits

    async def scenario() -> None:
        # Nothing is known yet of how long fills take.
        assert pauses((1.0, 0.1)) == [0, 0]
        for _ in range(3):
            await open_session.fill(
                document, find_gap(document, 4), Settings(), FillOptions(priority="ghost")
            )
        assert pauses((1.0, 0.1, 0.3, 0.5)) == pytest.approx([0, 0.1, 0.1, 0])
        assert pauses((1.0, 0.1), 20) == [0, 0.02]
        assert pauses((1.0, 0.1), 20, debounces=True) == pauses((1.0, 0.1), 0) == [0, 0]

    open_session = Session(Workspace(Settings()), lambda *_: ScriptedEngine(answer), lambda _: None)
    open_session.trigger = Trigger(lambda: now[0])
    asyncio.run(scenario())


def test_an_item_has_its_pairs_in_utf16_for_a_client_that_closes_them() -> None:
    text = b"x = p"
    session = _Session(Edit(4, 5, "p('\N{GRINNING FACE}', [1])"))
    (item,) = asked(session, text, 5, pairs=True)
    assert item.insert_text == "('\N{GRINNING FACE}', [1])"
    assert item.pairs == [[0, 10, 11], [1, 4, 5], [7, 9, 10]]
    assert (
        strict_converter().unstructure(types.InlineCompletionList([item]))["items"][0]["pairs"] == item.pairs
    )
    (item,) = asked(session, text, 5)
    assert item.pairs is None
    assert "pairs" not in strict_converter().unstructure(types.InlineCompletionList([item]))["items"][0]


def test_a_bracket_that_was_typed_is_no_pair_of_the_item() -> None:
    (item,) = asked(_Session(Edit(4, 6, "p(a[0])")), b"x = p(", 6, pairs=True)
    assert (item.insert_text, item.pairs) == ("a[0])", [[1, 3, 4]])


def test_lines_of_an_item_end_at_one_unit() -> None:
    (item,) = asked(_Session(Edit(4, 4, "[\r\n    1,\r\n]")), b"x = ", 4, pairs=True)
    assert (item.insert_text, item.pairs) == ("[\n    1,\n]", [[0, 9, 10]])
