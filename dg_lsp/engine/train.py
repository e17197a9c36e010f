"""The recipe of the embedded checkpoint: gather, tokenise, train, export; one dial, the minutes.

`dg-lsp train --minutes 90 --out DIR` makes a checkpoint like the embedded one from the Python installed here.
"""

import argparse
import os
import signal
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from tokenizers import Tokenizer

from dg_lsp.engine import corpus as corpora
from dg_lsp.engine.checkpoint import find_directory
from dg_lsp.engine.trainer import Recipe, Trainer, train


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dg-lsp train`."""
    parser.description = (
        "Train a small checkpoint from scratch on the Python code installed here: gather the corpus, train the "
        "tokenizer, train the network, export. SIGTERM ends it early and cleanly, with an export."
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="corpus, state, log and export go here"
    )
    parser.add_argument(
        "--minutes", type=float, default=90.0, help="training time; the rate decays over its last quarter"
    )
    parser.add_argument(
        "--steps", type=int, help="stop after so many steps; they then set the decay, not the minutes"
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
    parser.add_argument("--resume", action="store_true", help="go on from the state in --out")
    parser.add_argument("--seed", type=int, default=0, help="of weights, data and noise")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="torch threads")
    parser.add_argument(
        "--hidden", type=int, default=256, help="width of the network; 256 is the embedded one's"
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


def run(arguments: argparse.Namespace) -> int:
    """Train as `arguments` say; 0 when an export was written.

    Raises:
        CheckpointError: the checkpoint to begin with is not there.
    """
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(arguments.threads)
    base = find_directory(arguments.base) if arguments.base else None
    if not (out / "tokenizer.json").exists():
        print("gathering the corpus", flush=True)
        known = Tokenizer.from_file(str(base / "tokenizer.json")) if base else None
        corpora.prepare(out, arguments.packages or [Path(sysconfig.get_path("purelib"))], known)
    recipe = Recipe(
        steps=arguments.steps,
        seconds=60 * arguments.minutes,
        seed=arguments.seed,
        width=arguments.hidden,
        compiled=arguments.compile,
    )
    trainer = Trainer(out, recipe, base)
    if arguments.resume or arguments.export:
        trainer.restore()
    if not arguments.export:
        (out / "pid").write_text(str(os.getpid()))
        with _until_told() as told:
            train(trainer, told)
        (out / "pid").unlink()
    trainer.export(arguments.export or out / "export")
    return 0


@contextmanager
def _until_told() -> Iterator[list[int]]:
    """A list that holds the signal once SIGTERM or SIGINT came."""
    told: list[int] = []
    before = {
        s: signal.signal(s, lambda number, _: told.append(number)) for s in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
