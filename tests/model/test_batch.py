"""Which of several finished rows is taken, and what of them the encoder reads; on a random checkpoint of bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dg_lsp.messages import Fill, Infill
from dg_lsp.model.batch import (
    SUFFIX_READ,
    Batch,
    check_rows,
    decode,
    rank_rows,
    report_steps,
    row_neg_log_likelihoods,
)
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.canvas import Seam, lay_out, stack
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.step import Step

HEAD, SUFFIX = "    return ", "\n\n\ndef half(x):\n    return x / 2\n"


@pytest.fixture
def cache(model: Checkpoint) -> PrefixCache:
    cache = PrefixCache(model.network.config.text_config)
    for _ in extend_to(model.network, cache, (model.bos, *model.encode("def area(r):\n"))):
        pass
    return cache


def settled(model: Checkpoint, *fills: str, suffix: str = SUFFIX) -> tuple[Batch, Step]:
    """Rows that hold `fills`, each of its own length, all finished."""
    seam = Seam(model.encode(HEAD), model.encode(suffix), model.eos)
    canvas = stack([lay_out(seam, len(model.encode(fill)), 64) for fill in fills])
    best = canvas.tokens.clone()
    best.view(-1)[canvas.free_slots] = torch.tensor([t for fill in fills for t in model.encode(fill)])
    zeros = torch.zeros(canvas.tokens.shape)
    done = torch.ones(canvas.rows, dtype=torch.bool)
    request = Infill("def area(r):\n" + HEAD, suffix, "python", "rest_of_line")
    return Batch(canvas, request, 4), Step(4, best, best, canvas.anchored, zeros, torch.empty(0), done)


def test_the_one_that_the_encoder_finds_likeliest_comes_first_among_those_that_can_be_shown(
    model: Checkpoint, cache: PrefixCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, step = settled(model, "r", "r)", "r * r", "2 * r")
    monkeypatch.setattr("dg_lsp.model.batch.neg_log_likelihoods", lambda *_: [9.0, 1.0, 5.0, 7.0])
    found = rank_rows(model, cache, batch, step)
    assert [(c.row, c.fill.text, c.fill.score) for c in found] == [
        (2, "r * r", 5.0),
        (3, "2 * r", 7.0),
        (0, "r", 9.0),
        (1, "r)", 1.0),
    ]
    assert [bool(c.fill.refusal) for c in found] == [False, False, False, True]


@pytest.mark.parametrize(
    ("raw", "tail", "text"), [("[", "r", "foo([r])"), ("r)\n", "r", ""), ("r", ")", "foo(r)")]
)
def test_what_is_mended_keeps_its_end_and_may_be_ended(
    model: Checkpoint, raw: str, tail: str, text: str
) -> None:
    batch, step = settled(model, raw)
    (found,) = check_rows(model, replace(batch, around=("foo(", tail), round=1), step, [0])
    assert ("" if found.fill.refusal else found.fill.text) == text


def test_all_are_read_equally_far_into_the_suffix(
    model: Checkpoint, cache: PrefixCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Sequence[Sequence[int]], Sequence[int]]] = []

    def noted(network: Any, cache: Any, texts: Any, starts: Any) -> list[float]:
        asked.append((texts, starts))
        return [0.0] * len(texts)

    monkeypatch.setattr("dg_lsp.model.batch.neg_log_likelihoods", noted)
    for suffix, after in ((SUFFIX, SUFFIX_READ), ("\nx\n", 4)):
        row_neg_log_likelihoods(model, cache, *settled(model, "r", "r * r", suffix=suffix))
        texts, starts = asked.pop()
        ends = [*model.encode(suffix), model.eos][:after]
        assert [list(text) for text in texts] == [
            [*model.encode(HEAD + fill), *ends] for fill in ("r", "r * r")
        ]
        assert list(starts) == [len(HEAD)] * 2


def test_the_score_is_what_the_encoder_makes_of_fill_and_suffix(
    model: Checkpoint, cache: PrefixCache
) -> None:
    held = cache.tokens
    one = row_neg_log_likelihoods(model, cache, *settled(model, "r * r"))
    both = row_neg_log_likelihoods(model, cache, *settled(model, "r * r", "r"))
    assert one[0] == pytest.approx(both[0], rel=1e-4) and both[0] > both[1] > 0
    assert cache.tokens == held


@pytest.mark.parametrize("wrong", [-1, -(2**63), 10**9, 2**64])
def test_a_number_that_is_no_token_is_refused_with_a_reason(model: Checkpoint, wrong: int) -> None:
    ids = model.encode("r * r")
    assert decode(model, ids) == ("r * r", "")
    assert decode(model, (*ids, wrong)) == ("", "it holds a number that is no token")


@pytest.mark.parametrize(("deadline", "steps"), [(None, 5), (60.0, 5), (10.0, 2), (4.0, 1), (0.5, 1)])
def test_no_step_begins_that_would_leave_no_time_to_read_its_rows(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch, deadline: float | None, steps: int
) -> None:
    now = [0.0]
    monkeypatch.setattr("dg_lsp.model.clock.time", SimpleNamespace(perf_counter=lambda: now[0]))
    batch, step = settled(model, "r")

    def of_three_seconds() -> Iterator[Step]:
        for number in range(1, 6):
            now[0] += 3.0
            yield replace(step, number=number)

    clock = Clock(deadline)
    events = report_steps(model, batch, of_three_seconds(), clock)
    while True:
        try:
            next(events)
        except StopIteration as stop:
            last = stop.value
            break
    assert last.number == steps
    assert clock.stamp(Fill("", reason="steps")).reason == ("steps" if steps == 5 else "deadline")
