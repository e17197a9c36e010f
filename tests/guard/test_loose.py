"""Loose ends: no fill leaves a comment, a quote or a bracket open, or closes what is not open, in any language."""

import pytest

from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import NoGap, find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.messages import Fill, Wanted
from dg_lsp.source.document import Document
from dg_lsp.source.language import known_languages, plain_languages


def filled(language: str, marked: str, fill: str, kind: Wanted | None = None) -> str | None:
    """The text with `fill` at the `¦` of `marked` as it is shown; None if it is refused, or there is no gap."""
    before, _, after = marked.partition("¦")
    document = Document("file:///w/a", language, 0, (before + after).encode())
    try:
        gap = find_gap(document, len(before.encode()), kind)
    except NoGap:
        return None
    edit = finish(document, gap, Fill(fill)).edit
    return None if edit is None else apply_edit(document, edit).text


# Places of each language; every kind of gap that code has is among them.
PLACES = {
    "python": (
        "def f():\n    ¦\n    return b\n",
        "x = ¦\ny = 1\n",
        "f(a, ¦)\ny = 1\n",
        "x = [\n    1,\n    ¦\n]\ny = 1\n",
        "def f(¦):\n    pass\n",
        "if ¦:\n    b()\n",
        "a ?? b\nx = ¦\ny = 1\n",
    ),
    "javascript": (
        "function f() {\n  ¦\n  g();\n}\n",
        "const x = ¦;\ng();\n",
        "f(a, ¦);\ng();\n",
        "const x = [\n  1,\n  ¦\n];\n",
        "if (¦) {\n  g();\n}\n",
        "class A {\n  ¦\n  g() {}\n}\n",
        "a @@ b;\nlet x = ¦\ng();\n",
    ),
    "typescript": (
        "function f(): void {\n  ¦\n  g();\n}\n",
        "const x: T = ¦;\ng();\n",
        "f(a, ¦);\ng();\n",
        "type A = ¦;\ntype B = C;\n",
        "interface A {\n  ¦\n  b: C;\n}\n",
        "const x = { a: ¦ };\ng();\n",
    ),
    "tsx": (
        "function f() {\n  ¦\n  g();\n}\n",
        "const x = <a b={¦}>c</a>;\ng();\n",
        "const x = ¦;\ng();\n",
        "f(a, ¦);\ng();\n",
    ),
    "c": (
        "int f(void) {\n  r ¦\n  g();\n}\nint g(void);\n",
        "int f(void) {\n  g(¦);\n  return 1;\n}\n/* end */\n",
        "int f(void) {\n  ¦\n  return 1;\n}\n",
        "int a[] = {1, ¦};\nint b;\n",
        "#define A ¦\nint b;\n",
        "int a = ¦;\nint b;\n",
        "int f(¦);\nint b;\n",
        "struct A {\n  ¦\n  int b;\n};\n",
    ),
    "cpp": (
        "void f() {\n  r ¦\n  g();\n}\n",
        "void f() {\n  g(¦);\n  h();\n}\n/* end */\n",
        "void f() {\n  auto a = ¦;\n  h();\n}\n",
        "std::vector<int> a{1, ¦};\nint b;\n",
        "class A {\n  ¦\n  int b;\n};\n",
        "#define A ¦\nint b;\n",
    ),
    "csharp": (
        "class A {\n  void F() {\n    r ¦\n    G();\n  }\n}\n",
        "class A {\n  void F() {\n    G(¦);\n    H();\n  }\n}\n",
        "class A {\n  int b = ¦;\n  int c = 1;\n}\n",
        "class A {\n  void F() {\n    ¦\n    H();\n  }\n}\n",
        "class A {\n  int[] b = {1, ¦};\n  int c = 1;\n}\n",
    ),
    "java": (
        "class A {\n  void f() {\n    r ¦\n    g();\n  }\n}\n",
        "class A {\n  void f() {\n    g(¦);\n    h();\n  }\n}\n",
        "class A {\n  int b = ¦;\n  int c = 1;\n}\n",
        "class A {\n  void f() {\n    ¦\n    h();\n  }\n}\n",
        "class A {\n  int[] b = {1, ¦};\n  int c = 1;\n}\n",
    ),
    "go": (
        "package p\n\nfunc f() {\n\tr ¦\n\tg(1)\n}\n",
        "package p\n\nfunc f() {\n\tg(¦)\n\th()\n}\n",
        "package p\n\nvar a = []int{¦}\nvar b = 1\n",
        "package p\n\nconst a ¦\nconst b = 1\n",
        "package p\n\nfunc f() {\n\t¦\n\th()\n}\n",
        "package p\n\nfunc f(¦) {\n\th()\n}\n",
        "package p\n\ntype A struct {\n\t¦\n\tb int\n}\n",
        "package p\n\nfunc f() {\n\tif ¦ {\n\t\th()\n\t}\n}\n",
    ),
    "rust": (
        "fn f() {\n    let r ¦\n    g();\n}\n",
        "fn f() {\n    g(¦);\n    h();\n}\n",
        "fn f() {\n    ¦\n    h();\n}\n",
        "const A: T = ¦;\nconst B: T = 1;\n",
        "fn f() {\n    let a = [1, ¦];\n    h();\n}\n",
        "struct A {\n    ¦\n    b: C,\n}\n",
    ),
    "kotlin": (
        "val a ¦\n\nclass B {\n  fun c() = 1\n}\n",
        "typealias a ¦\n\nclass B {\n  fun c() = 1\n}\n",
        "fun f() {\n    ¦\n    g()\n}\n",
        "fun f() {\n    val x = ¦\n    g()\n}\n",
        "fun f() {\n    g(¦)\n    h()\n}\n",
        "a @@ b ?? c\nfun f() {\n    val x = ¦\n    g()\n}\n",
    ),
    "swift": (
        "let a ¦\n\nclass B {\n  func c() {}\n}\n",
        "func f() {\n    ¦\n    g()\n}\n",
        "func f() {\n    let x = ¦\n    g()\n}\n",
        "func f() {\n    g(¦)\n    h()\n}\n",
        "a @@ b ?? = c\nfunc f() {\n    let x = ¦\n    g()\n}\n",
    ),
    "scala": (
        "val a = ¦\n\nclass B {\n  def c = 1\n}\n",
        "def f() = {\n  ¦\n  g()\n}\n",
        "def f() = {\n  g(¦)\n  h()\n}\n",
        "a @@ = b ) c\ndef f() = {\n  val x = ¦\n  g()\n}\n",
    ),
    "ruby": (
        "def f\n  ¦\n  g\nend\n",
        "def f\n  x = ¦\n  g\nend\n",
        "def f\n  g(¦)\n  h\nend\n",
        "a @@ = ) b\ndef f\n  x = ¦\n  g\nend\n",
    ),
    "php": (
        "<?php\nfunction f() {\n    ¦\n    g();\n}\n",
        "<?php\nfunction f() {\n    $x = ¦;\n    g();\n}\n",
        "<?php\nfunction f() {\n    g(¦);\n    h();\n}\n",
        "<?php\na @@ = ) b;\nfunction f() {\n    $x = ¦;\n    g();\n}\n",
    ),
    "lua": (
        "function f()\n  ¦\n  g()\nend\n",
        "function f()\n  local x = ¦\n  g()\nend\n",
        "function f()\n  g(¦)\n  h()\nend\n",
        "a @@ = ) b\nfunction f()\n  local x = ¦\n  g()\nend\n",
    ),
    "css": (
        "a {\n  b: ¦;\n  c: d;\n}\n",
        "a {\n  ¦\n  c: d;\n}\n",
        "a {\n  b: ¦\n}\n\nc {\n  d: e;\n}\n",
        "{% if a %}\na {\n  b: {{ c }};\n  d: ¦;\n  e: f;\n}\n{% endif %}\n",
    ),
    "json": (
        '{\n  "a": ¦,\n  "b": 1\n}\n',
        '{\n  "a": [¦],\n  "b": 1\n}\n',
        '{\n  "c": {{ c }},\n  "a": ¦,\n  "b": 1\n}\n',
    ),
    "hcl": (
        "a = ¦\nb = 1\n",
        'resource "a" "b" {\n  c = ¦\n  d = [1, 2]\n}\n',
        "locals {\n  ¦\n  d = f(1)\n}\n",
        "locals {\n  a = [1, ¦]\n  d = {\n    b = 1\n  }\n}\n",
    ),
    "svelte": (
        "<p>a ¦ b</p>\n<p>c</p>\n",
        "<div>\n  ¦\n  <p>c</p>\n</div>\n",
        "{#if a}\n  <b>¦</b>\n{/if}\n<p>c</p>\n",
        "<ul>\n  {#each a as b}\n    <li on:click={f}>{b} ¦</li>\n  {/each}\n</ul>\n",
    ),
    "dockerfile": ("FROM ¦\nRUN a\n", "FROM a\n¦\nRUN b\n", "FROM a\nENV B=¦\nCMD c\n"),
    "toml": ("a = ¦\nb = 1\n", "[t]\na = [1, ¦]\nb = 1\n", "c = {{ c }}\na = ¦\nb = 1\n"),
    "yaml": (
        "a: 1\nb: ¦\nc: 2\n",
        "a:\n  {{- toYaml .V | nindent 2 }}\nb: ¦\nc: 2\n",
        "name: {{ .A }}-{{ .B }}\nb: ¦\nc: 2\n",
        "{{- if .A }}\na: 1\n{{- end }}\nb: ¦\nc: 2\n",
        "a: {{ $b }}\nb: ¦\nc: 2\n",
    ),
    "shell": (
        "f() {\n  x=¦\n  g\n}\n",
        "f() {\n  ¦\n  g\n}\n",
        "f() {\n  echo ¦\n  g\n}\n",
        "a ;; )\nf() {\n  echo ¦\n  g\n}\n",
    ),
    "sql": (
        "SELECT a FROM b WHERE c = ¦;\nSELECT 1;\n",
        "\\echo a\nSELECT a FROM b WHERE c = ¦;\nSELECT 1;\n",
        "SELECT f(¦);\nSELECT 1;\n",
    ),
    "html": (
        "<p>a ¦ b</p>\n<p>c</p>\n",
        "<div>\n  ¦\n  <p>c</p>\n</div>\n",
        "{% if a %}<b>{% endif %}\n<div>\n  ¦\n  <p>c</p>\n</div>\n",
    ),
}
# What a fill leaves open there, or closes.
_BRACKETS = ("(a", "[a", "a)", "a]", "a}", "g(a", "g(a, [1)", "{a")
_QUOTES = ('"abc', "g('abc", '= D "abc', 'a + "b" + "c')
_BLOCK = ("1 /* x", "a /* x; ", ":= 1 /* x", "= 1 /* x;", "a */", "/*", "/* a */ b /* c")
LOOSE = {
    "python": (*_BRACKETS, *_QUOTES, 'f"{a', '"""a', "f'a{b[", 'rb"""', "g(f'''"),
    "javascript": (*_BRACKETS, *_QUOTES, *_BLOCK, "`a", "`a${b", "`${`a`", "`${"),
    "typescript": (*_BRACKETS, *_QUOTES, *_BLOCK, "`a", "`a${b", "`${`a`", "`${"),
    "tsx": (*_BRACKETS, *_QUOTES, *_BLOCK, "`a", "`a${b", "`${"),
    "c": (*_BRACKETS, *_QUOTES[:1], *_QUOTES[2:], *_BLOCK),
    "cpp": (*_BRACKETS, *_QUOTES[:1], *_QUOTES[2:], *_BLOCK, 'R"(a', 'R"x(a)"'),
    "csharp": (
        *_BRACKETS,
        *_QUOTES[:1],
        *_QUOTES[2:],
        *_BLOCK,
        '$"{',
        '$"{a',
        '@"a',
        '$@"a{b',
        '"""a',
        '$"""a',
    ),
    "java": (*_BRACKETS, *_QUOTES[:1], *_QUOTES[2:], *_BLOCK, '"""\n a'),
    "go": (*_BRACKETS, *_QUOTES[:1], *_QUOTES[2:], *_BLOCK, "`a", "g(`a"),
    "rust": (
        *_BRACKETS,
        *_QUOTES[:1],
        *_QUOTES[2:],
        *_BLOCK,
        'r#"a',
        'r#"a"',
        'b"a',
        "/* a /* b */",
        "/* /* */ 1",
    ),
    "kotlin": (*_BRACKETS, *_QUOTES[:1], *_QUOTES[2:], *_BLOCK, '"${', '"${a', '"""a', "/* a /* b */"),
    "swift": (*_BRACKETS, *_QUOTES[:1], *_QUOTES[2:], *_BLOCK, '"\\(', '"\\(a', '"""\na', "/* a /* b */"),
    "scala": (*_BRACKETS, *_QUOTES[:1], *_QUOTES[2:], *_BLOCK, 's"${', 's"${a', '"""a', "/* a /* b */"),
    "ruby": (*_BRACKETS, *_QUOTES, '"#{', '"#{a', "`a"),
    "php": (*_BRACKETS, *_QUOTES, *_BLOCK),
    "lua": (*_BRACKETS, *_QUOTES, "[[a", "--[[ a", "[==[ a", "--[=[ a ]]"),
    "css": ("(a", "a)", "a]", "{a", "a { b: c", "} b {", "url(a", '"abc', "'abc", "1 /* x", "a */", "/*"),
    "json": ("[1", "1]", '{"x": 1', "1}", '"abc', '"a": [', '"a": {', "1 /* x", "{", "["),
    "hcl": ("[1", "1]", "{ x = 1", "1}", '"abc', '"${a', '"${a"', "f(1", "1)", "1 /* x", "/*", "<<EOT", "[for a in b"),
    "svelte": ("<b>a", "</b>", "<!-- x", '<a href="b', "<a href='b'", "<b", "</p></div>", "{a", "a}", "{#if b}"),
    "dockerfile": ('"abc', "'abc", 'a "b', "<<EOF"),
    "toml": ("[1", "1]", "{ x = 1", "1}", '"abc', "'abc", '"""a', "'''a", '["a'),
    "yaml": ('"a', "]", "[a", "'a", "{a: 1", "}", "[a, 'b']]", '"a" "', "a: b: c"),
    "shell": ('"abc', "'abc", "$(a", "`a", '"$(a', '"${a', "<<EOF", "$((1", "a | (b", "${a"),
    "sql": ("'abc", "(1", "1)", "1 /* x", "/*", "$$ a", "$x$ a", "g('a", "a */"),
    "html": ("<b>a", "</b>", "<!-- x", "<a href=\"b", "<a href='b'", "<b", "</p></div>"),
}  # fmt: skip
CASES = [(name, place) for name, places in PLACES.items() for place in places]


