"""Drafts by the encoder: those that a search over everything would find; a tree reads like whole texts."""

import random
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Never

import pytest
import torch

from benchmarks import run_to_end
from dg_lsp.guard.stitch import Written
from dg_lsp.messages import Draft, Fill, Infill, Kind
from dg_lsp.model.beam import Lookup, Row
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.candidates import none_of
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.fill import fill as infill
from dg_lsp.model.networks.decoder import capped_logits
from dg_lsp.model.plan import Writing, plan_for
from dg_lsp.model.sources import bodies as body_source
from dg_lsp.model.sources import lines as line_source
from dg_lsp.model.tokens import tokenise
from dg_lsp.model.tree import Tree
from tests.model.oracle import task_of
from tests.model.tiny import VOCABULARY, WINDOW, encoded, tiny_network

PREFIX, SUFFIX = "def area(r):\n    return ", "\n\n\ndef half(x):\n    return x / 2\n"


@pytest.mark.parametrize("length", [3, WINDOW - 2, 3 * WINDOW])
def test_texts_that_are_read_together_have_the_states_of_whole_texts(length: int) -> None:
    network, rng = tiny_network(3, torch.float64), random.Random(length)

    def drawn(count: int) -> list[int]:
        return [rng.randrange(VOCABULARY) for _ in range(count)]

    prefix, head, tails = drawn(length), drawn(2), [drawn(WINDOW + 3) for _ in range(3)]
    tree = Tree(network, encoded(network, prefix), length - 1)
    encoder = network.model.encoder.language_model
    with torch.inference_mode():
        tree.read([[prefix[-1], *head, 5]])
        tree.shorten([1])
        tree.take([0, 0, 0])
        tree.read([tails[0][:1], [], tails[2][:2]])
        states = tree.read([tails[0][1:], tails[1], tails[2][2:]])
        # The texts change places, as in a search.
        tree.take([2, 0])
        found = tree.read([[1], [2]])
        for row, tail, more in ((0, tails[2], 1), (1, tails[0], 2)):
            whole = encoder(torch.tensor([[*prefix, *head, *tail, more]])).last_hidden_state[0, -1]
            torch.testing.assert_close(found[row][-1], whole, rtol=1e-6, atol=1e-8)
        whole = encoder(torch.tensor([[*prefix, *head, *tails[1]]])).last_hidden_state[0, -len(tails[1]) :]
        torch.testing.assert_close(states[1], whole, rtol=1e-6, atol=1e-8)


def test_tokens_that_no_text_goes_on_from_are_dropped_in_time() -> None:
    network, rng = tiny_network(3, torch.float64), random.Random(0)
    prefix = [rng.randrange(VOCABULARY) for _ in range(WINDOW + 5)]
    tree = Tree(network, encoded(network, prefix), len(prefix) - 1)
    texts, most, encoder = [[prefix[-1]]] * 6, 0, network.model.encoder.language_model
    with torch.inference_mode():
        tree.read([texts[0]])
        for _ in range(60):
            parents = [rng.randrange(len(texts)) if len(texts) > 1 else 0 for _ in range(6)]
            texts = [[*texts[parent], rng.randrange(VOCABULARY)] for parent in parents]
            tree.take(parents if tree.layers[0].keys.shape[2] > len(prefix) else [0] * 6)
            found = tree.read([[text[-1]] for text in texts])
            most = max(most, tree.layers[-1].keys.shape[2])
        for text, states in zip(texts, found, strict=True):
            whole = encoder(torch.tensor([[*prefix, *text[1:]]])).last_hidden_state[0, -1]
            torch.testing.assert_close(states[-1], whole, rtol=1e-6, atol=1e-8)
    assert most < len(prefix) + 200, "of the 361 that were read"


