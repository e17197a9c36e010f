"""A fill beside its neighbours: it repeats neither the lines round it nor the rest of a word, and looks like them."""

import pytest

from dg_lsp.filling.fill import Outcome, finish
from dg_lsp.gaps.find import find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.guard.fit import fit
from dg_lsp.messages import Fill, Infill, Kind
from dg_lsp.source.document import Document


def filled(language: str, text: str, fill: Fill, kind: Kind | None = None) -> tuple[str, Outcome]:
    """`text`, cursor at `¦`, after `fill`, and the outcome; the text as it is where nothing is offered."""
    before, _, after = text.partition("¦")
    document = Document("file:///m", language, 0, (before + after).encode())
    outcome = finish(document, find_gap(document, len(before.encode()), kind), fill)
    return (apply_edit(document, outcome.edit) if outcome.edit else document).data.decode(), outcome


# Each is a text with a line that stands below the cursor, and that line.
BELOW = {
    "java": ("class A {\n  int area(int w, int h) {\n    ¦\n    return w * h;\n  }\n}\n", "return w * h;"),
    "typescript": ("function f(a: number) {\n  ¦\n  return a * 2;\n}\n", "return a * 2;"),
    "tsx": ("function F() {\n  ¦\n  const a = <p>b</p>;\n  return a;\n}\n", "const a = <p>b</p>;"),
    "javascript": ("function f(a) {\n  ¦\n\n  const b = call(a);\n}\n", "const b = call(a);"),
    "python": ("def f(w, h):\n    a = w\n    ¦\n    return w * h\n", "return w * h"),
    "go": ("func f(a int) int {\n\t¦\n\treturn a * 2\n}\n", "return a * 2"),
    "rust": ("fn f(a: i32) -> i32 {\n    ¦\n    let b = a;\n    b\n}\n", "let b = a;"),
    "c": ("int f(int a) {\n    ¦\n    return a * 2;\n}\n", "return a * 2;"),
    "cpp": ("int f(int a) {\n    ¦\n    return a * 2;\n}\n", "return a * 2;"),
    "csharp": (
        "class A {\r\n    int F(int a) {\r\n        ¦\r\n        return a * 2;\r\n    }\r\n}\r\n",
        "return a * 2;",
    ),
}


@pytest.mark.parametrize("kind", [None, "statement", "rest_of_line"])
@pytest.mark.parametrize("language", BELOW)
def test_the_next_line_is_not_written_again(language: str, kind: Kind | None) -> None:
    text, line = BELOW[language]
    after, outcome = filled(language, text, Fill(line), kind)
    assert outcome.edit is None and "repeats the next line" in outcome.why
    # Half of it may be typed.
    half = text.replace("¦", line[:3] + "¦")
    after, outcome = filled(language, half, Fill(line[3:]), "rest_of_line")
    assert outcome.edit is None and "repeats the next line" in outcome.why, after
    # Among several texts only the others are left.
    other = "g();" if language not in ("python", "go") else "g()"
    after, outcome = filled(language, text, Fill(line, others=(other,)), kind)
    assert after == text.replace("¦", other) and not outcome.others


# The line below, texts that are nearly the same, and texts that are not.
NEAR = {
    "python": ("    x = w * h + 1", ("x = w*h+1", "x = w * h", "x  =  w"), ("y = w * h", "x.y = w * h", "x = 'w * h'")),
    "go": ("\tx = w * h + 1", ("x = w*h+1", "x = w*h"), ("y := w * h", "x = g(w * h)")),
    "c": ("    int x = w * h + 1;", ("int x=w * h+1;", "int x = w * h;"), ("int y = w * h;", "w += h;")),
}  # fmt: skip