def loose(language: str, text: str) -> list[str]:
    """What is not in pairs in `text`, by counting alone; for texts of this page, whose odd signs are all loose."""
    pairs = [("(", ")"), ("[", "]"), ("{", "}"), ("<!--", "-->")]
    if language not in ("shell", "ruby", "python", "lua", "yaml", "toml", "html", "svelte", "json"):
        pairs.append(("/*", "*/"))
    quotes = ['"', "`", "$$", "$x$"] + ([] if language in ("html", "svelte", "rust") else ["'"])
    odd = [a for a, b in pairs if text.count(a) != text.count(b)]
    odd += [quote for quote in quotes if text.count(quote) % 2]
    if language in ("html", "svelte"):
        odd += [t for t in ("b", "p", "div") if text.count(f"<{t}") != text.count(f"</{t}>")]
    return odd


@pytest.mark.parametrize(("language", "place"), CASES)
def test_no_fill_leaves_anything_open_or_closes_what_is_not_open(language: str, place: str) -> None:
    before = set(loose(language, place.replace("¦", "")))
    kinds: list[Wanted | None] = [None, "rest_of_line"]
    if PLACES[language][0] == place and language in ("c", "go", "rust", "java"):
        kinds += ["statement", "expression"]
    shown = []
    for fill in LOOSE[language]:
        for kind in kinds:
            text = filled(language, place, fill, kind)
            if text is not None and set(loose(language, text)) - before:
                shown.append((fill, kind, text))
    assert shown == []


