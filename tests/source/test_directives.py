"""Directives: a fill leaves what a preprocessor can read, in files without errors and in those with many (law 5)."""

import asyncio

import pytest

from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.filling.fill import fill_gap, finish
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import Fill
from dg_lsp.model.candidates import fitted
from dg_lsp.settings import Settings
from dg_lsp.source.directives import flaw_of_directives
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language

# The text below the directive: sound code, a brace that nothing closes, code of no language.
BELOW = {
    "c": ("int x;\n", "int x;\n{\n", "void f(T!! a) { a ?? b !! ; ] }\n"),
    "cpp": ("int x;\n", "int x;\n{\n", "void f(T!! a) { a ?? b !! ; ] }\n"),
    "csharp": ("class A {}\n", "class A {\n", "class A { void F( { a ?? ] } }\n"),
}
# Languages, a directive, fills to show and fills to refuse.
DIRECTIVES: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "half a word": ("c cpp", "#i¦nclude <a.h>\n", (), (")", "}", "f", "\\", '"""', "else:", "f X\n#i")),
    "half a word of C#": ("csharp", "#reg¦ion A\n", (), (")", "}", "x", '"""')),
    "a path": ("c cpp", "#include <iost¦ream>\n", ("a", "b/c", "-x.y"), (")", "}", '"""', "[", ">", "a>", "*/", "#")),
    "a path in quotes": ("c cpp", '#include "iost¦ream"\n', ("a", "../b/c"), (")", "}", "[", "*/")),
    "an include": ("c cpp", "#include ¦\n", ("<a.h>", '"a.h"', "A"), ("<a", "}", ")", '"a', "<a.h")),
    "a macro's name": ("c cpp", "#define A¦B 1\n", ("C",), (")", "}", '"""', "*/")),
    "a macro's text": ("c cpp", "#define A ¦\n", ("1", "(1)", "f(x)", "'a'"), ('"""', "(", "f(", "[1", "*/")),
    "a macro of several lines": (
        "c cpp", "#define A(x) \\\n  private: ¦ \\\n  int a;\n", ("1", "(x)"), ("}", ")", '"""', "(", "*/"),
    ),
    "a macro's value": (
        "c cpp", "#define A ¦\n\n", ("(10 * 1e5)", r"'\\'", r'"\\"', r"\u00e9", 'f("`")'),
        ("(10 * 1e5)`abc;", "x = \\", r"x = \;", r"\x", "a `b`", "1 '", "(1 + [2"),
    ),
    "a macro's value, joined": ("c cpp", "#define A \\\n  ¦\n\n", ("a(1); b", "(1)"), ("x`", "x = \\", r"\ 1")),
    "a condition": ("c cpp csharp", "#if A ¦\n#endif\n", ("&& B", "|| !(B)"), ("&& (B", "&& B)", '"""', "}")),
    "a condition's rest": ("c cpp", "#if defined(A¦)\n#endif\n", ("B",), ('"""', "*/", "{")),
    "an end": ("c cpp csharp", "#if A\n#endif¦\n", (" // A",), ("}", ")", '"""')),
    "prose": ("c cpp csharp", "#error do¦ it\n", (" not", "n't"), ("}", ")", "(")),
    "a statement": ("c cpp", "¦\n", ("#define A 1", "#include <a.h>"), ("#foo", "#include <a", "#define A (")),
}  # fmt: skip
CASES = [
    (language, name, below)
    for name, case in DIRECTIVES.items()
    for language in case[0].split()
    for below in BELOW[language]
]


def shown(language: str, text: str, fill: str) -> str | None:
    """What is inserted at the `¦` of `text` for `fill`, or None."""
    data, at = text.replace("¦", "").encode(), text.index("¦")
    document = Document("file:///d", language, 0, data)
    edit = finish(document, find_gap(document, at), Fill(fill)).edit
    return None if edit is None else edit.text


@pytest.mark.parametrize(("language", "name", "below"), CASES)
def test_a_directive_stays_one(language: str, name: str, below: str) -> None:
    _, directive, good, bad = DIRECTIVES[name]
    found = {fill: shown(language, directive + below, fill) for fill in (*good, *bad)}
    # Half a repaired text may be shown, such as `B` of `B)`.
    assert [fill for fill in bad if found[fill] == fill] == []
    if below == BELOW[language][0]:
        assert [fill for fill in good if found[fill] != fill] == []


