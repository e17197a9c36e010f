"""Where gaps begin and end. In the samples `|` is the cursor and `<`...`>` what the gap holds."""

import re
from typing import cast

import pytest

from dg_lsp.filling.fill import ONE, finish, prepare
from dg_lsp.gaps.find import Gap, NoGap, find_function, find_gap, find_gaps, find_named
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.guard.fit import make_edit
from dg_lsp.messages import Fill, Kind, Wanted
from dg_lsp.model.candidates import Candidate, checked
from dg_lsp.server.convert import not_inline
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document


def document(text: str) -> Document:
    return Document("file:///m.py", "python", 0, text.encode())


def shown(text: str, kind: Kind | None = None) -> str:
    """`text` with its gap marked; the lead and tail stand inside as {lead} and {tail}."""
    found = document(text.replace("|", "", 1))
    gap = find_gap(found, len(text[: text.index("|")].encode()), kind)
    return marked(found, gap)


def marked(found: Document, gap: Gap) -> str:
    parts = (found.data[: gap.start], found.data[gap.start : gap.end], found.data[gap.end :])
    before, inside, after = (part.decode() for part in parts)
    lead, tail = ("{" + t + "}" if t else "" for t in (gap.insert_before, gap.insert_after))
    return f"{before}{lead}<{inside}>{tail}{after}"


