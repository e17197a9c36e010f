"""Bodies between braces, from a tree and from lines alone. In the samples `<`...`>` is a body's text."""

import pytest

from dg_lsp.gaps.find import find_gap
from dg_lsp.source.bodies import Body, bodies_of
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from dg_lsp.source.lines import bodies_by_lines

Found = tuple[str, str, str]


def of_tree(language: str, text: str) -> list[Body]:
    loaded = load_language(language)
    data = text.encode()
    return list(bodies_of(loaded, loaded.parse(data).root_node, data))


def by_lines(language: str, text: str) -> list[Body]:
    data = text.encode()
    return list(bodies_by_lines(load_language(language), data, (0, len(data))))


def told(text: str, bodies: list[Body]) -> list[Found]:
    data = text.encode()
    texts = [data[b.end if b.first is None else b.first : b.end].decode() for b in bodies]
    return [(b.header.owner, b.header.name, text) for b, text in zip(bodies, texts, strict=True)]


SAMPLES = {
    "java": (
        "class Shape {\n    @Override\n    int area(int a) {\n        if (a > 0) {\n            return a;\n        }\n"
        "        return 0; // none\n    }\n}\n",
        [
            ("class", "Shape", None),
            ("function", "Shape.area", None),
            ("block", "Shape.area", "return a;"),
        ],
    ),
    "rust": (
        "impl<T> Area for Shape<T> {\n    fn area(&self) -> u32 {\n        match self.a {\n            1 => 2,\n"
        "        }\n    }\n}\n",
        [
            ("class", "Shape", None),
            ("function", "Shape.area", None),
            ("block", "Shape.area", "1 => 2,"),
        ],
    ),
    "typescript": (
        "export class A {\n  f(x: number): { y: number } {\n    return { y: x }\n  }\n}\n\n"
        "const g = async (a) => {\n  h()\n}\n",
        [
            ("class", "A", None),
            ("function", "A.f", "return { y: x }"),
            ("function", "g", "h()"),
        ],
    ),
    "go": (
        "func f(a int) error {\n\tif err := g(a); err != nil {\n\t\treturn err\n\t}\n"
        "\tvar s = []int{1, 2}\n\treturn nil\n}\n",
        [("function", "f", None), ("block", "f", "return err")],
    ),
    "cpp": (
        "namespace a {\n\nint Shape::area(int b) const\n{\n  for (int i = 0; i < b; ++i) {\n    c();\n  }\n}\n\n"
        "}  // a\n",
        [("class", "a", None), ("function", "a.Shape.area", None), ("block", "a.Shape.area", "c();")],
    ),
}


@pytest.mark.parametrize("language", SAMPLES)
def test_bodies_of_a_tree(language: str) -> None:
    text, wanted = SAMPLES[language]
    found = told(text, of_tree(language, text))
    assert [(owner, name) for owner, name, _ in found] == [(owner, name) for owner, name, _ in wanted]
    assert all(
        inside is None or inside == got for (_, _, inside), (_, _, got) in zip(wanted, found, strict=True)
    )


@pytest.mark.parametrize("language", SAMPLES)
def test_lines_tell_the_same_as_a_tree(language: str) -> None:
    text, _ = SAMPLES[language]
    lines, tree = by_lines(language, text), of_tree(language, text)
    spans = [(b.header.owner, b.opens, b.first, b.end, b.closes, b.stop, b.indent, b.inline) for b in tree]
    assert [
        (b.header.owner, b.opens, b.first, b.end, b.closes, b.stop, b.indent, b.inline) for b in lines
    ] == spans


@pytest.mark.parametrize("language", SAMPLES)
def test_lines_find_where_a_lost_brace_was(language: str) -> None:
    text, _ = SAMPLES[language]
    inner = of_tree(language, text)[-1]
    broken = text[: inner.closes] + " " + text[inner.closes + 1 :]
    found = next(b for b in by_lines(language, broken) if b.opens == inner.opens)
    assert (found.first, found.end, found.closes, found.stop) == (
        inner.first,
        inner.end,
        inner.end,
        inner.end,
    )


