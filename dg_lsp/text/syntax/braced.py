"""What is open at a place of a text where braces hold bodies together, and the item of the file that the place is in.

Knows tokens, brackets and the lines at column 0; knows no grammar, no tree and no document.
"""

import re
from dataclasses import replace
from functools import lru_cache

from dg_lsp.text.documents.lines import line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.braced_focus import LONG, focus
from dg_lsp.text.syntax.braced_reading import BracketMatcher, read
from dg_lsp.text.syntax.braced_tokens import hole_at, quotes_at, tokens
from dg_lsp.text.syntax.braced_window import block, window
from dg_lsp.text.syntax.tokens import State

__all__ = ["block", "state_at", "state_from", "tokens", "window"]

# What stands between two lines of one statement.
_JOINING = re.compile(rb"[=+\-*/%&|?<>.(\[][ \t]*\Z")


def state_at(language: Language, data: bytes, offset: int, start: int) -> State:
    """What is open at `offset`, read from `start`, a place in no string; of a long item only what is round the place.

    The code inside a template counts the template among its brackets.
    """
    if offset - start <= LONG:
        return state_from(language, data, offset, start)
    return _focused(language, data, offset, start)


@lru_cache(maxsize=8)
def state_from(language: Language, data: bytes, offset: int, start: int) -> State:
    """What is open at `offset`, where all is read from `start`, a place in no string, and no lines are consulted.

    The last answers are kept, for one gap asks the same several times.
    """
    return replace(_read(language, data, offset, start), start=start)


@lru_cache(maxsize=8)
def _focused(language: Language, data: bytes, offset: int, start: int) -> State:
    stop = max(window(language, data, offset)[1], offset)
    found = _read(language, focus(language, data[start:stop], offset - start), offset - start, 0)
    opened = tuple(at + start for at in found.opened)
    begins = found.begins + start if found.begins >= 0 else -1
    return State(found.brackets, opened, found.string, found.comment, begins, found.line + start, start)


def _read(language: Language, data: bytes, offset: int, start: int) -> State:
    reading = read(language, data, start, offset)
    opened = [o for o in reading.stack if not o.doubtful]
    at, brackets = tuple(o.at for o in opened), b"".join(o.bracket for o in opened)
    line = _line(reading, offset)
    kind, first, end = reading.last if reading.last else ("", -1, -1)
    if kind == "open_string" and end == offset:
        quotes = quotes_at(language, data, first)
        hole = hole_at(language, data, first, offset) if quotes.hole else -1
        if hole < 0:
            return State(brackets, at, quotes.close, False, first, line)
        inner = _read(language, data, offset, hole)
        inside = (*at, first, hole - 1, *inner.opened)
        brackets += quotes.close[:1] + b"{" + inner.brackets
        return State(brackets, inside, inner.string, inner.comment, inner.begins, inner.line)
    if kind == "directive" and end == offset:
        inner = _read(language, data, offset, first + len(language.words.directive))
        brackets, at = brackets + inner.brackets, (*at, *inner.opened)
        return State(brackets, at, inner.string, inner.comment, inner.begins, inner.line)
    if kind == "comment" and end == offset and not _closed(language, data[first:end]):
        return State(brackets, at, b"", True, first, line)
    return State(brackets, at, b"", False, -1, line)


def _line(reading: BracketMatcher, offset: int) -> int:
    """Where the statement at the end of `reading` begins; on a blank line mostly there."""
    if reading.fresh and (not reading.stack or reading.stack[-1].bracket == b"{"):
        here = line_start(reading.data, offset)
        above = reading.data[max(here - 80, 0) : here].rstrip()
        if reading.line < 0 or not _JOINING.search(above):
            return here
    if reading.line >= 0:
        return reading.line
    return max(min(reading.end, offset), line_start(reading.data, offset))


def _closed(language: Language, comment: bytes) -> bool:
    """Whether a comment ends before its line does."""
    pairs = [(a.encode(), b.encode()) for a, b in language.block_comments]
    return any(comment.startswith(a) and comment.endswith(b, len(a)) for a, b in pairs)
