"""Ablations of the recipe, and what shapes can learn: short trainings that differ in one thing, side by side.

    python -m benchmarks.recipe RUN NAME [--steps 600]     (RUN as `dg-lsp train` has prepared it)

Each of VARIANTS is trained from scratch on the corpus of RUN with the same seed and as many steps, one thread, and
then measured in bits a byte on holes in the held-out modules (not those of the shipped list). Milliseconds a step are
the median, so a pause does not count; those of a denoising step come from `benchmarks.shapes`.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from dg_lsp.bench import files as located
from dg_lsp.bench import lists as evaluation
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.settings import Settings
from dg_lsp.text.prompts import prompt
from dg_lsp.training import optimise
from dg_lsp.training.bits import bits_per_byte
from dg_lsp.training.corpus import Corpus, Source, tokenise
from dg_lsp.training.export import export
from dg_lsp.training.heldout import File
from dg_lsp.training.layouts import Bucket
from dg_lsp.training.tokenizer import train_tokenizer
from dg_lsp.training.trainer import RATES, Recipe, Trainer

BUCKET = Bucket(2, 512, 16, 64, 1.0)  # half a batch of the recipe's commonest
KINDS = ("rest_of_line", "expression", "statement")
# What each differs in from the first.
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "infill .25": {"infill": 0.25},
    "infill .9": {"infill": 0.9},
    "no self-conditioning": {"conditioned": False},
    "rates x 1/2": {"rates": (RATES[0] / 2, RATES[1] / 2)},
    "rates x 2": {"rates": (RATES[0] * 2, RATES[1] * 2)},
    "AdamW for all": {"muon": False},
    "vocabulary 2048": {"vocabulary": 2048},
    "vocabulary 8192": {"vocabulary": 8192},
    "192x4": {"width": 192},
    "320x4": {"width": 320},
    "256x8": {"layers": 8},
}


def files_of(run: Path) -> Iterator[tuple[int, str]]:
    """A fifth of the corpus in `run` as text, each file with the number of its source."""
    corpus, tokenizer = Corpus.load(run / "corpus.npz"), Tokenizer.from_file(str(run / "tokenizer.json"))
    firsts = np.unique(corpus.first)
    for line in firsts[::5].tolist():
        begin, end = corpus.lines[line], corpus.lines[corpus.last[line]]
        source = int(np.searchsorted(corpus.sources[:, 1], line, side="right"))
        yield source, tokenizer.decode(corpus.tokens[begin:end].tolist(), skip_special_tokens=False)


def retokenise(run: Path, vocabulary: int) -> Path:
    """A fifth of the corpus in a vocabulary of another size, beside `run`, made once."""
    made = run.parent / f"{run.name}-{vocabulary}"
    if not (made / "tokenizer.json").exists():
        made.mkdir(exist_ok=True)
        masses = Corpus.load(run / "corpus.npz").sources[:, 2].tolist()
        texts = list(files_of(run))
        tokenizer = train_tokenizer((text for _, text in texts), vocabulary)
        files = [File(str(source), "", text) for source, text in texts]
        names = sorted({source for source, _ in texts})
        sources = [Source(str(n), "", "", 0, 0, masses[n]) for n in names]
        tokenise(files, sources, tokenizer).save(made / "corpus.npz")
        tokenizer.save(str(made / "tokenizer.json"))
    return made


def train(run: Path, steps: int, told: dict[str, Any]) -> tuple[Trainer, float]:
    """A network trained as `told`, and the median milliseconds of a step."""
    if told.get("vocabulary"):
        run = retokenise(run, told["vocabulary"])
    named = {name: told[name] for name in ("width", "layers", "rates", "infill") if name in told}
    if not told.get("muon", True):
        optimise._is_hidden = lambda name, master: False  # noqa: ARG005
    made = Trainer(run, Recipe(steps=steps, buckets=(BUCKET,), compiled=True, **named))
    if not told.get("conditioned", True):
        part = made.network.model.decoder.self_conditioning
        whole = part.forward
        part.forward = lambda embedded, soft, *rest: whole(embedded, soft * 0, *rest)
    times = []
    for step in range(steps):
        begin = time.perf_counter()
        found = made.advance()
        times.append((time.perf_counter() - begin) * 1000)
        if step % 50 == 49:
            print(
                json.dumps({"step": step + 1, **{k: round(float(v), 3) for k, v in found.items()}}),
                flush=True,
            )
    return made, statistics.median(times)


def measure(made: Trainer, holes: int) -> dict[str, float]:
    """Bits a byte on the same holes for every variant."""
    with tempfile.TemporaryDirectory() as folder:
        export(made.network, made.out / "tokenizer.json", Path(folder) / "export", {})
        model = load_checkpoint(str(Path(folder) / "export"), "cpu")
        cases = evaluation.choose(located.find_heldout().documents, KINDS, holes, 7)
        asked = [replace(prompt.build(c.document, c.gap, Settings()), like=c.truth) for c in cases]
        return bits_per_byte(model, asked)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("name", choices=VARIANTS)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--holes", type=int, default=60)
    given = parser.parse_args()
    torch.set_num_threads(1)
    made, step = train(given.run, given.steps, VARIANTS[given.name])
    found = measure(made, given.holes)
    weights = sum(w.numel() for n, w in made.network.named_parameters() if "vision" not in n)
    shown = {"variant": given.name, "steps": given.steps, "M weights": round(weights / 1e6, 1)}
    print(
        json.dumps(shown | {"ms a step": round(step), **{k: round(v, 3) for k, v in found.items()}}),
        flush=True,
    )


if __name__ == "__main__":
    main()
