"""Stitching by hand: bodies of 300 to 1,500 tokens of the standard library, filled canvas by canvas.

    python -m benchmarks.stitch --fills 200
    python -m benchmarks.stitch --fills 200 --chat
    python -m benchmarks.stitch --fills 200 --network

The first with a denoiser that knows the truth: it shows what layouts and seams alone do to a text. In the second the
model is one to which one talks: its prompt holds what stands further down. The third with the
checkpoint itself, its own length search included: what it writes is its own, so lines are counted, not compared.
"""

import argparse
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from unittest import mock

import torch

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.fill import infill
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.fills import fit
from dg_lsp.text.fills.stitch import go_on
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.gaps.gap import apply_edit
from dg_lsp.text.messages import Draft, Fill
from dg_lsp.text.prompts import prompt
from tests.model.oracle import Oracle, long_bodies, talking


def fill(model: Checkpoint, document: Document, gap: Gap, settings: Settings, like: str | None) -> Fill:
    """The Fill of `gap`."""
    request = replace(prompt.build(document, gap, settings), like=like)
    *_, last = infill(model, PrefixCache(model.network.config.text_config), request)
    assert not isinstance(last, Draft)
    return last


def counted(document: Document, gap: Gap, found: Fill, count: Counter[str]) -> None:
    """Count what became of the text outside the gap and of the lines at the seams."""
    count["fills"] += 1
    if not found.text:
        count["nothing offered"] += 1
        return
    count["real fills"] += 1
    count["tokens at least one canvas long"] += len(found.text) > 400
    new = apply_edit(document, fit.make_edit(document, gap, found.text)).data
    same = new.startswith(document.data[: gap.start]) and new.endswith(document.data[gap.end :])
    count["bytes outside the gap changed"] += not same
    count["new syntax errors"] += not found.parses


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fills", type=int, default=20)
    parser.add_argument("--network", action="store_true", help="the checkpoint writes, not the truth")
    parser.add_argument("--chat", action="store_true", help="with what stands further down in the prompt")
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument("--effort", default="high")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = load_checkpoint(options.checkpoint, "cpu")
    settings = Settings(effort=options.effort, prefix_bytes=2000, suffix_bytes=1000)
    if options.chat:
        model, settings = talking(model), replace(settings, suffix_bytes=6000)
    count: Counter[str] = Counter()
    start = time.perf_counter()
    for document, gap, body in long_bodies(model, 300, 1500, options.fills):
        pieces: list[tuple[str, str]] = []

        def seen(request, before, more, pieces=pieces):  # type: ignore[no-untyped-def]
            written = go_on(request, before, more)
            pieces.append((before, written.text))
            return written

        oracle = Oracle(model, document, gap)
        with mock.patch("dg_lsp.model.candidates.go_on", seen):
            if options.network:
                found = fill(model, document, gap, settings, None)
            else:
                with mock.patch("dg_lsp.model.steps.denoise", oracle):
                    found = fill(model, document, gap, settings, body)
        counted(document, gap, found, count)
        kept = [(a, b) for a, b in pieces if a != b]
        count["seams"] += len(kept)
        for before, after in kept:
            count["text lost at a seam"] += not after.startswith(before)
        for (_, one), (_, two) in pairwise(kept):
            last = one.rstrip().rsplit("\n", 1)[-1].strip()
            first = two[len(one) :].lstrip().split("\n", 1)[0].strip()
            count["a line twice at a seam"] += len(last) > 1 and one.endswith("\n") and last == first
        if not options.network:
            count["equal to the truth"] += found.text == body.strip()
            if found.text != body.strip():
                print(document.uri, gap.name, found.refusal)
    for name, number in count.items():
        print(f"{number:6d}  {name}")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
