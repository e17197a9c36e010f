"""By hand: how many half-typed words ghost text completes rightly, in the standard library, and how long it takes.

    python -m benchmarks.half_words [--checkpoint embedded] [--each 1] [--show | --calibration]

The places are fixed beforehand: in each held-out file with an odd place in embedded/heldout.json, until there are 20,
a name of at least four letters that the file's name draws, typed to its half. The rest of its line is not yet there. A
word is right if the fill begins with the rest of the name and ends it there. With `--development` the other held-out
files are taken, on which the ranking was chosen. `--calibration` fills nothing: it compares the chance of the likeliest
word with how often it is right.
"""

import argparse
import asyncio
import io
import random
import statistics
import time
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dg_lsp.bench.files import find_heldout
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.fill import FillOptions, Outcome, fill_gap
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.sources.words import rank_endings
from dg_lsp.model.steps import Clock, run_to_end
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import find_gap
from dg_lsp.text.gaps.words import endings, half_word, is_part
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.prompts import prompt

PLACES, LETTERS = 20, 4


@dataclass(frozen=True, slots=True)
class Place:
    """A half word before the cursor of `document`, and the rest of the word that stood there."""

    document: Document
    cursor: int
    rest: str
    line: str


def places(texts: list[tuple[str, str]], each: int) -> Iterator[Place]:
    """`each` places in each of `texts`, pairs of a name and a text."""
    for name, text in texts:
        lines = text.splitlines(keepends=True)
        known = tokenize.generate_tokens(io.StringIO(text).readline)
        names = [t for t in known if t.type == tokenize.NAME and len(t.string) >= LETTERS]
        for token in random.Random(name).sample(names, each):
            row, column = token.start
            half = column + (len(token.string) + 1) // 2
            before = "".join(lines[: row - 1]) + lines[row - 1][:half]
            data = (before + "\n" + "".join(lines[row:])).encode()
            document = Document(f"file:///{name}", "python", 1, data)
            rest = token.string[half - column :]
            yield Place(document, len(before.encode()), rest, lines[row - 1].strip())


async def completed(engine: LocalEngine, place: Place, settings: Settings) -> tuple[str, float]:
    """What ghost text offers at a place, and the seconds that it takes; empty if no word fits."""
    began = time.perf_counter()
    document, cursor = place.document, place.cursor
    gap = find_gap(document, cursor)
    assert half_word(document.data, cursor)
    found = endings(load_language("python"), document, cursor, ())
    text = ""
    if found:
        gap = replace(gap, endings=found)
        async for event in fill_gap(engine, document, gap, settings, FillOptions(1, "ghost")):
            if isinstance(event, Outcome) and event.edit:
                text = event.edit.text
    return text, time.perf_counter() - began


async def measure(options: argparse.Namespace) -> None:
    """Complete the word at each place and print the counts."""
    files = [(d.uri, d.text) for d in find_heldout().documents if d.uri.startswith("stdlib:")]
    chosen = list(places(files[1 - options.development :: 2][:PLACES], options.each))
    settings = Settings(checkpoint=options.checkpoint, deadline=Settings().ghost_deadline)
    engine = LocalEngine.open(settings)
    right, offered, seconds = 0, 0, list[float]()
    for place in chosen:
        # The second time is counted, with the file encoded as it is while one types.
        await completed(engine, place, settings)
        text, took = await completed(engine, place, settings)
        hit = text.startswith(place.rest) and not is_part(text.removeprefix(place.rest).encode())
        right, offered = right + hit, offered + bool(text)
        seconds.append(took)
        if options.show:
            print(f"{'right' if hit else '     '} {place.rest!r:20} {text[:40]!r:44} {place.line[:60]}")
    await engine.close()
    print(f"{len(chosen)} half words: {offered} completed, {right} rightly; ", end="")
    print(f"median {1000 * statistics.median(seconds):.0f} ms, worst {1000 * max(seconds):.0f} ms")


def calibrate(options: argparse.Namespace) -> None:
    """Rank the words at each place and print, by their chance, how often the likeliest one is right."""
    files = [(d.uri, d.text) for d in find_heldout().documents if d.uri.startswith("stdlib:")]
    model, bins = load_checkpoint(options.checkpoint), dict[int, list[tuple[float, bool]]]()
    for place in places(files[1 - options.development :: 2][:PLACES], options.each):
        found = endings(load_language("python"), place.document, place.cursor, ())
        if not found:
            continue
        gap = replace(find_gap(place.document, place.cursor), endings=found)
        request = prompt.build(place.document, gap, Settings())
        ranking = rank_endings(model, PrefixCache(model.network.config.text_config), request, Clock(None))
        best = run_to_end(ranking)[1][0]
        bins.setdefault(min(int(best.chance * 5), 4), []).append((best.chance, best.text == place.rest))
    error, count = 0.0, sum(map(len, bins.values()))
    for number, told in sorted(bins.items()):
        chance, right = (statistics.fmean(column) for column in zip(*told, strict=True))
        error += len(told) / count * abs(chance - right)
        print(f"from {20 * number} %: {len(told)} words, {chance:.2f} told, {right:.2f} right")
    print(f"{count} words, calibration error {error:.3f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--each", type=int, default=1, help="half words of each file")
    parser.add_argument(
        "--development", action="store_true", help="take the files that the ranking was chosen on"
    )
    parser.add_argument("--show", action="store_true", help="print each place")
    parser.add_argument(
        "--calibration", action="store_true", help="only compare the chance of the words with the truth"
    )
    options = parser.parse_args()
    if options.calibration:
        calibrate(options)
    else:
        asyncio.run(measure(options))


if __name__ == "__main__":
    main()
