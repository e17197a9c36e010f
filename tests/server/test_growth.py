"""Ghost text that grows while one looks at it: it begins with what is shown, or the client hears nothing."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from lsprotocol import types

from dg_lsp.engine.power import on_battery
from dg_lsp.filling.offers import Offer
from dg_lsp.gaps.gap import Gap
from dg_lsp.messages import Fill
from dg_lsp.server.handlers import inline_completion
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.workspace import Workspace
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from tests.server.test_app import Start, changed, ghost, inline, opened, quick, start  # noqa: F401
from tests.server.wire import NoMessage, Wire

GROWS = {"experimental": {"dgLsp": {"grows": True}}}
ABOVE = "def f(total, count):\n    # says: share = total / count\n    # then: rest = total % count⏎return share, rest\n"
SHARE, REST, BACK = "share = total / count", "\n    rest = total % count", "\n    return share, rest"
AT = {"line": 3, "character": 4}


@pytest.fixture
def wire(start: Start) -> Iterator[Wire]:  # noqa: F811
    """A server whose client asks again, with the cursor on a line to be written."""
    yield typed(start(capabilities=GROWS))


def typed(wire: Wire) -> Wire:
    wire.send(changed(2, ABOVE + "    \n"))
    return wire


def text_at(wire: Wire, name: str, position: dict[str, int] = AT) -> str:
    return "".join(item["insertText"] for item in ghost(wire, name, position))


def grown(wire: Wire) -> None:
    wire.until("dg-lsp/grown", 20)


def says_nothing(wire: Wire) -> bool:
    """Whether the server says no more that a text has grown."""
    with pytest.raises(NoMessage):
        wire.until("dg-lsp/grown", 0.5)
    return True


def put(wire: Wire, version: int, position: dict[str, int], text: str) -> None:
    wire.send(changed(version, text, {"start": position, "end": position}))


def test_shown_text_grows_by_an_item_at_a_time_until_nothing_belongs_below(wire: Wire) -> None:
    assert text_at(wire, "first") == SHARE
    grown(wire)
    assert text_at(wire, "second") == SHARE + REST
    grown(wire)
    assert text_at(wire, "third") == SHARE + REST + BACK
    assert says_nothing(wire)
    assert text_at(wire, "last") == SHARE + REST + BACK


def test_a_key_that_agrees_keeps_what_has_grown_and_what_is_being_written(wire: Wire) -> None:
    text_at(wire, "first")
    put(wire, 3, AT, "sha")
    grown(wire)
    assert text_at(wire, "second", {"line": 3, "character": 7}) == (SHARE + REST)[3:]


def test_an_accepted_line_goes_on_with_the_lines_below_it(wire: Wire) -> None:
    text_at(wire, "first")
    put(wire, 3, AT, SHARE)
    grown(wire)
    assert text_at(wire, "second", {"line": 3, "character": 4 + len(SHARE)}) == REST
    # Also once Enter was typed.
    put(wire, 4, {"line": 3, "character": 4 + len(SHARE)}, "\n    ")
    assert text_at(wire, "third", {"line": 4, "character": 4}).startswith("rest = total % count")


def test_nothing_is_written_below_a_text_that_is_gone(start: Start) -> None:  # noqa: F811
    wire = typed(start("scripted:8:50", capabilities=GROWS))
    text_at(wire, "first")
    put(wire, 3, AT, "x = ")
    assert says_nothing(wire)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"capabilities": GROWS, "initializationOptions": {"prefetch": False}}, "nothing is written ahead"),
        ({}, "the client asks at each key as it is"),
    ],
)
def test_a_client_that_does_not_want_it_hears_nothing(
    start: Start,  # noqa: F811
    params: dict[str, Any],
    why: str,
) -> None:
    wire = typed(start(**params))
    assert text_at(wire, "first") == SHARE
    assert says_nothing(wire), why


@pytest.mark.parametrize(("plugged", "there"), [(False, True), (True, False), (None, False)])
def test_the_battery_is_what_the_system_says(
    monkeypatch: pytest.MonkeyPatch, plugged: bool | None, there: bool
) -> None:
    monkeypatch.setattr(
        psutil, "sensors_battery", lambda: SimpleNamespace(power_plugged=plugged), raising=False
    )
    assert on_battery() is there
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None)
    assert not on_battery()


def test_on_a_battery_nothing_is_written_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline_completion, "on_battery", lambda: True)
    begun: list[object] = []
    ahead = SimpleNamespace(grows=lambda _: False, begin=lambda *_: begun.append(1))
    document = Document("file:///a.py", "python", 1, b"x = ")
    fill = Fill("1", chance=0.5, grows=True)
    offer = Offer(document.uri, document.data, 4, 4, ("1",), fill, (), Gap(4, 4, "rest_of_line", ""))
    offers = SimpleNamespace(has_ended=lambda _: False)
    context: Any = SimpleNamespace(
        session=SimpleNamespace(ahead=ahead, offers=offers), workspace=Workspace(Settings()), client=None
    )
    inline_completion._grow(context, Snapshot(document, Settings()), offer, types.Position(0, 4))
    assert not begun


def test_a_client_that_is_told_nothing_gets_the_longer_text_at_its_next_key(start: Start) -> None:  # noqa: F811
    wire = typed(start())
    assert text_at(wire, "first") == SHARE
    end = time.monotonic() + 20
    while text_at(wire, f"again {time.monotonic()}") == SHARE and time.monotonic() < end:
        time.sleep(0.05)
    assert text_at(wire, "last").startswith(SHARE + REST)


def test_by_a_key_the_grown_text_stays_the_first_one(wire: Wire) -> None:
    assert text_at(wire, "first") == SHARE
    grown(wire)
    texts = [item["insertText"] for item in ghost(wire, "asked", AT, kind=1)]
    assert texts[0] == SHARE + REST and SHARE not in texts


def test_the_status_says_that_more_is_coming_until_nothing_more_does(start: Start) -> None:  # noqa: F811
    wire = typed(
        start("scripted:4:50", capabilities={"experimental": {"dgLsp": {"grows": True, "status": True}}})
    )

    def until(growing: bool) -> None:
        while wire.until("dg-lsp/status", 20)["params"]["growing"] is not growing:
            pass

    assert text_at(wire, "first") == SHARE
    until(growing=True)
    grown(wire)
    assert text_at(wire, "second") == SHARE + REST
    grown(wire)
    assert text_at(wire, "third") == SHARE + REST + BACK
    until(growing=False)


GO = "package a\n\n// says: if err != nil {⏎}\nfunc f() error {\n\terr := g()\n"
GO_URI = "file:///w/a.go"
GO_AT, GO_INSIDE = {"line": 5, "character": 1}, {"line": 6, "character": 2}


@pytest.mark.parametrize("goes", [True, False])
def test_a_client_that_goes_into_an_empty_block_gets_a_line_there_and_a_command(
    start: Start,  # noqa: F811
    goes: bool,
) -> None:
    wire = start(capabilities={"experimental": {"dgLsp": {"inside": goes}}})
    opened(wire, GO + "\n\treturn nil\n}\n", GO_URI, language="go")

    def insert(version: int, position: dict[str, int], text: str) -> None:
        message = changed(version, text, {"start": position, "end": position})
        message["params"]["textDocument"]["uri"] = GO_URI
        wire.send(message)

    def items(position: dict[str, int]) -> list[dict[str, Any]]:
        params = {**inline(position), "textDocument": {"uri": GO_URI}}
        answer = wire.ask(str(position), "textDocument/inlineCompletion", params)
        return answer["result"]["items"]  # type: ignore[no-any-return]

    insert(2, {"line": 5, "character": 0}, "\t")
    (item,) = items(GO_AT)
    assert item["insertText"] == ("if err != nil {\n\t\t\n\t}" if goes else "if err != nil {\n\t}")
    assert item.get("command", {}).get("command") == ("dg-lsp.inside" if goes else None)
    if goes:
        insert(3, GO_AT, item["insertText"])
        assert items(GO_INSIDE)
