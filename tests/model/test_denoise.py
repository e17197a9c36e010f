"""The loop by itself: temperature, free rows, cancelling, repeating."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    LinearTemperatureScheduleLogitsProcessor,
)

from dg_lsp.model.canvas import Canvas, anchors_from, stack
from dg_lsp.model.denoise import denoise
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule
from dg_lsp.model.tiles import SEEN
from tests.model.reference import step_logits
from tests.model.tiny import CANVAS, VOCABULARY, encoded, tiny_network

CPU = torch.device("cpu")


def half_canvas() -> Canvas:
    anchored = torch.arange(CANVAS)[None] >= CANVAS // 2
    return Canvas(torch.arange(CANVAS)[None] % VOCABULARY, anchored)


def run(network: Any, seed: int, canvas: Canvas, watch: torch.Tensor | None = None) -> Any:
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(seed, VOCABULARY, CPU))
    schedule = Schedule(steps=6, confidence=1e-9)
    return denoise(network, encoded(network, [1, 2, 3]), sampler, schedule, watch)


def test_the_temperature_is_that_of_transformers_at_every_step() -> None:
    schedule = Schedule(steps=7, t_min=0.3, t_max=0.9)
    theirs = LinearTemperatureScheduleLogitsProcessor(0.3, 0.9, 7)
    for step in range(1, 8):
        left = torch.tensor(7 - step + 1, dtype=torch.int32)
        assert torch.equal(torch.ones(1) / schedule.temperature(step), theirs(None, torch.ones(1), left))
    assert float(schedule.temperature(1)) == pytest.approx(0.9)


def test_logits_of_some_slots_are_those_of_the_whole_forward() -> None:
    network = tiny_network(3, torch.float64)
    cache, canvas = encoded(network, list(range(20))), torch.arange(CANVAS)[None]
    previous = torch.randn(1, CANVAS, VOCABULARY, dtype=torch.float64)
    table = network.model.decoder.embed_tokens
    with torch.inference_mode():
        soft = previous.softmax(-1, dtype=torch.float32).double() @ table.weight * table.embed_scale
        for signal, logits in ((None, None), (soft, previous)):
            whole = network(
                decoder_input_ids=canvas, past_key_values=cache, self_conditioning_logits=logits
            ).logits[0]
            slots = torch.tensor([2, 5, 11])
            assert torch.allclose(step_logits(network, cache, canvas, slots, signal), whole[slots], atol=1e-5)


def test_closing_the_loop_stops_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    network, calls = tiny_network(0), 0
    real = network.lm_head.forward

    def counted(hidden: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return real(hidden)

    monkeypatch.setattr(network.lm_head, "forward", counted)
    steps = run(network, 0, half_canvas())
    assert calls == 0, "nothing is computed before it is asked for"
    next(steps)
    next(steps)
    steps.close()
    assert calls == 2
    assert list(steps) == []


def test_the_same_seed_gives_the_same_steps_and_another_does_not() -> None:
    network = tiny_network(0)
    first, second, other = (
        torch.stack([s.canvas for s in run(network, seed, half_canvas())]) for seed in (4, 4, 5)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_the_loop_does_not_leave_inference_mode_on_between_steps() -> None:
    steps = run(tiny_network(0), 0, half_canvas())
    next(steps)
    assert not torch.is_inference_mode_enabled()


def test_watching_anchors_changes_nothing_and_tells_their_surprise() -> None:
    network, canvas = tiny_network(0), half_canvas()
    watch = anchors_from(canvas, [CANVAS // 2], 4)
    plain = list(run(network, 1, canvas))
    watched = list(run(network, 1, canvas, watch))
    assert all(torch.equal(a.best, b.best) for a, b in zip(plain, watched, strict=True))
    assert all(s.neg_log_likelihood.shape == (4,) and bool((s.neg_log_likelihood > 0).all()) for s in watched)


def test_rows_that_have_finished_cost_nothing_more_and_change_nothing(counting_network: Any) -> None:
    truth = (torch.arange(CANVAS) + 9) % VOCABULARY
    # With nothing free a row is finished at its first step; the others may stop together.
    anchored = torch.stack([torch.arange(CANVAS) >= free for free in (0, 8, 15)])
    canvas = Canvas(truth.expand(3, CANVAS).contiguous(), anchored)
    shown: list[int] = []

    def counted(module: Any, inputs: tuple[torch.Tensor, ...], output: Any) -> None:
        shown.append(len(inputs[0]))

    hook = counting_network.model.decoder.layers[0].register_forward_hook(counted)
    sampler = AnchoredSampler(canvas, 0.1, SeededNoise(0, VOCABULARY, CPU))
    steps = list(
        denoise(counting_network, encoded(counting_network, [3, 4, 5, 6, 7, 8]), sampler, Schedule())
    )
    hook.remove()
    wanted = [3, *(int((~step.finished).sum()) for step in steps[:-1])]
    assert shown == wanted
    assert shown[-1] < 3, "rows that finish at the same step prove nothing"
    for before, after in pairwise(steps):
        held = before.finished
        assert torch.equal(before.best[held], after.best[held])
        assert torch.equal(before.entropy[held], after.entropy[held])


class Looks(TorchDispatchMode):
    """Counts the operators whose result's shape or type the host must know: each waits for the device."""

    waits = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "unique")
    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        by_mask = name.startswith("index") and any(
            index is not None and index.dtype == torch.bool
            for index in (args[1] if len(args) > 1 and isinstance(args[1], list) else [])
        )
        self.count += name in self.waits or by_mask
        return func(*args, **(kwargs or {}))