@pytest.mark.parametrize("language", NEAR)
def test_nor_is_it_with_other_spaces_or_with_the_beginning_of_its_value(language: str) -> None:
    below, near, other = NEAR[language]
    before, _, after = BELOW[language][0].partition("¦")
    text = f"{before}¦\n{below}{after}"
    for line in near:
        _, outcome = filled(language, text, Fill(line), "statement")
        assert outcome.edit is None and "repeats the next line" in outcome.why, line
    for line in other:
        assert filled(language, text, Fill(line), "statement")[0] == text.replace("¦", line), line


def test_a_string_with_other_spaces_and_an_import_of_a_part_are_other_lines() -> None:
    for line, below in (("g('a')", "g('a ')"), ("import os", "import os.path"), ("a += b", "a += b + c")):
        text = f"def f(a, b, c):\n    ¦\n    {below}\n"
        assert filled("python", text, Fill(line), "statement")[0] == text.replace("¦", line)


@pytest.mark.parametrize("language", BELOW)
def test_nor_are_the_lines_above(language: str) -> None:
    text, line = BELOW[language]
    above = text.replace(
        "¦", line + ("\r\n" if "\r" in text else "\n") + text.partition("¦")[0].split("\n")[-1] + "¦", 1
    )
    above = above.replace(line, "other;", 2).replace("other;", line, 1)
    _, outcome = filled(language, above, Fill(line), "statement")
    assert outcome.edit is None and "repeats the line above" in outcome.why


