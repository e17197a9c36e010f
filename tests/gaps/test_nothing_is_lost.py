"""What is typed stays (law 10), and in a file that parses the tree tells where a cursor is, never its lines.

In the samples `|` is the cursor, `<`...`>` what the gap holds, and `{`...`}` its lead and tail.
"""

import ast
import os
import random
import re
from pathlib import Path

import pytest

from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.gaps.gap import Edit, Gap, apply_edit
from dg_lsp.messages import Kind
from dg_lsp.source.bodies import MARKER
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import tokens

DOCSTRINGS = {
    "a module's": '"""Tools.\n\nMore| text.\n"""\nimport os\n',
    "a module's first line": '"""Tools.|\n\nMore text.\n"""\nimport os\n',
    "a module's, below a comment": '#!/usr/bin/python\n"""Tools|."""\n',
    "a module's, raw": 'r"""Tools|.\n"""\n',
    "a function's": 'def f():\n    """Add|.\n\n    More.\n    """\n    return 1\n',
    "a class's": "class A:\n    '''Add|.\n\n    More.\n    '''\n",
}
# A string over several lines that holds what looks like the head of an item.
STRINGS = {
    "python": 'def r(n):\n    code = """\nclass Foo:\n    pass\n"""\n    |\n    return code\n',
    "javascript": "function r(n) {\n  const code = `\nclass Foo {\n}\n`;\n  |\n  return code;\n}\n",
    "typescript": "function r(n: number) {\n  const code = `\nclass Foo {\n}\n`;\n  |\n  return code;\n}\n",
    "tsx": "function r(n: number) {\n  const code = `\nclass Foo {\n}\n`;\n  |\n  return code;\n}\n",
    "java": 'class A {\n  int r() {\n    String c = """\nclass Foo {\n}\n""";\n    |\n    return 1;\n  }\n}\n',
    "go": "package a\n\nfunc r() string {\n\tc := `\nfunc Foo() {\n}\n`\n\t|\n\treturn c\n}\n",
    "csharp": 'class A {\n  int R() {\n    var c = @"\nclass Foo {\n}\n";\n    |\n    return 1;\n  }\n}\n',
    "rust": 'fn r(n: u8) -> u8 {\n    let c = r#"\nfn foo() {\n}\n"#;\n    |\n    n\n}\n',
    "cpp": 'int r() {\n    auto c = R"(\nclass Foo {\n};\n)";\n    |\n    return 1;\n}\n',
}
TYPED = {
    "python: a call in half a condition": (
        "python",
        "def f():\n    x = g() if hasattr(sys|\n    return x\n",
        "def f():\n    x = g() if hasattr(sys<>\n    return x\n",
    ),
    "python: two words": ("python", "write(value no|)\n", "write(value no<>)\n"),
    "java: arguments": (
        "java",
        "class A {\n  void f() {\n    int x = toVarArgs(args|\n  }\n}\n",
        "class A {\n  void f() {\n    int x = toVarArgs(args<>\n  }\n}\n",
    ),
    "typescript: a condition": (
        "typescript",
        "function f(k) {\n  if (!(k i|) {\n    return 1;\n  }\n}\n",
        "function f(k) {\n  if (!(k i<>) {\n    return 1;\n  }\n}\n",
    ),
    "go: a group": (
        "go",
        "package a\n\nfunc f() {\n\tvar (\n\t\tgiven = m{}\n\t\texpec|\n}\n",
        "package a\n\nfunc f() {\n\tvar (\n\t\tgiven = m{}\n\t\texpec<>\n}\n",
    ),
    "cpp: a directive": (
        "cpp",
        "#if !defined( CATCH_C|\nint x;\n#endif\n",
        "#if !defined( CATCH_C<>\nint x;\n#endif\n",
    ),
    "python: a comment that is all of a body": (
        "python",
        "def f(a):\n    # compute the sum|\n\nx = 1\n",
        "def f(a):\n    # compute the sum{\n    }<>\n\nx = 1\n",
    ),
    "python: what is to be done, below a comment": (
        "python",
        "def f(a):\n    # compute the sum|",
        "def f(a):\n    # compute the sum{\n    }<>",
    ),
}
STUB = {
    "python": "def f(a):\n    %s\n",
    "java": "class A {\n  void f() {\n    %s\n  }\n}\n",
    "csharp": "class A {\n  void F()\n  {\n    %s\n  }\n}\n",
    "javascript": "function f() {\n  %s\n}\n",
    "typescript": "function f() {\n  %s\n}\n",
    "tsx": "function f() {\n  %s\n}\n",
    "rust": "fn f() {\n    %s\n}\n",
    "go": "package a\n\nfunc f() {\n\t%s\n}\n",
    "c": "int f() {\n    %s\n}\n",
    "cpp": "int f() {\n    %s\n}\n",
}
# What says in each language that a body is not written yet; C has comments only.
UNWRITTEN = {
    "python": "raise NotImplementedError",
    "java": "throw new UnsupportedOperationException();",
    "csharp": "throw new NotImplementedException();",
    "javascript": 'throw new Error("not implemented");',
    "typescript": 'throw new Error("not implemented");',
    "tsx": 'throw new Error("not implemented");',
    "rust": "todo!()",
    "go": 'panic("not implemented")',
    "c": "",
    "cpp": 'throw std::logic_error("not implemented");',
}
WISHES: tuple[Kind | None, ...] = (None, "function_body")


