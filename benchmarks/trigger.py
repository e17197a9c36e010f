"""Typing sessions with and without the rules of the trigger: requests that they save, and taken texts that they lose.

    python -m benchmarks.trigger [--sessions N] [--places N]

A session types lines of a real file again that were cut out of it: by single keys, with typing errors, second thoughts,
pastes, undos, and looks at other places. It is made twice from the same seed, once with the rules. The editor asks
after each change and when Insert mode begins, but not while one types what it shows. A part of the requests gets the
rest of the line and another part a wrong text, drawn for each place. Nobody has recorded how often people do all this:
the shares and paces are at the top of the file.
"""

import math
import random
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import parser_of
from dg_lsp.server.documents import Change, Documents
from dg_lsp.server.offers import Offers
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.server.trigger import Trigger
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document

_ROOT = Path(__file__).parents[1]
_LINES = 4  # lines of a place at most
# The shares of requests that get the right text and a wrong one.
_RIGHT, _WRONG = 0.1, 0.3
# The shares of right texts that are taken and not typed through, and of wrong ones that are dismissed.
_TAKEN, _DISMISSED = 0.7, 0.15
# At the beginning of a word: a typing error; the characters before it written again.
_ERROR, _AGAIN = 0.08, 0.04
# Before a place: looks into Insert mode elsewhere, at another file, a paste that is taken back; behind it an undo.
_LOOK, _OTHER, _PASTE, _UNDO = 0.6, 0.3, 0.3, 0.3
_LEAST = 3  # characters that are worth a key
# Seconds from key to key, within a word and elsewhere: the usual ones, their spread, and the share of those that are no
# break. A text that is shown for less time than _SEEN is not seen.
_PACES = {True: (0.13, 0.35, 0.92), False: (0.2, 0.4, 0.7)}
_SEEN = 0.3
_OWN, _ELSEWHERE = "file:///w/own.py", "file:///w/elsewhere.py"
Place = tuple[object, ...]


class Deaf(Trigger):
    """A trigger without rules."""

    def pause(self, *_: Any) -> float:
        """Return no seconds."""
        return 0.0

    def silence(self, *_: Any) -> str:
        """Return no reason."""
        return ""


class Drawn:
    """An editor whose answers are drawn. listens: with the rules. silent: the reasons for silence, counted."""

    def __init__(self, name: str, *, listens: bool) -> None:
        self.documents, self.offers, self.now = Documents("utf-32"), Offers(), 0.0
        self.trigger = (Trigger if listens else Deaf)(lambda: self.now)
        self._name, self._listens = name, listens
        self.sent, self.silent = 0, Counter[str]()

    def open(self, uri: str, text: str) -> None:
        """Open a document."""
        self.documents.open(uri, "python", 1, text)

    def change(self, change: Change, offered: tuple[str, ...]) -> None:
        """Change the document; `offered` is the text that was taken by that, if one was."""
        self.documents.change(_OWN, 1, [change])
        self.trigger.changed(_OWN, [change], self.documents, offered)

    def ask(self, uri: str, at: int, rest: str, place: Place, pace: float = 1.0) -> str:
        """Ask for ghost text; return the text that is offered and seen, "" without one.

        rest: the text to be typed; pace: the seconds until its next key.
        """
        self.sent, self.now = self.sent + 1, self.now + pace
        document, cursor = self._at(uri, at)
        why = "the text before the cursor begins a dismissed one"
        snapshot = Snapshot(document, Settings(), "utf-32")
        if not (self._listens and self.offers.continues_dismissed(document, cursor)):
            why = self.trigger.silence(snapshot, cursor)
        if why:
            self.silent[why] += 1
            return ""
        if self.trigger.pause(snapshot, cursor) > pace:
            self.silent["the next letter of the word came before it"] += 1
            return ""
        return answer(self._name, rest, place) if pace > _SEEN else ""

    def dismiss(self, at: int, text: str) -> None:
        """Dismiss the text that is offered."""
        self.offers.dismiss(*self._at(_OWN, at), text)

    def _at(self, uri: str, at: int) -> tuple[Document, int]:
        document = self.documents.snapshot(uri)
        assert document is not None
        return document, len(document.text[:at].encode())


