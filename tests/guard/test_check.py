"""The differential syntax check: only what a fill adds is its fault, and nothing strange makes it raise."""

import ast
import random

import pytest

from dg_lsp.gaps.find import find_gap
from dg_lsp.gaps.gap import Edit
from dg_lsp.guard.baseline import complaint
from dg_lsp.guard.check import faults_of_edit
from dg_lsp.guard.fit import make_edit
from dg_lsp.guard.site import Fault
from dg_lsp.source.document import Document
from tests.guard.faulty import faults
from tests.guard.truths import damaged, lines, passes, passes_cut, stubbed

BEFORE, AFTER = "class A:\n    def f(self):\n        ", "\n\n    def g(self):\n        pass\n"


def body(fill: str, before: str = BEFORE, after: str = AFTER) -> tuple[Fault, ...]:
    return faults("python", "function_body", before, fill, after)


def line(before: str, fill: str, after: str = "\n") -> tuple[Fault, ...]:
    return faults("python", "rest_of_line", before, fill, after)


GOOD = {
    "one statement": "return 1",
    "blocks": "if self:\n            return 1\n        return 2",
    "a string over lines": 'x = """\nclass B:\n"""\n        return x',
    "a comment at the end": "return 1  # one",
    "a nested function": "def g():\n            return 1\n        return g",
    "a closed bracket over lines": "return (\n1,\n    2)",
    "a docstring": '"""Nothing to do."""',
}


@pytest.mark.parametrize("name", GOOD)
def test_a_body_that_is_python_has_no_fault(name: str) -> None:
    assert body(GOOD[name]) == ()


BAD = {
    "an open bracket": ("return (1", 1),
    "a bracket too many": ("x = 1\n        return 1)", 2),
    "a wrong indentation": ("x = 1\n            y = 2", 2),
    "a dedent to nowhere": ("if x:\n            y\n          z", 3),
    "text outside of the function": ("x = 1\n\n    y = 2", 3),
    "text outside of the class": ("x = 1\nimport os\nz()", 2),
    "an open string": ('x = """a', 1),
    "a continued last line": ("x = 1 \\", 1),
    "a block without a body": ("for x in y:", 1),
    "a comment alone": ("# to do", 1),
    "a statement of Python 2": ('print "a"', 1),
    "nothing": ("", 1),
    "a null byte": ("x = 1\n        y\0", 2),
    "nesting without end": ("(" * 5000 + ")" * 5000, 1),
}


@pytest.mark.parametrize("name", BAD)
def test_a_body_that_breaks_its_file_has_a_fault_on_its_line(name: str) -> None:
    fill, number = BAD[name]
    found = body(fill)
    assert found and f"at line {number} of the fill" in found[0].message
    assert all(0 <= f.start <= f.end <= len(fill.encode()) for f in found)


def test_a_fault_says_what_is_wrong() -> None:
    assert body("x = 1\n            y = 2")[0].message == "unexpected indent at line 2 of the fill"
    assert body("x = 1\n\n    y = 2")[0] == Fault(
        11, 16, "text outside of the function at line 3 of the fill"
    )
    assert body("return 1)")[0] == Fault(8, 9, "unmatched ')' at line 1 of the fill")


def test_spans_are_bytes_of_the_fill() -> None:
    fill = "s = 'é😀'\n        return 1)"
    assert body(fill)[0].start == fill.encode().index(b")")