UNTOUCHED = {
    "a comment": ("c", "/* a\n# note (|) */\n", "x ("),
    "a string that begins above": ("cpp", 'auto s = R"(\n#foo |\n)";\n', "x"),
    "an unknown word that is typed": ("c", "#foo a |\n", "x"),
    "a bracket that is typed": ("c", "#define BEGIN namespace a { |\n", "int x;"),
    "another language": ("python", "#include |\n", "("),
    "code": ("c", "int a = |;\n", "f("),
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_what_is_no_directive_or_was_typed_so_is_left_to_others(name: str) -> None:
    language, text, fill = UNTOUCHED[name]
    before, after = (part.encode() for part in text.split("|"))
    assert flaw_of_directives(load_language(language), before, fill.encode(), after) == ""


def test_a_fill_joins_a_directive_with_no_line_below() -> None:
    assert "line below" in flaw_of_directives(load_language("c"), b"#define A ", b"1 \\", b"\nint x;\n")
    assert not flaw_of_directives(load_language("c"), b"#define A \\\n  ", b"f() \\\n  g()", b"\nint x;\n")


@pytest.mark.parametrize("language", ["c", "cpp", "csharp"])
def test_a_condition_gets_no_semicolon(language: str) -> None:
    text = "#if A ¦\n" + BELOW[language][0] + "#endif\n"
    assert shown(language, text, "&& B") == "&& B"


@pytest.mark.parametrize(
    "typed", ["#if defined(A¦ || B\n", "#if defined(¦ || B\n", "#elif defined(A¦ && B\n"]
)
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_a_condition_is_closed_before_the_rest_of_its_line(language: str, typed: str) -> None:
    above = "#if C\n" if typed.startswith("#elif") else ""
    text = f"{above}{typed}{BELOW[language][0]}#endif\n"
    assert shown(language, text, "X") == "X)"
    assert shown(language, text, "X)") == "X)"


@pytest.mark.parametrize("language", ["c", "cpp", "csharp"])
def test_a_condition_has_one_else_below_its_other_branches(language: str) -> None:
    text = f"#if A\n¦\n#else\n{BELOW[language][0]}#endif\n"
    assert shown(language, text, "#else") != "#else"
    assert shown(language, text, "#elif B") == "#elif B"
    below = f"#if A\n#else\n¦\n{BELOW[language][0]}#endif\n"
    assert shown(language, below, "#elif B") != "#elif B"


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_the_condition_around_a_long_file_is_offered(language: str) -> None:
    below = "#define A_H\n" + "int x;\n" * 1_000 + "#endif\n"
    document = Document("file:///d", language, 0, ("\n" + below).encode())
    engine = ScriptedEngine(lambda request: fitted(request, "#ifndef A_H"))
    outcome = asyncio.run(fill_gap(engine, document, find_gap(document, 0), Settings(related=False)))
    assert outcome.edit is not None, outcome.why
    assert shown(language, "¦\n" + below.removesuffix("#endif\n"), "#ifndef A_H") is None


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_a_comment_in_a_directive_ends(language: str) -> None:
    text = f"#ifndef A_H\n#define ¦\n{BELOW[language][0]}#endif\n"
    assert shown(language, text, "A_H /* x") != "A_H /* x"
    assert shown(language, text, "A_H /* x */") == "A_H /* x */"


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_a_directive_may_join_lines_that_are_joined(language: str) -> None:
    text = f"#define A ¦\n  (1 + \\\n  2)\n{BELOW[language][0]}"
    assert shown(language, text, "\\") == "\\"
    within = f"#define A \\\n  do {{ \\\n    ¦\n    f(x); \\\n  }} while (0)\n{BELOW[language][0]}"
    assert shown(language, within, "f(1); \\") == "f(1); \\"


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_a_directive_holds_no_other(language: str) -> None:
    text = f"#if A\n#define B ¦\n#else\n{BELOW[language][0]}#endif\n"
    for fill in ("1 #else", "#    else", "#define C"):
        assert shown(language, text, fill) != fill
    for fill in ('"#else"', "1 // #else", "#b"):
        assert shown(language, text.replace("B ", "B(b) "), fill) == fill


@pytest.mark.parametrize("language", ["c", "cpp"])
@pytest.mark.parametrize(
    "fill", ["x = \\", "A f(", "A (1", "A \\", "A {", "A x", "A return", "A (a ? b", "A \\\\\\"]
)
def test_no_end_of_a_statement_is_added_to_a_directive(language: str, fill: str) -> None:
    assert ";" not in (shown(language, "#define ¦\n\n#include <a.h>\nint b;\n", fill) or "")
    assert ";" not in (shown(language, "#define A \\\n  ¦\n\n#include <a.h>\nint b;\n", fill) or "")
