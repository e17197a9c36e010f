"""A span is the text between two places of one function: it keeps its white space and ends where the function does."""

import pytest

from dg_lsp.filling.fill import finish
from dg_lsp.gaps.gap import Edit, Gap
from dg_lsp.guard.fit import fit
from dg_lsp.messages import Fill, Infill, Kind
from dg_lsp.source.document import Document
from tests.guard.faulty import faults


def request(text: str, kind: Kind = "span") -> Infill:
    prefix, suffix = text.split("|")
    return Infill(prefix, suffix, "python", kind, "    ")


def faults_in(asked: Infill, fill: str) -> list[str]:
    return [f.message for f in faults(asked.language, asked.kind, asked.prefix, fill, asked.suffix)]


LOOP = "def f(xs):\n    for x in xs:\n|\n    return xs\n"
LAST = "def f(xs):\n    for x in xs:\n|\n\n\ndef g():\n    pass\n"
NESTED = "def f(xs):\n    def g(x):\n        y = x\n|\n"
TRUE = {
    "a line less deep than the first": (LOOP, "        a(x)\n    b(xs)"),
    "the same, at the end of the function": (LAST, "        a(x)\n    b(xs)"),
    "two parts of lines": ("def f(a):\n    b = a|(b)\n", " + 1\n    return g"),
    "white space at both ends": ("def f(a):\n|    return b\n", "\n    b = a\n\n"),
    "a comment at the left margin": (LOOP, "        a(x)\n# here\n"),
    "a header of what follows": ("def f(a):\n    b = a\n|\n        b = 1\n    return b\n", "    if not a:"),
    "the branch before": (
        "def f(a):\n|\n        b = 2\n    return b\n",
        "    if a:\n        b = 1\n    else:",
    ),
    "a row of brackets": ("def f(a):\n    b = g(a,\n|\n    return b\n", "  a)\n    c = h(b)"),
    "a string with text at the left margin": (
        "def f(a):\n    b = '''\n|\n    return b\n",
        "class A:\n  pass\n'''\n    c = b",
    ),
    "the end of an inner function": (NESTED + "    return g\n", "        return y\n    g = h(g)"),
    "the end of an inner function and the head of another": (
        NESTED + "            return x\n    return g\n",
        "        return y\n    def h(x):\n        if x:",
    ),
    "the end of an inner function, which ends the outer one": (NESTED, "        return y\n    return g"),
    "text that follows once more": (LOOP, "        a(x)\n    return xs"),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_makes_the_function_whole_stays_as_it_is(name: str) -> None:
    text, truth = TRUE[name]
    asked = request(text)
    assert fit(asked, truth) == truth
    assert faults_in(asked, truth) == []


@pytest.mark.parametrize("name", TRUE)
def test_what_makes_the_function_whole_is_offered(name: str) -> None:
    prefix, suffix = TRUE[name][0].encode().split(b"|")
    document, at = Document("a.py", "python", 0, prefix + suffix), len(prefix)
    outcome = finish(document, Gap(at, at, "span", "    ", asked=True), Fill(TRUE[name][1]))
    assert outcome.edit == Edit(at, at, TRUE[name][1]), outcome.why


LONG = {
    "the next function": (LAST, "        a(x)\n    b(xs)\n\n\ndef h():\n    pass", "        a(x)\n    b(xs)"),
    "and its comment": (LAST, "        a(x)\n\n# Next.\ndef h():\n    pass\n", "        a(x)"),
    "a comment behind the function": (LAST, "        a(x)\n# Next.", "        a(x)"),
    "a function between": (LOOP, "        a(x)\ndef h(xs):", "        a(x)"),
    "from the first line": ("def f(xs):\n    a = 1\n|\n", "x = 1\n", ""),
    "a method": ("class A:\n    def f(a):\n        b = a\n|\n", "        c()\n    def g():", "        c()"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_span_ends_where_its_function_does(name: str) -> None:
    text, fill, wanted = LONG[name]
    asked = request(text)
    assert fit(asked, fill) == wanted


WRONG = {
    "a bracket too many": (LOOP, "        a(x))"),
    "a bracket too few, where nothing parses without the fill": (
        "def f(a):\n    if a:\n|\n    else:\n        return 2\n",
        "        return (1",
    ),
    "a quote too many": (LAST, "        a(x)\n    '''"),
    "a bracket of the line above that stays open": ("def f(a):\n    b = g(\n|\n    return b\n", "        a"),
    "a bracket too many in the branch that the text behind goes on from": (
        "def f(a):\n|\n    else:\n        b()\n",
        "    if 'x' not in a:\n        c())",
    ),
    "a half header": (LOOP, "        if x\n            a(x)"),
    "another function": (LOOP, "        a(x)\n\n\ndef h(xs):\n    pass\n"),
    "a less deep header": ("def f(a):\n    b = a\n|\n    return b\n", "def h(b):"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_adds_an_error_or_leaves_the_function_is_a_fault(name: str) -> None:
    text, fill = WRONG[name]
    assert faults_in(request(text), fill)


def test_damage_above_is_not_the_spans_fault() -> None:
    asked = request("def f(a):\n    b = = a\n    if a:\n|\n    return b\n")
    assert not faults_in(asked, "        b = 1")


def test_a_bracket_of_the_line_above_may_be_closed_where_the_text_is_cut_after() -> None:
    asked = request("def f(a):\n    b = g(a,\n|\n    return b\n\n\ndef h(c,\n")
    assert not faults_in(asked, "          a)")


LINES = {
    "a header above its suite": (
        "def f(a):\n    b = a\n|\n        b = 1\n    else:\n        b = 2\n    return b\n",
        "    if a:",
    ),
    "a closing bracket": ("def f(a):\n    return g(\n        a=a,\n|\n", "    )"),
    "the end of a string": ("def f(a):\n    return g('''\n        a\n|\n", "        ''')"),
    "an except clause": (
        "def f(a):\n    try:\n        g()\n|\n        pass\n    return a\n",
        "    except A:",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_makes_the_file_whole_adds_no_fault(name: str) -> None:
    text, line = LINES[name]
    asked = request(text, "rest_of_line")
    assert fit(asked, line) == line
    assert faults_in(asked, line) == []
