"""What is offered of a fill whose first characters only are sure."""

from typing import Any

import pytest

from dg_lsp.guard.stitch import sure_beginning
from dg_lsp.messages import Infill
from tests.guard.faulty import faults
from tests.guard.test_shorten import PYTHON, RUST, SCRIPT, C

LINE = ("def f(first, rest):\n    total = ", "\n    return total\n")
CALL = ("def f(first, rest):\n    total = g(", ")\n    return total\n")
SCRIPT_LINE = ("function f(first) {\n  const total = ", ";\n  return total;\n}\n")
GO = ("package a\n\nfunc f(x int) int {\n\ttotal := ", "\n\treturn total\n}\n")
TEXT = ('def f():\n    """', '"""\n    return 1\n')


def of(sides: tuple[str, str], language: str, kind: Any = "rest_of_line") -> Infill:
    return Infill(*sides, language, kind, indent="    ")


# A fill with `|` after what is sure of it, and what is left.
CASES = {
    "a word that is cut goes": (of(LINE, "python"), "first.tot|al(rest)", "first"),
    "a whole word stays": (of(LINE, "python"), "first.total|(rest)", "first.total"),
    "up to a closing bracket": (of(LINE, "python"), "first.total(rest)| + other", "first.total(rest)"),
    "no operator without its operand": (
        of(LINE, "python"),
        "first.total(rest) + |other",
        "first.total(rest)",
    ),
    "an open bracket goes with what it opened": (of(LINE, "python"), "first.total(rest, a|b)", "first.total"),
    "half an expression goes back to one": (of(LINE, "python"), "first if rest |else 1", "first"),
    "a sure fill stays whole": (of(LINE, "python"), "first.total(rest)|", "first.total(rest)"),
    "nothing sure is nothing": (of(LINE, "python"), "|first", ""),
    "a single letter is not worth it": (of(LINE, "python"), "x |+ y", ""),
    "a number is one word": (of(LINE, "python"), "12.|75", ""),
    "a string is whole or not there": (of(LINE, "python"), 'first + "one tw|o"', "first"),
    "the letter before a string is a part of it": (of(LINE, "python"), 'first + f|"one"', "first"),
    "blanks before it stay": (of((LINE[0][:-1], LINE[1]), "python"), " first + |1", " first"),
    "arguments in brackets that are there": (
        of(CALL, "python", "arguments"),
        "first, rest=1|23",
        "first, rest",
    ),
    "a bracket of the gap's own is not closed": (of(CALL, "python", "arguments"), "first) + rest|", "first"),
    "no word is joined with the one behind": (of(("x = ", "second\n"), "python"), "first|", ""),
    "lines of a body": (
        of(PYTHON, "python", "function_body"),
        "a = x + 1\n    return a + b|ig",
        "a = x + 1\n    return a",
    ),
    "no header without its block": (
        of(PYTHON, "python", "function_body"),
        "a = x + 1\n    for y in a|:\n        print(y)",
        "a = x + 1",
    ),
    "a stub is none": (of(PYTHON, "python", "function_body"), "pass| # later", ""),
    "prose ends with a word": (of(TEXT, "python", "docstring"), "Return the su|m.", "Return the"),
    "a comment": (of(("x = 1  # ", "\n"), "python", "comment"), "the first of| them", "the first of"),
    "emoji count as one": (of(LINE, "python"), '"🙂🙂" + fi|rst', '"🙂🙂"'),
    "javascript": (of(SCRIPT_LINE, "javascript"), "first.map((x) => x + 1)|.le", "first.map((x) => x + 1)"),
    "typescript": (of(SCRIPT_LINE, "typescript"), "first as str|ing", "first"),
    "a statement of javascript": (
        of(SCRIPT, "javascript", "function_body"),
        "let y = x;\n  y +|= 1;",
        "let y = x;\n  y",
    ),
    "rust": (of(RUST, "rust", "function_body"), "let y = x;\n    y.po|w(2)", "let y = x;\n    y"),
    "a statement of c ends with its semicolon": (
        of(C, "c", "function_body"),
        "*x = 1;\n\treturn 1|2;",
        "*x = 1;",
    ),
    "go": (of(GO, "go"), "max(x, 1) * tw|o", "max(x, 1)"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sure_beginning_is(case: str) -> None:
    request, marked, left = CASES[case]
    sure = marked.index("|")
    text = marked.replace("|", "", 1)
    assert sure_beginning(request, text, sure) == left


@pytest.mark.parametrize("case", CASES)
def test_every_beginning_is_one_that_adds_no_fault(case: str) -> None:
    request, marked, _ = CASES[case]
    text = marked.replace("|", "", 1)
    for sure in range(len(text) + 2):
        left = sure_beginning(request, text, sure)
        assert text.startswith(left) and len(left) <= sure
        sides = (request.prefix, left, request.suffix)
        assert not left or not faults(request.language, request.kind, *sides)
