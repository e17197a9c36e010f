"""What of a broken fill can still be shown: whole statements that parse, the longest such beginning."""

from typing import Any

import pytest

from dg_lsp.guard.stitch import shorten
from dg_lsp.messages import Infill
from tests.guard.faulty import faults

PYTHON = ("def f(x):\n    ", "\n\n\ndef g():\n    return 2\n")
SCRIPT = ("function f(x) {\n  ", "\n}\n\nfunction g() {\n  return 2;\n}\n")
RUST = ("fn f(x: u32) -> u32 {\n    ", "\n}\n")
C = ("int f(int *x)\n{\n\t", "\n}\n")


def request(sides: tuple[str, str], language: str, **more: Any) -> Infill:
    return Infill(
        *sides, language, more.pop("kind", "function_body"), indent=more.pop("indent", "    "), **more
    )


CASES = {
    "the broken statement and what follows goes": (
        request(PYTHON, "python"),
        "a = x + 1\n    b = a\n    c = (b\n    return c",
        "a = x + 1\n    b = a",
    ),
    "a block stays as far as it is whole": (
        request(PYTHON, "python"),
        "a = 1\n    for y in x:\n        print(y)\n        print(y\n    return a",
        "a = 1\n    for y in x:\n        print(y)",
    ),
    "a header alone is no statement": (
        request(PYTHON, "python"),
        "a = 1\n    while a:\n        print(a",
        "a = 1",
    ),
    "an if whose else is broken is not whole": (
        request(PYTHON, "python"),
        "a = 1\n    if a:\n        b = 2\n    else:\n        b = (",
        "a = 1",
    ),
    "a try without its end is none": (
        request(PYTHON, "python"),
        "a = 1\n    try:\n        b = 2\n    except ((:\n        pass",
        "a = 1",
    ),
    "a comment at the end goes, too": (
        request(PYTHON, "python"),
        "a = 1\n    # the sum\n    b = a +\n    return b",
        "a = 1",
    ),
    "lines of a string are no statements": (
        request(PYTHON, "python"),
        'a = 1\n    b = """one\n    two\n    """ + (',
        "a = 1",
    ),
    "nothing stays of a broken first statement": (request(PYTHON, "python"), "a = (1\n    b = 2", ""),
    "nothing but a comment is nothing": (request(PYTHON, "python"), "# one\n    a = (", ""),
    "a chain that goes on is no whole statement": (
        request(SCRIPT, "javascript"),
        "const a = 1\n  const b = x\n    .map(1)\n    .each((2)\n  return b",
        "const a = 1",
    ),
    "a call that goes on is no last expression": (
        request(RUST, "rust"),
        "let a = 1;\n    x\n        .max(2)\n        .min((3)",
        "let a = 1;",
    ),
    "a semicolon ends a statement whatever follows": (
        request(C, "c", indent="\t"),
        "int a = 1;\n\t*x = a;\n\t*x = (a;\n\treturn a;",
        "int a = 1;\n\t*x = a;",
    ),
    "a block without its brace is not whole": (
        request(C, "c", indent="\t"),
        "int a = 1;\n\tif (a) {\n\t\ta = 2;\n\t\ta = (3;\n\t}",
        "int a = 1;",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_longest_beginning_of_whole_statements_stays(name: str) -> None:
    asked, fill, kept = CASES[name]
    assert faults(asked.language, asked.kind, asked.prefix, fill, asked.suffix), "the case is broken"
    assert shorten(asked, fill) == kept
    assert not kept or not faults(asked.language, asked.kind, asked.prefix, kept, asked.suffix)


def test_the_line_ends_of_the_file_stay() -> None:
    sides = PYTHON[0].replace("\n", "\r\n"), PYTHON[1].replace("\n", "\r\n")
    fill = "a = 1\r\n    b = 2\r\n    c = ("
    assert shorten(request(sides, "python"), fill) == "a = 1\r\n    b = 2"


@pytest.mark.parametrize("kind", ["rest_of_line", "expression", "arguments", "string"])
def test_of_a_part_of_a_line_nothing_stays(kind: Any) -> None:
    sides = ("def f(x):\n    a = ", "\n    return a\n")
    assert shorten(request(sides, "python", kind=kind), "1\n    b = 2\n    c = (") == ""
