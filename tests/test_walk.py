"""The tracer that counts the modules of a request, and the most that a request may have."""

import pytest

from dg_lsp.source.document import Document
from tests.walk import walk

# `|` is the cursor.
PYTHON = "def add(a, b):\n    return a + b\n\n\ndef total(items):\n    value = 0\n%s\n    return value\n"
BRACES = "class Shop {\n  total(items: number[]): number {\n    let sum = 0;\n%s\n    return sum;\n  }\n}\n"
CLEAN = {
    "a call": ("python", PYTHON % "    value = add(value, |)", "items[0]"),
    "a blank line": ("python", PYTHON % "    |", "value += 1"),
    "behind an operator": ("python", PYTHON % "    value =| 1", "2"),
    "the end of a line": ("python", PYTHON % "    value += 1|", ""),
    "a blank line between braces": ("typescript", BRACES % "    |", "sum += 1;"),
}
# By language, an unclosed call and the most calls between modules that its gap may take.
UNCLOSED = {
    "python": (PYTHON % "    value = add(value, |", 80),
    "typescript": (BRACES % "    sum = this.add(sum, |", 90),
}
# What lacks an operand is repaired although it parses, and a stub's lines end as those of its file.
LONGER = {
    "an operand that lacks": ("python", PYTHON % "    value = |", "2"),
    "a stub": ("python", PYTHON % "    def inner():\n        |pass", "return 1"),
}


def modules(case: tuple[str, str, str]) -> set[str]:
    """The modules of text that the request goes through."""
    language, text, fill = case
    at = text.index("|")
    document = Document(f"total.{language}", language, 0, text.replace("|", "").encode())
    stages = walk(document, at, fill or "x")
    assert [stage.modules[0] for stage in stages] == [
        "dg_lsp.gaps.find",
        "dg_lsp.context.prompt",
        "dg_lsp.guard.fit",
    ]
    assert all(stage.crossings >= len(stage.modules) for stage in stages)
    # Loading a grammar, which happens once, is no part of the way.
    return {module for stage in walk(document, at, fill or "x") for module in stage.modules}


@pytest.mark.parametrize("name", CLEAN)
def test_a_request_in_a_clean_file_goes_through_few_modules_of_text(name: str) -> None:
    assert len(modules(CLEAN[name])) <= 20


@pytest.mark.parametrize("name", LONGER)
def test_one_that_wants_a_repair_or_a_line_end_goes_through_three_more(name: str) -> None:
    assert len(modules(LONGER[name])) <= 22


@pytest.mark.parametrize("language", UNCLOSED)
def test_the_gap_of_an_unclosed_call_takes_few_calls_between_modules(language: str) -> None:
    text, most = UNCLOSED[language]
    document = Document(f"total.{language}", language, 0, text.replace("|", "").encode())
    walk(document, text.index("|"), "x")
    find, *_ = walk(document, text.index("|"), "x")
    assert find.crossings <= most
