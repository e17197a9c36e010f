"""Fills as edits: fitted to their place, and never a byte outside of the gap."""

import random
import subprocess
from pathlib import Path

import pytest

from benchmarks.gaps.sources import find_corpus
from dg_lsp.gaps.find import Gap, find_gap, find_gaps
from dg_lsp.gaps.gap import Edit, apply_edit, unified_diff
from dg_lsp.guard.check import faults_of_edit
from dg_lsp.guard.fit import fit, make_edit
from dg_lsp.messages import Infill, Kind
from dg_lsp.source.document import Document
from tests.guard.faulty import faults
from tests.guard.truths import stubbed


def document(text: str) -> Document:
    return Document("file:///m.py", "python", 0, text.encode())


def opened(language: str, text: str, kind: Kind | None) -> tuple[Document, Gap]:
    """`text` without the cursor, which is at its first `|`, and the gap there."""
    found = Document("file:///m", language, 0, text.replace("|", "", 1).encode())
    return found, find_gap(found, len(text[: text.index("|")].encode()), kind)


def edited(text: str, fill: str, kind: Kind | None = None) -> str:
    """`text`, cursor at `|`, after `fill` was put into its gap."""
    found, gap = opened("python", text, kind)
    return apply_edit(found, make_edit(found, gap, fill)).text


