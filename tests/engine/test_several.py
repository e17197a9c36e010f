"""Several gaps on one canvas."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from dg_lsp.engine import settle, several
from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.canvas import FREE, Canvas, LayoutError, Seam
from dg_lsp.engine.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.engine.denoise import Step
from dg_lsp.engine.length import Scored
from dg_lsp.engine.several import Gaps, infill_several
from dg_lsp.text.messages import Fill, Infill

TEXTS = (
    "def area(w, h):\n    size = ",
    "\n    print(",
    ")\n    return ",
    "\n\n\ndef half(x):\n    return x / 2\n",
)
TRUTHS = ("w * h", "size", "size + 1")


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return load_checkpoint("embedded", "cpu")


def gaps_of(model: Checkpoint, **more: Any) -> Gaps:
    request = Infill(TEXTS[0], TEXTS[-1], "python", "rest_of_line", effort="low")
    lengths = tuple(len(model.encode(text)) for text in TRUTHS)
    return replace(Gaps(request, TEXTS[1:-1], lengths), **more)


def run(model: Checkpoint, gaps: Gaps) -> tuple[list[Step], tuple[Fill, ...]]:
    events = infill_several(model, PrefixCache(model.network.config.text_config), gaps)
    steps: list[Step] = []
    while True:
        try:
            steps += [step for step in [next(events)] if step]
        except StopIteration as end:
            return steps, end.value


def test_all_anchors_of_all_texts_lie_on_the_canvas_and_stay(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid: list[Canvas] = []
    denoised = settle.denoise

    def seen(network: Any, cache: Any, sampler: Any, schedule: Any) -> Any:
        laid.append(sampler.canvas)
        return denoised(network, cache, sampler, schedule)

    monkeypatch.setattr(settle, "denoise", seen)
    steps, fills = run(model, gaps_of(model))
    (canvas,) = laid
    head = TEXTS[0].split("\n")[-1]
    anchors = [*model.encode(head), *model.encode(TEXTS[1]), *model.encode(TEXTS[2]), *model.encode(TEXTS[3])]
    assert canvas.tokens[0][canvas.anchored[0]].tolist()[: len(anchors)] == anchors
    assert int((~canvas.anchored[0]).sum()) == sum(len(model.encode(text)) for text in TRUTHS)
    for step in steps:
        assert torch.equal(step.best[canvas.anchored], canvas.tokens[canvas.anchored])
    assert len(fills) == 3


def test_each_gap_gets_its_own_text(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    truths = torch.tensor([token for text in TRUTHS for token in model.encode(text)])

    def truthful(network: Any, cache: Any, sampler: Any, schedule: Any) -> Iterator[Step]:
        canvas = sampler.canvas
        best = canvas.tokens.clone()
        best.view(-1)[canvas.free_slots()] = truths.repeat(canvas.rows)
        done = torch.ones(canvas.rows, dtype=torch.bool)
        yield Step(1, best, best, done, torch.zeros(canvas.tokens.shape), torch.empty(0), done)

    monkeypatch.setattr(settle, "denoise", truthful)
    _, fills = run(model, gaps_of(model))
    assert [fill.text for fill in fills] == list(TRUTHS)
    assert all(fill.parses for fill in fills)


def test_a_gap_is_judged_with_placeholders_in_the_others(model: Checkpoint) -> None:
    request = gaps_of(model).alone(1)
    assert request.prefix == "def area(w, h):\n    size = _g_\n    print("
    assert request.suffix == ")\n    return _g_" + TEXTS[-1]


def test_the_lengths_are_searched_one_after_another(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Seam] = []

    def searched(network: Any, cache: Any, layout: tuple[Seam, int], *_: Any) -> Iterator[Any]:
        asked.append(layout[0])
        yield (Scored(len(asked) + 1, 0.0),)

    monkeypatch.setattr(several, "search_length", searched)
    steps, _ = run(model, gaps_of(model, lengths=()))
    one, two, three = (model.encode(text) for text in (TEXTS[0].split("\n")[-1], *TEXTS[1:-1]))
    assert [seam.head for seam in asked] == [
        one,
        (*one, FREE, FREE, *two),
        (*one, FREE, FREE, *two, FREE, FREE, FREE, *three),
    ]
    assert [seam.suffix for seam in asked] == [two, three, model.encode(TEXTS[-1])]
    assert asked[0].filler == FREE
    assert int((~torch.isclose(steps[0].entropy[0], torch.zeros(1))).sum()) == 2 + 3 + 4


def test_gaps_that_lie_too_far_apart_are_refused_with_the_mend(model: Checkpoint) -> None:
    with pytest.raises(LayoutError, match="one by one"):
        run(model, gaps_of(model, between=("\n    x = 1" * 100, "\n")))
