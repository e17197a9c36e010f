"""Separators and what follows a value: elements that are missing, escapes that there are not, calls of what is none."""

import pytest

from tests.guard.test_foreign import filled

CALL = "    g(‸);\n"
IN = {
    "c": f"void f() {{\n{CALL}}}\n",
    "cpp": f"void f() {{\n{CALL}}}\n",
    "csharp": f"class A {{\n  void F() {{\n{CALL}  }}\n}}\n",
    "go": "package p\n\nfunc f() {\n\tg(‸)\n}\n",
    "java": f"class A {{\n  void f() {{\n{CALL}  }}\n}}\n",
    "javascript": "g(‸);\n",
    "kotlin": "fun f() {\n    g(‸)\n}\n",
    "lua": "g(‸)\n",
    "php": "<?php\ng(‸);\n",
    "python": "g(‸)\n",
    "ruby": "g(‸)\n",
    "rust": f"fn f() {{\n{CALL}}}\n",
    "scala": "object A {\n  g(‸)\n}\n",
    "swift": "g(‸)\n",
    "tsx": "g(‸);\n",
    "typescript": "g(‸);\n",
}
RUST = 'fn f() {\n    g(\n        f("a", n)‸\n        &c,\n    );\n}\n'
VALUE = "x = ‸;\n"
TRAIT = "trait A {\n    fn w<E>(\n        ‸\n    ) -> u8;\n    fn z();\n}\n"
IMPL = "impl A {\n    fn w<E: I>(\n        ‸\n    ) -> C {\n        1\n    }\n}\n"
PACK = "void f() {\n  if (a<M>(‸)) {\n    g();\n  }\n}\n"
PHP = "<?php\nfunction f() {\n    return ‸;\n}\n"
SWIFT = "func f() {\n    return ‸\n}\n"
TSX = "function f() {\n  return (\n    <>\n      <A {...p} />\n    </‸\n  );\n}\n"
TYPE = "export declare const d: P‸\n\nexport declare const e: A;\n"
RUBY = "def f(a)\n  g(1)\n  ‸\nend\n"
RUBY_BLOCK = "def f(a, &)\n  g(1)\n  ‸\nend\n"
RUBY_ALL = "def self.f(...)\n  g(1)\n  ‸\nend\n"
RUBY_HEAD = "class A\n  def b‸\n    1\n  end\nend\n"
SCALA = "package a\n\nimport b.c\npackage h2 {\n  object A extends B with C\n  ‸\n  object D extends E with C\n}\n"
SCALA_TEST = 'class T {\n  test("floor") ‸\n\n  test("p") - c(\n    1\n  )\n}\n'
ACCESSORS = "class A {\n  public int B\n  {\n    get;\n    ‸\n  }\n}\n"
EVENT = "class A {\n  event E F {\n    add { }\n    ‸\n  }\n}\n"
SQL = "CREATE FUNCTION f(\n    ‸\n    b text\n) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;\n"

