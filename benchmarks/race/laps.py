"""Fills against the clock: what is run, what one fill took, our engine's fill, and the order of contestants.

All get the same network, prefix, canvas length and number of steps, and none may stop early. Knows tokens and clocks;
knows no text and no holes, and of the other engines no more than how they are called.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dg_lsp.model.cache import CHUNK, PrefixCache, extend_to
from dg_lsp.model.canvas import Canvas, Seam, lay_out, open_canvas
from dg_lsp.model.denoise import Schedule, denoise
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise

CONTESTANTS = {
    "cold": "dg-lsp, nothing cached",
    "typed": "dg-lsp, after the prefix's last token changed",
    "same line": "dg-lsp, the prefix as it was, as while one types within a line",
    "cold, no anchors": "dg-lsp, nothing cached, every slot free, as for the other two",
    "generate": "transformers' model.generate with its dynamic cache; it keeps nothing between calls",
    "diffusers": "diffusers' DiffusionGemmaPipeline with EntropyBoundScheduler; it keeps nothing either",
}

Rival = Callable[[Sequence[int], "Course"], "Lap"]


@dataclass(frozen=True, slots=True)
class Course:
    """What is run: tokens of prefix, slots of the canvas, free ones among them, denoising steps."""

    prefix: int
    canvas: int
    free: int
    steps: int


@dataclass(frozen=True, slots=True)
class Lap:
    """One fill: seconds from the request to the end of the first step and of the last; steps made.

    memory: the most bytes that were allocated on a GPU meanwhile, weights included; 0 on a CPU.
    """

    first: float
    whole: float
    steps: int
    memory: int = 0


class Watch:
    """A clock that starts when it is made and takes a tick after each denoising step.

    It is also what `generate` takes for a streamer: a draft is a step. Only the first tick waits for the GPU, since
    whoever waits at every step takes time from an engine that does not.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._steps, self._first = 0, 0.0
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        self._start = self._now()

    def tick(self) -> None:
        """A step is done."""
        self._steps += 1
        if self._steps == 1:
            self._first = self._now() - self._start

    def lap(self) -> Lap:
        """What was measured up to now."""
        whole = self._now() - self._start
        memory = torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else 0
        return Lap(self._first, whole, self._steps, int(memory))

    def put_draft(self, value: Any) -> None:  # noqa: ARG002
        """A step of `generate`."""
        self.tick()

    def put(self, value: Any) -> None:
        """Prompt and canvas are of no interest."""

    def end(self) -> None:
        """Nor is the end."""

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def run_course(
    network: Any, text: Sequence[int], course: Course, repeats: int, rivals: Mapping[str, Rival]
) -> dict[str, list[Lap]]:
    """The laps of our engine and of `rivals` by name, `repeats` of each; `text` is the tokens to run on.

    1. The contestants take turns, so that whatever else the machine does slows them alike.  2. The first turn is not
    counted.  3. Each turn ends the prefix at another place of the chunks that our engine encodes in, evenly spread
    about the course's length: how much of a chunk must be encoded anew is otherwise luck.
    """
    assert course.prefix > CHUNK // 2
    laps: dict[str, list[Lap]] = {}
    # 1. and 2.
    for turn in range(-1, repeats):
        # 3.
        end = course.prefix + round(CHUNK * (max(turn, 0) - (repeats - 1) / 2) / repeats)
        for name, lap in _turn(network, text, end, course, rivals):
            if turn >= 0:
                laps.setdefault(name, []).append(lap)
    return laps


def run_ours(network: Any, cache: PrefixCache, tokens: Sequence[int], canvas: Canvas, steps: int) -> Lap:
    """Our engine: `cache` is made to hold `tokens`, as a typing person's is where it holds something, then `canvas` is
    denoised.
    """
    device = device_of(network)
    watch = Watch(device)
    for _ in extend_to(network, cache, tokens, exact=not cache.tokens):
        pass
    schedule = Schedule(steps=steps, confidence=-1.0)  # no entropy is below it
    noise = SeededNoise(0, network.config.text_config.vocab_size, device)
    sampler = AnchoredSampler(canvas.to(device), schedule.entropy_bound, noise)
    for _ in denoise(network, cache, sampler, schedule):
        watch.tick()
    return watch.lap()


def device_of(network: Any) -> torch.device:
    """Where tokens go."""
    return torch.device(network.model.decoder.embed_tokens.weight.device)


def lay(text: Sequence[int], end: int, course: Course) -> Canvas:
    """The canvas behind the first `end` tokens of `text`: free slots, then what follows the gap as anchors."""
    behind = tuple(text[end + course.free : end + course.canvas])
    assert len(behind) == course.canvas - course.free, "the text is too short for the course"
    return lay_out(Seam((), behind, 0), course.free, course.canvas)


def _turn(
    network: Any, text: Sequence[int], end: int, course: Course, rivals: Mapping[str, Rival]
) -> Iterator[tuple[str, Lap]]:
    """One lap of every contestant behind the first `end` tokens."""
    tokens, canvas, steps = tuple(text[:end]), lay(text, end, course), course.steps
    other = (*tokens[:-1], (tokens[-1] + 1) % network.config.text_config.vocab_size)
    config = network.config.text_config
    cache = PrefixCache(config)
    yield "cold", run_ours(network, cache, tokens, canvas, steps)
    yield "typed", run_ours(network, cache, other, canvas, steps)
    yield "same line", run_ours(network, cache, other, canvas, steps)
    yield (
        "cold, no anchors",
        run_ours(network, PrefixCache(config), tokens, open_canvas(course.canvas), steps),
    )
    for name, rival in rivals.items():
        yield name, rival(tokens, course)
