"""What the next line of code below a cursor tells of the brackets that are open there.

Knows lines and the kinds of brackets; knows no statements, no forms and no tree.
"""

import re
from collections.abc import Sequence

from dg_lsp.text.documents.lines import indentation, line_end
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.braced_opened import OpenBracket
from dg_lsp.text.syntax.tokens import PAIRS

_LINE = re.compile(rb"[\r\n]+([ \t\f]*)(?=[^\s])")
_CLOSERS = re.compile(rb"[)\]} \t]*")
# A line that goes on with what is above it; and one that may stand as deep as the header of what it is in.
_JOINED = re.compile(rb"[.?:&|+\-*/=<>%^,]")
_OUTSET = re.compile(rb"(?:case|default|else|catch|finally)\b|[\w$]+[ \t]*:(?![:=])")


def next_line(language: Language, data: bytes, eol: int) -> tuple[int, int]:
    """How deep the next line with text below `eol` is, and where its text begins; comments do not count."""
    at, directive = eol, language.words.directive
    while found := _LINE.search(data, at):
        at = found.end()
        line = data[at : line_end(data, at)]
        if line.startswith((language.comment.encode(), b"/*", b"* ", b"*/")) or line == b"*":
            continue
        if not (directive and line.startswith(directive)):
            return indentation(data, at), at
    return -1, len(data)


def goes_on(data: bytes, below: int, bracket: bytes) -> bool:
    """Whether the line at `below` may stand in a `bracket` although it is no deeper than the line that opened it."""
    outset = bracket == b"{" and _OUTSET.match(data, below)
    return _JOINED.match(data, below) is not None or bool(outset)


def depth_of(opened: OpenBracket) -> int:
    """How deep the line is that closes a bracket: as the line that opens it, or a brace's header.

    A line as deep as that tells nothing where the first one in it was no deeper either.
    """
    depth = opened.width if opened.bracket == b"{" else opened.columns
    return depth - (opened.inner == depth)


def unclosed(data: bytes, opened: Sequence[tuple[int, int]], columns: int, below: int) -> tuple[int, ...]:
    """Those of the `opened` brackets that the next line with text shows to be closed before it.

    It is at `below`, indented by `columns`. Where it closes brackets itself, those as deep as it are not missing.
    """
    run = _CLOSERS.match(data, below)
    closers = [bytes([c]) for c in run[0] if c in b")]}"] if run else []
    found: list[int] = []
    for at, width in opened:
        if width == columns and closers and closers[0] == PAIRS.get(data[at : at + 1]):
            break
        if width < columns or (width == columns and goes_on(data, below, data[at : at + 1])):
            break
        found.append(at)
    return tuple(found)
