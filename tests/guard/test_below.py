"""Lines below a text that opens something: whether there are any, where they end, what closes them early."""

import pytest

from dg_lsp.guard.endings import closed_below, end_of_item, end_of_next, may_continue, opens_below
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


@pytest.mark.parametrize(
    ("language", "before", "item", "more"),
    [
        ("python", PYTHON, "if x:\n        return g(\n            1,\n        )", "\n        h()"),
        ("python", PYTHON, "for x in y:\n        # a\n        continue", "\n\n        # b\n        h()"),
        ("go", GO, "if x {\n\t\treturn A{\n\t\t\t1,\n\t\t}", "\n\t\th()\n\t}"),
        ("typescript", "{\n  ", "f(() => {\n    throw new E();", "\n    h();\n  })"),
        ("c", "void f() {\n  ", "while (x) {\n    break;", "\n    h();\n  }"),
    ],
)
def test_an_item_ends_before_a_statement_that_is_never_reached(
    language: str, before: str, item: str, more: str
) -> None:
    site = site_of(infill(language, before))
    end = end_of_item(site, item + more)
    assert end is not None and (item + more)[:end].rstrip() in (item, item + "\n\n        # b")
    assert end_of_item(site, item) is None


@pytest.mark.parametrize(
    ("language", "before", "item"),
    [
        ("python", PYTHON, "if x:\n        return 1\n    else:\n        h()"),
        ("go", GO, "if x {\n\t\treturn 1\n\t}\n\th()\n"),
        ("go", GO, "switch x {\n\tcase 1:\n\t\treturn 1\n\tcase 2:\n\t\tbreak\n\t}"),
        ("typescript", "{\n  ", "return a\n    .then(b)\n    .then(c);"),
        ("typescript", "{\n  ", "returned = a\n  h();"),
    ],
)
def test_a_statement_of_another_block_is_reached(language: str, before: str, item: str) -> None:
    site = site_of(infill(language, before))
    assert end_of_item(site, item) in (None, len("if x {\n\t\treturn 1\n\t}"), len("returned = a"))


@pytest.mark.parametrize(
    ("language", "before", "shown"),
    [
        ("python", PYTHON, "return 1"),
        ("python", PYTHON + "return ", "g(1)"),
        ("python", "def f():\n    if x:\n        ", "raise A"),
        ("go", GO + "return ", "nil, err"),
        ("rust", "fn f() {\n    ", "break;"),
    ],
)
def test_nothing_follows_a_shown_statement_that_ends_its_block(
    language: str, before: str, shown: str
) -> None:
    site, indent = site_of(infill(language, before)), before[before.rindex("\n") + 1 :]
    indent = indent[: len(indent) - len(indent.lstrip())]
    more = f"\n{indent}h()\n"
    assert end_of_next(site, shown + more, len(shown)) == len(shown)
    free = site_of(infill(language, before.removesuffix("return ")))
    assert end_of_next(free, "x = 1" + more + f"{indent}i()\n", len("x = 1")) != len("x = 1")


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
        ("go", GO, "g(\n\t\ta,", None),
        ("go", GO + "x := g(", "\n\t\ta,", None),
        ("python", PYTHON, "x = {\n        1,", None),
        ("typescript", "{\n  ", "f({\n    a: 1,", None),
        ("typescript", "{\n  ", "f({\n    a: 1,\n    b: {", None),
        ("typescript", "{\n  ", "f(\n    g([\n      {", None),
        ("javascript", "{\n  ", "return f({\n    a: {\n      b", None),
        ("java", "class A {\n  void f() {\n    ", "int[][] a = {\n      {", None),
        ("go", GO, "x := []T{\n\t\t{", None),
        ("go", GO, "x := T{\n\t\ta: 1,", None),
        ("typescript", "{\n  ", "if (\n    a\n  ) {", "if (\n    a\n  ) {\n  }"),
        ("rust", "fn f() {\n    ", "g(|x| {\n        h();", "g(|x| {\n        h();\n    })"),
        ("python", PYTHON + "g(\n        ", "a,\n        b,", "a,\n        b,"),
    ],
)
def test_blocks_are_closed_on_lines_of_their_own(
    language: str, before: str, text: str, closed: str | None
) -> None:
    assert closed_below(infill(language, before), text) == closed
