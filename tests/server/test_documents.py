"""Edits, position by position: against a splice that shares no code with ours, and against pygls' own."""

import time
from typing import Any, get_args
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pygls.workspace import Workspace

from dg_lsp.server.documents import Buffer, Change, Documents, Position, UnknownDocument
from dg_lsp.source.document import Encoding
from dg_lsp.source.history import Changes
from tests.server.splice import (
    PIECES,
    index_of,
    is_half,
    json_text,
    line_spans,
    position_in,
    shown_bytes,
    spliced,
    to_text,
    to_units,
)  # fmt: skip

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
URI = "file:///c%3A/m.py"
# A place by two numbers, modulo the lines that there are and the columns of the line and a few after its end.
PLACES = st.tuples(st.integers(0, 30), st.integers(0, 60))
SHORT = st.lists(st.sampled_from(PIECES), max_size=5).map(lambda pieces: json_text("".join(pieces)))
LONG = st.lists(st.sampled_from(PIECES), max_size=40).map(lambda pieces: json_text("".join(pieces)))
EDITS = st.lists(st.tuples(PLACES, st.none() | PLACES, SHORT), min_size=1, max_size=4)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(
    text=LONG,
    notifications=st.lists(EDITS, min_size=1, max_size=6),
    place=PLACES,
    many=st.sampled_from([1, 100]),
)
def test_random_edits_equal_the_reference(
    encoding: Encoding, text: str, notifications: list[Any], place: tuple[int, int], many: int
) -> None:
    """Each notification brings several changes, each of the text that the one before it left.

    many: how many of them are recorded one by one.
    """
    with patch("dg_lsp.server.documents._MANY", many):
        check_edits(encoding, text, notifications, place)


def check_edits(encoding: Encoding, text: str, notifications: list[Any], place: tuple[int, int]) -> None:
    """A document that is changed by `notifications` has the text of the reference, line by line."""
    documents = Documents(encoding)
    documents.open(URI, "python", 0, text)
    for version, edits in enumerate(notifications, start=1):
        changes: list[Change] = []
        for first, last, new in edits:
            start = position_in(text, first, encoding)
            end = start if last is None else position_in(text, last, encoding)
            changes.append(((start, end), new))
            text = spliced(text, (start, end), new, encoding)
        documents.change(URI, version, changes)
        buffer = documents._open[URI].buffer
        assert buffer.text == text
        assert len(buffer.lines) == len(line_spans(to_units(text, encoding)))
        check_snapshot(documents, text, position_in(text, place, encoding))
        check_history(documents)


def check_snapshot(documents: Documents, text: str, position: Position) -> None:
    """The snapshot has the text's lines, and a column leads to the same place in both."""
    document, encoding = documents.snapshot(URI), documents.encoding
    assert document is not None
    shown = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    assert document.data == shown.encode("utf-8")
    units = to_units(text, encoding)
    assert len(document.line_starts) == len(line_spans(units))
    if position[0] < len(document.line_starts):
        at = index_of(units, position, encoding)
        pair = 0 < at < len(units) and 0xD800 <= units[at - 1] < 0xDC00 <= units[at] < 0xE000
        at -= encoding == "utf-16" and pair  # a Document's column inside a pair is its beginning
        before = to_text(units[:at], encoding)
        offset = sum(3 if "\ud800" <= c <= "\udfff" else len(c.encode()) for c in before)
        assert document.offset(*position, encoding) == offset
        line, column = document.position(offset, encoding)
        assert line_spans(units)[line][0] + column == at


def check_history(documents: Documents) -> None:
    """What the snapshot says has changed since its base is all that has."""
    document = documents.snapshot(URI)
    assert document is not None
    assert document.history is not None
    if (base := document.history.base) is None:
        return
    at = now = 0
    for change in base.changes.spans:
        assert base.reading.data[at : change.start] == document.data[now : change.now]
        at, now = change.end, change.stop
    assert base.reading.data[at:] == document.data[now:]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=LONG, edits=st.lists(st.tuples(PLACES, PLACES, SHORT), min_size=1, max_size=3))
