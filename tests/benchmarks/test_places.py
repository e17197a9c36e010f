"""The 27 places: they parse where the text is put in, and what deserves to be shown is told from what does not."""

import ast

import pytest

from benchmarks.places import Place, deserves, is_begun, offered, read_places

PLACES = read_places()


def test_there_are_27_places_with_a_cursor_each():
    assert len(PLACES) == len({place.name for place in PLACES}) == 27
    assert all(place.text.count("|>") == 1 for place in PLACES)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_the_first_text_makes_the_file_whole(place):
    text = place.accept[0]
    # What ends a script may be offered with or without the call that follows.
    text += "\n    main()" if text == '"__main__":' else ""
    ast.parse(place.before + text + place.behind)
    assert deserves(place, place.accept[0]) == "whole"
    assert deserves(place, "nonsense()") == ""


def test_a_beginning_deserves_it_from_four_characters_and_at_the_end_of_a_word():
    place = Place("", "x = |>", "", ("len(text.split())",), (r'type=int, default=\d+\)',))  # fmt: skip
    assert deserves(place, "len(text") == "begun"
    assert deserves(place, "len") == ""
    assert deserves(place, "len(te") == ""
    assert deserves(place, "type=int, default=480)") == "whole"
    assert deserves(place, "type=int, default=480") == ""


def test_an_item_that_replaces_typed_text_is_read_from_the_cursor():
    place = Place("", "a = 1\ntotal = fi|>\n", "", ("rst",), ())
    whole = {"start": {"line": 1, "character": 8}, "end": {"line": 1, "character": 10}}
    empty = {"start": {"line": 1, "character": 10}, "end": {"line": 1, "character": 10}}
    items = [{"insertText": "first", "range": whole}, {"insertText": "rst", "range": empty}]
    assert offered(place, items) == ["rst", "rst"]


def test_a_beginning_ends_at_a_word():
    assert is_begun("foo(a", "foo(a, b)")
    assert is_begun("foo", "foo(a, b)")
    assert is_begun("foo", "foo")
    assert not is_begun("fo", "foo(a, b)")
    assert not is_begun("foo(b", "foo(a, b)")
    assert not is_begun("", "foo")
