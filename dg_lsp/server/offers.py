"""Offers: the recent fills of a session, those shown as ghost text, and the texts that the user has dismissed."""

from collections import deque

from dg_lsp.files.excluded import key_of
from dg_lsp.filling.offers import Offer, covered, cursor_key, still_good, used_up
from dg_lsp.gaps import Edit, apply_edit
from dg_lsp.server.snapshot import Snapshot
from dg_lsp.source.document import Document

_RECENT = 16  # offers that are kept
_DISMISSED = 100  # dismissed texts that are kept of each document


class Offers:
    """The recent offers of all documents, and the texts that were dismissed in each."""

    def __init__(self) -> None:
        self._recent: deque[Offer] = deque(maxlen=_RECENT)
        self._shown: dict[str, Offer] = {}
        self._ended: Offer | None = None
        self._dismissed: dict[str, deque[tuple[bytes, str]]] = {}

    def keep(self, offer: Offer) -> None:
        """Keep `offer` as the newest one."""
        self._recent.append(offer)

    def show(self, offer: Offer) -> None:
        """Keep `offer` as the ghost text that its document shows."""
        self._shown[offer.uri] = offer

    def shown(self, uri: str) -> Offer | None:
        """Return the newest ghost text of the document `uri`."""
        return self._shown.get(uri)

    def end(self, offer: Offer) -> None:
        """Note that nothing belongs below the text of `offer`."""
        self._ended = offer

    def has_ended(self, offer: Offer) -> bool:
        """Return whether it is known that nothing belongs below the text of `offer`."""
        return self._ended is offer

    def edits_at(self, snapshot: Snapshot, cursor: int) -> list[Edit]:
        """Return the edits at `cursor` of the newest offer that agrees with the text typed since; [] if none does."""
        document = snapshot.document
        for offer in reversed(self._recent):
            edits = still_good(offer, document, cursor)
            if snapshot.client.covers:
                # Of two edits with the same result the first.
                edits = list({apply_edit(document, e).data: e for e in reversed(edits)}.values())[::-1]
            else:
                edits = [e for e in edits if not covered(document, cursor, e)]
            if edits:
                self.show(offer)
                return edits
        return []

    def accepted_at(self, document: Document, cursor: int) -> bool:
        """Return whether an offer that was accepted, or typed to its end, ends at `cursor`."""
        return any(used_up(offer, document, cursor) for offer in self._recent)

    def dismiss(self, document: Document, cursor: int, text: str) -> None:
        """Do not offer `text` at `cursor` again until the document is closed."""
        known = self._dismissed.setdefault(document.uri, deque(maxlen=_DISMISSED))
        known.append((cursor_key(document, cursor), text))

    def was_dismissed(self, document: Document, cursor: int, text: str) -> bool:
        """Return whether the user has dismissed `text` at `cursor`."""
        return (cursor_key(document, cursor), text) in self._dismissed.get(document.uri, ())

    def continues_dismissed(self, document: Document, cursor: int) -> bool:
        """Return whether the text before `cursor` is a dismissed one up to where the user is typing it."""
        here = cursor_key(document, cursor)
        return any(
            here.startswith(key) and key != here and text.encode("utf-8").startswith(here[len(key) :])
            for key, text in self._dismissed.get(document.uri, ())
        )

    def closed(self, uri: str) -> None:
        """Drop the offers for the document `uri` and those with text from it."""
        self._dismissed.pop(uri, None)
        self._shown.pop(uri, None)
        gone = key_of(uri)
        used = [o for o in self._recent if o.uri == uri or gone in map(key_of, o.files)]
        self._recent = deque((o for o in self._recent if o not in used), _RECENT)
        self._shown = {name: offer for name, offer in self._shown.items() if offer not in used}

    def clear(self) -> None:
        """Drop all offers, which other settings would not make."""
        self._recent.clear()
        self._shown.clear()
        self._ended = None
