"""Pairs: the brackets and strings that a text opens and closes, for clients that accept only its beginning."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from dg_lsp.budget import bounded
from dg_lsp.gaps import Edit, apply_edit
from dg_lsp.source.brackets import PAIRS, state_at
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language, load_language

_OPENERS = re.compile(r"[(\[{\"'`]")
_EITHER = re.compile(rb"[()\[\]{}\"'`]")
_MOST = 100  # brackets and quotes of a text that are looked at
_NEAR = 500  # bytes of the statement before a text that are read again for each of them


class Pair(NamedTuple):
    """A bracket or string of a text, in bytes: it is open after text[open], and its closer is text[close:end]."""

    open: int
    close: int
    end: int


def may_open(text: str) -> bool:
    """Return whether `text` has a character that opens a bracket or a string."""
    return _OPENERS.search(text) is not None


@bounded
def pairs_of(document: Document, edit: Edit) -> list[Pair]:
    """Return the pairs that the text of `edit` opens and closes, those that open first in front.

    A text that begins in a string or a comment has none, and of a very long one only the beginning is read.

    Raises:
        OutOfTime: the text around it takes too long to read.
    """
    text = edit.text.encode("utf-8")
    language, data = load_language(document.language, document.macros), apply_edit(document, edit).data
    state = state_at(language, data, edit.start)
    if state.string or state.comment or state.text:
        return []
    begin = state.line if edit.start - state.line <= _NEAR else edit.start
    found, opened = list[Pair](), dict[int, bytes]()
    for number, mark in enumerate(_EITHER.finditer(text)):
        if number == _MOST:
            break
        now = dict(_open_in(language, data, edit.start + mark.end(), begin, edit.start))
        for at, closer in opened.items():
            if now.get(at) != closer and text.endswith(closer, 0, mark.end()):
                found.append(Pair(at, mark.end() - len(closer), mark.end()))
        opened = now
    return sorted(found)


def _open_in(language: Language, data: bytes, at: int, begin: int, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield what is open at `at` and was opened from `start` on: where it begins, from there, and its closer."""
    state = state_at(language, data, at, begin)
    opened = [
        (place, PAIRS[bytes([bracket])]) for bracket, place in zip(state.brackets, state.opened, strict=True)
    ]
    if state.string and not state.comment:
        opened.append((state.begins, state.string))
    for place, closer in opened:
        if place >= start:
            yield _opening_end(data, place, closer) - start, closer


def _opening_end(data: bytes, place: int, closer: bytes) -> int:
    """Return where the last byte is of what opens at `place`: of three quotes the third, of `f"` the quote."""
    if closer[-1:] in b")]}":
        return place
    quote = data.find(closer[-1:], place)
    return quote + (len(closer) - 1 if closer == closer[-1:] * len(closer) else 0)