REFUSED = [
    # A separator with nothing before it, or after it where it ends no list.
    *(
        (language, marked, text)
        for language, marked in IN.items()
        for text in (", a", "a,, b", ",", "h(, a)")
    ),
    *(("rust", RUST, text) for text in ("(,)", ".d(,),", "(, d),")),
    *(
        (language, VALUE, text)
        for language in ("javascript", "typescript", "tsx")
        for text in ("{, a}", "{a,, b}")
    ),
    ("rust", "fn f(‸) {}\n", ","),
    ("rust", "use a::‸;\n", "{, b}"),
    ("go", "package p\n\nvar a = []int‸\n", "{, 1}"),
    ("csharp", "class A {\n  int[] b = ‸;\n}\n", "{, 1}"),
    ("cpp", "int a[] = ‸;\n", "{, 1}"),
    ("typescript", TYPE, "<any,"),
    ("typescript", TYPE, "<any<b,>>;"),
    ("typescript", TYPE, "<any, any>[]; <any, any>[];"),
    ("typescript", "let a: ‸;\n", "[, b]"),
    # A parameter without a name.
    *(
        ("rust", marked, text)
        for marked in (TRAIT, IMPL)
        for text in ("x()", "x();", "dyn B", "impl B", "x() -> u8,")
    ),
    # An escape that there is not.
    *((language, IN[language], '"a\\ b"') for language in ("go", "java", "kotlin", "rust", "scala", "swift")),
    *((language, IN[language], '"a\\q"') for language in ("go", "java", "kotlin", "rust", "scala", "swift")),
    ("rust", 'fn f() {\n    g(h!(\n        "a‸\n         b",\n    ));\n}\n', ", \\ , \\"),
    # What nothing is called or taken of.
    *(
        ("cpp", PACK, text)
        for text in ("in, st...(", "in, st...<<~A", "st... + 1", "st...->a", "st... ? 1 : 2")
    ),
    *(("php", PHP, text) for text in ("new self(null, true)(a, [", "new A()(1)")),
    *(("swift", SWIFT, text) for text in ("x as? T(a, [", "x as T{", "x is T(a)", "x as! T(a) { b }")),
    *(("tsx", TSX, text) for text in (">(a, [", ">.b", ">[0]")),
    *((language, VALUE, text) for language in ("javascript", "tsx") for text in ("<a/>(b)", "<a></a>[b]")),
    # A word in the place of a value.
    *(("swift", SWIFT, text) for text in ("(catch).domain", "catch + 1", "a ? b : else", '"\\(for)"', "!in")),
    *(("ruby", RUBY_HEAD, text) for text in ("? false", "? nil", "! self", " then", "? end", "(a, true)")),
    # Arguments in an order in which there are none, and those of a method that has none.
    *(("ruby", RUBY, text) for text in ("A.new(p, **o, b)", "g(**o, *b)", "g(&c, 1)", "g(&c, d: 1)")),
    *(("ruby", RUBY, text) for text in ("a.try(b, &)", "a.map(&)", "g(...)", "g { |x| h(&) }")),
    ("ruby", RUBY_BLOCK, "g(...)"),
    # Statements of a package, and a name that is given a block.
    *(("scala", SCALA, text) for text in ("return 1", "f(1)", "x", "1", "if a then b")),
    ("scala", SCALA_TEST, "default:"),
    # What is there already.
    *(("csharp", ACCESSORS, text) for text in ("private set; private set;", "get;")),
    ("csharp", EVENT, "add { }"),
    # A word of the language in the place of a parameter.
    *(("sql", SQL, text) for text in ("VALUES", "RETURNING,", "limit int,", "begin,")),
]
OFFERED = [
    *((language, marked, "a, b") for language, marked in IN.items()),
    *(("rust", RUST, text) for text in (",", "(d),", ".d(),")),
    ("javascript", VALUE, "[, a,, b]"),
    ("typescript", VALUE, "{a, b,}"),
    ("php", "<?php\n‸\nf();\n", "[, $a] = $b;"),
    ("java", "enum A ‸\n", "{,}"),
    ("csharp", "class A {\n  T b = ‸;\n}\n", "typeof(B<,>)"),
    ("typescript", TYPE, "<any, any>[];"),
    ("typescript", "function f‸ {}\n", "<A,>()"),
    *(
        ("rust", marked, text)
        for marked in (TRAIT, IMPL)
        for text in ("self, a: B,", "&mut self", "a: fn(u8), _: ()")
    ),
    *((language, IN[language], '"a\\n\\\\ b"') for language in IN),
    ("java", IN["java"], '"a\\s\\0"'),
    ("scala", IN["scala"], 'raw"a\\q"'),
    ("scala", IN["scala"], '"""a\\q"""'),
    *(
        ("cpp", PACK, text)
        for text in ("in, st...", "f(st)..., 1", "(st + ...)", "sizeof...(st)", "A<st...>(1)")
    ),
    *(("php", PHP, text) for text in ("(new A())(1)", "new A(1)", "$a(1)(2)")),
    *(
        ("swift", SWIFT, text)
        for text in ("(x as? T)(a)", "(x as! T).a", "x as? [T]", "x.default", "f(for: x)")
    ),
    ("tsx", TSX, ">"),
    *((language, VALUE, text) for language in ("javascript", "tsx") for text in ("(<a/>).b", "b && <a/>")),
    *(("ruby", RUBY_HEAD, text) for text in ("?", " x, y", "(a) true", "(nil_or)")),
    *(("ruby", RUBY, text) for text in ("A.new(p, **o, b: 1)", "g(*b, **o, &c)", "a.try(b, &b)", "g(&:a)")),
    *(("ruby", RUBY_BLOCK, text) for text in ("a.try(b, &)", "a.each { |x| g(&) }")),
    *(("ruby", RUBY_ALL, text) for text in ("g(...)", "g(1, ...)", "g(&)")),
    *(("scala", SCALA, text) for text in ("val x = 1", "def f = 1", "import d.e", "package g")),
    ("scala", SCALA_TEST, "{ 1 }"),
    *(("csharp", ACCESSORS, text) for text in ("private set;", "[D] init;")),
    ("csharp", EVENT, "remove { }"),
    *(("sql", SQL, text) for text in ("a int,", "int,", "a b.c,", "OUT a text,")),
]


