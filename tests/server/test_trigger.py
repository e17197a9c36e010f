"""When ghost text is not wanted: each rule, its reason, and the next key that ends the silence."""

import asyncio
from typing import Any

import pytest
from lsprotocol import types

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.messages import Fill
from dg_lsp.server.app import make_context
from dg_lsp.server.documents import Documents
from dg_lsp.server.handlers import documents as handler
from dg_lsp.server.handlers.inline_completion import inline_completion
from dg_lsp.server.offers import Offers
from dg_lsp.server.rpc.protocol import Server
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.trigger import Trigger, opens
from dg_lsp.settings import Settings

URI, OTHER = "file:///w/shop.py", "file:///w/cart.py"
TEXT = "def total(items):\n    count = len(items)\n    size = max(items) \n\nx = 1\n"
AWAY, END = (4, 5), (2, 22)
Place = tuple[int, int]


class Typist:
    """Somebody who types at `at` in an editor; each action returns why nothing is offered after it, or ""."""

    def __init__(self) -> None:
        self.now = 0.0
        self.documents, self.trigger, self.at = Documents(), Trigger(lambda: self.now), END
        for uri in (URI, OTHER):
            self.documents.open(uri, "python", 1, TEXT)

    def change(self, *changes: tuple[Place, Place, str], offered: tuple[str, ...] = ()) -> str:
        """Replace texts in one notification, and go after the last of them."""
        edits = [((start, end), text) for start, end, text in changes]
        self.documents.change(URI, 2, edits)
        self.trigger.changed(URI, edits, self.documents, offered)
        (start, _), text = edits[-1]
        *above, last = text.split("\n")
        self.at = (start[0] + len(above), len(last.encode("utf-16-le")) // 2 + (0 if above else start[1]))
        return self.ask()

    def type(self, text: str) -> str:
        """Type a text key by key; why nothing is offered after the last one."""
        return [self.change((self.at, self.at, key)) for key in text][-1]

    def paste(self, text: str, **how: Any) -> str:
        return self.change((self.at, self.at, text), **how)

    def erase(self) -> str:
        line, column = self.at
        return self.change(((line, column - 1), (line, column), ""))

    def ask(self, at: Place | None = None, uri: str = URI) -> str:
        document, (line, column) = self.documents.snapshot(uri), at or self.at
        assert document is not None
        cursor = document.offset(line, column, "utf-16")
        return self.trigger.silence(Snapshot(document, Settings()), cursor)

    def pauses(self, text: str, pace: float) -> list[float]:
        """Type a text, `pace` seconds a key, and ask after each; the seconds that the requests wait."""
        found = []
        for key in text:
            self.now += pace
            self.type(key)
            document = self.documents.snapshot(URI)
            assert document is not None
            cursor = document.offset(*self.at, "utf-16")
            found.append(round(self.trigger.pause(Snapshot(document, Settings()), cursor), 3))
        return found


def test_within_a_word_a_request_waits_a_little_longer_than_the_next_key_takes() -> None:
    typist = Typist()
    # Of a user whose pace is not known, and at the beginning of a word, nobody waits.
    assert typist.pauses("+ abc", 0.1) == [0.0] * 4 + [0.15]
    assert typist.pauses(" size", 0.1) == [0.0, 0.0, 0.15, 0.15, 0.15]
    assert typist.pauses(" size", 0.3)[-1] <= 0.3
    # A break is no pace, and after a move nothing is known.
    assert typist.pauses("s", 60.0)[-1] <= 0.3
    typist.at = AWAY
    assert typist.pauses("23", 0.1) == [0.0, 0.0]


def test_nothing_is_offered_in_a_file_that_was_not_edited() -> None:
    typist = Typist()
    # Before anything was typed anywhere, the client may be no editor.
    assert not typist.ask(uri=OTHER)
    typist.type("+ ")
    assert "nothing was typed in this file" in typist.ask(uri=OTHER)
    typist.documents.open("file:///w/new.py", "python", 1, "\n")
    assert not typist.ask((0, 0), "file:///w/new.py")
    typist.trigger.closed(URI)
    assert "nothing was typed in this file" in typist.ask()


def test_one_erased_character_is_silence_and_three_are_not() -> None:
    typist = Typist()
    typist.type("+ count - ")
    assert "erased" in typist.erase() and "erased" in typist.erase()
    assert not typist.erase()
    assert not typist.type("t")
    assert "erased" in typist.erase()


def test_a_deletion_is_silence_until_something_is_typed_unless_something_must_follow() -> None:
    typist = Typist()
    typist.type("+ x")
    assert "deleted" in typist.change(((2, 12), (2, 21), ""))
    assert not typist.type("m")
    # After an opening bracket one more key is not awaited, nor in a new line.
    assert not typist.change(((1, 16), (1, 21), ""))
    assert not typist.change(((1, 4), (1, 17), ""))


def test_a_paste_is_silence_and_an_entry_of_a_menu_is_not_nor_taken_text() -> None:
    typist = Typist()
    assert "pasted" in typist.paste("+ count * size")
    assert not typist.type("x")
    assert not typist.paste("items.keys()")
    assert not typist.paste("\n    ")
    assert not typist.paste("count * size", offered=("total = count * size + 1",))
    assert not typist.paste("y:\r\n    pass", offered=("if y:\n    pass",))
    assert not typist.paste("🙂") and not typist.paste("()")


def test_an_undo_and_its_redo_are_silence() -> None:
    typist = Typist()
    typist.type("+ 1 +")
    before = typist.at
    typist.paste(" count * size")
    assert "undone" in typist.change((before, typist.at, ""))
    assert "undone" in typist.change((before, before, " count * size"))
    assert not typist.type("+")


def test_the_same_text_again_by_single_keys_is_no_undo() -> None:
    typist = Typist()
    typist.type("+ abc")
    for _ in range(3):
        typist.erase()
    assert not typist.ask()
    assert not typist.type("abc")


def test_a_move_is_silence_unless_something_must_follow() -> None:
    typist = Typist()
    typist.type("+ x")
    assert "not at the last change" in typist.ask(AWAY)
    assert not typist.ask()
    assert not typist.ask((1, 12)) and not typist.ask((3, 0))


def test_several_cursors_are_all_at_the_last_change() -> None:
    typist = Typist()
    assert not typist.change((END, END, "+"), (AWAY, AWAY, "+"))
    assert not typist.ask((2, 23))


def test_a_client_that_sends_whole_texts_is_answered_as_before() -> None:
    typist = Typist()
    typist.type("+ x")
    typist.documents.change(URI, 9, [(None, TEXT)])
    typist.trigger.changed(URI, [(None, TEXT)], typist.documents)
    assert not typist.ask(AWAY)


def test_a_dismissed_text_is_silence_until_something_else_is_typed() -> None:
    typist, offers = Typist(), Offers()

    def is_silent() -> bool:
        document = typist.documents.snapshot(URI)
        assert document is not None
        return offers.continues_dismissed(document, document.offset(*typist.at, "utf-16"))

    typist.type("+ ")
    document = typist.documents.snapshot(URI)
    assert document is not None
    offers.dismiss(document, document.offset(*typist.at, "utf-16"), "items")
    # Another text may still be offered at the very place.
    assert not is_silent()
    for key in "item":
        typist.type(key)
        assert is_silent()
    typist.type("+")
    assert not is_silent()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        *(("f(", True), ("x = ", True), ("x =", True), ("    return ", True), ("    ", True), ("", True)),
        *(("[1, ", True), ("x == ", False), ("x <= ", False), ("returned ", False), ("f(a", False)),
    ],
)
def test_a_place_where_something_must_follow(line: str, expected: bool) -> None:
    data = f"first\n{line}".encode()
    assert opens(data, len(data)) is expected


