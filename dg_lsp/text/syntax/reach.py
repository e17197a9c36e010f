"""Reach: how much of a text may be read for a gap, so that no file, whatever its shape, costs unbounded time.

Knows lines and counts brackets; knows no language, no tokens and no tree.
"""

from dg_lsp.text.documents.lines import line_end, line_start
from dg_lsp.text.syntax.lexer import Span

# Nobody writes a longer line by hand, nor so many brackets open at once.
LONGEST_LINE = 20_000
MOST_OPEN = 250
# A top-level item is looked for so many bytes above and below; where none is, so many are read.
FARTHEST = 64_000
UNKNOWN = 2_500
# What is read of a stranger text: so many bytes on either side of the cursor.
NEAR = 300


def reach(data: bytes, offset: int) -> Span:
    """The span round `offset` that may be read for a gap: all of it, or what is near where its shape is strange.

    Strange are a line that is too long and too many open brackets. Example: `x = ((((...` with 200,000 brackets is
    read from 300 bytes before it on.
    """
    low, high = max(offset - FARTHEST, 0), min(offset + FARTHEST, len(data))
    line = data[max(offset - LONGEST_LINE, 0) : offset + LONGEST_LINE]
    before, behind = line[: min(offset, LONGEST_LINE)], line[min(offset, LONGEST_LINE) :]
    length = len(before) - line_start(before, len(before)) + line_end(behind, 0)
    if length < LONGEST_LINE and _most_open(data, low, offset) < MOST_OPEN:
        return 0, len(data)
    return _whole(data, max(offset - NEAR, 0)), _whole(data, min(offset + NEAR, high))


def _most_open(data: bytes, start: int, stop: int) -> int:
    """At most so many brackets of one kind are open at `stop`, counted from `start`, strings not looked at."""
    pairs = (b"()", b"[]", b"{}")
    return max(data.count(p[:1], start, stop) - data.count(p[1:], start, stop) for p in pairs)


def _whole(data: bytes, at: int) -> int:
    """`at`, moved up to where it cuts neither a character nor a line end in two."""
    while at > 0 and ((data[at : at + 1] and data[at] & 0xC0 == 0x80) or data[at - 1 : at + 1] == b"\r\n"):
        at -= 1
    return at
