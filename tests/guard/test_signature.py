"""What a header says of its body: the parameters that are to be named, in each language, and a call of itself."""

import pytest

from dg_lsp.guard.flaws import Signature, signature_of
from dg_lsp.messages import Infill

PARAMETERS = {
    "python": ("def f(self, a, b: int, *args, c: Foo = BAR, d=1, _e=2, **kw) -> X:\n    ", "a b args c d kw"),
    "typescript": (
        "function f(this: X, a: Foo, b?: number, {c}: O = {}, ...d: string[]): void { ",
        "a b c d",
    ),
    "tsx": ("const f = (a: A, b = B) => { ", "a b"),
    "javascript": ("function f(a, b = B, {c}, [d], ...rest) { ", "a b c d rest"),
    "go": (
        "package m\nfunc (s *S) f(ctx context.Context, a, b int, o ...Opt) (n int, err error) { ",
        "ctx a b o",
    ),
    "rust": ("fn f(&self, a: &str, mut b: Vec<Foo>, (c, d): (i32, i32)) -> X { ", "a b c d"),
    "java": ("class A { int f(final Foo a, List<Bar> b, int... c) throws E { ", "a b c"),
    "c": ("static int f(const char *a, struct foo b[], int (*cb)(void *arg)) { ", "a b cb"),
    "cpp": ("int A::f(const std::string &a, std::vector<int> b = {}, T&&... c) const { ", "a b c"),
    "csharp": ("class A { int f(ref Foo a, List<Bar> b = null, params int[] c) { ", "a b c"),
}


def signature(prefix: str, suffix: str = "\n", language: str = "python") -> Signature:
    return signature_of(Infill(prefix, suffix, language, "function_body"))


@pytest.mark.parametrize("language", PARAMETERS)
def test_the_parameters_are_found(language: str) -> None:
    prefix, names = PARAMETERS[language]
    closing = "" if language == "python" else " }" * prefix.count("{ ")
    found = signature(prefix, closing + "\n", language)
    assert found == Signature("f", frozenset(names.split()))


def test_a_parameter_that_the_rest_of_the_body_names_counts_no_more() -> None:
    header = 'def scale(points, by, around):\n    """Scale points by a factor around a point."""\n'
    assert signature(header + "    ").parameters == {"points", "by", "around"}
    assert signature(header + "    origin = around\n    ", "\n    return points\n").parameters == {"by"}


def test_only_the_innermost_function_counts() -> None:
    prefix = "def outer(a):\n    def inner(b):\n        "
    assert signature(prefix, "\n    return inner\n") == Signature("inner", frozenset("b"))
    assert signature("x = 1\n", "\ndef f(a):\n    return a\n") == Signature()
    assert signature_of(Infill("def f(a):\n    return ", "\n", "python", "rest_of_line")) == Signature()


def test_text_that_does_not_parse_has_no_flaws_by_it() -> None:
    assert signature("def f(a, b:\n  ((", ")) @@ class").flaws("pass") == 0


@pytest.mark.parametrize(
    ("body", "flaws"),
    [
        ("return a + b", 0),
        ("return a", 1),
        ("return self.a", 0 + 1),
        ("pass", 2),
        ("return area(a, b)", 1),
        ("return self.area(a, b)", 1),
        ("return area(a)", 2),
        # Another's method, another name, a condition.
        ("return shape.area(a, b)", 0),
        ("return subarea(a, b)", 0),
        ("if a:\n        return area(b)\n    return a", 0),
    ],
)
def test_flaws_are_unnamed_parameters_and_a_mere_call_of_itself(body: str, flaws: int) -> None:
    assert Signature("area", frozenset("ab")).flaws(body) == flaws


def test_an_overload_may_call_another_of_its_name() -> None:
    other = "class A { int f(int a, int b) { return a; } int f(int a) { "
    found = signature(other, " } }\n", "java")
    assert found == Signature("", frozenset("a")) and found.flaws("return f(a, 1);") == 0
