"""The recipe of the embedded checkpoint: gather, tokenise, train, export; one dial, the minutes.

`dg-lsp train --minutes 90 --out DIR` makes a checkpoint like the embedded one from the Python installed here.
"""

import argparse
import json
import os
import random
import signal
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from dg_lsp.engine import corpus as corpora
from dg_lsp.engine.export import export
from dg_lsp.engine.layouts import BUCKETS, Batch, Bucket, Cutter, draw
from dg_lsp.engine.objective import corrupt, losses
from dg_lsp.engine.optimise import Optimiser
from dg_lsp.engine.shape import BOS, EOS, embedded_config, fresh_network

RATES = (5e-3, 3e-3)  # of Muon, of AdamW, at their peak
_WARM_STEPS, _DECAY = 100, 0.25
_SAVE_SECONDS, _MEASURE_SECONDS = 300, 600
_TIMES = (0.25, 0.5, 0.75, 1.0)


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
        help="no torch.compile: starts at once, runs 4 times slower",
    )
    parser.add_argument(
        "--export", type=Path, metavar="TO", help="only write the state in --out as a checkpoint to TO"
    )


def run(arguments: argparse.Namespace) -> int:
    """Train as `arguments` say; 0 when an export was written."""
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(arguments.threads)
    if not (out / "tokenizer.json").exists():
        print("gathering the corpus", flush=True)
        corpora.prepare(out, arguments.packages or [Path(sysconfig.get_path("purelib"))])
    trainer = Trainer(out, arguments)
    if arguments.resume or arguments.export:
        trainer.restore()
    if not arguments.export:
        (out / "pid").write_text(str(os.getpid()))
        with _until_told() as told:
            train(trainer, told)
        (out / "pid").unlink()
    export(trainer.network, out / "tokenizer.json", arguments.export or out / "export", trainer.note())
    return 0


class Trainer:
    """Network, optimiser, data and where the run stands: all that a state file holds."""

    def __init__(self, out: Path, arguments: argparse.Namespace) -> None:
        self.out, self.arguments = out, arguments
        self.tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
        config = embedded_config(self.tokenizer.get_vocab_size(), arguments.hidden)
        self.network = fresh_network(config, arguments.seed).train()
        self.optimiser = Optimiser(self.network.named_parameters(), RATES)
        self.cutter = Cutter.of(corpora.Corpus.load(out / "corpus.npz"), self.tokenizer, BOS, EOS)
        self.chance = random.Random(arguments.seed)
        self.noise = torch.Generator().manual_seed(arguments.seed)
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.recent: dict[str, float] = {}
        self.loss = torch.compile(_loss, dynamic=False) if arguments.compile else _loss

    def share(self) -> float:
        """The share of the peak rate at this moment: warm up, hold, fall to nothing over the last quarter."""
        if self.arguments.steps:
            done = self.step / self.arguments.steps
        else:
            done = self.seconds / (60 * self.arguments.minutes)
        return min(1.0, (self.step + 1) / _WARM_STEPS) * min(1.0, max(0.0, (1 - done) / _DECAY))

    def over(self) -> bool:
        """Whether the steps or the minutes are used up."""
        if self.arguments.steps:
            return bool(self.step >= self.arguments.steps)
        return self.seconds >= 60 * float(self.arguments.minutes)

    def advance(self) -> dict[str, float]:
        """One step: draw, corrupt, both passes, update. Returns what the log shows.

        The clock counts steps only, so neither compiling nor a pause shortens the schedule.
        """
        bucket: Bucket = self.chance.choices(BUCKETS, [b.share for b in BUCKETS])[0]
        batch = draw(self.cutter, bucket, self.chance)
        times = torch.rand(bucket.rows, generator=self.noise) * (1 - 2e-4) + 1e-4
        vocabulary = int(self.network.config.text_config.vocab_size)
        noisy = corrupt(batch, times, vocabulary, self.noise)
        total, diffusion, ahead = self.loss(self.network, batch.prefix, batch.canvas, batch.free, noisy)
        total.backward()
        rate = self.share()
        norm = self.optimiser.step(rate)
        self.step += 1
        self.tokens += bucket.rows * (bucket.prefix + bucket.canvas)
        return {"diffusion": float(diffusion), "ahead": float(ahead), "norm": norm, "rate": rate}

    def save(self) -> None:
        """Write the state under another name, then rename it: a crash leaves the one before."""
        at = {"step": self.step, "tokens": self.tokens, "seconds": self.seconds, "recent": self.recent}
        run = json.dumps(at | {"chance": self.chance.getstate()})
        part = self.out / "state.part"
        save_file(self.optimiser.state() | {"noise": self.noise.get_state()}, part, {"run": run})
        part.replace(self.out / "state.safetensors")

    def restore(self) -> None:
        """Go on where `save` was called. Raises FileNotFoundError when it never was."""
        with safe_open(self.out / "state.safetensors", "pt") as stored:
            state = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (no mapping)
            at = json.loads(stored.metadata()["run"])
        self.noise.set_state(state.pop("noise"))
        self.optimiser.restore(state)
        version, words, left = at["chance"]
        self.chance.setstate((version, tuple(words), left))
        self.step, self.tokens, self.seconds = at["step"], at["tokens"], at["seconds"]
        self.recent = at["recent"]

    def note(self) -> str:
        """One line about the run, for the checkpoint."""
        shown = ", ".join(f"{name} {value:.3f}" for name, value in self.recent.items())
        return f"step {self.step}, {self.tokens / 1e6:.1f} M tokens, {self.seconds / 60:.0f} min; {shown}"


