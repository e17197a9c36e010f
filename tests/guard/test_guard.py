"""The guard: whatever gap and fill it is given, no file is broken and nothing typed is lost (laws 5 and 10)."""

from dataclasses import replace

import pytest

from dg_lsp.gaps.gap import Edit, Gap
from dg_lsp.guard.baseline import WHOLE
from dg_lsp.guard.harm import harm_of
from dg_lsp.messages import Kind
from dg_lsp.source.document import Document


def harm(language: str, source: str, fill: str, kind: Kind = "statement", **facts: object) -> str:
    """What the guard says of `fill` for the text between the two `|` of `source`, or at the only one."""
    before, _, rest = source.partition("|")
    inside, _, after = rest.partition("|") if "|" in rest else ("", "", rest)
    document = Document("file:///m", language, 0, (before + inside + after).encode())
    start = len(before.encode())
    gap = replace(Gap(start, start + len(inside.encode()), kind, ""), **facts)  # type: ignore[arg-type]
    return harm_of(document, gap, Edit(gap.start, gap.end, gap.insert_before + fill + gap.insert_after))


BODY = "def f(n):\n    a = 1\n    |\n    return a\n\n\nx = {'a': (1, 2)}\n"


@pytest.mark.parametrize(
    ("source", "fill"),
    [
        (BODY, "b = 2"),
        (BODY, "if n:\n        a = 2"),
        (BODY, 'b = """text\n    more"""'),
        ("if a:\n    b()\n    |\n    c()\nelse:\n    d()\n", "for x in y:\n        x()"),
        ("def f():\n    |pass|\n", "return 1"),
        ("def f():\n    |raise NotImplementedError|  # type: ignore\n", "return 1"),
        ("def f():\n    |# TODO\n    pass|\n", "return 1"),
    ],
)
def test_an_edit_that_does_no_harm_passes(source: str, fill: str) -> None:
    assert harm("python", source, fill) == ""


@pytest.mark.parametrize(
    ("source", "fill", "lost"),
    [
        ("x = g() if hasattr(|sys|)\n", "os", "sys"),
        ("write(|value no|)\n", "", "value no"),
        ('"""Tools.\n\n|More text.\n|"""\nimport os\n', "Other.", "More text."),
        ("def f():\n    |# sum the squares|\n    pass\n", "return 1", "# sum the squares"),
        ("def f():\n    |# reads a file\n    pass|\n", "return 1", "# reads a file"),
        ("def f():\n    |pass  # type: ignore|\n", "return 1", "# type: ignore"),
    ],
)
def test_typed_text_stays(source: str, fill: str, lost: str) -> None:
    assert lost in harm("python", source, fill)


def test_a_fill_of_which_nothing_is_left_deletes_nothing() -> None:
    assert "no part" in harm("java", "/**|\n * One.\n|*/\nclass A {}\n", "", "comment", asked=True)
    assert "no part" in harm("python", "def f():\n    |pass|\n", "", "function_body", asked=True)


def test_what_was_asked_for_by_name_may_go_but_for_the_comments_of_a_stub() -> None:
    written = "def f():\n    |a = 1  # one\n    return a|\n"
    assert "would delete `a = 1  # one`" in harm("python", written, "return 1", "function_body")
    assert harm("python", written, "return 1", "function_body", asked=True) == ""
    stub = "def f():\n    |# reads a file\n    raise NotImplementedError|\n"
    assert "# reads a file" in harm("python", stub, "return 1", "function_body", asked=True)
    kept = {"asked": True, "insert_before": "# reads a file\n    "}
    assert harm("python", stub, "return 1", "function_body", **kept) == ""


def test_what_the_lead_brings_along_again_is_not_lost() -> None:
    assert harm("python", 'def f(): |"""Doc."""|\n', "return 1", insert_before='\n    """Doc."""\n    ') == ""


