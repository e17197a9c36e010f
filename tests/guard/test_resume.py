"""Where a fill breaks: never after nothing, never before the damage, mostly a few tokens after it."""

import re

import pytest

from dg_lsp.guard.site import site_of
from dg_lsp.guard.stitch import find_break, resume_point
from dg_lsp.messages import Infill
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import tokens

PYTHON = ("def f(x):\n    ", "\n\n\ndef g():\n    return 2\n")
BRACES = ("{\n    ", "\n}\n")
# A function's text before and after its body, and a body with brackets of all sorts.
BODIES = {
    "python": (
        *PYTHON,
        "a = [g(x), {'one': x[0]}]\n    for y in a:\n        print(y, (1, 2))\n    return a",
    ),
    "javascript": (
        "function f(x) {\n  ",
        "\n}\n",
        "const a = [g(x), {one: x[0]}];\n  for (const y of a) {\n    log(y, (1 + 2));\n  }\n  return a;",
    ),
    "typescript": (
        "function f(x: number[]): any {\n  ",
        "\n}\n",
        "const a: any[] = [g(x), {one: x[0]}];\n  for (const y of a) {\n    log<string>(y, (1 + 2));\n  }\n  return a;",
    ),
    "tsx": (
        "function F(x: number[]) {\n  ",
        "\n}\n",
        "const a = [g(x), {one: x[0]}];\n  if (a) {\n    log(a, (1 + 2));\n  }\n  return <b id={a[0]}>{f(a)}</b>;",
    ),
    "rust": (
        "fn f(x: &[u32]) -> u32 {\n    ",
        "\n}\n",
        "let a = [g(x), x[0]];\n    for y in a.iter() {\n        log(y, (1 + 2));\n    }\n    a[0]",
    ),
    "go": (
        "package p\n\nfunc f(x []int) int {\n\t",
        "\n}\n",
        "a := []int{g(x), x[0]}\n\tfor _, y := range a {\n\t\tlog(y, (1 + 2))\n\t}\n\treturn a[0]",
    ),
    "c": (
        "int f(int *x)\n{\n    ",
        "\n}\n",
        "int a[2] = {g(x), x[0]};\n    while (y < 2) {\n        log(y, (1 + 2));\n    }\n    return a[0];",
    ),
    "cpp": (
        "int f(const std::vector<int> &x)\n{\n    ",
        "\n}\n",
        "M<int> a = {{g(x), x[0]}};\n    for (auto y : a) {\n        log<int>(y, (1 + 2));\n    }\n    return a[0];",
    ),
    "java": (
        "class A {\n    int f(int[] x) {\n        ",
        "\n    }\n}\n",
        "L<Z> a = f(g(x), x[0]);\n        if (a) {\n            log(y, (1 + 2));\n        }\n        return a.get(0);",
    ),
}


def request(before: str, after: str, language: str = "python", kind: str = "function_body") -> Infill:
    return Infill(before, after, language, kind, indent="    ")  # type: ignore[arg-type]


def lacking_one(language: str, body: str) -> list[tuple[int, str]]:
    """(the place, `body` without it) for each of its brackets and some of its words."""
    data = body.encode()
    found = [t for t in tokens(load_language(language), data, 0, len(data)) if t.kind in ("open", "close")]
    return [(t.start, body[: t.start] + body[t.end :]) for t in found]


@pytest.mark.parametrize("language", BODIES)
def test_the_point_is_never_before_the_damage_and_mostly_near_it(language: str) -> None:
    before, after, body = BODIES[language]
    asked = request(before, after, language)
    assert find_break(asked, body) is None
    far = []
    for damage, text in lacking_one(language, body):
        found = find_break(asked, text)
        if found is None:
            continue
        # The parser stands before the white space in front of the token that could not follow.
        assert found.point >= damage or not text[found.point : damage].strip(), text
        far.append(len(re.findall(r"\w+|[^\w\s]", text[damage : found.point])))
    assert len(far) >= 8, "a body without one of its brackets is broken"
    assert sum(n <= 8 for n in far) >= 0.75 * len(far), far


def test_a_reading_that_fails_while_another_goes_on_is_not_the_place() -> None:
    """The parser gives up a first reading of `a * b` long before the damage."""
    before, after, _ = BODIES["cpp"]
    fill = "a < b > (c);\n    T * x = y;\n    return g(x;"
    found = find_break(request(before, after, "cpp"), fill)
    assert found is not None
    assert found.point >= fill.index("x;", 30)


def test_what_is_broken_before_the_gap_is_not_the_fills_fault() -> None:
    before = PYTHON[0] + "y = (1 1)\n    "
    fill = b"a = 1\n    b = (a a)\n    return b"
    point = resume_point(site_of(request(before, PYTHON[1])), fill)
    assert point is not None
    assert fill[:point] == b"a = 1\n    b = (a"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends_do_not_move_the_point(newline: str) -> None:
    before, after = (text.replace("\n", newline) for text in PYTHON)
    fill = "é = 'ü'\n    b = (a a)\n    return b".replace("\n", newline)
    found = find_break(request(before, after), fill)
    assert found is not None
    assert fill.encode()[: found.point].decode().endswith("b = (a")


def test_a_long_file_after_the_fill_is_not_read_to_its_end() -> None:
    before, after = PYTHON
    long = after + "G = [\n" + "    1,\n" * 1000 + "]\n"
    for fill in ("a = (1 1)\n    return a", "a = 1\n    if a:\n        b = [2\n    return a"):
        near, far = find_break(request(before, after), fill), find_break(request(before, long), fill)
        assert near is not None and far is not None
        assert near.point == far.point
    # That the text is cut there is no fault of the fill.
    assert resume_point(site_of(request(before, long)), b"a = 1\n    return a") is None


def test_what_only_the_interpreter_objects_to_has_its_place() -> None:
    fill = "a = 1\n    b = 2\n        c = 3\n    return c"
    found = find_break(request(*PYTHON), fill)
    assert found is not None
    assert fill[found.statement[0] : found.statement[1]].strip() == "c = 3"


def test_a_bracket_that_nothing_closes_shows_its_line() -> None:
    fill = "a = g(x, [1, 2]\n    b = 2\n    return b"
    found = find_break(request(*PYTHON), fill)
    assert found is not None and found.closed is not None
    assert fill[slice(*found.closed)] == "(x, [1, 2]"
    assert fill[found.statement[0] :].startswith("a = g(")
    assert found.line <= fill.index("return")


def test_the_reach_ends_a_quarter_of_the_fill_after_the_point() -> None:
    fill = "a = (1 1\n" + "    b = 2\n" * 40
    found = find_break(request(*PYTHON), fill.rstrip())
    assert found is not None
    assert found.point <= found.end <= found.point + len(fill) // 4


def test_a_break_counts_from_the_end_of_what_earlier_canvases_wrote() -> None:
    first, second = "é = 1\n    b = 2\n    ", "c = (1 1)\n    return c"
    found = find_break(request(*PYTHON), first + second)
    assert found is not None
    left = found.after(first)
    assert second[: left.point] == "c = (1"
    assert left.statement[0] == 0
    assert found.after(first + second).point == 0
