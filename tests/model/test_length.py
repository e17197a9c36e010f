"""The length search, on a network that knows the right answer."""

from typing import Any

import pytest
import torch

from dg_lsp.model.canvas import Seam
from dg_lsp.model.length import Search, leave_one_out, lengths_that_fit, neg_log_prior, search_length
from tests.model.tiny import CANVAS, VOCABULARY, encoded


@pytest.mark.parametrize("usual", [None, (1.5, 0.7), (2.3, 0.6)])
def test_the_anchors_tell_the_gaps_length_whatever_is_usual(
    counting_network: Any, usual: tuple[float, float] | None
) -> None:
    right = 0
    for case in range(20):
        gap = 1 + case % 8
        start = 3 * case
        prompt = [(start + i) % VOCABULARY for i in range(8)]
        suffix = tuple((start + 8 + gap + i) % VOCABULARY for i in range(CANVAS))
        search = Search((1, 2, 4, 6, 8), draws=2, steps=2, refined=4, prior=usual)
        cache = encoded(counting_network, prompt)
        *_, ranked = search_length(counting_network, cache, (Seam((), suffix, 0), CANVAS), search, case)
        right += ranked[0].length == gap
    assert right >= 15, f"{right} of 20 lengths found"


def test_the_second_round_looks_between_the_lengths_of_the_first(counting_network: Any) -> None:
    cache = encoded(counting_network, [1, 2, 3])
    seam = Seam((), tuple(range(9, 9 + CANVAS)), 0)
    rounds = list(
        search_length(counting_network, cache, (seam, CANVAS), Search((1, 4, 10), draws=1, refined=3), 0)
    )
    assert [len(r) for r in rounds] == [3, 6]
    assert {1, 4, 10} < {c.length for c in rounds[1]}


def test_a_length_that_is_rare_for_its_kind_scores_worse_by_so_much(counting_network: Any) -> None:
    cache, seam = encoded(counting_network, [1, 2, 3]), Seam((), tuple(range(9, 9 + CANVAS)), 0)
    found = []
    for usual in (None, (1.0, 0.5)):
        search = Search((1, 4, 10), draws=1, refined=0, prior=usual)
        *_, ranked = search_length(counting_network, cache, (seam, CANVAS), search, 0)
        found.append({c.length: c.score for c in ranked})
    chances = torch.distributions.LogNormal(1.0, 0.5)
    apart = [found[1][n] - found[0][n] + float(chances.log_prob(torch.tensor(float(n)))) for n in (1, 4, 10)]
    assert apart == pytest.approx([apart[0]] * 3, abs=1e-4)
    assert neg_log_prior(3, (1.0, 0.5)) < neg_log_prior(1, (1.0, 0.5)) < neg_log_prior(10, (1.0, 0.5))


def test_leave_one_out_divides_the_odds_by_the_vocabulary_plus_one() -> None:
    surprise = torch.tensor([0.01, 0.7, 3.0, 12.0])
    chance = (-surprise.double()).exp()
    odds = chance / (1 - chance) / 65
    assert torch.allclose(leave_one_out(surprise, 64), -(odds / (1 + odds)).log())
    assert bool(torch.isfinite(leave_one_out(torch.zeros(1), 64)).all())


def test_lengths_that_do_not_fit_are_left_out() -> None:
    assert lengths_that_fit((1, 4, 9, 20), 9) == (1, 4, 9)
    assert lengths_that_fit((8, 16), 5) == (5,)
