"""Open places: decide whether code is missing at a cursor, or its line is finished there."""

import re

from dg_lsp.budget import bounded
from dg_lsp.gaps.gap import Gap
from dg_lsp.messages import BODIES, STRINGS
from dg_lsp.source.analysis import Analysis, analyze
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import Line, line_at

# A bracket or a comma before the cursor, and what closes it or continues after it: an element is missing in between.
_OPENS, _SHUTS = (b"(", b"[", b"{", b","), (b")", b"]", b"}", b",")
_QUOTES = (b'"', b"'", b"`")
# Words that a value may follow, though none need.
_BARE = re.compile(rb"\b(?:return|yield|raise|throw|break|rethrow)[ \t]+\Z")
_WORD = re.compile(rb"[\w$\x80-\xff]")


@bounded
def finished(document: Document, gap: Gap, cursor: int) -> str:
    """Return why nothing is open at `cursor`, where `gap` was found, as a sentence; empty if something is.

    Open are placeholders and bodies, blank lines, empty brackets and quotes, and lines with something missing at the
    cursor, such as `x = |` and `if first(a, |`, as a repair shows. Finished is `x = |first(a)`.
    """
    if gap.stub or gap.is_placeholder or gap.kind in BODIES or gap.kind == "span":
        return ""
    # 1.
    line = line_at(document.data, cursor)
    if load_language(document.language).is_plain:
        return "this line is finished" if line.after.strip() else ""
    if _WORD.match(line.before[-1:]) and _WORD.match(line.after):
        return "the cursor is in the middle of a word"
    if _is_blank(document.data, gap, cursor, line):
        return ""
    # 2.
    return "" if _is_missing(analyze(document, cursor)) else "this line is finished"


def _is_blank(data: bytes, gap: Gap, cursor: int, line: Line) -> bool:
    """Return whether the `line` of the cursor alone shows that code may be written there."""
    rest = line.after.strip()
    if not rest and (not line.before.strip() or gap.kind == "comment"):
        return True
    if rest[:1] in (b"", b";", b"}") and _BARE.search(line.before):
        return True
    if gap.insert_before.startswith(("\n", "\r")):
        # A comment asks for code below it.
        return not rest
    if gap.kind in STRINGS:
        return line.before[-1:] in _QUOTES and line.after[:1] in _QUOTES
    return data[:cursor].rstrip()[-1:] in _OPENS and data[cursor:].lstrip()[:1] in _SHUTS


def _is_missing(analysis: Analysis) -> bool:
    """Return whether a repair at the cursor had to put something in."""
    if analysis.whole:
        return False
    if not analysis.cost:
        first, last = analysis.inserted
        return first < last
    # Other damage is near: the end of a line, or the text before a closing bracket, may be unfinished.
    return analysis.line.after.strip()[:1] in (b"", *_SHUTS)