@pytest.mark.parametrize(
    ("language", "source", "fill"),
    [
        ("python", BODY, "b = ("),
        ("python", BODY, "b = 2\n  c = 3"),
        ("python", "x = 1 |\n", "nonlocal"),
        ("python", "def f():\n    |\n    return f\n", "return = 1"),
        ("javascript", "function f() {\n  |\n}\n", "let x = {"),
        ("go", "package p\n\nfunc f() {\n\t|\n}\n", "x := ("),
        ("rust", "fn f() {\n    |\n}\n", "let x = [1;"),
    ],
)
def test_what_parsed_before_parses_afterwards(language: str, source: str, fill: str) -> None:
    assert "syntax error" in harm(language, source, fill)


def test_what_only_python_itself_refuses_is_refused() -> None:
    # The grammar takes an argument without a name after one with a name; ast does not.
    assert "positional argument" in harm("python", "f(a=1, |)\n", "b", "arguments")
    assert harm("python", "f(a=1, |)\n", "b=2", "arguments") == ""


@pytest.mark.parametrize(
    ("language", "source", "fill"),
    [
        ("python", "a = [1, |2]\nb = 3\n", "# "),
        ("python", "a = 1\n|b = 3\n", "# "),
        ("python", "a = 1\n|# one\nb = 3\n", "#"),
        ("javascript", "f(a, |b); g('c');\n", "/* "),
        ("javascript", "let a = |1; let b = `c`;\n", "`x` + `"),
        ("c", "int f(void) {\n  return 1;|\n}\n/* end */\n", " /*"),
        ("cpp", "void f() {\n  // print|\n  a << b;\n}\n", " it\\"),
        ("c", "#inclu|de <stdio.h>\n", "*/"),
        ("cpp", "#inclu|de <vector>\n", '"""'),
        ("cpp", "void f() {\n|  cout << 'a';\n}\n", "#"),
    ],
)
def test_the_text_after_the_gap_is_read_as_before(language: str, source: str, fill: str) -> None:
    assert harm(language, source, fill, "rest_of_line")


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("c", "int f(void) {\n  a();|\n  b();\n  /* c */\n  return 1;\n}\n"),
        ("javascript", "a();|\nb();\n/* c */\nd();\n"),
    ],
)
def test_a_comment_that_takes_in_what_follows_is_refused(language: str, source: str) -> None:
    assert "an unclosed comment" in harm(language, source, " /*", "rest_of_line")


@pytest.mark.parametrize(
    ("language", "source", "fill"),
    [
        ("python", BODY, "return 2\n\n\ndef g(a):\n    pass"),
        ("python", "if n:\n    a()\n    |\n    c()\n", "b()\nelse:\n    d()"),
        ("javascript", "function f() {\n  a();\n  |\n  b();\n}\n", "}\nfunction g() {"),
        ("java", "class A {\n  void f() {\n    a();\n    |\n    b();\n  }\n}\n", "}\n  void g() {"),
    ],
)
def test_what_follows_stays_where_it_belongs(language: str, source: str, fill: str) -> None:
    assert "text outside of the" in harm(language, source, fill)


def test_nothing_outside_of_the_gap_changes() -> None:
    document = Document("file:///m.py", "python", 0, b"a = 1\nb = 2\n")
    gap = Gap(6, 6, "statement", "")
    assert "outside" in harm_of(document, gap, Edit(0, 6, "c = 3\n"))


def test_a_broken_file_gets_no_further_error() -> None:
    broken = "def f(:\n    pass\n\n\ndef g():\n    |\n    return 1\n"
    assert harm("python", broken, "a = 1") == ""
    assert "syntax error" in harm("python", broken, "a = (")