def test_the_bytes_that_an_edit_replaces_are_those_at_its_positions(
    encoding: Encoding, text: str, edits: list[Any]
) -> None:
    """Where no half of a character stands at a seam, which would make or break another one."""
    buffer = Buffer(text, encoding)
    for one, other, new in edits:
        ends = position_in(text, one, encoding), position_in(text, other, encoding)
        units = to_units(text, encoding)
        first, last = sorted(index_of(units, position, encoding) for position in ends)
        old = shown_bytes(text)
        found = buffer.replace(*ends, new, encoding)
        text = spliced(text, ends, new, encoding)
        start, end, stop = found
        assert shown_bytes(text) == old[:start] + shown_bytes(text)[start:stop] + old[end:]
        head, tail = to_text(units[:first], encoding), to_text(units[last:], encoding)
        if not is_half(head[-1:]) and not is_half(tail[:1]):
            kept, after = len(shown_bytes(head)), len(shown_bytes(tail))
            assert found == (kept, len(old) - after, len(shown_bytes(text)) - after)


# -- by hand


def edited(text: str, start: Position, end: Position, new: str, encoding: Encoding = "utf-16") -> str:
    buffer = Buffer(text, encoding)
    buffer.replace(start, end, new, encoding)
    assert buffer.lines == Buffer(buffer.text, encoding).lines
    return buffer.text


@pytest.mark.parametrize("end", list("\f\v\x1c\x1d\x1e\x85\u2028\u2029"))
def test_only_lf_crlf_and_cr_end_a_line(end: str) -> None:
    """pygls' defect 1."""
    assert edited(f"a{end}b\nsecond", (1, 0), (1, 0), "X") == f"a{end}b\nXsecond"


def test_a_column_past_the_end_of_its_line_is_its_end() -> None:
    """pygls' defect 5."""
    assert edited("ab\ncd", (1, 9), (1, 9), "X") == "ab\ncdX"
    assert edited("ab\ncd", (0, 3), (0, 3), "X") == "abX\ncd"
    assert edited("ab\r\ncd", (0, 3), (0, 3), "X") == "abX\r\ncd"


def test_a_line_past_the_last_is_the_end_of_the_text() -> None:
    assert edited("ab\n", (1, 0), (7, 3), "X") == "ab\nX"
    assert edited("ab\ncd", (2, 0), (2, 0), "X") == "ab\ncdX"
    assert edited("🙂" * 5, (1, 0), (1, 0), "X", "utf-8") == "🙂" * 5 + "X"
    assert edited("", (5, 5), (5, 5), "X") == "X"


def test_a_reversed_range_is_turned_round() -> None:
    assert edited("abc\ndef", (1, 1), (0, 1), "X") == "aXef"


def test_line_ends_that_meet_and_part() -> None:
    assert edited("a\rx\nb", (1, 0), (1, 1), "") == "a\r\nb"
    assert edited("a\r\nb", (0, 1), (1, 0), "\r") == "a\rb"
    assert edited("a\rb", (1, 0), (1, 0), "\nX") == "a\r\nXb"
    assert edited("a\r\nb", (0, 1), (0, 1), "\r") == "a\r\r\nb"
    buffer = Buffer("a\r\n")
    assert buffer.lines == ["a\r\n", ""]


def test_surrogate_pairs_part_and_meet_in_utf_16_only() -> None:
    assert edited("🙂", (0, 1), (0, 1), "x") == "\ud83dx\ude42"
    assert edited("\ud83dx\ude42", (0, 1), (0, 2), "") == "🙂"
    assert edited("🙂", (0, 1), (0, 2), "\ude43") == "🙃"
    assert edited("🙂", (0, 1), (0, 1), "x", "utf-8") == "x🙂"
    assert edited("🙂", (0, 1), (0, 1), "x", "utf-32") == "🙂x"


def test_lone_surrogates_are_kept_and_shown_as_replacement_characters() -> None:
    """pygls' defect 16: whoever encodes its text gets an exception."""
    documents = Documents()
    documents.open(URI, "python", 1, "a\ud83db\n")
    document = documents.snapshot(URI)
    assert document is not None
    assert document.text == "a\ufffdb\n"
    documents.change(URI, 2, [(((0, 2), (0, 3)), "\ude42")])
    document = documents.snapshot(URI)
    assert document is not None
    assert document.text == "a🙂\n"


