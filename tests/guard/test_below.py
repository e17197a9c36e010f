"""Lines below a text that opens something: whether there are any, where they end, what closes them early."""

import pytest

from dg_lsp.guard.endings import closed_below, end_of_item, may_continue, opens_below
from dg_lsp.guard.site import site_of
from dg_lsp.messages import Infill, Kind

GO = "package a\n\nfunc f() {\n\t"
PYTHON = "def f():\n    "


def infill(language: str, before: str, kind: Kind = "statement", after: str = "\n") -> Infill:
    return Infill(before, after, language, kind)


@pytest.mark.parametrize(
    ("language", "before", "text", "kind"),
    [
        ("go", GO, "if err != nil {", "statement"),
        ("go", GO + "if ", "err != nil {\n\t\tx()", "rest_of_line"),
        ("go", GO + "g(a, ", "b,", "rest_of_line"),
        ("python", PYTHON, "if x:", "statement"),
        ("python", PYTHON, "x = [", "statement"),
        ("typescript", "f(() => {\n  ", "return g({", "statement"),
        ("python", PYTHON + "g(\n        ", "a,", "arguments"),
    ],
)
def test_what_lines_below_must_close_opens(language: str, before: str, text: str, kind: Kind) -> None:
    assert opens_below(site_of(infill(language, before, kind)), text)


@pytest.mark.parametrize(
    ("language", "before", "text", "kind", "after"),
    [
        ("go", GO, "x := g(a)", "statement", "\n}\n"),
        ("go", GO + "g(a, ", "b)", "rest_of_line", "\n}\n"),
        ("go", GO + "g(", "h(", "arguments", ")\n}\n"),
        ("python", PYTHON + "g(", "a,", "arguments", "\n"),
        ("python", PYTHON + "if ", "x", "rest_of_line", ":\n"),
        ("python", PYTHON + 's = "', "a:", "string", '"\n'),
        ("python", PYTHON + "# ", "if x:", "comment", "\n"),
    ],
)
def test_a_whole_line_opens_nothing(language: str, before: str, text: str, kind: Kind, after: str) -> None:
    assert not opens_below(site_of(infill(language, before, kind, after)), text)


@pytest.mark.parametrize(
    ("language", "before", "item", "more"),
    [
        ("go", GO, "if x {\n\t\tg()\n\n\t\th()\n\t}", "\n\treturn 1"),
        ("go", GO, "if x {\n\t\tg()\n\t} else {\n\t\th()\n\t}", "\n\treturn 1"),
        ("python", PYTHON, "if x:\n        g()\n    else:\n        h()", "\n    return 1"),
        ("python", PYTHON, "x = [\n        1,\n    ]", "\n    return x"),
        ("python", PYTHON, "try:\n        g()\n    except A:\n        h()", "\n\nx = 1"),
        ("python", PYTHON, 'x = """\nfrom here\n"""', "\n    y"),
        ("typescript", "{\n  ", "f(a, () => {\n    g();\n  })", "\n  h();"),
        ("typescript", "{\n  ", "f(a)\n  .then(b)", "\n  h();"),
    ],
)
def test_an_item_ends_before_the_first_line_that_is_no_deeper(
    language: str, before: str, item: str, more: str
) -> None:
    site = site_of(infill(language, before))
    assert end_of_item(site, item + more) == len(item)
    assert end_of_item(site, item) is None


def test_a_list_ends_before_its_bracket() -> None:
    site = site_of(infill("python", PYTHON + "g(\n        ", "arguments"))
    assert end_of_item(site, "a,\n        f(b),\n    )\n") == len("a,\n        f(b),\n    ")
    assert end_of_item(site, "a,\n        f(b),\n") is None


@pytest.mark.parametrize("kind", ["statement", "rest_of_line"])
def test_the_elements_of_a_literal_continue_until_its_bracket(kind: Kind) -> None:
    site = site_of(infill("go", GO + "return A{\n\t\t", kind))
    assert opens_below(site, "a: 1,")
    assert not opens_below(site, "a: 1") and not opens_below(site, "}")
    elements = "a: 1,\n\t\tb: []int{\n\t\t\t2,\n\t\t},\n\t"
    assert end_of_item(site, elements + "}\n") == len(elements) and end_of_item(site, elements) is None


def test_a_begun_word_may_continue_with_the_item() -> None:
    assert may_continue("    el") and may_continue("    ") and may_continue("    else")
    assert not may_continue("    x") and not may_continue("    elsewhere")


@pytest.mark.parametrize(
    ("language", "before", "text", "closed"),
    [
        ("go", GO, "if x {\n\t\tg()", "if x {\n\t\tg()\n\t}"),
        (
            "go",
            GO + "for ",
            "{\n\t\tif x {\n\t\t\tg()\n",
            "{\n\t\tif x {\n\t\t\tg()\n\t\t}\n\t}",
        ),
        ("typescript", "{\n  ", "f(a, () => {\n    g();", "f(a, () => {\n    g();\n  })"),
        ("python", PYTHON, "if x:\n        g()", "if x:\n        g()"),
        # Half a call or a list is no statement.
        ("go", GO, "g(\n\t\ta,", "g(\n\t\ta,"),
        ("python", PYTHON, "x = {\n        1,", "x = {\n        1,"),
        ("typescript", "{\n  ", "f({\n    a: 1,", "f({\n    a: 1,"),
    ],
)
def test_blocks_are_closed_on_lines_of_their_own(language: str, before: str, text: str, closed: str) -> None:
    assert closed_below(infill(language, before), text) == closed