def found(language: str, marked: str, kind: Kind | None = None) -> tuple[Document, Gap]:
    """The gap at the `|` of `marked`, and its document."""
    document = Document("file:///m", language, 0, marked.replace("|", "", 1).encode())
    return document, find_gap(document, len(marked[: marked.index("|")].encode()), kind)


def shown(document: Document, gap: Gap) -> str:
    lead, tail = ("{" + text + "}" if text else "" for text in (gap.insert_before, gap.insert_after))
    data = document.data
    parts = (data[: gap.start], data[gap.start : gap.end], data[gap.end :])
    before, inside, after = (part.decode() for part in parts)
    return f"{before}{lead}<{inside}>{tail}{after}"


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_a_cursor_in_a_docstring_replaces_nothing_and_brings_no_quotes(name: str) -> None:
    document, gap = found("python", DOCSTRINGS[name])
    assert gap.kind == "docstring"
    assert shown(document, gap) == DOCSTRINGS[name].replace("|", "<>", 1)


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_a_docstring_asked_for_is_all_between_its_quotes(name: str) -> None:
    document, gap = found("python", DOCSTRINGS[name], "docstring")
    text = document.data[gap.start : gap.end].decode()
    quoted = re.search(r"(\"\"\"|''')(.*?)\1", document.text, re.DOTALL)
    assert quoted is not None
    assert (text, gap.insert_before, gap.insert_after) == (quoted[2], "", "")


def test_a_string_that_is_no_docstring_is_a_string() -> None:
    _, gap = found("python", 'x = [\n    """abc|\n  d"""\n]\n')
    assert (gap.kind, gap.start, gap.end, gap.insert_after) == ("string", gap.end, gap.end, "")


def test_a_cursor_after_a_backslash_is_in_its_string() -> None:
    text = 'x = "a\\|n" + b\n'
    document, gap = found("python", text)
    assert (gap.kind, shown(document, gap)) == ("string", text.replace("|", "<>", 1))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("java", "class A {\n  /**\n   * Adds|.\n   * @return it\n   */\n  int f() { return 1; }\n}\n"),
        ("javascript", "/**\n * Adds|.\n * @return it\n */\nfunction f() { return 1; }\n"),
        ("c", "/* Adds|.\n   More. */\nint f() { return 1; }\n"),
        ("rust", "/// Adds|.\n/// More.\nfn f() -> u8 { 1 }\n"),
        ("go", "// Adds|.\n// More.\nfunc f() int { return 1 }\n"),
        ("csharp", "class A {\n  /// <summary>Adds|</summary>\n  int F() { return 1; }\n}\n"),
    ],
)
def test_a_cursor_in_a_comment_replaces_nothing(language: str, text: str) -> None:
    document, gap = found(language, text)
    assert gap.kind == "comment"
    assert shown(document, gap) == text.replace("|", "<>", 1)


@pytest.mark.parametrize("language", STRINGS)
def test_a_line_in_a_string_begins_no_item(language: str) -> None:
    text = STRINGS[language]
    document, gap = found(language, text)
    assert (gap.kind, shown(document, gap)) == ("statement", text.replace("|", "<>", 1))
    document, body = found(language, text, "function_body")
    assert body.start < gap.start < body.end
    assert (body.insert_before, body.insert_after) == ("", "")


@pytest.mark.parametrize("language", STRINGS)
def test_a_cursor_in_a_string_that_looks_like_code_is_in_a_string(language: str) -> None:
    text = re.sub(r"(oo\b.*\n)", r"\1|", STRINGS[language].replace("|", "", 1), count=1)
    document, gap = found(language, text)
    assert (gap.kind, shown(document, gap)) == ("string", text.replace("|", "<>", 1))


