"""Which characters of some lines become the gaps of a training canvas, as people and editors make them.

Knows text and what the tokenizer never splits; no corpora, no networks, no noise.
"""

import random
from collections.abc import Callable

Pieces = Callable[[str], list[tuple[int, int]]]  # the spans, in characters, that tokens do not cross
Span = tuple[int, int]

_OPEN, _CLOSE = "([{", ")]}"


def whole_lines(text: str, pieces: Pieces, chance: random.Random) -> Span:
    """From the first line's start, its indentation or a place in it, to the end of the last line."""
    first = text.split("\n", 1)[0]
    indent = indent_of(first)
    begin = chance.choice((0, indent, indent, _cut(first, pieces, chance)))
    end = len(text.rstrip("\n"))
    return begin, len(text) if chance.random() < 0.3 else end


def rest_of_line(text: str, start: int, pieces: Pieces, chance: random.Random) -> Span:
    """From a place in the line that begins at `start` to the line's end."""
    line = _line(text, start)
    return start + _cut(line, pieces, chance), start + len(line)


def part_of_line(text: str, start: int, pieces: Pieces, chance: random.Random) -> Span:
    """A part of the line that begins at `start`: an expression where there is one, else some pieces of it."""
    line = _line(text, start)
    if chance.random() < 0.7 and (found := _expressions(line)):
        begin, end = chance.choice(found)
        # Now and then its first letters stand already.
        if chance.random() < 0.3:
            begin = chance.randrange(begin, end)
    else:
        begin = _cut(line, pieces, chance)
        end = chance.choice([b for _, b in pieces(line) if b > begin] or [len(line)])
    return start + begin, start + end


def indent_of(line: str) -> int:
    """How many blanks and tabs `line` begins with."""
    return len(line) - len(line.lstrip(" \t"))


def _line(text: str, start: int) -> str:
    return text[start:].split("\n", 1)[0].rstrip("\r")


def _cut(line: str, pieces: Pieces, chance: random.Random) -> int:
    """Where a gap begins in `line`: in half of the cases between two pieces, else at any character."""
    indent = indent_of(line)
    if chance.random() < 0.5:
        return chance.randint(indent, max(indent, len(line) - 1))
    return chance.choice([a for a, _ in pieces(line) if a >= indent] or [indent])


def _expressions(line: str) -> list[Span]:
    """What stands between a bracket, comma, sign of equality or keyword and what ends it, brackets paired.

    Quotes are not looked at: a wrong span is a gap like any other.
    """
    ends = [i + 1 for i, c in enumerate(line) if c in _OPEN + ",="]
    for word in ("return ", "if ", "in ", "while ", "assert ", "raise "):
        if (at := line.find(word)) >= 0 and not line[:at].strip():
            ends.append(at + len(word))
    found = []
    for before in ends:
        begin = before + indent_of(line[before:])
        depth, end = 0, len(line)
        for i in range(begin, len(line)):
            depth += (line[i] in _OPEN) - (line[i] in _CLOSE)
            if depth < 0 or (depth == 0 and line[i] in ",:"):
                end = i
                break
        if line[begin:end].strip():
            found.append((begin, end))
    return found