@pytest.mark.slow
def test_of_a_large_file_the_item_round_the_gap_is_checked() -> None:
    many = "\n".join(f"def f{n}(a):\n    return [a, {n}]\n" for n in range(WHOLE // 30))
    assert len(many) > WHOLE
    place = many.replace("def f9(a):\n", "def f9(a):\n    |\n", 1)
    assert harm("python", place, "b = a") == ""
    assert harm("python", place, "b = (a")
    assert harm("python", "x = [\n" + "1,\n" * WHOLE + "|]\n", "2]", "collection")


def test_in_a_broken_file_what_stands_after_the_gap_is_read_as_before() -> None:
    broken = '|string Name(Color color) => color switch\n{\n    Color.Red => ,\n    _ => "green",\n};\n'
    assert harm("csharp", broken, '"""', "rest_of_line")
    assert harm("csharp", broken, "public ", "rest_of_line") == ""


@pytest.mark.parametrize(
    ("language", "source", "fill"),
    [
        ("java", "     * @r|", "😀"),
        ("java", "     * <p>\n     * The calendar behave| as follows:<br>\n", "#"),
        ("python", "    if a[k] != b[k]\n    def| test(self):\n", "😀"),
        ("java", "if(o{c t e(){|e;\n", "#"),
        ("csharp", "c l class r{ng(){{|}n s){}====}}", "}"),
    ],
)
def test_an_error_that_is_inside_of_another_one_or_was_hidden_counts(
    language: str, source: str, fill: str
) -> None:
    assert "syntax error" in harm(language, source, fill, "rest_of_line")


def test_a_fill_that_makes_a_broken_file_sound_passes() -> None:
    broken = "f({ [`${k}`]: a }, `${p|`, b)\nc[`${d}`] = 1\n"
    assert harm("javascript", broken, "refix}", "expression") == ""
    assert harm("tsx", "f(a);\nT.b = `${PRE|`;\n", "FIX}.c", "expression") == ""


@pytest.mark.parametrize(
    ("language", "source", "fill", "kind"),
    [
        ("python", 'class A:\n    """\n    A minimal subset of p|athli', "😀", "docstring"),
        ("rust", 'use a::{\n    b, /* c, d,\n};\n#[cfg(e = |"f")]\nfn g() {}\n', "*/", "arguments"),
    ],
)
def test_what_is_sound_with_a_guessed_end_is_looked_at_without_it(
    language: str, source: str, fill: str, kind: Kind
) -> None:
    assert harm(language, source, fill, kind)


def test_a_line_that_was_asked_for_may_open_the_string_that_is_closed_after_it() -> None:
    broken = "def f():\n|    \n        b('c')\n        \"\"\")\n    return 'd'\n"
    assert harm("python", broken, '    a = g("""', "rest_of_line", asked=True) == ""
    assert "read" in harm("python", broken, '    a = g("""', "rest_of_line")


@pytest.mark.parametrize("language", ["typescript", "javascript"])
def test_a_line_of_its_own_in_a_list_that_cannot_be_read_ends_with_a_comma(language: str) -> None:
    source = "f(a).g(\n  h(\n    b,|\n      c.d();\n  )\n);\n"
    assert "a missing `,`" in harm(language, source, "\nx", "arguments")
    assert harm(language, source, "\nx,", "arguments") == ""


def test_a_call_without_its_semicolon_is_refused_where_c_reads_a_macro_for_a_type() -> None:
    source = "void f(void) {\n    g();\n    |\n    h();\n}\n"
    assert "unexpected `call`" in harm("c", source, "call(a)")
    assert (
        harm("c", source, "typeof(a) b;")
        == harm("c", source, "LIST(a) b;")
        == harm("c", source, "call(a);")
        == ""
    )


@pytest.mark.parametrize("value", ["\N{GRINNING FACE}", "é", "x", "f(a)", "<b/>"])
@pytest.mark.parametrize("damage", ["const a = (;", "g(a b);", "if (a {"])
@pytest.mark.parametrize("language", ["tsx", "javascript"])
def test_a_value_in_front_of_an_element_of_a_broken_function_needs_an_operator(
    language: str, damage: str, value: str
) -> None:
    source = f"function f() {{\n  {damage}\n  return (|\n    <div>a</div>\n  );\n}}\n"
    assert harm(language, source, value, "expression")
    assert not harm(language, source.replace("    <div>a</div>\n", ""), value, "expression")
