"""Where a parser gives a text up: the places at which no reading of it is left, from tree-sitter's log.

Knows a grammar and a text with a tree; judges nothing.
"""

import re
from collections.abc import Iterator

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.baseline import Text

_PLACE = re.compile(r"process version:\d+, .*\brow:(\d+), col:(\d+)")


def given_up(language: Language, text: Text, behind: bytes) -> Iterator[int]:
    """Where all readings of `text.before` with `behind` behind it had failed, counted from where `behind` begins.

    What stands before such a place is the beginning of something that parses, from the place before on. The first
    `detect_error` is none: where a grammar is ambiguous, one reading fails and another goes on.
    """
    log: list[str] = []
    span = (len(text.before), len(text.data))
    language.reparse(text.tree, text.data, span, behind, log.append)
    # Rows are counted as tree-sitter does in what Language gives it to read.
    rows = re.finditer(rb"\r\n|\n|\r", text.before + behind)
    starts = [0, *(found.end() for found in rows)]
    at, failed = 0, [0]
    for words in log:
        if place := _PLACE.match(words):
            at = starts[int(place[1])] + int(place[2])
        elif words.startswith("detect_error"):
            failed.append(at)
        elif words.startswith("resume version"):
            yield max(failed) - len(text.before)
            failed = [0]
