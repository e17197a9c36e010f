"""Trainer: a run of the recipe, from its first step to its state file. Knows data, loss and optimiser; no options.

The schedule is that of this run (warm up, hold, decay over the last quarter); the counts go on over all runs.
"""

import json
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from dg_lsp.engine.corpus import Corpus
from dg_lsp.engine.curve import picture, read_log
from dg_lsp.engine.export import export, export_like
from dg_lsp.engine.layouts import BUCKETS, Batch, Bucket, Cutter, draw
from dg_lsp.engine.lora import add_adapter, merge_adapter
from dg_lsp.engine.objective import corrupt, losses
from dg_lsp.engine.optimise import Optimiser
from dg_lsp.engine.shape import BOS, EOS, embedded_config, fresh_network, stored_network

UNDECAYED = "undecayed.weights"  # safetensors; named so that no loader takes it for a part of the checkpoint
RATES = (5e-3, 3e-3)  # of Muon, of AdamW, at their peak
_WARM_STEPS, _REWARM_STEPS, _DECAY = 100, 200, 0.25
_SAVE_SECONDS, _MEASURE_SECONDS = 300, 600
_TIMES = (0.25, 0.5, 0.75, 1.0)


@dataclass(slots=True)
class Count:
    """What has been done: steps, tokens shown, seconds of stepping."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What one run is told. It takes `steps` steps or, without them, `seconds` of stepping.

    rates: of Muon and of AdamW, at their peak. width: of a fresh network. rank: of a LoRA adapter, which alone is
    trained then; 0 trains all weights. onward: begin with the weights that a checkpoint had before its rate fell, where
    it keeps them, so that the loss does not jump when the rate rises again.
    """

    steps: int | None = None
    seconds: float = 5400.0
    seed: int = 0
    width: int = 256
    compiled: bool = False
    buckets: Sequence[Bucket] = BUCKETS
    rates: tuple[float, float] = RATES
    warm: int | None = None
    rank: int = 0
    onward: bool = True


class Trainer:
    """Network, optimiser, data and where the run stands: all that a state file holds."""

    def __init__(self, out: Path, recipe: Recipe, base: Path | None = None) -> None:
        """out: the folder with tokenizer and corpus. base: a checkpoint's folder to begin with; else a fresh one."""
        self.out, self.recipe, self.base = out, recipe, base
        self.tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
        self.count, self.version = Count(), 0
        if base is None:
            config = embedded_config(self.tokenizer.get_vocab_size(), recipe.width)
            network = fresh_network(config, recipe.seed, attention="eager")
        else:
            onward = recipe.onward and (base / UNDECAYED).exists()
            network = stored_network(base, UNDECAYED if onward else None)
            told = (
                json.loads((base / "dg_lsp.json").read_text("utf-8"))
                if (base / "dg_lsp.json").exists()
                else {}
            )
            self.count, self.version = Count(**told.get("trained", {})), int(told.get("version", 0)) + 1
        if recipe.rank:
            add_adapter(network, recipe.rank)
        self.warm = recipe.warm or (_WARM_STEPS if base is None else _REWARM_STEPS)
        self.place = Accelerator()
        self.network = network.to(self.place.device).train()
        self.optimiser = Optimiser(_trained(self.network), recipe.rates)
        self.cutter = Cutter.of(Corpus.load(out / "corpus.npz"), self.tokenizer, BOS, EOS)
        self.chance = random.Random(recipe.seed)
        self.noise = torch.Generator().manual_seed(recipe.seed)
        self.first = Count(**asdict(self.count))
        self.recent: dict[str, float] = {}
        self.loss = torch.compile(_loss, dynamic=False) if recipe.compiled else _loss

    def share(self) -> float:
        """The share of the peak rate at this moment: warm up, hold, fall to nothing over the last quarter."""
        risen = (self.count.step - self.first.step + 1) / self.warm
        return min(1.0, risen) * min(1.0, max(0.0, (1 - self.done()) / _DECAY))

    def done(self) -> float:
        """How much of this run is done; 1 and more is all."""
        if self.recipe.steps:
            return (self.count.step - self.first.step) / self.recipe.steps
        return (self.count.seconds - self.first.seconds) / self.recipe.seconds

    def advance(self) -> dict[str, float]:
        """One step: draw, corrupt, both passes, update. Returns what the log shows."""
        buckets = self.recipe.buckets
        bucket = self.chance.choices(buckets, [b.share for b in buckets])[0]
        batch = draw(self.cutter, bucket, self.chance)
        times = torch.rand(batch.starts.shape, generator=self.noise) * (1 - 2e-4) + 1e-4
        vocabulary = int(self.network.config.text_config.vocab_size)
        noisy = corrupt(batch, times, vocabulary, self.noise)
        parts = (batch.tokens, batch.canvas, batch.free, batch.starts, noisy)
        total, diffusion, ahead = self.loss(self.network, *(part.to(self.place.device) for part in parts))
        self.place.backward(total)
        rate = self.share()
        norm = self.optimiser.step(rate)
        self.count.step += 1
        self.count.tokens += batch.tokens.numel() + batch.canvas.numel()
        return {"diffusion": float(diffusion), "ahead": float(ahead), "norm": norm, "rate": rate}

    def save(self) -> None:
        """Write the state under another name, then rename it: a crash leaves the one before."""
        at = {"count": asdict(self.count), "first": asdict(self.first), "recent": self.recent}
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
        self.count, self.first, self.recent = Count(**at["count"]), Count(**at["first"]), at["recent"]

    def keep(self) -> None:
        """Write the weights as they are before the rate falls, for a later run to go on from."""
        weights = {name: weight.detach() for name, weight in self.network.named_parameters()}
        save_file(weights, self.out / UNDECAYED)

    def export(self, to: Path) -> None:
        """Write what has been learned as a checkpoint that `load_checkpoint` reads; an adapter is merged for good."""
        shown = ", ".join(f"{name} {value:.3f}" for name, value in self.recent.items())
        count = self.count
        note = f"step {count.step}, {count.tokens / 1e6:.1f} M tokens, {count.seconds / 60:.0f} min; {shown}"
        about = {"version": self.version, "note": note, "trained": asdict(count)}
        if self.recipe.rank:
            merge_adapter(self.network)
        if self.base is None:
            export(self.network, self.out / "tokenizer.json", to, about)
        else:
            export_like(self.network, self.base, to, about)
        if (self.out / UNDECAYED).exists():
            shutil.copyfile(self.out / UNDECAYED, to / UNDECAYED)
        before = self.base / "curve.json" if self.base else None
        known = json.loads(before.read_text("utf-8")) if before and before.exists() else []
        points = known + read_log(self.out / "log.jsonl")
        (to / "curve.json").write_text(json.dumps(points) + "\n", encoding="utf-8")
        (to / "curve.svg").write_text(picture(points, f"version {self.version}: {note}"), encoding="utf-8")


