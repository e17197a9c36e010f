"""What `model.generate` itself gives, and what our loop gives under the same noise: the two sides of law 2.

Knows transformers' generate and the tiny networks; of the product it knows cache, canvas, sampler and loop.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList
from transformers.cache_utils import Cache
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import FREE, Canvas
from dg_lsp.model.denoise import denoise
from dg_lsp.model.networks.base import CanvasReader
from dg_lsp.model.networks.decoder import hidden_states
from dg_lsp.model.sampler import AnchoredSampler
from dg_lsp.model.step import Schedule, Step
from tests.model.tiny import CANVAS, VOCABULARY, GenerateNoise

STRICT = Schedule(steps=5, confidence=1e-9)  # runs out of steps: what random networks do anyway
RELEASED = Schedule()  # stops by itself on a network that really denoises


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison: canvases of equally many rows, one behind the other, behind the tokens of `prompt`.

    Where rows stop by themselves each row of a canvas has equally many free slots, since `generate` knows one
    confidence threshold only. start: tokens that free slots of each canvas start from, FREE where it is noise.
    """

    prompt: tuple[int, ...]
    canvases: tuple[Canvas, ...]
    schedule: Schedule
    seed: int
    start: Tensor | None = None

    @property
    def rows(self) -> int:
        return self.canvases[0].rows


@dataclass(frozen=True, slots=True)
class Outcome:
    """tokens: int64 [canvases, rows, CANVAS]. passes: decoder passes until it finished, [rows]."""

    tokens: Tensor
    passes: Tensor


class OneHot(LogitsProcessor):
    """Makes the rows of anchors certain."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas

    def __call__(self, input_ids: Any, scores: Tensor, cur_step: Any) -> Tensor:
        hot = torch.full_like(scores, -1e4).scatter(-1, self.canvas.tokens[..., None], 0.0)
        return torch.where(self.canvas.anchored[..., None], hot, scores)


def first_canvas(case: Case, number: int) -> Tensor:
    """The canvas number `number` of `case` as the first step of `generate` is to see it."""
    canvas, first = case.canvases[number], starting_noise(case.canvases[number], case.seed + number)
    if case.start is not None:
        first = torch.where(case.start == FREE, first, case.start)
    return torch.where(canvas.anchored, canvas.tokens, first)


def is_given(case: Case, number: int) -> bool:
    """Whether `generate` is given the first canvas and does not draw it itself."""
    return case.start is not None or bool(case.canvases[number].anchored.any())


def starting_noise(canvas: Canvas, seed: int) -> Tensor:
    """Noise for a whole canvas, anchors included; the global generator is as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1000)
        return torch.randint(0, VOCABULARY, tuple(canvas.tokens.shape))


class StartAsGiven(GenerateNoise):
    """`generate` draws a canvas even when it was given one, and then takes the given one."""

    def __init__(self, canvas: Canvas, seed: int) -> None:
        super().__init__(canvas)
        self._start: Tensor | None = starting_noise(canvas, seed)

    def tokens(self, canvas: Canvas) -> Tensor:
        drawn, start, self._start = super().tokens(canvas), self._start, None
        return drawn if start is None else start


class FirstRow(PrefixCache):
    """A prefix that is encoded as a batch of equal rows, as `generate` does, and of which the first row is kept.

    In fp32 one row is rounded otherwise than four, and a random network makes much of that within some steps.
    """

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Any:
        """One row in, as many rows out as came."""
        seen = super().update(key_states[:1], value_states[:1], layer_idx)
        return tuple(states.expand(len(key_states), -1, -1, -1) for states in seen)


