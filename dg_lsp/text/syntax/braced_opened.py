"""OpenBracket: a bracket of a broken text, and what the indentation of later lines tells of it.

Knows lines; knows no language, no tokens and no tree.
"""

import re
from dataclasses import dataclass

from dg_lsp.text.documents.lines import line_start, width

_LINE = re.compile(rb"[\r\n][ \t]*([^\s])")
_VALUE = re.compile(rb"(?:[\w$\x80-\xff)\]}\"'`]|\+\+|--)\Z")


@dataclass(slots=True, eq=False)
class OpenBracket:
    """A bracket: its offset, the columns its line is indented by, and where its statement begins.

    base: the columns of its statement's first line; width: the lesser of the two. inner: the columns of the first line
    in it, -1 before there is one. doubtful: a line below says that it was closed. closed: where what closes it
    stands, -1 where nothing does. stop: where its text ends then.
    """

    at: int
    bracket: bytes
    columns: int
    width: int
    line: int
    base: int
    inner: int = -1
    doubtful: bool = False
    closed: int = -1
    stop: int = -1


def doubt(stack: list[OpenBracket], at: int, columns: int) -> None:
    """Braces that the line at `at` shows to be closed above it are doubtful, unless a later line takes that back."""
    for opened in reversed(stack):
        if opened.bracket == b"{" and not opened.doubtful and opened.inner > opened.width >= columns:
            opened.doubtful, opened.stop = True, at
        elif opened.bracket == b"{":
            if opened.doubtful and columns == opened.inner:
                opened.doubtful = False
            break


def follows_value(data: bytes, at: int) -> bool:
    """Whether the line above the one at `at` ends with a value, so that nothing asks for more."""
    start = line_start(data, at)
    above = data[line_start(data, start - 1) : start].rstrip() if start else b""
    return _VALUE.search(above) is not None and b"//" not in above


def is_left(data: bytes, at: int, columns: int, outer: int) -> bool:
    """Whether the brace at `at`, deeper than the line that opened what it could close, has lost its mate.

    It has where a later line closes that: the next one that is no deeper than the one that opened it, at `outer`.
    """
    while columns > outer and (found := _LINE.search(data, at)):
        at = found.start(1)
        depth = width(data[line_start(data, at) : at])
        if depth <= outer:
            return depth == outer and data.startswith(b"}", at)
    return False
