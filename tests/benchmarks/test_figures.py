"""Statistics of fills on made-up data whose right answers are known."""

import random

import pytest

from benchmarks.figures import calibration_error, curve, difference, interval, percentile


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says():
    chance = random.Random(1)
    held = 0
    for _ in range(100):
        low, high = interval([float(chance.random() < 0.3) for _ in range(200)])
        held += low <= 0.3 <= high
    assert 88 <= held <= 100


def test_the_interval_narrows_with_the_root_of_the_number():
    few, many = interval([0.0, 1.0] * 50), interval([0.0, 1.0] * 800)
    assert (few[1] - few[0]) / (many[1] - many[0]) == pytest.approx(4, rel=0.1)


def test_equal_values_leave_no_doubt():
    assert interval([0.25] * 30) == (0.25, 0.25)
    assert interval([]) == (0.0, 0.0)


def test_a_paired_difference_is_seen_where_unpaired_ones_are_not():
    chance = random.Random(2)
    before = [float(chance.random() < 0.5) for _ in range(300)]
    after = before.copy()
    for place in [n for n, value in enumerate(before) if not value][:10]:
        after[place] = 1.0
    mean, low, high = difference(before, after)
    assert mean == pytest.approx(10 / 300)
    assert 0 < low < mean < high
    assert interval(after)[0] < sum(before) / 300  # the intervals of the two means overlap


def test_a_difference_of_unequal_lists_is_refused():
    with pytest.raises(ValueError):
        difference([1.0], [1.0, 0.0])


def test_the_curve_counts_what_reaches_the_threshold():
    points = curve([0.9, 0.6, 0.6, 0.2], [True, True, False, False], 8, [0.0, 0.6, 0.95])
    assert [(p.shown, p.right, p.count) for p in points] == [(0.5, 0.5, 4), (0.375, 2 / 3, 3), (0.0, 0.0, 0)]


def test_calibration_is_the_distance_between_what_is_said_and_what_is_true():
    assert calibration_error([0.5] * 10, [True, False] * 5) == pytest.approx(0)
    assert calibration_error([1.0] * 10, [True, False] * 5) == pytest.approx(0.5)
    # One bin is 0.2 too sure, the other 0.2 too unsure: they must not cancel.
    chances = [0.25] * 20 + [0.85] * 20
    right = [True] * 9 + [False] * 11 + [True] * 13 + [False] * 7
    assert calibration_error(chances, right) == pytest.approx(0.2)
    assert calibration_error([], []) == 0


def test_percentiles_are_of_the_nearest_rank():
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(list(range(1, 101)), 0.95) == 95
    assert percentile([], 0.5) == 0
