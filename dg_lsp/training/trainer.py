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

from dg_lsp.engine.load.manifest import read_about
from dg_lsp.training.corpus import Corpus
from dg_lsp.training.curve import picture, read_log
from dg_lsp.training.export import export, export_like
from dg_lsp.training.layouts import BUCKETS, INFILLS, Batch, Bucket, Cutter, draw
from dg_lsp.training.lora import add_adapter, merge_adapter
from dg_lsp.training.objective import corrupt, draw_times, losses
from dg_lsp.training.optimise import Optimiser
from dg_lsp.training.shape import BOS, EOS, embedded_config, fresh_network, stored_network

UNDECAYED = "undecayed.weights"  # safetensors; named so that no loader takes it for a part of the checkpoint
RATES = (3.5e-3, 2e-3)  # of Muon, of AdamW, at their peak
_WARM_STEPS, _REWARM_STEPS = 100, 200
_LONGEST = 10.0  # seconds of a step that the clock counts; a longer one was compiling, or was paused


@dataclass(slots=True)
class Count:
    """What has been done: steps, tokens shown, seconds of stepping."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What one run is told. It takes `steps` steps or, without them, `seconds` of stepping.

    rates: of Muon and of AdamW, at their peak. width, layers: of a fresh network. rank: of a LoRA adapter, which
    alone is trained then; 0 trains all weights. infill: the share of canvases with a gap. decay: the last part of the
    run, in which the rate falls. onward: begin with the weights that a checkpoint had before its rate fell, where it
    keeps them, so that the loss does not jump when the rate rises again.
    """

    steps: int | None = None
    seconds: float = 5400.0
    seed: int = 0
    width: int = 256
    layers: int = 4
    compiled: bool = False
    buckets: Sequence[Bucket] = BUCKETS
    rates: tuple[float, float] = RATES
    warm: int | None = None
    rank: int = 0
    infill: float = INFILLS
    decay: float = 0.25
    onward: bool = True


class Trainer:
    """Network, optimiser, data and where the run stands: all that a state file holds.

    Where several processes run (accelerate's environment variables say so), each draws its own batches, and their
    gradients, losses and clocks are averaged, so that all take the same steps. On a CPU two processes of one thread
    show a fifth more tokens a second than one of two.
    """

    def __init__(self, out: Path, recipe: Recipe, base: Path | None = None) -> None:
        """out: the folder with tokenizer and corpus. base: a checkpoint's folder to begin with; else a fresh one."""
        self.out, self.recipe, self.base = out, recipe, base
        self.tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
        self.count, self.version = Count(), 0
        if base is None:
            config = embedded_config(self.tokenizer.get_vocab_size(), recipe.width, recipe.layers)
            network = fresh_network(config, recipe.seed, attention="eager")
        else:
            onward = recipe.onward and (base / UNDECAYED).exists()
            network = stored_network(base, UNDECAYED if onward else None)
            told = read_about(base)
            self.count, self.version = Count(**told.get("trained", {})), int(told.get("version", 0)) + 1
        if recipe.rank:
            add_adapter(network, recipe.rank)
        self.warm = recipe.warm or (_WARM_STEPS if base is None else _REWARM_STEPS)
        self.place = Accelerator()
        self.network = network.to(self.place.device).train()
        self.optimiser = Optimiser(_trained(self.network), recipe.rates)
        self.cutter = Cutter.of(Corpus.load(out / "corpus.npz"), self.tokenizer, BOS, EOS)
        own = recipe.seed + 7919 * self.place.process_index
        self.chance = random.Random(own)
        self.noise = torch.Generator().manual_seed(own)
        self.first = Count(**asdict(self.count))
        self.recent: dict[str, float] = {}
        self._mark = time.monotonic()
        self.loss = torch.compile(_loss, dynamic=False) if recipe.compiled else _loss

    def share(self) -> float:
        """The share of the peak rate at this moment: warm up, hold, fall to nothing at the end."""
        risen = (self.count.step - self.first.step + 1) / self.warm
        return min(1.0, risen) * min(1.0, max(0.0, (1 - self.done()) / self.recipe.decay))

    def done(self) -> float:
        """How much of this run is done; 1 and more is all."""
        if self.recipe.steps:
            return (self.count.step - self.first.step) / self.recipe.steps
        return (self.count.seconds - self.first.seconds) / self.recipe.seconds

    def advance(self, *, told: bool = False) -> dict[str, float]:
        """One step: draw, corrupt, both passes, agree with the other processes, update. Returns what the log shows.

        told: this process was told to end; `stop` is then set in what all processes return.
        """
        buckets = self.recipe.buckets
        bucket = self.chance.choices(buckets, [b.share for b in buckets])[0]
        batch = draw(self.cutter, bucket, self.chance, self.recipe.infill)
        times = draw_times(batch, self.noise)
        vocabulary = int(self.network.config.text_config.vocab_size)
        noisy = corrupt(batch, times, vocabulary, self.noise)
        there = batch.to(self.place.device)
        parts = (there.tokens, there.canvas, there.free, there.starts, noisy.to(self.place.device))
        total, diffusion, ahead = self.loss(self.network, *parts)
        self.place.backward(total)
        seconds, denoiser, encoder, stop = self._agree([self._spent(), diffusion, ahead, told])
        rate = self.share()
        norm = self.optimiser.step(rate)
        self.count.step += 1
        self.count.seconds += seconds
        self.count.tokens += (batch.tokens.numel() + batch.canvas.numel()) * self.place.num_processes
        return {"diffusion": denoiser, "ahead": encoder, "norm": norm, "rate": rate, "stop": float(stop > 0)}

    def _spent(self) -> float:
        """Seconds since it was last asked: of a whole step, so neither compiling nor a pause shortens the schedule."""
        before, self._mark = self._mark, time.monotonic()
        return min(self._mark - before, _LONGEST)

    def _agree(self, numbers: Sequence[Any]) -> list[float]:
        """The means of the gradients, in place, and of `numbers` over all processes."""
        told = torch.tensor([float(number) for number in numbers], device=self.place.device)
        if self.place.num_processes == 1:
            return list(told.tolist())
        grads = [w.grad for _, w in _trained(self.network) if w.grad is not None]
        flat = torch.cat([*(grad.flatten().float() for grad in grads), told])
        mean: Any = self.place.reduce(flat, reduction="mean")
        for grad, part in zip(
            grads, mean.split([grad.numel() for grad in grads] + [len(told)]), strict=False
        ):
            grad.copy_(part.view_as(grad))
        return list(mean[-len(told) :].tolist())

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
        if self.place.process_index:
            # The state is the first process's; the others draw anew.
            self.chance.seed(f"{self.place.process_index} {at['count']['step']}")
            self.noise.manual_seed(self.chance.getrandbits(60))
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


def _loss(network: Any, *parts: Tensor) -> tuple[Tensor, ...]:
    """L, and what it is made of, of a batch's parts and their noise: tensors alone are what a compiler takes well."""
    *clean, noisy = parts
    diffusion, ahead = losses(network, Batch(*clean), noisy)
    return diffusion + ahead, diffusion.detach(), ahead.detach()


def _trained(network: Any) -> list[tuple[str, Any]]:
    """The weights that are trained; the vision tower has no part in it."""
    return [(n, w) for n, w in network.named_parameters() if w.requires_grad and "vision" not in n]
