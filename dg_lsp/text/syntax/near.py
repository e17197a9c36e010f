"""Near: a text in smaller and smaller parts round a place, for a parser that cannot read all of it in time.

Knows lines, indentation and top-level items; knows no tree and no gap.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.items import top_level_item
from dg_lsp.text.syntax.lexer import Span, width

# How many lines on each side of a place are kept, and how many lines a header may have.
LINES, LONGEST = 24, 6
_LINE = re.compile(rb"([ \t]*)([^\r\n]*)(?:\r\n|\n|\r|\Z)")
_CLOSERS = re.compile(rb"[)\]}]+[;,)]*")
# What ends with a brace may begin with one that closes another block: `} else {`.
_OPENER = re.compile(rb"\{[ \t]*(?://.*)?\Z")
_BLANKS = bytes(c if c in b"\r\n" else 32 for c in range(256))


def readings(language: Language, data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Yield the places where parts of `data` round `offset` begin, and the parts, each smaller than the one before.

    They are all of it, its top-level item, and the item's `surroundings` of the place.
    """
    yield 0, data
    start, stop = top_level_item(language, data, offset)
    item = data[start:stop]
    if item != data:
        yield start, item
    if (near := surroundings(item, offset - start)) != item:
        yield start, near


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with text: its span, the place where its text begins, the text, and how deep it is indented."""

    start: int
    first: int
    text: bytes
    depth: int


def surroundings(item: bytes, offset: int) -> bytes:
    """Return `item` with blanks for what is far from `offset`, but for the headers of its blocks and what closes them.

    In a switch with thousands of cases the function's header, some cases near the place, and two braces stay.

    1. Keep the lines round the place, as far as no block is cut.  2. Above them keep each line that is less deep than
    those below it, without what it closes.  3. Below them keep what closes at the beginning of such a line.
    """
    found = list(_lines(item))
    here = sum(line.start <= offset for line in found) - 1
    if here < 0:
        return item
    # 1.
    low, high = _whole_blocks(found, here)
    end = found[high + 1].start if high + 1 < len(found) else len(item)
    kept = [(min(found[low].start, offset), end)]
    # 2.
    depth = min(line.depth for line in found[low : here + 1])
    for number in range(low - 1, -1, -1):
        if found[number].depth < depth:
            depth = found[number].depth
            kept.append(_header(found, number, low))
    # 3.
    depth = min(line.depth for line in found[here : high + 1])
    for line in found[high + 1 :]:
        if line.depth < depth:
            depth = line.depth
            closers = _CLOSERS.match(line.text)
            kept.append((line.first, line.first + (closers.end() if closers else 0)))
    text = bytearray(item.translate(_BLANKS))
    for first, last in kept:
        text[first:last] = item[first:last]
    return bytes(text)


def _lines(item: bytes) -> Iterator[_Line]:
    for found in _LINE.finditer(item):
        if found[2]:
            yield _Line(found.start(), found.start(2), found[2], width(found[1]))


def _whole_blocks(lines: Sequence[_Line], here: int) -> tuple[int, int]:
    """Return the numbers of the first and the last line near the line `here` between which no block is cut."""
    low = high = here
    depth = lines[here].depth
    for number in range(here - 1, max(here - LINES, 0) - 1, -1):
        line = lines[number]
        if line.depth <= depth:
            depth = line.depth
            low = low if _CLOSERS.match(line.text) else number
    depth = lines[here].depth
    for number in range(here, min(here + LINES, len(lines) - 1)):
        depth = min(depth, lines[number].depth)
        below = lines[number + 1]
        if below.depth < depth or (below.depth == depth and not _CLOSERS.match(below.text)):
            high = number
    return low, high


def _header(lines: Sequence[_Line], number: int, stop: int) -> Span:
    """Return the span of the header that begins with the line `number`, up to its brace, without what it closes."""
    line = lines[number]
    for last in lines[number : min(number + LONGEST, stop)]:
        if opener := _OPENER.search(last.text):
            at = last.first + opener.start() if _CLOSERS.match(line.text) else line.first
            return at, last.first + len(last.text)
    return line.first, line.first + len(line.text)
