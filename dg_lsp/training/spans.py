"""The spans of characters that become gaps of a training canvas, chosen like the gaps that people leave in editors.

Knows text and the tokenizer's pieces; knows no corpora, no networks and no noise.
"""

import random
from collections.abc import Callable

# From a text to its spans, in characters, that tokens do not cross.
Pieces = Callable[[str], list[tuple[int, int]]]
Span = tuple[int, int]

_OPEN, _CLOSE = "([{", ")]}"


def whole_lines(text: str, pieces: Pieces, chance: random.Random) -> Span:
    """A span from the start of the first line, its indentation or a place in it, to the end of the last line."""
    first = text.split("\n", 1)[0]
    indent = indent_of(first)
    begin = chance.choice((0, indent, indent, _cut(first, pieces, chance)))
    end = len(text.rstrip("\n"))
    return begin, len(text) if chance.random() < 0.3 else end


def rest_of_line(text: str, start: int, pieces: Pieces, chance: random.Random) -> Span:
    """A span from a random place in the line that begins at `start` to the line's end."""
    line = _line(text, start)
    return start + _cut(line, pieces, chance), start + len(line)


def part_of_line(text: str, start: int, pieces: Pieces, chance: random.Random) -> Span:
    """A span inside the line that begins at `start`: mostly an expression, else some of the tokenizer's pieces."""
    line = _line(text, start)
    if chance.random() < 0.7 and (found := _expressions(line)):
        begin, end = chance.choice(found)
        # As if its first letters had been typed already.
        if chance.random() < 0.3:
            begin = chance.randrange(begin, end)
    else:
        begin = _cut(line, pieces, chance)
        end = chance.choice([b for _, b in pieces(line) if b > begin] or [len(line)])
    return start + begin, start + end


def indent_of(line: str) -> int:
    """The number of blanks and tabs at the start of `line`."""
    return len(line) - len(line.lstrip(" \t"))


def _line(text: str, start: int) -> str:
    """The line of `text` that begins at `start`, without its line end."""
    return text[start:].split("\n", 1)[0].rstrip("\r")


def _cut(line: str, pieces: Pieces, chance: random.Random) -> int:
    """A place for the start of a gap in `line`: in half of the cases between two pieces, else at any character."""
    indent = indent_of(line)
    if chance.random() < 0.5:
        return chance.randint(indent, max(indent, len(line) - 1))
    return chance.choice([a for a, _ in pieces(line) if a >= indent] or [indent])


def _expressions(line: str) -> list[Span]:
    """The spans in `line` that begin after a bracket, comma, equals sign or keyword and end with the expression there.

    Brackets are matched, quotes are not; a span that is no expression makes a gap, too.
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
