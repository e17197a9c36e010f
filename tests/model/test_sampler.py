"""Acceptance and noise on synthetic entropies: the law, not numbers."""

import torch

from dg_lsp.model.canvas import FREE, Canvas
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise, entropies

CPU = torch.device("cpu")


def canvas_of(free: list[int], length: int = 8) -> Canvas:
    anchored = torch.ones(1, length, dtype=torch.bool)
    anchored[0, free] = False
    return Canvas(torch.arange(length)[None] + 50, anchored)


def test_entropies_are_those_of_torch_distributions_to_the_last_bit() -> None:
    logits = torch.randn(40, 300) * 6
    assert torch.equal(entropies(logits), torch.distributions.Categorical(logits=logits).entropy())


def test_slots_are_accepted_while_the_sum_before_them_is_within_the_bound() -> None:
    canvas = canvas_of([1, 2, 4, 5])
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(0, 100, CPU))
    current = torch.full((1, 8), 9)
    entropy = torch.tensor([0.5, 0.06, 0.03, 0.2])
    kept = sampler.accept(current, torch.tensor([11, 12, 14, 15]), entropy)
    # Ascending: 0.03, 0.06, 0.2 | 0.5. The sums before them are 0, 0.03, 0.09 | 0.29.
    assert kept[0, [1, 2, 4, 5]].tolist() == [9, 12, 14, 15]


def test_many_anchors_cost_nothing_of_the_bound() -> None:
    for anchors in (0, 10, 500):
        canvas = canvas_of([0, 1, 2], 3 + anchors)
        sampler = AnchoredSampler(canvas, 0.1, SeededNoise(0, 100, CPU))
        sampler.accept(canvas.tokens, torch.tensor([1, 2, 3]), torch.tensor([0.09, 0.02, 0.3]))
        assert sampler.accepted_token_mask[0, :3].tolist() == [True, True, False]


def test_the_surest_free_slot_is_always_accepted() -> None:
    canvas = canvas_of([3, 6])
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(0, 100, CPU))
    kept = sampler.accept(canvas.tokens, torch.tensor([1, 2]), torch.tensor([5.0, 4.0]))
    assert kept[0, 6] == 2
    assert kept[0, 3] == canvas.tokens[0, 3]


def test_renoising_leaves_accepted_slots_and_anchors() -> None:
    canvas = canvas_of(list(range(100)), 200)
    sampler = AnchoredSampler(canvas, 1e-6, SeededNoise(0, 1000, CPU))
    entropy = torch.full((100,), 3.0)
    entropy[10:40] = 0.0
    kept = sampler.accept(sampler.initialize_canvas(1, CPU), torch.arange(100) + 2000, entropy)
    again = sampler.renoise_canvas(kept, 1)
    assert torch.equal(again[0, 100:], canvas.tokens[0, 100:])
    assert again[0, 10:40].tolist() == list(range(2010, 2040))
    assert int((again[0, 41:100] == kept[0, 41:100]).sum()) < 5


def test_picked_tokens_follow_their_distribution() -> None:
    chances = torch.tensor([0.1, 0.0, 0.6, 0.3])
    drawn = SeededNoise(3, 4, CPU).pick(chances.expand(20000, 4), torch.arange(20000))
    shares = torch.bincount(drawn, minlength=4) / 20000
    assert torch.allclose(shares, chances, atol=0.015)
    assert shares[1] == 0


def test_noise_is_uniform_over_the_whole_vocabulary_and_repeats_with_its_seed() -> None:
    canvas = canvas_of(list(range(4000)), 4000)
    first, second = (SeededNoise(5, 8, CPU).tokens(canvas) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.allclose(torch.bincount(first[0], minlength=8) / 4000, torch.full((8,), 1 / 8), atol=0.03)
    assert not torch.equal(first, SeededNoise(6, 8, CPU).tokens(canvas))


def test_rows_of_a_batch_get_noise_of_their_own() -> None:
    canvas = Canvas(torch.zeros(3, 1000, dtype=torch.int64), torch.zeros(3, 1000, dtype=torch.bool))
    noise = SeededNoise(1, 8, CPU)
    start = noise.tokens(canvas)
    drawn = noise.pick(torch.full((3000, 8), 1 / 8), torch.arange(3000)).view(3, 1000)
    for rows in (start, drawn):
        for a, b in ((0, 1), (0, 2), (1, 2)):
            # Two independent slots agree in one case of eight.
            assert abs(float((rows[a] == rows[b]).float().mean()) - 1 / 8) < 0.05
    assert abs(float((start == drawn).float().mean()) - 1 / 8) < 0.05


def test_the_first_canvas_holds_the_start_in_free_slots_and_later_noise_does_not() -> None:
    canvas = canvas_of([1, 2, 4, 5])
    start = torch.full((1, 8), FREE)
    start[0, [0, 1, 4]] = torch.tensor([201, 202, 203])
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(0, 100, CPU), start)
    first = sampler.first_canvas()
    # The anchor in slot 0 stays; slots 2 and 5 hold noise.
    assert first[0, [0, 1, 4]].tolist() == [50, 202, 203]
    noise = SeededNoise(0, 100, CPU).tokens(canvas)
    assert torch.equal(first[0, [2, 5]], noise[0, [2, 5]])
    assert int(sampler.initialize_canvas(1, CPU).max()) < 200
