"""Mending: only the broken span is written again. A denoiser that knows the truth shows what layouts do to a text."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from benchmarks import run_to_end
from dg_lsp.guard.stitch import find_break
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model import repair as mending
from dg_lsp.model.batch import CheckedRow
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.candidates import why_refused
from dg_lsp.model.canvas import Canvas
from dg_lsp.model.checkpoint import Checkpoint, load_checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.plan import ROUNDS
from dg_lsp.model.repair import Origin, free, repair
from dg_lsp.model.step import Step
from dg_lsp.model.tokens import tokenise
from tests.model.oracle import write_with

PREFIX, SUFFIX = "def area(w, h):\n    ", "\n\n\ndef half(x):\n    return x / 2\n"
TRUTH = "size = w * h\n    for x in (w, h):\n        print(x, size)\n    return (size + 1, [w, h])"


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return load_checkpoint("embedded", "cpu")


def request(**more: Any) -> Infill:
    return replace(Infill(PREFIX, SUFFIX, "python", "function_body", indent="    "), **more)


class Writer:
    """Stands in for `denoise`: what belongs into the free slots of a row is `truth`, as far as the row can hold it.

    A row whose span has another length gets too little of it or too much. canvases: what was asked for.
    """

    def __init__(self, model: Checkpoint, truth: str, head: str = "    ") -> None:
        self.model, self.truth, self.head = model, truth, head
        self.canvases: list[Canvas] = []

    def __call__(self, network: Any, cache: Any, sampler: Any, schedule: Any) -> Iterator[Step]:
        canvas = sampler.canvas
        self.canvases.append(canvas)
        best, entropy = canvas.tokens.clone(), torch.zeros(canvas.tokens.shape)
        for row in range(canvas.rows):
            free = (~canvas.anchored[row]).nonzero().flatten()
            before = self.model.tokenizer.decode(canvas.tokens[row, : int(free[0])].tolist())
            written = before.removeprefix(self.head)
            known = self.truth[len(written) :] if self.truth.startswith(written) else ""
            ids = [*self.model.encode(known), *self.model.encode(" $" * len(free))]
            best[row, free] = torch.tensor(ids[: len(free)])
            right = self.truth in self.model.tokenizer.decode(best[row].tolist())
            entropy[row, free] = 0.0 if right else 1.0
        done = torch.ones(canvas.rows, dtype=torch.bool)
        yield Step(1, best, best, torch.ones_like(canvas.anchored), entropy, torch.empty(0), done)


def mended(
    model: Checkpoint, asked: Infill, text: str, before: str = "", clock: Clock | None = None
) -> tuple[list[Draft], Fill | None]:
    prefix, seam = tokenise(model, replace(asked, prefix=asked.prefix + before))
    cache = PrefixCache(model.network.config.text_config)
    list(extend_to(model.network, cache, prefix))
    written = CheckedRow(0, Fill(text, parses=False, steps=5, refusal="it is damaged"), whole=True)
    events = repair(model, cache, Origin(asked, (seam, 256), before, 0), [written], clock or Clock(None))
    return run_to_end(events)


BROKEN = {
    "a bracket too few": TRUTH.replace("size)", "size"),
    "a bracket too many": TRUTH.replace("size)", "size))"),
    "an opener too few": TRUTH.replace("(size", "size"),
    "the last bracket too few": TRUTH[:-1],
    "another token": TRUTH.replace("in (w", "= (w"),
    "a token too few": TRUTH.replace(" in ", " "),
    "two tokens swapped": TRUTH.replace("return (size", "(return size"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_damaged_becomes_the_truth_again(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    writer = Writer(model, TRUTH)
    write_with(monkeypatch, writer)
    drafts, fill = mended(model, request(effort="high"), BROKEN[name])
    assert fill is not None and fill.text == TRUTH
    assert fill.repairs == len(writer.canvases) <= 3
    assert fill.steps == 5 + len(writer.canvases)
    assert fill.parses and not fill.refusal
    assert "".join(run.text for run in drafts[-1].runs).startswith("    " + TRUTH), (
        "the last Draft shows the row taken"
    )


def test_few_tokens_of_many_are_freed_and_the_others_lie_on_the_canvas(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(model, "")
    write_with(monkeypatch, writer)
    text = BROKEN["a token too few"]
    mended(model, request(effort="high"), text)
    assert len(writer.canvases) == ROUNDS["high"]
    whole = [*model.encode("    "), *model.encode(text), *model.encode(SUFFIX)]
    counts = []
    for canvas in writer.canvases:
        length = int((~canvas.anchored[0]).sum())
        for tokens, anchored in zip(canvas.tokens.tolist(), canvas.anchored.tolist(), strict=True):
            start, stop = anchored.index(False), len(anchored) - anchored[::-1].index(False)
            after = whole[start + length :]
            assert tokens[:start] == whole[:start]
            assert tokens[stop : stop + len(after)] == after
            assert not any(anchored[start:stop])
        counts.append(int((~canvas.anchored[0]).sum()))
    assert counts[0] <= 3
    assert counts == sorted(counts), "without success more is freed"


def test_no_anchor_changes_whatever_is_written(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 1: outside the span a mended fill is the damaged one, byte for byte."""
    chance = random.Random(5)
    words = [
        token for word in (" x", "(", ")", ",", "\n", "    ", " =", ":", "]") for token in model.encode(word)
    ]

    def babble(network: Any, cache: Any, sampler: Any, schedule: Any) -> Iterator[Step]:
        canvas = sampler.canvas
        best, slots = canvas.tokens.clone(), canvas.free_slots
        best.view(-1)[slots] = torch.tensor(chance.choices(words, k=len(slots)))
        done = torch.ones(canvas.rows, dtype=torch.bool)
        yield Step(1, best, best, canvas.anchored, torch.rand(best.shape), torch.empty(0), done)

    spans: list[tuple[str, str]] = []
    real = mending.free

    def seen(*arguments: Any) -> Any:
        freed = real(*arguments)
        spans.append(freed.around)
        return freed

    write_with(monkeypatch, babble)
    monkeypatch.setattr("dg_lsp.model.repair.free", seen)
    good = 0
    for seed, text in enumerate([*BROKEN.values()] * 8):
        _, fill = mended(model, request(effort="high", seed=seed), text)
        if fill is not None:
            head, tail = spans[-1]
            assert fill.text.startswith(head) and fill.text.endswith(tail)
            assert len(fill.text) >= len(head) + len(tail)
            assert not why_refused(request(), fill.text)
            good += 1
    assert good >= 8, "else nothing was shown"


