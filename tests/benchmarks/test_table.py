"""The table that changes of the gaps are judged by: places frozen, judged as a user sees them, compared in pairs."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.gaps import user_judge
from benchmarks.gaps.closed import Form, closes_twice, forms, is_bracketed
from benchmarks.gaps.places import Spot, choose, loaded, sampled, saved
from benchmarks.gaps.sources import Corpus
from benchmarks.gaps.table import main
from benchmarks.gaps.user_judge import judged
from dg_lsp.gaps.find import Gap
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from tests.benchmarks.test_gaps import PYTHON

TEXT = "def f(a):\n    x = g(a, 1)\n    return x\n"
# `x = g(a, 1)` cut after the `a`.
CUT = Spot(
    id="python-d3-arguments-0",
    language="python",
    scenario="d3",
    file="",
    changes=((21, 25, ""),),
    own=1,
    at=21,
    back=0,
    kinds=("arguments", "rest_of_line"),
    span=None,
    ends=(24, 25),
    body=(14, 38),
)


def how(monkeypatch: pytest.MonkeyPatch, gap: Gap, spot: Spot = CUT, *, asked: bool = False) -> str:
    """What is wrong with `gap` at `spot` in the eyes of the judge."""

    def find_gap(document: Document, offset: int, kind: str | None) -> Gap:
        return gap

    monkeypatch.setattr(user_judge, "find_gap", find_gap)
    without, body = judged(spot, TEXT, ["typing"])
    return body.how if asked else without.how


def test_a_gap_at_the_cursor_that_the_missing_text_fits_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not how(monkeypatch, Gap(21, 21, "arguments", "", insert_after=")"))
    assert not how(monkeypatch, Gap(21, 21, "arguments", ""))


@pytest.mark.parametrize(
    ("gap", "wrong"),
    [
        (Gap(20, 21, "arguments", "", insert_after=")"), "typed text in the gap"),
        (Gap(21, 27, "arguments", "", insert_after=")"), "text behind in the gap"),
        (Gap(14, 14, "arguments", ""), "not at the cursor"),
        (Gap(21, 21, "expression", "", insert_after=")"), "kind expression"),
        (Gap(21, 21, "arguments", "", insert_after="))"), "does not fit"),
        (Gap(21, 21, "arguments", "", insert_before=" if ", insert_after=")"), "does not fit"),
    ],
)
def test_what_a_user_should_not_get_is_told(gap: Gap, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert how(monkeypatch, gap) == wrong


def test_a_body_asked_for_is_right_only_between_its_ends_and_where_it_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not how(monkeypatch, Gap(14, 34, "function_body", "    "), asked=True)
    assert how(monkeypatch, Gap(16, 34, "function_body", "    "), asked=True) == "start late"
    assert how(monkeypatch, Gap(14, 21, "function_body", "    "), asked=True) == "end early"
    # One step of indentation too much.
    assert (
        how(monkeypatch, Gap(14, 34, "function_body", "    ", insert_before="    "), asked=True)
        == "does not fit"
    )


def test_a_stub_may_be_replaced_although_nobody_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = replace(
        CUT, changes=((14, 38, "pass"),), at=38, kinds=("function_body",), span=(14, 38), ends=(38,)
    )
    assert not how(monkeypatch, Gap(14, 18, "function_body", "    "), stub)


def test_places_are_the_same_after_a_file_and_are_judged_in_each_of_their_conditions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = Corpus(load_language("python"), (PYTHON,))
    files, spots = choose(corpus, 90, 1)
    assert (files, spots) == choose(corpus, 90, 1)
    saved(tmp_path / "places.json", files, spots)
    assert loaded(tmp_path / "places.json") == (files, spots)
    assert sampled(spots, 5) == sampled(list(reversed(spots)), 5)
    assert main(["judge", str(tmp_path / "places.json"), str(tmp_path / "table.json"), "--show", "1"]) == 0
    records = json.loads((tmp_path / "table.json").read_text())
    assert {r["condition"] for r in records} == {"typing", "disk", "editor"}
    assert {r["asked"] for r in records} == {"", "function_body"}
    assert sum(r["right"] for r in records) > 0.8 * len(records)
    said = capsys.readouterr().out
    for condition in ("typing", "disk", "editor"):
        found = [r for r in records if r["condition"] == condition]
        share = 100 * sum(r["right"] for r in found) / len(found)
        assert re.search(rf"^python +{condition} +{len(found)} +{share:.1f}", said, re.MULTILINE)
        wrong = [r for r in found if not r["right"]]
        assert said.count(f": {condition}: ") == bool(wrong) and all(r["how"] in said for r in wrong[:1])


def test_places_with_opened_brackets_are_chosen_alone() -> None:
    files, spots = choose(Corpus(load_language("python"), (PYTHON,)), 60, 1, is_bracketed)
    assert len(spots) > 30 and all(s.own == len(s.changes) for s in spots)
    assert all(is_bracketed(spot, files[spot.file].encode()) for spot in spots)


@pytest.mark.parametrize(
    ("language", "quoted", "missing", "fill", "twice"),
    [
        ("typescript", "`a ${b ? c : `'${d", (b")",), "e}`}`)", False),
        ("typescript", "`a ${b ? c : `'${d", (), "e}`}`)", True),
        ("javascript", "/.{1,6", (), "4}/g", False),
        ("javascript", "/.{1,6", (), "4}/g)", True),
        ("java", '"a', (b")",), '(")', False),
    ],
)
def test_strings_and_regular_expressions_are_read_from_where_they_begin(
    language: str, quoted: str, missing: tuple[bytes, ...], fill: str, twice: bool
) -> None:
    form = Form(b"", b"", b"", (), (), missing, quoted.encode())
    assert closes_twice(language, form, fill.encode()) == twice


def test_a_form_knows_the_outermost_string_and_the_regular_expression_at_its_cursor() -> None:
    for text, cursor, begins in (
        ("f(`a ${`b ${c + d}`}`);\n", b" + d", "`a"),
        ("f(/.{1,64}/g);\n", b"4}", "/"),
    ):
        data = text.encode()
        at = data.index(cursor)
        spot = replace(CUT, language="javascript", at=at, changes=((at, data.index(b";"), ""),), ends=())
        found = forms(spot, data)
        assert found is not None
        assert [form.quoted for form in found] == [data[data.index(begins.encode()) : at]] * 2
        assert [form.missing for form in found] == [(b")",), ()]


@pytest.mark.parametrize(
    ("language", "before", "missing", "fill", "twice"),
    [
        ("java", "f(", (b")",), "a)", False),
        ("java", "f(", (), "a)", True),
        ("java", "f(g(", (b")",), "a))", True),
        ("java", "return (List<Stri", (), "ng>) names.clone(", False),
        ("java", "return (List<Stri", (), "ng>) names[", True),
        ("csharp", '$"{g(', (b"}", b")"), "a)}", False),
    ],
)
def test_a_bracket_that_stands_twice_is_told(
    language: str, before: str, missing: tuple[bytes, ...], fill: str, twice: bool
) -> None:
    form = Form(before.encode(), b"", b"", (), (), missing, b"")
    assert closes_twice(language, form, fill.encode()) == twice


def test_braces_in_an_interpolated_string_are_brackets() -> None:
    data = b'class A { string F() { return $"a {G(b)}."; } }'
    at = data.index(b"b)}")
    spot = replace(CUT, language="csharp", at=at, changes=((at, data.index(b" }", at), ""),), ends=())
    both = forms(spot, data)
    assert both is not None and both[1].closers == b')}"'
    # As in a template of TypeScript, what the string has opened is read with the string.
    assert both[0].missing == () and both[0].quoted == b'$"a {G('


def test_two_tables_are_compared_place_by_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = {
        "id": "a",
        "language": "go",
        "condition": "disk",
        "asked": "",
        "right": True,
        "ms": 1.0,
        "how": "",
    }
    other = record | {"right": False, "ms": 2.0, "how": "no gap"}
    for name, records in (
        ("one.json", [record, other | {"id": "b"}]),
        ("two.json", [other, record | {"id": "b"}]),
    ):
        (tmp_path / name).write_text(json.dumps(records))
    assert main(["compare", str(tmp_path / "one.json"), str(tmp_path / "two.json"), "--show", "3"]) == 0
    told = capsys.readouterr().out
    row = next(line.split() for line in told.splitlines() if line.startswith("disk") and "(none)" in line)
    assert row[3:9] == ["2", "50.00", "50.00", "+0.00", "1", "1"]
    assert "a disk : no gap" in told
