"""Pauses between attempts."""

import time

import pytest

from dg_lsp.engine.http import LONGEST, Backoff
from dg_lsp.filling.engine import EngineError

WHY = EngineError("it died")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_the_pause_grows_with_failures_that_follow_each_other_only(clock: list[float], first: float) -> None:
    backoff, pauses = Backoff(first), list[float]()
    # While somebody types, no fill may come to its end between two deaths that are minutes apart.
    for wait in (0, 1, 1, 100, 1, 200, 200):
        clock[0] += wait
        assert backoff.fail(WHY, backoff.count)
        pauses.append(backoff.left)
    assert pauses == [first, 2, 4, first, 2, first, first]


def test_a_failure_that_left_several_requests_open_counts_once(clock: list[float]) -> None:
    backoff = Backoff(1.0)
    assert backoff.fail(WHY, 0) and not backoff.fail(EngineError("another"), 0)
    assert (backoff.count, backoff.left, backoff.why) == (1, 1.0, WHY)


def test_no_pause_is_longer_than_the_longest_and_success_ends_the_row(clock: list[float]) -> None:
    backoff = Backoff(1.0)
    for _ in range(20):
        backoff.fail(WHY, backoff.count)
    assert backoff.left == LONGEST
    backoff.succeed()
    backoff.fail(WHY, backoff.count)
    assert backoff.left == 1.0


def test_an_engine_that_names_a_time_is_asked_then(clock: list[float]) -> None:
    backoff = Backoff(1.0)
    backoff.fail(WHY, 0, wait=7.0)
    assert backoff.left == 7.0
    clock[0] += 7.0
    assert backoff.left <= 0
    backoff.fail(WHY, 1, wait=1000.0)
    assert backoff.left == LONGEST
    backoff._not_before = time.monotonic()
    assert backoff.left <= 0