def test_silence_asks_no_engine_and_has_its_reason_in_the_status() -> None:
    async def work() -> None:
        engine, server = ScriptedEngine(Fill("1", chance=0.9)), Server("dg-lsp", "1")
        context = make_context(server, Settings(), lambda *_: engine)
        list(server.protocol.lsp_initialize(types.InitializeParams(types.ClientCapabilities())))
        context.workspace.documents.open(URI, "python", 1, TEXT)
        event = types.TextDocumentContentChangePartial(
            range=types.Range(types.Position(4, 4), types.Position(4, 5)), text=""
        )
        context.workspace.documents.change(URI, 2, [(((4, 4), (4, 5)), "")])
        version = types.VersionedTextDocumentIdentifier(2, URI)
        await handler.did_change(context, types.DidChangeTextDocumentParams(version, [event]))

        async def asked(place: Place, kind: int) -> int:
            how = types.InlineCompletionContext(types.InlineCompletionTriggerKind(kind))
            params = types.InlineCompletionParams(
                how, types.TextDocumentIdentifier(URI), types.Position(*place)
            )
            return len((await inline_completion(context, params)).items)

        assert await asked((2, 21), 2) == 0
        assert context.board.last is not None and "erased" in context.board.last.why
        assert not engine.requests
        # After `=` there is a text.
        assert await asked((4, 4), 2) == 1 and len(engine.requests) == 1

    asyncio.run(work())


def test_a_notification_without_changes_is_no_action() -> None:
    typist = Typist()
    typist.type("n")
    before = typist.ask()
    for version in (3, 4, 5):
        typist.documents.change(URI, version, [])
        typist.trigger.changed(URI, [], typist.documents)
        assert typist.ask() == before
