"""`dg-lsp train`: train a checkpoint like the embedded one, or adapt one to a repository.

`dg-lsp train --minutes 90 --out DIR` makes a checkpoint like the embedded one from the Python installed here: gather,
tokenise, train, export. `--from CHECKPOINT --repo PATH` continues a checkpoint with the files of one repository.
Importing this module does not import torch.
"""

import argparse
from pathlib import Path

from dg_lsp.cli.options import explain
from dg_lsp.settings import UsageError
from dg_lsp.text.languages.language import known_languages

DECAY = 0.25  # that of training.trainer.Recipe
DRAFT_RANK = 16  # of the adapter that --drafts trains


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dg-lsp train`."""
    explain(
        parser,
        "Train a small checkpoint from scratch on the Python code installed here: gather the corpus, train the "
        "tokenizer, train the network, export. With --from and --repo: adapt a checkpoint to a repository of yours, "
        "and show how well it fills held-out files of it before and after. SIGTERM ends it early and cleanly, with "
        "an export. Nothing leaves this machine.",
        "dg-lsp train --from embedded --repo . --minutes 30 --out adapted",
        "0 an export was written, 2 usage or bad input, 130 interrupted",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="corpus, state, log and export go here"
    )
    parser.add_argument("--minutes", type=float, default=90.0, help="training time (default: 90)")
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
    parser.add_argument(
        "--packages",
        type=Path,
        action="append",
        metavar="DIR",
        help="a site-packages folder to learn from, repeatable; default: this Python's",
    )
    parser.add_argument(
        "--from",
        dest="base",
        metavar="CHECKPOINT",
        help="begin with the weights and the tokenizer of this checkpoint, and warm up slowly; default: from scratch",
    )
    parser.add_argument(
        "--source",
        type=_source,
        action="append",
        default=[],
        metavar="LANGUAGE=DIR",
        help="a folder with files of another language to learn from, too, repeatable; you vouch for their licences",
    )
    parser.add_argument(
        "--drafts",
        action="store_true",
        help="with --from: learn only to write from left to right, which is all that an imported checkpoint can do; a "
        f"LoRA adapter of rank {DRAFT_RANK} unless --lora says otherwise",
    )
    parser.add_argument(
        "--repo",
        type=Path,
        metavar="PATH",
        help="with --from: learn from the Python files below this folder, a fifth of them held out",
    )
    parser.add_argument(
        "--cases", type=int, default=100, help="with --repo: holes of each kind to measure on (default: 100)"
    )
    parser.add_argument(
        "--lora",
        type=int,
        metavar="RANK",
        help="train a LoRA adapter of this rank instead of all weights; default: of rank 16 where there are more than "
        "200 million weights; needs the extra dg-lsp[lora]",
    )
    parser.add_argument("--resume", action="store_true", help="continue from the state in --out")
    parser.add_argument("--seed", type=int, default=0, help="of weights, data and noise")
    parser.add_argument("--threads", type=int, default=1, help="torch threads of each process (default: 1)")
    parser.add_argument(
        "--processes",
        type=int,
        default=0,
        metavar="N",
        help="processes that share the work; default: one on a GPU, else as many as there are cores",
    )
    parser.add_argument(
        "--batch", type=int, default=1, metavar="N", help="batches of N times as many documents (default: 1)"
    )
    parser.add_argument(
        "--loaders",
        type=int,
        default=0,
        metavar="N",
        help="processes that draw batches while others are learned, for a GPU; default: none",
    )
    parser.add_argument(
        "--hidden", type=int, default=256, help="width of a fresh network; 256 is the embedded one's"
    )
    parser.add_argument(
        "--layers",
        type=int,
        default=4,
        help="layers of a fresh network, an even number; 4 is the embedded one's",
    )
    parser.add_argument(
        "--no-compile",
        dest="compile",
        action="store_false",
        help="no torch.compile: starts at once, runs slower",
    )
    parser.add_argument(
        "--export", type=Path, metavar="TO", help="only write the state in --out as a checkpoint to TO"
    )
    parser.add_argument(
        "--average",
        nargs="+",
        type=_weighted,
        metavar="CHECKPOINT=SHARE",
        help="only write the mean of these checkpoints to --out; they must go back to one ancestor",
    )


def run(arguments: argparse.Namespace) -> int:
    """Train as `arguments` say; 0 when an export was written.

    Raises:
        UsageError: the options do not go together, the checkpoint to begin with is not there, or the repository holds
            too few files.
    """
    if arguments.repo and not arguments.repo.is_dir():
        raise UsageError(f"there is no folder {arguments.repo}; name one with --repo")
    if arguments.repo and not arguments.base:
        raise UsageError("--repo adapts a checkpoint; say which with --from, such as --from embedded")
    if arguments.drafts and not arguments.base:
        raise UsageError("--drafts continues a checkpoint; name it with --from, such as --from small")
    if arguments.drafts and arguments.repo:
        raise UsageError(
            "--repo measures how a checkpoint denoises, which --drafts leaves out; leave one away"
        )
    if arguments.drafts and arguments.lora is None:
        arguments.lora = DRAFT_RANK
    from dg_lsp.cli.training import train

    return train(arguments)


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


def _weighted(text: str) -> tuple[str, float]:
    name, _, share = text.rpartition("=")
    try:
        found = name, float(share)
    except ValueError:
        found = name, 0.0
    if not name or not found[1] > 0:
        raise argparse.ArgumentTypeError(f"{text} is no checkpoint and share, such as DIR=0.5")
    return found
