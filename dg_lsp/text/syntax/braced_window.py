"""The item of a file that a place is in, found by the lines at column 0, from the place outward.

The same for the members of an item, by their indentation. Knows lines and what an item's first line looks like;
knows no tokens, so a string over several lines can mislead it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from dg_lsp.text.documents.lines import line_end, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.reach import FARTHEST, UNKNOWN
from dg_lsp.text.syntax.tokens import Span

# How many bytes are looked at in one go on the way up.
STRIDE = 4_096
# How many lines above an item may belong to it.
MOST_ABOVE = 100
_CLOSER = re.compile(rb"[)\]}]")
_LABEL = re.compile(rb"(?:case|default|public|private|protected)\b[^;({]*:|[\w$]+[ \t]*:(?![:=])")
# An item is over where its closing line holds little else and opens nothing again.
_ENDS = re.compile(
    rb"(?:[)\]};,(\[ \t]*[)\]};]|[)\]}][^\r\n{]*;)[ \t]*(?://[^\r\n]*|/\*[^\r\n]*)?(?![^\r\n])"
)
_ENDED = re.compile(rb"[;}{,)][ \t]*\Z")
_COMMENT = re.compile(rb"//|/\*| ?\*")
# What a member may begin with; what an item of the file looks like is said by the language.
_GOES_ON = re.compile(rb"(?:else|catch|finally|where|throws|extends|implements)\b")
_MEMBER = re.compile(rb"[\w$@#~*&<\[\"'\x80-\xff]")


@lru_cache(maxsize=8)
def window(language: Language, data: bytes, offset: int) -> Span:
    """The item round `offset` with what belongs to it above; between two items what stands between them.

    The last answers are kept, for one pick asks the same several times.
    """
    return item_above(language, data, offset, b""), item_below(language, data, offset, b"")


def block(language: Language, data: bytes, offset: int) -> Span:
    """The part of `window` that ends where the next line with text stands at column 0, closing brackets apart."""
    start, stop = window(language, data, offset)
    for at in texts_at(data, b"", line_end(data, offset), stop):
        if not _CLOSER.match(data, at):
            return start, at
    return start, stop


def texts_at(data: bytes, space: bytes, low: int, high: int) -> Iterator[int]:
    """Where the text begins of the lines of data[low:high] that are indented by `space` and no more."""
    if low == 0 and data.startswith(space) and not data[len(space) : len(space) + 1].isspace():
        yield len(space)
    # A pattern that begins with a character is looked for quickly.
    for match in _lines(space).finditer(data, max(low - 1, 0), high):
        yield match.end()


@lru_cache(maxsize=64)
def _lines(space: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"[\r\n]" + space + rb"(?=[^\s])")


def item_above(language: Language, data: bytes, offset: int, space: bytes) -> int:
    """Where the item begins that `offset` is in, or where the one above it ends; items are indented by `space`."""
    here, high = line_start(data, offset), line_end(data, offset)
    lowest = max(here - FARTHEST, 0)
    while high > lowest:
        low = line_start(data, max(high - STRIDE, 0))
        for found in reversed(list(texts_at(data, space, low, high))):
            if found < here and _ends_item(data, found):
                return _next_line(data, found)
            if _begins_item(language, data, found, space):
                return _with_above(language, data, found - len(space), space)
        high = low if low < high else 0
    # An item is looked for no further: then what is near must do.
    return line_start(data, here - UNKNOWN) if lowest else 0


def item_below(language: Language, data: bytes, offset: int, space: bytes) -> int:
    """Where the item ends that `offset` is in, or where the next one begins; items are indented by `space`."""
    end = line_end(data, offset)
    high = min(end + FARTHEST, len(data))
    for at in texts_at(data, space, line_start(data, offset), high):
        if _ends_item(data, at):
            return _next_line(data, at)
        line = at - len(space)
        if line > offset and _begins_item(language, data, at, space):
            # The place may be on what belongs to the item below it.
            above = _with_above(language, data, line, space)
            if above > offset:
                return above
    return len(data) if high == len(data) else line_start(data, end + UNKNOWN)


def _begins_item(language: Language, data: bytes, at: int, space: bytes) -> bool:
    """Whether the text at `at`, the first of its line, begins an item."""
    words = language.words
    if words.directive and data.startswith(words.directive, at):
        return False
    looks = _MEMBER if space else words.items
    if not (looks.match(data, at) or words.above.match(data, at)) or _GOES_ON.match(data, at):
        return False
    return not _LABEL.match(data, at, line_end(data, at))


def _ends_item(data: bytes, at: int) -> bool:
    """Whether the text at `at`, the first of its line, closes an item."""
    return _CLOSER.match(data, at) is not None and _ENDS.match(data, at) is not None


def _with_above(language: Language, data: bytes, line: int, space: bytes) -> int:
    """`line`, moved up to the comments, attributes and the beginning of the header right above it."""
    words = language.words
    for _ in range(MOST_ABOVE):
        if line <= 0:
            break
        above = line_start(data, line - 1 - data.endswith(b"\r\n", 0, line))
        text = data[above : line_end(data, above)]
        if not text.startswith(space) or (words.directive and text.startswith(words.directive)):
            return line
        text = text[len(space) :]
        attached = _COMMENT.match(text) or words.above.match(text)
        header = (_MEMBER if space else words.items).match(text) and not _ENDED.search(text)
        if not attached and not header:
            return line
        line = line_start(data, _comment_start(language, data, above))
    return line


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