def test_every_language_has_places_and_fills() -> None:
    assert set(PLACES) == set(LOOSE) == set(known_languages()) | set(plain_languages())


@pytest.mark.parametrize("language", ["tsx", "javascript"])
@pytest.mark.parametrize("fill", ["<Icon />", "{x}", "<b>y</b>", "{x ? <a /> : null}", "Do"])
@pytest.mark.parametrize(
    "text",
    [
        "const a = () => (\n  <button>\n    ¦\n    Save\n  </button>\n)\n",
        "const a = () => (\n  <p>\n    Hello ¦\n    more text\n  </p>\n)\n",
        "const a = <p>it's ¦ here</p>;\nf('b');\n",
        "const a = () => (\n  <p>\n    {b}\n    ¦\n    text {c} more\n  </p>\n)\n",
        "const a = () => (\n  <>\n    ¦\n    Don't\n    <b>c</b>\n  </>\n)\n",
    ],
)
def test_an_element_is_shown_among_the_text_of_another(language: str, text: str, fill: str) -> None:
    assert filled(language, text, fill) == text.replace("¦", fill)


@pytest.mark.parametrize("fill", ["<Icon>", "</p>", "}", "<b>y", "<b>y</i>"])
def test_no_element_is_left_open_in_such_text(fill: str) -> None:
    text = "const a = () => (\n  <p>\n    Hello ¦\n    more text\n  </p>\n)\n"
    assert filled("tsx", text, fill) is None


