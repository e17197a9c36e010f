"""Laws 1 and 2: our loop against `model.generate` itself, token for token, on tiny random networks."""

import os
import random
from typing import Any

import pytest
import torch

from dg_lsp.model.canvas import FREE, Canvas, Seam, lay_out, noised
from dg_lsp.model.denoise import denoise
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule, Step
from tests.model.reference import RELEASED, STRICT, Case, generated, ours, random_canvas, until_finished
from tests.model.tiny import CANVAS, VOCABULARY, encoded, packed_network, tiny_network

OPEN = lay_out(Seam((), (), 0), CANVAS, CANVAS)


def assert_equal(network: Any, case: Case) -> list[Step]:
    wanted, (got, steps) = generated(network, case), ours(network, case)
    assert torch.equal(got.tokens, wanted.tokens)
    assert torch.equal(got.passes, wanted.passes)
    return [step for of_canvas in steps for step in of_canvas]


def four_bits(seed: int, _: torch.dtype) -> Any:
    return packed_network(seed)


KINDS = [(tiny_network, torch.float32), (tiny_network, torch.bfloat16), (four_bits, torch.bfloat16)]


def test_tests_compute_with_the_threads_that_the_environment_says() -> None:
    # More of them, on cores that are busy, take several times as long; a folder's conftest.py may import torch first.
    assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"])


@pytest.mark.parametrize(("made", "dtype"), KINDS, ids=["fp32", "bf16", "four bits"])
@pytest.mark.parametrize("canvases", [1, 2])
def test_without_anchors_the_loop_equals_generate(made: Any, dtype: torch.dtype, canvases: int) -> None:
    for seed in range(5):
        prompt = tuple(torch.randint(0, VOCABULARY, (5 + 12 * seed,)).tolist())
        case = Case(prompt, (OPEN,) * canvases, STRICT, seed)
        assert_equal(made(seed, dtype), case)


def test_with_anchors_the_loop_equals_generate_with_one_hot_rows() -> None:
    # In fp64, since a product over the free rows only may round otherwise than one over all rows.
    rng = random.Random(7)
    for seed in range(12):
        prompt = tuple(torch.randint(0, VOCABULARY, (rng.randrange(1, 40),)).tolist())
        canvas = random_canvas(rng, rng.randrange(3, CANVAS))
        assert_equal(tiny_network(seed, torch.float64), Case(prompt, (canvas,), STRICT, seed))


def random_start(rng: random.Random, canvas: Canvas) -> torch.Tensor:
    """Tokens in some slots, those of anchors among them; FREE in the others."""
    tokens = torch.tensor([[rng.randrange(VOCABULARY) for _ in range(CANVAS)] for _ in range(canvas.rows)])
    return noised(tokens, 0.5, rng.randrange(1000))


def test_with_a_start_the_loop_equals_generate_given_the_same_canvas() -> None:
    rng = random.Random(13)
    for seed in range(8):
        prompt = tuple(torch.randint(0, VOCABULARY, (rng.randrange(1, 40),)).tolist())
        canvas = OPEN if seed < 2 else random_canvas(rng, rng.randrange(3, CANVAS))
        case = Case(prompt, (canvas,), STRICT, seed, random_start(rng, canvas))
        assert_equal(tiny_network(seed, torch.float64), case)


def test_a_start_without_a_token_changes_nothing() -> None:
    rng = random.Random(17)
    for seed in range(5):
        canvas = random_canvas(rng, rng.randrange(3, CANVAS), 2)
        nothing = torch.full_like(canvas.tokens, FREE)
        for start in (None, nothing):
            noise = SeededNoise(seed, VOCABULARY, torch.device("cpu"))
            sampler = AnchoredSampler(canvas, STRICT.entropy_bound, noise, start)
            steps = list(denoise(tiny_network(seed), encoded(tiny_network(seed), [1, 2, 3]), sampler, STRICT))
            if start is None:
                wanted = steps
        assert all(torch.equal(a.canvas, b.canvas) for a, b in zip(wanted, steps, strict=True))


