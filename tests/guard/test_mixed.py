"""A fill that takes in the statement on the next line, which its writer meant to stay."""

import pytest

from dg_lsp.guard.check import faults_of
from dg_lsp.messages import Infill, Kind

C = ("int f(int b) {\n  int a = 1;\n  ", "\n  b = 2;\n  return a;\n}\n")
SCRIPT = ("function f(b) {\n  const a = 1;\n  ", "\n  // and then\n  foo(a);\n  return a;\n}\n")
RUST = ("fn f() {\n    let a = 1;\n    ", "\n    assert_eq!(a, 2);\n}\n")
GO = ("package p\n\nfunc f(b int) int {\n\ta := 1\n\t", "\n\tfoo(a)\n\treturn a\n}\n")
JAVA = ("class A {\n  int f(int b) {\n    int a = 1;\n    ", "\n    b = 2;\n    return a;\n  }\n}\n")
MEMBERS = ("class A {\n  ", "\n  int a = 1;\n\n  int f() {\n    return a;\n  }\n}\n")
SHARP = ("class A {\n  int F(int b) {\n    ", "\n    b = 2;\n    return b;\n  }\n}\n")
PHP = ("<?php\nfunction f($b) {\n    ", "\n    $b = 2;\n    return $b;\n}\n")
RUBY = ("def f(b)\n  ", "\n  b = 2\n  b\nend\n")
KOTLIN = ("fun f(b: Int): Int {\n    ", "\n    foo(b)\n    return b\n}\n")
LUA = ("local function f(b)\n  ", "\n  foo(b)\n  return b\nend\n")
PYTHON = ("class A:\n    ", "\n    def f(self):\n        return 1\n")
CSS = ("p { a: b }\n", "\n.b { c: d }\n")


def infill(language: str, sides: tuple[str, str], kind: Kind) -> Infill:
    return Infill(*sides, language, kind, indent=sides[0].rpartition("\n")[2])


@pytest.mark.parametrize(
    ("language", "sides", "fills"),
    [
        ("c", C, ("int", "int x =", "x = a +", "return", "(int)", "struct s", "x", "sizeof")),
        ("cpp", C, ("auto x =", "throw", "std::string", "std::cout <<")),
        ("javascript", SCRIPT, ("const x =", "x = a +", "throw", "new", "a ? b :", "x =>", "a.", "!", "let")),
        ("javascript", SCRIPT, ("export", "void", "return a ||")),
        ("typescript", SCRIPT, ("const x =", "a as", "let x: ", "x = a |")),
        ("rust", RUST, ("let", "let x =", "let x = a +", "return", "&", "a..", "move ||", "let x: ")),
        ("go", GO, ("x :=", "x = a +", "go", "defer", "var", "a.", "!")),
        ("java", JAVA, ("int", "int x =", "return", "throw", "assert", "String")),
        ("csharp", SHARP, ("var x =", "return", "await", "String")),
        ("php", PHP, ("$x =", "echo", "return", "throw", "(int)", "yield")),
        ("ruby", RUBY, ("x =", "x = b +", "not", "b &&")),
        ("kotlin", KOTLIN, ("val x =", "x = b +", "throw", "b ?:", "b as")),
        ("shell", ("a=1\n", "\necho $a\n"), ("b \\",)),
        ("swift", ("func f(b: Int) -> Int {\n    ", KOTLIN[1]), ("let x =", "x = b +")),
        ("lua", LUA, ("x =", "local x =", "x = b ..", "b.")),
    ],
)
def test_a_fill_does_not_take_in_the_statement_on_the_next_line(
    language: str, sides: tuple[str, str], fills: tuple[str, ...]
) -> None:
    assert [fill for fill in fills if not faults_of(infill(language, sides, "statement"), fill)] == []