BODIES = {
    "a stub on its own line": ("def f():\n    pa|ss\n", "def f():\n    <pass>\n"),
    "an ellipsis": ("def f():\n    ...|\n", "def f():\n    <...>\n"),
    "not implemented": (
        "def f():\n    raise NotImplementedError('|')\n",
        "def f():\n    <raise NotImplementedError('')>\n",
    ),
    "a stub with comments": (
        "def f():\n    # to do\n    pass  # now|\n",
        "def f():\n    # to do\n    <pass>  # now\n",
    ),
    "a comment alone": ("def f():\n    # to do|\n\nx = 1\n", "def f():\n    # to do{\n    }<>\n\nx = 1\n"),
    "a marker alone": ("def f():\n    # TODO|\n\nx = 1\n", "def f():\n    <# TODO>\n\nx = 1\n"),
    "a body on the header's line": ("def f(): pass|\n", "def f():{\n    }< pass>\n"),
    "a docstring alone": ('def f():\n    """d"""|\n', 'def f():\n    """d"""{\n    }<>\n'),
    "a docstring and a stub": ('def f():\n    """d"""\n    pass|\n', 'def f():\n    """d"""\n    <pass>\n'),
    "a docstring on the header's line": ("def f(): 'd'|\n", "def f():{\n    'd'\n    }< 'd'>\n"),
    "a header alone": ("def f(x):|\nx = 1\n", "def f(x):{\n    }<>\nx = 1\n"),
    "a header at the end of the file": ("def f(x):|", "def f(x):{\n    }<>"),
    "a header with a comment": ("def f(x):  # why|\n", "def f(x):  # why{\n    }<>\n"),
    "white space behind a header": ("def f(x):  |\n", "def f(x):{\n    }<  >\n"),
    "an indented blank line": ("def f(x):\n    |\n\nx = 1\n", "def f(x):\n    <>\n\nx = 1\n"),
    "a blank line at column 0": ("def f(x):\n|\nx = 1\n", "def f(x):\n{    }<>\nx = 1\n"),
    "the line after a header": ("def f(x):\n|", "def f(x):\n{    }<>"),
    "a method": ("class A:\n    def f(self):\n        |\n", "class A:\n    def f(self):\n        <>\n"),
    "a nested function": (
        "def f():\n    def g():\n        pass|\n    return g\n",
        "def f():\n    def g():\n        <pass>\n    return g\n",
    ),
    "an async function": ("async def f():\n    pass|\n", "async def f():\n    <pass>\n"),
    "a decorated function": ("@a\n@b(1)\ndef f():\n    pass|\n", "@a\n@b(1)\ndef f():\n    <pass>\n"),
    "a lambda as a default": (
        "def f(k=lambda: 0, *, j={1: 2}):\n    pass|\n",
        "def f(k=lambda: 0, *, j={1: 2}):\n    <pass>\n",
    ),
    "a header over lines": (
        "def f(\n    a: int,\n) -> str:\n    pass|\n",
        "def f(\n    a: int,\n) -> str:\n    <pass>\n",
    ),
    "CRLF": ("def f():\r\n    pass|\r\n", "def f():\r\n    <pass>\r\n"),
    "a header with CRLF": ("def f():|\r\nx = 1\r\n", "def f():{\r\n    }<>\r\nx = 1\r\n"),
    "CR": ("def f():\r    pass|\r", "def f():\r    <pass>\r"),
    "tabs": ("class A:\n\tdef f(self):\n\t\tpass|\n", "class A:\n\tdef f(self):\n\t\t<pass>\n"),
    "a header in a file of tabs": ("class A:\n\tdef f(self):|\n", "class A:\n\tdef f(self):{\n\t\t}<>\n"),
    "two blanks a step": ("if a:\n  b\n\ndef f():|\n", "if a:\n  b\n\ndef f():{\n  }<>\n"),
    "a form feed": ("x = 1\n\x0c\ndef f():\n    pass|\n", "x = 1\n\x0c\ndef f():\n    <pass>\n"),
    "a line separator in a string": (
        "s = '\u2028'\ndef f():\n    pass|\n",
        "s = '\u2028'\ndef f():\n    <pass>\n",
    ),
    "emoji": ("s = '😀'\ndef f():\n    pass|  # 😀\n", "s = '😀'\ndef f():\n    <pass>  # 😀\n"),
    "a byte order mark": ("\ufeffdef f():\n    pass|\n", "\ufeffdef f():\n    <pass>\n"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_stub_round_the_cursor_is_a_body(name: str) -> None:
    text, wanted = BODIES[name]
    assert shown(text) == wanted
    assert shown(text, "function_body") == wanted


@pytest.mark.parametrize("name", BODIES)
def test_a_body_put_into_a_stub_makes_python(name: str) -> None:
    text, _ = BODIES[name]
    found = document(text.replace("|", "", 1))
    gap = find_gap(found, len(text[: text.index("|")].encode()))
    filled = apply_edit(found, make_edit(found, gap, f"a = 1\n{gap.indent}return a"))
    source = filled.text.removeprefix("\ufeff")
    compile(source, "filled", "exec")
    assert "return a" in source and gap.indent in ("  ", "    ", "        ", "\t\t")


TYPED = {
    "after a name": ("x = fo|\n", "x = fo<>\n", "rest_of_line"),
    "white space at the end": ("x =|  \ny = 1\n", "x =<  >\ny = 1\n", "rest_of_line"),
    "text behind the cursor stays": ("x = foo(|) + 1\n", "x = foo(<>) + 1\n", "arguments"),
    "typed arguments stay": ("foo(a, |b)\n", "foo(a, <>b)\n", "arguments"),
    "a hole between statements": (
        "def f():\n    a = 1\n    ...|\n    return a\n",
        "def f():\n    a = 1\n    <...>\n    return a\n",
        "statement",
    ),
    "an open bracket": ("x = foo(a, |\n", "x = foo(a, <>\n", "rest_of_line"),
    "a string": ("x = 'a|b'\n", "x = 'a<>b'\n", "string"),
    "a comment": ("# a| b\n", "# a<> b\n", "comment"),
    "a written body": ("def f():\n    x = 1|\n", "def f():\n    x = 1<>\n", "rest_of_line"),
    "a statement": ("def f():\n    foo|\n", "def f():\n    foo<>\n", "rest_of_line"),
    "parameters": ("def f(a|):\n    pass\n", "def f(a<>):\n    pass\n", "parameters"),
    "an abstract method": (
        "class A:\n    @abstractmethod\n    def f(self):\n        ...|\n",
        "",
        "rest_of_line",
    ),
    "an overload": ("@typing.overload\ndef f(x: int): ...|\n", "", "rest_of_line"),
    "a protocol": ("class A(Protocol[T]):\n    def f(self): ...|\n", "", "rest_of_line"),
    "an empty file": ("|", "<>", "statement"),
    "before a CRLF": ("x =|\r\n", "x =<>\r\n", "rest_of_line"),
    "a class body": ("class A:\n    |\n", "class A:\n    <>\n", "class_body"),
    "a loop's body": ("for x in y:\n    |\nz\n", "for x in y:\n    <>\nz\n", "block"),
}


@pytest.mark.parametrize(
    ("line", "wanted", "fill"),
    [
        ("def f(|", "def f(<>", "self, x: int) -> str"),
        ("def f(self, |", "def f(self, <>", "x: int) -> str"),
        ("async def f(self)|", "async def f(self)<>", " -> dict[str, int]"),
        ("def f(self) |", "def f(self) <>", "-> None"),
        ("def f(|)", "def f(<>)", "self"),
        ("x = f(|", "x = f(<>", "self)"),
        ("x = f(self)|", "x = f(self)<>", "[0]"),
    ],
)
@pytest.mark.parametrize("below", ["", "\n        return 1", "\n\n    def h(self) -> int:\n        return 1"])
def test_a_header_may_name_its_type(line: str, wanted: str, fill: str, below: str) -> None:
    above = "class A:\n    def g(self) -> str:\n        return self.x\n\n    "
    found = document(f"{above}{line.replace('|', '')}{below}\n")
    gap = find_gap(found, len(above) + line.index("|"))
    assert marked(found, gap) == f"{above}{wanted}{below}\n"
    request, _ = prepare(found, gap, Settings(), ONE)
    assert not checked(request, Candidate(fill, {"drafted": 0})).refusal
    outcome = finish(found, gap, Fill(fill))
    assert outcome.edit is not None
    assert outcome.edit.text == fill + (":" if "def " in line and ")" not in line.partition("|")[2] else "")


@pytest.mark.parametrize(
    ("language", "header", "line", "after"),
    [
        ("java", "public class A {", "int f(", ")"),
        ("java", "public class A {", "abstract int f(", ");"),
        ("java", "interface A {", "int f(", ");"),
        ("csharp", "class A : B\n{", "int F(int a, ", ")"),
        ("csharp", "interface A\n{", "int F(", ");"),
        ("cpp", "class A {", "int f(", ");"),
    ],
)
def test_a_header_that_needs_a_body_does_not_end(language: str, header: str, line: str, after: str) -> None:
    text = f"{header}\n  int g;\n\n  {line}"
    end = "\n};\n" if language == "cpp" else "\n}\n"
    found = Document("file:///a", language, 0, f"{text}{end}".encode())
    gap = find_gap(found, len(text.encode()))
    assert (gap.kind, gap.insert_after) == ("rest_of_line", "")
    outcome = finish(found, gap, Fill("int b"))
    assert outcome.edit is not None and outcome.edit.text == f"int b{after}"


@pytest.mark.parametrize("name", TYPED)
def test_a_cursor_without_a_wish_means(name: str) -> None:
    text, wanted, kind = TYPED[name]
    assert find_gap(document(text.replace("|", "")), text.index("|")).kind == kind
    assert shown(text) == (wanted or text.replace("|", "<>"))


WRITTEN = {
    "a body": (
        "def f():\n    a = 1\n    |return a\n\nx = 1\n",
        "def f():\n    <a = 1\n    return a>\n\nx = 1\n",
    ),
    "its docstring stays": ("def f():\n    'd'\n\n    a|\n    b\n", "def f():\n    'd'\n\n    <a\n    b>\n"),
    "its last comment goes": ("def f():\n    a|\n    # c\n# d\n", "def f():\n    <a\n    # c>\n# d\n"),
    "on the header": ("de|f f():\n    a\n", "def f():\n    <a>\n"),
    "two statements on the header's line": ("def f(): a; b|\n", "def f():{\n    }< a; b>\n"),
    "an f-string is no docstring": ("def f():\n    f'{a}'|\n    b\n", "def f():\n    <f'{a}'\n    b>\n"),
    "a broken last line": (
        "def f():\n    a\n    x = foo(1, |\n\ndef g(): pass\n",
        "def f():\n    <a\n    x = foo(1, >\n\ndef g(): pass\n",
    ),
    "an unclosed docstring": (
        'def f():\n    """d|\n\ndef g():\n    """e"""\n',
        'def f():\n    """d{"""\n    }<>\n\ndef g():\n    """e"""\n',
    ),
    "damage elsewhere": (
        "x = (\n\ndef f():\n    a|\n    b\n\ny = ]\n",
        "x = (\n\ndef f():\n    <a\n    b>\n\ny = ]\n",
    ),
    "an unfinished header": ("def f(a, b|\n\nx = 1\n", "def f(a, b{):\n    }<>\n\nx = 1\n"),
    "a body in tabs": ("def f():\n\tif a:\n\t\tb|\n\tc\n", "def f():\n\t<if a:\n\t\tb\n\tc>\n"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_asked_for_a_written_body_is_replaced(name: str) -> None:
    text, wanted = WRITTEN[name]
    assert shown(text, "function_body") == wanted


ON_LINES_OF_THEIR_OWN = {
    "arguments": ("python", "x = f(\n    |\n)\n"),
    "parameters": ("python", "def f(\n    |\n):\n    pass\n"),
    "a docstring": ("python", 'def f(a):\n    """Do it.\n\n    |\n    """\n    return a\n'),
    "a string": ("python", 'Q = """\nSELECT *\n|\n"""\n'),
    "a string in a call": ("python", 'f("a", """\n|\n""")\n'),
    "a template": ("typescript", "const q = `\n  SELECT *\n  |\n`;\n"),
    "a comment": ("typescript", "/**\n * Adds.\n * |\n */\nfunction add() {\n}\n"),
    "a raw string in Go": ("go", "package a\n\nvar q = `\nSELECT *\n|\n`\n"),
    "a raw string in Rust": ("rust", 'const Q: &str = r#"\nSELECT *\n|\n"#;\n'),
    "a text block": ("java", 'class A {\n    String q = """\n        |\n        """;\n}\n'),
}


@pytest.mark.parametrize("name", ON_LINES_OF_THEIR_OWN)
def test_a_gap_on_a_line_of_its_own_ends_there_so_that_ghost_text_can_be_shown(name: str) -> None:
    language, text = ON_LINES_OF_THEIR_OWN[name]
    found = Document("file:///m", language, 0, text.replace("|", "").encode())
    gap, cursor = find_gap(found, text.index("|")), text.index("|")
    assert (gap.start, gap.end) == (cursor, cursor) and not_inline(found, cursor, gap) == ""


HEADER = "async def main(self, a: int = 1, *b) -> int:"


@pytest.mark.parametrize("cut", range(len(HEADER)))
@pytest.mark.parametrize("kind", [None, "function_body"])
def test_no_name_is_made_up_for_one_that_a_header_is_missing(cut: int, kind: Kind | None) -> None:
    header = "    " + HEADER[:cut]
    try:
        found = shown(f"class A:\n    x = 1\n\n{header}|\n", kind)
    except NoGap as error:
        assert kind and re.search("not finished|in no function", str(error))
    else:
        assert found.startswith(f"class A:\n    x = 1\n\n{header}") and "_g_" not in found


def test_a_function_may_be_named_as_the_repair_names_what_is_missing() -> None:
    wanted = shown("def m|sg_id(a):\n    pass\n").replace("msg_id", "msg_g_id")
    assert shown("def m|sg_g_id(a):\n    pass\n") == wanted


@pytest.mark.parametrize(
    "text", ["x = 1|\n", "|", "class A:\n    x = 1|\n", "def f():\n    pass\n\n|x = 1\n"]
)
def test_outside_of_functions_there_is_no_body(text: str) -> None:
    with pytest.raises(NoGap, match="in no function"):
        shown(text, "function_body")


def test_the_name_is_the_enclosing_function_s() -> None:
    text = "a = 1\n@b\ndef f():\n    x = 1\n\nc = 2\n"
    inside, outside = (find_gap(document(text), text.index(t)) for t in ("x =", "c ="))
    assert (inside.name, outside.name) == ("f", "")


SHAPES = """
class Shape:
    def area(self):
        pass

    def name(self):
        return "shape"

    @property
    def size(self): ...

    @size.setter
    def size(self, value):
        self.value = value


def outer():
    def inner():
        "Only a docstring."
    return inner
"""


def test_all_bodies_in_a_range_are_found_and_stubs_are_told() -> None:
    found = find_gaps(document(SHAPES), 0, len(SHAPES))
    assert [(g.name, g.stub) for g in found] == [
        ("Shape.area", True),
        ("Shape.name", False),
        ("Shape.size", True),
        ("Shape.size", False),
        ("outer", False),
        ("outer.inner", True),
    ]
    at = SHAPES.index("return")
    assert [g.name for g in find_gaps(document(SHAPES), at, at)] == ["Shape.name"]


def test_a_broken_file_still_tells_its_functions() -> None:
    found = find_gaps(document(SHAPES + "\nx = (\n"), 0, len(SHAPES))
    assert [(g.name, g.stub) for g in found] == [
        (g.name, g.stub) for g in find_gaps(document(SHAPES), 0, len(SHAPES))
    ]


def test_a_function_is_found_by_its_name() -> None:
    assert marked(document(SHAPES), find_named(document(SHAPES), "Shape.area")) == SHAPES.replace(
        "pass", "<pass>"
    )
    assert find_named(document(SHAPES), "outer.inner").stub
    # Of two with the same name the stub is the one that wants filling.
    assert find_named(document(SHAPES), "Shape.size").stub


@pytest.mark.parametrize("name", ["Lookup.Error", "Lookup::Error"])
def test_two_methods_of_one_name_are_told_apart_by_their_types(name: str) -> None:
    text = "func (e *Parse) Error() string {\n\treturn 1\n}\n\nfunc (e *Lookup) Error() string {\n\treturn 2\n}\n"
    source = Document("errors.go", "go", 0, text.encode())
    gap = find_named(source, name)
    assert (gap.name, source.data[gap.start : gap.end]) == ("Lookup.Error", b"return 2")
    with pytest.raises(NoGap, match=r"close to it are Lookup\.Error, Parse\.Error"):
        find_named(source, "Error")


def test_a_wrong_name_lists_close_ones() -> None:
    with pytest.raises(NoGap, match=r"no function area; close to it are Shape\.area"):
        find_named(document(SHAPES), "area")
    with pytest.raises(NoGap, match=r"close to it are outer\.inner"):
        find_named(document(SHAPES), "outer.iner")
    with pytest.raises(NoGap, match="has none at all"):
        find_named(document("x = 1\n"), "f")


HOLES = {
    "python": """
async def f(x):
    y = x
    «...»
    if y:
        «...»
        g(|)
    «pass»  # later
    return y
""",
    "rust": """
fn f(x: i32) -> i32 {
    let y = x;
    «todo!();»
    if y > 1 {
        «todo!();»
        g(|);
    }
    y
}
""",
    "java": """
class A {
  int f() {
    int y = 1;
    «throw new UnsupportedOperationException();»
    |g(y);
    return y;
  }
}
""",
    "go": """
package p

func f() int {
\ty := 1
\t«panic("not implemented")»
\tg(|y)
\treturn y
}
""",
}


@pytest.mark.parametrize("language", HOLES)
def test_the_holes_of_a_function_are_found_together(language: str) -> None:
    marked = HOLES[language]
    text = re.sub("[«»|]", "", marked)
    cursor = len(re.sub("[«»]", "", marked).partition("|")[0].encode())
    gap = find_gap(Document("file:///m", language, 1, text.encode()), cursor, "holes")
    found = [text.encode()[g.start : g.end].decode() for g in (gap, *gap.further)]
    assert found == re.findall("«(.*)»", marked)
    assert gap.span == (gap.start, (gap, *gap.further)[-1].end)
    assert all(g.kind == "statement" and g.stub for g in (gap, *gap.further))


@pytest.mark.parametrize("language", HOLES)
def test_a_hole_is_found_from_anywhere_within_it_and_directly_after_it(language: str) -> None:
    marked = HOLES[language].replace("|", "")
    found = Document("file:///m", language, 1, re.sub("[«»]", "", marked).encode())
    begins = len(marked.partition("«")[0].encode())
    length = len(re.findall("«(.*?)»", marked)[0].encode())
    for cursor in range(begins, begins + length + 1):
        assert find_gap(found, cursor, "holes").start == begins
        assert [gap.kind for gap in find_function(found, cursor)] == ["statement", "function_body"]


@pytest.mark.parametrize("placeholder", ["...", "pass", "raise NotImplementedError"])
@pytest.mark.parametrize("between", ["", "# why\n    "])
def test_a_docstring_makes_no_hole_of_a_stub(placeholder: str, between: str) -> None:
    head = 'class A:\n  async def f(self):\n    """Do it.\n\n    And more.\n    """\n    '
    text = document(f"{head}{between}{placeholder}\n")
    for cursor in range(head.index("def"), len(text.data)):
        (body,) = find_function(text, cursor)
        assert body.kind == "function_body" and body.stub
    with pytest.raises(NoGap, match=r"A\.f has no holes"):
        find_gap(text, len(head), "holes")
    # A string further down is code.
    written = document(f'{head}x = 1\n    "so"\n    {placeholder}\n')
    assert [gap.kind for gap in find_function(written, len(head))] == ["statement", "function_body"]


def test_a_body_that_is_a_stub_is_no_hole() -> None:
    found = document("def f():\n    def g():\n        pass\n    return g\n")
    with pytest.raises(NoGap, match="f has no holes"):
        find_gap(found, 3, "holes")
    with pytest.raises(NoGap, match="in no function"):
        find_gap(document("x = 1\n...\ny = 2\n"), 3, "holes")


@pytest.mark.parametrize(
    ("language", "text", "tail"),
    [
        ("rust", "fn f() -> u8 {\n    let x = 1;\n    |\n}\n", ""),
        ("rust", "fn f() -> u8 {\n    let x = |\n}\n", ";"),
        ("rust", "fn f() -> u8 {\n    |\n    x\n}\n", ";"),
        ("c", "int f() {\n    int x = 1;\n    |\n}\n", ";"),
    ],
)
def test_a_value_ends_as_a_statement_where_its_block_is_not_worth_it(
    language: str, text: str, tail: str
) -> None:
    data, cursor = text.replace("|", "").encode(), text.index("|")
    found = Document("file:///m", language, 1, data)
    outcome = finish(found, find_gap(found, cursor, "expression"), Fill("f(1)"))
    assert outcome.edit is not None and outcome.edit.text == "f(1)" + tail


@pytest.mark.parametrize("language", ["javascript", "java", "rust", "c", "csharp"])
@pytest.mark.parametrize("around", [("a();\n  ", "\n  b();"), ("a();\n  ", ""), ("", "")])
def test_a_statement_asked_for_on_a_blank_line_replaces_nothing(
    language: str, around: tuple[str, str]
) -> None:
    before = "class A { void f() {\n  " + around[0]
    found = Document("file:///m", language, 0, (before + around[1] + "\n}\n}\n").encode())
    gap = find_gap(found, len(before), "statement")
    assert (gap.kind, gap.start, gap.end) == ("statement", len(before), len(before))


@pytest.mark.parametrize("typed", ["val =", "val = ", "val = a +", "return not", "return", "val = a."])
def test_a_statement_does_not_take_in_the_next_line(typed: str) -> None:
    before = "def f():\n    a = 1\n    "
    found = Document("file:///m.py", "python", 0, f"{before}{typed}\n    g(a)\n".encode())
    gap = find_gap(found, len(before + typed), "statement")
    assert found.data[gap.start : gap.end] == typed.encode()


def test_dots_are_a_whole_body() -> None:
    found = Document("file:///m.py", "python", 0, b"def f():\n    ...\n\n\nx = 1\n")
    assert find_gap(found, 16).kind == "function_body"


def test_a_gap_says_whether_it_was_asked_for() -> None:
    text = document("def f(x):\n    a = 1\n    ...\n    return x\n")
    inside = text.data.index(b"...")
    assert not find_gap(text, inside).asked
    assert find_gap(text, inside, "statement").asked
    assert [gap.asked for gap in find_function(text, inside)] == [True, True]
    assert [gap.asked for gap in find_gap(text, inside, "holes").parts] == [True]
    assert find_gaps(text, 0, len(text.data))[0].asked
    assert find_named(text, "f").asked


@pytest.mark.parametrize("below", ["", "Returns x.\n"])
@pytest.mark.parametrize("indent", ["", "    "])
@pytest.mark.parametrize("asked", ["docstring", None])
def test_two_docstrings_that_lack_their_ends_are_not_one(
    indent: str, below: str, asked: Wanted | None
) -> None:
    first, second = (
        f'{indent}def {name}(x):\n{indent}    """{text}\n{indent}    return x\n'
        for name, text in (("first", "|" + below.rstrip()), ("second", ""))
    )
    marked = ("class A:\n" if indent else "") + first + "\n" + second
    at = marked.index("|")
    gap = find_gap(document(marked.replace("|", "")), at, asked)
    assert (gap.kind, gap.start) == ("docstring", at)
    assert gap.end <= at + len(below.rstrip())


def test_an_example_in_a_docstring_does_not_end_it() -> None:
    text = 'def first(x):\n    """Do it:\n\n    def example():\n        pass\n    """\n    return x\n'
    gap = find_gap(document(text), text.index("Do"), "docstring")
    assert text[gap.end :].startswith('"""') and not gap.insert_after


# The repair of the text leaves out the end of what is asked for; `⟦` and `⟧` are round what is filled.
ENDS = {
    "a comment above code": (
        "java",
        "comment",
        "class A {\n    /**\n⟦     * as its error\n¦⟧     */\n    A(int x) { a?.b = 1; }\n    /** b */\n}",
    ),
    "a comment that code follows": ("c", "comment", "/* ⟦one\n   <https://w¦w.org/>.⟧  */\n   of it.  */\n"),
    "a string in a call": ("javascript", "string", "  }, '⟦np¦m_name⟧')\n"),
    "a character": ("cpp", "string", "int f() {\n    g('⟦\\¦n⟧');\n}\n"),
    "a character in broken code": (
        "java",
        "string",
        "class A {\n  void f() {\n    g({;\n    h('⟦¦n⟧');\n  }\n}\n",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_is_asked_for_ends_where_it_ends_in_the_file(name: str) -> None:
    language, kind, text = ENDS[name]
    plain = re.sub("[¦⟦⟧]", "", text)
    at = re.sub("[⟦⟧]", "", text).index("¦")
    gap = find_gap(Document("file:///m", language, 0, plain.encode()), at, cast(Kind, kind))
    wanted = re.sub("¦", "", text.split("⟦")[1].split("⟧")[0])
    assert plain[gap.start : gap.end].strip() == wanted.strip()


@pytest.mark.parametrize(
    ("language", "source", "indent"),
    [
        (
            "typescript",
            "class A {\n  private a = 1;\n\n  f(): void {\n  }\n\n  g(): void {\n  }\n}\n",
            "    ",
        ),
        ("typescript", "export class A {\n\n    f(x: number): number {\n    }\n}\n", "        "),
        ("typescript", "export class A {\n \t\n\n\tf(x: number): number {\n\t}\n}\n", "\t\t"),
        ("cpp", "/*\n * A.\n */\nclass A\n{\npublic:\n  int f ()\n  {\n  }\n};\n", "    "),
        ("c", "/*\n * A.\n */\nint f(void)\n{\n}\n", "    "),
        ("python", "class A:\n  b = 1\n\n  def g(self):\n\n  def h(self):\n  def i(self):\n", "    "),
        ("python", "class A:\n\n  def g(self):\n", "    "),
    ],
)
def test_a_body_is_a_step_of_the_file_deeper_than_its_header(language: str, source: str, indent: str) -> None:
    document = Document("file:///a", language, 0, source.encode())
    gaps = find_gaps(document, 0, len(document.data))
    assert gaps and {gap.indent for gap in gaps} == {indent}