def train(trainer: Trainer, told: list[int]) -> None:
    """Step until the time is up or `told` holds a signal; log each 10 steps, save and measure now and then."""
    log = trainer.out / "log.jsonl"
    saved = measured = time.monotonic()
    sums: dict[str, float] = {}
    seconds = 0.0
    while not trainer.over() and not told:
        begin = time.monotonic()
        shown = trainer.advance()
        spent = time.monotonic() - begin
        # A first meeting with a shape is mostly compiling.
        trainer.seconds += min(spent, 10.0)
        seconds += spent
        for name, value in shown.items():
            sums[name] = sums.get(name, 0.0) + value / 10
        if trainer.step % 10 == 0:
            trainer.recent = {name: round(sums[name], 4) for name in ("diffusion", "ahead")}
            line = {"step": trainer.step, "tokens": trainer.tokens, "seconds": round(trainer.seconds, 1)}
            line |= {k: round(v, 5) for k, v in sums.items()} | {"seconds_per_step": round(seconds / 10, 3)}
            _append(log, line)
            sums, seconds = {}, 0.0
        now = time.monotonic()
        if now - measured > _MEASURE_SECONDS:
            _append(log, {"step": trainer.step, "heldout": measure(trainer)})
            measured = time.monotonic()
        if now - saved > _SAVE_SECONDS:
            trainer.save()
            export(trainer.network, trainer.out / "tokenizer.json", trainer.out / "export", trainer.note())
            saved = time.monotonic()
    trainer.save()
    _append(log, {"step": trainer.step, "heldout": measure(trainer)})


@torch.no_grad()
def measure(trainer: Trainer, rows: int = 64) -> dict[str, dict[str, float]]:
    """L_diff on the same held-out canvases at fixed times, of continuations and of infills; {} without any."""
    if not (trainer.out / "heldout.npz").exists():
        return {}
    held_out = Cutter.of(corpora.Corpus.load(trainer.out / "heldout.npz"), trainer.tokenizer, BOS, EOS)
    found: dict[str, dict[str, float]] = {}
    vocabulary = int(trainer.network.config.text_config.vocab_size)
    for kind, share in (("continuation", 0.0), ("infill", 1.0)):
        batch = draw(held_out, Bucket(rows, 192, 64, 1.0), random.Random(0), share)
        found[kind] = {}
        for t in _TIMES:
            noisy = corrupt(batch, torch.full((rows,), t), vocabulary, torch.Generator().manual_seed(1))
            found[kind][str(t)] = round(float(losses(trainer.network, batch, noisy)[0]), 4)
    return found


def _loss(network: Any, prefix: Tensor, canvas: Tensor, free: Tensor, noisy: Tensor) -> tuple[Tensor, ...]:
    diffusion, ahead = losses(network, Batch(prefix, canvas, free), noisy)
    return diffusion + ahead, diffusion.detach(), ahead.detach()


def _append(log: Path, line: dict[str, Any]) -> None:
    with log.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


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
