"""Parse log: where tree-sitter gave up every reading of a text, from its own log."""

import re
from collections.abc import Iterator

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.baseline import Text

_PLACE = re.compile(r"process version:\d+, .*\brow:(\d+), col:(\d+)")


def given_up(language: Language, text: Text, behind: bytes) -> Iterator[int]:
    """Yield the places in `text.before` + `behind` where every reading had failed, counted from the start of `behind`.

    The text up to such a place, from the one before it on, is the beginning of something that parses. A `detect_error`
    in the log alone is not enough: in an ambiguous grammar one reading fails and another goes on.
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
