"""Open places: decide whether code is missing at a cursor, or its line is finished there.

Knows contexts and gaps; knows no fill and no editor.
"""

import re

from dg_lsp.text.budget import bounded
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.context import CursorContext, context_at
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import BODIES, STRINGS
from dg_lsp.text.syntax.lexer import line_end, line_start

# A bracket or a comma before the cursor, and what closes it or goes on behind: an element is missing in between.
_OPENS, _SHUTS = b"([{,", b")]},"
_QUOTES = b"\"'`"
# Words that a value may follow, though none need.
_BARE = re.compile(rb"\b(?:return|yield|raise|throw|break|rethrow)[ \t]+\Z")
_WORD = re.compile(rb"[\w$\x80-\xff]")


@bounded
def finished(document: Document, gap: Gap, cursor: int) -> str:
    """Return why nothing is open at `cursor`, where `gap` was found, as a sentence; empty if something is.

    Open are placeholders and bodies, blank lines, empty brackets and quotes, and lines with something missing at the
    cursor, such as `x = |` and `if first(a, |`. Finished is `x = |first(a)`.

    1. Read the text round the cursor.  2. Else a repair shows whether anything is missing at the cursor.
    """
    if gap.stub or gap.hollow or gap.kind in BODIES or gap.kind == "span":
        return ""
    # 1.
    data = document.data
    before, behind = data[line_start(data, cursor) : cursor], data[cursor : line_end(data, cursor)]
    if _WORD.match(before[-1:]) and _WORD.match(behind):
        return "the cursor is in the middle of a word"
    if _is_blank_place(data, gap, cursor, (before, behind)):
        return ""
    # 2.
    context = context_at(document, load_language(document.language, document.macros), cursor)
    return "" if _is_missing(context, behind) else "this line is finished"


def _is_blank_place(data: bytes, gap: Gap, cursor: int, line: tuple[bytes, bytes]) -> bool:
    """Return whether the place on its `line`, before and behind the cursor, shows that something may be written
    there.
    """
    before, behind = line
    rest = behind.strip()
    if not rest and (not before.strip() or gap.kind == "comment"):
        return True
    if rest[:1] in (b"", b";", b"}") and _BARE.search(before):
        return True
    if gap.insert_before.startswith(("\n", "\r")):
        # A comment says what is to be written below it.
        return not rest
    if gap.kind in STRINGS:
        return before[-1:] in _pieces(_QUOTES) and behind[:1] in _pieces(_QUOTES)
    last, following = data[:cursor].rstrip()[-1:], data[cursor:].lstrip()[:1]
    return last in _pieces(_OPENS) and following in _pieces(_SHUTS)


def _is_missing(context: CursorContext, behind: bytes) -> bool:
    """Return whether a repair at the cursor had to put something in; `behind` it is the rest of the line."""
    made = context.repaired
    if made is None:
        return False
    if not context.cost:
        return made.inserted > 0
    # Other damage is near: the end of a line, or the text before a closing bracket, may be unfinished.
    return behind.strip()[:1] in (b"", *_pieces(_SHUTS))


def _pieces(signs: bytes) -> tuple[bytes, ...]:
    return tuple(signs[at : at + 1] for at in range(len(signs)))
