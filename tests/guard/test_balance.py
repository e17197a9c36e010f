"""Brackets that stand after the gap are never closed again, however broken the text is."""

import pytest

from dg_lsp.guard.fit import fit
from dg_lsp.guard.room import doubled
from dg_lsp.guard.site import Site, site_of
from dg_lsp.messages import Infill, Kind
from dg_lsp.source.language import load_language
from tests.guard.faulty import faults

# The text with the gap, a fill, and what of it may stay.
DOUBLED = {
    "a list": ("python", "def f(a: |)\n", "list[int])", "list[int]"),
    "the header's end with it": ("python", "def f(a: |)\n", "list[int]):", "list[int]"),
    "two brackets": ("python", "if f(a[|])\n", "0]):", "0"),
    "one of two": ("typescript", "if (f(|)\n", "a)) {", "a)"),
    "in an open block": ("java", "class A {\n  void f() {\n    g(|)\n", "a);", "a"),
    "a brace": ("rust", "fn f() {\n    let a = B { |}\n", "c: 1 };", "c: 1 "),
    "what the header below closes": (
        "cpp",
        "  for (int a = (b + |) a > 0;\n       a /= 2)\n    c();\n",
        "d) / 2;",
        "d",
    ),
    "in code inside a string": ("javascript", "let a = `${f(|)}\n", "b)", "b"),
}


@pytest.mark.parametrize("name", DOUBLED)
def test_a_fill_ends_before_the_bracket_after_the_gap(name: str) -> None:
    language, text, fill, kept = DOUBLED[name]
    before, after = text.split("|")
    at = doubled(site_of(Infill(before, after, language, "rest_of_line")), fill.encode())
    assert at == len(kept)
    assert fit(Infill(before, after, language, "rest_of_line"), fill) == kept


@pytest.mark.parametrize("name", DOUBLED)
def test_a_bracket_that_is_closed_twice_is_a_fault(name: str) -> None:
    language, text, fill, kept = DOUBLED[name]
    before, after = text.split("|")
    kinds: tuple[Kind, ...] = ("rest_of_line", "expression", "arguments")
    for kind in kinds:
        found = faults(language, kind, before, fill, after)
        assert [fault.message for fault in found] == [
            "a bracket that is already closed at line 1 of the fill"
        ]
        assert found[0].start == len(kept)


@pytest.mark.parametrize(
    ("language", "text", "fill"),
    [
        ("python", "x = f(|)\n", "a) + g(b"),
        ("python", "x = f(|\n", "a)"),
        ("python", "x = (f(|)\n", "a)"),
        ("python", "x = [|for a in b]\n", "a "),
        ("javascript", "f(() => { g(|) })\n", "a); h(b"),
        ("c", "int f(void) { if (|) }\n", "a) b(c"),
        ("python", "x = f(|)\n", "')', \")\""),
    ],
)
def test_brackets_that_pair_stay(language: str, text: str, fill: str) -> None:
    before, after = (part.encode() for part in text.split("|"))
    assert doubled(Site(load_language(language), "rest_of_line", before, after), fill.encode()) is None


@pytest.mark.parametrize(
    ("language", "text", "fill", "kept"),
    [
        ("rust", "let a: Vec<|>\n", "i32> = b", "i32"),
        ("typescript", "class A extends B<|> {\n", "C<D>> {", "C<D>"),
        ("java", "Map<String, |>\n", "List<A>> a;", "List<A>"),
    ],
)
def test_an_angle_bracket_is_closed_once(language: str, text: str, fill: str, kept: str) -> None:
    before, after = (part.encode() for part in text.split("|"))
    assert doubled(Site(load_language(language), "rest_of_line", before, after), fill.encode()) == len(kept)


@pytest.mark.parametrize("text", ["if a <| > b\n", "x = f(a => |>)\n", "fn f<T>(|) -> T\n"])
def test_what_only_looks_like_an_angle_bracket_stays(text: str) -> None:
    before, after = (part.encode() for part in text.split("|"))
    assert doubled(Site(load_language("rust"), "rest_of_line", before, after), b"|a| -> b") is None
