"""What `bench --gaps` measures with: the truth of valid files, damage, and checks that can tell wrong from right."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.gaps import cells, judges
from benchmarks.gaps.__main__ import main
from benchmarks.gaps.case import Case, Change, alone, behind_comments, is_right, moved, remembers, replayed
from benchmarks.gaps.cells import Cell, measure
from benchmarks.gaps.fills import holes, spoiled_fills, true_fills
from benchmarks.gaps.place import Place, Truth
from benchmarks.gaps.real import real_fills
from benchmarks.gaps.scenarios import Scenario, scenarios_of
from benchmarks.gaps.shown import is_doubled, shown
from benchmarks.gaps.sizes import joined, measure_sizes
from benchmarks.gaps.sources import Corpus, find_corpus, parse_sources
from benchmarks.gaps.spoil import SPOILS, spoiled
from benchmarks.gaps.truth import truth_of, unquoted
from benchmarks.gaps.valid import is_valid
from dg_lsp.settings import Settings, UsageError
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit
from dg_lsp.text.languages.language import known_languages, load_language
from dg_lsp.text.messages import Fill
from tests.scripts import install

PYTHON = b'''\
"""Shapes."""


class Shape:
    """A shape."""

    def area(self, scale=1):
        """Return the area."""
        total = 0
        for side in self.sides:
            total += side.area(scale, [1, 2])
            print("a side", side)
        if total > 3:
            return total * scale
        else:
            self.seen = True
        return total

    def name(self):
        label = "shape"
        return label.upper()


class Point:
    sides = ()
    names = ["point", "dot"]
'''
TYPESCRIPT = b"""\
export class Shape {
  area(scale: number): number {
    let total = 0;
    for (const side of this.sides) {
      total += side.area(scale, [1, 2]);
      console.log("a side", side); // told
    }
    if (total > 3) {
      return total * scale;
    }
    return total;
  }

  label(): string {
    const text = "shape";
    return text.toUpperCase();
  }
}

interface Point {
  left: number;
  top: number;
}

