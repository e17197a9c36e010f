"""Laws 1 and 2: our loop against `model.generate` itself, token for token, on tiny random networks."""

import random
from typing import Any

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from dg_lsp.engine.canvas import Canvas, open_canvas
from dg_lsp.engine.denoise import Schedule, Step, denoise
from dg_lsp.engine.sampler import AnchoredSampler, SeededNoise
from tests.engine.tiny import CANVAS, VOCABULARY, GenerateNoise, encoded, extend, tiny_network

STRICT = Schedule(steps=5, confidence=1e-9)  # runs out of steps: what random networks do anyway
RELEASED = Schedule()  # stops by itself on a network that really denoises


class OneHot(LogitsProcessor):
    """Makes the rows of anchors certain; the canvas number follows from the length of what was generated."""

    def __init__(self, canvases: list[Canvas], prompt: int) -> None:
        self.canvases, self.prompt = canvases, prompt

    def __call__(self, input_ids: Any, scores: torch.Tensor, cur_step: Any) -> torch.Tensor:
        canvas = self.canvases[(input_ids.shape[1] - self.prompt) // CANVAS]
        hot = torch.full_like(scores, -1e4).scatter(-1, canvas.tokens[..., None], 0.0)
        return torch.where(canvas.anchored[..., None], hot, scores)


def reference(
    network: Any, prompt: list[int], canvases: list[Canvas], schedule: Schedule, seed: int
) -> tuple[torch.Tensor, int]:
    """What transformers generates, with anchors as law 2 says: int64 [canvases, CANVAS], decoder passes."""
    config = DiffusionGemmaGenerationConfig(
        max_new_tokens=CANVAS * len(canvases),
        max_denoising_steps=schedule.steps,
        sampler_config=EntropyBoundSamplerConfig(schedule.entropy_bound),
        t_min=schedule.t_min,
        t_max=schedule.t_max,
        stability_threshold=schedule.stability,
        confidence_threshold=schedule.confidence * float((~canvases[0].anchored).float().mean()),
        eos_token_id=10**6,
        pad_token_id=10**6,  # tokens that equal it would not count as generated
        return_dict_in_generate=True,
    )
    extra: dict[str, Any] = {}
    if bool(canvases[0].anchored.any()):
        assert len(canvases) == 1, "generate takes a starting canvas for the first one only"
        torch.manual_seed(seed + 1000)
        start = torch.where(
            canvases[0].anchored, canvases[0].tokens, torch.randint(0, VOCABULARY, (1, CANVAS))
        )
        extra["decoder_input_ids"] = start
    processor = LogitsProcessorList([OneHot(canvases, len(prompt))])
    torch.manual_seed(seed)
    out = network.generate(
        input_ids=torch.tensor([prompt]), generation_config=config, logits_processor=processor, **extra
    )
    passes = round(len(canvases) * CANVAS / float(out.tokens_per_forward))
    return out.sequences[0, len(prompt) :].view(len(canvases), CANVAS), passes


class StartAsGiven(GenerateNoise):
    """`generate` draws a canvas even when it was given one, and then takes the given one."""

    def __init__(self, canvas: Canvas, seed: int) -> None:
        super().__init__(canvas)
        self._first = True
        state = torch.get_rng_state()
        torch.manual_seed(seed + 1000)
        self._start = torch.randint(0, VOCABULARY, (1, CANVAS))
        torch.set_rng_state(state)

    def tokens(self, canvas: Canvas) -> torch.Tensor:
        drawn = super().tokens(canvas)
        first, self._first = self._first, False
        return self._start if first else drawn


def ours(
    network: Any, prompt: list[int], canvases: list[Canvas], schedule: Schedule, seed: int
) -> tuple[torch.Tensor, list[Step]]:
    cache = encoded(network, prompt)
    rows, steps = [], []
    torch.manual_seed(seed)
    for canvas in canvases:
        anchored = bool(canvas.anchored.any())
        noise = StartAsGiven(canvas, seed) if anchored else GenerateNoise(canvas)
        sampler = AnchoredSampler(canvas, schedule.entropy_bound, noise)
        found = list(denoise(network, cache.seen_by(1), sampler, schedule))
        rows.append(found[-1].best[0])
        steps += found
        extend(network, cache, rows[-1].tolist())
    return torch.stack(rows), steps


def random_canvas(rng: random.Random, free: int) -> Canvas:
    """`free` slots free, wherever they fall: several anchor runs."""
    anchored = torch.ones(1, CANVAS, dtype=torch.bool)
    anchored[0, rng.sample(range(CANVAS), free)] = False
    return Canvas(torch.tensor([[rng.randrange(VOCABULARY) for _ in range(CANVAS)]]), anchored)


def assert_equal(
    network: Any, prompt: list[int], canvases: list[Canvas], schedule: Schedule, seed: int
) -> list[Step]:
    wanted, passes = reference(network, prompt, canvases, schedule, seed)
    got, steps = ours(network, prompt, canvases, schedule, seed)
    assert torch.equal(got, wanted)
    assert len(steps) == passes
    return steps


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("canvases", [1, 2])
def test_without_anchors_the_loop_equals_generate(dtype: torch.dtype, canvases: int) -> None:
    for seed in range(5):
        prompt = torch.randint(0, VOCABULARY, (5 + 12 * seed,)).tolist()
        assert_equal(tiny_network(seed, dtype), prompt, [open_canvas(CANVAS)] * canvases, STRICT, seed)


def test_with_anchors_the_loop_equals_generate_with_one_hot_rows() -> None:
    # In fp64, since a product over the free rows only may round otherwise than one over all rows.
    rng = random.Random(7)
    for seed in range(12):
        prompt = torch.randint(0, VOCABULARY, (rng.randrange(1, 40),)).tolist()
        canvas = random_canvas(rng, rng.randrange(3, CANVAS))
        assert_equal(tiny_network(seed, torch.float64), prompt, [canvas], STRICT, seed)


def test_the_loop_stops_by_itself_where_generate_does(counting_network: Any) -> None:
    rng = random.Random(1)
    lengths, right, stopped = set(), 0, 0
    for seed in range(12):
        prompt = [(3 + seed + i) % VOCABULARY for i in range(rng.randrange(2, 30))]
        canvas = random_canvas(rng, rng.randrange(3, CANVAS))
        truth = (prompt[-1] + 1 + torch.arange(CANVAS)[None]) % VOCABULARY
        steps = assert_equal(counting_network, prompt, [Canvas(truth, canvas.anchored)], RELEASED, seed)
        right += torch.equal(steps[-1].best, truth)
        stopped += bool(steps[-1].finished.all())
        lengths.add(len(steps))
    assert stopped >= 10
    assert right >= 9, "a network that cannot fill proves little about fills"
    assert len(lengths) > 2


def test_an_anchor_never_changes_in_any_step() -> None:
    rng = random.Random(3)
    checked = 0
    for seed in range(40):
        canvas = random_canvas(rng, rng.randrange(1, CANVAS))
        _, steps = ours(tiny_network(seed % 5), [1, 2, 3], [canvas], STRICT, seed)
        for step in steps:
            checked += 1
            assert torch.equal(step.best[canvas.anchored], canvas.tokens[canvas.anchored])
            assert torch.equal(step.canvas[canvas.anchored], canvas.tokens[canvas.anchored])
            assert bool(step.accepted[canvas.anchored].all())
            assert not bool(step.entropy[canvas.anchored].any())
    assert checked == 40 * STRICT.steps


def test_rows_of_a_batch_with_different_anchors_stop_on_their_own(counting_network: Any) -> None:
    truth = (torch.arange(CANVAS) + 9) % VOCABULARY
    free = [2, 6, 12]
    anchored = torch.stack([torch.arange(CANVAS) >= n for n in free])
    canvas = Canvas(truth.expand(3, CANVAS).contiguous(), anchored)
    sampler = AnchoredSampler(canvas, RELEASED.entropy_bound, SeededNoise(0, VOCABULARY, torch.device("cpu")))
    cache = encoded(counting_network, [4, 5, 6, 7, 8])
    steps = list(denoise(counting_network, cache.seen_by(3), sampler, RELEASED))
    assert bool(steps[-1].finished.all())
    ends = [next(s.number for s in steps if s.finished[row]) for row in range(3)]
    assert len(set(ends)) > 1
    for row, end in enumerate(ends):
        held = [s.entropy[row] for s in steps if s.number >= end]
        assert all(torch.equal(e, held[0]) for e in held), "a finished row keeps what it had"