def test_snapshots_do_not_change_and_are_kept() -> None:
    documents = Documents("utf-8")
    documents.open(URI, "python", 1, "a")
    first = documents.snapshot(URI)
    assert first is documents.snapshot(URI)
    documents.change(URI, 2, [(((0, 1), (0, 1)), "b"), (None, "c"), (((0, 0), (0, 0)), "d")])
    second = documents.snapshot(URI)
    assert first is not None
    assert second is not None
    assert (first.text, first.version) == ("a", 1)
    assert (second.text, second.version, second.language) == ("dc", 2, "python")


def test_a_version_that_goes_back_is_applied_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """pygls' defect 16."""
    documents = Documents()
    documents.open(URI, "python", 5, "secret")
    documents.change(URI, 3, [(None, "other")])
    document = documents.snapshot(URI)
    assert document is not None
    assert (document.text, document.version) == ("other", 3)
    assert "from 5 to 3" in caplog.text
    assert "secret" not in caplog.text
    assert "other" not in caplog.text


def test_what_is_not_open_is_unknown() -> None:
    documents = Documents()
    assert documents.snapshot(URI) is None
    with pytest.raises(UnknownDocument, match=r"m\.py was changed but is not open"):
        documents.change(URI, 1, [(None, "x")])
    with pytest.raises(UnknownDocument, match=r"m\.py was closed but is not open"):
        documents.close(URI)
    documents.open(URI, "python", 1, "x")
    documents.open("untitled:1", "plaintext", 1, "")
    assert list(documents.uris()) == [URI, "untitled:1"]
    documents.close(URI)
    assert documents.uris() == ("untitled:1",)


def test_an_edit_touches_only_its_lines() -> None:
    """The lines before and after are the same objects: an edit in a large file costs what it changes."""
    buffer = Buffer("some line\n" * 10_000)
    before = list(buffer.lines)
    buffer.replace((5000, 2), (5001, 3), "x\ny", "utf-16")
    assert all(a is b for a, b in zip(before[:4999], buffer.lines[:4999], strict=True))
    assert all(a is b for a, b in zip(before[5002:], buffer.lines[5002:], strict=True))


# -- what is remembered


def base_of(documents: Documents) -> tuple[bytes, tuple[tuple[int, int, int, int], ...]]:
    document = documents.snapshot(URI)
    assert document is not None
    assert document.history is not None
    assert document.history.base is not None
    return document.history.base.reading.data, document.history.base.changes.spans


def test_edits_that_nobody_looked_at_are_remembered_one_by_one() -> None:
    documents = Documents()
    documents.open(URI, "python", 1, "\ufeffé = 1\r\n🙂 = (2)\r\nend\r\n")
    documents.change(URI, 2, [(((1, 7), (1, 8)), "")])
    documents.change(URI, 3, [(((0, 1), (0, 2)), "√√"), (((2, 0), (2, 3)), "END\r\nmore")])
    old = "\ufeffé = 1\r\n🙂 = (2)\r\nend\r\n".encode()
    one, other, third = old.index("é".encode()), old.index(b")"), old.index(b"end")
    assert base_of(documents) == (
        old,
        (
            (one, one + 2, one, one + 6),
            (other, other + 1, other + 4, other + 4),
            (third, third + 3, third + 3, third + 12),
        ),
    )


def test_the_text_that_was_opened_is_remembered_and_one_typed_in_between_is_not() -> None:
    documents = Documents()
    documents.open(URI, "python", 1, "a\n")
    for version in range(2, 12):
        documents.change(URI, version, [(((0, 1), (0, 1)), "x")])
        documents.snapshot(URI)
    assert base_of(documents) == (b"a\n", ((1, 1, 1, 11),))


def test_a_text_that_is_sent_whole_has_changed_only_where_it_differs() -> None:
    documents = Documents()
    documents.open(URI, "python", 1, "a = (1)\nb\n")
    documents.change(URI, 2, [(None, "a = (1\nb\n")])
    assert base_of(documents) == (b"a = (1)\nb\n", ((6, 7, 6, 6),))


