"""What is kept from above a cut: it makes the rest stand in its place, in every style, and stays while one types."""

import ast
import random

import pytest

from dg_lsp.context.outline import ITEM, WHOLE, outline
from dg_lsp.context.prompt import shortened
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import line_start
from tests.guard.faulty import faults

PYTHON = b'''\
"""What the module says."""
import os
from typing import (
    Any,
    NoReturn,
)

LIMITS = [
    1,
    2,
    3,
]


@decorated(
    "twice",
)
class Shape(Base):
    """What the class says."""

    sides = 4

    def other(self):
        return 0

    @property
    def area(
        self,
        unit: int = 1,
    ) -> int:
        """The area.

        At some length.
        """
        total = 0
        if unit > 1:
            total += 1
        elif unit:
            total += 2
        else:
            for side in self.sides:
                total += side
                print(total)
        try:
            total += 3
        finally:
            print(total)
        return total


def after(x):
    return x
'''

TYPESCRIPT = b"""\
import { a } from "a";
import {
  b,
} from "b";

export class Shape<T> extends Base {
  sides = 4;

  /**
   * The area.
   *
   * At some length.
   */
  area(
    unit: number,
  ): number {
    let total = 0;
    if (unit > 1) {
      total += 1;
    } else {
      this.sides.forEach((side) => {
        total += side;
        print(total);
      });
    }
    switch (total) {
      case 1:
        print(total);
        break;
    }
    return total;
  }
}

function after(x: number) {
  return [
    x,
    x,
  ];
}
"""


def kept(language: str, text: bytes, line: bytes, budget: int = 2_000) -> str:
    """What is kept where `text` is cut before the line that holds `line`."""
    at = line_start(text, text.index(line))
    found = outline(load_language(language), text, at, budget)
    assert len(found.kept) <= budget
    return found.kept.decode()


def test_imports_headers_and_signature_are_kept() -> None:
    assert (
        kept("python", PYTHON, b"print(total)")
        == """\
import os
from typing import (
    Any,
    NoReturn,
)
@decorated(
    "twice",
)
class Shape(Base):
    @property
    def area(
        self,
        unit: int = 1,
    ) -> int:
        if unit > 1:
            pass
        else:
            for side in self.sides:
"""
    )
    assert (
        kept("typescript", TYPESCRIPT, b"print(total)")
        == """\
import { a } from "a";
import {
  b,
} from "b";
export class Shape<T> extends Base {
  area(
    unit: number,
  ): number {
    if (unit > 1) {
    } else {
      this.sides.forEach((side) => {
"""
    )


def test_what_holds_no_statements_shows_by_its_first_line() -> None:
    assert kept("python", PYTHON[: PYTHON.index(b"]\n")], b"    2,\n").endswith(")\nLIMITS = [\n")
    text = PYTHON[: PYTHON.index(b"length")]
    assert kept("python", text, b"At some").endswith('    ) -> int:\n        """The area.\n')
    text = TYPESCRIPT[: TYPESCRIPT.index(b"  ];")]
    assert kept("typescript", text, b"    x,\n").endswith("function after(x: number) {\n  return [\n")


def test_the_cut_waits_for_the_next_statement() -> None:
    language = load_language("python")
    at = PYTHON.index(b"        At some length")
    # It is the docstring's own statement that the cut is in; the next one is within what is looked at, or it is not.
    found = outline(language, PYTHON, at, 2_000)
    assert PYTHON[found.cut :].startswith(b"        total = 0") and b") -> int:" in found.kept
    near = outline(language, PYTHON[: PYTHON.index(b"        total = 0")], at, 2_000)
    assert near.cut == at and near.kept.endswith(b'"""The area.\n')
    # A comment is none: after it an `else` may come.
    text = b"def f(x):\n    if x:\n        y = [\n            1]\n        # Why.\n    else:\n        z = 2\n"
    found = outline(language, text, text.index(b"            1]"), 200)
    whole = found.kept + text[found.cut :]
    assert whole == b"def f(x):\n    if x:\n        pass\n    else:\n        z = 2\n"


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_what_is_kept_and_the_rest_parse_wherever_the_cut_is(newline: bytes) -> None:
    for name, lines in (("python", PYTHON), ("typescript", TYPESCRIPT)):
        language, text = load_language(name), lines.replace(b"\n", newline)
        starts = [n + len(newline) for n in range(len(text) - 1) if text.startswith(newline, n)]
        for at in starts[:-1]:
            found = outline(language, text, at, 2_000)
            whole = found.kept + text[found.cut :]
            assert not language.parse(whole).root_node.has_error, whole.decode()
            if name == "python":
                ast.parse(whole)


