"""Counts by hand whether the engine stays flat: fills over many documents that change between them, in one engine.

    python -m benchmarks.flat --fills 500 --documents 20

Memory must not grow once the caches are full, and every Fill must be the one that a fresh engine gives (law 4).
oneDNN keeps something for each new shape up to a bound of its own, which hides what the engine itself keeps; with
ONEDNN_PRIMITIVE_CACHE_CAPACITY=0 LRU_CACHE_CAPACITY=1 in the environment it keeps nothing.
"""

import argparse
import random
import resource
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dg_lsp.model.cache import PrefixCache, PrefixCaches
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import infill
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import NoGap, find_gap
from dg_lsp.text.messages import Fill, Infill
from dg_lsp.text.prompts import prompt


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


def high_water() -> int:
    """The most memory that this process has held so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fills", type=int, default=30)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=16, help="limit of the caches of all documents")
    parser.add_argument("--effort", default="low")
    parser.add_argument("--every", type=int, default=50, help="print the memory after so many fills each")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.perf_counter()
    model = load_checkpoint("embedded", "cpu")
    caches = PrefixCaches(model.network.config.text_config, options.megabytes << 20)
    documents = some_documents(options.documents)
    settings = Settings(effort=options.effort, seed=options.seed)
    differ = filled = most = first = 0
    fills = ask_between_edits(model, caches, documents, settings)
    for number, asked in zip(range(1, options.fills + 1), fills, strict=False):
        differ, filled = differ + (not asked.equal), filled + bool(asked.used.text)
        most = max(most, asked.held)
        if not asked.equal:
            print(f"fill {number} differs: {asked.used} is not {asked.fresh}")
        if number % options.every == 0 or number == options.fills:
            first = first or high_water()
            spent = time.perf_counter() - start
            print(f"{number:5d} fills, {high_water() / 2**20:6.0f} MB at most, {spent:6.0f} s", flush=True)
    print(f"{differ} of {options.fills} fills over {len(documents)} documents differ from a fresh engine's")
    print(f"{filled} of {options.fills} are real fills")
    print(f"the caches held {most / 2**20:.0f} MB at most, limit {options.megabytes} MB")
    print(f"the peak grew by {(high_water() - first) / 2**20:.0f} MB after the first {options.every} fills")
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
