"""Several gaps on one canvas."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from benchmarks import run_to_end
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import FREE, Canvas, LayoutError, Seam
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.denoise import denoise
from dg_lsp.model.fill import WAYS
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.length import ScoredLength
from dg_lsp.model.sources import several
from dg_lsp.model.sources.several import Gaps, fill_together
from dg_lsp.model.step import Step
from tests.model.oracle import task_of, write_with

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


REQUEST = Infill(TEXTS[0], TEXTS[-1], "python", "rest_of_line", effort="low", between=TEXTS[1:-1])


def gaps_of(model: Checkpoint, **more: Any) -> Gaps:
    lengths = tuple(len(model.encode(text)) for text in TRUTHS)
    return replace(Gaps(REQUEST, lengths), **more)


def run(model: Checkpoint, gaps: Gaps) -> tuple[list[Draft], tuple[Fill, ...]]:
    events = fill_together(model, PrefixCache(model.network.config.text_config), gaps, Clock(None))
    return run_to_end(events)


@pytest.fixture
def laid(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Canvas, list[Step]]]:
    """The canvases that are denoised, with their steps."""
    seen: list[tuple[Canvas, list[Step]]] = []

    def noted(network: Any, cache: Any, sampler: Any, schedule: Any) -> Iterator[Step]:
        seen.append((sampler.canvas, []))
        for step in denoise(network, cache, sampler, schedule):
            seen[-1][1].append(step)
            yield step

    write_with(monkeypatch, noted)
    return seen


def test_all_anchors_of_all_texts_lie_on_the_canvas_and_stay(
    model: Checkpoint, laid: list[tuple[Canvas, list[Step]]]
) -> None:
    _, fills = run(model, gaps_of(model))
    ((canvas, steps),) = laid
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
        canvas, best = sampler.canvas, sampler.canvas.tokens.clone()
        best.view(-1)[canvas.free_slots] = truths.repeat(canvas.rows)
        done = torch.ones(canvas.rows, dtype=torch.bool)
        yield Step(1, best, best, ~canvas.anchored, torch.zeros(canvas.tokens.shape), torch.empty(0), done)

    write_with(monkeypatch, truthful)
    _, fills = run(model, gaps_of(model))
    assert [fill.text for fill in fills] == list(TRUTHS)
    assert all(fill.parses for fill in fills)


def test_a_gap_is_judged_with_placeholders_in_the_others(model: Checkpoint) -> None:
    request = gaps_of(model).alone(1)
    assert request.prefix == "def area(w, h):\n    size = _g_\n    print("
    assert request.suffix == ")\n    return _g_" + TEXTS[-1]


def test_the_lengths_are_searched_one_after_another(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch, laid: list[tuple[Canvas, list[Step]]]
) -> None:
    asked: list[Seam] = []

    def searched(network: Any, cache: Any, layout: tuple[Seam, int], *_: Any) -> Iterator[Any]:
        asked.append(layout[0])
        yield (ScoredLength(len(asked) + 1, 0.0),)

    monkeypatch.setattr(several, "search_length", searched)
    run(model, gaps_of(model, lengths=()))
    one, two, three = (model.encode(text) for text in (TEXTS[0].split("\n")[-1], *TEXTS[1:-1]))
    assert [seam.head for seam in asked] == [
        one,
        (*one, FREE, FREE, *two),
        (*one, FREE, FREE, *two, FREE, FREE, FREE, *three),
    ]
    assert [seam.suffix for seam in asked] == [two, three, model.encode(TEXTS[-1])]
    assert asked[0].filler == FREE
    ((canvas, _),) = laid
    assert int((~canvas.anchored[0]).sum()) == 2 + 3 + 4


def test_gaps_that_lie_too_far_apart_are_refused_with_the_mend(model: Checkpoint) -> None:
    with pytest.raises(LayoutError, match="one by one"):
        run(model, gaps_of(model, request=replace(REQUEST, between=("\n    x = 1" * 100, "\n"))))


def whole(model: Checkpoint, request: Infill) -> Fill:
    *_, last = infill(model, PrefixCache(model.network.config.text_config), request)
    assert isinstance(last, Fill)
    return last


def joined(model: Checkpoint, alone: Callable[[Infill], Iterator[Draft | Fill]], request: Infill) -> Fill:
    """The Fill of all gaps where `alone` fills those that got nothing on the canvas."""
    _, (found,) = run_to_end(several.several(replace(task_of(model, request), fill=alone)))
    assert found.fill is not None
    return found.fill


def test_a_gap_that_got_nothing_is_filled_alone_among_the_fills_of_the_others(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Infill] = []

    def alone(request: Infill) -> Iterator[Draft | Fill]:
        asked.append(request)
        yield Fill("size", steps=3)

    together = (
        Fill("w * h", 0.5, 2),
        Fill("(", 0.1, 2, refusal="it would add an error"),
        Fill("size + 1", 0.2, 2),
    )
    monkeypatch.setattr(several, "fill_together", lambda *_: iter_of(together))
    fill = joined(model, alone, REQUEST)
    assert (fill.text, fill.further, fill.refusal) == ("w * h", ("size", "size + 1"), "")
    assert (fill.score, fill.steps) == (0.5, 7)
    (request,) = asked
    assert request.prefix == "def area(w, h):\n    size = w * h\n    print("
    assert request.suffix == ")\n    return size + 1" + TEXTS[-1]
    assert request.between == ()


def iter_of(result: Any) -> Any:
    """A generator that yields nothing and returns `result`."""
    return result
    yield


def test_gaps_that_no_canvas_holds_are_filled_one_by_one(model: Checkpoint) -> None:
    answers = iter(("w", "size", ""))
    request = replace(REQUEST, between=("\n    x = 1" * 100, "\n    return "))
    fill = joined(model, lambda _: iter([Fill(t := next(answers), refusal="" if t else "no luck")]), request)
    assert (fill.text, fill.further, fill.refusal) == ("w", ("size", ""), "no luck")


def test_the_embedded_checkpoint_fills_several_gaps(model: Checkpoint) -> None:
    fill = whole(model, REQUEST)
    assert len(fill.further) == 2
    texts = [text or "_g_" for text in (fill.text, *fill.further)]
    ast.parse("".join(a + b for a, b in zip(TEXTS, [*texts, ""], strict=True)))


def test_a_network_that_cannot_denoise_fills_one_gap_after_another(model: Checkpoint) -> None:
    seen, task = list[str](), task_of(replace(model, denoises=False), REQUEST)

    def noted(request: Infill) -> Iterator[Draft | Fill]:
        seen.append(request.prefix)
        return task.fill(request)

    assert WAYS["gaps", "reads"].sources == (several.one_by_one,)
    _, (found,) = run_to_end(several.one_by_one(replace(task, fill=noted)))
    fill = found.fill
    assert fill is not None and not fill.refusal and fill.source == "drafted"
    texts = (fill.text, *fill.further)
    assert all(texts) and len(seen) == 3
    assert seen[2] == "".join((TEXTS[0], texts[0], TEXTS[1], texts[1], TEXTS[2]))
