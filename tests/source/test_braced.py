"""What is open at a place of brace code, and the item it is in. In the samples `¦` is the cursor."""

import itertools

import pytest

from dg_lsp.source.brackets import State, state_at
from dg_lsp.source.items import LONG, focus, top_level_item
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import tokens


def cut(text: str) -> tuple[bytes, int]:
    before, _, after = text.partition("¦")
    return (before + after).encode(), len(before.encode())


def state(language: str, text: str) -> State:
    data, offset = cut(text)
    loaded = load_language(language)
    return state_at(loaded, data, offset, top_level_item(loaded, data, offset)[0])


TOKENS = {
    "a string and a comment": ("go", 'x := "a//b" // c', ['"a//b"', "// c"]),
    "a quote in a character": ("c", "x = '\"'; y = '\\''", ["'\"'", "'\\''"]),
    "a lifetime is no string": ("rust", "fn f<'a>(x: &'a str) -> char { 'b' }", ["'b'"]),
    "a raw string": ("rust", 'r#"a "b" {"# + r"\\"', ['r#"a "b" {"#', 'r"\\"']),
    "a template with code": ("typescript", "`a${f({b: `c`})}d` + 1", ["`a${f({b: `c`})}d`"]),
    "a regular expression": ("javascript", "x = a / b; y = /[/{]/g.test(z)", ["/[/{]/g"]),
    "a regular expression after a keyword": ("javascript", "return /{/", ["/{/"]),
    "an apostrophe between tags": ("tsx", "<p>don't {x}</p>", ["don't "]),
    "an address between tags": ("tsx", "<p>http://a {x}</p>", ["http://a "]),
    "a text block": ("java", 'x = """\n{ "a" }\n""";', ['"""\n{ "a" }\n"""']),
    "a comment over lines": ("c", "a /* { \n } */ b", ["/* { \n } */"]),
}


@pytest.mark.parametrize("name", TOKENS)
def test_strings_and_comments_are_one_token(name: str) -> None:
    language, text, wanted = TOKENS[name]
    data = text.encode()
    found = list(tokens(load_language(language), data, 0, len(data)))
    assert [data[t.start : t.end].decode() for t in found if t.kind in ("string", "comment")] == wanted


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_leave_nothing_out(name: str) -> None:
    language, text, _ = TOKENS[name]
    data = text.encode()
    found = list(tokens(load_language(language), data, 0, len(data)))
    assert b"".join(data[t.start : t.end] for t in found) == data
    assert all(a.end == b.start for a, b in itertools.pairwise(found))


def test_a_string_that_its_line_does_not_close_is_only_its_quote() -> None:
    data = b'f("a, b);\ng();'
    found = list(tokens(load_language("java"), data, 0, len(data)))
    assert [data[t.start : t.end] for t in found if t.kind == "open_string"] == [b'"']
    assert sum(t.kind == "close" for t in found) == 2


