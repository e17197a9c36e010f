"""The item of a file that a place is in, found by the lines at column 0, from the place outward.

Knows lines and what an item's first line looks like; knows no tokens, so a string over several lines can mislead it.
"""

import re

from dg_lsp.text.language import Language
from dg_lsp.text.lines import line_end, line_start
from dg_lsp.text.tokens import Span

# How many bytes are looked at in one go on the way up.
STRIDE = 4_096
# A line with text at column 0.
_OUTERMOST = re.compile(rb"(?<![^\r\n])[^\s]")
_CLOSER = re.compile(rb"[)\]}]")
_LABEL = re.compile(rb"(?:case|default|public|private|protected)\b[^;({]*:|[\w$]+[ \t]*:(?![:=])")
# An item is over where its closing line holds little else and opens nothing again.
_ENDS = re.compile(
    rb"(?:[)\]};,(\[ \t]*[)\]};]|[)\]}][^\r\n{]*;)[ \t]*(?://[^\r\n]*|/\*[^\r\n]*)?(?![^\r\n])"
)
_ENDED = re.compile(rb"[;}{,)][ \t]*\Z")
_COMMENT = re.compile(rb"//|/\*| ?\*")


def window(language: Language, data: bytes, offset: int) -> Span:
    """The item round `offset` with what belongs to it above; between two items what stands between them."""
    start = _above(language, data, offset)
    return start, _below(language, data, offset, start)


def block(language: Language, data: bytes, offset: int) -> Span:
    """The part of `window` that ends where the next line with text stands at column 0, closing brackets apart."""
    start, stop = window(language, data, offset)
    at = line_end(data, offset)
    while (found := _OUTERMOST.search(data, at, stop)) and _CLOSER.match(data, found.start()):
        at = found.end()
    return start, found.start() if found else stop


def _above(language: Language, data: bytes, offset: int) -> int:
    """Where the item begins that `offset` is in, or where the one above it ends."""
    here = line_start(data, offset)
    high = line_end(data, offset)
    while high > 0:
        low = line_start(data, max(high - STRIDE, 0))
        for found in reversed([m.start() for m in _OUTERMOST.finditer(data, low, high)]):
            if found < here and _ends_item(data, found):
                return _next_line(data, found)
            if _begins_item(language, data, found):
                return _with_above(language, data, found)
        high = low if low < high else 0
    return 0


def _below(language: Language, data: bytes, offset: int, start: int) -> int:
    """Where the item ends that `offset` is in."""
    at = line_start(data, offset)
    here = at
    while found := _OUTERMOST.search(data, at):
        at = found.start()
        if at > start and _ends_item(data, at):
            return _next_line(data, at)
        if at > here and at > offset and _begins_item(language, data, at):
            # The cursor may be on what belongs to the item below it.
            above = _with_above(language, data, at)
            if above > offset:
                return above
        at = line_end(data, at)
    return len(data)


def _begins_item(language: Language, data: bytes, at: int) -> bool:
    """Whether the line at `at`, whose text begins at column 0, begins an item of the file."""
    words = language.words
    if words.directive and data.startswith(words.directive, at):
        return False
    end = line_end(data, at)
    found = words.items.match(data, at, end) or words.above.match(data, at, end)
    return found is not None and not _LABEL.match(data, at, end)


def _ends_item(data: bytes, at: int) -> bool:
    """Whether the line at `at` closes an item."""
    return _CLOSER.match(data, at) is not None and _ENDS.match(data, at) is not None


def _with_above(language: Language, data: bytes, start: int) -> int:
    """`start`, moved up to the comments, attributes and the beginning of the header right above it."""
    words = language.words
    while start > 0:
        above = line_start(data, start - 1 - data.endswith(b"\r\n", 0, start))
        line = data[above : line_end(data, above)]
        if words.directive and line.startswith(words.directive):
            return start
        attached = _COMMENT.match(line) or words.above.match(line)
        header = words.items.match(line) and not _ENDED.search(line)
        if not attached and not header:
            return start
        start = line_start(data, _comment_start(language, data, above))
    return start


def _comment_start(language: Language, data: bytes, line: int) -> int:
    """Where the comment begins that ends with the line at `line`, else `line`."""
    for opening, closing in language.block_comments:
        if data.endswith(closing.encode(), line, line_end(data, line)):
            begins = data.rfind(opening.encode(), 0, line + len(opening))
            return begins if begins >= 0 else line
    return line


def _next_line(data: bytes, at: int) -> int:
    end = line_end(data, at)
    return min(end + 1 + data.startswith(b"\r\n", end), len(data))
