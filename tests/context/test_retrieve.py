"""Retrieved candidates: what follows the same words elsewhere, cut at what stands after the gap."""

import time
from dataclasses import replace

import pytest

from dg_lsp.context.index import Index
from dg_lsp.context.retrieve import MOST, search
from dg_lsp.gaps.find import Gap, find_gap
from dg_lsp.source.document import Document


def texts(marked: str, index: Index | None = None, language: str = "python") -> list[str]:
    """The texts of the candidates at `|` in `marked`, for the rest of what stands there."""
    before, after = marked.split("|")
    document = Document("file:///p/own.py", language, 0, (before + after).encode())
    at = len(before.encode())
    gap = replace(find_gap(document, at, "rest_of_line"), start=at, end=at)
    return [found.text for found in search(document, gap, index or Index()).texts]


def indexed(**files: str) -> Index:
    index = Index()
    for name, text in files.items():
        index.put(f"file:///p/{name}.py", "python", text.encode())
    return index


def test_what_follows_the_same_words_is_found_in_this_document_and_in_others() -> None:
    assert texts("a = load(path)\nb = load(|)\n")[0] == "path"
    assert texts("import os\nb = load(|)\n", indexed(other="c = load(name)\n"))[0] == "name"


def test_the_longest_run_of_words_comes_first_and_then_the_nearest_place() -> None:
    assert texts("x = load(one)\ny = load(two)\nreturn load(three)\ny = load(|)\n")[0] == "two"
    assert texts("y = load(one)\ny = load(two)\ny = load(|)\n")[0] == "two"


def test_a_candidate_ends_where_its_brackets_close_and_the_words_after_the_gap_follow() -> None:
    assert texts("f(g(1), 2)\nf(|, 3)\n")[0] == "g(1)"
    assert texts("f(g(1), 2)\nf(|)\n")[0] == "g(1), 2"
    assert texts("f(g(1), 2)\nf(|\n")[0] == "g(1), 2)"


def test_a_candidate_is_no_part_of_a_string_and_has_no_comment() -> None:
    assert texts("f('a, b', c)  # why\nf(|)\n")[0] == "'a, b', c"
    assert texts("x = 1  # why\nx = |\n") == ["1"]


def test_half_a_word_is_completed_and_lacking_white_space_is_added() -> None:
    before = "first = second\nfirst = sec"
    document = Document("file:///p/own.py", "python", 0, before.encode())
    gap = Gap(len(before), len(before), "rest_of_line", "", endings=("ond",))
    assert search(document, gap, Index()).texts[0].text == "ond"
    assert texts("first = second\nfirst =|\n")[0] == " second"


def test_a_statement_follows_the_line_that_it_follows_elsewhere() -> None:
    marked = "def f():\n    self.open()\n    self.run()\n\ndef g():\n    self.open()\n    |\n"
    assert texts(marked)[0] == "self.run()"


def test_a_text_of_hundreds_of_characters_is_no_candidate() -> None:
    assert texts(f"name = '{'a' * 150}'\nname = |\n") == [f"'{'a' * 150}'"]
    assert texts(f"name = '{'a' * 250}'\nname = |\n") == []


def test_a_header_is_a_statement_only_above_what_is_indented() -> None:
    above = "def f():\n    g()\n    if a:\n        b()\n    g()\n    c()\n\ndef h():\n    g()\n    |\n"
    assert "if a:" not in texts(above + "    return\n")
    assert texts(above + "        return\n")[0] == "if a:"


def test_a_text_of_names_that_the_document_has_comes_first() -> None:
    other = "x = load(stranger)\n" * 3 + "x = load(path)\n"
    assert texts("def f(path):\n    y = 1, load(|)\n", indexed(other=other))[0] == "path"


@pytest.mark.parametrize("count", [1, 40])
def test_a_text_is_there_once_with_its_count_and_there_are_not_too_many(count: int) -> None:
    text = "".join(f"v = load(n{number})\n" * 2 for number in range(count)) + "v = load()\n"
    document = Document("file:///p/own.py", "python", 0, text.encode())
    at = len(text) - 2
    found = search(document, Gap(at, at, "expression", ""), Index()).texts
    assert len({f.text for f in found}) == len(found) == min(count, MOST)
    assert all(f.count == 2 and f.before and f.behind for f in found)


def test_files_of_other_languages_and_the_documents_own_file_are_left_out() -> None:
    index = indexed(own="b = load(self)\n")
    index.put("file:///p/other.js", "javascript", b"b = load(script)\n")
    assert texts("b = load(|)\n", index) == []


def test_an_index_holds_the_newest_text_of_a_file_until_it_is_dropped() -> None:
    index = indexed(other="b = load(old)\n")
    index.put("file:///p/other.py", "python", b"b = load(new)\n")
    assert texts("b = load(|)\n", index) == ["new"]
    index.drop("file:///p/other.py")
    assert (texts("b = load(|)\n", index), len(index), index.bytes) == ([], 0, 0)


def test_an_index_takes_no_more_than_it_has_room_for() -> None:
    index = Index(room=20)
    assert index.put("file:///p/a.py", "python", b"b = load(a)\n")
    assert not index.put("file:///p/b.py", "python", b"b = load(b)\n")
    assert texts("b = load(|)\n", index) == ["a"]


def test_a_hole_in_a_function_gets_no_line_from_outside_of_functions() -> None:
    own = "from enum import Enum\n\n\ndef f(x):\n    total = 0\n    ...\n    return total\n"
    document = Document("file:///p/own.py", "python", 0, own.encode())
    gap = find_gap(document, own.index("..."), "holes")
    other = indexed(other="total = 0\nfrom enum import Flag\n\n\ndef g(x):\n    total = 0\n    total += x\n")
    found = [candidate.text for candidate in search(document, gap, other).texts]
    assert "total += x" in found and not [text for text in found if "import" in text]
    fields = (
        "class A(B):\n    total = 0\n    field = 1\n\n    def g(self):\n        total = 0\n        self.x()\n"
    )
    found = [candidate.text for candidate in search(document, gap, indexed(other=fields)).texts]
    assert "self.x()" in found and "field = 1" not in found
    assert "if x:" not in found


def test_deleted_files_and_folders_are_left_out_and_open_documents_stay() -> None:
    index = Index()
    for name, stamp in (("a/b/c.py", (1,)), ("a/d.py", (1,)), ("ab.py", (1,)), ("a/e.py", None)):
        index.put(f"file:///p/{name}", "python", b"x = 1\n", stamp)
    index.drop_below(["file:///p/%61/b", "file:///p/a/d.py", "file:///p/a/e.py", "file:///q"])
    left = {other.uri: other for other in index.others()}
    assert left.keys() == {"file:///p/ab.py", "file:///p/a/e.py"}
    assert index.bytes == sum(len(other.rows.data) for other in left.values())
    index.drop_below(["file:///p"])
    assert [other.uri for other in index.others()] == ["file:///p/a/e.py"]


def test_thousands_of_deleted_files_are_left_out_in_one_pass() -> None:
    index = Index()
    for n in range(1_000):
        index.put(f"file:///p/kept/{n}.py", "python", b"", (1,))
    began = time.thread_time()
    index.drop_below(f"file:///p/gone/{n}.py" for n in range(8_000))
    # With a pass for each it is many times as much.
    assert time.thread_time() - began < 0.8
    assert len(index) == 1_000
