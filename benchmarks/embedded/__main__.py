"""Train a checkpoint like the embedded one on the Python code installed here, or continue it.

    python -m benchmarks.embedded --minutes 90 --out DIR                    from scratch
    python -m benchmarks.embedded --from CHECKPOINT --minutes 90 --out DIR  continue one

Gather the corpus, train the tokenizer, train the network, export. SIGTERM ends it early and cleanly, with an export.
"""

import argparse
import sysconfig
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer

from benchmarks.embedded.corpus import prepare
from benchmarks.embedded.fusing import fuse
from dg_lsp.cli import train
from dg_lsp.training.layouts import BUCKETS
from dg_lsp.training.trainer import RATES, Trainer


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="benchmarks.embedded"
    )
    train.add_run(made)
    made.add_argument("--from", dest="base", metavar="CHECKPOINT", help="continue this checkpoint")
    made.add_argument(
        "--packages",
        type=Path,
        action="append",
        metavar="DIR",
        help="a site-packages folder; default: this Python's",
    )
    made.add_argument("--batch", type=int, default=1, help="batches of so many times as many documents")
    made.add_argument("--loaders", type=int, default=0, help="processes that draw batches, for a GPU")
    made.add_argument("--rates", type=float, nargs=2, default=RATES, help="peak rates of Muon and of AdamW")
    made.add_argument("--hidden", type=int, default=256, help="width of a fresh network")
    made.add_argument("--layers", type=int, default=4, help="layers of a fresh network, an even number")
    return made


def main(given: argparse.Namespace) -> int:
    """Train as `given` says; return 0 when an export was written."""
    given.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(given.threads)
    base = train.beginning(given.base, given.out) if given.base else None
    if not (given.out / "tokenizer.json").exists():
        print("gathering the corpus", flush=True)
        known = Tokenizer.from_file(str(base / "tokenizer.json")) if base else None
        prepare(given.out, given.packages or [Path(sysconfig.get_path("purelib"))], known)
    recipe = replace(
        train.recipe_of(given),
        width=given.hidden,
        layers=given.layers,
        buckets=[replace(bucket, rows=bucket.rows * given.batch) for bucket in BUCKETS],
        loaders=given.loaders,
        rates=tuple(given.rates),
        attention="sdpa" if torch.cuda.is_available() else "eager",
    )
    trainer = Trainer(given.out, recipe, base)
    if torch.cuda.is_available():
        fuse(trainer.network)
    train.take_steps(trainer, given)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(parser().parse_args()))
