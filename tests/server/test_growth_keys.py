"""Random keys in front of ghost text that grows: text once shown only grows or goes (law 16)."""

import os
import random
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.server.test_app import Start, changed, ghost, quick, start  # noqa: F401
from tests.server.test_growth import ABOVE, BACK, GROWS, REST, SHARE
from tests.server.wire import NoMessage, Wire

SCRIPTS = int(os.environ.get("DG_LSP_SCRIPTS", "12"))
KEYS = ("agree", "agree", "word", "line", "all", "other", "erase", "enter", "look", "look", "look")
LINE, INDENT = ABOVE.count("\n"), "    "
ALL = SHARE + REST + BACK


@dataclass
class Person:
    """A client that asks after each key if `eager`, as VS Code does; else only where nothing is shown, as Neovim does.

    typed: the text from the gap to the cursor. offer: what was typed when the newest text was offered, and that text;
    base: how much of it was typed.
    """

    wire: Wire
    eager: bool
    version: int = 1
    typed: str = ""
    offer: str = ""
    base: int = 0
    erased: bool = False
    asked: int = 0
    wrong: list[str] = field(default_factory=list)
    grown: int = 0

    def begin(self) -> None:
        """Begin again with an empty line."""
        self.version, self.typed, self.offer, self.erased = self.version + 1, "", "", False
        # Another text each time: one that was there before has come back by an undo, after which nothing is offered.
        self.wire.send(changed(self.version, f"{ABOVE}{INDENT}\n\n\nlimit = {self.version}\n"))
        self.ask()

    @property
    def rest(self) -> str:
        """What is shown after the cursor; nothing once a letter is gone that was there when it was offered."""
        agrees = self.offer.startswith(self.typed) and len(self.typed) >= self.base
        return self.offer[len(self.typed) :] if agrees else ""

    @property
    def place(self) -> dict[str, int]:
        line = (INDENT + self.typed).split("\n")[-1]
        return {"line": LINE + self.typed.count("\n"), "character": len(line)}

    def ask(self) -> None:
        """Ask, and compare the answer with what is shown."""
        self.asked += 1
        before, name = self.rest, f"{self.version} {self.asked}"
        items = ghost(self.wire, name, self.place)
        text = items[0]["insertText"] if items else ""
        if self.erased and not text:
            return  # the server is silent after an erasing key, and the text that is shown stays
        if not text.startswith(before):
            self.wrong.append(f"behind {self.typed!r}: {before!r} became {text!r}")
        self.grown += bool(before) and len(text) > len(before)
        self.offer, self.base = self.typed + text, len(self.typed)

    def look(self, seconds: float) -> None:
        """Look at the text, and ask again when the server says that it is longer."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self.wire.until("dg-lsp/grown", left)
            except NoMessage:
                return
            self.ask()

    def type(self, text: str) -> None:
        at = self.place
        self.typed += text
        self._change({"start": at, "end": at}, text)

    def erase(self) -> None:
        end = self.place
        self.typed = self.typed[:-1]
        self._change({"start": self.place, "end": end}, "")

    def _change(self, span: Any, text: str) -> None:
        self.version, self.erased = self.version + 1, not text
        self.wire.send(changed(self.version, text, span))
        if self.eager or not self.rest:
            self.ask()

    def press(self, key: str, chance: random.Random) -> None:
        """Press a key; one that takes ghost text is an agreeing one where there is none."""
        line_end = self.rest.find("\n", 1)
        pieces = {
            "agree": self.rest[: chance.randint(1, 3)],
            "word": self.rest[: chance.randint(2, 9)],
            "line": self.rest[:line_end] if line_end > 0 else self.rest,
            "all": self.rest,
            "other": chance.choice("xyz"),
            "enter": "\n" + INDENT,
        }
        if key == "look":
            self.look(chance.choice((0.05, 0.2, 0.4)))
        elif key == "erase" and self.typed and not self.typed.endswith("\n" + INDENT):
            self.erase()
        else:
            self.type(pieces.get(key) or chance.choice("xyz"))


@pytest.mark.parametrize("eager", [True, False], ids=["asks at each key", "asks where nothing is shown"])
@pytest.mark.parametrize("engine", ["scripted:1:1", "scripted:4:15"])
def test_text_once_shown_only_grows_or_goes(start: Start, engine: str, eager: bool) -> None:  # noqa: F811
    person = Person(start(engine, capabilities=GROWS), eager)
    for seed in range(SCRIPTS):
        person.begin()
        chance = random.Random(seed)
        for key in chance.choices(KEYS, k=8):
            person.press(key, chance)
    print(f"{SCRIPTS} scripts, {person.asked} answers, {person.grown} longer, {len(person.wrong)} wrong")
    assert not person.wrong, "\n".join(person.wrong)
    assert person.grown >= SCRIPTS // 4, "nothing was tested"


def test_all_that_is_taken_bit_by_bit_is_what_was_shown(start: Start) -> None:  # noqa: F811
    person = Person(start("scripted:2:10", capabilities=GROWS), eager=False)
    for seed in range(SCRIPTS):
        person.begin()
        chance = random.Random(seed)
        end = time.monotonic() + 30
        while person.typed != ALL and time.monotonic() < end:
            if person.rest and chance.random() < 0.6:
                person.press(chance.choice(("agree", "word", "line", "all")), chance)
            else:
                person.look(0.1)
        assert person.typed == ALL, seed
    assert not person.wrong, "\n".join(person.wrong)
