"""Places of whole statements and blocks, and the scores of what is offered at them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.blocks import raw
from benchmarks.blocks.__main__ import rows, table
from benchmarks.blocks.places import Place, places, spans, take_out
from benchmarks.blocks.score import Score, common, row_of, score
from benchmarks.blocks.sources import SETS, SUFFIXES, is_new, packages
from benchmarks.blocks.wire import inserted

PYTHON = """\
def total(items, rate):
    if not items:
        log("nothing")
        return 0
    found = [
        one.price,
        one.tax,
    ]
    return sum(found)
"""
GO = """\
package main

func run(items []string) error {
\tfor _, item := range items {
\t\tif err := load(item); err != nil {
\t\t\treturn err
\t\t}
\t}
\treturn store(
\t\titems,
\t\tnil,
\t)
}
"""
TYPESCRIPT = """\
export class Store {
  load(name: string) {
    if (this.open) {
      return this.found
    } else {
      this.read(name)
    }
    return make({
      name: name,
      open: true,
    })
  }
}
"""
TRUTH = "if not items:\n        return 0"


def taken(text: str, language: str, form: str) -> list[Place]:
    """The places of a form in a text."""
    about = (Path("/w/a"), Path("/w"), language)
    return [take_out(text, one, about) for one in spans(text, language) if one.form == form]


@pytest.mark.parametrize(
    ("text", "language", "form", "expected"),
    [
        (PYTHON, "python", "statement", ["if not items:", "found = ["]),
        (PYTHON, "python", "block", ['log("nothing")']),
        (PYTHON, "python", "brackets", ["one.price,"]),
        (
            GO,
            "go",
            "statement",
            ["for _, item := range items {", "if err := load(item); err != nil {", "return store("],
        ),
        (GO, "go", "block", ["if err := load(item); err != nil {", "return err"]),
        (GO, "go", "brackets", ["items,"]),
        (TYPESCRIPT, "typescript", "statement", ["if (this.open) {", "return make({"]),
        (TYPESCRIPT, "typescript", "block", ["return this.found", "this.read(name)"]),
        (TYPESCRIPT, "typescript", "brackets", ["name: name,"]),
    ],
)
def test_the_places_of_a_file(text: str, language: str, form: str, expected: Sequence[str]):
    found = taken(text, language, form)
    assert sorted(one.truth.partition("\n")[0] for one in found) == sorted(expected)
    for one in found:
        assert f"{one.above}\n{one.indent}{one.truth}{one.below}" == text


@pytest.mark.parametrize(
    ("truth", "word"),
    [
        ("if not items:\n    x", "if "),
        ("self.found = [\n]", "self."),
        ("log(\n)", "log"),
        ("try:\n    x", "try"),
        ("@x", ""),
    ],
)
def test_the_first_word_of_a_statement(truth: str, word: str):
    assert Place("", Path(), Path(), "python", "statement", "", "    ", truth, "").word == word


def test_one_place_of_a_file_and_the_same_ones_each_time(tmp_path: Path):
    for number in range(4):
        (tmp_path / f"a{number}.py").write_text(PYTHON)
    roots = [(tmp_path, sorted(tmp_path.iterdir()))]
    found = list(places(roots, "python", ("block", "brackets"), 1))
    assert [one.form for one in found] == ["block", "brackets"] * 2
    assert len({one.path for one in found}) == 4
    assert found == list(places(roots, "python", ("block", "brackets"), 1))


def test_a_file_without_the_form_whose_turn_it_is_gives_another(tmp_path: Path):
    for number in range(3):
        (tmp_path / f"a{number}.py").write_text("def f(a):\n    if a:\n        return g(a)\n")
    found = list(places([(tmp_path, sorted(tmp_path.iterdir()))], "python", ("brackets", "block"), 0))
    assert [one.form for one in found] == ["block"] * 3
    assert len({one.path for one in found}) == 3


@pytest.mark.parametrize(
    ("offered", "lines", "first", "useful", "whole", "kept", "wrong"),
    [
        ("", 0, False, False, False, 0, 0),
        (TRUTH, 2, True, True, True, 21, 0),
        ("if not items:\n        return 0  \n", 2, True, True, True, 21, 0),
        ("if not items:", 1, True, False, False, 13, 0),
        ("if not items:\n        raise KeyError(name)", 2, True, False, False, 13, 20),
        ("if items:\n        return 0", 2, False, False, False, 0, 17),
        ("if not items:\n        return 1", 2, True, True, False, 21, 0),
    ],
)
def test_the_score_of_a_text(  # noqa: PLR0917
    offered: str, lines: int, first: bool, useful: bool, whole: bool, kept: int, wrong: int
):
    expected = Score(lines, first=first, useful=useful, whole=whole, kept=kept, wrong=wrong)
    assert score(offered, TRUTH) == expected


@pytest.mark.parametrize(
    ("one", "other", "length"), [("", "a", 0), ("abcbdab", "bdcaba", 4), ("same", "same", 4)]
)
def test_common_characters_in_order(one: str, other: str, length: int):
    assert common(one, other) == common(other, one) == length


def test_a_row_counts_the_times_of_shown_texts_and_the_characters_of_all():
    row = row_of([score(TRUTH, TRUTH), score("", TRUTH)], [1.5])
    assert (row.places, row.shown, row.first, row.useful, row.whole) == (2, 1, 1, 1, 1)
    assert (row.lines, row.kept, row.wrong, row.seconds) == (2.0, 10.5, 0.0, (1.5, 1.5))


def test_a_table_puts_the_product_and_the_network_side_by_side():
    case = {"situation": "empty", "language": "go", "offered": "x", "seconds": 1.0}
    case |= {name: getattr(score("x", "x"), name) for name in Score.__slots__}
    reports = [{"asked": name, "cases": [case]} for name in ("coder", "coder, raw")]
    lines = table(reports).splitlines()
    assert [line.split(" | ")[2] for line in lines[2:]] == ["coder", "coder, raw"]
    assert list(rows([case])) == [("empty", "go")]


def test_what_an_item_brings_after_the_cursor():
    before, after = "def f():\n    if ", "\n    return x\n"
    zero, at = {"line": 1, "character": 4}, {"line": 1, "character": 7}
    assert (
        inserted(before, after, {"insertText": "x:\n        y", "range": {"start": at, "end": at}})
        == "x:\n        y"
    )
    assert inserted(before, after, {"insertText": "if x:", "range": {"start": zero, "end": at}}) == "x:"
    assert inserted(before, after, {"insertText": "for x:", "range": {"start": zero, "end": at}}) == ""


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("statement", "if a:\n        b()\n\n        c()\n    d()", "if a:\n        b()\n\n        c()"),
        (
            "statement",
            "if a:\n        b()\n    else:\n        c()\n    d()",
            "if a:\n        b()\n    else:\n        c()",
        ),
        ("statement", "call(\n        a,\n    )\n    d()", "call(\n        a,\n    )"),
        ("statement", "a = 1\n    b = 2", "a = 1"),
        ("block", "a = 1\n    b = 2\nc()", "a = 1\n    b = 2"),
        ("brackets", "a,\n    b,\n)", "a,\n    b,"),
    ],
)
def test_the_text_of_the_network_ends_where_its_statement_or_block_ends(form: str, text: str, expected: str):
    place = Place("", Path(), Path(), "python", form, "", "    ", "", "")
    assert raw.cut(text, place) == expected
    assert raw.ended(text, place)
    assert not raw.ended(expected, place)


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("import os\n", True),
        ("// Copyright (c) 2026, Example.\n", True),
        ("/* Copyright (c) 2013, 2026, Example. */\n", False),
        ("// Code generated by x. DO NOT EDIT.\n", False),
    ],
)
def test_a_file_whose_header_names_an_earlier_year_is_not_new(text: str, new: bool):
    assert is_new(text) == new


@pytest.mark.parametrize("language", SUFFIXES)
def test_no_package_or_folder_of_one_is_in_both_sets(language: str):
    found = [
        {(one.name, folder) for one in packages(name, language) for folder in one.folders or ("",)}
        for name in SETS
    ]
    assert all(found)
    assert not found[0] & found[1]
