"""What a person must confirm before it is made, and what must not fill a placeholder."""

import pytest

from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import Gap, find_gap, find_gaps, find_span
from dg_lsp.gaps.gap import Edit
from dg_lsp.guard.confirm import doubt, note_of, why_confirm, written_lines
from dg_lsp.messages import Fill, Wanted
from dg_lsp.source.document import Document

PLACEHOLDERS = {
    "python": (
        "def f(x):\n{}    <>\n{}",
        ["pass", "...", "raise NotImplementedError", "raise NotImplementedError('x')", "# so\npass"],
        "y = 1",
    ),
    "rust": ("fn f() {{\n{}    <>\n{}}}\n", ["todo!();", "unimplemented!();"], "g();"),
    "go": ("package a\n\nfunc f() {{\n{}\t<>\n{}}}\n", ['panic("not implemented")', 'panic("TODO")'], "g()"),
    "typescript": (
        "function f() {{\n{}  <>\n{}}}\n",
        ['throw new Error("not implemented");', 'throw new Error("Not implemented: f");'],
        "g();",
    ),
    "java": (
        "class A {{\n  void f() {{\n{}    <>\n{}  }}\n}}\n",
        [
            "throw new UnsupportedOperationException();",
            'throw new UnsupportedOperationException("x");',
        ],
        "g();",
    ),
}


def outcome(language: str, text: str, kind: Wanted, fill: str) -> tuple[str | None, str]:
    """The text that `fill` gives for the first gap of `kind` in `text`, and the reason for none."""
    document = Document("file:///m", language, 1, text.encode())
    gap = find_gaps(document, 0, len(text))[0]
    gap = gap if kind == "function_body" else find_gap(document, gap.start, kind)
    found = finish(document, gap, Fill(fill))
    return (found.edit.text if found.edit else None), found.why


@pytest.mark.parametrize("kind", ["function_body", "holes"])
@pytest.mark.parametrize("language", PLACEHOLDERS)
def test_a_placeholder_for_a_placeholder_is_no_fill(language: str, kind: Wanted) -> None:
    template, placeholders, code = PLACEHOLDERS[language]
    indent = template.partition("<")[0].rpartition("}")[2]
    around = (f"{indent}a = b{';' if code.endswith(';') else ''}\n",) * 2 if kind == "holes" else ("", "")
    for there in placeholders[:4]:
        text = template.format(*around).replace("<>", there)
        for wrote in placeholders:
            assert outcome(language, text, kind, wrote) in (
                (None, "the model wrote the text that is already there"),
                (None, "the model wrote another placeholder"),
            ), (there, wrote)
        assert outcome(language, text, kind, code) == (code, "")


@pytest.mark.parametrize(
    ("language", "text", "line"),
    [
        ("python", "def f(x):\n    y = x\n    ...\n    return y\n", "from dataclasses import field"),
        ("python", "def f(x):\n    y = x\n    pass\n    return y\n", "import os"),
        ("rust", "fn f() {\n    g();\n    todo!();\n    h();\n}\n", "use std::fmt;"),
        ("typescript", "function f() {\n  g();\n  throw new Error('TODO');\n}\n", "import a from 'b';"),
    ],
)
def test_no_import_fills_a_hole_in_a_function(language: str, text: str, line: str) -> None:
    edit, why = outcome(language, text, "holes", line)
    assert edit is None and ("import" in why or "syntax error" in why)


def test_ghost_text_in_an_empty_body_may_be_a_placeholder() -> None:
    document = Document("file:///m", "python", 1, b"def f(x):\n    ")
    found = finish(document, find_gap(document, len(document.data)), Fill("pass"))
    assert found.edit is not None