def test_it_is_the_same_wherever_the_text_after_the_cut_ends() -> None:
    for name, text, line in (
        ("python", PYTHON, b"@decorated(\n"),
        ("python", PYTHON, b"        total = 0\n"),
        ("typescript", TYPESCRIPT, b"    let total = 0;\n"),
    ):
        at = text.index(line)
        whole = outline(load_language(name), text, at, 2_000)
        assert whole.cut == at
        for end in range(at + len(line), len(text)):
            assert outline(load_language(name), text[:end], at, 2_000) == whole, text[:end].decode()


def test_the_last_imports_have_half_of_the_room_and_headers_the_rest() -> None:
    text = b"".join(b"import module_%d\n" % n for n in range(100)) + PYTHON[PYTHON.index(b"@decorated") :]
    found = kept("python", text, b"total = 0", 600)
    lines = found.splitlines()
    assert lines[0] == "import module_83" and "import module_99" in lines and "    ) -> int:" in lines
    # Headers that do not fit are none.
    assert kept("python", text, b"total = 0", 120).splitlines() == [
        f"import module_{n}" for n in (97, 98, 99)
    ]


def test_broken_text_is_read_by_its_lines() -> None:
    text = b"class A {\n  int f(\n      int x) {\n    try {\n      if (x ==) {\n        g(;\n"
    text += b"      } else {\n        h(1);\n        h(2);\n"
    found = kept("java", text, b"h(2)")
    assert found.startswith("class A {\n") and found.endswith("      } else {\n")
    assert "      if (x ==) {\n" in found and "g(" not in found
    text = b"class A:\n" + b"    x = 1\n" * (max(ITEM, WHOLE) // 10)
    text += b"    def f(\n        x\n    ):\n        if x:\n            y\n"
    assert kept("python", text, b"            y\n") == "class A:\n    def f(\n    ):\n        if x:\n"


def test_only_the_item_round_the_cut_counts_in_a_long_text() -> None:
    functions = [b"def f%d():\n    return (1)\n\n\n" % n for n in range(WHOLE // 20)]
    functions[WHOLE // 40] = b"def f(:\n    return ((1\n\n\n"
    text = b"import os\n" + b"".join(functions) + PYTHON[PYTHON.index(b"class Shape") :]
    assert kept("python", text, b"total += side").splitlines()[:3] == [
        "import os",
        "class Shape(Base):",
        "    @property",
    ]


def test_it_stays_while_one_types_below_the_cut_and_differs_for_another_function() -> None:
    language, rng = load_language("python"), random.Random(1)
    functions = b"".join(b"def f%d(x):\n    y = x\n" % n + b"    y += 1\n" * 40 + b"\n\n" for n in range(40))
    before = (b"import os\n" + functions)[: -len(b"    y += 1\n" * 20)]
    seen = set()
    for _ in range(100):
        before += bytes(rng.choice(b" \"'(){}[]:\\#abc\n") for _ in range(3))
        text = shortened(language, before, 4_000)
        assert before.endswith(text[text.index(b"y += 1") :]) and len(text) <= 4_000
        seen.add(text[:500])
    assert len(seen) == 1 and b"import os\ndef f" in seen.pop()
    other = shortened(language, before[: len(before) // 2], 4_000)
    assert other[:10] == b"import os\n" and other[:500] != text[:500]


def test_a_fill_that_leaves_a_function_is_found_though_its_header_is_above_the_cut() -> None:
    before = b"import os\n\n\ndef f(x):\n    for a in x:\n" + b"        y += 1\n" * 100 + b"        "
    text = shortened(load_language("python"), before, 600).decode()
    found = [
        faults("python", "function_body", text, fill, "\n\n\nz = 1\n")
        for fill in ("y = 2\n    return y", "y = 2\n   return y")
    ]
    assert text.startswith("import os\ndef f(x):\n    for a in x:\n        y += 1\n")
    assert not found[0] and found[1]


@pytest.mark.parametrize("language", ["python", "typescript", "java", "rust", "c"])
def test_no_text_is_too_broken(language: str) -> None:
    rng = random.Random(2)
    pieces = (
        b"{",
        b"}",
        b"(",
        b")",
        b'"',
        b"'",
        b'"""',
        b"/*",
        b"*/",
        b"`${",
        b"\n",
        b"\r\n",
        b"    ",
        b"if x:",
        b"def f(",
        b"\xc3\xa9",
        b"\\\n",
        b"class A {",
        b"#",
        b"import os\n",
    )
    for _ in range(60):
        text = b"".join(rng.choice(pieces) for _ in range(rng.randrange(300)))
        for limit in (1, 40, 200):
            short = shortened(load_language(language), text, limit)
            assert len(short) <= max(limit, 0) or len(text) <= limit
            short.decode()