@dataclass
class Session:
    """One session with a file. text: the document now. taken: (number of the place, begin, end) of each taken text."""

    name: str
    text: str
    editor: Drawn
    places: int
    taken: list[tuple[int, int, int]] = field(default_factory=list)

    def play(self) -> "Session":
        """Do the whole session: cut the places out from the last to the first, and type them again the other way."""
        regions = list(_regions(self.name, self.text, self.places))
        wanted = [self.text[start:end] for start, end in regions]
        for start, end in regions:
            self.text = self.text[:start] + self.text[end:]
        for uri in (_OWN, _ELSEWHERE):
            self.editor.open(uri, self.text)
        for number, ((start, _), lines) in reversed([*enumerate(zip(regions, wanted, strict=True))]):
            self._before(number, start)
            # Insert mode begins at the end of a line, and the first key is Enter or continues the line.
            self.editor.ask(_OWN, start, "" if lines.startswith("\n") else lines, (number, 0))
            self._type(number, start, lines)
            self._behind(number, start + len(lines))
        return self

    def _before(self, number: int, start: int) -> None:
        """Look around, and paste something that is then taken back."""
        for look in range(3):
            if self._draw(number, "look", look) < _LOOK:
                self.editor.ask(_OWN, int(self._draw(number, look) * len(self.text)), "", (number, look))
        if self._draw(number, "other") < _OTHER:
            self.editor.ask(_ELSEWHERE, int(self._draw(number, "at") * len(self.text)), "", (number, "other"))
        if self._draw(number, "paste") < _PASTE:
            pasted = "\n" + self.text[max(start - 60, 0) : start].strip().replace("\n", " ")
            self._change(start, start, pasted, (number, "pasted"))
            self._change(start, start + len(pasted), "", (number, "unpasted"))

    def _behind(self, number: int, end: int) -> None:
        """Undo what was typed last, and redo it."""
        if self._draw(number, "undo") < _UNDO:
            gone = self.text[end - 12 : end]
            self._change(end - 12, end, "", (number, "undone"))
            self._change(end - 12, end - 12, gone, (number, "redone"))

    def _type(self, number: int, start: int, lines: str) -> None:
        """Type `lines` at `start`, with errors, second thoughts, and the texts that are offered."""
        done, shown, again = 0, "", set[int]()
        while done < len(lines):
            place = (number, done)
            if lines[done].isalpha() and not lines[done - 1 : done].isalnum() and done not in again:
                again.add(done)
                if self._draw(*place, "error") < _ERROR:
                    self._err(start + done, place)
                    shown = ""
                elif done > 8 and self._draw(*place, "again") < _AGAIN:
                    done, shown = self._rethink(number, start, done, lines), ""
                    continue
            key = lines[done]
            if key == "\n":
                key += lines[done + 1 :][: len(lines[done + 1 :]) - len(lines[done + 1 :].lstrip(" "))]
            shown = shown[len(key) :] if shown.startswith(key) else ""
            self._edit(start + done, start + done, key)
            done += len(key)
            if not shown:
                pace = self._pace(number, done, lines)
                offered = self.editor.ask(_OWN, start + done, lines[done:], (number, done), pace)
                shown, length = self._offered(number, (start, done), offered, lines[done:])
                done += length

    def _offered(self, number: int, at: tuple[int, int], offered: str, rest: str) -> tuple[str, int]:
        """Take an offered text, or not; return what is still shown, and how many characters were taken."""
        start, done = at
        if not rest.startswith(offered) or len(offered) < _LEAST:
            if offered and self._draw(number, done, "dismissed") < _DISMISSED:
                self.editor.dismiss(start + done, offered)
                return "", 0
            return offered, 0
        if self._draw(number, done, "taken") >= _TAKEN:
            return offered, 0
        end = done + len(offered)
        self.taken.append((number, done, end))
        self._edit(start + done, start + done, offered, (offered,))
        self.editor.ask(_OWN, start + end, "", (number, end, "behind"))
        return "", len(offered)

    def _pace(self, number: int, done: int, lines: str) -> float:
        """Draw the seconds until the next key of `lines`."""
        usual, spread, share = _PACES[lines[done - 1 : done + 1].isalnum()]
        drawn = random.Random(f"{self.name} {number} {done} pace")
        return (
            drawn.lognormvariate(math.log(usual), spread) if drawn.random() < share else drawn.uniform(0.5, 3)
        )

    def _err(self, at: int, place: tuple[int, int]) -> None:
        """Type some wrong characters, and erase them."""
        wrong = "qxz"[: 1 + int(self._draw(*place, "many") * 3)]
        for n, key in enumerate(wrong):
            self._change(at + n, at + n, key, (*place, "wrong", n))
        for n in reversed(range(len(wrong))):
            self._change(at + n, at + n + 1, "", (*place, "erased", n))

    def _rethink(self, number: int, start: int, done: int, lines: str) -> int:
        """Erase some characters key by key, or at once; return how many are left."""
        head = done - len(lines[:done].rsplit("\n", 1)[-1].lstrip())
        left = max(done - 3 - int(self._draw(number, done, "back") * 10), head)
        if self._draw(number, done, "at once") < 0.3:
            self._change(start + left, start + done, "", (number, done, "cut"), lines[left:])
        else:
            for n in reversed(range(left, done)):
                # Only behind the last one is the place from which it is written again.
                wanted = lines[n:] if n == left else ""
                self._change(start + n, start + n + 1, "", (number, done, "back", n), wanted)
        return left

    def _change(self, start: int, end: int, new: str, place: Place, rest: str = "") -> None:
        """Replace a part of the text, and ask behind it."""
        self._edit(start, end, new)
        self.editor.ask(_OWN, start + len(new), rest, place)

    def _edit(self, start: int, end: int, new: str, offered: tuple[str, ...] = ()) -> None:
        span = _position(self.text, start), _position(self.text, end)
        self.text = self.text[:start] + new + self.text[end:]
        self.editor.change((span, new), offered)

    def _draw(self, *place: object) -> float:
        return draw(self.name, *place)