def counted_reads(network: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of tokens of each pass of the encoder from now on."""
    encoder, read = network.model.encoder.language_model, list[int]()
    forward = encoder.forward

    def counted(*given: object, **named: Any) -> object:
        read.append(named["input_ids"].shape[1])
        return forward(*given, **named)

    monkeypatch.setattr(encoder, "forward", counted)
    return read


def test_what_texts_begin_with_in_common_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    network = tiny_network(3, torch.float64)
    cache = encoded(network, [1, 2, 3])
    read = counted_reads(network, monkeypatch)
    tree = Tree(network, cache, 2)
    tree.take([0, 0, 0])
    with torch.inference_mode():
        first, second, third = tree.read([[3, 4, 5], [3, 4, 6, 7], [3, 8]])
        fourth = tree.read([[9], [9], [9]])
    # 3 of all, 4 of two, and 5, 6, 7 and 8; then 9 after three texts that differ.
    assert read == [6, 3]
    assert torch.equal(first[:2], second[:2]) and torch.equal(first[:1], third[:1])
    assert [len(states) for states in (first, second, third, *fourth)] == [3, 4, 2, 1, 1, 1]
    assert not torch.equal(fourth[0], fourth[1])


@torch.inference_mode()
def test_the_keys_of_a_prefix_are_not_copied_at_each_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be a quarter of a gigabyte at the released shape, in pieces of ever new sizes."""
    monkeypatch.setattr("dg_lsp.model.tree._ROOM", 4)
    network = tiny_network(3, torch.float64)
    encoder = network.model.encoder.language_model
    tree = Tree(network, encoded(network, [1, 2, 3]), 2)
    places = list[int]()
    for token in range(3, 13):
        (states,) = tree.read([[token]])
        places.append(tree.layers[0].keys.data_ptr())
    assert len(set(places)) == 2 and places == sorted(places, key=places.index)
    whole = encoder.forward(torch.tensor([[1, 2, *range(3, 13)]])).last_hidden_state[0, -1]
    torch.testing.assert_close(states[0], whole, rtol=1e-6, atol=1e-8)


@torch.inference_mode()
def test_what_is_read_ahead_is_known_when_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    network = tiny_network(3, torch.float64)
    encoder = network.model.encoder.language_model
    whole = encoder.forward(torch.tensor([[1, 2, 3, 4, 5, 6, 7]])).last_hidden_state[0]
    cache = encoded(network, [1, 2, 3])
    read = counted_reads(network, monkeypatch)
    tree = Tree(network, cache, 2)
    tree.take([0, 0])
    tree.read([[3], [3]])
    ours, other = tree.read([[4], [9]], [[5, 6, 8]])
    torch.testing.assert_close(ours[0], whole[3], rtol=1e-6, atol=1e-8)
    tree.take([0])
    for token, place in ((5, 4), (6, 5), (7, 6)):  # 8 was a wrong guess
        (states,) = tree.read([[token]], [[1]])
        torch.testing.assert_close(states[0], whole[place], rtol=1e-6, atol=1e-8)
    assert read == [1, 5, 2] and not torch.equal(ours, other)
    monkeypatch.setattr("dg_lsp.model.tree._UNUSED", 0)
    tree.take([0])  # what was guessed is dropped
    (states,) = tree.read([[8]])
    monkeypatch.undo()
    longer = encoder.forward(torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8]])).last_hidden_state[0, -1]
    torch.testing.assert_close(states[0], longer, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("tokens", "count", "guess"),
    [
        ((5,), 3, ()),  # 9, 5 was never seen
        ((1, 2), 3, (4, 1, 9)),  # the latest of two places
        ((1, 2), 2, (4, 1)),
        ((7,), 3, (8,)),  # a text that may be in the gap begins so
        ((6, 2), 3, (1,)),  # the likelier one of two
        ((1, 2), 0, ()),
        ((), 3, ()),
    ],
)
def test_what_followed_the_same_tokens_before_is_guessed(
    tokens: tuple[int, ...], count: int, guess: tuple[int, ...]
) -> None:
    lookup = Lookup((1, 2, 3, 0, 1, 2, 4, 1, 9), [(6, 2, 1), (7, 8), (6, 2, 5)])
    assert lookup.after(tokens, count) == guess


def written(model: Checkpoint, request: Infill) -> list[str]:
    cache = PrefixCache(model.network.config.text_config)
    prefix, _ = tokenise(model, request)
    list(extend_to(model.network, cache, prefix))
    _, texts = run_to_end(line_source.draft_line(task_of(model, request, cache)))
    assert cache.tokens == prefix and cache.get_seq_length() == len(prefix)
    return [one.text for one in texts]