def test_a_step_never_waits_for_the_device_but_to_see_which_rows_have_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, canvas = tiny_network(0), stack([half_canvas()] * 2)
    width, draw = network.config.text_config.hidden_size, torch.Generator().manual_seed(0)
    # The network's own experts are not the loop's.
    monkeypatch.setattr(
        "dg_lsp.model.denoise.passes",
        lambda *_: lambda rows, _: torch.randn(*rows.shape, width, generator=draw),
    )
    steps = run(network, 1, canvas, anchors_from(canvas, [CANVAS // 2] * 2, 4))
    next(steps)
    # `tolist` of the finished rows is one wait a step, and on the CPU no operator.
    with Looks() as looks:
        for _ in range(3):
            next(steps)
        assert looks.count == 0
        assert bool(canvas.anchored.any()), "and a wait is seen"
    assert looks.count == 1


@pytest.mark.parametrize("bound", ["TILE", "CACHED"])
def test_tiles_of_the_vocabulary_give_what_one_piece_gives(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    network, canvas = tiny_network(2), half_canvas()
    whole = next(run(network, 1, canvas))
    monkeypatch.setattr(f"dg_lsp.model.tiles.{bound}", 3 * VOCABULARY)
    tiled = next(run(network, 1, canvas))
    assert torch.equal(whole.best, tiled.best)
    assert torch.allclose(whole.entropy, tiled.entropy, atol=1e-5)


def test_a_batch_read_in_parts_gives_what_it_gives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    network, canvas, rows = tiny_network(4, torch.float64), stack([half_canvas()] * 5), list[int]()
    whole = list(run(network, 1, canvas))
    real = network.model.decoder.self_conditioning.forward

    def counted(embedded: Tensor, signal: Tensor) -> Any:
        rows.append(len(embedded))
        return real(embedded, signal)

    # Keys and values of 3 + CANVAS tokens for 4 heads of 16 numbers of 8 bytes: two rows.
    monkeypatch.setitem(SEEN, "cpu", 2 * 2 * (3 + CANVAS) * 4 * 16 * 8 + 1)
    monkeypatch.setattr(network.model.decoder.self_conditioning, "forward", counted)
    parts = list(run(network, 1, canvas))
    assert rows == [2, 2, 1] * len(parts)
    assert all(torch.equal(a.best, b.best) for a, b in zip(whole, parts, strict=True))


def test_no_more_logits_are_in_memory_than_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the free slots nor of watched anchors, however many there are."""
    network, rows = tiny_network(1), list[int]()
    real = network.lm_head.forward

    def counted(states: Tensor) -> Any:
        rows.append(states.shape[:-1].numel())
        return real(states)

    monkeypatch.setattr("dg_lsp.model.tiles.TILE", 3 * VOCABULARY)
    monkeypatch.setattr(network.lm_head, "forward", counted)
    canvas = stack([half_canvas()] * 4)
    list(run(network, 1, canvas, canvas.anchored.flatten().nonzero().flatten()))
    assert rows and max(rows) <= 3