OPEN = {
    "brackets": ("go", "func f() {\n\tg(a[¦\n}\n", "{(["),
    "a bracket in a string": ("java", 'class A { void f() { g("(", ¦', "{{("),
    "a bracket in a comment": ("rust", "fn f() {\n    // (\n    g(¦", "{("),
    "a brace lost above": ("java", "class A {\n  void f() {\n    if (x) {\n      y();\n    z();¦\n  }\n}\n", "{{"),
    "a bracket lost above": ("go", "func f() {\n\tg(a\n\th(¦)\n}\n", "{("),
    "a bracket lost before a semicolon": ("c", "void f() {\n  g(a;\n  h(¦", "{("),
    "a brace that closes nothing": ("c", "int f(void)\n{\n    if (x)\n        y();\n    }\n    z(¦);\n}\n", "{("),
    "semicolons in a header": ("c", "void f() {\n  for (i = 0;\n       i < ¦", "{("),
    "code in a template": ("javascript", "f(`a${g({b: ¦", "(`{({"),
    "behind a template": ("javascript", "f(`a${b}`, ¦", "("),
    "labels as deep as their switch": ("c", "void f() {\n  switch (x) {\n  case 1:\n    g(¦", "{{("),
    "a header over lines": ("java", "class A {\n  void f(int a,\n          int b) {\n    g(¦\n  }\n}\n", "{{("),
    "a directive": ("c", "void f() {\n#define A(\n  g(¦", "{("),
    "a tab is as deep as its stop": ("c", "void f() {\n        if (x) {\n\t\ty(¦\n", "{{("),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_open_brackets(name: str) -> None:
    language, text, wanted = OPEN[name]
    found = state(language, text)
    assert found.brackets.decode() == wanted
    assert len(found.opened) == len(wanted)


def test_open_strings_and_comments() -> None:
    assert state("go", 'x := f("a¦"').string == b'"'
    assert state("go", "x := `a\nb¦").string == b"`"
    assert state("rust", 'x = r#"a¦').string == b'"#'
    assert state("javascript", "x = `a${b}c¦").string == b"`"
    assert state("c", "f(); // a¦").comment
    assert state("c", "f(); /* a¦ */").comment
    assert not state("c", "f(); /* a */¦").comment
    assert state("c", '#include "a¦').string == b'"'


def test_the_statement_begins_after_what_ends_the_one_above() -> None:
    for language, text, wanted in (
        ("java", "class A { void f() { g(); h(¦", "h("),
        ("go", "func f() {\n\tg()\n\th(¦", "h("),
        ("javascript", "f()\n  .g(a,\n    b¦", "f()\n  .g(a,\n    b"),
        ("c", "void f() {\n  if (x) {\n  } else y(¦", "if (x) {\n  } else y("),
    ):
        data, offset = cut(text)
        assert data[state(language, text).line : offset].decode() == wanted


WINDOWS = {
    "a function": ("go", "var a = 1\n\n<func f() {\n\tg(¦)\n}\n>\nfunc h() {\n}\n"),
    "a function without its brace": ("go", "<func f() {\n\tg(¦)\n\n>func h() {\n}\n"),
    "Allman's style": ("c", "int a;\n\n<int\nf(void)\n{\n    g(¦);\n}\n>\nint h;\n"),
    "attributes and comments above": ("rust", "use a;\n\n</// A.\n#[test]\nfn f() {\n    g(¦)\n}\n>\nfn h() {}\n"),
    "on an attribute": ("rust", "use a;\n\n<#[te¦st]\nfn f() {\n}\n>\nfn h() {}\n"),
    "between two items": ("go", "func f() {\n}\n<\n¦\n>func h() {\n}\n"),
    "inside of a namespace": ("cpp", "namespace a {\n\n<void f() {\n  g(¦);\n}\n>\n}  // namespace a\n"),
    "a class": ("java", "import a;\n\n<@A\nclass B {\n    void f() {\n        ¦\n    }\n\n    int c;\n}\n>"),
    "directives do not end it": ("c", "<void f() {\n#ifdef A\n  g(¦);\n#endif\n}\n>int a;\n"),
    "labels do not end it": ("c", "<void f() {\n  g(¦);\nout:\n  h();\n}\n>int a;\n"),
    "a header of several lines": ("typescript", "f();\n\n<export function f(\n  a: A,\n): B {\n  g(¦)\n}\n>\nf();\n"),
    "a type between brackets": ("typescript", "f();\n\n<const a: B<\n  C\n> = async (d) => {\n  g(¦)\n}\n>\nf();\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_item_round_a_place(name: str, newline: str) -> None:
    language, marked = WINDOWS[name]
    first = marked.index("<") if not marked.startswith("<") else 0
    last = marked.rindex(">")
    inside = marked[first + 1 : last]
    data, offset = cut((marked[:first] + inside + marked[last + 1 :]).replace("\n", newline))
    start, stop = top_level_item(load_language(language), data, offset)
    assert data[start:stop].decode().replace(newline, "\n") == inside.replace("¦", "")


def long_class(count: int) -> str:
    members = "".join(f"    void f{n}(int a) {{\n        g(a, {n});\n    }}\n\n" for n in range(count))
    return "/** A class { of\n * members. {\n */\nclass A {\n" + members + "}\n"


def test_focus_keeps_the_member_and_every_offset() -> None:
    text = long_class(200)
    at = text.index("g(a, 117")
    data = text.encode()
    kept = focus(load_language("java"), data, at)
    assert len(data) > LONG
    assert len(kept) == len(data)
    assert kept[at - 30 : at + 20] == data[at - 30 : at + 20]
    assert b"g(a, 116" not in kept
    assert b"g(a, 118" not in kept
    assert not load_language("java").parse(kept).root_node.has_error


@pytest.mark.parametrize("language", ["java", "csharp"])
def test_focus_leaves_a_class_with_something_in_it(language: str) -> None:
    data = long_class(200).encode()
    between = data.index(b"    void f117")
    loaded = load_language(language)
    kept = focus(loaded, data, between - 1)
    assert b"int _g_;" in kept
    assert not loaded.parse(kept).root_node.has_error
    # The class must end where it did.
    assert len(kept[: kept.rindex(b"}")].rstrip()) == len(data[: data.rindex(b"}")].rstrip())


def test_focus_keeps_the_whole_header_of_a_member() -> None:
    members = "    fn f{0}<A>(a: A)\n    where\n        A: B,\n    {{\n        g(a, {0});\n    }}\n\n"
    text = "mod a {\n" + "".join(members.format(n) for n in range(100)) + "}\n"
    kept = focus(load_language("rust"), text.encode(), text.index("g(a, 50"))
    assert b"fn f50<A>" in kept
    assert b"fn f49<A>" not in kept
    assert not load_language("rust").parse(kept).root_node.has_error


def test_focus_leaves_what_is_short_or_not_indented() -> None:
    java, javascript = load_language("java"), load_language("javascript")
    short = long_class(3).encode()
    assert focus(java, short, 60) == short
    flat = ("(function () {\n" + "function f() {\n  g()\n}\n" * 300 + "})()\n").encode()
    assert focus(javascript, flat, 3000) == flat


def test_the_state_of_a_long_class_is_that_of_its_member() -> None:
    text = long_class(300).replace("g(a, 250", "g(a, h[¦250")
    assert state("java", text).brackets == b"{{(["
