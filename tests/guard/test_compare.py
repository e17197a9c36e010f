"""Compare: the errors that a fill adds, what is read otherwise after it, and what it leaves or ends, with the place."""

import pytest

from dg_lsp.guard.baseline import parsed
from dg_lsp.guard.compare import added, changed
from dg_lsp.guard.site import Site
from dg_lsp.messages import Kind
from dg_lsp.source.language import load_language


def found(
    language: str, kind: Kind, marked: str, texts: tuple[str, str], *, asked: bool = True
) -> list[tuple[str, str]]:
    """What the second of `texts` does at the `|` of `marked`, and the first does not: its place in it, and words."""
    before, after = marked.encode().split(b"|")
    site = Site(load_language(language), kind, before, after, asked)
    old, new = (parsed(site, text.encode()) for text in texts)
    faults = added(old, new) or changed(old, new)
    return [(new.fill[one.start : one.end].decode(), one.message.partition(" at line")[0]) for one in faults]


BODY = "def f():\n    a()\n    |\n    return b\n\n\nc = ('d')\n"
LAST = "def f():\n    |\n\n\nx = 1\n"
JAVA = "class A {\n  void f() {\n    a();\n    |\n    b();\n  }\n}\n"
SPLICED = "void f() {\n  // print|\n  a << b;\n}\n"
ARROW = "const f = () => {\n  |\n}\n"
OUTSIDE = "text outside of the function"
BRANCH = "if n:\n    a()\n    |\n    c()\n"


@pytest.mark.parametrize(
    ("language", "kind", "marked", "texts", "fault"),
    [
        ("python", "statement", BODY, ("pass", "b = )"), (")", "unexpected `)`")),
        ("python", "statement", BODY, ("pass", "b\n\n\ndef h(): c"), ("def h(): c", OUTSIDE)),
        ("java", "statement", JAVA, ("g();", "}\n  void g() {"), ("void g() {", OUTSIDE)),
        ("python", "function_body", LAST, ("pass", "a = 1\nb = 2"), ("b = 2", OUTSIDE)),
        ("javascript", "arguments", "f(|);\n", ("1", "a) + g(b"), ("+ g(b", "text outside of the list")),
        (
            "javascript",
            "function_body",
            ARROW,
            ("g();", "'a': 1"),
            ("'a': 1", "code that is no longer in a function"),
        ),
        ("javascript", "rest_of_line", "f(|\n", ("1);", "else);"), ("else", "unexpected `else`")),
        ("cpp", "rest_of_line", SPLICED, ("", " it\\"), ("", "text after it that would be read otherwise")),
    ],
)
def test_a_fault_has_its_place(
    language: str, kind: Kind, marked: str, texts: tuple[str, str], fault: tuple[str, str]
) -> None:
    assert found(language, kind, marked, texts)[:1] == [fault]


@pytest.mark.parametrize(
    ("language", "kind", "marked", "texts"),
    [
        ("python", "statement", BODY, ("pass", "for a in b:\n        c('d', [e])")),
        ("python", "function_body", LAST, ("pass", "a = 1\n    b = (2)")),
        ("java", "rest_of_line", "class A {\n  priv|\n  A() { b(); }\n}\n", ("", "ate int c;")),
        ("javascript", "arguments", "f(|);\n", ("1", "a, (b) => { return [c]; }")),
    ],
)
def test_what_changes_nothing_around_it_has_no_fault(
    language: str, kind: Kind, marked: str, texts: tuple[str, str]
) -> None:
    assert found(language, kind, marked, texts) == []


def test_only_a_line_that_was_asked_for_may_end_a_block() -> None:
    texts = "pass", "b()\nelse:\n    d()"
    assert found("python", "rest_of_line", BRANCH, texts) == []
    assert found("python", "rest_of_line", BRANCH, texts, asked=False) == [
        ("else:\n    d()", "text outside of the block")
    ]