def test_the_loop_stops_by_itself_where_generate_does(counting_network: Any) -> None:
    rng = random.Random(1)
    lengths, right, stopped = set(), 0, 0
    for seed in range(12):
        prompt = tuple((3 + seed + i) % VOCABULARY for i in range(rng.randrange(2, 30)))
        canvas = random_canvas(rng, rng.randrange(3, CANVAS))
        truth = (prompt[-1] + 1 + torch.arange(CANVAS)[None]) % VOCABULARY
        steps = assert_equal(
            counting_network, Case(prompt, (Canvas(truth, canvas.anchored),), RELEASED, seed)
        )
        right += torch.equal(steps[-1].best, truth)
        stopped += bool(steps[-1].finished.all())
        lengths.add(len(steps))
    assert stopped >= 10
    assert right >= 9, "a network that cannot fill proves little about fills"
    assert len(lengths) > 2


def test_rows_that_leave_the_batch_change_nothing_for_the_others() -> None:
    # Random networks, whose rows have nothing in common, and a rule that lets some stop early. In fp64, since three
    # rows may round otherwise than four.
    rng = random.Random(11)
    early = Schedule(steps=8, confidence=0.8, stability=0)
    apart = 0
    for seed in range(6):
        prompt = tuple(torch.randint(0, VOCABULARY, (rng.randrange(1, 40),)).tolist())
        canvas = random_canvas(rng, rng.randrange(4, CANVAS + 1), 4)
        case = Case(prompt, (canvas,), early, seed)
        steps = assert_equal(tiny_network(seed % 5, torch.float64), case)
        apart += len(set(until_finished(steps).tolist())) > 2
    assert apart >= 2, "rows that leave together prove nothing"


@pytest.mark.parametrize("made", [tiny_network, packed_network], ids=["fp32", "four bits"])
def test_an_anchor_never_changes_in_any_step(made: Any) -> None:
    rng = random.Random(3)
    checked = 0
    for seed in range(40):
        canvas = random_canvas(rng, rng.randrange(1, CANVAS))
        start = random_start(rng, canvas) if seed % 2 else None
        _, (steps,) = ours(made(seed % 5), Case((1, 2, 3), (canvas,), STRICT, seed, start))
        for step in steps:
            checked += 1
            assert torch.equal(step.best[canvas.anchored], canvas.tokens[canvas.anchored])
            assert torch.equal(step.canvas[canvas.anchored], canvas.tokens[canvas.anchored])
            assert bool(step.accepted[canvas.anchored].all())
            assert not bool(step.entropy[canvas.anchored].any())
    assert checked == 40 * STRICT.steps


def test_rows_of_a_batch_with_different_anchors_stop_on_their_own(counting_network: Any) -> None:
    truth = (torch.arange(CANVAS) + 9) % VOCABULARY
    # With nothing free a row is finished at its first step; the others may stop together.
    free = [0, 2, 6, 12]
    anchored = torch.stack([torch.arange(CANVAS) >= n for n in free])
    canvas = Canvas(truth.expand(len(free), CANVAS).contiguous(), anchored)
    sampler = AnchoredSampler(canvas, RELEASED.entropy_bound, SeededNoise(0, VOCABULARY, torch.device("cpu")))
    cache = encoded(counting_network, [3, 4, 5, 6, 7, 8])
    steps = list(denoise(counting_network, cache, sampler, RELEASED))
    assert bool(steps[-1].finished.all())
    ends = [next(s.number for s in steps if s.finished[row]) for row in range(len(free))]
    assert ends[0] == 1 < min(ends[1:])
    for row, end in enumerate(ends):
        held = [s.entropy[row] for s in steps if s.number >= end]
        assert all(torch.equal(e, held[0]) for e in held), "a finished row keeps what it had"
