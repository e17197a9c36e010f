"""`dg-lsp train`: adapt a checkpoint to a repository, or let it learn from folders of code.

The checkpoint is loaded, and torch imported, only by `run`.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dg_lsp.cli.options import explain, say
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import Waiting, telling
from dg_lsp.settings import Settings, UsageError
from dg_lsp.source.language import known_languages

if TYPE_CHECKING:
    from dg_lsp.training.trainer import Recipe, Trainer

_QUIET = 60.0  # seconds between two sentences about a run's progress in a file
DECAY = 0.25  # that of training.trainer.Recipe
DRAFT_RANK = 16  # of the adapter that --drafts trains
# The peak rates of --drafts: 61,000 tokens lowered small's loss by a tenth (docs/research/candidates-and-judge.md).
DRAFT_RATES = (1.5e-3, 1.5e-3)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp train`."""
    explain(
        parser,
        "Adapt a checkpoint to a repository of yours, and show how well it fills held-out files of it before and "
        "after; or let it learn from folders of code. SIGTERM ends it early and cleanly, with an export. Nothing "
        "leaves this machine.",
        "dg-lsp train --from embedded --repo . --minutes 30 --out adapted",
        "0 an export was written, 2 usage or bad input, 130 interrupted",
    )
    parser.add_argument(
        "--from",
        dest="base",
        metavar="CHECKPOINT",
        help="begin with the weights and the tokenizer of this checkpoint; a causal network is imported first",
    )
    parser.add_argument(
        "--repo",
        type=Path,
        metavar="PATH",
        help="learn from the Python files below this folder, a fifth held out",
    )
    parser.add_argument(
        "--source",
        type=_source,
        action="append",
        default=[],
        metavar="LANGUAGE=DIR",
        help="a folder with files of a language to learn from, repeatable; you vouch for their licences",
    )
    parser.add_argument(
        "--cases", type=int, default=100, help="with --repo: holes of each kind to measure on (default: 100)"
    )
    parser.add_argument(
        "--drafts",
        action="store_true",
        help="with --source: learn only to write from left to right, which is all that an imported checkpoint can do; "
        f"a LoRA adapter of rank {DRAFT_RANK} unless --lora says otherwise",
    )
    parser.add_argument(
        "--lora",
        type=int,
        metavar="RANK",
        help="train a LoRA adapter of this rank instead of all weights; default: of rank 16 where there are more than "
        "200 million weights; needs the extra dg-lsp[lora]",
    )
    add_run(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of any training run."""
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="corpus, state, log and export go here"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=90.0,
        help="time of training steps (default: 90); compiling and, with --repo, the two measurements come on top",
    )
    parser.add_argument(
        "--steps", type=int, help="stop after so many steps; they then set the decay, not the minutes"
    )
    parser.add_argument(
        "--decay",
        type=_share,
        default=DECAY,
        metavar="SHARE",
        help="the last part of the run, in which the rate falls to nothing; 1 only anneals a checkpoint "
        "(default: %(default)s)",
    )
    parser.add_argument("--resume", action="store_true", help="continue from the state in --out")
    parser.add_argument("--seed", type=int, default=0, help="of weights, data and noise")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default: 1)")
    parser.add_argument(
        "--no-compile",
        dest="compile",
        action="store_false",
        help="no torch.compile: starts at once, runs slower",
    )
    parser.add_argument(
        "--export", type=Path, metavar="TO", help="only write the state in --out as a checkpoint to TO"
    )


def run(arguments: argparse.Namespace) -> int:
    """Train as `arguments` say; return 0 when an export was written."""
    if arguments.repo and not arguments.repo.is_dir():
        raise UsageError(f"there is no folder {arguments.repo}; name one with --repo")
    if not arguments.base:
        raise UsageError("name the checkpoint to begin with, such as --from embedded")
    if not arguments.repo and not arguments.source:
        raise UsageError("there is nothing to learn from; name --repo PATH, or --source LANGUAGE=DIR")
    if arguments.drafts and arguments.repo:
        raise UsageError(
            "--repo measures how a checkpoint denoises, which --drafts does not train; leave one out"
        )
    with Waiting("importing torch"):
        import torch

    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    base = beginning(arguments.base, arguments.out)
    return (_adapt if arguments.repo else _learn)(arguments, base)


def beginning(checkpoint: str, out: Path) -> Path:
    """Return the folder of `checkpoint` in the classes of DiffusionGemma; a causal network is imported into `out`."""
    # These import transformers, which takes as long as torch.
    with Waiting("importing transformers"):
        from dg_lsp.checkpoints import MANIFEST, find_directory
        from dg_lsp.model.networks.causal import FAMILY
        from dg_lsp.model.networks.loading import kind_of
        from dg_lsp.training.importing import import_checkpoint

        base = find_directory(checkpoint)
    if kind_of(base) not in FAMILY:
        return base
    imported = out / "imported"
    if not (imported / MANIFEST).exists():
        with telling(f"importing {checkpoint}") as tell:
            import_checkpoint(str(base), imported, progress=tell)
    return imported


def _adapt(arguments: argparse.Namespace, base: Path) -> int:
    """Adapt the checkpoint `base` to a repository, and print the scores before and after; return the exit code.

    1. List the repository's files, a fifth held out.  2. Fill holes in these.  3. Train.  4. Fill them again.
    """
    with Waiting("reading the repository"):
        from dg_lsp.bench import adapted
        from dg_lsp.bench.lists import choose
        from dg_lsp.bench.score import as_text, make_report
        from dg_lsp.training.trainer import Trainer

        # 1.
        held = adapted.prepare(arguments.repo, base, arguments.out)
        cases = choose(held, adapted.KINDS, arguments.cases, 0)
    if not cases:
        raise UsageError("the held-out files hold nothing to measure on; name a larger --repo")
    # 2.
    with Waiting("measuring before the training"):
        before = adapted.scores(str(base), cases, "before")
    # 3. All weights of a small network are trained, and an adapter of a large one.
    rank = adapted.rank_for(base, arguments.lora)
    rates = adapted.LORA_RATES if rank else adapted.RATES
    recipe = replace(
        recipe_of(arguments), rates=rates, warm=20, rank=rank, infill=adapted.INFILL, onward=False
    )
    with Waiting("preparing the training"):
        trainer = Trainer(arguments.out, recipe, base)
    take_steps(trainer, arguments)
    # 4.
    to = str((arguments.export or arguments.out / "export").absolute())
    with Waiting("measuring after the training"):
        after = adapted.scores(to, cases, "then")
    show(as_text(make_report([*before, *after], Settings(checkpoint=to)) | {"files_skipped": []}))
    show(adapted.verdict(before, after))
    show(f"The adapted checkpoint: {to}. Use it with --checkpoint {to}.")
    return 0


def _learn(arguments: argparse.Namespace, base: Path) -> int:
    """Gather the folders' files, unless that is done, and train."""
    from tokenizers import Tokenizer

    from dg_lsp.bench import adapted
    from dg_lsp.training.corpus import gather_folders, write_corpus
    from dg_lsp.training.layouts import DRAFTS
    from dg_lsp.training.trainer import Trainer

    if not (arguments.out / "tokenizer.json").exists():
        with telling("gathering the corpus") as tell:
            tell("gathering the corpus")
            files, sources = gather_folders(arguments.source)
            if not files:
                raise UsageError(
                    "the folders of --source hold no code that somebody wrote by hand; name others"
                )
            write_corpus(arguments.out, files, sources, Tokenizer.from_file(str(base / "tokenizer.json")))
    rank = adapted.rank_for(base, arguments.lora)
    if arguments.drafts:
        rank = DRAFT_RANK if arguments.lora is None else arguments.lora
        rates = DRAFT_RATES if rank else adapted.RATES
        recipe = replace(recipe_of(arguments), buckets=DRAFTS, rank=rank, rates=rates, warm=20)
    else:
        recipe = recipe_of(arguments)
        recipe = replace(recipe, rank=rank, rates=adapted.LORA_RATES) if rank else recipe
    with Waiting("preparing the training"):
        trainer = Trainer(arguments.out, recipe, base)
    take_steps(trainer, arguments)
    return 0


def recipe_of(arguments: argparse.Namespace) -> "Recipe":
    """Return the recipe of a run with the options of `add_run`."""
    from dg_lsp.training.trainer import Recipe

    return Recipe(
        steps=arguments.steps,
        seconds=60 * arguments.minutes,
        seed=arguments.seed,
        compiled=arguments.compile,
        decay=arguments.decay,
    )


def _teller(line: Waiting) -> Callable[[str], None]:
    """Return a function that shows a sentence in a terminal's last line; elsewhere it prints one a minute at most."""
    printed = -math.inf

    def tell(sentence: str) -> None:
        nonlocal printed
        line.say(sentence)
        if not line.moves and time.monotonic() - printed >= _QUIET:
            printed = time.monotonic()
            say(sentence)

    return tell


def take_steps(trainer: "Trainer", arguments: argparse.Namespace) -> None:
    """Train and export; with --export only write the state as a checkpoint."""
    from dg_lsp.training import loop

    # What torch says to those who write it looks like a failure in the middle of the run's own lines.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\b")
    if arguments.resume or arguments.export:
        with Waiting("reading the state"):
            trainer.restore()
    if not arguments.export:
        with loop.caught_signals() as received, Waiting("training") as line:
            loop.train(trainer, received, _teller(line))
    with Waiting("exporting"):
        trainer.export(arguments.export or trainer.out / "export")


def _share(text: str) -> float:
    if not 0 < (share := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share of a run; give a number above 0, 1 at most")
    return share


def _source(text: str) -> tuple[str, Path]:
    language, _, folder = text.partition("=")
    if language not in known_languages():
        raise argparse.ArgumentTypeError(f"{text}: name a language and a folder, such as go=src")
    if not Path(folder).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {folder}")
    return language, Path(folder)
