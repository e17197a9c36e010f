"""The training of the adapters: steps that can be left and continued, with the same numbers as without a break."""

import json
import math
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from benchmarks.denoiser.network import CanvasLora
from benchmarks.denoiser.views import Gap, loss_of

BATCH = 4  # gaps of a step
WIDTHS = (8, 8, 8, 16)  # rows of a canvas, of which one is chosen by chance whatever the text
_WARM = 20  # steps
_SAVED, _SAID = 240.0, 60.0  # seconds between two checkpoints, and two lines
_BUCKETS = (8, 16, 33)  # texts of at most so many tokens are read together


@dataclass(frozen=True, slots=True)
class Plan:
    """The training's numbers. gaps: after so many the rate, at first `rate`, is a tenth. own: see `loss_of`."""

    gaps: int
    rate: float = 8e-4
    own: float = 0.5
    seed: int = 0


class Training:
    """Adapters, their optimiser, and the number of steps so far; all that is drawn depends on that number alone."""

    def __init__(self, network: CanvasLora, gaps: Sequence[Gap], plan: Plan) -> None:
        self.network, self.plan, self.step = network, plan, 0
        self._gaps, self._order, self._turn = gaps, list[list[Gap]](), -1
        self._among = network.among(token for gap in gaps for token in (*gap.prompt, *gap.text))
        self._weights = dict(network.named_parameters())
        self._optimiser = torch.optim.AdamW(self._weights.values(), betas=(0.9, 0.98), weight_decay=0.0)

    def advance(self) -> float:
        """Make a step; return its loss."""
        chance = random.Random(f"{self.plan.seed} {self.step}")
        width = chance.choice(WIDTHS)
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate()
        self._optimiser.zero_grad()
        loss = loss_of(self.network, self._batch(), width, chance, self.plan.own, among=self._among)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._weights.values(), 1.0)
        self._optimiser.step()
        self.step += 1
        return float(loss.detach())

    def _rate(self) -> float:
        left = max(0.0, 1 - self.step * BATCH / self.plan.gaps)
        return self.plan.rate * min(1.0, (self.step + 1) / _WARM) * (0.1 + 0.9 * left)

    def _batch(self) -> list[Gap]:
        """Return the gaps of this step; in a turn each gap comes once, with others whose texts are about as long."""
        turn, number = divmod(self.step, max(1, len(self._gaps) // BATCH))
        if turn != self._turn:
            chance, queues = random.Random(f"{self.plan.seed} turn {turn}"), dict[int, list[Gap]]()
            for gap in chance.sample(list(self._gaps), len(self._gaps)):
                bucket = next(size for size in _BUCKETS if len(gap.text) <= size)
                queues.setdefault(bucket, []).append(gap)
            rest = [gap for queue in queues.values() for gap in queue[len(queue) - len(queue) % BATCH :]]
            whole = [
                queue[at : at + BATCH]
                for queue in (*queues.values(), rest)
                for at in range(0, len(queue) - BATCH + 1, BATCH)
            ]
            chance.shuffle(whole)
            self._order, self._turn = whole, turn
        return self._order[number % len(self._order)]

    def save(self, path: Path) -> None:
        """Write everything that `restore` reads to `path`, whole or not at all."""
        tensors = {name: weight.detach() for name, weight in self._weights.items()}
        for name, weight in self._weights.items():
            for part, value in self._optimiser.state[weight].items():
                tensors[f"optimiser.{part}.{name}"] = value
        beside = path.with_suffix(".part")
        save_file(tensors, beside, {"step": str(self.step)})
        beside.replace(path)

    def restore(self, path: Path) -> None:
        """Continue from `path`."""
        with safe_open(path, "pt") as stored:
            self.step = int(stored.metadata()["step"])
        tensors = load_file(path)
        state = {
            number: {part: tensors[f"optimiser.{part}.{name}"] for part in ("step", "exp_avg", "exp_avg_sq")}
            for number, name in enumerate(self._weights)
        }
        self._optimiser.load_state_dict({**self._optimiser.state_dict(), "state": state})
        put(self.network, tensors)

    def begin_at(self, path: Path) -> None:
        """Begin with the adapters in `path` and its number of steps, and with a new optimiser."""
        with safe_open(path, "pt") as stored:
            self.step = int(stored.metadata()["step"])
        put(self.network, load_file(path))


def put(network: CanvasLora, tensors: dict[str, torch.Tensor]) -> None:
    """Put the adapters among `tensors` into `network`."""
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.copy_(tensors[name])


def train(
    training: Training, folder: Path, marks: Sequence[int], until: float, begin: Path | None = None
) -> None:
    """Train until the clock says `until`, or until SIGTERM; print a line a minute.

    folder: gets state.safetensors, curve.jsonl, and the adapters after each of `marks` gaps. begin: the adapters to
    begin with if there is no state.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "state.safetensors"
    if state.exists():
        training.restore(state)
    elif begin is not None:
        training.begin_at(begin)
    ended = list[int]()
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    begun, saved, losses = _now(), time.monotonic(), list[float]()
    first = training.step
    while time.time() < until and not ended:
        losses.append(training.advance())
        seen = training.step * BATCH
        for mark in marks:
            if seen - BATCH < mark <= seen:
                weights = {name: weight.detach() for name, weight in training.network.named_parameters()}
                about = {"step": str(training.step)}
                save_file(weights, folder / f"adapter-{mark}.safetensors", about)
        now = _now()
        if now[0] - begun[0] > _SAID:
            count = (training.step - first) * BATCH
            wall, busy = ((new - old) / count for new, old in zip(now, begun, strict=True))
            row: dict[str, Any] = {"gaps": seen, "loss": round(math.fsum(losses) / len(losses), 3)}
            row |= {"seconds a gap": round(wall, 2), "of a processor": round(busy, 2)}
            with (folder / "curve.jsonl").open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
            print(row, flush=True)
            begun, first, losses = now, training.step, []
        if time.monotonic() - saved > _SAVED:
            training.save(state)
            saved = time.monotonic()
    training.save(state)


def _now() -> tuple[float, float]:
    return time.monotonic(), time.process_time()