@pytest.mark.parametrize(
    ("language", "sides", "fill"),
    [
        ("java", MEMBERS, "@Inject"),
        ("java", MEMBERS, '@Inject @Named("a")'),
        ("csharp", MEMBERS, "[Obsolete]"),
        ("java", ("class A {\n  ", "\n  public int f() {\n    return 1;\n  }\n}\n"), "@Override"),
        ("python", PYTHON, "@property"),
        ("c", C, "if (a)"),
        ("csharp", SHARP, "if (b)"),
        ("cpp", ("int a;\n", "\nT f(T x) {\n  return x;\n}\n"), "template <typename T>"),
        ("javascript", SCRIPT, "return"),
        ("go", GO, "return"),
        ("go", GO, "b += a"),
        ("rust", ("\n", "\nstruct A;\n"), "#[derive(Debug)]"),
        ("css", CSS, ".a,"),
        ("cpp", ("int main() {\n  ", "\n  {\n    f();\n  }\n  catch (E& e) {\n  }\n}\n"), "try"),
        ("cpp", ("int a;\n", "\n{\n  int b;\n};\n"), "struct A"),
        ("toml", ("[a]\nb = 1\n", "\nc = 2\n"), "[d]"),
        ("c", ("#ifdef A\nint b;\n", "\nint c;\n#endif\n"), "#else"),
        ("java", ("class A {\n  String a =\n    ", '\n    "b" +\n    "c";\n}\n'), '"a" +'),
    ],
)
def test_a_whole_part_may_precede_a_statement(language: str, sides: tuple[str, str], fill: str) -> None:
    assert not faults_of(infill(language, sides, "statement"), fill)


@pytest.mark.parametrize(
    ("language", "before", "fill", "after"),
    [
        ("javascript", "function f(b) {\n  const a = ", "b +", "\n    1;\n  return a;\n}\n"),
        ("go", GO[0] + "b = ", "a +", "\n\t\t1\n\treturn a\n}\n"),
        ("ruby", RUBY[0] + "c = ", "b +", "\n    1\n  c\nend\n"),
        ("shell", "if ", "test -s a", "\nthen\n  b\nfi\n"),
        ("yaml", "a: 1\n", "b:", "\n- c\n"),
    ],
)
def test_a_deeper_line_continues_the_statement_of_the_fill(
    language: str, before: str, fill: str, after: str
) -> None:
    assert not faults_of(infill(language, (before, after), "rest_of_line"), fill)


@pytest.mark.parametrize("fill", ["(g)()", "[1, 2].forEach(g)", "`x`.trim()", "+a", "* a", "? 1 : 2"])
@pytest.mark.parametrize("above", ["const a = b", "const a = b // c", "return g"])
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_a_fill_does_not_continue_the_statement_above(language: str, above: str, fill: str) -> None:
    before, after = f"function f(b) {{\n  {above}\n  ", "\n  g(a)\n}\n"
    assert faults_of(infill(language, (before, after), "statement"), fill)
    assert not faults_of(
        infill(language, (before.replace(above, "const a = b;"), after), "statement"), "(g)()"
    )


@pytest.mark.parametrize(
    ("language", "before", "fill"),
    [
        ("javascript", "function f(b) {\n  g(b)\n  ", ".then(g)"),
        ("javascript", "function f(b) {\n  const a = b\n    ", "+ 1"),
        ("javascript", "function f(b) {\n  if (b) {\n  }\n  ", "(g)()"),
        ("tsx", "function f(b) {\n  return <p>\n    <b>a</b>\n    ", "<i>c</i>"),
        ("rust", "fn f() {\n    if a {\n    }\n    ", "(g)();"),
        ("c", "void f() {\n  g();\n  ", "*a = 1;"),
        ("go", "package p\n\nfunc f() {\n\tg()\n\t", "*a = 1"),
        ("python", "def f():\n    g()\n    ", "[a] = b"),
        ("yaml", "a:\n- b\n", "- c"),
        ("ruby", "def f\n  [1]\n  ", "-b"),
    ],
)
def test_a_text_of_its_own_or_a_deeper_line_is_offered_below(language: str, before: str, fill: str) -> None:
    ends = {"tsx": "\n  </p>\n}\n", "python": "\n", "yaml": "\n", "ruby": "\nend\n"}
    assert not faults_of(infill(language, (before, ends.get(language, "\n}\n")), "statement"), fill)


def test_an_expression_does_not_take_in_the_next_line() -> None:
    before, after = SCRIPT
    assert faults_of(infill("javascript", (before + "const x = ", after), "rest_of_line"), "a +")
    assert not faults_of(infill("javascript", (before + "const x = ", after), "rest_of_line"), "a")