# What earlier lines have opened and nothing closes; the same with something below that closes it.
UNCLOSED = [
    ("html", "<ul>\n  <li>a</li>\n¦\n", "</ul>", "</ul>\n"),
    ("html", "<form>\n  <p>a</p>\n  ¦\n<p>b</p>\n", "</form>", "<b>c</b>\n</form>\n"),
    ("html", "<div>\n  <p>\n  a\n  ¦\n</div>\n", "</p>", "</p>\n"),
    ("php", "<?php\nfunction f() {\n    g();\n¦\n", "}", "}\n"),
    ("php", "<?php\nclass A {\n    function f() {\n        g();\n    ¦\n}\n", "}", "}\n"),
    ("kotlin", "fun f() {\n    g()\n¦\n", "}", "}\n"),
    ("kotlin", "class A {\n    fun f() {\n        g()\n    ¦\n}\n", "}", "}\n"),
    ("kotlin", "val a = listOf(\n    1,\n¦\n", ")", ")\n"),
    ("swift", "func f() {\n    g()\n¦\n", "}", "}\n"),
    ("scala", "def f() = {\n  g()\n¦\n", "}", "}\n"),
    ("css", "a {\n  b: c;\n¦\n", "}", "}\n"),
    ("css", "@media print {\n  a {\n    b: c;\n  ¦\n}\n", "}", "}\n"),
    ("json", '{\n  "a": [1,\n    2\n  ¦\n}\n', "]", "  ]\n"),
    ("json", '{\n  "a": 1\n¦\n', "}", "}\n"),
    ("toml", "a = [\n  1,\n¦\n", "]", "]\n"),
    ("lua", "local a = {\n  1,\n¦\n", "}", "}\n"),
    ("ruby", "a = [\n  1,\n¦\n", "]", "]\n"),
    ("sql", "CREATE TABLE a (\n  b INTEGER\n¦\n", ");", ");\n"),
]


