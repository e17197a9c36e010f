"""The guard in code that no grammar knows: good fills are shown as in the clean twin, bad ones never (law 5)."""

import pytest

from dg_lsp.context import prompt
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import find_gap, find_named
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.guard.fit import fit
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from tests.guard.faulty import faults
from tests.guard.wild import BAD, GOOD, WILD, Wild

# What stands for the cursor's line, and fills of it.
PLACES = {
    "a value": ("x = ¦;", ("a + 1", "foo(a)", "(a)[0]"), ("(a", "a)", '"a', "/* x", "a +", "[a", "a = = b")),
    "arguments": (
        "foo(¦);",
        ("a + 1", "foo(a)", "a, b"),
        ("(a", "a))", '"a', "/* x", "*/", "a */", "a +", "[a", "a; b("),
    ),
    "a call that is open": ("foo(¦", ("a + 1);", "(a)[0]);"), ('"a);', "a +);", "[a);", "/* x);")),
    "a result": (
        "return ¦;",
        ("a + 1", "foo(a)"),
        ("(a", "a)", '"a', "/* x", "*/", "a */", "a +", "a b"),
    ),
}


def shown(language: str, source: str, fill: str) -> str | None:
    """The text that is inserted at the `¦` of `source` for `fill`, as an engine and the server see to it; or None."""
    at = source.index("¦")
    document = Document("file:///wild", language, 0, source.replace("¦", "").encode())
    gap = find_gap(document, len(source[:at].encode()))
    request = prompt.build(document, gap, Settings())
    text = fit(request, fill)
    if faults(request.language, request.kind, request.prefix, text, request.suffix):
        return None
    edit = finish(document, gap, Fill(fill)).edit
    return None if edit is None else edit.text


def lost(wild: Wild, place: str, fills: tuple[str, ...]) -> list[str]:
    """Those of `fills` that are shown in the twin and not in the text, at `place` for the cursor."""
    clean, odd = (text.replace("¦", place) for text in (wild.twin, wild.source))
    return [
        fill for fill in fills if shown(wild.language, clean, fill) and not shown(wild.language, odd, fill)
    ]


def let_through(wild: Wild, place: str, fills: tuple[str, ...]) -> list[str]:
    """Those of `fills` that are shown in the text and not in the twin, at `place` for the cursor."""
    clean, odd = (text.replace("¦", place) for text in (wild.twin, wild.source))
    found = [(fill, shown(wild.language, odd, fill)) for fill in fills]
    return [fill for fill, text in found if text and shown(wild.language, clean, fill) != text]


@pytest.mark.parametrize("wild", WILD, ids=lambda w: f"{w.language}: {w.name}")
def test_good_fills_are_shown_as_in_the_clean_twin_and_bad_ones_never(wild: Wild) -> None:
    assert lost(wild, "¦", GOOD[wild.language]) == []
    assert let_through(wild, "¦", BAD[wild.language]) == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "name", ["a conditional assignment", "an elvis", "a record", "an operator of nobody"]
)
def test_so_it_is_with_parts_of_a_statement(name: str, place: str) -> None:
    wild = next(wild for wild in WILD if wild.name == name)
    line, good, bad = PLACES[place]
    assert lost(wild, line, good) == []
    assert let_through(wild, line, bad) == []


# After a result that nothing ends, above a body's end.
ENDLESS = {
    "csharp": "class A {\n    int F(A? a) {\n        @\n        return g(a)\n    ¦}\n}\n",
    "java": "class A {\n    int f(int a) {\n        @\n        return g(a)\n    ¦}\n}\n",
}


@pytest.mark.parametrize(
    "wild", [w for w in WILD if w.language in ENDLESS], ids=lambda w: f"{w.language}: {w.name}"
)
def test_no_fill_ends_a_comment_that_nothing_begins(wild: Wild) -> None:
    source = ENDLESS[wild.language].replace("@", wild.odd)
    assert [fill for fill in ("*/", "+ 1 */ 2") if shown(wild.language, source, fill)] == []


def test_there_are_enough_texts_that_no_grammar_reads() -> None:
    broken = [
        wild
        for wild in WILD
        if load_language(wild.language).parse(wild.source.replace("¦", "").encode()).root_node.has_error
    ]
    assert len(WILD) >= 60 and len(broken) >= 45
    assert all(
        not load_language(w.language).parse(w.twin.replace("¦", "").encode()).root_node.has_error
        for w in WILD
    )
    assert {wild.language for wild in broken} >= {"c", "cpp", "csharp", "go", "java", "python", "rust", "tsx"}


def test_a_comment_that_a_grammar_takes_for_a_division_is_refused_in_a_sound_file() -> None:
    assert shown("go", "package p\n\nfunc f() {\n\t¦\n}\n", "foo(a) /* x") is None
    assert shown("go", "package p\n\nfunc f() {\n\t¦\n}\n", "foo(a) /* x */")


def test_a_fill_that_makes_the_file_sound_may_close_what_is_open_there() -> None:
    broken = "int f(int a) {\n  if (a ¦\n    g();\n  }\n}\n"
    document = Document("file:///m", "c", 0, broken.replace("¦", "").encode())
    gap = find_gap(document, broken.index("¦"), "rest_of_line")
    edit = finish(document, gap, Fill("> 1) {")).edit
    assert edit is not None
    assert not load_language("c").parse(apply_edit(document, edit).data).root_node.has_error


