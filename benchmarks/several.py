"""Two to four holes in one function: filled on one canvas, and one by one, by hand.

    python -m benchmarks.several --cases 200

The holes are ends of lines in held-out files, their lengths given. One by one means from the first to the last, each
behind the fills before it, the later holes still empty.
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from dg_lsp.bench.files import find_heldout
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import infill
from dg_lsp.model.sources import several
from dg_lsp.model.sources.several import Gaps
from dg_lsp.model.steps import Clock, run_to_end
from dg_lsp.text.documents.document import Document
from dg_lsp.text.messages import Draft, Infill

_HOLE = re.compile(r"(?:(?<== )|(?<=return )|(?<=\())[^\s#][^\n#]{2,40}$", re.MULTILINE)
_BEFORE, _AFTER, _APART = 2000, 600, 500  # characters that are sent, and that all holes lie within


def cases(documents: Sequence[Document], count: int, seed: int) -> Iterator[tuple[list[str], list[str]]]:
    """(what stands round the holes, one text more than holes; what stood in them)."""
    chance = random.Random(seed)
    for number in range(count):
        wanted = 2 + number % 3
        while True:
            text = chance.choice(documents).text
            holes = [m.span() for m in _HOLE.finditer(text)]
            if len(holes) < wanted:
                continue
            first = chance.randrange(len(holes) - wanted + 1)
            chosen = holes[first : first + wanted]
            if chosen[-1][1] - chosen[0][0] <= _APART:
                break
        ends = [0, *(end for _, end in chosen)]
        starts = [*(start for start, _ in chosen), len(text)]
        round_ = [text[a:b] for a, b in zip(ends, starts, strict=True)]
        round_[0], round_[-1] = round_[0][-_BEFORE:], round_[-1][:_AFTER]
        yield round_, [text[a:b] for a, b in chosen]


def request_for(before: str, after: str) -> Infill:
    """The request for one hole."""
    return Infill(before, after, "python", "rest_of_line")


def fill_together(model: Checkpoint, texts: Sequence[str], truths: Sequence[str]) -> tuple[str, ...]:
    """The fills of one canvas."""
    lengths = tuple(len(model.encode(truth)) for truth in truths)
    request = replace(request_for(texts[0], texts[-1]), between=tuple(texts[1:-1]))
    cache = PrefixCache(model.network.config.text_config)
    steps = several.fill_together(model, cache, Gaps(request, lengths), Clock(None))
    _, fills = run_to_end(steps)
    return tuple("" if fill.refusal else fill.text for fill in fills)


def one_by_one(model: Checkpoint, texts: Sequence[str], truths: Sequence[str]) -> tuple[str, ...]:
    """The fills of a canvas each."""
    found: list[str] = []
    cache = PrefixCache(model.network.config.text_config)
    for number, truth in enumerate(truths):
        before = "".join(a + b for a, b in zip(texts, found, strict=False)) + texts[number]
        request = replace(request_for(before, "".join(texts[number + 1 :])), like=truth)
        *_, last = infill(model, cache, request)
        assert not isinstance(last, Draft)
        found.append(last.text)
    return tuple(found)


def main() -> None:
    """Print both, side by side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = load_checkpoint(options.checkpoint, "cpu")
    documents = find_heldout().documents
    holes, count, seconds = 0, Counter[str](), {"together": 0.0, "one_by_one": 0.0}
    for texts, truths in cases(documents, options.cases, options.seed):
        holes += len(truths)
        for way in (fill_together, one_by_one):
            start = time.perf_counter()
            found = way(model, texts, truths)
            seconds[way.__name__] += time.perf_counter() - start
            right = [text.strip() == truth.strip() for text, truth in zip(found, truths, strict=True)]
            count[f"{way.__name__}: exact"] += sum(right)
            count[f"{way.__name__}: offered"] += sum(bool(text) for text in found)
            count[f"{way.__name__}: all of a case exact"] += all(right)
    print(f"{options.cases} cases, {holes} holes")
    for name, number in count.items():
        print(f"{number:6d}  {name}")
    for name, total in seconds.items():
        print(f"{total / options.cases:.3f} s a case  {name}")


if __name__ == "__main__":
    main()
