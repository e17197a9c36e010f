"""Ghost text at places as an editor gets it: from the server, over the wire, with its deadlines."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from benchmarks.blocks.places import Place
from benchmarks.server import inline, opened, server, status, typed
from tests.server.wire import NoMessage, Wire, notification

_PATIENCE = 300.0  # seconds
_INDEXED = 1.0  # seconds in which the other files of a package are read
_INVOKED, _AUTOMATIC = 1, 2


@dataclass(frozen=True, slots=True)
class Answer:
    """The text offered after the cursor, the seconds that it took, and why there is none.

    grown: the text after it was looked at for a while.
    """

    text: str
    seconds: float
    why: str = ""
    grown: str = ""


def answers(
    places: Sequence[Place], situation: str, checkpoint: str, options: dict[str, Any], look: float = 0.0
) -> Iterator[tuple[Place, Answer]]:
    """Yield the answer at each of `places`; a server is started for each package, with the settings `options`.

    look: seconds in which shown text may grow. No answer comes from an offer of another situation, as each
    has servers of its own.
    """
    ordered = sorted(places, key=lambda place: str(place.root))
    for root, group in groupby(ordered, key=lambda place: place.root):
        folder = {"uri": root.as_uri(), "name": root.name}
        wire = server(
            checkpoint,
            rootUri=folder["uri"],
            workspaceFolders=[folder],
            initializationOptions=options,
            capabilities={"experimental": {"dgLsp": {"grows": True}}},
        )
        try:
            for number, place in enumerate(group):
                session = _Session(wire, place, f"{situation} {number}")
                yield place, session.answer(situation, look, settle=_INDEXED if not number else 0.0)
        finally:
            wire.__exit__()


class _Session:
    """An editor that has the file of a place open, types up to it, and asks."""

    def __init__(self, wire: Wire, place: Place, name: str) -> None:
        self._wire, self._place, self._name = wire, place, name
        self._uri, self._version, self._line = place.path.as_uri(), 1, place.above.count("\n")

    def answer(self, situation: str, look: float, settle: float) -> Answer:
        """Return the answer in a situation, and what it becomes while one looks at it for `look` seconds.

        1. Open the file as it is before Enter, and ask at the end of the line above, as an editor does after its last
        key.  2. Type the line end and the indent, and the word letter by letter.  3. Ask, and time the answer.  4. Ask
        again as often as the server says that the text has got longer.
        """
        place, wire = self._place, self._wire
        # 1.
        opened(wire, place.above + place.below, 1, self._uri, place.language)
        column = len(place.above) - place.above.rfind("\n") - 1
        self._ask(self._line, column, _AUTOMATIC, "before")
        while status(wire)["state"] in ("starting", "loading"):
            time.sleep(0.2)
        if settle:
            time.sleep(settle)
            self._ask(self._line, column, _AUTOMATIC, "again")
        # 2.
        word = place.word if situation == "word" else ""
        self._type(self._line, column, "\n" + place.indent)
        for number, letter in enumerate(word, len(place.indent)):
            self._type(self._line + 1, number, letter)
        written = place.indent + word
        # 3.
        began = time.perf_counter()
        kind = _INVOKED if situation == "key" else _AUTOMATIC
        reply = self._ask(self._line + 1, len(written), kind, "measured")
        taken = time.perf_counter() - began
        text = grown = self._text(written, reply)
        last = status(wire)["last"] or {}
        # 4.
        until, count = time.monotonic() + look, 0
        while text and look and self._has_grown(until):
            count += 1
            grown = self._text(written, self._ask(self._line + 1, len(written), _AUTOMATIC, f"grown {count}"))
        wire.send(notification("textDocument/didClose", {"textDocument": {"uri": self._uri}}))
        return Answer(text, taken, "" if text else last.get("why", ""), grown)

    def _text(self, written: str, reply: dict[str, Any]) -> str:
        """Return the text that `reply` offers after what was `written`."""
        items = (reply.get("result") or {}).get("items", [])
        return inserted(self._place.above + "\n" + written, self._place.below, items[0]) if items else ""

    def _has_grown(self, until: float) -> bool:
        """Return whether the server says so before the moment `until`."""
        try:
            self._wire.until("dg-lsp/grown", max(until - time.monotonic(), 0.01))
        except NoMessage:
            return False
        return True

    def _ask(self, line: int, column: int, kind: int, name: str) -> dict[str, Any]:
        about = inline(line, column, kind, self._uri)
        return self._wire.ask(f"{self._name} {name}", "textDocument/inlineCompletion", about, _PATIENCE)

    def _type(self, line: int, column: int, text: str) -> None:
        self._version += 1
        typed(self._wire, self._uri, self._version, (line, column), text)


def inserted(before: str, after: str, item: dict[str, Any]) -> str:
    """Return what follows the text `before` the cursor once an inline item is accepted, up to the text that it leaves.

    The texts are ASCII, so that columns are characters. An item may replace text on both sides of the cursor.
    """
    text, cursor = before + after, len(before)
    start, end = (_offset(text, item["range"][name]) for name in ("start", "end"))
    changed = text[:start] + str(item["insertText"]) + text[end:]
    if not changed.startswith(before):
        return ""
    return changed[cursor : len(changed) - (len(text) - end)]


def _offset(text: str, position: dict[str, int]) -> int:
    """Return the offset of a position in `text`."""
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: position["line"]]) + position["character"]