@pytest.mark.parametrize("name", TYPED)
def test_a_gap_that_nobody_asked_for_by_name_holds_nothing_typed(name: str) -> None:
    language, text, wanted = TYPED[name]
    assert shown(*found(language, text)) == wanted


@pytest.mark.parametrize("kind", WISHES)
@pytest.mark.parametrize("language", STUB)
def test_the_comments_of_a_stub_stay(language: str, kind: Kind | None) -> None:
    comment, stub = load_language(language).comment.decode(), UNWRITTEN[language]
    indent = re.search(r"([ \t]*)%s", STUB[language])
    assert indent is not None
    above = f"{comment} reads the file\n{indent[1]}{comment} line by line"
    if not stub:
        text = STUB[language] % (above + "|")
        wanted = STUB[language] % (above + "{\n" + indent[1] + "}<>")
        assert shown(*found(language, text, kind)) == wanted
        return
    for written in (f"{above}\n{indent[1]}{stub}|", f"{above}\n{indent[1]}{stub}|  {comment} type: ignore"):
        text = STUB[language] % written
        wanted = text.replace("|", "").replace(stub, f"<{stub}>")
        assert shown(*found(language, text, kind)) == wanted
    text = STUB[language] % f"{comment} TODO|\n{indent[1]}{stub}  {comment} TODO"
    wanted = STUB[language] % f"<{comment} TODO\n{indent[1]}{stub}  {comment} TODO>"
    assert shown(*found(language, text, kind)) == wanted


def test_the_comments_of_a_stub_on_the_line_of_its_brace_stay() -> None:
    text = "class A {\n  void f() { /* a */ throw new UnsupportedOperationException(|); /* b */ }\n}\n"
    stub = " throw new UnsupportedOperationException();"
    wanted = "class A {\n  void f() { /* a */{\n    }<" + stub + ">{\n    } /* b */ }\n}\n"
    assert shown(*found("java", text)) == wanted
    text = "class A {\n  void f() { // why\n    throw new UnsupportedOperationException(|);\n  }\n}\n"
    wanted = "class A {\n  void f() { // why\n    <throw new UnsupportedOperationException();>\n  }\n}\n"
    assert shown(*found("java", text)) == wanted


def test_a_body_that_is_written_may_lose_its_comments_where_it_is_asked_for() -> None:
    document, gap = found("python", "def f():\n    # one|\n    return 1\n", "function_body")
    assert shown(document, gap) == "def f():\n    <# one\n    return 1>\n"


# The places of the property below, in files of the standard library as they are and damaged.
FILES = sorted(p for p in Path(os.__file__).parent.glob("*.py") if 2_000 < p.stat().st_size < 40_000)
PLACES = 4


def typed(document: Document, gap: Gap) -> str:
    """What the gap holds that is neither white space, nor a stub, nor a comment that only marks one."""
    text = document.data[gap.start : gap.end]
    if not text.strip() or not gap.stub:
        return text.decode("utf-8", "replace").strip()
    language = load_language(document.language)
    left = [text[t.start : t.end] for t in tokens(language, text, 0, len(text))]
    said = [piece for piece in left if piece.startswith(b"#") and not MARKER.fullmatch(piece)]
    code = b"".join(piece for piece in left if not piece.startswith(b"#")).strip()
    stub = re.fullmatch(rb"(?:pass|\.\.\.|raise\s+NotImplemented.*)?;?", code, re.DOTALL)
    return "" if stub and not said else text.decode()


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_without_a_wish_no_gap_of_a_file_holds_what_is_typed(path: Path) -> None:
    data, rng = path.read_bytes(), random.Random(path.name)
    ast.parse(data)
    for _ in range(PLACES):
        at = rng.randrange(len(data))
        while 0x80 <= data[at] < 0xC0:
            at += 1
        cut = rng.randrange(at, min(at + 400, len(data)))
        line = data.find(b"\n", at)
        for rest in (data[at:], data[line:], data[cut:], b""):
            text = data[:at] + rest.decode("utf-8", "ignore").encode()
            document = Document("file:///m.py", "python", 0, text)
            try:
                gap = find_gap(document, at)
            except NoGap:
                continue
            assert not typed(document, gap), shown(document, gap)[max(at - 300, 0) : at + 300]


def test_what_was_typed_into_a_stub_since_it_was_valid_stays() -> None:
    text = 'def f():\n    raise NotImplementedError(\n        "a"\n    )\n'
    document = Document("file:///m.py", "python", 0, text.encode())
    find_gap(document, 20)
    at = text.index('"a"') + 3
    document = apply_edit(document, Edit(at, at, " + (b c"))
    gap = find_gap(document, text.index("raise") + 2)
    assert b"b c" not in document.data[gap.start : gap.end]