def test_after_too_many_changes_the_present_text_begins_a_new_history() -> None:
    documents = Documents()
    documents.open(URI, "python", 1, "ab\n" * 2000)
    for first in range(0, 1000, 50):
        documents.change(URI, 2, [(((line, 1), (line, 1)), "x") for line in range(first, first + 50)])
    # They are given up as they come, not when somebody looks.
    assert documents._open[URI].changes is None
    document = documents.snapshot(URI)
    assert document is not None
    assert document.history is not None
    assert document.history.base is None
    documents.change(URI, 3, [(((0, 0), (0, 0)), "y")])
    assert base_of(documents) == (document.data, ((0, 0, 0, 1),))


def test_the_place_of_an_edit_costs_what_lies_between_it_and_the_last_one() -> None:
    """Not what lies before it: typing at the end of a long file must not read the file at each key."""
    buffer = Buffer("some line\n" * 10_000)
    buffer.replace((9_000, 2), (9_000, 2), "x", "utf-16")
    read: list[object] = []

    class Lines(list[str]):
        def __getitem__(self, place: Any) -> Any:
            found = super().__getitem__(place)
            read.extend(found if isinstance(found, list) else [found])
            return found

    buffer.lines = Lines(buffer.lines)
    assert buffer.replace((9_001, 2), (9_001, 2), "y", "utf-16") == (90_013, 90_013, 90_014)
    assert len(read) < 20


def test_thousands_of_changes_at_once_are_not_recorded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would be counted from the one before it, and merged with all of them, on the event loop."""
    documents = Documents()
    documents.open(URI, "python", 1, "ab\n" * 5_000)
    recorded: list[Any] = []
    then = Changes.then

    def noted(own: Changes, *edit: int) -> Changes:
        recorded.append(edit)
        return then(own, *edit)

    monkeypatch.setattr(Changes, "then", noted)
    monkeypatch.setattr(Buffer, "_offset", None)
    lines = [(7 * n) % 5_000 for n in range(3_000)]
    documents.change(URI, 2, [(((line, 1), (line, 1)), "x") for line in lines])
    assert recorded == [(0, 15_000, 18_000)]
    document = documents.snapshot(URI)
    assert document is not None and document.data.count(b"x") == 3_000
    check_history(documents)


# -- the same on pygls' workspace, so that these tests are known to bite


def by_pygls(text: str, position: Position, new: str) -> str:
    workspace = Workspace(None, lsp.TextDocumentSyncKind.Incremental)
    workspace.put_text_document(lsp.TextDocumentItem(URI, "python", 1, text))
    at = lsp.Position(*position)
    change = lsp.TextDocumentContentChangePartial(lsp.Range(at, at), new)
    workspace.update_text_document(lsp.VersionedTextDocumentIdentifier(2, URI), change)
    return workspace.get_text_document(URI).source


@pytest.mark.parametrize(
    ("text", "position"), [("a\fb\nsecond", (1, 0)), ("ab\ncd", (1, 9)), ("ab\ncd", (0, 3))]
)
def test_pygls_gets_these_wrong(text: str, position: Position) -> None:
    assert by_pygls(text, position, "X") != spliced(text, (position, position), "X", "utf-16")
    assert edited(text, position, position, "X") == spliced(text, (position, position), "X", "utf-16")


def test_many_changes_may_hold_one_of_the_whole_text() -> None:
    documents, key = Documents(), ((0, 0), (0, 0))
    documents.open(URI, "python", 0, "one\n")
    documents.change(URI, 1, [*[(key, "x")] * 200, (None, "two\n"), (key, "y")])
    document = documents.snapshot(URI)
    assert document is not None and document.data == b"ytwo\n"
    check_history(documents)


def test_many_edits_of_a_long_line_take_little_time() -> None:
    buffer, began = Buffer("é" * 1_000_000), time.thread_time()
    for typed in range(100):
        at, byte = 500_000 + typed, 1_000_000 + typed
        assert buffer.replace((0, at), (0, at), "a", "utf-16") == (byte, byte, byte + 1)
    # On the event loop it took a second.
    assert time.thread_time() - began < 0.7
