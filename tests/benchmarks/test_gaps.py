"""The truth of valid files, and the damage that the measurements of gaps do to them."""

from pathlib import Path

import pytest

from benchmarks.gaps.case import Change, alone, behind_comments, is_right, moved, replayed
from benchmarks.gaps.place import Place, Truth
from benchmarks.gaps.scenarios import Scenario, cases, scenarios_of
from benchmarks.gaps.sources import Corpus, find_corpus, parse_sources
from benchmarks.gaps.truth import truth_of, unquoted
from benchmarks.gaps.valid import is_valid
from dg_lsp.settings import UsageError
from dg_lsp.source.language import load_language

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
    found = list(cases(corpus_of(name), scenario, kind, 6, 1))
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
        [(c.data, c.cursor) for c in cases(corpus, scenario, "function_body", 8, seed)] for seed in (1, 1, 2)
    )
    assert first == second != third


def test_a_language_without_sources_says_what_mends_it(tmp_path: Path) -> None:
    corpus = find_corpus("typescript", {}, 5, 0)
    assert not corpus.valid and "--source typescript=DIR" in corpus.missing
    (tmp_path / "shape.ts").write_bytes(TYPESCRIPT)
    (tmp_path / "broken.ts").write_bytes(TYPESCRIPT.replace(b"{", b"(", 1))
    found = find_corpus("typescript", parse_sources([f"typescript={tmp_path}"]), 5, 0)
    assert found.valid == (TYPESCRIPT,) and len(found.broken) == 1 and not found.missing
    with pytest.raises(UsageError, match="is no LANGUAGE=DIR"):
        parse_sources(["klingon=/"])


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
def test_a_body_that_is_cut_down_to_comments_begins_after_them(left: str, wanted: int) -> None:
    before = "def f():\n    "
    span = len(before), len(before + left)
    assert behind_comments(load_language("python"), (before + left).encode(), span) == len(before) + wanted


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_statements_of_python_are_found_whatever_ends_a_line(end: bytes) -> None:
    data = end.join((b"a = 1", b"if a:", b"    b = 2", b""))
    found = {data[p.start : p.end] for p in truth_of(load_language("python"), data).of("statement")}
    assert b"b = 2" in found
