"""Typing sessions with and without the rules of the trigger: requests that they save, and taken texts that they lose.

    python -m benchmarks.trigger [--sessions N]

A session types lines of a real file again that were cut out of it: by single keys, with typing errors, second thoughts,
pastes, undos, and looks at other places. It is made twice from the same seed, once with the rules. The editor asks
after each change and when Insert mode begins, but not while one types what it shows. In the place of a model, a part
of the requests gets the rest of the line and another part a wrong text, drawn for each place. Nobody has recorded how
often people do all this: the shares are at the top of the file.
"""

import argparse
import random
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dg_lsp.server.documents import Documents
from dg_lsp.server.offers import Offers
from dg_lsp.server.trigger import Trigger
from dg_lsp.text.documents.document import Document

_ROOT = Path(__file__).parents[1]
_REGIONS, _LINES = 12, 4  # places of a session; lines of each at most
# The shares of requests that get the right text and a wrong one; of right ones that are taken and not typed through; of
# wrong ones that are dismissed.
_RIGHT, _WRONG, _TAKEN, _DISMISSED = 0.1, 0.3, 0.7, 0.15
# At the beginning of a word: a typing error; the characters before it written again.
_ERROR, _AGAIN = 0.08, 0.04
# Before a place: looks into Insert mode elsewhere, at another file, a paste that is edited away; behind it an undo.
_LOOK, _OTHER, _PASTE, _UNDO = 0.6, 0.3, 0.3, 0.3
_LEAST = 3  # characters that are worth a key
_OWN, _ELSEWHERE = "file:///own", "file:///elsewhere"


@dataclass
class Session:
    """One session with a file. listens: with the rules. text: the document now.

    sent: the requests. silent: those that the rules answered, by their reasons. taken: (place, begin, end) of each text
    that was taken.
    """

    name: str
    text: str
    listens: bool
    sent: int = 0
    silent: Counter[str] = field(default_factory=Counter)
    taken: list[tuple[int, int, int]] = field(default_factory=list)
    documents: Documents = field(default_factory=lambda: Documents("utf-32"))
    trigger: Trigger = field(default_factory=Trigger)
    offers: Offers = field(default_factory=Offers)

    def play(self) -> "Session":
        """Do the whole session: cut the places out from the last to the first, and type them again the other way."""
        regions = list(_regions(self.name, self.text))
        wanted = [self.text[start:end] for start, end in regions]
        for start, end in regions:
            self.text = self.text[:start] + self.text[end:]
        for uri in (_OWN, _ELSEWHERE):
            self.documents.open(uri, "python", 1, self.text)
        for number, ((start, _), lines) in reversed([*enumerate(zip(regions, wanted, strict=True))]):
            self._before(number, start)
            # Insert mode begins at the end of a line, and the first key is Enter or continues the line.
            self._request(start, None if lines.startswith("\n") else lines.split("\n")[0], (number, 0))
            self._type(number, start, lines)
            self._behind(number, start + len(lines))
        return self

    def _before(self, number: int, start: int) -> None:
        """Look around, and paste something that is then undone or erased."""
        for look in range(3):
            if self._draw(number, "look", look) < _LOOK:
                self._request(int(self._draw(number, look) * len(self.text)), None, (number, "look", look))
        if self._draw(number, "other") < _OTHER:
            self._request(int(self._draw(number, "at") * len(self.text)), None, (number, "other"), _ELSEWHERE)
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
            at, place = start + done, (number, done)
            if lines[done].isalpha() and not lines[done - 1 : done].isalnum() and done not in again:
                again.add(done)
                if self._draw(*place, "error") < _ERROR:
                    self._err(at, place)
                    shown = ""
                elif done > 8 and self._draw(*place, "again") < _AGAIN:
                    done, shown = self._rethink(number, start, done, lines), ""
                    continue
            key = lines[done]
            if key == "\n":
                key += lines[done + 1 :][: len(lines[done + 1 :]) - len(lines[done + 1 :].lstrip(" "))]
            done += len(key)
            follows = shown.startswith(key)
            shown = shown[len(key) :] if follows else ""
            rest = lines[done:].split("\n", maxsplit=1)[0]
            offered = self._change(at, at, key, (number, done), rest, asks=not shown)
            if not offered:
                continue
            if offered != rest:
                if self._draw(number, done, "dismissed") < _DISMISSED:
                    self.offers.dismiss(self._document(), start + done, offered)
            elif self._draw(number, done, "taken") < _TAKEN:
                self.taken.append((number, done, done + len(rest)))
                self._change(start + done, start + done, rest, (number, done, "behind"), "", (rest,))
                done += len(rest)
            else:
                shown = rest

    def _err(self, at: int, place: tuple[int, int]) -> None:
        """Type some wrong characters, and erase them."""
        wrong = "qxz"[: 1 + int(self._draw(*place, "many") * 3)]
        for n, key in enumerate(wrong):
            self._change(at + n, at + n, key, (*place, "wrong", n))
        for n in reversed(range(len(wrong))):
            self._change(at + n, at + n + 1, "", (*place, "erased", n))

    def _rethink(self, number: int, start: int, done: int, lines: str) -> int:
        """Erase some characters key by key, or at once; how many are left."""
        head = done - len(lines[:done].rsplit("\n", maxsplit=1)[-1].lstrip())
        left = max(done - 3 - int(self._draw(number, done, "back") * 10), head)
        if self._draw(number, done, "at once") < 0.3:
            self._change(start + left, start + done, "", (number, done, "cut"))
        else:
            for n in reversed(range(left, done)):
                # Who erases may stop at any place, and wants to go on there: the last one is where that is.
                rest = lines[n:].split("\n", maxsplit=1)[0] if n == left else None
                self._change(start + n, start + n + 1, "", (number, done, "back", n), rest)
        return left

    def _change(  # noqa: PLR0917
        self,
        start: int,
        end: int,
        new: str,
        place: tuple[object, ...],
        rest: str | None = None,
        offered: tuple[str, ...] = (),
        *,
        asks: bool = True,
    ) -> str:
        """Replace a part of the text, and ask behind it; the text that is offered there.

        rest: what will be typed there; None where nobody wants to type.
        """
        span = _position(self.text, start), _position(self.text, end)
        self.text = self.text[:start] + new + self.text[end:]
        self.documents.change(_OWN, 1, [(span, new)])
        self.trigger.changed(_OWN, [(span, new)], self.documents, offered)
        return self._request(start + len(new), rest, place) if asks else ""

    def _request(self, at: int, rest: str | None, place: tuple[object, ...], uri: str = _OWN) -> str:
        """Ask for ghost text; the text that is offered, "" if there is none."""
        self.sent += 1
        if self.listens and (why := self._silence(at, uri)):
            self.silent[why] += 1
            return ""
        drawn = self._draw(*place, "answer")
        if rest is not None and len(rest) >= _LEAST and drawn < _RIGHT:
            return rest
        return "result" if drawn > 1 - _WRONG else ""

    def _silence(self, at: int, uri: str) -> str:
        document = self._document(uri)
        cursor = len(document.text[:at].encode())
        if self.offers.continues_dismissed(document, cursor):
            return "a dismissed text"
        why = self.trigger.silence(uri, _position(document.text, at), document.data, cursor)
        return why.partition(";")[0]

    def _document(self, uri: str = _OWN) -> Document:
        document = self.documents.snapshot(uri)
        assert document is not None
        return document

    def _draw(self, *place: object) -> float:
        """Draw a number from 0 to 1, the same one for the same place in both sessions with a file."""
        return random.Random(f"{self.name} {place}").random()


