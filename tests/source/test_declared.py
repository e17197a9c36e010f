"""A name that a block may declare once is not declared again in it."""

import pytest

from dg_lsp.guard.check import faults_of
from dg_lsp.messages import Infill

SCRIPT = ("function f(b) {\n  const a = 1;\n  ", "\n  let d = a;\n  return d;\n}\n")
PLACES = {
    "javascript": SCRIPT,
    "typescript": SCRIPT,
    "tsx": SCRIPT,
    "go": ("package p\n\nfunc f(b int) int {\n\ta := 1\n\t", "\n\td, err := g()\n\treturn a\n}\n"),
    "java": (
        "class A {\n  int f(int b) {\n    int a = 1;\n    ",
        "\n    int d = a;\n    return d;\n  }\n}\n",
    ),
    "csharp": (
        "class A {\n  int F(int b) {\n    int a = 1;\n    ",
        "\n    var d = a;\n    return d;\n  }\n}\n",
    ),
    "c": ("int f(int b) {\n  int a = 1;\n  ", "\n  int *d = &a;\n  return a;\n}\n"),
    "cpp": ("int f(int b) {\n  auto a = 1;\n  ", "\n  int *d = &a;\n  return a;\n}\n"),
}
AGAIN = {
    "javascript": ("const a = 2;", "let d = 1;", "const {a} = b;", "class a {}", "const [a, d] = b;"),
    "typescript": ("const a: number = 2;", "let d = 1;"),
    "tsx": ("const a = <p />;",),
    "go": ("a := 2", "var a int", "const d = 1", "a, d := 1, 2", "var (\n\t\ta int\n\t)"),
    "java": ("int a = 2;", "final var d = 3;"),
    "csharp": ("int a = 2;", "var d = 3;"),
    "c": ("int a = 2;", "char **d;"),
    "cpp": ("int a{2};", "std::string d;"),
}
OTHER = {
    "javascript": (
        "const c = 2;",
        "const {a, e} = b;",
        "if (b) { const a = 2; }",
        "const g = () => { const a = 1; };",
    ),
    "typescript": ("const c: number = 2;", "for (const a of b) { g(a); }"),
    "tsx": ("const c = <p a={a} />;",),
    "go": (
        "a, c := 1, 2",
        "_, _ = a, b",
        "if a := 1; a > 0 {\n\t\tg()\n\t}",
        "a = 2",
        "h := func() { a := 2; g(a) }",
    ),
    "java": ("int c = 2;", "Runnable r = () -> { int e = 1; };", "a = 2;"),
    "csharp": ("int c = 2;", "a = 2;"),
    "c": ("int c = 2;", "struct a x;", "for (int a = 0;;) {}"),
    "cpp": ("auto c = 2;", "auto g = [&](int a) { int b = a; return b; };"),
}


@pytest.mark.parametrize(("language", "fill"), [(name, fill) for name in AGAIN for fill in AGAIN[name]])
def test_a_name_is_not_declared_again_in_its_block(language: str, fill: str) -> None:
    (fault,) = faults_of(Infill(*PLACES[language], language, "statement"), fill)
    assert fault.message.startswith("a name that is there already")


@pytest.mark.parametrize(("language", "fill"), [(name, fill) for name in OTHER for fill in OTHER[name]])
def test_another_name_or_another_block_is_free(language: str, fill: str) -> None:
    assert not faults_of(Infill(*PLACES[language], language, "statement"), fill)


def test_a_file_that_declares_a_name_twice_already_is_filled() -> None:
    before, after = PLACES["java"]
    infill = Infill(before + "int d = 2;\n    ", after, "java", "statement")
    assert not faults_of(infill, "int e = d;")