def gap_in(text: str, kind: Wanted | None = None) -> tuple[Document, Gap]:
    """The gap at `|` in `text`."""
    document = Document("file:///m", "python", 1, text.replace("|", "", 1).encode())
    return document, find_gap(document, text.index("|"), kind)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("pass", 0),
        ("...", 0),
        ('"""Doc."""', 0),
        ('"""Doc."""\n    # why\n    raise NotImplementedError', 0),
        ("# only a comment", 0),
        ("return 1", 1),
        ("# why\n    return 1", 2),
        ('"""Doc."""\n    x = 1\n\n    return x', 2),
        ("x = 1\n    ...", 2),
    ],
)
@pytest.mark.parametrize("above", ["", "@abstractmethod\n"])
def test_the_written_lines_of_a_body_are_counted(body: str, count: int, above: str) -> None:
    document, gap = gap_in(f"{above}def f():\n    {body}|\n", "function_body")
    edit = Edit(gap.start, gap.end, "return None")
    assert written_lines(document, gap) == written_lines(document, gap, edit) == count
    said = f"this replaces {count} written line{'s' if count > 1 else ''}" if count else ""
    assert why_confirm(document, gap, edit, Fill("return None")) == said


def test_what_replaces_written_lines_says_how_likely_it_is_right() -> None:
    document, gap = gap_in("def f():\n    return 1|\n", "function_body")
    edit = Edit(gap.start, gap.end, "return None")
    said = why_confirm(document, gap, edit, Fill("return None", chance=0.629))
    assert said == "this replaces 1 written line, and is right with 62 %"


def test_a_list_that_only_grows_replaces_nothing() -> None:
    document, gap = gap_in("f(a, b|)\n", "arguments")
    for text, count in (("a, b, c", 0), ("z, a, b", 0), ("a, x, b", 0), ("a, c", 1), ("b, a", 1), ("a", 1)):
        assert written_lines(document, gap, Edit(gap.start, gap.end, text)) == count, text


def test_holes_replace_nothing_and_selected_code_is_written() -> None:
    document, gap = gap_in("def f():\n    ...|\n    x = 1\n    ...\n", "holes")
    assert gap.further and not written_lines(document, gap, Edit(gap.start, gap.further[0].end, "y\n    z"))
    selected = find_span(document, document.data.index(b"x ="), document.data.index(b"1") + 1)
    assert written_lines(document, selected, Edit(selected.start, selected.end, "x = 2")) == 1


@pytest.mark.parametrize(
    ("chance", "said"),
    [(None, ""), (0.1, ""), (0.5, ""), (0.0999, "unsure: right with 9 %"), (0.0, "unsure: right with 0 %")],
)
def test_a_fill_that_is_most_likely_wrong_is_unsure(chance: float | None, said: str) -> None:
    document, gap = gap_in("def f():\n    pass|\n", "function_body")
    assert why_confirm(document, gap, Edit(gap.start, gap.end, "return 1"), Fill("x", chance=chance)) == said


def test_the_worst_reason_is_told() -> None:
    document, gap = gap_in("x = |f(a)\n")
    edit, fill = Edit(gap.start, gap.end, "y == "), Fill("y == ", chance=0.0)
    assert why_confirm(document, gap, edit, fill, gap.start) == "this line is finished"
    assert why_confirm(document, gap, edit, fill) == "unsure: right with 0 %"


def test_a_fill_is_doubted_below_the_confidence_and_if_somebody_has_estimated_it() -> None:
    assert doubt(Fill("x", chance=0.12), 0.4) == (
        "the best fill is right with a probability of 12 %, less than confidence (40 %)"
    )
    # What is just below is not said to reach it.
    assert "of 39 %" in doubt(Fill("x", chance=0.399), 0.4)
    assert (
        doubt(Fill("x", chance=0.4), 0.4) == doubt(Fill("x"), 1.0) == doubt(Fill("x", chance=0.0), 0.0) == ""
    )


def test_the_note_of_a_fill_tells_what_is_known_of_it() -> None:
    assert note_of(Fill("x", chance=0.62, source="retrieved")) == "right with 62 %, found in the project"
    assert note_of(Fill("x", source="drafted")) == "written from left to right"
    assert note_of(Fill("x")) == ""
