"""Statistics of fills: bootstrap intervals, the curve of what is shown against what is right, and calibration.

Knows numbers; knows no engine and no documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dg_lsp.bench.score import quantile

ROUNDS = 10_000
_TAIL = 2.5  # per cent on each side


@dataclass(frozen=True, slots=True)
class Point:
    """What showing from a threshold on gives: the share of all that is shown, and the share of that which is right."""

    threshold: float
    shown: float
    right: float
    count: int


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean of `values`; of paired differences, that of their mean.

    (0, 0) without values.
    """
    if not len(values):
        return 0.0, 0.0
    numbers = np.asarray(values, dtype=float)
    draws = np.random.default_rng(seed).integers(len(numbers), size=(ROUNDS, len(numbers)))
    low, high = np.percentile(numbers[draws].mean(axis=1), [_TAIL, 100 - _TAIL])
    return float(low), float(high)


def difference(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """The mean of `after` less that of `before`, hole by hole, and its 95 % bootstrap interval.

    Raises:
        ValueError: the two have not the same length.
    """
    paired = [b - a for a, b in zip(before, after, strict=True)]
    mean = sum(paired) / len(paired) if paired else 0.0
    return mean, *interval(paired)


def curve(
    chances: Sequence[float], right: Sequence[bool], total: int, thresholds: Sequence[float]
) -> list[Point]:
    """For each threshold what is shown if all offers of at least that chance are; `total` counts the holes.

    `right` is 0 where nothing is shown.
    """
    points = []
    for threshold in thresholds:
        shown = [ok for chance, ok in zip(chances, right, strict=True) if chance >= threshold]
        points.append(
            Point(
                threshold,
                len(shown) / total if total else 0.0,
                sum(shown) / len(shown) if shown else 0.0,
                len(shown),
            )
        )
    return points


def calibration_error(chances: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """The expected calibration error: the mean distance between chance and share right, weighted by the bins' sizes.

    The bins are equally wide; 0 without offers.
    """
    if not len(chances):
        return 0.0
    said, true = np.asarray(chances, dtype=float), np.asarray(right, dtype=float)
    places = np.minimum((said * bins).astype(int), bins - 1)
    gaps = (abs(said[places == n].sum() - true[places == n].sum()) for n in range(bins))
    return float(sum(gaps) / len(said))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of `values` do not exceed; 0 without values."""
    return quantile(sorted(values), share) if len(values) else 0.0