def lost(quiet: Session, loud: Session) -> int:
    """Count the texts that were taken in `loud` and of which nothing was taken in `quiet`."""
    return sum(
        not any(place == other and begin < stop and start < end for other, start, stop in quiet.taken)
        for place, begin, end in loud.taken
    )


def files() -> list[Path]:
    """Return the files: of the standard library, and of the extension."""
    library = Path(sysconfig.get_path("stdlib"))
    own = sorted((_ROOT / "editors/vscode/src").glob("*.ts"))
    found = [*sorted(library.glob("*.py")), *sorted(library.glob("*/*.py"))]
    random.Random(0).shuffle(found)
    return [file for file in [*own[::3], *found] if 4_000 < file.stat().st_size < 40_000]


def _regions(name: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield places of a text, from the last to the first: whole lines behind a line's end, or from within a line."""
    chance, lines = random.Random(name), text.split("\n")
    starts = sorted(chance.sample(range(10, len(lines) - 10), _REGIONS * 3), reverse=True)
    last, count = len(lines), 0
    for first in starts:
        size = chance.randint(1, _LINES)
        if first + size + 1 >= last or not all(lines[n].strip() for n in range(first, first + size + 1)):
            continue
        start = len("\n".join(lines[:first])) + (0 if chance.random() < 0.7 else 1 + len(lines[first]) // 2)
        yield start, len("\n".join(lines[: first + size]))
        last, count = first, count + 1
        if count == _REGIONS:
            return


def _position(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at), at - (text.rfind("\n", 0, at) + 1)


def main() -> None:
    """Play the sessions, and print the sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=20)
    arguments = parser.parse_args()
    sent = silent = taken = gone = 0
    reasons = Counter[str]()
    for file in files()[: arguments.sessions]:
        text = file.read_text(encoding="utf-8")
        loud, quiet = (Session(file.name, text, listens).play() for listens in (False, True))
        assert quiet.text == loud.text == text, "both have typed the file"
        asked = quiet.sent - quiet.silent.total()
        print(
            f"{file.name:24} {loud.sent:5} requests, {asked:5} with the rules; {len(loud.taken):3} texts taken"
        )
        sent, silent = sent + loud.sent, silent + loud.sent - asked
        taken, gone = taken + len(loud.taken), gone + lost(quiet, loud)
        reasons += quiet.silent
    print(
        f"saved {silent} of {sent} requests ({silent / sent:.1%}); lost {gone} of {taken} texts ({gone / taken:.1%})"
    )
    for why, count in reasons.most_common():
        print(f"  {count:5} {why}")


if __name__ == "__main__":
    main()
