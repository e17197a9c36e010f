"""The loop of a training run: step, log, save, measure. Knows a Trainer and files."""

import json
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from dg_lsp.training.corpus import Corpus
from dg_lsp.training.layouts import Bucket, Cutter, draw
from dg_lsp.training.objective import corrupt, losses
from dg_lsp.training.trainer import WEIGHTS_BEFORE_DECAY, Trainer

_SAVE_SECONDS, _MEASURE_SECONDS = 300, 600
_TIMES = (0.25, 0.5, 0.75, 1.0)  # shares of the free slots that are noise for the held-out losses


@dataclass(slots=True)
class _Means:
    """The sums of some steps: of each number that `Trainer.advance` returns, of the steps, and of their seconds."""

    sums: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0

    def take_step(self, trainer: Trainer) -> None:
        """Let `trainer` take a step, and add its numbers."""
        begin = time.monotonic()
        shown = trainer.advance()
        self.seconds += time.monotonic() - begin
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in shown.items()}
        self.steps += 1

    def line(self, trainer: Trainer) -> dict[str, Any]:
        """The means as a line of the log; the losses become `trainer.recent`."""
        means, count = {name: float(value) / self.steps for name, value in self.sums.items()}, trainer.count
        trainer.recent = {name: round(means[name], 4) for name in ("diffusion", "ahead")}
        line = {"step": count.step, "tokens": count.tokens, "seconds": round(count.seconds, 1)}
        line |= {name: round(value, 5) for name, value in means.items()}
        return line | {"seconds_per_step": round(self.seconds / self.steps, 3)}


def train(trainer: Trainer, signals: Sequence[int], tell: Callable[[str], None] = lambda _: None) -> None:
    """Take steps until the run is done or `signals` is not empty; `tell` gets a sentence after each line of the log.

    After step 1 and then every 10 steps a line goes to log.jsonl, every 5 minutes the state is saved, every
    10 minutes the held-out losses are measured and, if all weights are trained, a snapshot is exported.
    """
    log, count, means = trainer.out / "log.jsonl", trainer.count, _Means()
    saved = measured = time.monotonic()
    falling = trainer.done() > 1 - trainer.recipe.decay
    if count == trainer.first:
        # An earlier run in the same folder may have left its own.
        (trainer.out / WEIGHTS_BEFORE_DECAY).unlink(missing_ok=True)
    if trainer.recipe.compiled and trainer.recipe.denoises:
        tell(
            "torch compiles the loss, which takes some minutes and does not count; --no-compile starts at once"
        )
    while trainer.done() < 1 and not signals:
        if not falling and trainer.done() > 1 - trainer.recipe.decay:
            falling = True
            # An adapter is merged into the checkpoint that it began with, and a later run begins with a new one.
            if not trainer.recipe.rank:
                trainer.save_before_decay()
        means.take_step(trainer)
        if count.step % 10 == 0 or count.step == 1:
            _append(log, means.line(trainer))
            loss = ", ".join(f"{name} {value:.2f}" for name, value in trainer.recent.items())
            tell(f"step {count.step}, {min(trainer.done(), 1):.0%} of the run; losses: {loss}")
            means = _Means()
        now = time.monotonic()
        if now - measured > _MEASURE_SECONDS:
            _append(log, {"step": count.step, "heldout": measure(trainer)})
            if not trainer.recipe.rank:
                trainer.export(trainer.out / "snapshots" / f"{count.step:06}")
            measured = time.monotonic()
        if now - saved > _SAVE_SECONDS:
            trainer.save()
            saved = time.monotonic()
    trainer.save()
    _append(log, {"step": count.step, "heldout": measure(trainer)})


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """A list to which SIGTERM and SIGINT are added when they arrive, instead of ending this process."""
    received: list[int] = []
    before = {
        s: signal.signal(s, lambda number, _: received.append(number))
        for s in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@torch.no_grad()
def measure(trainer: Trainer, rows: int = 24) -> dict[str, dict[str, float]]:
    """Both losses on held-out canvases: {"continuation" or "infill": {time: L_diff, "ahead": L_ar}}, in nats a token.

    The canvases and their noise are the same at every call. {} without held-out files, or where no canvas is learned.
    """
    if not ((trainer.out / "heldout.npz").exists() and trainer.recipe.denoises):
        return {}
    corpus, learned = Corpus.load(trainer.out / "heldout.npz"), trainer.cutter
    held_out = Cutter.of(corpus, trainer.tokenizer, learned.bos, learned.eos)
    found: dict[str, dict[str, float]] = {}
    device = trainer.device
    vocabulary = int(trainer.network.config.text_config.vocab_size)
    for kind, share in (("continuation", 0.0), ("infill", 1.0)):
        batch = draw(held_out, Bucket(rows, 512, 8, 64, 1.0), random.Random(0), share)
        found[kind] = {}
        for t in _TIMES:
            noise = torch.Generator().manual_seed(1)
            noisy = corrupt(batch, torch.full(batch.starts.shape, t), vocabulary, noise)
            diffusion, ahead = losses(trainer.network, batch.to(device), noisy.to(device))
            found[kind] |= {str(t): round(float(diffusion), 4), "ahead": round(float(ahead), 4)}
    return found


def _append(log: Path, line: dict[str, Any]) -> None:
    with log.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")
