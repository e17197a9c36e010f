"""Offer: the fills that were found for one place, and what is left of them after some typing."""

from dataclasses import dataclass

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.lines import line_start
from dg_lsp.text.fills.edit import Edit


@dataclass(frozen=True, slots=True)
class Offer:
    """`texts`, the surest first, may replace the bytes [start, end) of `document`."""

    document: Document
    start: int
    end: int
    texts: tuple[str, ...]


def still_good(offer: Offer, document: Document, cursor: int) -> list[Edit]:
    """Return the offer as edits of `document`, if what was typed since is the beginning of its texts; else none.

    After `return x` was offered and `re` typed, the edit still replaces the gap by `return x`.
    """
    typed = _typed(offer, document, cursor)
    if typed is None:
        return []
    end = _end(offer, document)
    found = [text for text in offer.texts if text.encode("utf-8").startswith(typed)]
    return [Edit(offer.start, end, text) for text in found if len(text.encode("utf-8")) > len(typed)]


def used_up(offer: Offer, document: Document, cursor: int) -> bool:
    """Whether one of the fills was accepted, or typed out, and nothing else changed."""
    typed = _typed(offer, document, cursor)
    return typed is not None and typed in (text.encode("utf-8") for text in offer.texts)


def place_of(document: Document, cursor: int) -> bytes:
    """Return what tells the place of `cursor` however the lines above move: the line above, and its own up to it."""
    line = line_start(document.data, cursor)
    return document.data[line_start(document.data, line - 1) if line else 0 : cursor]


def accepted_end(offer: Offer, document: Document) -> int | None:
    """Return where a fill ends that was accepted or typed out, if nothing else changed, not even blanks; else None."""
    ends = (offer.start + len(text.encode("utf-8")) for text in offer.texts)
    behind = len(offer.document.data) - offer.start
    return next((e for e in ends if len(document.data) - e == behind and used_up(offer, document, e)), None)


def _typed(offer: Offer, document: Document, cursor: int) -> bytes | None:
    """Return what stands in the gap before the cursor; None if anything else but blanks changed."""
    old, new, end = offer.document, document, _end(offer, document)
    if old.uri != new.uri or not offer.start <= cursor <= end:
        return None
    if old.data[: offer.start] != new.data[: offer.start] or old.data[offer.end :] != new.data[end:]:
        return None
    return None if new.data[cursor:end].strip(b" \t\f") else new.data[offer.start : cursor]


def _end(offer: Offer, document: Document) -> int:
    """Return where the gap ends in `document`, a later version of the offer's."""
    return len(document.data) - (len(offer.document.data) - offer.end)