BODIES = {
    "its lead goes before it": ("def f(): pass|\n", "return 1", "def f():\n    return 1\n"),
    "repeated indentation goes": ("def f():\n  |\n", "  a = 1\n  return a", "def f():\n  a = 1\n  return a\n"),
    "blank lines before it go": ("def f():\n    |\n", "\n    \n    return 1", "def f():\n    return 1\n"),
    "white space behind it goes": ("def f():\n    |\n", "return 1  \n\n", "def f():\n    return 1\n"),
    "line ends become the file's": ("def f():\r\n |\r\n", "a = 1\n return a", "def f():\r\n a = 1\r\n return a\r\n"),
    "what is dedented is cut": ("def f():\n    |\n", "return 1\n\ndef g():\n    return 2", "def f():\n    return 1\n"),
    "so is a method's sibling": (
        "class A:\n  def f(self):\n    |\n",
        "return 1\n\n  @b\n  def g(self):",
        "class A:\n  def f(self):\n    return 1\n",
    ),
    "a string may be dedented": ("def f():\n |\n", 'x = """\na\n"""\n y\nz', 'def f():\n x = """\na\n"""\n y\n'),
    "so may a bracket": ("def f():\n  |\n", "x = (\n1,\n)\n  return x\nz", "def f():\n  x = (\n1,\n)\n  return x\n"),
    "tabs count as indentation": ("def f():\n\t|\n", "if a:\n\t\tb\n\tc\nd", "def f():\n\tif a:\n\t\tb\n\tc\n"),
    "a shallow comment in it stays": ("def f():\n  |\n", "a\n# b\n  c\n# d\ne", "def f():\n  a\n# b\n  c\n"),
    "no line end is added": ("def f():|", "return 1\n", "def f():\n    return 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_fitted(name: str) -> None:
    text, fill, wanted = BODIES[name]
    assert edited(text, fill) == wanted


LINES = {
    "one line only": ("x =|\n", " 1\ny = 2", "x = 1\n"),
    "white space behind it goes": ("x =|\n", " 1  ", "x = 1\n"),
    "but not before what follows": ("x = | + 1\n", "a ", "x = a  + 1\n"),
    "a repeated bracket goes": ("x = foo(|)\n", "a, b)", "x = foo(a, b)\n"),
    "a bracket of its own stays": ("x = foo(|)\n", "bar(a)", "x = foo(bar(a))\n"),
    "a repeated rest goes": ("x = [|for a in b]\n", "a for a in b]", "x = [a for a in b]\n"),
    "a repeated colon goes": ("if |:\n    pass\n", "a:", "if a:\n    pass\n"),
    "a coincidence stays": ("x = 'a|b'\n", "b", "x = 'abb'\n"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_fitted(name: str) -> None:
    text, fill, wanted = LINES[name]
    assert edited(text, fill, "rest_of_line") == wanted


def test_an_argument_in_front_of_what_follows_brings_no_line_end() -> None:
    assert edited("x = foo(|)\n", "a, b\n", "arguments") == "x = foo(a, b)\n"
    assert edited("x = foo(|)\n", "\n    a,\n    b,\n", "arguments") == "x = foo(\n    a,\n    b,\n)\n"


def test_lines_that_the_suffix_repeats_are_dropped() -> None:
    request = Infill("def f():\n    ", "\n    y = 2\n    return y\n", "python", "function_body", "    ")
    assert fit(request, "x = 1\n    y = 2\n    return y") == "x = 1"


def test_true_bodies_stay_and_over_long_ones_are_cut_where_they_end() -> None:
    for found, gap, fill, after in stubbed(40, seed=31):
        assert make_edit(found, gap, fill).text == gap.insert_before + fill
        assert make_edit(found, gap, fill + after[:300]).text == gap.insert_before + fill


def test_no_fill_changes_a_byte_outside_of_its_gap() -> None:
    rng = random.Random(7)
    pieces = [
        "\n",
        "\r\n",
        "    ",
        "\t",
        "x = 1",
        "def g():",
        '"""',
        "(",
        ")",
        "}",
        "\0",
        "é",
        "😀",
        "\ud800",
        "#",
        "\\",
        "\u2028",
        "return",
    ]
    for source in find_corpus("python", {}, 12, 8).valid:
        data = source if rng.random() < 0.5 else source.replace(b"\n", b"\r\n")
        found = Document("file:///m.py", "python", 3, data)
        gaps: list[Gap] = rng.choices(find_gaps(found, 0, len(data)), k=3)
        places = [m for m in rng.sample(range(len(data)), 3) if data[m] & 0xC0 != 0x80]
        gaps += [find_gap(found, at, "rest_of_line") for at in places]
        for gap in gaps:
            fill = "".join(rng.choices(pieces, k=rng.randrange(20)))
            after = apply_edit(found, make_edit(found, gap, fill))
            assert after.data.startswith(data[: gap.start]) and after.data.endswith(data[gap.end :])
            assert len(after.data) >= len(data) - (gap.end - gap.start)
            assert after.text is not None and after.version == 4


def test_a_diff_is_what_git_applies(tmp_path: Path) -> None:
    for before, after in [
        ("a = 1\nb = 2\n", "a = 1\nb = 3\n"),
        ("a = 1", "a = 2"),
        ("a = 1\n", "a = 2"),
        ("a = 1", "a = 2\n"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("s = '\u2028'\n\x0c\nb\n", "s = '\u2028'\n\x0c\nc\n"),
    ]:
        file = tmp_path / "a file.py"
        file.write_bytes(before.encode())
        patch = unified_diff(document(before), document(after), "a file.py")
        command = ["git", "apply", "--unsafe-paths", "-"]
        subprocess.run(
            command,
            cwd=tmp_path,
            input=patch.encode(),
            check=True,
            env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        )
        assert file.read_bytes() == after.encode()


def test_a_diff_names_both_sides_and_a_missing_line_end() -> None:
    patch = unified_diff(document("a"), document("b"), "m.py")
    assert (
        patch
        == "--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    )
    assert unified_diff(document("a"), document("a"), "m.py") == ""


def test_a_patch_names_an_absolute_path_from_the_root() -> None:
    lines = unified_diff(document("a"), document("b"), "/tmp/m.py").splitlines()
    assert lines[:2] == ["--- a/tmp/m.py", "+++ b/tmp/m.py"]


def test_an_edit_gives_the_next_version() -> None:
    after = apply_edit(document("abc"), Edit(1, 2, "é"))
    assert (after.text, after.version, after.uri) == ("aéc", 1, "file:///m.py")


# Language, text with the cursor, what a model writes, how much of it is a statement.
STATEMENTS = {
    "a line": ("javascript", "f();\n|\n", "g();\nh();", "g();"),
    "a header without braces": (
        "csharp",
        "class A {\n  void f() {\n    |\n  }\n}\n",
        "if (a)\n      g();\n    h();",
        "if (a)\n      g();",
    ),
    "what a header without braces holds": (
        "java",
        "class A {\n  void f() {\n    if (a)\n      |\n  }\n}\n",
        "if (b)\n        g();\n      h();",
        "if (b)\n        g();",
    ),
    "an arrow": ("javascript", "f();\n|\n", "const g = (a) =>\n  h(a)\nh()", "const g = (a) =>\n  h(a)"),
    "a list without brackets": (
        "javascript",
        "f();\n|\n",
        "const a = b,\n  c = d;\ne;",
        "const a = b,\n  c = d;",
    ),
    "type parameters": ("typescript", "f()\n|\n", "type A<\n  B,\n> = C<B>\nf()", "type A<\n  B,\n> = C<B>"),
    "a header without braces above a statement": (
        "java",
        "class A {\n  void f() {\n    |\n    g();\n  }\n}\n",
        "if (a)\n      h();\n    i();",
        "if (a)\n      h();",
    ),
    "decorators above a method": (
        "python",
        "class A:\n    x = 1\n    |\n\n    def g(self):\n        pass\n",
        "@a.b(1)\n    @property\n    def f(self):\n        return 1\n    y = 2",
        "@a.b(1)\n    @property\n    def f(self):\n        return 1",
    ),
    "an attribute above a field": (
        "rust",
        "struct A {\n    |\n    b: i32,\n}\n",
        "#[serde(skip)]\n    c: i32,\n    d: i32,",
        "#[serde(skip)]\n    c: i32,",
    ),
    "an annotation above a method": (
        "csharp",
        "class A {\n    |\n\n    void G() {\n    }\n}\n",
        "[Test]\n    public int F() {\n        return 1;\n    }",
        "[Test]\n    public int F() {\n        return 1;\n    }",
    ),
    "the parameters of a template": (
        "cpp",
        "int a;\n\n|\n\nint g() {\n  return 1;\n}\n",
        "template <class T>\nT f(T t) {\n  return t;\n}",
        "template <class T>\nT f(T t) {\n  return t;\n}",
    ),
    "a decorator alone": ("python", "|\ndef g():\n    pass\n", "@cache", "@cache"),
    "what is whole nowhere": ("javascript", "f();\n|\n", "const a = )\n)\n", "const a = )"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_ends_where_it_is_whole(name: str) -> None:
    language, text, written, wanted = STATEMENTS[name]
    found, gap = opened(language, text, "statement")
    assert make_edit(found, gap, written).text == gap.insert_before + wanted + gap.insert_after


# Language, text with the cursor, what a model writes, how much of it the brackets round the gap hold.
ENCLOSED = {
    "a condition": ("csharp", "class A { void f() {\n  if (a|\n  g();\n} }\n", "b is null) g();", "b is null)"),
    "a list": ("javascript", "function f() {\n  return [...x, a|\n}\n", "(b), c]).d;", "(b), c"),
    "an argument": ("python", "add(p, (c, |\nb = 1\n", "0.25, 1 - c), 'black')", "0.25, 1 - c"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENCLOSED)
def test_an_expression_ends_where_its_brackets_do(name: str) -> None:
    language, text, written, wanted = ENCLOSED[name]
    found, gap = opened(language, text, "expression")
    assert make_edit(found, gap, written).text == gap.insert_before + wanted + gap.insert_after
    assert not faults_of_edit(found, gap, make_edit(found, gap, written))


def test_what_a_header_without_braces_holds_adds_no_error() -> None:
    before = "class A {\n  void f() {\n    if (a)\n      "
    for language in ("csharp", "java", "cpp"):
        assert faults(language, "statement", before, "g(b);", "\n  }\n}\n") == ()
        assert faults(language, "statement", before, "g(b;", "\n  }\n}\n")


def test_a_line_ends_before_it_closes_a_block_that_lines_above_have_opened() -> None:
    found, gap = opened("go", "package a\n\nfunc f() {\n\tif a {\n\t\tg|\n", "rest_of_line")
    assert make_edit(found, gap, "(1) }").text.removeprefix("g") == "(1)"


@pytest.mark.parametrize("written", ["}", "}\n\n\treturn"])
def test_the_end_of_a_block_that_nothing_closes_is_kept(written: str) -> None:
    found, gap = opened("go", "package a\n\nfunc f() {\n\tif a {\n\t\tg()\n\t|\n\n\treturn\n}\n", "statement")
    assert make_edit(found, gap, written).text.strip() == "}"


# Language, text with the cursor, the rest of the line as a model writes it, as it is shown.
OPEN = {
    "a function": ("python", "def f|\n\nx = 1\n", "(a):", "(a):"),
    "a loop in a function, tabs, CRLF": ("python", "def f():\r\n\tfor x |\r\n", "in y", "in y:"),
    "a header without its colon": ("python", "class A:\n    def f|\n", "(self)", "(self):"),
    "a block that is there": ("python", "for x |\n    y\n", "in z:", "in z:"),
    "a call": ("python", "x = f|\ny = 1\n", "(1, [2", "(1, [2])"),
    "a class": ("java", "class A {\n    void f|\n    int y;\n}\n", "() {", "() {\n    }"),
    "a callback": ("javascript", "g(|\nlet y = 1;\n", "(a) => {", "(a) => {\n})"),
    "a declaration that is ended": ("c", "struct |\nint y;\n", "a {", "a {\n};"),
    "a list of imports": ("go", "package a\n\nimport |\n\nvar x = 1\n", "(", "()"),
    "a type": ("typescript", "interface A |\nlet y = 1;\n", "extends B {", "extends B {\n}"),
    "lines below": ("javascript", "if (a) {|\nlet y = 1;\n", "\n  b();", "\n  b();\n}"),
    "lines below, and what follows": (
        "go",
        "package a\n\nfunc f() {\n\tif |\n}\n",
        "x {\n\t\tg()\n\t}\n\th()",
        "x {\n\t\tg()\n\t}",
    ),
    "what no ending mends": ("python", "x = f|\ny = 1\n", "(1))", "(1))"),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_line_that_leaves_something_open_is_ended(name: str) -> None:
    language, text, written, wanted = OPEN[name]
    found, gap = opened(language, text, "rest_of_line")
    edit = make_edit(found, gap, written)
    assert edit.text == gap.insert_before + wanted + gap.insert_after
    # Fitting what is fitted changes nothing.
    assert make_edit(found, gap, edit.text.removeprefix(gap.insert_before)) == edit
    if wanted not in ("", written):
        assert not faults_of_edit(found, gap, edit)


@pytest.mark.parametrize(
    ("language", "kind", "source", "fitted"),
    [
        ("java", "comment", "/**\n * One|\n */\nclass A {}\n", " and\n * two"),
        ("python", "string", 'a = """one|"""\n', " and\n * two"),
        ("javascript", "string", "a = `one|`;\n", " and\n * two"),
        ("java", "comment", "// One|\nclass A {}\n", " and"),
        ("python", "comment", "# One|\na = 1\n", " and"),
        ("python", "string", 'a = "one|"\n', " and"),
    ],
)
def test_a_fill_goes_on_over_line_ends_where_its_string_or_comment_does(
    language: str, kind: Kind, source: str, fitted: str
) -> None:
    before, _, after = source.partition("|")
    assert fit(Infill(before, after, language, kind), " and\n * two") == fitted


@pytest.mark.parametrize("language", ["java", "rust", "c"])
def test_a_fill_does_not_close_the_comment_that_it_is_in(language: str) -> None:
    request = Infill("/* ", " */\nint a;\n", language, "comment")
    assert fit(request, "one */ two").rstrip() == "one"


HEADERS = {
    "c": "int f(int a) {\n    |\n    return 1;\n}\n",
    "java": "class A {\n    int f(int a) {\n        |\n        return 1;\n    }\n}\n",
    "typescript": "function f(a: boolean) {\n  |\n  return 1;\n}\n",
    "go": "package p\n\nfunc f(a bool) int {\n\t|\n\treturn 1\n}\n",
}


@pytest.mark.parametrize("language", HEADERS)
@pytest.mark.parametrize("header", ["if (a) {", "while (a) {"])
def test_the_header_of_a_block_is_not_cut_before_its_brace(language: str, header: str) -> None:
    # The next statement would become its body.
    prefix, suffix = HEADERS[language].split("|")
    assert fit(Infill(prefix, suffix, language, "statement"), header) == header


@pytest.mark.parametrize(
    ("owner", "fill", "wanted"),
    [
        ("impl Bag", "usize;", "usize"),
        ("impl<T> Sized for Bag<T> where T: Copy", "usize;", "usize"),
        ("impl Bag", "usize {\n        let n = 1;\n        n\n    }", None),
        ("trait Bag", "usize;", None),
    ],
)
def test_the_header_of_a_function_that_has_to_have_a_body_is_not_ended(
    owner: str, fill: str, wanted: str | None
) -> None:
    found, gap = opened("rust", owner + " {\n    fn len(&self) -> |\n}\n", None)
    assert make_edit(found, gap, fill).text == (fill if wanted is None else wanted)


def test_a_statement_in_a_function_of_an_impl_keeps_its_end() -> None:
    found, gap = opened(
        "rust", "impl Bag {\n    fn len(&self) -> usize {\n        let n = |\n    }\n}\n", None
    )
    assert make_edit(found, gap, "self.n;").text == "self.n;"