def one(language: str, text: str) -> Body:
    (body,) = [b for b in of_tree(language, text) if b.header.owner == "function"]
    return body


def test_a_body_ends_before_its_brace_and_comments_count() -> None:
    body = one("c", "int f(void) {\n  g();\n  // h\n}\n")
    assert (body.first, body.end, body.closes, body.stop) == (16, 27, 28, 29)
    assert body.indent == b"  "
    assert not body.inline


def test_an_empty_body_has_no_first_text() -> None:
    body = one("go", "func f() {\n\t\n}\n")
    assert (body.first, body.end, body.closes) == (None, 10, 13)
    assert body.stub


def test_a_body_on_the_line_of_its_header() -> None:
    body = one("java", "class A {\n  int f() { return 1; }\n}\n")
    assert body.inline
    assert body.indent is None


def test_a_missing_brace_closes_where_the_text_ends() -> None:
    body = next(b for b in of_tree("c", "int f(void) {\n  g();\n") if b.header.owner == "function")
    assert body.closes == body.end == body.stop == 20


STUBS = {
    "nothing": ("rust", "fn f() {}", True),
    "a comment": ("go", "func f() {\n\t// TODO\n}", True),
    "a macro": ("rust", "fn f() {\n    // later\n    todo!();\n}", True),
    "an exception": ("java", "class A { int f() { throw new UnsupportedOperationException(); } }", True),
    "a panic": ("go", 'func f() {\n\tpanic("not implemented")\n}', True),
    "a stub and more": ("go", 'func f() {\n\tg()\n\tpanic("not implemented")\n}', False),
    "another exception": ("java", "class A { int f() { throw new IllegalStateException(); } }", False),
    "a statement": ("c", "int f(void) { return 0; }", False),
}


@pytest.mark.parametrize("name", STUBS)
def test_stubs(name: str) -> None:
    language, text, wanted = STUBS[name]
    assert one(language, text).stub == wanted


