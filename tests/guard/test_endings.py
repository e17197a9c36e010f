"""Endings: what a text needs after it, found once it is known."""

import pytest

from dg_lsp.guard.endings import endings
from dg_lsp.guard.fit import ended
from dg_lsp.messages import Infill, Kind

JAVA = "class A {\n    int f(int a) {\n        "
BELOW = "\n        return 1;\n    }\n}\n"


def request(language: str, before: str, after: str, kind: Kind = "rest_of_line") -> Infill:
    line = before.rpartition("\n")[2]
    indent = line[: len(line) - len(line.lstrip())]
    return Infill(before, after, language, kind=kind, indent=indent)


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "wanted"),
    [
        ("java", JAVA + "g(", BELOW, "a);", "a);"),
        ("java", JAVA + "g(", BELOW, "a", "a);"),
        ("java", JAVA + "if (", BELOW, "a > 1", "a > 1)"),
        ("java", "class A {\n    int f(", "\n\n    int b;\n}\n", "int a", "int a)"),
        ("java", "interface A {\n    int f(", "\n\n    int g();\n}\n", "int a", "int a);"),
        ("java", "class A {\n    abstract int f(", "\n\n    int b;\n}\n", "int a", "int a);"),
        ("java", "class A {\n    int b = f(", "\n\n    int c;\n}\n", "1", "1);"),
        ("csharp", "class A\n{\n    int F(", "\n\n    int b;\n}\n", "int a", "int a)"),
        ("java", JAVA + "if (", BELOW, "a > 1) {", "a > 1) {\n        }"),
        ("typescript", "function f(a) {\n    if (", "\n    return 1;\n}\n", "a", "a)"),
        ("typescript", "items.map(", "\nconst b = 1;\n", "(x) => {", "(x) => {\n})"),
        ("rust", "struct S;\n\nimpl S {\n    fn f(a: ", "\n}\n", "&str", "&str)"),
        ("rust", "struct S;\n\nimpl S {\n    fn f(a: ", "\n}\n", "&str) -> u8", "&str) -> u8"),
        ("go", "package p\n\nfunc F() ", "\n\nvar x = 1\n", "int", "int"),
        ("go", "package p\n\nfunc F() ", "\n\nvar x = 1\n", "int {", "int {\n}"),
        ("python", "x = sum(", "\ny = 1\n", "xs", "xs)"),
        ("python", "def f():\n    ", "\n    return 1\n", "if x:", "if x:\n        pass"),
        ("python", "x = f(", ", 1)\n", "a", "a"),
        ("python", 'x = f("', "\ny = 1\n", "a", 'a")'),
        ("python", "x = f(", "\ny = 1\n", '"a', '"a'),
        ("java", JAVA + 'g("', BELOW, "a", 'a");'),
        ("go", 'package p\n\nvar a = "', "\n\nvar x = 1\n", "b", 'b"'),
        ("python", "def f(", "\n\nx = 1\n", "a", "a):"),
        ("python", "def f(", "\n\nx = 1\n", "a) -> int:", "a) -> int:"),
        (
            "python",
            "class A:\n    def f(self):\n        g(\n            ",
            "\n\n    x = 1\n",
            "a,",
            "a,\n        )",
        ),
        ("typescript", "f(\n  ", "\n\nconst b = 1;\n", "a,", "a,\n)"),
        ("go", "package p\n\nfunc f() {\n\tg(\n\t\t", "\n}\n", "a,", "a,\n\t)"),
    ],
)
def test_a_text_gets_the_shortest_ending_that_leaves_no_fault(
    language: str, before: str, after: str, text: str, wanted: str
) -> None:
    asked = request(language, before, after)
    assert ended(asked, text) == wanted
    assert ended(asked, wanted) == wanted


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "wanted"),
    [
        ("python", "x = f(", ")\ny = 1\n", "a[0", "a[0]"),
        ("python", "x = f(", ", 1)\ny = 1\n", "g(a", "g(a)"),
        ("go", "package p\n\nfunc f() {\n\tg(", ")\n}\n", "func() {", "func() {\n\t}"),
        ("typescript", "items.map(", ");\n", "(x) => {", "(x) => {\n}"),
        ("java", JAVA + "g(", ");" + BELOW, "h(a", "h(a)"),
        ("java", JAVA + "g(", ");" + BELOW, 'h("a', 'h("a'),
        ("python", 'x = f("', '")\ny = 1\n', "a", "a"),
    ],
)
def test_before_the_rest_of_its_line_a_text_closes_what_it_opens(
    language: str, before: str, after: str, text: str, wanted: str
) -> None:
    kinds: tuple[Kind, ...] = ("string",) if before.endswith('"') else ("rest_of_line", "arguments")
    assert {ended(request(language, before, after, kind), text) for kind in kinds} == {wanted}


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "wanted"),
    [
        ("java", JAVA + "g(", "\n\n    void h() {\n    }\n}\n", "a", "a);"),
        ("java", JAVA + "g(", "\n\n    void h() {\n    }\n}\n", "a);", "a);"),
        ("go", "package p\n\nfunc f() {\n\tif a {\n\t\tg(", "\n\nfunc h() {\n}\n", "b", "b)"),
        ("typescript", "function f() {\n  g('", "\n\nfunction h() {\n}\n", "b", "b')"),
        ("rust", "fn f() {\n    g(h[", "\n\nfn i() {\n}\n", "0", "0])"),
    ],
)
def test_a_text_closes_no_block_of_lines_above_that_nothing_closes(
    language: str, before: str, after: str, text: str, wanted: str
) -> None:
    assert ended(request(language, before, after), text) == wanted


def test_a_text_that_no_ending_helps_gets_none() -> None:
    assert ended(request("java", JAVA, BELOW), "a = ]") == "a = ]"


def test_a_body_and_a_span_get_none() -> None:
    before = "def f():\n    "
    assert ended(request("python", before, "\n", "span"), "g(") == "g("
    assert ended(request("python", before, "\n", "function_body"), "g(") == "g("


@pytest.mark.parametrize("before", ["# ", 'x = """\n'])
def test_no_comment_and_no_string_of_lines_above_is_ended(before: str) -> None:
    assert not list(endings(request("python", before, "\n"), "a"))
