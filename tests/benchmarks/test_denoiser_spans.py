"""Texts from a canvas between known tokens, with a tiny network."""

import random
from itertools import pairwise

import pytest
import torch

from benchmarks.denoiser import spans
from benchmarks.denoiser.network import MASK
from benchmarks.denoiser.views import Gap
from tests.benchmarks.test_denoiser import END, changed, gaps, greedy, tiny
from tests.model.gguf_files import VOCABULARY

MARKS = spans.Marks(prefix=2, suffix=3, middle=4, end=END)


def gap_of(chance: random.Random, length: int) -> Gap:
    """Return a gap with a prompt of MARKS and a text of `length` random tokens."""
    above, below, text = ([chance.randrange(5, VOCABULARY) for _ in range(size)] for size in (7, 4, length))
    return Gap(MARKS.prompt(above, below), (*text, END), whole=True)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_holes_have_known_tokens_on_both_sides_and_between_them(count: int) -> None:
    chance, found = random.Random(0), 0
    for length in [*range(1, 30)] * 20:
        places = spans.spans_of(gap_of(chance, length), count, chance)
        if places is None:
            continue
        found += 1
        assert places[0].start > 0 and places[-1].stop < length and len(places) == count
        assert all(1 <= len(span) <= 4 for span in places)
        assert all(after.start - span.stop >= 2 for span, after in pairwise(places))
    assert found > 200
    assert spans.spans_of(gap_of(chance, 2), 1, chance) is None


def test_prompt_is_taken_apart_as_it_was_made() -> None:
    assert MARKS.sides(MARKS.prompt([7, 8], [9])) == ((7, 8), (9,))


@pytest.mark.parametrize("first", spans.FIRST)
def test_known_tokens_of_a_canvas_stay_and_no_mask_is_left(first: str) -> None:
    network, prompt = changed(tiny()), gaps(1)[0].prompt
    canvas = [MASK, 9, MASK, MASK, 11, MASK]
    text = spans.denoise(network, spans.read_prompt(network, prompt), canvas, first)
    assert [text[1], text[4]] == [9, 11] and all(token >= 0 for token in text) and len(text) == 6


def test_token_after_known_ones_is_that_of_the_frozen_network_whatever_the_adapters() -> None:
    network, prompt = changed(tiny()), gaps(1)[0].prompt
    truth = greedy(network, prompt, 6)
    for known in range(len(truth)):
        canvas = [*truth[:known], MASK]
        assert (
            spans.denoise(network, spans.read_prompt(network, prompt), canvas, "causal")[: known + 1]
            == truth[: known + 1]
        )


def test_each_hole_is_written_between_what_is_known_and_written() -> None:
    network, gap = tiny(), gap_of(random.Random(1), 14)
    places = [range(2, 4), range(7, 10)]
    above, below = MARKS.sides(gap.prompt)
    text = list(gap.text[:-1])
    one = greedy(network, MARKS.prompt([*above, *text[:2]], [*text[4:7], *text[10:], *below]), 2)
    one = [token for token in one if token != END]
    other = greedy(network, MARKS.prompt([*above, *text[:2], *one, *text[4:7]], [*text[10:], *below]), 3)
    other = [token for token in other if token != END]
    assert spans.one_by_one(network, gap, places, MARKS, between=True) == [one, other]
    assert spans.put_back(text, places, [one, other]) == [*text[:2], *one, *text[4:7], *other, *text[10:]]


def test_hole_in_the_prompt_of_the_gap_is_what_the_network_writes_after_the_known_text() -> None:
    network, gap = tiny(), gap_of(random.Random(1), 14)
    text = list(gap.text[:-1])
    one = [t for t in greedy(network, (*gap.prompt, *text[:2]), 2) if t != END]
    other = [t for t in greedy(network, (*gap.prompt, *text[:2], *one, *text[4:7]), 3) if t != END]
    assert spans.one_by_one(network, gap, [range(2, 4), range(7, 10)], MARKS, between=False) == [one, other]


def test_text_of_unknown_length_ends_before_the_first_row_that_gives_its_end(monkeypatch) -> None:
    network, prompt = tiny(), gaps(1)[0].prompt

    def chances(*given: object, **_: object) -> torch.Tensor:
        rest = given[3]
        assert isinstance(rest, list)
        found = torch.full((len(rest), VOCABULARY), -9.0)
        # The fourth token of eight is the end, and those after it are surer than those before.
        at = 8 - len(rest)
        for row in range(len(rest)):
            found[row, END if at + row == 3 else 20 + at + row] = -1.0 / (1 + at + row)
        return found

    monkeypatch.setattr(spans, "_chances", chances)
    assert spans.denoise(network, spans.read_prompt(network, prompt), [MASK] * 8, "causal", END) == [
        20,
        21,
        22,
    ]
    assert len(spans.denoise(network, spans.read_prompt(network, prompt), [MASK] * 8, "causal")) == 8
