"""Offer: fills that were found for one place, and whether they are still good after some typing.

Knows documents and edits; knows no engine and no editor.
"""

from dataclasses import dataclass

from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills.edit import Edit


@dataclass(frozen=True, slots=True)
class Offer:
    """`texts`, the surest first, may replace the bytes [start, end) of `document`."""

    document: Document
    start: int
    end: int
    texts: tuple[str, ...]


def still_good(offer: Offer, document: Document, cursor: int) -> list[Edit]:
    """The edits of `document` that the offer comes to when what was typed since agrees with it; else none."""
    typed = _typed(offer, document, cursor)
    if typed is None:
        return []
    end = _end(offer, document)
    found = [text for text in offer.texts if text.encode("utf-8").startswith(typed)]
    return [Edit(offer.start, end, text) for text in found if len(text.encode("utf-8")) > len(typed)]


def used_up(offer: Offer, document: Document, cursor: int) -> bool:
    """Whether one of the fills has been taken, or typed, to its end, and nothing else changed."""
    typed = _typed(offer, document, cursor)
    return typed is not None and typed in (text.encode("utf-8") for text in offer.texts)


def _typed(offer: Offer, document: Document, cursor: int) -> bytes | None:
    """What stands in the gap up to the cursor; None unless all else is as it was, but for blanks behind the cursor."""
    old, new, end = offer.document, document, _end(offer, document)
    if old.uri != new.uri or not offer.start <= cursor <= end:
        return None
    if old.data[: offer.start] != new.data[: offer.start] or old.data[offer.end :] != new.data[end:]:
        return None
    return None if new.data[cursor:end].strip(b" \t\f") else new.data[offer.start : cursor]


def _end(offer: Offer, document: Document) -> int:
    """Where the gap ends in `document`, which may be another version of the offer's."""
    return len(document.data) - (len(offer.document.data) - offer.end)
