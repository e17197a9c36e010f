"""A fill ends where the container of its gap does, in every style of language; what would leave it is a fault."""

import pytest

from dg_lsp.guard.check import is_stub
from dg_lsp.guard.fit import fit, surplus, within
from dg_lsp.messages import Infill, Kind
from dg_lsp.source.language import load_language
from tests.guard.faulty import faults


def request(language: str, text: str, kind: Kind, indent: str = "") -> Infill:
    prefix, suffix = text.split("|")
    return Infill(prefix, suffix, language, kind, indent)


GO = "package p\n\nfunc f() int {\n\t|\n}\n\nfunc g() {}\n"
JAVA = "class A {\n    int f() {\n        |\n    }\n\n    void g() {}\n}\n"
LONG = {
    "a body that goes on": (GO, "go", "function_body", "return 1\n}\n\nfunc h() {\n\tx()\n", "return 1"),
    "a body with a block": (
        GO,
        "go",
        "function_body",
        "if a {\n\t\tb()\n\t}\n\tc()\n}\n",
        "if a {\n\t\tb()\n\t}\n\tc()",
    ),
    "a brace in a string": (JAVA, "java", "function_body", 'return "}";\n    }\n', 'return "}";'),
    "a brace in a comment": (
        JAVA,
        "java",
        "function_body",
        "// }\n        return 1;\n    }\n}",
        "// }\n        return 1;",
    ),
    "a Python body": (
        "def f():\n    |\n",
        "python",
        "function_body",
        "return 1\n\ndef g():\n    pass",
        "return 1",
    ),
    "arguments": ("f(|)\n", "python", "arguments", "a, g(b)) + 1", "a, g(b)"),
    "a list of a call in JavaScript": ("f(|);\n", "javascript", "arguments", "a, [b]);\nx(", "a, [b]"),
    "a string": ('x = "a |"\n', "python", "string", 'b \\" c" + d', 'b \\" c'),
    "a string of several lines": (
        "def f():\n    '''a |'''\n",
        "python",
        "docstring",
        "b'\n\n    c'''\nx",
        "b'\n\n    c",
    ),
    "what does not leave": (JAVA, "java", "function_body", "return a[0];", "return a[0];"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_fill_is_cut_where_its_container_closes(name: str) -> None:
    text, language, kind, fill, wanted = LONG[name]
    indent = {"go": "\t", "java": "        "}.get(language, "    ")
    asked = request(language, text, kind, indent)  # type: ignore[arg-type]
    assert within(asked, fill).rstrip() == wanted
    assert fit(asked, fill) == wanted
    assert not faults(language, kind, asked.prefix, wanted, asked.suffix)


def test_the_tree_is_asked_before_brackets_are_counted() -> None:
    asked = request("java", JAVA, "function_body", "        ")
    fill = "if (a) }\n            b();\n        }\n        c();\n    }\n    int h() {"
    language = load_language("java")
    # Counting alone would end the fill at its first stray brace.
    assert surplus(language, fill.encode()) == fill.index("}")
    assert within(asked, fill).rstrip() == "if (a) }\n            b();"


ESCAPES = {
    "closes its function and opens another": (GO, "go", "function_body", "return 1\n}\n\nfunc h() {\n\tx()"),
    "closes its call": ("f(|)\n", "python", "arguments", "a)(b"),
    "closes its array": ("x = [|];\n", "javascript", "collection", "a], [b"),
    "leaves its block": ("for (;;) {\n  |\n}\n", "javascript", "block", "a();\n}\n{\n  b();"),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_a_fill_that_leaves_its_brackets_is_a_fault_though_it_parses(name: str) -> None:
    text, language, kind, fill = ESCAPES[name]
    before, after = text.split("|")
    filled = (before + fill + after).encode()
    assert not load_language(language).parse(filled).root_node.has_error
    assert faults(language, kind, before, fill, after)


STUBS = {
    "pass": ("def f():\n    |\n", "python", "pass"),
    "a comment": (JAVA, "java", "// later"),
    "a thrown refusal": (JAVA, "java", "throw new UnsupportedOperationException();"),
    "todo": ("fn f() -> u32 {\n    |\n}\n", "rust", "todo!()"),
    "panic": (GO, "go", 'panic("not implemented")'),
    "panic in small letters": (GO, "go", 'panic("todo")'),
    "panic with a word more": (GO, "go", 'panic("Todo: the sum")'),
}


@pytest.mark.parametrize("name", STUBS)
def test_a_stub_again_is_known_for_one(name: str) -> None:
    text, language, fill = STUBS[name]
    asked = request(language, text, "function_body")
    assert is_stub(asked, fill)
    assert not is_stub(asked, "x = f(1);" if language != "python" else "x = f(1)")


def test_a_message_about_todos_is_no_stub() -> None:
    assert not is_stub(request("go", GO, "function_body"), 'panic("todo list is empty")')


def test_indentation_is_the_files_own() -> None:
    go = request("go", GO, "function_body", "\t")
    assert fit(go, "if a {\n        b()\n    }\n    return 1") == "if a {\n\t\tb()\n\t}\n\treturn 1"
    python = request("python", "def f():\n    a\n    |\n", "function_body", "    ")
    assert fit(python, "if a:\n\t\tb()\n\treturn 1") == "if a:\n        b()\n    return 1"


def test_only_what_repeats_goes() -> None:
    tail = request("javascript", "f(|);\ng();\n", "rest_of_line")
    assert fit(tail, "a, b);") == "a, b"
    assert fit(tail, "a, h()") == "a, h()"