def test_the_same_seed_mends_alike_and_another_one_does_not(model: Checkpoint) -> None:
    def texts(seed: int) -> list[Any]:
        drafts, fill = mended(model, request(effort="low", seed=seed), text)
        return [*(d.runs for d in drafts), fill and (fill.text, fill.score, fill.repairs, fill.steps)]

    text = "a = 1 1\n    return a"
    assert texts(3) == texts(3)
    assert texts(3) != texts(4)


def test_each_round_draws_other_noise(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def noted(network: Any, cache: Any, sampler: Any, schedule: Any) -> Iterator[Step]:
        starts.append(
            sampler.initialize_canvas(sampler.canvas.rows, torch.device("cpu"))[~sampler.canvas.anchored]
        )
        yield from Writer(model, "")(network, cache, sampler, schedule)

    write_with(monkeypatch, noted)
    monkeypatch.setattr("dg_lsp.model.repair.WIDTHS", (3, 3, 3, 3))
    mended(model, request(effort="high"), "a = 1\n    b = 2 2\n    return a")
    assert len(starts) == 4
    assert len({tuple(s[:3].tolist()) for s in starts}) == 4


@pytest.mark.parametrize(("effort", "rounds"), [("low", 1), ("normal", 2), ("high", 4)])
def test_the_effort_says_how_often_it_is_tried(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch, effort: Any, rounds: int
) -> None:
    writer = Writer(model, "")
    write_with(monkeypatch, writer)
    _, fill = mended(model, request(effort=effort), BROKEN["a token too few"])
    assert fill is None
    assert len(writer.canvases) == rounds


def test_after_the_deadline_nothing_is_begun(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(model, TRUTH)
    write_with(monkeypatch, writer)
    assert mended(model, request(), BROKEN["another token"], clock=Clock(0.0)) == ([], None)
    assert writer.canvases == []


def test_a_second_break_is_mended_after_the_first(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(model, TRUTH)
    write_with(monkeypatch, writer)
    text = TRUTH.replace("in (w", "= (w").replace("[w, h]", "[w h]")
    _, fill = mended(model, request(effort="high"), text)
    assert fill is not None and fill.text == TRUTH
    assert fill.repairs >= 2


def test_what_would_cut_off_its_own_end_is_refused(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span that leaves the body ends the fill: what stood after it would be lost, an anchor."""
    text = "a = 1 1\n    return a"
    writer = Writer(model, "a = 1\nb = 2")
    write_with(monkeypatch, writer)
    monkeypatch.setattr("dg_lsp.model.repair.CHANGES", (4,))
    _, fill = mended(model, request(effort="low"), text)
    assert writer.canvases
    assert fill is None


def test_what_earlier_canvases_wrote_stays(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    before = "one = 1\n    two = (2,\n        3)\n    "
    writer = Writer(model, TRUTH)
    write_with(monkeypatch, writer)
    _, fill = mended(model, request(effort="high"), before + BROKEN["another token"], before)
    assert fill is not None and fill.text == before + TRUTH
    # The first of two breaks is out of reach.
    broken = before.replace("2,", "2")
    _, fill = mended(model, request(effort="high"), broken + TRUTH, broken)
    assert fill is None
    # So is what does not begin with what lies before the canvas.
    writer.canvases.clear()
    assert mended(model, request(), BROKEN["another token"], before) == ([], None)
    assert writer.canvases == []


def test_characters_of_several_tokens_are_freed_whole(model: Checkpoint) -> None:
    text = "a = '🙂🙂' 🙂 é 中 ('ü'"
    damage = find_break(request(), text)
    assert damage is not None
    for width in range(4):
        freed = free(model, text, damage, width)
        head, tail = freed.around
        inside = text[len(head) : len(text) - len(tail)]
        assert head + inside + tail == text
        assert freed.length == len(model.encode(text)) - len(freed.head) - len(freed.tail) > 0
        assert model.tokenizer.decode(list(freed.head)) == head
        assert model.tokenizer.decode(list(freed.tail)) == tail


def broken_first(model: Checkpoint, writer: Writer, text: str) -> Any:
    """A denoiser that writes `text` where the gap is free as a whole, and else what `writer` does."""
    first = Writer(model, text)

    def denoiser(network: Any, cache: Any, sampler: Any, schedule: Any) -> Iterator[Step]:
        head = len(model.encode("    "))
        whole = bool((~sampler.canvas.anchored[:, head : head + 8]).all())
        return (first if whole else writer)(network, cache, sampler, schedule)

    return denoiser


def run(model: Checkpoint, asked: Infill) -> Fill:
    *_, fill = infill(model, PrefixCache(model.network.config.text_config), asked)
    assert isinstance(fill, Fill)
    return fill


def test_a_request_is_answered_by_a_mended_fill_before_other_lengths_are_tried(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(model, TRUTH)
    text = TRUTH.replace("in (w", "= (w")
    write_with(monkeypatch, broken_first(model, writer, text))
    fill = run(model, request(like=text))
    assert fill.text == TRUTH
    assert fill.repairs == len(writer.canvases) == 1
    assert fill.parses and not fill.refusal and fill.steps == 2


def test_what_cannot_be_mended_is_shortened_and_else_refused(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TRUTH.replace("[w, h]", "[w h]")
    write_with(monkeypatch, broken_first(model, Writer(model, ""), text))
    fill = run(model, request(like=text))
    assert fill.text == TRUTH[: TRUTH.index("\n    return")]
    assert fill.repairs == 0 and fill.parses and fill.shortened and not fill.refusal
    text = TRUTH.replace("size = w * h", "size = (w h")
    write_with(monkeypatch, broken_first(model, Writer(model, ""), text))
    fill = run(model, request(like=text))
    assert fill.text == "" and not fill.shortened and "syntax error" in fill.refusal


def test_closing_while_it_is_mended_stops_at_once(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(model, "")
    write_with(monkeypatch, broken_first(model, writer, TRUTH.replace("in (w", "= (w")))
    asked = request(like=TRUTH.replace("in (w", "= (w"))
    events = infill(model, PrefixCache(model.network.config.text_config), asked)
    while not writer.canvases:
        next(events)
    events.close()
    assert len(writer.canvases) == 1


def test_a_deadline_ends_it_between_two_steps(model: Checkpoint) -> None:
    class Late(Clock):
        """Over after a few questions."""

        asked = 0

        def has_room(self, seconds: float) -> bool:
            self.asked += 1
            return self.asked <= 3

    drafts, fill = mended(model, request(effort="high"), "a = 1 1\n    return a", clock=Late(1.0))
    assert len(drafts) <= 4
    assert fill is None or fill.repairs == 1