@pytest.mark.parametrize(("language", "text", "fill", "below"), UNCLOSED)
def test_what_earlier_lines_have_opened_is_closed_once(
    language: str, text: str, fill: str, below: str
) -> None:
    assert filled(language, text, fill) == text.replace("¦", fill)
    assert filled(language, text + below, fill) is None


@pytest.mark.parametrize(
    ("text", "fill", "wanted"),
    [
        ("var a = T{\n\tb: 1,\n\t¦\n}\n", "c: 2", "c: 2,"),
        ("var a = []int{\n\t1,\n\t¦\n}\n", "2", "2,"),
        ("var a = []int{\n\t¦\n}\n", "1, 2", "1, 2,"),
        ("var a = map[string]int{\n\t¦\n}\n", '"b": f(1)', '"b": f(1),'),
        ("func f() {\n\tg(\n\t\t1,\n\t\t¦\n\t)\n}\n", "2", "2,"),
        ("func f() {\n\tg(\n\t\t1,\n\t\t¦\n\t)\n}\n", "h(2)", "h(2),"),
        ("func f(\n\ta int,\n\t¦\n) {\n}\n", "b string", "b string,"),
        ("func f() (\n\ta int,\n\t¦\n) {\n\treturn\n}\n", "b error", "b error,"),
        ("var a = []int{\n\t1,\n\t¦\n}\n", "2 // two", "2, // two"),
        ("var a = []int{\n\t1,\n\t¦\n}\n", "2,", "2,"),
        ("var a = []int{1, ¦}\n", "2", "2"),
        ("func f() {\n\ta()\n\t¦\n}\n", "b()", "b()"),
        ("func f() {\n\ta()\n\t¦\n}\n", "b := c", "b := c"),
        ("func f() {\n\ta()\n\t¦\n}\n", "return b", "return b"),
        ("type a struct {\n\tb int\n\t¦\n}\n", "c int", "c int"),
        ("import (\n\t\"a\"\n\t¦\n)\n", '"b"', '"b"'),
        ("const (\n\ta = 1\n\t¦\n)\n", "b = 2", "b = 2"),
        ("type a interface {\n\tb()\n\t¦\n}\n", "c()", "c()"),
        ("func f() {\n\tswitch a {\n\tcase 1:\n\t\t¦\n\t}\n}\n", "b()", "b()"),
    ],
)  # fmt: skip
def test_the_last_element_of_a_list_of_go_has_its_comma(text: str, fill: str, wanted: str) -> None:
    text = f"package p\n\n{text}"
    assert filled("go", text, fill) == text.replace("¦", wanted)


# The text with the gap, what is written, and what of it is no repetition.
REPEATED = [
    ("python", "x = f(1, ¦, b, c)\n", "a, b, c)", "a"),
    ("python", "x = f(1, ¦, b, c)\n", "a,b,c)", "a"),
    ("python", "x = [¦, 2, 3]\n", "1, 2, 3]", "1"),
    ("python", "x = {¦, 'b': 2}\n", "'a': 1, 'b': 2}", "'a': 1"),
    ("python", "def f(¦, b=1):\n    pass\n", "a, b=1):", "a"),
    ("python", "def f(¦, b=1):\n    pass\n", "a, b=1", "a"),
    ("python", "x = a + ¦ + c\n", "b + c", "b"),
    ("python", "x = f(a)[¦, 2]\n", "1, 2", "1"),
    ("javascript", "g(¦, b);\n", "a, b);", "a"),
    ("javascript", "const x = [¦, 2, 3];\n", "1, 2, 3];", "1"),
    ("javascript", "const x = { ¦, b: 2 };\n", "a: 1, b: 2 };", "a: 1"),
    ("typescript", "function f(¦, b: B) {\n  g();\n}\n", "a: A, b: B) {", "a: A"),
    ("tsx", "const x = <a b={f(¦, c)} />;\n", "b, c)", "b"),
    ("java", "class A {\n  void f() {\n    g(¦, b);\n  }\n}\n", "a, b);", "a"),
    ("csharp", "class A {\n  void F() {\n    G(¦, b);\n  }\n}\n", "a, b);", "a"),
    ("c", "int f(void) {\n  g(¦, b);\n}\n", "a, b);", "a"),
    ("cpp", "void f() {\n  g(¦, b);\n}\n", "a, b);", "a"),
    ("go", "package p\n\nfunc f() {\n\tg(¦, b)\n}\n", "a, b)", "a"),
    ("rust", "fn f() {\n    g(¦, b);\n}\n", "a, b);", "a"),
    ("rust", "fn f() {\n    let x = [¦, 2];\n}\n", "1, 2];", "1"),
    ("kotlin", "fun f() {\n    g(¦, b)\n}\n", "a, b)", "a"),
    ("kotlin", "fun f() {\n    g(¦, b)\n}\n", "a, b", "a"),
    ("swift", "func f() {\n    g(¦, b)\n}\n", "a, b)", "a"),
    ("ruby", "g(¦, b)\n", "a, b)", "a"),
    ("php", "<?php\ng(¦, $b);\n", "$a, $b);", "$a"),
    ("lua", "g(¦, b)\n", "a, b", "a"),
    ("python", "f(a, ¦, a)\n", "a", "a"),
    ("python", "f(a, ¦, b, c)\n", "b", "b"),
    ("python", "x = a.¦.c\n", "c.d", "c.d"),
    ("python", "x = f(¦, 1)\n", "g(a, 1)", "g(a, 1)"),
    ("python", "x = (¦)\n", "(a)", "(a)"),
    ("javascript", "f(¦ => b);\n", "a", "a"),
]