def train(trainer: Trainer, told: Sequence[int]) -> None:
    """Step until the run is done or `told` holds a signal; log each 10 steps, save and measure now and then.

    The clock counts steps only, so neither compiling nor a pause shortens the schedule.
    """
    log = trainer.out / "log.jsonl"
    saved = measured = time.monotonic()
    sums: dict[str, float] = {}
    seconds, falling = 0.0, trainer.done() > 1 - _DECAY
    count = trainer.count
    while trainer.done() < 1 and not told:
        if not falling and trainer.done() > 1 - _DECAY:
            trainer.keep()
            falling = True
        begin = time.monotonic()
        shown = trainer.advance()
        spent = time.monotonic() - begin
        # A first meeting with a shape is mostly compiling.
        count.seconds += min(spent, 10.0)
        seconds += spent
        for name, value in shown.items():
            sums[name] = sums.get(name, 0.0) + value / 10
        if count.step % 10 == 0:
            trainer.recent = {name: round(sums[name], 4) for name in ("diffusion", "ahead")}
            line = {"step": count.step, "tokens": count.tokens, "seconds": round(count.seconds, 1)}
            line |= {k: round(v, 5) for k, v in sums.items()} | {"seconds_per_step": round(seconds / 10, 3)}
            _append(log, line)
            sums, seconds = {}, 0.0
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


@torch.no_grad()
def measure(trainer: Trainer, rows: int = 24) -> dict[str, dict[str, float]]:
    """Both losses on the same held-out canvases at fixed times, of continuations and of infills; {} without any."""
    if not (trainer.out / "heldout.npz").exists():
        return {}
    held_out = Cutter.of(Corpus.load(trainer.out / "heldout.npz"), trainer.tokenizer, BOS, EOS)
    found: dict[str, dict[str, float]] = {}
    vocabulary = int(trainer.network.config.text_config.vocab_size)
    for kind, share in (("continuation", 0.0), ("infill", 1.0)):
        batch = draw(held_out, Bucket(rows, 512, 8, 64, 1.0), random.Random(0), share)
        found[kind] = {}
        for t in _TIMES:
            noise = torch.Generator().manual_seed(1)
            noisy = corrupt(batch, torch.full(batch.starts.shape, t), vocabulary, noise)
            parts = (batch.tokens, batch.canvas, batch.free, batch.starts, noisy)
            diffusion, ahead = _loss(trainer.network, *(part.to(trainer.place.device) for part in parts))[1:]
            found[kind] |= {str(t): round(float(diffusion), 4), "ahead": round(float(ahead), 4)}
    return found


def _loss(network: Any, *parts: Tensor) -> tuple[Tensor, ...]:
    *clean, noisy = parts
    diffusion, ahead = losses(network, Batch(*clean), noisy)
    return diffusion + ahead, diffusion.detach(), ahead.detach()


def _trained(network: Any) -> list[tuple[str, Any]]:
    """The weights that are trained; the vision tower has no part in it."""
    return [(n, w) for n, w in network.named_parameters() if w.requires_grad and "vision" not in n]


def _append(log: Path, line: dict[str, Any]) -> None:
    with log.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")