def generated(network: Any, case: Case) -> Outcome:
    """What transformers generates, with anchors as law 2 says.

    Open canvases of one row are one call of `generate`. It takes a starting canvas for the first one only, and gives
    each row a text of its own; so otherwise each canvas is a call that goes on from the cache and the random numbers of
    the one before, after the first row of it.
    """
    tokens = torch.tensor([case.prompt] * case.rows)
    torch.manual_seed(case.seed)
    if case.rows == 1 and not any(is_given(case, number) for number in range(len(case.canvases))):
        out = _generate(network, case, case.canvases, input_ids=tokens)
        new = out.sequences[:, len(case.prompt) :].view(-1, 1, CANVAS)
        return Outcome(new, (len(case.canvases) * CANVAS / out.tokens_per_forward).round())
    cache, found, passes = None, [], []
    for number, canvas in enumerate(case.canvases):
        extra = {"decoder_input_ids": first_canvas(case, number)} if is_given(case, number) else {}
        out = _generate(network, case, (canvas,), input_ids=tokens, past_key_values=cache, **extra)
        found.append(out.sequences[:, -CANVAS:])
        passes.append((CANVAS / out.tokens_per_forward).round())
        tokens, cache = found[-1][:1].expand(case.rows, -1).contiguous(), out.past_key_values
    return Outcome(torch.stack(found), torch.stack(passes).sum(0))


def _generate(network: Any, case: Case, canvases: tuple[Canvas, ...], **given: Any) -> Any:
    schedule = case.schedule
    config = DiffusionGemmaGenerationConfig(
        max_new_tokens=CANVAS * len(canvases),
        max_length=10**6,
        max_denoising_steps=schedule.steps,
        sampler_config=EntropyBoundSamplerConfig(schedule.entropy_bound),
        t_min=schedule.t_min,
        t_max=schedule.t_max,
        stability_threshold=schedule.stability,
        confidence_threshold=schedule.confidence * float((~canvases[0].anchored[0]).float().mean()),
        eos_token_id=10**6,
        pad_token_id=10**6,  # tokens that equal it would not count as generated
        return_dict_in_generate=True,
    )
    processor = LogitsProcessorList([OneHot(canvases[0])])
    return network.generate(generation_config=config, logits_processor=processor, **given)


def ours(network: Any, case: Case) -> tuple[Outcome, list[list[Step]]]:
    """What our loop gives under the noise of `generate`, and the Steps of each canvas."""
    cache = FirstRow(network.config.text_config)
    commit(network, cache, case.prompt, case.rows)
    found, steps = [], []
    torch.manual_seed(case.seed)
    for number, canvas in enumerate(case.canvases):
        given = is_given(case, number)
        noise = StartAsGiven(canvas, case.seed + number) if given else GenerateNoise(canvas)
        sampler = AnchoredSampler(canvas, case.schedule.entropy_bound, noise, case.start)
        steps.append(list(denoise(network, cache, sampler, case.schedule)))
        found.append(steps[-1][-1].best)
        commit(network, cache, found[-1][0].tolist(), case.rows)
    passes = torch.stack([until_finished(of_canvas) for of_canvas in steps]).sum(0)
    return Outcome(torch.stack(found), passes.float()), steps


@torch.inference_mode()
def commit(network: Any, cache: FirstRow, tokens: Sequence[int], rows: int) -> None:
    """Append `tokens` to the cache."""
    network.model.encoder.language_model(input_ids=torch.tensor([tokens] * rows), past_key_values=cache)
    cache.tokens += tuple(tokens)


def until_finished(steps: list[Step]) -> Tensor:
    """How many steps each row took part in: int64 [rows]."""
    return 1 + torch.stack([~step.finished for step in steps[:-1]] or [steps[0].finished & False]).sum(0)


def random_canvas(rng: random.Random, free: int, rows: int = 1) -> Canvas:
    """In each row `free` slots free, wherever they fall: several anchor runs."""
    anchored = torch.ones(rows, CANVAS, dtype=torch.bool)
    for row in range(rows):
        anchored[row, rng.sample(range(CANVAS), free)] = False
    return Canvas(
        torch.tensor([[rng.randrange(VOCABULARY) for _ in range(CANVAS)] for _ in range(rows)]), anchored
    )


def step_logits(
    network: CanvasReader, cache: Cache, canvas: Tensor, slots: Tensor, soft: Tensor | None
) -> Tensor:
    """The decoder's soft-capped fp32 logits at `slots` [S] of `canvas` [rows, length]: [S, vocabulary].

    soft: the self-conditioning signal [rows, length, hidden], None at the first step. Up to rounding these are the
    logits of the whole forward pass; the vocabulary is computed for `slots` only.
    """
    return network.logits(hidden_states(network, cache, canvas, soft).flatten(0, 1)[slots])
