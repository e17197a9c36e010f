"""The work behind `dg-lsp train`, from options to an exported checkpoint. Imports torch."""

import argparse
import os
import sysconfig
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer

from dg_lsp.bench import adapted as adapt
from dg_lsp.bench.score import as_text, make_report
from dg_lsp.checkpoints import MANIFEST, CheckpointError
from dg_lsp.model.checkpoint import find_directory
from dg_lsp.model.networks.causal import FAMILY
from dg_lsp.model.networks.loading import kind_of
from dg_lsp.settings import Settings, UsageError
from dg_lsp.training import corpus as corpora
from dg_lsp.training import loop
from dg_lsp.training.average import average
from dg_lsp.training.importing import ImportRefusedError, import_checkpoint
from dg_lsp.training.layouts import BUCKETS, DRAFTS
from dg_lsp.training.trainer import RATES, Recipe, Trainer
from dg_lsp.training.workers import caught_signals, run_processes

# The peak rates of --drafts: 61,000 tokens lowered small's loss by a tenth (docs/research/candidates-and-judge.md).
DRAFT_RATES = (1.5e-3, 1.5e-3)


def train(arguments: argparse.Namespace) -> int:
    """Train as `arguments`, which fit each other, say; return 0 when an export was written.

    Raises:
        UsageError: the checkpoint to begin with is missing, or the repository holds too few files.
    """
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(arguments.threads)
    try:
        if arguments.average:
            average({find_directory(name): share for name, share in arguments.average}, out)
            return 0
        base = _beginning(find_directory(arguments.base), out) if arguments.base else None
    except (CheckpointError, ImportRefusedError) as error:
        raise UsageError(str(error)) from error
    if arguments.repo:
        return _adapt(arguments, base)
    if not (out / "tokenizer.json").exists():
        print("gathering the corpus", flush=True)
        known = Tokenizer.from_file(str(base / "tokenizer.json")) if base else None
        roots = arguments.packages or [Path(sysconfig.get_path("purelib"))]
        corpora.prepare(out, roots, known, arguments.source)
    if not arguments.export and (count := _processes(arguments)) > 1:
        return run_processes(count)
    _step(Trainer(out, _recipe(arguments, base), base), arguments)
    return 0


def _beginning(base: Path, out: Path) -> Path:
    """The checkpoint in `base` in the classes of DiffusionGemma; a causal network is imported into `out`."""
    if kind_of(base) not in FAMILY:
        return base
    imported = out / "imported"
    if not (imported / MANIFEST).exists():
        import_checkpoint(str(base), imported, progress=lambda text: print(text, flush=True))
    return imported


def _recipe(arguments: argparse.Namespace, base: Path | None) -> Recipe:
    """The recipe that the options ask for."""
    buckets = DRAFTS if arguments.drafts else BUCKETS
    recipe = Recipe(
        steps=arguments.steps,
        seconds=60 * arguments.minutes,
        seed=arguments.seed,
        width=arguments.hidden,
        layers=arguments.layers,
        compiled=arguments.compile,
        decay=arguments.decay,
        buckets=[replace(bucket, rows=bucket.rows * arguments.batch) for bucket in buckets],
        loaders=arguments.loaders,
    )
    if arguments.drafts:
        rank = arguments.lora
        return replace(recipe, rank=rank, rates=DRAFT_RATES if rank else adapt.RATES, warm=20)
    rank = adapt.rank_for(base, arguments.lora) if base else 0
    fused = torch.cuda.is_available() and not rank
    return replace(recipe, rank=rank, rates=adapt.LORA_RATES if rank else RATES, fused=fused)


def _adapt(arguments: argparse.Namespace, base: Path | None) -> int:
    """1. The repository's files, a fifth held out.  2. Fill holes in those.  3. Train.  4. Fill them again."""
    assert base is not None, "checked with the options"
    # 1.
    held = adapt.prepare(arguments.repo, base, arguments.out)
    cases = adapt.cases_of(held, arguments.cases)
    if not cases:
        raise UsageError("the held-out files hold nothing to measure on; name a larger --repo")
    # 2.
    found = adapt.scores(str(base), cases, "before")
    # 3.
    _step(Trainer(arguments.out, adapt.recipe_of(arguments, base), base), arguments)
    # 4.
    to = str((arguments.export or arguments.out / "export").absolute())
    found += adapt.scores(to, cases, "then")
    print(as_text(make_report(found, Settings(checkpoint=to)) | {"files_skipped": []}))
    print(f"The adapted checkpoint: {to}. Use it with --checkpoint {to}.")
    return 0


def _step(trainer: Trainer, arguments: argparse.Namespace) -> None:
    """Train and export; with --export only write what the state holds."""
    if arguments.resume or arguments.export:
        trainer.restore()
    if not arguments.export:
        with caught_signals() as received:
            loop.train(trainer, received)
    if trainer.place.is_main_process:
        trainer.export(arguments.export or trainer.out / "export")


def _processes(arguments: argparse.Namespace) -> int:
    """Return how many processes this one has to start; 1 where it is one of them, or where there is a GPU."""
    if "WORLD_SIZE" in os.environ:
        return 1
    return int(arguments.processes) or (1 if torch.cuda.is_available() else os.cpu_count() or 1)