@pytest.mark.parametrize(("language", "marked", "text"), REFUSED)
def test_what_no_value_is_made_of_is_refused(language: str, marked: str, text: str) -> None:
    assert filled(language, marked, text).startswith("<the fill would ")


@pytest.mark.parametrize(("language", "marked", "text"), OFFERED)
def test_what_is_like_it_and_one_is_offered(language: str, marked: str, text: str) -> None:
    assert filled(language, marked, text) == marked.replace("‸", text)


@pytest.mark.parametrize(
    ("language", "marked", "text", "shown"),
    [
        ("lua", "return g.d(\n    ‸\n)\n", "a(1),\n    2", "a(1)"),
        ("json", '{\n  "a": 1,\n  ‸\n}\n', '"b": 1,', '"b": 1'),
        ("json", "[\n  1,\n  ‸\n]\n", '{"a": 1},', '{"a": 1}'),
        ("java", "class A {\n  void f() {\n    f(\n      ‸\n    );\n  }\n}\n", "1,", "1"),
        ("c", "void f() {\n  f(\n    ‸\n  );\n}\n", "1,", "1"),
        ("sql", "CREATE TABLE a (\n  b int,\n  ‸\n);\n", "c int,", "c int"),
    ],
)
def test_the_last_element_is_offered_without_a_comma_that_may_not_be_after_it(
    language: str, marked: str, text: str, shown: str
) -> None:
    assert filled(language, marked, text) == marked.replace("‸", shown)


@pytest.mark.parametrize(
    ("language", "marked", "text"),
    [
        ("lua", "local a = {\n    ‸\n}\n", "b = 1,"),
        ("php", "<?php\nf(\n  ‸\n);\n", "1,"),
        ("ruby", "f(\n  ‸\n)\n", "1,"),
        ("java", "class A {\n  void f() {\n    f(\n      ‸\n      2\n    );\n  }\n}\n", "1,"),
    ],
)
def test_a_comma_that_may_be_there_stays(language: str, marked: str, text: str) -> None:
    assert filled(language, marked, text) == marked.replace("‸", text)


@pytest.mark.parametrize("text", ['"a =", b', "'a =' + b", "a === 'b'", '"a" == "b"'])
def test_a_sign_in_a_script_begins_no_attribute(text: str) -> None:
    marked = '<script>\n  f("a", b);\n  f(‸);\n  f("c");\n</script>\n'
    assert filled("html", marked, text) == marked.replace("‸", text)


@pytest.mark.parametrize("text", ['class="b', "id='c"])
def test_an_attribute_without_its_end_is_refused(text: str) -> None:
    assert filled("html", "<p ‸>a</p>\n", text).startswith("<the fill would ")
