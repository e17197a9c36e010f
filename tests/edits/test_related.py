"""What was edited as hunks, the words that may be in them, and the lines that share the most telling ones."""

import pytest

from benchmarks.next_edit import Hunk as Edit
from benchmarks.next_edit import Player, Scenario
from dg_lsp.edits.related import hunks_of, related_lines
from dg_lsp.messages import Hunk
from dg_lsp.source.document import Document

NUMBERS = "".join(f"line {number}\n" for number in range(40))


def hunks(text: str, *edits: Edit, others: tuple[str, ...] = ()) -> tuple[Hunk, ...]:
    player = Player(Scenario("", {"a.py": text}, (), None, ()))
    for edit in edits:
        player.type(edit)
    document = player.now("a.py")
    beside = [Document(f"file:///{n}.py", "python", 0, other.encode()) for n, other in enumerate(others)]
    return hunks_of(document, player.documents.bursts(document.uri), beside)


def edit(old: str, *new: str) -> Edit:
    return Edit("a.py", 0, (old,), new)


def test_the_newest_edit_comes_last_and_the_others_in_the_order_of_the_file() -> None:
    found = hunks(NUMBERS, edit("line 30", "30 line"), edit("line 9", "9 line"), edit("line 20", "20 line"))
    assert [hunk.added for hunk in found] == ["9 line\n", "30 line\n", "20 line\n"]
    assert (found[0].line, found[0].above) == (8, "line 7\nline 8\n")


def test_edits_of_neighbouring_lines_are_one_hunk() -> None:
    (found,) = hunks(NUMBERS, edit("line 9", "9 line"), edit("line 10", "10 line"))
    assert (found.removed, found.added) == ("line 9\nline 10\n", "9 line\n10 line\n")


def test_lines_that_were_only_put_in_are_followed_by_none_but_are_a_hunk_of_the_next_edit() -> None:
    put_in = edit("line 9", "line 9", "new 9")
    assert hunks(NUMBERS, put_in) == ()
    found, _ = hunks(NUMBERS, put_in, edit("line 30", "30 line"))
    assert (found.above, found.removed, found.added) == ("line 8\nline 9\n", "", "new 9\n")


def test_an_edit_of_many_lines_is_not_followed_and_older_ones_are_left_out() -> None:
    long = edit("line 9", *(f"new {number}" for number in range(20)))
    assert hunks(NUMBERS, long) == ()
    assert [hunk.added for hunk in hunks(NUMBERS, long, edit("line 30", "30 line"))] == ["30 line\n"]


@pytest.mark.parametrize(
    ("others", "removed"), [((), "connect(…, port)\n"), (("secret_host",), "connect(secret_host, port)\n")]
)
def test_a_word_that_is_in_no_open_file_any_more_is_in_no_hunk(others: tuple[str, ...], removed: str) -> None:
    text = "connect(secret_host, port)\nconnect(1, port)\n"
    (found,) = hunks(text, edit("connect(secret_host, port)", "acquire(port)"), others=others)
    assert found.removed == removed


def test_lines_that_share_rare_words_come_first() -> None:
    text = "self.total = rate\nself.name = 1\nself.note = 2\nprint(self.old_rate)\nself.x = rate\n"
    made = hunks(text, edit("self.total = rate", "self.total = rate * 2"))
    document = Document("file:///a.py", "python", 0, text.replace("rate\n", "rate * 2\n", 1).encode())
    found = related_lines([document], made)
    assert [one.hunk.removed.strip() for one in found][:2] == ["self.x = rate", "print(self.old_rate)"]
    assert {one.document for one in found} == {document}
    data = document.data
    assert [data[one.start : one.end].decode() + "\n" for one in found] == [one.hunk.removed for one in found]


def test_a_new_element_leads_to_the_lines_of_the_one_above_it() -> None:
    text = "RED = 1\nGREEN = 2\n\nnames = {\n    RED: 'red',\n}\nother = 2\n"
    made = Hunk("a.py", 1, "", "RED = 1\n", "", "GREEN = 2\n", "\n")
    found = related_lines([Document("file:///a.py", "python", 0, text.encode())], [made])
    assert {one.hunk.removed for one in found} == {"RED = 1\n", "    RED: 'red',\n"}