def draw(name: str, *place: object) -> float:
    """Draw a number from 0 to 1, the same one for the same place in both sessions with the file `name`."""
    return random.Random(f"{name} {place}").random()


def answer(name: str, rest: str, place: Place) -> str:
    """Draw the text that is offered at a place of the file `name` where `rest` will be typed."""
    drawn, line = draw(name, *place, "answer"), rest.split("\n", 1)[0]
    if len(line) >= _LEAST and drawn < _RIGHT:
        return line
    return "result" if drawn > 1 - _WRONG else ""


def lost(quiet: Session, loud: Session) -> int:
    """Count the texts that were taken in `loud` and of which nothing was taken in `quiet`."""
    return sum(
        not any(place == other and begin < stop and start < end for other, start, stop in quiet.taken)
        for place, begin, end in loud.taken
    )


def files() -> list[Path]:
    """Return every third file of the extension, and files of the standard library."""
    library = Path(sysconfig.get_path("stdlib"))
    own = sorted((_ROOT / "editors/vscode/src").glob("*.ts"))[::3]
    found = [*sorted(library.glob("*.py")), *sorted(library.glob("*/*.py"))]
    random.Random(0).shuffle(found)
    return [file for file in [*own, *found] if 4_000 < file.stat().st_size < 40_000]


def _regions(name: str, text: str, most: int) -> Iterator[tuple[int, int]]:
    """Yield `most` places of a text, the last one first: whole lines behind a line's end, or from within a line."""
    chance, lines = random.Random(name), text.split("\n")
    starts = sorted(chance.sample(range(10, len(lines) - 10), min(most * 3, len(lines) - 20)), reverse=True)
    last, count = len(lines), 0
    for first in starts:
        size = chance.randint(1, _LINES)
        if first + size + 1 >= last or not all(lines[n].strip() for n in range(first, first + size + 1)):
            continue
        start = len("\n".join(lines[:first])) + (0 if chance.random() < 0.7 else 1 + len(lines[first]) // 2)
        yield start, len("\n".join(lines[: first + size]))
        last, count = first, count + 1
        if count == most:
            return


def _position(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at), at - (text.rfind("\n", 0, at) + 1)


def pairs(sessions: int, places: int) -> Iterator[tuple[Session, Session]]:
    """Yield the sessions with each file: without the rules, and with them."""
    for file in files()[:sessions]:
        text = file.read_text(encoding="utf-8")
        editors = [Drawn(file.name, listens=listens) for listens in (False, True)]
        loud, quiet = (Session(file.name, text, editor, places).play() for editor in editors)
        assert quiet.text == loud.text == text, "both have typed the file"
        yield loud, quiet


def main() -> None:
    """Play the sessions, and print the sums."""
    parser = parser_of(__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--places", type=int, default=12, help="places of a file that are typed again")
    arguments = parser.parse_args()
    asked, saved, taken, gone, reasons = 0, 0, 0, 0, Counter[str]()
    for loud, quiet in pairs(arguments.sessions, arguments.places):
        before, after = (one.sent - one.silent.total() for one in (loud.editor, quiet.editor))
        print(
            f"{loud.name:24} {loud.editor.sent:5} requests, {before:5} served; with the rules {after:5}; "
            f"{len(loud.taken):3} texts taken, with the rules {len(quiet.taken):3}",
            flush=True,
        )
        asked, saved = asked + before, saved + before - after
        taken, gone = taken + len(loud.taken), gone + lost(quiet, loud)
        reasons += quiet.editor.silent
    print(
        f"saved {saved} of {asked} requests ({saved / asked:.1%}); lost {gone} of {taken} texts ({gone / taken:.1%})"
    )
    for why, count in reasons.most_common(12):
        print(f"  {count:5} {why}")


if __name__ == "__main__":
    main()
