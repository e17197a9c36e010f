"""Typing sessions: somebody writes lines of a real module again, with typing errors, moves, pastes and undone changes.

A session is made from a seed and the module. Its keys have times, as people type: quickly within a word, with pauses
between words and before a line.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

LINES = 8  # that are written again
_INDENT = re.compile(r"[ ]*")
_WORD = re.compile(r"\w+\Z")


@dataclass(frozen=True, slots=True)
class Step:
    """Something that the user does `after` seconds after the step before; the editor asks for ghost text after it.

    uri: the document. start, end, text: offsets in characters and what replaces the text there; nothing if they are
    equal and it is empty, so that the cursor is put there. line: the number of the line that is being written, and
    intended: the whole of it; -1 and "" elsewhere. menu: it takes an entry of a menu, which is open until then.
    """

    after: float
    uri: str
    start: int
    end: int
    text: str
    line: int = -1
    intended: str = ""
    menu: bool = False


class Session:
    """Lines of the module `path` that are taken out and written again; `other` is a module that is looked at."""

    def __init__(self, seed: int, path: Path, other: Path) -> None:
        self._chance = random.Random(seed)
        self.uri, self.other = path.as_uri(), other.as_uri()
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        starts = [n for n in range(5, len(lines) - LINES) if _is_code(lines[n : n + LINES])]
        first = self._chance.choice(starts)
        self._lines = [line.rstrip("\n") for line in lines[first : first + LINES]]
        self.text = "".join((*lines[:first], *lines[first + LINES :]))
        self.other_text = other.read_text(encoding="utf-8")
        self._now, self._at = self.text, len("".join(lines[:first])) - 1
        self._number, self._intended = 0, ""

    def steps(self) -> Iterator[Step]:
        """The steps, in their order."""
        for number, line in enumerate(self._lines):
            self._number, self._intended = number, line
            indent = _INDENT.match(line)
            assert indent is not None
            yield self._put(self._pause(0.4, 2.0), self._at, self._at, "\n" + indent[0])
            yield from self._write(line[len(indent[0]) :])
            yield from self._beside()

    def _write(self, rest: str) -> Iterator[Step]:
        """Type the rest of a line, with typing errors and entries of a menu."""
        while rest:
            done = self._now[: self._at]
            word = re.match(r"\w*", rest)
            half = _WORD.search(done)
            if word and half and len(half[0]) == 3 and len(word[0]) > 1 and self._happens(0.25):
                yield replace(self._type(word[0], 0.4), menu=True)
                rest = rest[len(word[0]) :]
                continue
            if self._happens(0.02):
                yield from self._mistype(rest)
            between = not rest[0].isalnum() and self._happens(0.15)
            yield self._type(rest[0], self._pause(0.5, 2.0) if between else self._key())
            rest = rest[1:]

    def _mistype(self, rest: str) -> Iterator[Step]:
        """Type a wrong letter, and sometimes some more after it, and erase them."""
        wrong = "q" + rest[: self._chance.choice((0, 0, 0, 3))]
        for letter in wrong:
            yield self._type(letter, self._key())
        for _ in wrong:
            yield self._put(self._key(), self._at - 1, self._at, "")

    def _beside(self) -> Iterator[Step]:
        """Do some of the other things that people do while they write."""
        for share, does in (
            (0.25, self._look),
            (0.1, self._look_at_other),
            (0.12, self._paste),
            (0.12, self._undo),
            (0.12, self._select),
            (0.1, self._correct),
        ):
            if self._happens(share):
                yield from does()

    def _look(self) -> Iterator[Step]:
        """Go to some lines and back."""
        at = self._at
        for _ in range(self._chance.randrange(1, 4)):
            yield self._go(self._some_end(self._now))
        yield self._go(at)

    def _look_at_other(self) -> Iterator[Step]:
        """Go to a line of the other module and back."""
        at = self._some_end(self.other_text)
        yield Step(self._pause(0.5, 2.0), self.other, at, at, "")
        yield self._go(self._at)

    def _paste(self) -> Iterator[Step]:
        """Paste some lines, look at them, and take them away again."""
        lines = self._now.splitlines(keepends=True)
        first = self._chance.randrange(len(lines) - 3)
        copied, at = "\n" + "".join(lines[first : first + 3]).rstrip("\n"), self._at
        yield self._put(self._pause(0.5, 2.0), at, at, copied)
        yield self._put(self._pause(0.5, 2.0), at, at + len(copied), "")

    def _undo(self) -> Iterator[Step]:
        """Undo the last words and make them again, by keys for that: nobody wants a text meanwhile."""
        line = self._now.rfind("\n", 0, self._at) + 1
        start, gone = max(line, self._at - 12), self._now[max(line, self._at - 12) : self._at]
        yield replace(self._put(self._pause(0.5, 2.0), start, self._at, ""), line=-1, intended="")
        yield self._put(self._pause(0.5, 2.0), start, start, gone)

    def _select(self) -> Iterator[Step]:
        """Select the end of the line, delete it, and type it again."""
        line = self._now[self._now.rfind("\n", 0, self._at) + 1 : self._at]
        gone = line[-min(10, len(line.strip())) :]
        yield self._put(self._pause(0.5, 2.0), self._at - len(gone), self._at, "")
        for letter in gone:
            yield self._type(letter, self._key())

    def _correct(self) -> Iterator[Step]:
        """Go to the end of another line, erase its last character, and type it again; go back."""
        at, back = self._some_end(self._now), self._at
        yield self._go(at)
        gone = self._now[at - 1]
        yield self._put(self._key(), at - 1, at, "")
        yield self._put(self._key(), at - 1, at - 1, gone)
        yield self._go(back)

    def _some_end(self, text: str) -> int:
        """The end of a line that is not blank."""
        ends = [m.end() for m in re.finditer(r"[^\n]*\w[^\n]*", text)]
        return self._chance.choice(ends)

    def _go(self, at: int) -> Step:
        self._at = at
        return self._step(self._pause(0.3, 1.5), at, at, "")

    def _type(self, text: str, after: float) -> Step:
        return self._put(after, self._at, self._at, text)

    def _put(self, after: float, start: int, end: int, text: str) -> Step:
        self._now = self._now[:start] + text + self._now[end:]
        self._at = start + len(text)
        return self._step(after, start, end, text)

    def _step(self, after: float, start: int, end: int, text: str) -> Step:
        written = self._now[self._now.rfind("\n", 0, self._at) + 1 : self._at]
        here = self._intended.startswith(written) and not self._now[self._at : self._at + 1].strip()
        return Step(
            after, self.uri, start, end, text, self._number if here else -1, self._intended if here else ""
        )

    def _key(self) -> float:
        return min(self._chance.lognormvariate(-2.0, 0.45), 0.45)

    def _pause(self, least: float, most: float) -> float:
        return self._chance.uniform(least, most)

    def _happens(self, share: float) -> bool:
        return self._chance.random() < share


def _is_code(lines: list[str]) -> bool:
    """Return whether all lines are statements or parts of them, and no comments and no ends of strings."""
    text = "".join(lines)
    return all(line.strip() for line in lines) and "#" not in text and '"""' not in text and text.isascii()
