"""Where an offset has gone, against the neighbours that it had: each unit of the text is the only one of its kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.source.history import Change, Changes, trimmed


class Marked:
    """A text of units that are all different, so that each can be found again after any edit."""

    def __init__(self, size: int) -> None:
        self.old = list(range(size))
        self.now = list(self.old)
        self.changes = Changes()
        self.next = size

    def edit(self, start: int, end: int, typed: int) -> None:
        self.now[start:end] = range(self.next, self.next + typed)
        self.next += typed
        self.changes = self.changes.then(start, end, start + typed)

    def expected(self, offset: int) -> tuple[int, int] | None:
        """Before and after what was put in at an old offset; None where neither neighbour is left."""
        left = -1 if offset == 0 else self.place(self.old[offset - 1])
        right = len(self.now) if offset == len(self.old) else self.place(self.old[offset])
        if left is None:
            return None if right is None else (right, right)
        return (left + 1, left + 1) if right is None else (left + 1, right)

    def place(self, unit: int) -> int | None:
        return self.now.index(unit) if unit in self.now else None


# An edit by where it begins, modulo what there is, how much it takes away and how much is typed.
EDITS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8), st.integers(0, 3)), max_size=8)


def apply(text: Marked, edits: list[tuple[int, int, int]]) -> None:
    for place, gone, typed in edits:
        start = place % (len(text.now) + 1)
        text.edit(start, min(start + gone, len(text.now)), typed)


@st.composite
def edited(draw: st.DrawFn) -> Marked:
    """A text after some edits."""
    text = Marked(draw(st.integers(0, 30)))
    apply(text, draw(EDITS))
    return text


@given(edited())
def test_an_offset_stays_between_its_neighbours(text: Marked) -> None:
    for offset in range(len(text.old) + 1):
        found = text.changes.before(offset), text.changes.after(offset)
        wanted = text.expected(offset)
        assert wanted is None or found == wanted
        assert found[0] <= found[1]


@given(edited())
def test_changes_are_in_order_and_do_not_touch_and_hold_all_that_is_new(text: Marked) -> None:
    old = now = 0
    for place, change in enumerate(text.changes.spans):
        assert text.old[old : change.start] == text.now[now : change.now]
        assert place == 0 or change.start > old
        assert change.start < change.end or change.now < change.stop
        old, now = change.end, change.stop
    assert text.old[old:] == text.now[now:]


@given(edited())
def test_the_way_back(text: Marked) -> None:
    back = text.changes.turned()
    assert back.turned() == text.changes
    for offset in range(len(text.now) + 1):
        place = back.before(offset)
        if place == back.after(offset) and not text.changes.cuts(place):
            assert text.changes.before(place) <= offset <= text.changes.after(place)


@given(edited(), EDITS)
def test_changes_on_changes(text: Marked, more: list[tuple[int, int, int]]) -> None:
    first, text.changes = text.changes, Changes()
    apply(text, more)
    both = first.followed_by(text.changes)
    text.changes = both
    for offset in range(len(text.old) + 1):
        if (wanted := text.expected(offset)) is not None:
            assert (both.before(offset), both.after(offset)) == wanted


def test_a_place_whose_text_gave_way_to_other_text_is_a_guess() -> None:
    changes = Changes().then(2, 6, 3)
    assert [changes.cuts(offset) for offset in range(8)] == [False] * 3 + [True] * 3 + [False] * 2
    # What was only deleted leaves one place.
    assert not any(Changes().then(2, 6, 2).cuts(offset) for offset in range(8))
    assert not any(Changes().then(2, 2, 6).cuts(offset) for offset in range(8))


def test_what_is_typed_and_taken_back_leaves_nothing() -> None:
    typed = Changes().then(4, 4, 5).then(5, 5, 6)
    assert typed.spans == (Change(4, 4, 4, 6),)
    assert typed.then(5, 6, 5).then(4, 5, 4) == Changes()


TEXTS = st.lists(st.sampled_from(["a", "b", "é", "è", "ɩ", "🙂", "🙃", "\r\n", "\n"]), max_size=8).map(
    "".join
)


@given(TEXTS, TEXTS)
def test_trimmed_changes_are_true_and_part_no_character(old: str, new: str) -> None:
    one, other = old.encode(), new.encode()
    found = trimmed(Changes().then(0, len(one), len(other)), one, other)
    assert found.spans or old == new
    for start, end, now, stop in found.spans:
        assert one[:start] == other[:now]
        assert one[end:] == other[stop:]
        for text, place in ((one, start), (one, end), (other, now), (other, stop)):
            text[:place].decode()
        gone, come = one[start:end].decode(), other[now:stop].decode()
        assert gone[:1] != come[:1] or not gone
        assert gone[-1:] != come[-1:] or not gone


@pytest.mark.parametrize("length", [0, 1, 2, 3, 1000, 1_000_003])
def test_one_change_in_a_long_text_is_found(length: int) -> None:
    old, new = b"x" * length + b"a" + b"y" * length, b"x" * length + b"bc" + b"y" * length
    found = trimmed(Changes().then(0, len(old), len(new)), old, new)
    assert found.spans == (Change(length, length + 1, length, length + 2),)


def test_a_line_put_in_after_another_lies_at_its_end() -> None:
    old, new = b"a\nb\n", b"a\nc\nb\n"
    found = trimmed(Changes().then(0, len(old), len(new)), old, new)
    assert found.spans == (Change(1, 1, 1, 3),)
