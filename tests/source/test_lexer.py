"""What a place is, by tokens alone: code, a string, a comment, or text between tags; and the tree says the same."""

import random
from collections.abc import Iterator

import pytest
from tree_sitter import Node

from benchmarks.gaps.sources import find_corpus
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import STRINGS
from dg_lsp.source.analysis import state_in
from dg_lsp.source.brackets import state_at
from dg_lsp.source.document import Document
from dg_lsp.source.language import known_languages, load_language
from dg_lsp.source.lexer import tokens
from tests.source.fixtures import fixtures

# One line each: the cursor is at `¦`, after `c` in code, `s` in strings and text, `#` in comments.
PYTHON = r"""
c s = f"{x.na¦}"
c s = f"{x:{wid¦}}"
c s = f"{x:>{wid¦}.{prec}}"
c s = f"{x:>{wid}.{prec¦}}"
c s = t"{na¦}"
c s = rf"{na¦}"
c s = Fr'{na¦}'
c s = f"\{na¦}"
c s = f"{{{na¦}}}"
c s = f"{a["b"] + c¦}"
c s = f"{f"{na¦}"}"
c s = f'{a != b¦}'
c s = f"{a:b}" + c¦
c s = f"{a!r:>10}" + c¦
c s = f"{d['a:b']}" + c¦
c s = f"{x[1:¦2]}"
c s = f"{(lambda a: a¦)(1)}"
s s = f"na¦{x}"
s s = f"{{na¦}}"
s s = f"{x:>¦10}"
s s = f"{x!r¦}"
s s = f"{x:{wid}¦}"
s s = f"{x} na¦"
s s = f"\N{DASH} na¦"
s s = "{na¦}"
s s = rb"{na¦}"
s s = f"{a['b¦']}"
s s = "a \" b¦"
s s = r"a\" b¦"
c s = r"a\\" + b¦
c s = "a" + b¦
c self.f"{x}" + c¦
# x = 1  # f"{na¦}"
c x = [f"{x}", '#', na¦]
""".strip().split("\n")  # fmt: skip
LINES = {
    "python": PYTHON,
    "javascript": [
        "s const r = /[/\"'`{¦]/;",
        "c const r = /[/\"'`{]/g.test(x¦);",
        "s f(/a\"¦/);",
        "c f(/a\"/, b¦);",
        "c return /'/.test(x¦);",
        "c x => /\"/.test(x¦);",
        "c if (a) {} /'/.test(x¦);",
        "c if (f(g(a))) /\"/.test(x¦);",
        "c while (a) /'/.test(x¦);",
        "c if (a) // b\n  /\"/.test(x¦);",
        "c x = // a\n  // b\n  /\"/.test(x¦);",
        "c x = a /* b */ / \"/\" + c¦;",
        "c x = a // in\n  / \"/\" + c¦;",
        "c for (const a of b) /`/.exec(x¦);",
        "c x = a.if(b) / 'c'.d / e¦;",
        "c x = f(a) / \"c\".d / e¦;",
        "c x = a / b; y = 'c'.d / e¦;",
        "s x = a / b; y = '/ c¦';",
        "c x = (a) / b¦ / c;",
        "c x = a[1] / b / c¦;",
        "c x = 1 / 2 / c¦;",
        "c x = i++ / 2 / c¦;",
        "c s = `a${`b${c¦}`}`;",
        "s s = `a${`b¦${c}`}`;",
        "s s = `\\${c¦}`;",
        "s x = 'a\\'¦b';",
        "# x = 1; // don't `¦",
        "# x = /* 'a ¦ */ 1;",
    ],
    "typescript": ["s const r: RegExp = /[/\"]¦/;", "c const r = /[\"]/; const a = b¦;", "c type A = B<C> | d¦;"],
    "go": ["s x := `a\\¦`", "c x := `a\\` + b¦", "s x := '\\''+\"¦\"", "c x := '\"' + b¦", "s x := '\\u00e4¦'"],
    "java": [
        's String x = """a " b¦""";',
        'c String x = """a "" b""" + c¦;', "s char x = '(¦';", "c char x = '\"'; f(b¦);",
    ],
    "csharp": [
        's var x = """a "" b¦""";',
        's var x = """"a """ b¦"""";',
        'c var x = """"a """ b"""" + c¦;',
        'c var x = $"{a¦}";',
        's var x = $"{{a¦}}";',
        's var x = $"{a:yyyy-MM¦}";',
        'c var x = $@"{a¦}";',
        's var x = @"a\\"; var y = "b¦";',
        's var x = @"a "" b¦";',
        'c var x = $$"""{{a¦}}""";',
        's var x = $$"""{a¦}""";',
        'c var x = $"""{a¦}""";',
        'c var x = $$$"""{{{a¦}}}""";',
        'c var x = $"{f("a")}" + c¦;',
    ],
    "rust": [
        "# /* a /* b */ c¦ */",
        "c /* a /* b */ c */ let x = a¦;",
        's let x = r#"a " b¦"#;',
        's let x = r####"a "### b¦"####;',
        'c let x = r####"a "### b"#### + c¦;',
        's let x = br#"a " b¦"#;',
        's let x = cr#"a " b¦"#;',
        's let x = c"a¦";',
        "c fn f<'a>(x: &'a str, y¦) {}",
        "c let x = 'a'; let y = '\"'; z¦",
        "s let x = '\\u{1F6¦00}';",
        "s let x = b'(¦';",
        's let x = format!("{a¦}");',
        "c 'outer: loop { break 'outer; a¦ }",
    ],
    "c": [
        "# // a \\\\¦",
        "s char x = '\\''; char *y = \"¦\";",
        "s char x = '{¦';",
        "s char *x = \"a\\\\\\\" b¦\";",
        "c char x = '\"'; f(b¦);",
    ],
    "cpp": [
        's auto x = R"(a " b¦)";',
        's auto x = R"x(a )" b¦)x";',
        'c auto x = R"x(a )" b)x" + c¦;',
        's auto x = u8R"--(a " b¦)--";',
        's auto x = LR"(a " b¦)";',
        "c auto x = 1'000'000 + c¦;",
        "c auto x = 0b1'0'1 + c¦;",
        "c auto x = 0xA'B'C + '\"' + c¦;",
        "s auto x = u8'a¦';",
        's auto x = u8"a¦";',
    ],
}  # fmt: skip
LINES["tsx"] = LINES["javascript"]
SEVERAL = {
    "python": [
        "c f'''{\n  na¦\n}'''",
        's f"""\n{{ na¦ }}\n"""',
        'c f"""\n{na¦}\n"""',
        's f"""\n{x} "a" na¦\n"""',
        's x = "a \\\nb¦"',
        'c x = "a \\\nb" + c¦',
        'c x = f"a \\\n{na¦}"',
        's x = """a\\""" b¦"""',
    ],
    "c": ["# // a \\\n b¦", "c // a\nb¦"],
    "cpp": ["# // don't \\\n b¦\n", 's auto x = R"(\n" b¦\n)";'],
    "go": ['s x := `a\n"b¦`'],
    "java": ['s String x = """\n  a "b" ¦\n  """;'],
    "rust": ['# /* a\n/* b */ " ¦\n*/', 's let x = "a\n  b¦";'],
    "javascript": ["c const x = a\n  / b\n  / c¦", "s `a\n${b} '¦`"],
}
JSX = [
    "s x = <p>don't ¦</p>;",
    "s x = <p>don¦</p>;",
    "s x = <p>\n  some text¦\n</p>;",
    "s x = <p>\n  some \"text\n  it's ¦\n</p>;",
    "s x = <><b>a</b> don't¦</>;",
    "s x = <p>a {b} don't¦</p>;",
    "s x = <A b={<i>it's</i>}>don't¦</A>;",
    's x = <a href="b¦">c</a>;',
    "s x = <a href='b\\¦'>c</a>;",
    "s x = a && <p>don't ¦</p>;",
    "s x = f((a) => <p>don't ¦</p>);",
    "s x = <A.B c>// don't¦</A.B>;",
    "c x = <p>don't {na¦}</p>;",
    "c x = <p>don't</p>; y = na¦;",
    "c x = <p a={na¦}>don't</p>;",
    "c x = <p a={() => { f(na¦) }}>don't</p>;",
    "c x = <p>it's {a.map((b) => <i>it's {na¦}</i>)}</p>;",
    "c x = <br />; y = 'a'; f(na¦);",
    "c x = <input value='a' />; f(na¦);",
    "c x = a < b; y = c > d; f(na¦);",
    "c x = (\n  <div>\n    <p>it's</p>\n  </div>\n);\ny = na¦;",
    "s x = <p>{/* it's */} don't¦</p>;",
    "c x = <p>{`it's ${na¦}`}</p>;",
]
TSX = [
    "c const f = <T,>(a: T) => na¦;",
    "c const f = <T extends B>(a: T) => na¦;",
    "c type F = <T>(a: T) => void; const x = na¦;",
    "c const [a, b] = useState<string>('a'); na¦",
    "c const x: Array<B> = na¦;",
    's const x = <A<B> c="d">don\'t¦</A>;',
]