# A parser that recovers finds other errors after other text in the string.
STRANDED = """\
    protected void engineInit(AlgorithmParameterSpec paramSpec)
        throws InvalidParameterSpecException {
        try {
            if (encodedParams.data.available() != 0) {
            }
        } catch (NumberFormatException e) {
            throw new IOException("Private-value length¦
    protected void engineInit(byte[] params, String decodingMethod)
        throws IOException {
        } else {
            throw new InvalidParameterSpecException
                ("Inappropriate parameter Specification");"""


def test_the_text_of_a_string_adds_no_error_to_a_broken_file() -> None:
    assert shown("java", STRANDED, " too big") == ' too big");'
    assert shown("java", STRANDED, ' too big" + (') != ' too big" + (");'


# Code that no parser can read, and a fill that is no code there, whatever brackets it has.
SENSELESS = [
    (
        "cpp",
        "      if (n == 1)\n        return h;\n ¦     T a, b, c;\n      for  (b = a, i = 2; i <= n; ++i)\n",
    ),
    ("tsx", "    private render = (panel: Panel) => {\n      <View\n        show={showPanelHe¦ader}\n"),
    (
        "javascript",
        "module.exports = pkg => {\n    ¦engines: pkg.engines,\n    bin: pkg.bin,\n  }, 'npm_')\n",
    ),
    (
        "javascript",
        "  }\n    if (a.indexOf(b) !== -1) {\n        type: 'LICENSE',\n      ¦  string: string\n",
    ),
]


@pytest.mark.parametrize(("language", "text"), SENSELESS)
@pytest.mark.parametrize("fill", ["else:", "else :", "for: a;"])
def test_a_word_of_a_block_is_no_label(language: str, text: str, fill: str) -> None:
    assert shown(language, text, fill) is None


@pytest.mark.parametrize(
    ("language", "text", "fill"),
    [
        ("cpp", "{\n    Q(int a READ a)\n    cout << '¦n';\n    cout << '\\n';\n", "\\"),
        ("cpp", '{\n    Q(int a READ a)\n    cout << "¦";\n    cout << "\\n";\n', "\\"),
        ("java", "class A { void f() {\n    a ?? b;\n    g('¦b');\n    h('c');\n", "else"),
    ],
)
def test_a_string_of_a_broken_file_ends_where_it_did(language: str, text: str, fill: str) -> None:
    document = Document("file:///m", language, 0, text.replace("¦", "").encode())
    edit = finish(document, find_gap(document, text.index("¦"), "string"), Fill(fill)).edit
    assert edit is None or not edit.text.rstrip("'\"").endswith(fill), edit


# A function whose name the grammar loses elsewhere in valid code, or in code of another grammar, and the name.
NAMED = (
    ("go", "package p\n\nfunc f(a int) {\n\tb := new(3)\n\t¦\n}\n", "f"),
    (
        "java",
        "class A extends B {\n    A(int a) {\n        check(a);\n        super(a);\n        ¦\n    }\n}\n",
        "A.A",
    ),
    ("cpp", "struct A {\n    int f(this A& self, int a) {\n        ¦\n    }\n};\n", "A.f"),
    ("cpp", "struct A {\n    int operator()(this A self) {\n        ¦\n    }\n};\n", "A.operator()"),
    ("cpp", "int f(int a) {\n    if consteval { g(); }\n    ¦\n    return a;\n}\n", "f"),
    ("cpp", "int f(int a) {\n    if not consteval { g(); } else { h(); }\n    ¦\n    return a;\n}\n", "f"),
    ("cpp", "int f(int a) pre(a > 0) post(r: r > 1) {\n    ¦\n    return a;\n}\n", "f"),
    ("typescript", "class A {\n  static accessor x = 1;\n  f(a: number) {\n    ¦\n  }\n}\n", "A.f"),
    ("tsx", "function f() {\n  ¦\n  return <b>a & b</b>;\n}\n", "f"),
    ("csharp", 'class A {\n    void F(int a) {\n        s = $@"""{p}""";\n        ¦\n    }\n}\n', "A.F"),
    (
        "csharp",
        "static class E {\n    extension(string s) {\n        public int N() {\n            ¦\n        }\n    }\n}\n",
        "E.N",
    ),
)


@pytest.mark.parametrize(("language", "source", "name"), NAMED)
def test_a_function_keeps_its_name(language: str, source: str, name: str) -> None:
    at = len(source[: source.index("¦")].encode())
    assert find_gap(Document("file:///wild", language, 0, source.replace("¦", "").encode()), at).name == name


# Functions of C whose first line is less deep than their statements, or which have none.
SHALLOW = (
    *("#ifdef A\n    g();\n#endif\n", "#ifdef A\n#endif\n", "/* a */\n#ifdef A\n    g();\n#endif\n"),
    *("err:\n    g();\n", "// a\n    g();\n", "/* a\n b */\n    g();\n"),
)


@pytest.mark.parametrize("body", SHALLOW)
def test_a_body_is_written_at_the_depth_of_its_statements(body: str) -> None:
    document = Document("file:///wild", "c", 0, f"int f(void) {{\n{body}}}\n".encode())
    edit = finish(document, find_named(document, "f"), Fill("int a = 1;\n    return a;")).edit
    assert edit is not None
    assert apply_edit(document, edit).data == b"int f(void) {\n    int a = 1;\n    return a;\n}\n"


@pytest.mark.parametrize(
    "text", ["function {{ name }}(a) {\n  ¦\n}\n\nfunction h() {}\n", "function {{ name }}(a) { ¦ }\n"]
)
def test_no_fill_ends_a_function_whose_name_a_template_inserts(text: str) -> None:
    assert not shown("javascript", text, "} function g() {")
