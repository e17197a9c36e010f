"""Fitting the judge: weights that explain made-up choices are found again."""

import random
from dataclasses import replace

import pytest

from benchmarks.judging import Example, fit, fit_together
from dg_lsp.model.judge import SITUATIONS, chances_of


def made_up(count: int, truth: dict[str, float], seed: int) -> list[Example]:
    """Gaps whose right candidate is drawn by the probabilities that the weights `truth` give."""
    rng, found = random.Random(seed), []
    for _ in range(count):
        rows = tuple(
            {"one": 1.0, "likelihood": rng.uniform(-3, 0), "noise": rng.uniform(-1, 1)} for _ in range(4)
        )
        chances = chances_of(truth, rows)
        right = rng.choices(range(-1, 4), [1 - sum(chances), *chances])[0]
        found.append(Example("rest", ("a", "b", "c", "d"), rows, right))
    return found


def test_the_weights_behind_the_choices_are_found() -> None:
    truth = {"one": -1.0, "likelihood": 2.0, "noise": 0.0}
    found = fit(made_up(4000, truth, 1), decay=1e-5)
    assert set(found) == set(SITUATIONS)
    for name, value in truth.items():
        assert found["rest"][name] == pytest.approx(value, abs=0.2)
    assert found["line"] == {}


def test_few_gaps_of_any_situation_give_the_same_weights_for_all() -> None:
    truth = {"one": -1.0, "likelihood": 2.0, "noise": 0.0}
    gaps = [replace(gap, situation=SITUATIONS[n % 3]) for n, gap in enumerate(made_up(3000, truth, 4))]
    found = fit_together(gaps, decay=1e-5)
    assert found["line"] == found["rest"] == found["inside"]
    assert found["line"]["likelihood"] == pytest.approx(2.0, abs=0.25)


def test_the_chances_are_calibrated_on_other_gaps() -> None:
    truth = {"one": -0.5, "likelihood": 3.0, "noise": 1.0}
    weights = fit(made_up(3000, truth, 2), decay=1e-5)["rest"]
    others = made_up(3000, truth, 3)
    best = [max(enumerate(chances_of(weights, e.rows)), key=lambda pair: pair[1]) for e in others]
    said = sum(chance for _, chance in best) / len(best)
    right = sum(e.right == number for e, (number, _) in zip(others, best, strict=True)) / len(best)
    assert said == pytest.approx(right, abs=0.03)


def test_gaps_without_candidates_do_not_count() -> None:
    assert fit([Example("line", (), (), -1)])["line"] == {}