def cases() -> Iterator[tuple[str, str]]:
    for lines in (LINES, SEVERAL, {"javascript": JSX, "tsx": [*JSX, *TSX]}):
        yield from ((language, line) for language, found in lines.items() for line in found)


@pytest.mark.parametrize(("language", "line"), list(cases()))
@pytest.mark.parametrize("ended", [True, False])
def test_a_place_is_what_it_looks_like(language: str, line: str, ended: bool) -> None:
    """Also where the text ends at the cursor, as it does while one types."""
    kind, text = line[0], line[2:]
    before, _, after = text.partition("¦")
    if not ended and ("'" in before[-9:] and language not in ("python", "javascript", "tsx")):
        pytest.skip("an apostrophe begins a character only where one ends it")
    data = (before + (after if ended else "")).encode()
    state = state_at(load_language(language), data, len(before.encode()), 0)
    found = "#" if state.comment else "s" if state.string or state.text else "c"
    assert found == kind, state


@pytest.mark.parametrize(
    ("language", "line"), [c for c in cases() if c[1][0] == "s" and c[0] in ("python", "javascript", "tsx")]
)
def test_the_gap_in_a_string_or_in_text_is_prose(language: str, line: str) -> None:
    before, _, after = line[2:].partition("¦")
    document = Document("file:///m", language, 0, (before + after).encode())
    gap = find_gap(document, len(before.encode()))
    assert gap.kind in STRINGS, gap


