"""Offer: fills that were found for one place, and whether they are still good after some typing.

Knows documents and edits; knows no engine and no editor.
"""

from dataclasses import dataclass

from dg_lsp.text.document import Document
from dg_lsp.text.edits import Edit


@dataclass(frozen=True, slots=True)
class Offer:
    """`texts`, the surest first, may replace the bytes [start, end) of `document`."""

    document: Document
    start: int
    end: int
    texts: tuple[str, ...]


def still_good(offer: Offer, document: Document, cursor: int) -> list[Edit]:
    """The edits of `document` that the offer comes to when what was typed since agrees with it; else none.

    Nothing but the gap may differ from the offer's document. What stands in it up to the cursor must be the
    beginning of the fill, and only blanks may follow up to its end.
    """
    old, new = offer.document, document
    end = len(new.data) - (len(old.data) - offer.end)
    if old.uri != new.uri or not offer.start <= cursor <= end:
        return []
    if old.data[: offer.start] != new.data[: offer.start] or old.data[offer.end :] != new.data[end:]:
        return []
    typed, rest = new.data[offer.start : cursor], new.data[cursor:end]
    if rest.strip(b" \t\f"):
        return []
    return [
        Edit(offer.start, end, text)
        for text in offer.texts
        if text.encode("utf-8").startswith(typed) and len(text.encode("utf-8")) > len(typed)
    ]