def test_the_likeliest_text_that_ends_where_the_suffix_begins_is_found(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many rows as there are tokens make the search over texts of one and two tokens complete.
    plan = plan_for(Infill(PREFIX, SUFFIX, "python", "rest_of_line"))
    never = line_source._never(model.texts, model.special, model.vocabulary)
    size, allowed = model.vocabulary, [t for t in range(model.vocabulary) if t not in never]
    monkeypatch.setattr("dg_lsp.model.task.plan_for", lambda *_: replace(plan, drafts=Writing(size, 2)))
    request = Infill(PREFIX, SUFFIX, "python", "rest_of_line")
    prefix, seam = tokenise(model, request)
    whole = [*prefix, *seam.head]
    scores: dict[tuple[int, ...], float] = {}
    encoder = model.network.model.encoder.language_model

    def chances(texts: list[tuple[int, ...]]) -> torch.Tensor:
        with torch.inference_mode():
            states = encoder(torch.tensor([[*whole, *text] for text in texts])).last_hidden_state[:, -1]
            return capped_logits(model.network, states).log_softmax(-1)

    first = chances([()])[0]
    singles: list[tuple[int, ...]] = [(token,) for token in allowed]
    after = chances(singles)
    end = model.encode("\n")[0]
    for row, token in enumerate(allowed):
        scores[token,] = float(first[token] + after[row, end])
    best = max(scores, key=lambda text: scores[text])
    found = written(model, request)
    ones = [text for text in found if len(model.encode(text)) == 1]
    assert ones[0] == model.tokenizer.decode(list(best))


def test_drafting_stops_once_what_goes_on_is_unlikely(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Infill(PREFIX, SUFFIX, "python", "rest_of_line")
    prefix, _ = tokenise(model, request)
    steps = {}
    # A random network ends nothing, so what goes on never becomes unlikely by itself.
    for left in (1e-30, 1e30):
        monkeypatch.setattr(line_source, "_LEFT", left)
        cache = PrefixCache(model.network.config.text_config)
        list(extend_to(model.network, cache, prefix))
        drafts, texts = run_to_end(line_source.draft_line(task_of(model, request, cache)))
        steps[left] = len(drafts)
        assert texts
    limit = plan_for(request).drafts.tokens
    assert steps[1e-30] == limit and steps[1e30] <= 2


def test_no_draft_holds_a_line_end_or_a_special_token(model: Checkpoint) -> None:
    for suffix, kind in product((SUFFIX, ")\n", ""), ("rest_of_line", "expression")):
        found = written(model, Infill(PREFIX, suffix, "python", kind))  # type: ignore[arg-type]
        assert 1 <= len(found) <= 6
        assert not any("\n" in text or "\r" in text for text in found)
        assert not any(model.special.intersection(model.encode(text)) for text in found)


def lines(model: Checkpoint, request: Infill, seconds: float | None = None) -> tuple[list[Draft], list[Fill]]:
    """The Drafts and the texts for a gap of several lines."""
    cache = PrefixCache(model.network.config.text_config)
    prefix, _ = tokenise(model, request)
    list(extend_to(model.network, cache, prefix))
    task = task_of(model, request, cache, seconds)
    found = run_to_end(body_source.draft_bodies(task, task.join))
    assert cache.tokens == prefix and cache.get_seq_length() == len(prefix)
    return found


def bodies(model: Checkpoint, request: Infill, patch: pytest.MonkeyPatch) -> list[str]:
    """What is written greedily for the bodies of `request` before it is fitted to its place."""
    patch.setattr(body_source, "_fill_of", lambda _, text: Fill(text, refusal="not looked at"))
    patch.setattr(body_source._UpToEnd, "first", nothing_found)
    return [fill.text for fill in lines(model, request)[1]]


def nothing_found(*_: object) -> list[Row]:
    """The first texts of a beam search that finds nothing."""
    return []


BODY = Infill("def area(r):\n    ", "\n\n\nx = 1\n", "python", "function_body", indent="    ")


def test_each_body_goes_on_with_the_likeliest_token_from_another_first_one(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(BODY)
    monkeypatch.setattr("dg_lsp.model.task.plan_for", lambda *_: replace(plan, drafts=Writing(3, 12)))
    prefix, seam = tokenise(model, BODY)
    found = bodies(model, BODY, monkeypatch)
    encoder = model.network.model.encoder.language_model
    special, firsts, compared = sorted(model.special), set(), 0
    for text in found:
        # Bytes that are no text do not survive being decoded.
        ids = list(model.encode(text.split("\ufffd")[0]))
        firsts.add(text[:1])
        assert text[:1] not in ("#", "'", '"')
        for place in range(1, len(ids)):
            with torch.inference_mode():
                states = encoder(torch.tensor([[*prefix, *seam.head, *ids[:place]]])).last_hidden_state[:, -1]
                logits = capped_logits(model.network, states)[0]
                logits[special] = -torch.inf
            assert ids[place] == int(logits.argmax())
            compared += 1
    assert compared > 5
    assert len(firsts) == len(found) == 3


def test_a_body_ends_where_it_goes_round_or_its_container_closes(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert body_source._kept(BODY, "a()\n    a()\n") == "a()\n"
    assert body_source._kept(BODY, "a()\nb()").rstrip() == "a()"
    monkeypatch.setattr(body_source, "_kept", lambda _, text: text[:3])
    assert all(len(text) <= 3 for text in bodies(model, BODY, monkeypatch))


def test_a_body_that_goes_round_within_a_line_is_refused(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_source, "goes_round", lambda text: len(text) > 3)
    _, fills = lines(model, BODY)
    # The beam search has dropped them all.
    assert len(fills) == plan_for(BODY).drafts.rows
    assert {fill.refusal for fill in fills} == {"it repeats itself"}


def test_nothing_more_is_written_once_the_likeliest_bodies_have_ended(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(BODY)
    monkeypatch.setattr("dg_lsp.model.task.plan_for", lambda *_: replace(plan, drafts=Writing(3, 40)))
    # Each body ends when it is as long as its number says.
    seen: dict[str, int] = {}

    def kept(_: Infill, text: str) -> str:
        number = seen.setdefault(text[:1], len(seen))
        return text[:-1] if len(text) > (5, 3, 30)[number] else text

    monkeypatch.setattr(body_source._UpToEnd, "first", nothing_found)
    monkeypatch.setattr(body_source, "_kept", kept)
    for refused, steps in ((("", "", ""), 5), (("no", "", ""), 5), (("no", "no", ""), 30)):
        seen.clear()
        monkeypatch.setattr(
            body_source, "_fill_of", lambda _, text, r=refused: Fill(text, refusal=r[seen[text[:1]]])
        )
        drafts, fills = lines(model, BODY)
        assert len(fills) == 3 and steps <= len(drafts) <= steps + 2
        # The likeliest body is on the screen while it grows.
        assert [len(d.runs[0].text) for d in drafts[:3]] == [0, 2, 3]


def test_the_likeliest_body_a_token_is_found(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows as there are tokens make the search over bodies of two tokens complete."""
    plan = plan_for(BODY)
    monkeypatch.setattr(
        "dg_lsp.model.task.plan_for", lambda *_: replace(plan, drafts=Writing(model.vocabulary, 1))
    )
    monkeypatch.setattr(body_source, "_fill_of", lambda _, text: Fill(text))
    # Every body of two tokens has ended.
    monkeypatch.setattr(body_source, "_kept", lambda _, text: text[:-1] if len(text) == 2 else text)
    monkeypatch.setattr(body_source, "end_of", lambda _, text: Written(text[:-1], ended=True))
    prefix, seam = tokenise(model, BODY)
    encoder = model.network.model.encoder.language_model

    def chances(text: Sequence[int]) -> torch.Tensor:
        with torch.inference_mode():
            states = encoder(torch.tensor([[*prefix, *seam.head, *text]])).last_hidden_state[:, -1]
            logits = capped_logits(model.network, states)[0]
            logits[sorted(model.special)] = -torch.inf
            return logits.log_softmax(-1)

    first = chances([])
    means = {
        model.texts[token]: float(first[token] + chances([token]).max()) / 2
        for token in body_source._first_tokens(model, BODY, first, "", model.vocabulary)
        if len(model.texts[token]) == 1 and model.texts[token] != "\ufffd"
    }
    _, fills = lines(model, BODY)
    found = [fill.text for fill in fills if fill.text in means]
    assert found[0] == max(means, key=lambda text: means[text])
    # After it come the others in their order.
    assert means[found[0]] >= means[found[1]] >= means[found[2]]


def script(model: Checkpoint, patch: pytest.MonkeyPatch, ends: Sequence[str]) -> None:
    """Let bodies end when they are five characters long and begin with one of `ends`; the others never do."""
    patch.setattr(
        body_source, "_kept", lambda _, text: text[:-1] if len(text) > 5 and text[:1] in ends else text
    )
    patch.setattr(body_source, "end_of", lambda _, text: Written(text[:-1], ended=True))
    patch.setattr(body_source, "_fill_of", lambda _, text: Fill(text))


def test_a_body_is_searched_until_enough_have_ended_or_the_limit(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(BODY)
    monkeypatch.setattr("dg_lsp.model.task.plan_for", lambda *_: replace(plan, drafts=Writing(4, 12)))
    everything = [text for text in model.texts if len(text) == 1]
    script(model, monkeypatch, everything)
    drafts, fills = lines(model, BODY)
    assert len(drafts) <= 6 and len(fills) >= 2
    assert {len(fill.text) for fill in fills} == {5}
    # What is on the screen grows with each token.
    assert [len(draft.runs[0].text) for draft in drafts] == [0, *range(2, len(drafts) + 1)]
    assert lines(model, BODY)[1] == fills
    # Nothing ends: the likeliest beginning.
    script(model, monkeypatch, [])
    drafts, fills = lines(model, BODY)
    assert len(drafts) == 12 and [len(fill.text) for fill in fills] == [13]
    # What goes round is dropped, so that another text is found.
    monkeypatch.setattr(body_source, "goes_round", lambda text: text == fills[0].text)
    (other,) = lines(model, BODY)[1]
    assert other.text != fills[0].text


def test_a_body_without_flaws_comes_first(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_for(BODY)
    monkeypatch.setattr("dg_lsp.model.task.plan_for", lambda *_: replace(plan, drafts=Writing(4, 12)))
    script(model, monkeypatch, [text for text in model.texts if len(text) == 1])
    monkeypatch.setattr(body_source, "flaws_of", lambda _: lambda _: 0)
    few, _ = lines(model, BODY)
    # Those with a flaw count less.
    monkeypatch.setattr(body_source, "flaws_of", lambda _: lambda _: 1)
    drafts, fills = lines(model, BODY)
    assert len(drafts) >= len(few) and len(fills) >= 3
    several = lines(model, replace(BODY, alternatives=2))[0]
    assert len(several) >= len(drafts)
    monkeypatch.setattr(body_source, "flaws_of", lambda _: lambda text: int(text != fills[-1].text))
    assert lines(model, BODY)[1] == [fills[-1], *fills[:-1]]
    # What cannot be shown stays after, whatever else it is.
    refused = fills[-1].text
    monkeypatch.setattr(body_source, "_fill_of", lambda _, text: Fill(text, refusal="no" * (text == refused)))
    assert [fill.text for fill in lines(model, BODY)[1] if fill.refusal] == [refused]
    assert lines(model, BODY)[1][-1].text == refused


def test_where_more_bodies_are_wanted_others_are_written_greedily(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(BODY)
    monkeypatch.setattr("dg_lsp.model.task.plan_for", lambda *_: replace(plan, drafts=Writing(3, 12)))
    script(model, monkeypatch, [])
    drafts, (first,) = lines(model, BODY)
    more, fills = lines(model, replace(BODY, alternatives=3))
    assert fills[0] == first and len({fill.text for fill in fills}) >= 3
    # The first text stays on the screen.
    assert more[: len(drafts)] != more and all(d.runs[0].text == first.text for d in more[len(drafts) :])
    # What cannot be shown counts as little as nothing.
    monkeypatch.setattr(body_source, "_fill_of", lambda _, text: Fill(text, refusal="not looked at"))
    assert len(lines(model, BODY)[1]) == 4


@pytest.mark.parametrize("kind", ["function_body", "span"])
def test_the_statement_that_an_unfinished_text_ends_in_is_left_out(kind: Kind) -> None:
    request, text = replace(BODY, kind=kind), "a = 1\n    b = le"
    assert body_source.body_of(request, text).text == text, "it parses"
    begun = body_source.beginning_of(request, text)
    assert begun.text == "a = 1" and begun.shortened and not begun.refusal
    ended = f"{text}n(a)\n\n\nclass A: ..."
    assert body_source.beginning_of(BODY, ended) == body_source.body_of(BODY, ended)
    assert body_source.beginning_of(request, "le").text == "le", "no more has been written"


def test_a_body_stops_at_the_deadline_with_the_likeliest_beginning(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(model, monkeypatch, [])
    over = iter([False, False, False, True, True, True])
    monkeypatch.setattr(Clock, "is_over", lambda _: next(over))
    monkeypatch.setattr(body_source._UpToEnd, "has_text", lambda *_: True)
    drafts, fills = lines(model, replace(BODY, alternatives=4))
    assert len(drafts) == 3 and [len(fill.text) for fill in fills] == [4]


@pytest.mark.parametrize(("written", "wanted"), [(6, 6), (12, 9)])
def test_where_the_deadline_passes_before_there_is_a_text_the_first_one_is_waited_for(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch, written: int, wanted: int
) -> None:
    """A pass takes a second, the deadline is 4 seconds, and a text can be shown after `written` seconds."""
    script(model, monkeypatch, [])
    now = [0]
    monkeypatch.setattr(Clock, "milliseconds", lambda _: 1000.0 * now[0])
    real = body_source._UpToEnd.longer

    def longer(*given: Any) -> Any:
        now[0] += 1
        return real(*given)

    monkeypatch.setattr(body_source._UpToEnd, "longer", longer)
    monkeypatch.setattr(body_source._UpToEnd, "has_text", lambda *_: now[0] >= written)
    monkeypatch.setattr(body_source._Greedy, "first", nothing_found)
    drafts, _ = lines(model, BODY, 4.0)
    assert len(drafts) == wanted


def test_drafting_stops_at_the_deadline(model: Checkpoint) -> None:
    request = Infill(PREFIX, SUFFIX, "python", "rest_of_line")
    cache = PrefixCache(model.network.config.text_config)
    list(extend_to(model.network, cache, tokenise(model, request)[0]))
    drafts, _ = run_to_end(line_source.draft_line(task_of(model, request, cache, 0.0)))
    assert not drafts


DOCSTRING = Infill(
    'def area(r):\n    """', '"""\n    return 3 * r * r\n', "python", "docstring", indent="    "
)


@pytest.mark.parametrize("kind", ["rest_of_line", "function_body"])
@pytest.mark.parametrize(
    ("deadline", "why"),
    [(0.0, "the deadline passed before a candidate was ready"), (None, "left the gap empty")],
)
def test_where_nothing_was_written_the_reason_is_told(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch, kind: Kind, deadline: float | None, why: str
) -> None:
    def nothing(*_: object) -> Generator[Never, None, list[Never]]:
        yield from ()
        return []

    monkeypatch.setattr(line_source, "draft_line", nothing)
    monkeypatch.setattr(body_source, "draft_bodies", nothing)
    request = Infill("def area(r):\n    ", SUFFIX, "python", kind, indent="    ", deadline=deadline)
    cache = PrefixCache(model.network.config.text_config)
    *_, fill = infill(replace(model, denoises=False), cache, request)
    assert isinstance(fill, Fill) and not fill.text and why in fill.refusal


def test_a_docstring_ends_where_its_quotes_close_or_else_with_its_first_sentence(
    model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It may go on over several lines, and any line ends of the file are its own.
    for text in ("Return x", "Return x.\n\n    Of r", "\n    Return x.\n", "Return x. Of r. Of r."):
        assert body_source._kept(DOCSTRING, text) == text
        assert body_source._kept(replace(DOCSTRING, prefix="import x\r\n" + DOCSTRING.prefix), text) == text
    assert body_source._kept(DOCSTRING, 'Return x."""\n    return') == "Return x."
    assert (
        body_source._kept(DOCSTRING, "Return x.\n    Of the circle" + 3 * "\n    of the circle")
        == "Return x."
    )
    monkeypatch.setattr(body_source, "_kept", lambda _, text: text)
    monkeypatch.setattr(body_source, "first_sentence", lambda text: text[:3])
    found = bodies(model, DOCSTRING, monkeypatch)
    assert found and all(len(text) == 3 for text in found)


def test_a_docstring_may_begin_as_a_body_may_not(model: Checkpoint) -> None:
    logits = torch.zeros(model.vocabulary)
    (comment,), (word,) = model.encode("#"), model.encode("a")
    logits[comment], logits[word] = 2.0, 1.0
    assert body_source._first_tokens(model, DOCSTRING, logits, "", 1) == [comment]
    assert body_source._first_tokens(model, BODY, logits, "", 1) == [word]


def test_drafts_that_the_deadline_ended_before_any_text_are_not_the_reason() -> None:
    late, empty = "the deadline passed before a candidate was ready", Fill("\n    ", refusal="it is empty")
    assert none_of([empty, empty], late).refusal == late
    broken = Fill("return (", refusal="it would add a syntax error")
    said = none_of([empty, broken], late).refusal
    assert said == "none of 1 drafts could be shown; the best one: it would add a syntax error"