@pytest.mark.parametrize(("language", "text", "fill", "wanted"), REPEATED)
def test_what_follows_in_a_list_is_not_written_twice(
    language: str, text: str, fill: str, wanted: str
) -> None:
    assert filled(language, text, fill) == text.replace("¦", wanted)


@pytest.mark.parametrize(
    ("language", "text", "fill"),
    [
        ("javascript", "f({\n  ¦\n});\n", "value\x85value: true"),
        ("python", "x = ¦\n", "a\x07"),
        ("python", "x = '¦'\n", "a\x1b[0m"),
        ("php", "<?php\ng(¦);\n", "$a\x0c"),
        ("ruby", "def f\n  ¦\n  g\nend\n", "a\u00a0b = 1"),
        ("ruby", "a = ¦\nb = 1\n", "<<~X"),
        ("ruby", "a = ¦\nb = 1\n", "g(<<-X, 1)"),
        ("ruby", "g(¦)\nb = 1\n", "<<'X'"),
        ("go", "package p\n\nvar a = ¦\n", "b\u2028"),
        ("python", "def f():\n    ¦\n    return x\n", "nonlocal x"),
        ("python", "def f(a):\n    ¦\n    return a\n", "global a"),
        ("python", "def f(a, ¦):\n    return a\n", "b, a"),
        ("python", "a = 1\n¦\n", "f = lambda b, b: 1"),
        ("python", "def f():\n    ¦\n    return a\n", "from a import *"),
        ("python", "def f():\n    ¦\n    return a\n", "__debug__ = 1"),
        ("python", "def f(a):\n    ¦\n    return a\n", "*a"),
        ("python", "g(¦)\n", "a=1, a=2"),
        ("python", "a = 1\n¦\nb = 2\n", "return a"),
        ("python", "a = 1\n¦\nb = 2\n", "yield a"),
        ("css", "a {\n  b: ¦;\n}\n", "c\x07"),
        ("html", "<p>¦</p>\n", "a\x07"),
        ("c", "#ifdef A\n¦\n#endif\nint b;\n", "#endif"),
        ("c", "#ifdef A\n#endif\n¦\nint b;\n", "#else"),
        ("cpp", "int a;\n¦\nint b;\n", "#if A"),
        ("csharp", "class A {\n¦\n  int b;\n}\n", "#endif"),
        ("lua", "function f()\n  return ¦\nend\n", "false`abc;"),
        ("css", "a {\n  b: ¦;\n}\n", "c`d"),
        ("kotlin", "private ¦\nval b = 1\n", 'const val A = "a"`abc;'),
        (
            "rust",
            "macro_rules! a {\n    () => {\n        let b = match c {\n            ¦\n        };\n    };\n}\n",
            "d => e(f)b'abc;",
        ),
        ("shell", "if a; then\n\techo ¦\n\techo b\nfi\n", "(. >> $A)"),
        ("shell", 'test "$1" = ¦\n\nA=$1\n', '"-f" && shift(a, [])'),
        ("csharp", "class A {\n  void F() {\n    G(¦);\n  }\n}\n", "this(a, [])"),
        ("swift", "func f() {\n  a = b\n  ¦\n  c = d\n}\n", "b =c"),
        ("swift", "func f() {\n  a = b\n  ¦\n  c = d\n}\n", "b= c"),
        ("swift", "func f() {\n  a = b\n  ¦\n  c = d\n}\n", "let x = `${y}`"),
        ("swift", "func f() {\n  let a = (b >> 18) ¦\n  var c = d\n}\n", "(& 31"),
        ("swift", "func f() {\n  if a {\n    return\n  ¦\n\n  do {\n    b()\n  }\n}\n", "} do {"),
        ("kotlin", "class A {\n  ¦\n}\n", "catch"),
        ("kotlin", 'class A(a: Int) :\n  B("c $a") {\n\n  ¦\n}\n', "overri"),
        ("css", "a {\n  ¦\n}\n", "b: c<<EOF"),
        ("javascript", "g(¦);\n", "a,, b"),
        ("javascript", "g(¦);\n", ", b"),
        ("javascript", "x = {¦};\n", "a: 1,, b: 2"),
        ("typescript", "const {\n  a,\n  ¦\n  b,\n} = c;\n", ","),
        ("tsx", "f(\n  ({\n    a,\n    ¦\n    ...c\n  }, d) => {});\n", "default:"),
        ("typescript", "f({\n  a: 1,\n  ¦\n});\n", "catch"),
        ("typescript", "const a = 1;\n¦\nconst b = 2;\n", "const c"),
        ("javascript", "const a = 1;\n¦\nconst b = 2;\n", "const c;"),
        ("sql", "\\echo a\nCOMMIT;\n¦\nABORT;\n", "ABORT WORK $$"),
        ("sql", "\\echo a\nCOMMIT;\n¦\nABORT;\n", "CREATE FUNCTION f() AS $a$ SELECT 1 $b$"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "try {\n    g();\n  }"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "if (b) const c = 1;"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "while (b) let c = 1;"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "for (;;) class A {}"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "let [a];"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "let {a};"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "class {}"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "function () {}"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "{...b}"),
        ("typescript", "function f(b) {\n  ¦\n  return b;\n}\n", "try {\n    g();\n  }"),
        ("typescript", "function f(b) {\n  ¦\n  return b;\n}\n", "if (b) const c = 1;"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "if (b) int c = 1;"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "for (;;) int c;"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "public int c = 1;"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "static int c = 1;"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "private class F {}"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "import a.b;"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "var x;"),
        ("csharp", "class A {\n  int F(int b) {\n    ¦\n    return b;\n  }\n}\n", "try {\n      G();\n    }"),
        ("csharp", "class A {\n  int F(int b) {\n    ¦\n    return b;\n  }\n}\n", "if (b) int c = 1;"),
        ("csharp", "class A {\n  int F(int b) {\n    ¦\n    return b;\n  }\n}\n", "public int c = 1;"),
        ("cpp", "int f(int b) {\n  ¦\n  return b;\n}\n", "int g() {}"),
        ("cpp", "int f(int b) {\n  ¦\n  return b;\n}\n", "namespace n {}"),
        ("cpp", "int f(int b) {\n  ¦\n  return b;\n}\n", "template <class T> void g();"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", "let fn = 1;"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", "let else = 1;"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", "x.match;"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", "fn if() {}"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", "#![a]"),
        ("go", "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n", "defer a"),
        ("go", "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n", "defer a.b"),
        ("go", "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n", "defer func() {}"),
        ("go", "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n", "go func() {\n\t\tg()\n\t}"),
        ("go", "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n", "go g"),
        ("go", "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n", "fallthrough"),
    ],
)
def test_what_no_parser_reads_is_refused(language: str, text: str, fill: str) -> None:
    shown = filled(language, text, fill)
    assert shown is None or fill not in shown


@pytest.mark.parametrize(
    ("language", "text", "fill"),
    [
        ("python", "x = '¦'\n", "a\u00a0b"),
        ("html", "<p>¦</p>\n", "a\u00a0b"),
        ("ruby", "a = ¦\n  x\nX\nb = 1\n", "g(<<~X, 1)"),
        ("ruby", "a = ¦\nb = 1\n", "c << x"),
        ("ruby", "a = ¦\nb = 1\n", "c<<x"),
        ("ruby", "class A\n  ¦\n    def f; end\n  end\nend\n", "class <<self"),
        ("ruby", 'a = "¦"\n', "<<X"),
        ("c", "int a;\n#ifdef A\nint b;\n¦\nint c;\n", "#endif"),
        ("c", "int a;\n¦\nint b;\n", "#ifdef A\n#endif"),
        ("c", "#ifdef A\nint b;\n¦\nint c;\n#endif\n", "#else"),
        ("kotlin", "fun f() {\n    ¦\n}\n", "g(`in`)"),
        ("rust", "fn f() {\n    ¦\n}\n", "let c: &'static str = g(b'a', b'\\'', 'b');"),
        ("rust", "fn f<'a>(b: &'a str) {\n    ¦\n}\n", "let c: &'a str = b;"),
        ("html", '<div class="a¦\n<p>b</p>\n</div>\n', '">'),
        ("javascript", "x = [¦];\n", "1,, 2"),
        ("javascript", "const [¦] = x;\n", "a,, b"),
        ("typescript", "f({¦});\n", "default: 1, catch: 2, if: 3"),
        ("javascript", "for (¦) {}\n", "const a of b"),
        ("typescript", "declare ¦\n", "const a: number;"),
        ("csharp", "class A {\n  void F() {\n    ¦\n  }\n}\n", "this.G(base.H(), this[0]);"),
        ("csharp", "class A {\n  A(int b) ¦\n  {\n  }\n}\n", ": this(b, 1)"),
        ("swift", "func f() {\n  ¦\n}\n", "let a: Int = b == c ? d.reduce(0, +) : g(&h)"),
        ("swift", "func f() {\n  ¦\n}\n", "if a != b, c >= d { e[0] += 1 } else { g(`in`: 1) }"),
        ("swift", "func f() {\n  ¦\n}\n", "repeat { a() } while b"),
        ("kotlin", "enum class A {\n  ¦\n}\n", "B"),
        ("kotlin", "class A {\n  ¦\n}\n", "val b = 1"),
        ("shell", "¦\n", "a=(b c)"),
        ("shell", "¦\n", "diff <(a) >(b)"),
        ("shell", "¦\n", "f() { a; }"),
        ("shell", "¦\n", "if (a); then b; fi"),
        ("shell", "¦\n", "for ((i=0; i<3; i++)); do c; done"),
        ("shell", "case $a in\n  ¦\nesac\n", "(b) c ;;"),
        ("shell", "¦\n", "echo 'a (b)' \"c (d)\" $(e f)"),
        (
            "javascript",
            "function f(b) {\n  ¦\n  return b;\n}\n",
            "try {\n    g();\n  } finally {\n    h();\n  }",
        ),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "if (b) g();"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "const [a] = b;"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "const c = class {};"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "const d = function () {};"),
        ("javascript", "function f(b) {\n  ¦\n  return b;\n}\n", "({}).x = b;"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "final int c = 1;"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "var x = 1;"),
        (
            "java",
            "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n",
            "for (int i = 0; i < b; i++) g(i);",
        ),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "class F {}"),
        ("java", "class A {\n  int f(int b) {\n    ¦\n    return b;\n  }\n}\n", "try (var x = g()) {\n    }"),
        (
            "csharp",
            "class A {\n  int F(int b) {\n    ¦\n    return b;\n  }\n}\n",
            "try {\n    } catch (E e) {\n    }",
        ),
        (
            "csharp",
            "class A {\n  int F(int b) {\n    ¦\n    return b;\n  }\n}\n",
            "try {\n    } finally {\n    }",
        ),
        ("csharp", "class A {\n  int F(int b) {\n    ¦\n    return b;\n  }\n}\n", "const int c = 1;"),
        ("csharp", "class A {\n  int F(int b) {\n    ¦\n    return b;\n  }\n}\n", "int G() { return 1; }"),
        ("cpp", "int f(int b) {\n  ¦\n  return b;\n}\n", "auto g = [](int a) { return a; };"),
        ("cpp", "int f(int b) {\n  ¦\n  return b;\n}\n", "int g(int a);"),
        ("cpp", "int f(int b) {\n  ¦\n  return b;\n}\n", "BOOST_FOREACH(int a, b) {\n    g(a);\n  }"),
        ("cpp", "int f(int b) {\n  ¦\n  return b;\n}\n", "struct S { int a; int h() { return a; } };"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", "let r#fn = 1;"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", "let c = async { 1 };"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", "g().await;"),
        ("rust", "fn f(b: u8) -> u8 {\n    let a = 1;\n    ¦\n    b\n}\n", 'println!("{}", a);'),
        ("go", "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n", "defer a.b()"),
        ("go", "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n", "go func() {\n\t\tg()\n\t}()"),
        (
            "go",
            "package p\n\nfunc f(b int) int {\n\t¦\n\treturn b\n}\n",
            "switch b {\n\tcase 1:\n\t\tfallthrough\n\tcase 2:\n\t}",
        ),
    ],
)
def test_what_is_right_there_is_shown(language: str, text: str, fill: str) -> None:
    assert filled(language, text, fill) is not None


@pytest.mark.parametrize(
    ("text", "fill", "wanted"),
    [
        ("a {\n  ¦\n  b: c;\n}\n", "d: e", "d: e;"),
        ("a {\n  d: ¦\n  b: c;\n}\n", "f(1px) e", "f(1px) e;"),
        ("a {\n  ¦\n  --b: c;\n}\n", "--d: e", "--d: e;"),
        ("a {\n  ¦\n  b: c\n}\n", "d: e /* f */", "d: e; /* f */"),
        ("a {\n  ¦\n  b: c;\n}\n", "d: e;", "d: e;"),
        ("a {\n  b: c;\n  ¦\n}\n", "d: e", "d: e"),
        ("a {\n  ¦\n\n  &:hover {\n    b: c;\n  }\n}\n", "d: e;", "d: e;"),
        ("@media print {\n  ¦\n    b: c;\n  }\n}\n", "a:hover {", "a:hover {"),
    ],
)
def test_a_declaration_ends_before_the_next(text: str, fill: str, wanted: str) -> None:
    assert filled("css", text, fill) == text.replace("¦", wanted)