HEADERS = {
    "attributes": ("rust", "#[a]\n#[b(c)]\nfn f() {}\n", 0),
    "an attribute of the neighbour": ("java", "class A {\n  @B void g() {}\n  void f() { h(); }\n}\n", 29),
    "a template": ("cpp", "template <typename A>\nvoid f() {}\n", 0),
    "a word before": ("typescript", "export default function f() {}\n", 0),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_begins_with_what_belongs_to_it(name: str) -> None:
    language, text, start = HEADERS[name]
    body = [b for b in of_tree(language, text) if b.header.owner == "function"][-1]
    assert body.header.start == start


def test_the_indentation_is_not_a_labels() -> None:
    assert one("c", "void f() {\nagain:\n    g();\n}\n").indent == b"    "


OWNERS = {
    "a lambda": ("java", "class A {\n  B b = () -> {\n    c();\n  };\n}\n", ["class", "function"]),
    "an anonymous class": ("java", "class A {\n  B b = new C() {\n    int d;\n  };\n}\n", ["class", "class"]),
    "a literal": ("go", "var a = B{\n\tc: 1,\n}\n", []),
    "an arm": ("rust", "fn f() {\n  match a {\n    B => {\n      c\n    }\n  }\n}\n", ["function", "block", "block"]),
    "an else": ("c", "void f() {\n  if (a) {\n  } else {\n    c();\n  }\n}\n", ["function", "block", "block"]),
    "a type between brackets": ("c", "struct a *f(struct b c)\n{\n  d();\n}\n", ["function"]),
    "an operator": ("cpp", "bool operator==(const A& a, const A& b) {\n  return c;\n}\n", ["function"]),
    "an object": ("javascript", "f({\n  a() {\n    b()\n  }\n})\n", ["function"]),
}  # fmt: skip


@pytest.mark.parametrize("name", OWNERS)
def test_lines_tell_whose_a_body_is(name: str) -> None:
    language, text, wanted = OWNERS[name]
    assert [b.header.owner for b in by_lines(language, text)] == wanted


# Functions of one short name, each with the type it belongs to; the names are what `FILE::name` takes.
OWNED = {
    "go": (
        "func (e *Parse) Error() string {\n\treturn e.text\n}\n\nfunc (Lookup) Error() string {\n\treturn name\n}\n\n"
        "func (s *Stack[T]) Push(x T) {\n\ts.all = append(s.all, x)\n}\n\n"
        "func (p Pair[K, V]) Key() (key K, err error) {\n\treturn p.key, nil\n}\n\n"
        "func Map[T any](all []T) {\n\tshow := func(a int) string {\n\t\treturn name\n\t}\n\tuse(show)\n}\n",
        ["Parse.Error", "Lookup.Error", "Stack.Push", "Pair.Key", "Map", "Map.show"],
    ),
    "cpp": (
        "int Parse::code() const {\n    return 1;\n}\n\nint store::Lookup::code() {\n    return 2;\n}\n\n"
        "Parse::Parse(int at) : at(at) {\n    check();\n}\n\nParse::~Parse() {\n    close();\n}\n\n"
        "Parse& Parse::operator=(const Parse& other) {\n    return *this;\n}\n\n"
        "template <class T>\nvoid Stack<T>::push(const T& x) {\n    all.push_back(x);\n}\n\n"
        "template <class T>\nint Map<std::vector<T>>::size() {\n    return 0;\n}\n\n"
        "bool operator<(const A& a, const A& b) {\n    return a.x < b.x;\n}\n",
        [
            *("Parse.code", "store.Lookup.code", "Parse.Parse", "Parse.~Parse", "Parse.operator="),
            *("Stack.push", "Map.size", "operator<"),
        ],
    ),
    "rust": (
        "impl Parse {\n    fn new() -> Parse {\n        make()\n    }\n}\n\n"
        "impl fmt::Display for Parse {\n    fn fmt(&self) -> Done {\n        show(self)\n    }\n}\n\n"
        "impl fmt::Display for &mut Lookup {\n    fn fmt(&self) -> Done {\n        show(self)\n    }\n}\n\n"
        "impl<'a, T> Iterator for store::Iter<'a, T> where T: Copy {\n    fn next(&mut self) -> Option<T> {\n"
        "        None\n    }\n}\n",
        ["Parse.new", "Parse.fmt", "Lookup.fmt", "Iter.next"],
    ),
}


@pytest.mark.parametrize("language", OWNED)
def test_a_method_has_the_name_of_its_type(language: str) -> None:
    text, names = OWNED[language]
    assert [b.header.name for b in of_tree(language, text) if b.header.owner == "function"] == names


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("go", "package p\n\nfunc f() {\n\tx := new(3)\n\t|\n}\n", "f"),
        (
            "java",
            "class A extends B {\n    A() {\n        int a = 1;\n        super();\n        |\n    }\n}\n",
            "A.A",
        ),
        ("cpp", "struct A {\n    void f(this A& self) {\n        |\n    }\n};\n", "A.f"),
        ("cpp", "void f() {\n    if consteval { g(); }\n    |\n}\n", "f"),
        (
            "csharp",
            'class A\n{\n    void F()\n    {\n        var a = $@"""b""";\n        |\n    }\n}\n',
            "A.F",
        ),
        (
            "csharp",
            "static class E\n{\n    extension(string s)\n    {\n        int N()\n        {\n            |\n"
            "        }\n    }\n}\n",
            "E.N",
        ),
        ("typescript", "class A {\n  static accessor x = 1;\n  f() {\n    |\n  }\n}\n", "A.f"),
        (
            "typescript",
            "class A {\n  static accessor x = 1;\n  f() {\n    g(t => {\n      |\n    });\n  }\n}\n",
            "A.f",
        ),
    ],
)
def test_a_body_in_text_that_the_grammar_cannot_read_has_its_name(
    language: str, text: str, name: str
) -> None:
    before, after = text.split("|")
    document = Document(f"file:///a.{language}", language, 1, (before + after).encode())
    assert find_gap(document, len(before.encode()), "function_body").name == name
