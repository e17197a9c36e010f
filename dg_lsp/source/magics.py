"""Magics: the lines of a notebook's cell that are for IPython and not for Python, read as comments of equal length."""

import re
from functools import lru_cache

from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import marks

# `%pip install x`, `!ls`, `?f`; `f?`; and `files = !ls`, whose sign begins a group.
_LINE = re.compile(
    rb"(?<![^\r\n])[ \t]*(?:(?:[\w.\[\], \t]+=[ \t]*)?(?P<sign>[%!]|\?(?=[\w.?]))"
    rb"|(?P<asked>[\w.\[\]]+\?{1,2})[ \t]*(?![^\r\n]))"
)
# The first line of a cell for another program, and the magics whose cell is Python all the same.
_CELL = re.compile(rb"\s*%%(\w*)")
_OF_PYTHON = {b"capture", b"prun", b"time", b"timeit"}
_WRITTEN = re.compile(rb"(?<![^\r\n])([ \t]*)[^\s]")
_REST = re.compile(rb"(?:[^\r\n\\]|\\(?:\r\n|.))*", re.DOTALL)
# A longer cell is left as it is.
_LONGEST = 60_000


@lru_cache(maxsize=256)
def without_magics(data: bytes) -> bytes:
    """Return the text of a Python cell with comments for its magics, so that every offset stays.

    `!ls -l` becomes `#ls -l`; within a block, and as a value, `0#s -l`. A cell for another program, as below `%%bash`,
    is all comments. In strings, brackets and continued lines nothing is a magic.
    """
    if len(data) > _LONGEST:
        return data
    if (cell := _CELL.match(data)) and cell[1] not in _OF_PYTHON:
        return _WRITTEN.sub(rb"\1#", data)
    at, plain = 0, bytearray(data)
    while (found := _next(data, at)) is not None:
        at = _REST.match(data, found.start()).end()  # type: ignore[union-attr]  # it matches nothing, too
        plain[found.start() : at] = _as_comment(data, found, at)
    return bytes(plain)


def _next(data: bytes, start: int) -> re.Match[bytes] | None:
    """Return the first magic of `data` from `start` on, which is in no string or bracket."""
    depth = 0
    if start == 0 and (found := _LINE.match(data)):
        return found
    for kind, _, end in marks(load_language("python"), data, start, len(data)):
        depth = max(depth + (kind == "open") - (kind == "close"), 0)
        if kind == "newline" and depth == 0 and (found := _LINE.match(data, end)):
            return found
    return None


def _as_comment(data: bytes, found: re.Match[bytes], end: int) -> bytes:
    """Return a comment for the magic `found`, which ends at `end` of `data`."""
    start = found.start(found.lastgroup or 0)
    # A block, and an assignment, needs a value.
    sign = b"0#" if data[found.start() : start] and end - start > 1 else b"#"
    text = sign + data[start + len(sign) : end]
    # A line that is continued brings the next one along.
    return data[found.start() : start] + re.sub(rb"(?<=[\r\n])([ \t]*)[^\s]", rb"\1#", text)