export function between(first: Point, last: Point): Point {
  return { left: first.left + last.left, top: first.top + last.top };
}
"""
FILES = {"python": PYTHON, "typescript": TYPESCRIPT}


def corpus_of(name: str) -> Corpus:
    return Corpus(load_language(name), (FILES[name],))


def texts(truth: Truth, kind: str) -> list[str]:
    return [truth.data[p.start : p.end].decode() for p in truth.of(kind)]


def test_the_truth_of_python_is_that_of_ast() -> None:
    truth = truth_of(load_language("python"), PYTHON)
    bodies = texts(truth, "function_body")
    assert [b.split("\n")[0] for b in bodies] == ["total = 0", 'label = "shape"']
    assert bodies[1].endswith("return label.upper()")
    assert [b.strip() for b in texts(truth, "block")] == [
        "total += side.area(scale, [1, 2])\n            print(\"a side\", side)",
        "return total * scale",
        "self.seen = True",
    ]  # fmt: skip
    assert texts(truth, "docstring") == ["A shape.", "Return the area."]
    assert "scale, [1, 2]" in texts(truth, "arguments") and "self, scale=1" in texts(truth, "parameters")
    leaves = [truth.data[s.start : s.end] for s in truth.of("statement") if s.leaf]
    assert b"total = 0" in leaves and not any(s.startswith((b"for", b"def", b"class")) for s in leaves)


def test_the_truth_of_braces_lies_between_them() -> None:
    truth = truth_of(load_language("typescript"), TYPESCRIPT)
    assert [b.split("\n")[0] for b in texts(truth, "function_body")] == [
        "let total = 0;",
        'const text = "shape";',
        "return { left: first.left + last.left, top: first.top + last.top };",
    ]
    assert texts(truth, "block")[1] == "return total * scale;"
    assert texts(truth, "class_body")[0].startswith("area(") and texts(truth, "class_body")[0].endswith("}")
    assert "shape" in texts(truth, "string") and "told" in texts(truth, "comment")
    leaves = [truth.data[s.start : s.end] for s in truth.of("statement") if s.leaf]
    assert b"let total = 0;" in leaves and not any(s.startswith((b"for", b"if", b"area")) for s in leaves)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (b'"a"', b"a"),
        (b"'''a'''", b"a"),
        (b'rb"a"', b"a"),
        (b'r#"a"b"#', b'a"b'),
        (b'R"x(a)x"', b"a"),
        (b'u8R"(a)"', b"a"),
        (b"`a`", b"a"),
        (b'"a', None),
        (b"a", None),
    ],
)
def test_quotes_are_taken_off(text: bytes, inside: bytes | None) -> None:
    span = unquoted(text)
    assert (text[slice(*span)] if span else None) == inside


def test_an_offset_moves_with_the_changes_before_it() -> None:
    changes = (Change(10, 20, b"abc"), Change(2, 2, b"xy"))
    assert [moved(changes, at) for at in (0, 2, 3, 10, 15, 20, 25)] == [0, 2, 5, 12, 15, 15, 20]


def some(name: str) -> list[tuple[Scenario, str]]:
    return [(s, kind) for s in scenarios_of(load_language(name).style) for kind in s.kinds]


@pytest.mark.parametrize(
    ("name", "scenario", "kind"),
    [(n, s, k) for n in FILES for s, k in some(n)],
    ids=lambda v: v.name if isinstance(v, Scenario) else v,
)
def test_every_scenario_makes_cases_that_hold_together(name: str, scenario: Scenario, kind) -> None:
    if scenario.name in ("c6", "c7") and name != "python":
        pytest.skip("the language has fewer stubs")
    found = list(cells.cases(corpus_of(name), scenario, kind, 6, 1))
    assert found, "a scenario that makes no cases measures nothing"
    for case in found:
        start, end = case.span
        assert (
            case.kind == kind and 0 <= start <= end <= len(case.data) and 0 <= case.cursor <= len(case.data)
        )
        assert case.data != case.truth.data
        # The edits lead to the same file, and what is right is right.
        assert replayed(case).data == case.data == alone(case).data
        assert is_right(case, case.data, case.span)
        assert (
            not is_right(case, case.data, (max(start - 20, 0), end))
            or not case.data[max(start - 20, 0) : start].strip()
        )
        assert case.acceptable and (case.damaged == (scenario.name[0] == "h"))
        if not case.damaged:
            whole = case.data[:start] + case.text.encode() + case.data[end:]
            # Where nothing but the gap is gone, its text makes the file whole again.
            if scenario.name in ("a1", "a2", "d2", "d4", "e2", "f2"):
                assert is_valid(case.truth.language, whole)


def test_the_same_seed_makes_the_same_cases() -> None:
    scenario = scenarios_of("brace")[0]
    corpus = corpus_of("typescript")
    first, second, third = (
        [(c.data, c.cursor) for c in cells.cases(corpus, scenario, "function_body", 8, seed)]
        for seed in (1, 1, 2)
    )
    assert first == second != third


def test_a_buffer_knows_its_older_text_where_documents_remember() -> None:
    case = next(cells.cases(corpus_of("python"), scenarios_of("indent")[0], "function_body", 1, 0))
    if remembers():
        assert replayed(case).history is not None and alone(case).history is None


def cell(name: str, scenario: str, kind: str, count: int = 12) -> Cell:
    wanted = next(s for s in scenarios_of(load_language(name).style) if s.name == scenario)
    return measure(corpus_of(name), wanted, kind, count, 3)  # type: ignore[arg-type]


def test_a_cell_counts_what_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    find = cells.find_gap
    good = cell("python", "c1", "function_body")
    assert good.alone == good.chosen == good.fits == 1.0 and good.count == 12 and not good.failures
    assert good.p50 <= good.p95 <= good.most

    def off(document, offset, kind=None):
        gap = find(document, offset, kind)
        return replace(gap, start=gap.start - 30, kind="string" if kind is None else gap.kind)

    monkeypatch.setattr(cells, "find_gap", off)
    bad = cell("python", "c1", "function_body")
    assert bad.alone == 0.0 and bad.chosen == 0.0 and bad.fits is None
    assert {(f.column, f.how) for f in bad.failures} >= {("alone", "start early"), ("chosen", "string")}


def test_a_language_without_sources_says_what_mends_it(tmp_path: Path) -> None:
    corpus = find_corpus("typescript", {}, 5, 0)
    assert not corpus.valid and "--source typescript=DIR" in corpus.missing
    (tmp_path / "shape.ts").write_bytes(TYPESCRIPT)
    (tmp_path / "broken.ts").write_bytes(TYPESCRIPT.replace(b"{", b"(", 1))
    found = find_corpus("typescript", parse_sources([f"typescript={tmp_path}"]), 5, 0)
    assert found.valid == (TYPESCRIPT,) and len(found.broken) == 1 and not found.missing
    with pytest.raises(UsageError, match="is no LANGUAGE=DIR"):
        parse_sources(["klingon=/"])


def hole_of(text: str, kind: str) -> tuple[Case, Document, int]:
    """The case whose place is `text` of PYTHON, the document without it, and where it was."""
    truth = truth_of(load_language("python"), PYTHON)
    at = PYTHON.index(text.encode())
    place = next(p for p in truth.of(kind) if p.start == at and p.end == at + len(text))
    case = Case(truth, place, (Change(place.start, place.end, b"pass"),), place.end)
    return case, alone(case), at


@pytest.mark.parametrize(
    ("fill", "faulty", "escapes", "doubled"),
    [
        ("return 1", False, False, False),
        ("return (1", True, False, False),
        ("return 1\n    x = 2", False, True, False),
        ("return 1\nx = 2", False, True, False),
    ],
)
def test_the_checks_of_a_shown_fill_can_tell(fill: str, faulty: bool, escapes: bool, doubled: bool) -> None:
    text = 'label = "shape"\n        return label.upper()'
    case, document, at = hole_of(text, "function_body")
    found = shown(case, "by hand", document, Edit(at, at + 4, fill))
    assert (found.faulty, found.escapes, found.doubled) == (faulty, escapes, doubled) and found.real
    assert not shown(case, "by hand", document, Edit(at, at + 4, "pass")).real


def test_an_escape_from_braces_is_seen() -> None:
    truth = truth_of(load_language("typescript"), TYPESCRIPT)
    place = truth.of("function_body")[1]
    case = Case(truth, place, (Change(place.start, place.end),), place.end)
    for fill, escapes in (
        ("return 'a';", False),
        ("return 'a';\n  }\n  more(): string {\n    return 'b';", True),
    ):
        found = shown(case, "by hand", alone(case), Edit(place.start, place.start, fill))
        # The brace behind closes a method in either; only one of them is the gap's.
        assert not found.faulty and found.escapes == escapes


@pytest.mark.parametrize(
    ("text", "behind", "truth", "doubled"),
    [
        ("a, b)", ")\nnext", "a, b", True),
        ("f(a)", ")\nnext", "f(a)", False),
        ("a\n    b()", "\n\n    b()\n", "a", True),
        ("a\n    b()", "\n\n    b()\n", "a\n    b()", False),
        ("if (x) {\n    }", "\n}\n", "y", False),
        ("a\n}", "\n}\n", "y", True),
        ("if (x) {\n}", "\n}\n", "y", False),
        ("f(a)", ")\n", "a", False),
        ("a;", ";\n", "a", True),
        ("a", "\n", "b", False),
    ],
)
def test_what_stands_twice_is_seen(text: str, behind: str, truth: str, doubled: bool) -> None:
    assert is_doubled(text, behind, truth) == doubled


def test_every_way_to_spoil_changes_the_text() -> None:
    rng = random.Random(0)
    text, behind = "if (a) {\n    b(c)\n    d = 1\n}", "}\nnext line()\nmore"
    for name, spoil in SPOILS.items():
        made = [spoil(text, behind, rng) for _ in range(30)]
        assert any(m not in (None, text) for m in made), name
    assert {spoiled(text, behind, rng)[1] for _ in range(300)} == set(SPOILS)


def test_spoiled_fills_are_counted_and_true_ones_pass() -> None:
    corpus = corpus_of("python")
    made = spoiled_fills(corpus, "function_body", 30, 0)
    assert made.count == 30 and len(made.shown) + len(made.refused) == 30 and made.shown and made.refused
    assert not any(s.faulty or s.escapes or s.doubled for s in made.shown)
    true = true_fills(corpus, "function_body", 10, 0)
    assert true.count == 10 and not true.refused
    assert all(s.text.strip() == s.case.text.strip() for s in true.shown)


def test_a_check_that_lets_everything_pass_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dg_lsp.filling.fill.harm_of", lambda *_: "")
    made = spoiled_fills(corpus_of("python"), "function_body", 30, 0)
    assert any(s.faulty for s in made.shown)


def test_real_fills_take_the_path_of_every_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = install(monkeypatch, "return 7")
    asked = {("python", "function_body"): list(holes(corpus_of("python"), "function_body", 3, 0))}
    (made,) = real_fills(asked, Settings(), lambda _: None)
    assert made.count == 3 and len(made.shown) == 3 and not made.refused and len(installed.requests) == 3
    assert all(s.real and not s.faulty for s in made.shown)
    install(monkeypatch, Fill("", refusal="nothing came"))
    (made,) = real_fills(asked, Settings(), lambda _: None)
    assert [why for _, _, why in made.refused] == ["nothing came"] * 3


def test_holes_are_where_gaps_are_right() -> None:
    for hole in holes(corpus_of("python"), "arguments", 5, 0):
        assert is_right(hole.case, hole.document.data, (hole.gap.start, hole.gap.end))
        assert hole.behind.startswith(")")


def test_a_missing_judge_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judges.judge_of("python").accepts([b"x = 1\n", b"x = = 1\n"]) == [True, False]
    monkeypatch.setattr(judges.shutil, "which", lambda _: None)
    for name in known_languages():
        judge = judges.judge_of(name)
        assert name == "python" or "not installed" in judge.missing or "no judge" in judge.missing


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("c", b"int f(void) { return g; }\n", b"int f(void) { return 1 }\n"),
        ("java", b"class A { B f() { return 1; } }\n", b"class A { int f() { return 1 } }\n"),
        ("rust", b"mod a;\nfn f() -> B { 1 }\n", b"fn f() -> i32 { 1 ) }\n"),
        ("typescript", b"let x: A = b;\n", b"let x: = 1;\n"),
        ("go", b"package a\nfunc f() B { return 1 }\n", b"package a\nfunc f() int { return 1 ) }\n"),
    ],
)
def test_an_installed_judge_tells_syntax_from_meaning(name: str, good: bytes, bad: bytes) -> None:
    judge = judges.judge_of(name)
    if judge.missing:
        pytest.skip(judge.missing)
    assert judge.accepts([good, bad]) == [True, False]


def test_long_files_are_joined_from_whole_ones() -> None:
    data = joined([PYTHON], 300, 0)
    assert data.count(b"\n") >= 300 and is_valid(load_language("python"), data)
    rows = measure_sizes(corpus_of("python"), (200,), 3, 0)
    assert [(r.known, r.count) for r in rows] == [(False, 3), (True, 3)] and all(r.most > 0 for r in rows)


def test_the_command_prints_a_table_for_each_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shape.ts").write_bytes(TYPESCRIPT)
    options = ["--positions", "2", "--only", "a1,c1", "--json", str(tmp_path / "report.json"), "--show", "1"]
    source = ["--source", f"typescript={tmp_path}"]
    assert main(["--languages", "typescript,java", *source, *options]) == 0
    out = capsys.readouterr().out
    assert "typescript: gaps in broken files" in out and "java: skipped, no valid java source" in out
    assert "a1" in out and "alone %" in out and (tmp_path / "report.json").read_text().startswith("{")
    only_fills = ["--only", "fills", "--fills", "12"]
    assert main(["--languages", "typescript", *source, *only_fills]) == 0
    out = capsys.readouterr().out
    assert ("true texts spoiled" in out and "outside judge typescript" in out) or "typescript refuses" in out
    with pytest.raises(UsageError, match="--only knows no a9"):
        main(["--only", "a9"])


@pytest.mark.parametrize("name", ["a1", "a2", "b1", "b2", "b3", "h1", *(f"c{n}" for n in range(1, 8))])
def test_gaps_are_right_in_the_standard_library_while_it_is_typed(name: str) -> None:
    scenario = next(s for s in scenarios_of("indent") if s.name == name)
    found = measure(find_corpus("python", {}, 20, 11), scenario, "function_body", 25, 11)
    assert found.alone is not None and found.alone * 25 >= (22 if name == "h1" else 24), found.failures[:2]


def test_a_place_may_hold_nothing() -> None:
    place = Place("arguments", (0, 2), 1, 1, 1, 1)
    truth = Truth(load_language("python"), b"()", {"arguments": (place,)})
    assert truth.inner("arguments", 1) == place and truth.inner("arguments", 2) is None


@pytest.mark.parametrize(
    ("left", "wanted"),
    [
        ("# one\n    # tw", len("# one\n    # tw")),
        ("# TODO", 0),
        ("# one\n    x = 1", 0),
        ("", 0),
    ],
)
def test_a_body_that_is_cut_down_to_comments_begins_behind_them(left: str, wanted: int) -> None:
    before = "def f():\n    "
    span = len(before), len(before + left)
    assert behind_comments(load_language("python"), (before + left).encode(), span) == len(before) + wanted


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_statements_of_python_are_found_whatever_ends_a_line(end: bytes) -> None:
    data = end.join((b"a = 1", b"if a:", b"    b = 2", b""))
    found = {data[p.start : p.end] for p in truth_of(load_language("python"), data).of("statement")}
    assert b"b = 2" in found
