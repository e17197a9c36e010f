"""An engine in long use: documents change between fills, caches come and go, and every Fill equals a fresh engine's."""

import random
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from dg_lsp.context import prompt
from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache, PrefixCaches
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import fill as infill
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

LIMIT = 4 << 20  # bytes, less than the prefixes of all documents take


@dataclass(frozen=True, slots=True)
class Asked:
    """One fill of the used engine beside that of a fresh one. held: bytes of the caches after it."""

    request: Infill
    used: Fill
    fresh: Fill
    held: int

    @property
    def equal(self) -> bool:
        """Whether they differ in nothing but the time they took."""
        return replace(self.used, milliseconds=0) == replace(self.fresh, milliseconds=0)


def some_documents(count: int) -> list[Document]:
    """Files of the standard library of a few kilobytes, always the same ones."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    fit = [file for file in files if 4_000 < file.stat().st_size < 40_000]
    chosen = fit[:: max(len(fit) // count, 1)][:count]
    return [Document(file.as_uri(), "python", 0, file.read_bytes()) for file in chosen]


def edited(document: Document, rng: random.Random) -> Document:
    """`document` with lines or characters inserted, deleted or replaced at a random place."""
    text = document.text
    pieces = text.splitlines(keepends=True) if rng.random() < 0.5 else list(text)
    at = rng.randrange(len(pieces) + 1)
    gone = rng.choice((0, 1, 4)) if len(pieces) > 40 else 0
    # What comes in was somewhere in the file before, as in most edits.
    source = rng.randrange(len(pieces) or 1)
    new = pieces[source : source + rng.choice((0, 1, 3))]
    data = "".join([*pieces[:at], *new, *pieces[at + gone :]]).encode("utf-8")
    return replace(document, version=document.version + 1, data=data)


def some_request(document: Document, rng: random.Random, settings: Settings) -> Infill | None:
    """What is asked at a random place; None where there is no gap."""
    offset = document.offset(rng.randrange(len(document.line_starts)), rng.randrange(60))
    try:
        gap = find_gap(document, offset, rng.choice(("rest_of_line", "rest_of_line", None)))
    except NoGap:
        return None
    return replace(prompt.build(document, gap, settings), seed=rng.randrange(2**31))


def ask(model: Checkpoint, caches: PrefixCaches, request: Infill) -> Asked:
    """Fill `request` as the engine does that has been used, and as one that has just been started."""

    def last(cache: PrefixCache) -> Fill:
        *_, fill = infill(model, cache, request)
        assert isinstance(fill, Fill)
        return fill

    with caches.lend(request.session) as cache:
        used = last(cache)
    return Asked(request, used, last(PrefixCache(model.network.config.text_config)), caches.bytes)


def ask_between_edits(
    model: Checkpoint, caches: PrefixCaches, documents: list[Document], settings: Settings
) -> Iterator[Asked]:
    """Without end: edit a document some times, ask, take another."""
    rng, documents = random.Random(settings.seed), list(documents)
    while True:
        number = rng.randrange(len(documents))
        for _ in range(rng.randrange(4)):
            documents[number] = edited(documents[number], rng)
        request = some_request(documents[number], rng, settings)
        if request is not None:
            yield ask(model, caches, request)


def test_a_fill_between_edits_is_the_one_of_a_fresh_engine_and_the_caches_keep_their_limit() -> None:
    model = load_checkpoint("embedded", "cpu")
    caches = PrefixCaches(model.network.config.text_config, LIMIT)
    documents = some_documents(4)
    settings = Settings(effort="low", seed=3, prefix_bytes=2500)
    found = list(islice(ask_between_edits(model, caches, documents, settings), 8))
    assert [asked.used for asked in found if not asked.equal] == []
    assert max(asked.held for asked in found) <= LIMIT
    assert len({asked.request.session for asked in found}) >= 3
    assert 0 < len(caches) < len(documents), "caches that are never dropped prove nothing of the limit"
    assert sum(bool(asked.used.text) for asked in found) >= 2, "empty fills are equal too easily"
