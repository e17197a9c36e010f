"""The simulation of editors that share engines, against what is known of such queues."""

import random
from statistics import mean

import pytest

from dg_lsp.bench.queueing import Load, _one_engine, simulate
from dg_lsp.bench.score import quantile


@pytest.mark.parametrize("seconds", [[1.0], [0.2, 0.2, 0.2, 3.4]])
@pytest.mark.parametrize("busy", [0.3, 0.6])
def test_the_mean_is_that_of_processor_sharing_whatever_the_sizes_are(
    seconds: list[float], busy: float
) -> None:
    # Work over 1 - load, for Poisson arrivals (Kleinrock 1976); of 10,000 editors hardly one overtakes itself.
    load = Load(seconds, 10_000, 10_000 / busy)
    assert load.busy(1) == pytest.approx(busy)
    times, overtaken = _one_engine(load, 10_000, 40_000, random.Random(1))
    assert mean(times) == pytest.approx(1 / (1 - busy), rel=0.08)
    assert overtaken < 100


def test_one_editor_waits_for_nobody_and_overtakes_itself() -> None:
    alone = simulate(Load([0.5], 1, 5.0), 1)
    assert alone.p50 == pytest.approx(0.5) and alone.p95 == pytest.approx(0.5)
    # The next request comes within 0.5 s with the probability 1 - exp(-0.1).
    assert alone.overtaken == pytest.approx(0.095, abs=0.01)


def test_more_engines_wait_less_and_the_same_seed_gives_the_same_numbers() -> None:
    load = Load([0.2, 0.4], 24, 5.0)
    found = [simulate(load, engines) for engines in (1, 2, 4, 24)]
    assert [one.p95 for one in found] == sorted((one.p95 for one in found), reverse=True)
    assert found[-1].p95 == pytest.approx(0.4)
    assert simulate(load, 2) == found[1] != simulate(load, 2, seed=1)


def test_too_much_work_is_told() -> None:
    load = Load([2.0], 10, 5.0)
    assert load.busy(1) == 4 and simulate(load, 1).overtaken > 0.5


def test_a_quantile_is_a_number_that_was_seen() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0 and quantile([1.0, 2.0], 0.95) == 2.0
    assert quantile([], 0.5) != quantile([], 0.5)
