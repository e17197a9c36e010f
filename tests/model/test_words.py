"""Half a word: which word it becomes, and what follows it; on a random checkpoint of bytes."""

import math
from typing import Any

import pytest

from benchmarks import run_to_end
from dg_lsp.gaps.words import is_part
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.likelihood import neg_log_likelihoods
from dg_lsp.model.sources import words
from dg_lsp.model.sources.words import rank_endings
from dg_lsp.model.tokens import tokenise
from tests.model.oracle import task_of

PREFIX = "def area(first, field):\n    return fi"
SUFFIX = "\n\n\ndef half(x):\n    return x / 2\n"


def request(*endings: str, prefix: str = PREFIX, **more: Any) -> Infill:
    return Infill(prefix, SUFFIX, "python", "rest_of_line", endings=endings, **more)


def fresh(model: Checkpoint) -> PrefixCache:
    return PrefixCache(model.network.config.text_config)


def run(model: Checkpoint, asked: Infill) -> Fill:
    *drafts, fill = infill(model, fresh(model), asked)
    assert all(isinstance(d, Draft) for d in drafts) and isinstance(fill, Fill)
    return fill


def ranked(model: Checkpoint, asked: Infill) -> list[str]:
    ranking = rank_endings(task_of(model, asked))
    return [ending.text for ending in run_to_end(ranking)[1]]


def after(
    monkeypatch: pytest.MonkeyPatch, text: str, refusal: str = "", chance: float | None = None
) -> list[Infill]:
    """Let every line after a word be filled with `text`; the requests for that."""
    asked: list[Infill] = []

    def infill(_model: Any, _cache: Any, request: Infill) -> Any:
        asked.append(request)
        yield Fill(text, refusal=refusal, chance=chance)

    monkeypatch.setattr("dg_lsp.model.fill.fill", infill)
    return asked


def test_a_fill_is_an_ending_and_what_follows_the_word(model: Checkpoint) -> None:
    endings = ("rst", "eld", "")
    fill = run(model, request(*endings, effort="low", alternatives=2))
    for text in (fill.text, *fill.others):
        rest = next(text.removeprefix(e) for e in endings if text.startswith(e))
        assert text and not is_part(rest.encode())


def test_the_likelihood_of_a_word_is_that_of_its_tokens_and_of_its_end(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "NEXT", model.vocabulary)
    lines, seam = tokenise(model, request())
    cache = fresh(model)
    for _ in extend_to(model.network, cache, (*lines, *seam.head)):
        pass
    rows = [model.encode(text) for text in ("rst", "eld_name", "le")]
    going_on = [t for t in range(model.vocabulary) if is_part(model.tokenizer.decode([t]).encode())]
    expected = []
    for row in rows:
        texts = [row, *((*row, token) for token in going_on)]
        word, *longer = neg_log_likelihoods(model.network, cache, texts, [0] * len(texts))
        expected.append(word - math.log(1 - sum(math.exp(word - more) for more in longer)))
    assert words.word_neg_log_likelihoods(model, cache, rows) == pytest.approx(expected, abs=1e-3)


def test_the_likeliest_word_comes_first(model: Checkpoint) -> None:
    asked = request("rst", "eld", "le_name", "x")
    lines, seam = tokenise(model, asked)
    cache = fresh(model)
    for _ in extend_to(model.network, cache, (*lines, *seam.head)):
        pass
    scores = words.word_neg_log_likelihoods(model, cache, [model.encode(e) for e in asked.endings or ()])
    assert ranked(model, asked) == [e for _, e in sorted(zip(scores, asked.endings or (), strict=True))]


def test_the_line_is_filled_after_the_likeliest_word(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = after(monkeypatch, "")
    first, second, _ = ranked(model, request("rst", "eld", "le"))
    fill = run(model, request("rst", "eld", "le", alternatives=2))
    assert (fill.text, fill.others) == (first, (second,))
    assert [r.prefix for r in asked] == [PREFIX + first, PREFIX + second]
    assert all(r.endings is None and r.alternatives == 1 for r in asked)


def test_a_fill_that_goes_on_with_the_word_is_dropped(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    after(monkeypatch, "_name(x)")
    assert run(model, request("rst")).text == "rst"
    fill = run(model, request(""))
    assert fill.text == "" and "ends the word" in fill.refusal


def test_the_likelier_of_the_word_alone_and_with_the_rest_is_taken(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    after(monkeypatch, " + 1")
    for chosen, scores in (("rst", [1.0, 2.0]), ("rst + 1", [2.0, 1.0])):
        told = [[score] for score in scores]
        monkeypatch.setattr(words, "neg_log_likelihoods_of_tokens", lambda *_, told=told: told)
        assert run(model, request("rst")).text == chosen
    # After a word that is complete the rest is all there is to offer.
    monkeypatch.setattr(words, "neg_log_likelihoods_of_tokens", lambda *_: [[1.0], [2.0]])
    assert run(model, request("")).text == " + 1"


def test_the_chances_of_the_words_are_in_their_order_and_leave_room_for_a_word_that_is_not_in_sight() -> None:
    chances = words.posterior([3.0, 1.0, 9.0])
    assert sum(chances) == pytest.approx(words.KNOWN) and chances[1] > chances[0] > chances[2]
    assert chances[1] / chances[0] == pytest.approx(math.exp(2 * words.SHARPNESS))
    # Scores that no exponential can hold make no difference.
    assert words.posterior([5000.0, 9000.0]) == pytest.approx([words.KNOWN, 0.0])


def test_the_chance_of_a_fill_is_that_of_the_word_and_of_what_follows_it(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "neg_log_likelihoods_of_tokens", lambda *_: [[2.0], [1.0]])
    after(monkeypatch, " + 1", chance=0.5)
    fill = run(model, request("rst"))
    assert fill.text == "rst + 1" and fill.chance == pytest.approx(words.KNOWN / 2)
    # Nobody knows how sure the rest is.
    after(monkeypatch, " + 1")
    assert run(model, request("rst")).chance == pytest.approx(words.KNOWN)


def test_an_unsure_rest_does_not_spoil_a_sure_word(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    after(monkeypatch, " + 1", chance=words.LEAST / 2)
    fill = run(model, request("rst"))
    assert (fill.text, fill.chance, fill.source) == ("rst", words.KNOWN, "retrieved")
    # After a word that is complete it is all there is to offer, at its own chance.
    fill = run(model, request(""))
    assert fill.text == " + 1" and fill.chance == pytest.approx(words.KNOWN * words.LEAST / 2)


def test_a_word_without_a_rest_that_can_be_shown_stands_alone(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    after(monkeypatch, "", "it would add a syntax error")
    fill = run(model, request("rst"))
    assert (fill.text, fill.refusal) == ("rst", "")
    fill = run(model, request(""))
    assert (fill.text, fill.refusal) == ("", "it would add a syntax error")


def test_where_the_likeliest_word_cannot_be_shown_the_next_one_is_tried(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = ranked(model, request("rst", "eld", "le"))
    asked = after(monkeypatch, "", "it would add a syntax error")
    monkeypatch.setattr(words, "why_refused", lambda _, text: "a syntax error" if text == first else "")
    fill = run(model, request("rst", "eld", "le"))
    assert (fill.text, fill.refusal, fill.others) == (second, "", ())
    assert len(asked) == 2


def test_a_long_line_is_not_read_again_with_each_ending(model: Checkpoint) -> None:
    long = request("rst", "eld", prefix="x = " + "1 + " * 500 + "fi")
    assert sorted(ranked(model, long)) == ["eld", "rst"]
