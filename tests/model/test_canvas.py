"""Layouts: where head, free slots and suffix stand."""

import pytest
import torch

from dg_lsp.model.canvas import (
    FREE,
    LayoutError,
    Seam,
    anchors_from,
    lay_out,
    noised,
    stack,
    start_from,
)

SEAM = Seam(head=(7, 8), suffix=tuple(range(20, 30)), filler=1)


def test_head_gap_and_suffix_follow_each_other() -> None:
    canvas = lay_out(SEAM, 3, 10)
    assert canvas.tokens[0].tolist() == [7, 8, 0, 0, 0, 20, 21, 22, 23, 24]
    assert canvas.free_slots.tolist() == [2, 3, 4]


def test_the_suffix_is_laid_token_for_token_without_a_hole() -> None:
    for gap in range(1, 12):
        canvas = lay_out(SEAM, gap, 24)
        laid = canvas.tokens[0, 2 + gap :].tolist()
        assert laid == [*SEAM.suffix, *[1] * (22 - gap - 10)]
        assert int((~canvas.anchored).sum()) == gap


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(LayoutError, match="does not fit"):
        lay_out(SEAM, 9, 10)
    with pytest.raises(LayoutError):
        lay_out(SEAM, 0, 10)
    assert SEAM.room(10, anchors=4) == 4


def test_a_gap_that_fills_the_canvas_is_open_after() -> None:
    canvas = lay_out(SEAM, SEAM.room(10, 0), 10)
    assert canvas.anchored[0].tolist() == [True, True, *[False] * 8]
    assert anchors_from(stack([canvas, lay_out(SEAM, 5, 10)]), [10, 7], 12).tolist() == [17, 18, 19]


def test_a_seam_may_hold_slots_of_other_gaps() -> None:
    seam = Seam((3, FREE, FREE, 4), (5, 6, FREE, 7), FREE)
    canvas = lay_out(seam, 1, 10)
    assert canvas.free_slots.tolist() == [1, 2, 4, 7, 9]
    assert canvas.tokens[canvas.anchored].tolist() == [3, 4, 5, 6, 7]
    assert anchors_from(canvas, [5], 12).tolist() == [5, 6, 8]
    assert anchors_from(canvas, [5], 2).tolist() == [5, 6]


def test_slots_of_a_batch_count_over_all_rows() -> None:
    canvas = stack([lay_out(SEAM, 1, 8), lay_out(SEAM, 2, 8)])
    assert canvas.free_slots.tolist() == [2, 10, 11]
    assert anchors_from(canvas, [3, 4], 3).tolist() == [3, 4, 5, 12, 13, 14]


def test_an_open_canvas_has_no_anchor() -> None:
    canvas = lay_out(Seam((), (), 0), 5, 5)
    assert canvas.free_slots.tolist() == [0, 1, 2, 3, 4]


def test_a_start_lies_in_the_free_slots_of_its_row_and_ends_with_them() -> None:
    row = lay_out(Seam((1,), (2,), 0), 2, 4)
    canvas = stack([row, row, row])
    assert start_from(canvas, [(5, 6, 7), (5,), ()]).tolist() == [
        [FREE, 5, 6, FREE],
        [FREE, 5, FREE, FREE],
        [FREE] * 4,
    ]


def test_noise_takes_its_share_of_a_start_and_repeats_with_its_seed() -> None:
    start = torch.arange(10_000)[None]
    for share in (0.0, 0.3, 1.0):
        left = noised(start, share, 5)
        assert float((left == FREE).float().mean()) == pytest.approx(share, abs=0.02)
        assert torch.equal(left[left != FREE], start[left != FREE])
        assert torch.equal(left, noised(start, share, 5))
    assert not torch.equal(noised(start, 0.5, 5), noised(start, 0.5, 6))