@pytest.mark.parametrize(
    "text",
    [
        's = f"{x.na¦}"\n',
        's = f"{x:{wid¦}}"\n',
        "s = f'''{\n  na¦\n}'''\n",
        's = t"{na¦}"\n',
        's = f"{na¦"\n',
    ],
)
def test_the_gap_in_a_hole_is_code(text: str) -> None:
    before, _, after = text.partition("¦")
    gap = find_gap(Document("file:///m", "python", 0, (before + after).encode()), len(before))
    assert gap.kind not in (*STRINGS, "comment")


def test_what_is_open_in_holes_is_closed_by_its_quotes() -> None:
    python = load_language("python")
    for text, closing in [
        ('f"{a', b'}"'),
        ('f"""{a', b'}"""'),
        ("f'''{(a", b")}'''"),
        ('f"{a:{b', b'}}"'),
        ("(f'{[a", b"]}')"),
    ]:
        state = state_at(python, text.encode(), len(text), 0)
        assert state.closing(state.opened) == closing, text


STRINGS_OF_TREES = (
    "string", "string_literal", "raw_string_literal", "template_string", "char_literal", "character_literal",
    "rune_literal", "interpreted_string_literal", "verbatim_string_literal", "interpolated_string_expression", "regex",
    "jsx_text",
)  # fmt: skip
HOLES = ("interpolation", "template_substitution")
FORMATS = ("format_specifier", "interpolation_format_clause", "type_conversion")
UNTOLD = ("system_lib_string", "preproc_arg", "hash_bang_line", "literal_suffix")


def told(root: Node, at: int) -> str:
    """What the tree says of a place; empty within what begins and ends a string or a comment."""
    node, kind = root, "c"
    while True:
        inner = next((c for c in node.named_children if c.start_byte < at < c.end_byte), None)
        if inner is None:
            return kind
        node = inner
        if node.type in UNTOLD:
            return ""
        if node.type.endswith("comment"):
            return "#" if at - node.start_byte > 1 else ""
        if node.type in STRINGS_OF_TREES:
            short = node.type in ("jsx_text", "regex", "char_literal", "character_literal", "rune_literal")
            kind = "s" if short or at - node.start_byte > 3 else ""
        elif node.type in HOLES:
            kind = "c" if at - node.start_byte > 1 else ""
        elif node.type in FORMATS:
            kind = "s" if at > node.start_byte else ""


@pytest.mark.parametrize("name", known_languages())
def test_the_tree_and_the_tokens_tell_the_same(name: str) -> None:
    language, rng = load_language(name), random.Random(name)
    texts = [case.document.data for case in fixtures(name)]
    texts += list(find_corpus(name, {}, 12, 5).valid)
    agreed = asked = 0
    for data in texts:
        root = language.parse(data).root_node
        if root.has_error:
            continue
        near = [at + step for at, sign in enumerate(data) if sign in b"\"'`/{<" for step in (1, 2, 5)]
        places = rng.sample(near, min(30, len(near))) + rng.sample(range(len(data)), min(10, len(data)))
        for at in places:
            kind = told(root, at)
            if not kind or at >= len(data) or data[at] & 0xC0 == 0x80:
                continue
            state = state_in(language, root, data, at)
            found = "#" if state.comment else "s" if state.string or state.text else "c"
            # At the end of its line one is still in a comment.
            if found == "#" and data[at : at + 1] in b"\r\n":
                continue
            asked += 1
            agreed += found == kind
    assert asked > 60 and agreed / asked >= 0.99, f"{agreed} of {asked}"


@pytest.mark.parametrize(
    "text", ["<a b={" * 2000, "<a>" * 5000, "<p>{" * 3000, "`${" * 300, "x = <p>" + "it's " * 9000]
)
def test_deep_elements_cost_little(text: str) -> None:
    assert sum(1 for _ in tokens(load_language("tsx"), text.encode(), 0, len(text))) < 40_000
