"""Words in sight: completions of a half-typed word at the cursor. Reads bytes by patterns; parses nothing."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from dg_lsp.budget import bounded, check
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import closed_string, comment_patterns

# Bytes that are read on each side of the cursor, and of each other document from its beginning.
NEAR = 100_000
# Words that are compared at most; more of them say that hardly anything has been typed yet.
MOST = 64
_LONGEST = 500  # bytes of a word
# A byte of a character that is not in ASCII counts as a letter.
_PART = rb"[\w$\x80-\xff]"
_HALF = re.compile(rb"(?<!%s)(?!\d)%s+\Z" % (_PART, _PART))


def half_word(data: bytes, cursor: int) -> bytes:
    """The beginning of a word directly before the cursor: `fi` in `x = fi|`; empty in `fi|rst`, `fi |` and `12|`."""
    if is_part(data[cursor : cursor + 1]):
        return b""
    found = _HALF.search(data[max(cursor - _LONGEST - 1, 0) : cursor])
    return found[0] if found and len(found[0]) <= _LONGEST else b""


def typed_half(text: str) -> str:
    """The beginning of a word at the end of `text`, as `half_word` finds it."""
    data = text.encode("utf-8", "replace")
    return half_word(data, len(data)).decode("utf-8", "replace")


def is_part(text: bytes) -> bool:
    """Return whether `text` begins with a character of a word."""
    return re.match(_PART, text) is not None


@bounded
def endings(language: Language, document: Document, cursor: int, others: Sequence[bytes]) -> tuple[str, ...]:
    """Return at most MOST completions of the half-typed word before the cursor to words in sight, the nearest first.

    In sight are the names in the code of `document` and of the texts `others`, and the language's keywords and
    builtins. An empty ending says that the half word is one of them.
    """
    half = half_word(document.data, cursor)
    known = [word for word in (*language.builtins, *language.keywords) if word.startswith(half)]
    data, start = document.data, max(cursor - NEAR, 0)
    here = sorted(
        (abs(start + at - cursor), word)
        for at, word in _names(language, half, data[start : cursor + NEAR])
        if start + at + len(half) != cursor
    )
    there = [word for text in others for _, word in _names(language, half, text[:NEAR])]
    names = list(dict.fromkeys([*(word for _, word in here), *there]))[: max(MOST - len(known), 0)]
    found = dict.fromkeys((*names, *known))
    return tuple(word.removeprefix(half).decode("utf-8", "replace") for word in found)[:MOST]


def _names(language: Language, half: bytes, text: bytes) -> Iterator[tuple[int, bytes]]:
    """The words of `text` that begin with `half`, with their places; those in comments and strings are left out."""
    for match in re.finditer(
        b"%s|(?<!%s)(%s%s*)" % (_skipped(language), _PART, re.escape(half), _PART), text, re.DOTALL
    ):
        check()
        if match[1] is not None:
            yield match.start(), match[1]


@lru_cache
def _skipped(language: Language) -> bytes:
    """A pattern of the comments and strings of `language`, and of what begins one, which is empty.

    What is never closed is looked for up to the end of the text, so that the time is looked at for each beginning.
    """
    begins = (*(begin for begin, _ in language.block_comments), *(quotes.open for quotes in language.strings))
    skipped = (*comment_patterns(language), *map(closed_string, language.strings))
    return b"|".join((*skipped, b"(?=%s)" % b"|".join(re.escape(begin) for begin in begins if begin)))