REPEATED = {
    "a body loses them": (
        "def f(a):\n    ¦\n    b = a\n\n    return b\n",
        "c = 1\n    b = a\n\n    return b",
        "def f(a):\n    c = 1\n    b = a\n\n    return b\n",
    ),
    "one line is enough": (
        "def f(a):\n    ¦\n    return b\n",
        "if a:\n        a = 1\n    return b",
        "def f(a):\n    if a:\n        a = 1\n    return b\n",
    ),
    "a blank line between does not matter": (
        "def f(a):\n    ¦\n\n    return b\n",
        "c = 1\n    return b",
        "def f(a):\n    c = 1\n\n    return b\n",
    ),
    "another depth is another line": (
        "def f(a):\n    ¦\n    return b\n",
        "if a:\n        return b",
        "def f(a):\n    if a:\n        return b\n    return b\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_lines_of_several(name: str) -> None:
    text, fill, wanted = REPEATED[name]
    before, _, after = text.partition("¦")
    assert before + fit(Infill(before, after, "python", "function_body", "    "), fill) + after == wanted


TWICE = [
    ("python", "def f(x):\n    ¦\n    x += 1\n", "x += 1"),
    ("java", "class A {\n  void f(int i) {\n    ¦\n    i++;\n  }\n}\n", "i++;"),
    ("python", "x = [\n    ¦\n    None,\n]\n", "None,"),
    ("java", 'class A {\n  String a =\n    ¦\n    "b" +\n    "c";\n}\n', '"b" +'),
    ("rust", "fn f() {\n    g(\n        ¦\n        Some(1),\n    );\n}\n", "Some(1),"),
]


@pytest.mark.parametrize(("language", "text", "line"), TWICE)
def test_a_line_that_may_stand_twice_is_offered(language: str, text: str, line: str) -> None:
    after, outcome = filled(language, text, Fill(line), "rest_of_line")
    assert after == text.replace("¦", line), outcome.why


def test_a_call_may_stand_below_itself() -> None:
    text = "def f(x):\n    x.next()\n    ¦\n    return x\n"
    after, outcome = filled("python", text, Fill("x.next()"), "statement")
    assert after == text.replace("¦", "x.next()"), outcome.why


WORDS = {
    "the whole rest": ("java", "amo¦unt_due;", "unt_due", "", "rest of the word"),
    "more than the rest": ("java", "amo¦unt_due;", "unt_due + tax", "", "rest of the word"),
    "a part of it": ("java", "amo¦unt_due;", "unt", "", "rest of the word"),
    "up to the rest": ("java", "amo¦nt_due;", "unt_due", "amount_due;", ""),
    "up to the rest, and more": ("java", "amo¦nt_due;", "unt_due + tax", "amount_due;", ""),
    "something between": ("java", "get_¦value();", "default_", "get_default_value();", ""),
    "before a word": ("java", "x = ¦total;", "sub + total", "x = sub + total;", ""),
    "the word itself": ("java", "x = ¦total;", "total", "", "rest of the word"),
}


@pytest.mark.parametrize("name", WORDS)
def test_the_rest_of_a_word_is_not_doubled(name: str) -> None:
    language, line, fill, wanted, why = WORDS[name]
    text = f"class A {{\n  void f() {{\n    {line}\n  }}\n}}\n"
    after, outcome = filled(language, text, Fill(fill))
    assert why in outcome.why
    assert after == text.replace(line, wanted) if wanted else outcome.edit is None, after


INDENTED = {
    "spaces behind a tab stay": (
        "c",
        "int main() {\n\tif (x) {\n\t    int aligned = 1;\n\t    ¦\n\t}\n}\n",
        "if (y) {\n\t      bar();\n\t    }",
    ),
    "also in Python": (
        "python",
        "def f(x):\n\tif x:\n\t    ¦\n\treturn 1\n\ndef g(x):\n\treturn 1\n",
        "if a:\n\t        b = 2",
    ),
    "and where only other lines have them": (
        "c",
        "int f(int a,\n\t\t    int b) {\n\t¦\n\treturn 1;\n}\n",
        "if (a ||\n\t    b) {\n\t\tg();\n\t}",
    ),
    "eight columns of spaces as a tab": (
        "c",
        "int f(int a) {\n    if (a) {\n\tg(a);\n    }\n    ¦\n    return 1;\n}\n",
        "if (b) {\n\tg(b);\n    }",
    ),
}


@pytest.mark.parametrize("name", INDENTED)
def test_tabs_and_spaces_stay_as_they_are(name: str) -> None:
    language, text, fill = INDENTED[name]
    after, outcome = filled(language, text, Fill(fill), "statement")
    assert after == text.replace("¦", fill), outcome.why


MIXED = {
    "spaces in a block of spaces": (
        "def a():\n\treturn 1\n\n\ndef f(x):\n    y = x\n    ¦\n    return y\n",
        "if y:\n\t\ty = 2",
        "if y:\n        y = 2",
    ),
    "tabs in a block of tabs": (
        "def a():\n    return 1\n\n\ndef f(x):\n\ty = x\n\t¦\n\treturn y\n",
        "if y:\n        y = 2",
        "if y:\n\t\ty = 2",
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_in_a_mixed_file_the_block_decides(name: str) -> None:
    text, fill, wanted = MIXED[name]
    after, outcome = filled("python", text, Fill(fill), "statement")
    assert after == text.replace("¦", wanted), outcome.why


@pytest.mark.parametrize(
    ("own", "far"), [("\r\n", "\n"), ("\n", "\r\n"), ("\r", "\n"), ("\n", "\r"), ("\r\n", "\r")]
)
@pytest.mark.parametrize("place", ["statement", "body", "end"])
def test_a_line_takes_the_end_of_its_own_line(own: str, far: str, place: str) -> None:
    first = f"x = 1{far}y = 2{far}"
    texts: dict[str, tuple[str, str, Kind | None]] = {
        "statement": (
            f"def f(a):{own}    a = 1{own}    ¦{own}    return a{own}",
            "if a:\n        a = 2",
            None,
        ),
        "body": (f"def f(a): pass¦{own}b = 1{own}", "a = 1\n    return a", None),
        "end": (f"def f(a):{own}    ¦", "a = 1\n    return a", "function_body"),
    }
    text, fill, kind = texts[place]
    after, outcome = filled("python", first + text, Fill(fill), kind)
    assert outcome.edit is not None, outcome.why
    added = after.removeprefix(first)
    assert added.replace(own, "").find("\r") < 0 and added.replace(own, "").find("\n") < 0, after
