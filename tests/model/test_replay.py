"""Replayed passes, without a GPU: a recording here computes again in the same places, as a CUDA graph would."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.denoise import denoise
from dg_lsp.model.networks.replay import Replays, enable
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule, Step
from tests.model.tiny import CANVAS, VOCABULARY, WINDOW, encoded, tiny_network

BUCKETS = (2 * WINDOW, 4 * WINDOW)


def again(run: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
    """What a CUDA graph does: each replay computes from the same places and into the same."""
    result = run().clone()
    return lambda: result.copy_(run()), result


def network_with(record: Any = again) -> tuple[Any, Replays]:
    network = tiny_network(1, torch.float64)
    return network, enable(network, record, BUCKETS)


def prefix(network: Any, length: int, seed: int = 0) -> PrefixCache:
    return encoded(network, [random.Random(f"{seed} {i}").randrange(VOCABULARY) for i in range(length)])


def settling(network: Any, cache: PrefixCache, rows: int = 1, seed: int = 0) -> Iterator[Step]:
    rng = random.Random(seed)
    anchored = torch.tensor([[rng.random() < 0.4 for _ in range(CANVAS)] for _ in range(rows)])
    canvas = Canvas(torch.arange(rows * CANVAS).view(rows, CANVAS) % VOCABULARY, anchored)
    noise = SeededNoise(seed, VOCABULARY, torch.device("cpu"))
    # So loose that rows finish at different steps, and leave the batch.
    schedule = Schedule(steps=10, confidence=0.8, stability=0)
    return denoise(network, cache, AnchoredSampler(canvas, 0.5, noise), schedule)


def same(steps: list[Step], wanted: list[Step]) -> bool:
    fields = ("best", "canvas", "accepted", "finished")
    return len(steps) == len(wanted) and all(
        torch.allclose(a.entropy, b.entropy, atol=1e-9)
        and all(torch.equal(getattr(a, field), getattr(b, field)) for field in fields)
        for a, b in zip(steps, wanted, strict=True)
    )


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_replayed_steps_are_those_of_plain_passes(rows: int) -> None:
    plain = tiny_network(1, torch.float64)
    network, replays = network_with()
    left = 0
    for length in (1, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW, 2 * WINDOW + 1, 4 * WINDOW):
        wanted = list(settling(plain, prefix(plain, length), rows, seed=length))
        assert same(list(settling(network, prefix(network, length), rows, seed=length)), wanted), length
        left += any(bool(s.finished.any()) and not bool(s.finished.all()) for s in wanted)
    assert not replays.broken and (left or rows == 1), "rows must have left the batch"


def test_after_the_first_fill_of_a_shape_nothing_is_recorded_again() -> None:
    network, replays = network_with()
    list(settling(network, prefix(network, 3), 4))
    known = replays.recorded
    assert known >= 1
    for length in range(1, 2 * WINDOW, 3):
        for rows in (4, 3):
            list(settling(network, prefix(network, length, seed=length), rows, seed=length))
    # Rows fill up to 1, 2 and 4.
    assert replays.recorded <= 3
    known = replays.recorded
    list(settling(network, prefix(network, 5), 4, seed=8))
    assert replays.recorded == known


def test_two_fills_may_take_turns() -> None:
    (network, _), plain = network_with(), tiny_network(1, torch.float64)
    caches = [prefix(network, length, seed=length) for length in (5, 9)]
    alone = [list(settling(plain, cache, seed=n)) for n, cache in enumerate(caches)]
    turns = [settling(network, cache, seed=n) for n, cache in enumerate(caches)]
    mixed: list[list[Step]] = [[], []]
    while len(mixed[0]) < len(alone[0]) or len(mixed[1]) < len(alone[1]):
        for steps, turn in zip(mixed, turns, strict=True):
            steps.extend(step for step in [next(turn, None)] if step is not None)
    assert all(same(steps, wanted) for steps, wanted in zip(mixed, alone, strict=True))


def test_a_prefix_longer_than_every_bucket_is_not_replayed() -> None:
    network, replays = network_with()
    plain = tiny_network(1, torch.float64)
    length = BUCKETS[-1] + 1
    steps = list(settling(network, prefix(network, length)))
    assert same(steps, list(settling(plain, prefix(plain, length))))
    assert replays.recorded == 0


def refuse(_: Callable[[], Tensor]) -> Any:
    raise RuntimeError("operation not permitted when stream is capturing\nmore")


def wrong(run: Callable[[], Tensor]) -> Any:
    result = run().clone()
    return lambda: result.copy_(run() + 1), result


@pytest.mark.parametrize(
    ("record", "why"), [(refuse, "operation not permitted"), (wrong, "something else")], ids=["fails", "errs"]
)
def test_what_cannot_be_replayed_is_computed_plainly(
    record: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    network, replays = network_with(record)
    plain = tiny_network(1, torch.float64)
    for _ in range(2):
        steps = list(settling(network, prefix(network, 6), 2))
        assert same(steps, list(settling(plain, prefix(plain, 6), 2)))
    assert why in replays.broken and replays.recorded == 0
    assert len(caplog.messages) == 1 and "CUDA graphs are off" in caplog.messages[0]


def test_batches_after_a_long_prefix_are_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay copies and masks the whole bucket for each row."""
    network, replays = network_with()
    monkeypatch.setattr("dg_lsp.model.networks.replay._MOST", 2 * BUCKETS[0])
    list(settling(network, prefix(network, BUCKETS[0]), rows=3))
    assert not any(rows > 2 for rows, _, _ in replays._recordings)
    list(settling(network, prefix(network, BUCKETS[0]), rows=2))
    assert replays.recorded
