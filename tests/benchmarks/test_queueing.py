"""The simulation of editors that share engines, against what is known of such queues."""

import math
import random
from statistics import mean

import pytest

from benchmarks.queueing import Load, _Engine, simulate
from dg_lsp.bench.score import quantile


@pytest.mark.parametrize("seconds", [[1.0], [0.2, 0.2, 0.2, 3.4]])
@pytest.mark.parametrize("busy", [0.3, 0.6])
def test_the_mean_is_that_of_a_queue_with_one_server(seconds: list[float], busy: float) -> None:
    # Pollaczek and Khinchine (Kleinrock 1975, 5.7), for Poisson arrivals; hardly one of 10,000 overtakes itself.
    load = Load(seconds, 10_000, 10_000 / busy)
    assert load.busy(1) == pytest.approx(busy)
    engine = _Engine(load, 10_000, random.Random(1))
    engine.run(40_000)
    waits = busy * mean(s * s for s in seconds) / (2 * (1 - busy))
    assert mean(engine.answered) == pytest.approx(1 + waits, rel=0.08)
    assert engine.overtaken < 100 and engine.late == 0


def test_a_deadline_bounds_what_an_answer_takes_and_the_rest_is_late() -> None:
    free, bound = (simulate(Load([1.0], 16, 10.0, d), 1) for d in (math.inf, 2.0))
    assert free.late == 0 and free.p95 > 4 and free.overtaken > 2 * bound.overtaken
    assert bound.p95 == pytest.approx(2.0) and 0.1 < bound.late < 0.3
    # With little to do, the deadline changes nothing.
    assert simulate(Load([0.5], 2, 100.0, 2.0), 1) == simulate(Load([0.5], 2, 100.0), 1)


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
