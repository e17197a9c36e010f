"""Uses: counts how ghost text is used, as the client reports it, and whether taken text stays."""

import asyncio
import logging
import re
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from dg_lsp.checkpoints import EMBEDDED, OFFERED, is_hub_name
from dg_lsp.filling.offers import Offer
from dg_lsp.server import counts
from dg_lsp.server.counts import Counts, Key
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.history import common
from dg_lsp.source.lexer import line_start

KEPT = 30.0  # seconds after which taken text counts as kept
_EVERY = 10.0  # seconds between two writes of the file
_MOST = 20  # taken texts that are watched, each with the text of its document
_TAKEN = ("tab", "word", "line")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}", re.ASCII)
_log = logging.getLogger("dg_lsp.server")


@dataclass(slots=True)
class _Watched:
    """An offer of which something was taken. text: its line up to it, and the part of it that the document had."""

    offer: Offer
    language: str
    model: str
    text: bytes = b""
    timer: asyncio.TimerHandle | None = None
    saved: bool = False


class Uses:
    """The counts of one server; `document` returns an open document, None if it is not open."""

    def __init__(self, document: Callable[[str], Document | None]) -> None:
        self._document = document
        self._new: Counts = Counter()
        self._known: Counts | None = None
        self._watched: deque[_Watched] = deque(maxlen=_MOST)
        self._last: dict[str, Offer | None] = {}
        self._writing: asyncio.Task[None] | None = None

    def note(self, document: Document, settings: Settings, use: tuple[str, int], offer: Offer | None) -> None:
        """Count a `use`, its kind and characters, of the ghost text of `document`; `offer` is the one shown there."""
        if not settings.statistics:
            return
        kind, characters = use
        language, model = _language(document.language), (offer and offer.model) or model_of(settings)
        found = [kind]
        if kind in _TAKEN:
            found += ["taken"] if self._is_first(document.uri, offer) else []
            self._count(language, model, "characters", characters)
            if offer is not None:
                self._watch(offer, language, model)
        chance = offer.fill.chance if offer and offer.fill else None
        if chance is not None and (kind == "shown" or "taken" in found or kind == "typed"):
            number = min(int(chance * counts.BINS + 1e-9), counts.BINS - 1)
            found.append(f"{'shown' if kind == 'shown' else 'taken'} {number}")
        for one in found:
            self._count(language, model, one)

    def sentence(self, settings: Settings) -> str:
        """Say how ghost text of the model was used on this machine; empty if nothing is known or counted."""
        if not settings.statistics:
            return ""
        if self._known is None:
            self._known = counts.read()[0]
        return counts.sentence(self._known + self._new, model_of(settings))

    def saved(self, uri: str) -> None:
        """Count which of the texts taken in the document `uri` are still there now that it is saved."""
        for one in self._watched:
            if one.offer.uri == uri and not one.saved:
                one.saved = True
                self._check(one, "saved", "changed before saving")

    def closed(self, uri: str) -> None:
        """Stop watching the document `uri`."""
        self._last.pop(uri, None)
        for one in [one for one in self._watched if one.offer.uri == uri]:
            self._forget(one)

    async def write(self) -> None:
        """Add the new counts to the file."""
        new, self._new = self._new, Counter()
        if not new:
            return
        try:
            self._known = await asyncio.to_thread(counts.add, new)
        except OSError as error:
            # It is tried again with the next counts.
            self._new += new
            _log.info("the counts of %s cannot be written (%s)", counts.path(), error.strerror)

    def _is_first(self, uri: str, offer: Offer | None) -> bool:
        """Return whether nothing of `offer` has been taken before."""
        first = offer is None or self._last.get(uri) is not offer
        self._last[uri] = offer
        return first

    def _watch(self, offer: Offer, language: str, model: str) -> None:
        """Check after a while whether the part of `offer` that the document contains now is still in it."""
        one = next((one for one in self._watched if one.offer is offer), None)
        if one is None:
            one = _Watched(offer, language, model)
            if len(self._watched) == _MOST:
                self._forget(self._watched[0])
            self._watched.append(one)
        elif one.timer is not None:
            one.timer.cancel()
        loop = asyncio.get_running_loop()
        one.timer = loop.call_later(KEPT, self._ended, one)
        # The change itself may come after its report.
        loop.call_later(min(1.0, KEPT / 2), self._see, one)
        self._see(one)

    def _see(self, one: _Watched) -> None:
        """Keep the part of an offer that its document contains now, if it is longer than before."""
        offer, document = one.offer, self._document(one.offer.uri)
        if document is None or one.saved:
            return
        after = document.data[offer.start :]
        same = max(common(text.encode("utf-8"), after) for text in offer.texts)
        start = line_start(offer.data, offer.start)
        if document.data[start : offer.start] == offer.data[start : offer.start]:
            one.text = max(one.text, document.data[start : offer.start + same], key=len)

    def _ended(self, one: _Watched) -> None:
        self._check(one, "kept", "changed")
        self._forget(one)

    def _check(self, one: _Watched, kept: str, changed: str) -> None:
        document = self._document(one.offer.uri)
        if document is not None and one.text:
            self._count(one.language, one.model, kept if one.text in document.data else changed)

    def _forget(self, one: _Watched) -> None:
        if one.timer is not None:
            one.timer.cancel()
        self._watched.remove(one)

    def _count(self, language: str, model: str, kind: str, n: int = 1) -> None:
        self._new[Key(language, model, kind)] += n
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write_soon())

    async def _write_soon(self) -> None:
        await asyncio.sleep(_EVERY)
        await self.write()


def model_of(settings: Settings) -> str:
    """Return the name of the model, or a word for one whose name may be a path or an address."""
    if settings.engine_url:
        return "of a server"
    name = settings.checkpoint
    return name if name in (EMBEDDED, *OFFERED) or is_hub_name(name) else "of a folder"


def _language(name: str) -> str:
    return name if _LANGUAGE.fullmatch(name) else "other"