LINES = {
    "a call's end": ("x = foo(", "a, b)", "\n", True),
    "a call's middle": ("x = foo(", "a, b", ")\n", True),
    "an open call": ("x = foo(", "a,", "\ny = 1\n", False),
    "a call that goes on below": ("x = foo(", "a,", "\n    b)\n", True),
    "a bracket opened for what is below": ("x = ", "foo(", "\n    b)\n", True),
    "a string's end": ("x = 'a", "b'", "\n", True),
    "a string left open": ("x = 'a", "b", "\n", False),
    "a string opened": ("x = ", "'b", "\n", False),
    "a block's head": ("for x in y", ":", "\n    pass\n", True),
    "a head of a def": ("def f", "(a, b):", "\n    pass\n", True),
    "a head without its colon": ("def f", "(a, b)", "\n    pass\n", False),
    "a comment": ("# a", "b ( c", "\n", True),
    "a wrong operator": ("x = 1 ", "+ * 2", "\n", False),
    "what follows no longer fits": ("x = ", "a b", " + 1\n", False),
    "nothing after a whole statement": ("x = 1", "", "\n", True),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_compared_with_the_best_end_it_could_have(name: str) -> None:
    before, fill, after, good = LINES[name]
    for indent in ("", "def f():\n    "):
        below = after.replace("\n    ", "\n        ") if indent else after
        below = below.replace("\ny", "\n    y") if indent else below
        assert (line(indent + before, fill, below) == ()) is good


def test_errors_that_were_there_before_are_nobodys_fault() -> None:
    broken = "x = (\n\ndef h(:\n    pass\n\n\n" + BEFORE
    assert body("return 1", before=broken, after=AFTER + "\ny = ]\n") == ()
    assert body("return (1", before=broken, after=AFTER + "\ny = ]\n") != ()


def test_a_file_cut_in_a_string_or_bracket_is_checked_all_the_same() -> None:
    assert line('of a docstring.\n    """\n    x = ', "foo(1)", "\n    return x\n") == ()
    assert line("    'a': 1,\n    'b': ", "2,", "\n    'c': 3,\n}\n") == ()
    assert line('of a docstring.\n    """\n    x = ', "foo(1", "\n    return x\n") != ()


def test_an_edit_is_checked_in_the_whole_document() -> None:
    document = Document("file:///m.py", "python", 0, b"def f(): pass\nx = 1\n")
    gap = find_gap(document, 4)
    assert faults_of_edit(document, gap, make_edit(document, gap, "return 1")) == ()
    found = faults_of_edit(document, gap, Edit(gap.start, gap.end, gap.insert_before + "return )"))
    assert (found[0].start, found[0].end) == (7, 8)


# Language, before, a fill that is right, fills that are not, after: no filler but the right words completes these.
BEGUN = {
    "an import": (
        "tsx",
        "import {A} fro",
        "m './x';",
        (" './x';", "m './x';)"),
        "\nimport {B} from './y';\n",
    ),
    "a module": ("rust", "mod a;\npub mo", "d b;", ("d b;]", "d;"), "\npub mod c;\n"),
    "a type": ("typescript", "export typ", "e T = 1;", ("e T = 1;]", "e T ="), "\nexport const a = 1;\n"),
    "a template string": ("javascript", "a = `b", "c`;", ("c", "c;"), "\n"),
    "a destructuring": ("javascript", "const { a } = ", "b;", (".b;",), "\nc();\n"),
    "an import of several lines": (
        "typescript",
        "import typ",
        "e {",
        ("e {;", "e ("),
        "\n  A,\n  B,\n} from './x'\n",
    ),
    "type parameters": (
        "typescript",
        "function f",
        "<",
        ("else", "<<"),
        "\n  A,\n>(a: A): A {\n  return a\n}\n",
    ),
    "a tag whose line is indented less than it will be": (
        "tsx",
        "const f = (a) => {\n    const b = a;\n    return (\n ",
        "       <div>",
        ("{", "<div"),
        "\n            {b}\n        </div>\n    );\n};\n",
    ),
    "what a line above begins": (
        "typescript",
        "type A<T> =\n  T extends B",
        "<infer D> ? D : never",
        ("<infer D, )> ? D : never",),
        "\n\ntype C = 1\n",
    ),
    "a block whose end is there, in a text that is cut behind it": (
        "java",
        "class A {\n    void f(int i) {\n        switch ",
        "(i) {",
        ("(i) {{", "(i", "i {"),
        "\n            case 1:\n                g();\n        }\n    }\n\n    void h() {\n        int j = ",
    ),
    "a header whose body is there, in a text that is cut behind it": (
        "java",
        "class A {\n    void ",
        "f() {",
        ("f() {{", "f( {"),
        "\n        g();\n    }\n\n    void h() {\n        int j = ",
    ),
    "an arm of a match, in a text that is cut behind it": (
        "rust",
        "fn f(n: u8) -> u8 {\n    match n {\n        1 ",
        "=> 3,",
        ("=> ,", "=> {3,"),
        "\n        2 => 4,\n    }\n}\n\nfn g() {\n    let x = ",
    ),
}


@pytest.mark.parametrize("name", BEGUN)
def test_a_line_that_has_only_begun_must_be_ended_right(name: str) -> None:
    language, before, right, wrong, after = BEGUN[name]
    assert faults(language, "rest_of_line", before, right, after) == ()
    for fill in wrong:
        assert faults(language, "rest_of_line", before, fill, after), fill


def test_what_is_broken_on_a_line_before_its_gap_is_no_fault_of_the_fill() -> None:
    assert faults("typescript", "rest_of_line", "const a = b) + ", "c;", "\nd();\n") == ()
    assert faults("typescript", "rest_of_line", "import {A} form './", "x';", "\nd();\n") == ()


def test_what_is_broken_below_a_line_is_no_fault_of_the_fill() -> None:
    header = "class A {\n  void f(int a,\n      int b) {\n    "
    for below in ("g(b, ?);", "if (a {\n      g();\n    }"):
        assert faults("java", "rest_of_line", header + "int c ", "= 0;", f"\n    {below}\n  }}\n}}\n") == ()


@pytest.mark.slow
def test_true_bodies_raise_no_alarm_and_a_lost_bracket_does() -> None:
    rng, alarms, lost, found = random.Random(5), 0, 0, 0
    for document, gap, fill, _ in stubbed(60, seed=21):
        alarms += not passes(document, gap, fill) or not passes_cut(document, gap, fill)
        if broken := damaged(fill, rng).get("bracket deleted"):
            lost += 1
            found += not passes(document, gap, broken)
    assert (alarms, found) == (0, lost)
    assert lost > 30


@pytest.mark.slow
def test_true_lines_raise_hardly_an_alarm() -> None:
    results = [(passes(d, g, t), passes_cut(d, g, t)) for d, g, t in lines(40, seed=22)]
    assert sum(whole for whole, _ in results) >= 39
    assert sum(cut for _, cut in results) >= 37


@pytest.mark.parametrize("kind", ["function_body", "rest_of_line"])
def test_nothing_strange_makes_it_raise(kind: str) -> None:
    rng = random.Random(3)
    letters = [
        "\0",
        "\ud800",
        "\u2028",
        "\ufeff",
        "(",
        ")",
        '"""',
        "'",
        "\\",
        "\n",
        "\r",
        "\t",
        " ",
        "def f():",
        "😀",
        "{",
        "f'{",
        "#",
    ]
    for _ in range(60):
        text = ["".join(rng.choices(letters, k=rng.randrange(12))) for _ in range(3)]
        for fault in faults("python", kind, *text):
            assert fault.message and fault.start <= fault.end


def test_a_gap_in_the_middle_of_a_body_has_the_rest_after_it() -> None:
    rest = "\n        return x\n"
    assert body("x = 1", after=rest) == ()
    assert body("x = (1", after=rest) != ()


def test_among_named_arguments_a_bare_one_is_a_fault() -> None:
    before, after = "f(\n    a=1,\n    ", ",\n    b=2,\n)\n"
    assert faults("python", "expression", before, "c", after)
    assert not faults("python", "expression", before, "c=3", after)


STAYS_BROKEN = {
    "python": (
        "def f(x):\n    if x\n        pass\n    ",
        "\n\n\ndef g():\n    return 2\n",
        "a = 1\n    b = a{}\n    return b",
    ),
    "javascript": (
        "function f(x) {\n  if x {\n    g(\n  ",
        "\n}\n\nfunction g() {}\n",
        "const a = 1;\n  const b = a{};",
    ),
    "java": (
        "class A {\n  int f(int x) {\n    if x g(;\n    ",
        "\n  }\n\n  int g() { return 2; }\n}\n",
        "int a = 1;\n    int b = a{};",
    ),
}


@pytest.mark.parametrize("language", STAYS_BROKEN)
def test_a_fill_of_a_text_that_stays_broken_must_be_right_by_itself(language: str) -> None:
    before, after, fill = STAYS_BROKEN[language]
    assert not faults(language, "function_body", before, fill.format(""), after)
    assert faults(language, "function_body", before, fill.format(" a"), after)
    assert faults(language, "statement", before, fill.format(" a"), after)


@pytest.mark.parametrize("fill", ["this. = value;", "g(a ==  ? 1 : 2);", "items.(Add);"])
def test_what_a_hidden_rule_of_the_grammar_misses_is_a_fault(fill: str) -> None:
    before, after = "class A {\n    void F(int a) {\n        ", "\n    }\n}\n"
    assert not faults("csharp", "function_body", before, "this.b = value;", after)
    (fault,) = faults("csharp", "function_body", before, fill, after)
    assert fault.message.startswith("something missing in")


@pytest.mark.parametrize(
    ("before", "kind"), [("const f = (a) => {\n  ", "function_body"), ("if (a) {\n  ", "block")]
)
def test_a_body_that_reads_like_an_object_is_a_fault(before: str, kind: str) -> None:
    for language in ("javascript", "typescript", "tsx"):
        assert faults(language, kind, before, "g(a, { 'b': 1 });", "\n}\n") == ()
        assert faults(language, kind, before, "'b': 1,", "\n}\n")


# Language, before, a fill that its grammar takes and it does not, a like one that both take, after.
MISREAD = {
    "a keyword for a value": ("javascript", "f(", "else", "elsewhere", ");\n"),
    "a keyword for a type": ("typescript", "let a: B<", "if", "IF", ">;\n"),
    "a keyword for a field": ("go", "package a\n\nvar b = c.", "range", "ranged", "\n"),
    "a keyword returned": ("c", "int f() { return ", "return;", "returned;", " }\n"),
    "a keyword that is half typed": ("csharp", "class A { int b = el", "se;", "sie;", " }\n"),
    "a value for a statement": ("java", "class A { void f() { ", "a + b;", "a = b;", " } }\n"),
}


@pytest.mark.parametrize("name", MISREAD)
def test_what_only_the_grammar_takes_is_a_fault(name: str) -> None:
    language, before, wrong, right, after = MISREAD[name]
    assert faults(language, "rest_of_line", before, right, after) == ()
    found = faults(language, "rest_of_line", before, wrong, after)
    assert found and "unexpected" in found[0].message


# Bodies of JavaScript and TypeScript that are labels to the grammar: what they label, and whether that is sense.
LABELS = {
    'name: "magei"': False,
    'name: "magei";\n  return 1;': False,
    "str: string;": False,
    "r: {}": False,
    "r: { a: 1 }": False,
    "a: b: c();": False,
    "outer: for (const a of b) {\n    for (const c of a) continue outer;\n  }": True,
    "outer: while (true) {\n    break outer;\n  }": True,
    "outer: do {\n    f();\n  } while (g());": True,
    "done: {\n    if (a) break done;\n    f();\n  }": True,
    "const a = { name: 'b', r: {} };\n  return a;": True,
    "return a ? b : c;": True,
}


@pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
@pytest.mark.parametrize("text", LABELS)
def test_a_body_of_labels_is_a_fault_unless_they_label_loops(language: str, text: str) -> None:
    found = faults(language, "function_body", "function f(a) {\n  ", text, "\n}\n")
    assert (found == ()) == LABELS[text]


def test_a_label_in_java_is_for_a_loop() -> None:
    before, after = "class A {\n  void f() {\n    ", "\n  }\n}\n"
    assert faults("java", "function_body", before, "a: for (;;) { break a; }", after) == ()
    assert faults("java", "function_body", before, "name: f();", after) != ()


def test_what_is_typed_may_be_a_label() -> None:
    assert faults("javascript", "arguments", "function f() {\n  name: g(", "1, 2", ");\n}\n") == ()
    assert faults("javascript", "arguments", "function f() {\n  name: g(", "1, else", ");\n}\n") != ()


REFUSED = {
    "an unclosed bracket": b"x = f(1\ny = 2\n",
    "an indented body": b"    x = 1\n  y = 2\n",
    "a header without a body": b"if x:\ny = 1\n",
    "null": b"a\0b\n",
    "a bracket too much behind a wide character": "ü = 1\nx = 'ü')\n".encode(),
    "an open string": b"\n\nx = '''\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_pythons_parser_says_what_ast_says(name: str) -> None:
    text = REFUSED[name]
    lead = "if 1:\n" if text[:1] == b" " else ""
    with pytest.raises((SyntaxError, ValueError)) as refused:
        ast.parse(lead + text.decode())
    told = complaint(text)
    assert told is not None
    # What counts lines is left out: they are those of a part of a file.
    assert refused.value.args[0].startswith(told[0].split(" on line")[0])
    number = getattr(refused.value, "lineno", None)
    assert told[1] == ((number or 1) - 1 - bool(lead) if number else 0)


@pytest.mark.parametrize(
    "text",
    [
        b"x = 1\n",
        # A byte order mark made each text one that Python refuses, so that no fill was ever compared with it.
        b"\xef\xbb\xbfx = 1\n",
        b"'''What it is.'''\nfrom __future__ import annotations, _\n",
        # What the compiler says of a whole file is not to be asked of a part.
        b"return 1\n",
        b"nonlocal x\n",
    ],
)
def test_what_only_the_compiler_refuses_is_taken(text: bytes) -> None:
    assert complaint(text) is None
