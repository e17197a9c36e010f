"""From text to text: what is encoded, what lies on the canvas, what is answered; on a random checkpoint of bytes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from benchmarks import run_to_end
from dg_lsp.guard.stitch import Written
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.batch import CheckedRow, decode
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import FREE, Seam
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.length import ScoredLength, Search
from dg_lsp.model.plan import ANCHORS, ROUNDS
from dg_lsp.model.sampler import AnchoredSampler
from dg_lsp.model.sources.denoised import denoised
from dg_lsp.model.tokens import tokenise
from tests.model.oracle import task_of

PREFIX = "def area(r):\n    return "
SUFFIX = "\n\n\ndef half(x):\n    return x / 2\n"


def request(prefix: str = PREFIX, suffix: str = SUFFIX, **more: Any) -> Infill:
    return Infill(prefix, suffix, "python", more.pop("kind", "rest_of_line"), **more)


def run(model: Checkpoint, asked: Infill, cache: PrefixCache | None = None) -> list[Draft | Fill]:
    return list(infill(model, cache or PrefixCache(model.network.config.text_config), asked))


def test_the_prefix_is_cut_at_its_last_line_start_and_the_head_goes_onto_the_canvas(
    model: Checkpoint,
) -> None:
    tokens, seam = tokenise(model, request())
    assert tokens == (model.bos, *model.encode("def area(r):\n"))
    assert seam.head == model.encode("    return ")
    assert seam.suffix == model.encode(SUFFIX)
    assert seam.filler == model.eos


def test_typing_on_a_line_leaves_the_encoded_tokens_alone(model: Checkpoint) -> None:
    first, _ = tokenise(model, request(PREFIX))
    second, _ = tokenise(model, request(PREFIX + "2 * r"))
    assert first == second


def test_a_long_prefix_loses_its_beginning_in_hops(model: Checkpoint) -> None:
    cuts = set()
    for lines in range(100, 160):
        tokens, _ = tokenise(model, request("x = 1\n" * lines))
        assert len(tokens) <= model.max_prefix
        cuts.add(6 * lines + 1 - len(tokens))
    assert len(cuts) <= 3, "the cut moves rarely"


def test_a_head_longer_than_the_canvas_leaves_room_for_the_gap(model: Checkpoint) -> None:
    tokens, seam = tokenise(model, request("x = [" + "1, " * 400))
    assert len(seam.head) == 16
    assert tokens[-1] == model.encode("1, " * 400)[-17]


@pytest.mark.parametrize("seed", [0, 23])
def test_the_answer_is_drafts_and_then_one_fill(
    model: Checkpoint, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is mended has anchors of its own, and which text of a random network needs it depends on the machine.
    monkeypatch.setattr("dg_lsp.model.repair.ROUNDS", dict.fromkeys(ROUNDS, 0))
    events = run(model, request(seed=seed))
    assert isinstance(events[-1], Fill)
    assert all(isinstance(e, Draft) for e in events[:-1])
    shown = [e for e in events if isinstance(e, Draft) and e.runs]
    assert shown
    for draft in shown:
        assert draft.runs[0].anchored and draft.runs[0].text == "    return "
        assert SUFFIX.startswith("".join(r.text for r in draft.runs if r.anchored)[len("    return ") :][:20])
        assert all(r.entropy == 0 for r in draft.runs if r.anchored)


def test_an_empty_answer_says_why(model: Checkpoint) -> None:
    fill = run(model, request(kind="function_body", prefix="def f():\n    ", suffix="\n"))[-1]
    assert isinstance(fill, Fill)
    assert fill.text or fill.refusal, "random weights seldom parse, but never silently"


def test_the_same_request_gives_the_same_fill_also_from_a_warm_cache(model: Checkpoint) -> None:
    asked = request("# a comment to make it longer than one chunk\n" * 8 + PREFIX, seed=3, effort="low")
    cache = PrefixCache(model.network.config.text_config)

    def texts(events: list[Draft | Fill]) -> list[Any]:
        return [e.runs if isinstance(e, Draft) else (e.text, e.score, e.refusal) for e in events]

    cold = texts(run(model, asked, cache))
    warm = texts(run(model, asked, cache))
    elsewhere = texts(run(model, asked))
    run(model, request("something = else\n" * 30), cache)
    again = texts(run(model, asked, cache))
    assert cold[-1] == warm[-1] == elsewhere[-1] == again[-1]
    assert [c for c in cold if c] == [w for w in warm if w]
    assert texts(run(model, request(seed=4))) != texts(run(model, request(seed=5)))


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("", SUFFIX),
        (PREFIX, ""),
        ("", ""),
        ("\n", "\n"),
        ("x" * 5000, "y" * 5000),
        ("é🙂\r\n", "\r\n\x0c\u2028"),
    ],
)
@pytest.mark.parametrize("kind", ["rest_of_line", "function_body"])
def test_any_text_is_answered(model: Checkpoint, prefix: str, suffix: str, kind: str) -> None:
    fill = run(model, request(prefix, suffix, kind=kind, effort="low"))[-1]
    assert isinstance(fill, Fill)
    assert bool(fill.text) != bool(fill.refusal)


def test_a_deadline_ends_the_work(model: Checkpoint) -> None:
    asked = request(kind="function_body")
    hurried, whole = (run(model, replace(asked, deadline=d)) for d in (0.05, None))
    fill = hurried[-1]
    assert isinstance(fill, Fill) and isinstance(whole[-1], Fill)
    # An event is a step, and a slow machine makes fewer of them in time.
    assert len(hurried) < len(whole) / 2
    assert fill.reason == "deadline" or fill.refusal


def test_closing_at_any_event_stops_at_once(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = model.network.lm_head.forward

    def counted(hidden: Any) -> Any:
        nonlocal calls
        calls += 1
        return real(hidden)

    monkeypatch.setattr(model.network.lm_head, "forward", counted)
    for wait in (1, 2, 3, 6):
        calls = 0
        events = infill(model, PrefixCache(model.network.config.text_config), request())
        for _ in range(wait):
            next(events)
        before = calls
        events.close()
        assert list(events) == []
        assert calls == before


def test_special_tokens_and_unfinished_characters_are_refused(model: Checkpoint) -> None:
    assert decode(model, model.encode("ab\n")) == ("ab\n", "")
    assert "special" in decode(model, [*model.encode("ab"), model.eos])[1]
    assert "unfinished" in decode(model, model.encode("🙂")[:2])[1]


def test_the_oracle_gives_the_length(model: Checkpoint) -> None:
    events = run(model, request(like="3.14 * r"))
    shown = next(e for e in events if isinstance(e, Draft) and e.runs)
    rest = "".join(r.text for r in shown.runs if r.anchored)
    assert rest.startswith("    return " + SUFFIX[:20])
    assert isinstance(events[-1], Fill)
    assert events[-1].searched == 0


def test_that_the_gap_goes_on_is_an_answer_until_the_fill_is_long_enough(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, ...]] = []

    def searched(_: Any, __: Any, layout: tuple[Seam, int], search: Search, ___: int) -> Iterator[Any]:
        asked.append(search.lengths)
        yield tuple(ScoredLength(n, -float(n)) for n in sorted(search.lengths, reverse=True))

    monkeypatch.setattr("dg_lsp.model.sources.denoised.search_length", searched)
    more = "x = 1\n    " * 12
    monkeypatch.setattr(
        "dg_lsp.model.sources.denoised.read_full_canvas", lambda _, batch, __: Written(batch.before + more)
    )
    run(model, request(kind="function_body", prefix="def f():\n    ", effort="low"))
    whole = [max(lengths) > 128 - ANCHORS for lengths in asked]
    # Of at most 256 tokens a canvas of 124 free slots is offered while no more than 132 stand written.
    assert whole == [True, True, False]


def test_a_line_never_goes_on_beyond_its_canvas(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    def searched(_: Any, __: Any, layout: tuple[Seam, int], search: Search, ___: int) -> Iterator[Any]:
        asked.append(search.lengths)
        yield tuple(ScoredLength(n, float(n)) for n in search.lengths)

    monkeypatch.setattr("dg_lsp.model.sources.denoised.search_length", searched)
    run(model, request())
    assert max(asked[0]) <= 20


def test_free_slots_start_from_the_given_text_and_a_share_of_it_is_noise(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def noted(*given: Any) -> AnchoredSampler:
        seen.append(given)
        return AnchoredSampler(*given)

    monkeypatch.setattr("dg_lsp.model.batch.AnchoredSampler", noted)
    text = "r * r + 1"
    run(model, request(kind="span", start=text, noised=0.0))
    canvas, start = seen[0][0], seen[0][3]
    free = ~canvas.anchored[0]
    assert start[0][free].tolist() == list(model.encode(text)), "as many free slots as the text has tokens"
    seen.clear()
    run(model, request(kind="span", start=text, noised=1.0))
    assert seen[0][3].max() == FREE
    seen.clear()
    run(model, request(effort="low"))
    assert seen[0][3] is None


def test_after_the_best_of_the_first_batch_the_others_stand_by_their_likelihood(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = iter([{"r": 5.0}, {"2 * r": 9.0, "r * r": 1.0}])

    def ranked(*_: Any) -> list[CheckedRow]:
        found = next(batches).items()
        return [CheckedRow(0, Fill(text, score, parses=True), whole=True) for text, score in found]

    monkeypatch.setattr("dg_lsp.model.sources.denoised.rank_rows", ranked)
    cache = PrefixCache(model.network.config.text_config)
    _, rows = run_to_end(denoised(task_of(model, request(alternatives=3), cache)))
    assert [row.fill.text for row in rows if row.fill] == ["r", "r * r", "2 * r"]
