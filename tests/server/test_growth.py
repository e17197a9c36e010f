"""Ghost text that grows while one looks at it: it begins with what is shown, or the client hears nothing."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.test_app import Start, changed, ghost, quick, start  # noqa: F401
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


def test_a_client_that_is_told_nothing_gets_the_longer_text_at_its_next_key(start: Start) -> None:  # noqa: F811
    wire = typed(start())
    assert text_at(wire, "first") == SHARE
    end = time.monotonic() + 20
    while text_at(wire, f"again {time.monotonic()}") == SHARE and time.monotonic() < end:
        time.sleep(0.05)
    assert text_at(wire, "last").startswith(SHARE + REST)


def test_a_key_asks_for_texts_of_their_own(wire: Wire) -> None:
    assert len(ghost(wire, "asked", AT, kind=1)) >= 1
    assert says_nothing(wire)
