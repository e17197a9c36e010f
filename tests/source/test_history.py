"""Which older texts are remembered: two at most, and never one that is worse than another."""

import random
from contextlib import suppress

import pytest

from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.source.document import Document
from dg_lsp.source.history import MOST, Changes, History, Reading, begun
from dg_lsp.source.language import load_language

PYTHON = load_language("python")


def parsed(history: History, cost: int) -> History:
    """`history` after somebody has parsed its text, and found it that broken."""
    history.now.read = PYTHON.parse(history.now.data), cost
    return history


def typed(history: History, text: bytes = b"x") -> History:
    """`history` after `text` was typed at the end."""
    data = history.now.data
    return history.after(data + text, Changes().then(len(data), len(data), len(data) + len(text)))


def base(history: History) -> bytes:
    assert history.base is not None
    return history.base.reading.data


def test_the_newest_text_without_errors_is_the_base() -> None:
    first = parsed(begun(b"a"), 0)
    second = parsed(typed(first), 0)
    third = parsed(typed(second), 45)
    fourth = typed(typed(third))
    assert base(second) == b"a"
    assert base(third) == base(fourth) == b"ax"
    assert fourth.base is not None
    assert fourth.base.changes == Changes().then(2, 2, 5)


def test_a_text_that_was_opened_is_kept_until_a_better_one_is_known() -> None:
    opened = begun(b"a")
    broken = parsed(typed(typed(opened)), 45)
    assert base(broken) == b"a"
    assert base(typed(broken)) == b"a"
    assert base(typed(parsed(typed(broken), 0))) == b"axxx"


def test_among_broken_texts_the_least_broken_is_kept_and_of_equal_ones_the_newest() -> None:
    first = parsed(begun(b"a"), 45)
    worse = parsed(typed(first), 70)
    assert base(typed(worse)) == b"a"
    assert base(typed(parsed(typed(worse), 45))) == b"axx"


def test_the_next_parse_begins_with_the_last_tree() -> None:
    first = parsed(begun(b"a"), 0)
    second = typed(typed(parsed(typed(first), 45)))
    assert second.last is not None
    assert second.last.reading.data == b"ax"
    assert second.last.changes == Changes().then(2, 2, 4)


def test_never_more_than_two_older_texts_are_held() -> None:
    rng, history = random.Random("bounded"), begun(b"")
    for _ in range(300):
        history = typed(history)
        if rng.random() < 0.5:
            parsed(history, rng.choice((0, 45)))
        held = {id(past.reading) for past in (history.base, history.last) if past is not None}
        assert len(held) <= 2
        assert history.base is not None


def test_a_text_changed_in_too_many_places_is_another_text() -> None:
    history = parsed(begun(b"a,a\n" * MOST), 0)
    first = history
    for place in range(MOST + 1):
        data = history.now.data
        at = 4 * place
        history = history.after(data[:at] + b"x" + data[at:], Changes().then(at, at, at + 1))
        if place == MOST - 1:
            assert base(history) == first.now.data
    assert base(history) != first.now.data
    assert history.after(b"other", None).base is None


def test_the_same_text_has_the_same_history() -> None:
    history = parsed(begun(b"a"), 0)
    assert history.after(b"a", Changes().then(0, 1, 1)) is history


def test_what_is_taken_back_has_not_changed() -> None:
    history = typed(parsed(begun(b"a\xc3\xa9"), 0))
    history = history.after(b"a\xc3\xa9", Changes().then(3, 4, 3))
    assert history.base is not None
    assert history.base.changes == Changes()


def test_no_reader_sees_a_tree_without_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each store into a Reading, another thread may look at it."""
    document = Document("a.py", "python", 1, b"def f(:\n    x = (\n", begun(b"def f(:\n    x = (\n"))
    assert document.history is not None
    seen: list[int] = []
    store = Reading.__setattr__

    def looked(reading: Reading, name: str, value: object) -> None:
        store(reading, name, value)
        if reading.tree is not None:
            seen.append(reading.cost)

    monkeypatch.setattr(Reading, "__setattr__", looked)
    with suppress(NoGap):
        find_gap(document, 17)
    assert seen and all(cost > 0 for cost in seen)
