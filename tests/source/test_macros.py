"""Macros that the grammar does not know: what the parser reads instead of them, and what is found in such files."""

import random
import time

import pytest

from dg_lsp.context import prompt
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import find_gap, find_gaps
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.guard.check import faults_of
from dg_lsp.messages import Fill
from dg_lsp.settings import Settings, SettingsError, override
from dg_lsp.source.document import Document
from dg_lsp.source.language import known_languages, load_language
from dg_lsp.source.macros import Macros, blanked, read_macros

# A text, and what the parser reads of it, where `.` is a blank.
BLANKED = {
    "an export before a class": ("cpp", "class API_EXPORT Foo : Bar {\n};\n", "class ...........Foo : Bar {\n};\n"),
    "an export before a struct": ("cpp", "struct Q_DECL_EXPORT X : Y {};\n", "struct ..............X : Y {};\n"),
    "a final class": ("cpp", "class Q_CORE_EXPORT A final : B {};\n", "class ..............A final : B {};\n"),
    "in lower case": ("cpp", "class foo_export Foo final {};\n", "class ...........Foo final {};\n"),
    "with arguments": ("cpp", 'class API("a)") Foo {};\n', "class ..........Foo {};\n"),
    "two of them": ("cpp", "class API_A API_B(1) Foo {};\n", "class ...............Foo {};\n"),
    "a scoped enum": ("cpp", "enum class API_X E : int { A };\n", "enum class ......E : int { A };\n"),
    "a packed struct": ("c", "struct PACKED foo {\n  int a;\n};\n", "struct .......foo {\n  int a;\n};\n"),
    "before a function": ("c", "EXPORT void f() {}\n", ".......void f() {}\n"),
    "behind its specifiers": ("c", "static FORCEINLINE int f();\n", "static ............int f();\n"),
    "behind an attribute": ("cpp", "[[noreturn]] API_X void f();\n", "[[noreturn]] ......void f();\n"),
    "with a message": ("c", 'API_OLD("x") int f();\n', ".............int f();\n"),
    "before a template type": ("cpp", "API_X std::pair<A, B<C>> f();\n", "......std::pair<A, B<C>> f();\n"),
    "before a constructor": ("cpp", "class A {\n API explicit A(int);\n};\n", "class A {\n ....explicit A(int);\n};\n"),
    "behind its type": ("c", "DWORD WINAPI f(void *a) {\n}\n", "DWORD ...... f(void *a) {\n}\n"),
    "as kernels write it": ("c", "static int __init f(void) {\n}\n", "static int ...... f(void) {\n}\n"),
    "behind its head": ("cpp", "void f() const NOEXCEPT {\n}\n", "void f() const .........{\n}\n"),
    "before a constant": ("c", "API_X extern const int a;\n", "......extern const int a;\n"),
    "on its own line": ("cpp", "class A {\n  Q_OBJECT\npublic:\n};\n", "class A {\n  ........\npublic:\n};\n"),
    "on lines of their own": (
        "cpp", "class A {\n  G_BODY()\n  U_PROP(Edit, X = 1)\n  int a;\n};\n",
        "class A {\n  ........\n  ...................\n  int a;\n};\n",
    ),
    "round a file": ("cpp", "NS_BEGIN\nclass A {\n};\nNS_END\n", "........\nclass A {\n};\n......\n"),
    "slots": ("cpp", "class A {\npublic slots:\n  void f();\n};\n", "class A {\npublic .....:\n  void f();\n};\n"),
    "signals": ("cpp", "class A {\nsignals:\n  void f();\n};\n", "class A {\n........\n  void f();\n};\n"),
    "a loop": ("cpp", "void f() {\n  foreach (int x, y) {\n  }\n}\n", "void f() {\n  for(;;)........... {\n  }\n}\n"),
    "a loop of a kernel": (
        "c", "void f() {\n  list_for_each(a, b(c)) {\n  }\n}\n", "void f() {\n  for(;;)............... {\n  }\n}\n"
    ),
    "a loop of boost": ("cpp", "void f() {\n  B_FOREACH(A, b) {}\n}\n", "void f() {\n  for(;;)........ {}\n}\n"),
    "two heads": (
        "c", "#ifdef A\nint f(int a) {\n#else\nint f(void) {\n#endif\n  g();\n}\n",
        "........\nint f(int a) {\n.....\n.............\n......\n  g();\n}\n",
    ),
    "two heads of one brace": (
        "c", "#if A\nint f(int a)\n#elif B\nint f(b)\n#else\nint f()\n#endif\n{\n}\n",
        ".....\nint f(int a)\n.......\n........\n.....\n.......\n......\n{\n}\n",
    ),
    "behind the head of a declaration": (
        "cpp", "void f(char *a, ...) PRINTF(1, 2) __cold;\n", "void f(char *a, ...) ...................;\n"
    ),
    "behind the head of a constructor": ("cpp", "A(A b) NOEXCEPT : c(b) {\n}\n", "A(A b) ........ : c(b) {\n}\n"),
    "before a constructor of a template": (
        "cpp", "template <class T>\nINLINE A<T>::A() : b(1) {}\n", "template <class T>\n.......A<T>::A() : b(1) {}\n"
    ),
    "behind a member": ("cpp", "class A {\n  int a GUARDED_BY(b);\n};\n", "class A {\n  int a .............;\n};\n"),
    "before a type of a kernel": ("c", "static __always_inline int f() {}\n", "static ............... int f() {}\n"),
    "of a pointer": ("c", "void __user *a;\n", "void ...... *a;\n"),
    "as a type": ("c", "struct a {\n  ENTRY(a) next;\n};\n", "struct a {\n  ENTRY    next;\n};\n"),
    "a type among arguments": ("c", "void f() { g(a, struct b *, c); }\n", "void f() { g(a, .......b ., c); }\n"),
    "before a block": ("cpp", "void f() {\n  ON_EXIT { g(); };\n}\n", "void f() {\n  ........{ g(); };\n}\n"),
    "a loop without braces": (
        "c", "void f() {\n  a_foreach(b)\n    g();\n}\n",
        "void f() {\n  for(;;).....\n    g();\n}\n",
    ),
    "a test with a name": (
        "cpp", 'TEST_CASE("a b") {\n  SECTION("c") {\n  }\n}\n', "void _g_()       {\n  if(1)        {\n  }\n}\n"
    ),
    "the language of a header": (
        "c", '#ifdef __cplusplus\nextern "C" {\n#endif\nint f();\n#ifdef __cplusplus\n}\n#endif\n',
        "..................\n............\n......\nint f();\n..................\n.\n......\n",
    ),
    "directives in a list": (
        "c", "int a[] = {\n  1,\n#ifdef A\n  2,\n#endif\n  3};\n", "int a[] = {\n  1,\n........\n  2,\n......\n  3};\n"
    ),
    "directives in a call": (
        "csharp", "class A { void F() {\n  G(a,\n#if B\n    b,\n#else\n    c,\n#endif\n    d);\n} }\n",
        "class A { void F() {\n  G(a,\n.....\n    b,\n.....\n    ..\n......\n    d);\n} }\n",
    ),
    "directives round a condition": (
        "c", "void f() {\n#if A\n  if (a)\n#endif\n    g();\n}\n", "void f() {\n.....\n  if (a)\n......\n    g();\n}\n"
    ),
    "directives round half a statement": (
        "c", "void f() {\n#if A\n  if (a) g(); else\n#endif\n    g();\n}\n",
        "void f() {\n.....\n  if (a) g(); else\n......\n    g();\n}\n",
    ),
    "a list in a file": (
        "c", 'int a[] = {\n#define X(b) b,\n#include "a.def"\n};\n',
        "int a[] = {\n...............\n................\n};\n"
    ),
    "a label above a directive": (
        "c", "void f() {\nout:\n#if A\n  g();\n#endif\n}\n", "void f() {\n....\n#if A\n  g();\n#endif\n}\n"
    ),
    "a blank behind a definition": ("c", "#define A \n#include <b>\n", "#define A;\n#include <b>\n"),
    "a computed jump": ("c", "void f() { goto *a[1]; }\n", "void f() { goto _g   ; }\n"),
    "bits without a name": ("c", "struct a { int b : 1; int : 0; };\n", "struct a { int b : 1; int ...; };\n"),
    "a range of cases": (
        "cpp", "void f() { switch (a) { case 1 ... 3: g(); } }\n",
        "void f() { switch (a) { case 1 .....: g(); } }\n",
    ),
    "a default in braces": ("cpp", "struct A { void f(B b = {}, C c); };\n", "struct A { void f(B b ...., C c); };\n"),
    "an attribute of an enum": ("cpp", "enum class [[a]] E { A };\n", "enum class ..... E { A };\n"),
    "a value thrown": ("cpp", "void f() { a = b ? 1 : throw c; }\n", "void f() { a = b ? 1 : ......c; }\n"),
    "a template made": ("cpp", "extern template class A<int>;\n", "................class A<int>;\n"),
    "modules": ("cpp", "export module a.b;\nexport int f();\n", "..................\n.......int f();\n"),
    "a member assigned if there": (
        "csharp", "class A { void F() { a?.B = 1; } }\n",
        "class A { void F() { a..B = 1; } }\n",
    ),
    "a slice of a list": (
        "csharp", "class A { bool F() => a is [1, .. var b]; }\n",
        "class A { bool F() => a is [1, .. var b]; }\n",
    ),
    "a condition of a list": (
        "csharp",
        "class A { int F() => a switch { [1, 2] when b => 1, _ => 2 }; }\n",
        "class A { int F() => a switch { [1, 2] &&.. b => 1, _ => 2 }; }\n",
    ),
    "an operator that assigns": (
        "csharp", "class A { void operator +=(A a) { } }\n", "class A { void operator + (A a) { } }\n"
    ),
    "an extension block": (
        "csharp", "static class A {\n  extension(string s) {\n  }\n}\n",
        "static class A {\n  class _g            {\n  }\n}\n"
    ),
    "a constraint that takes none away": (
        "csharp", "class A<T> where T : allows ref struct { }\n", "class A<T> where T : class             { }\n"
    ),
    "with carriage returns": ("cpp", "class API_X Foo {\r\n};\r\n", "class ......Foo {\r\n};\r\n"),
}  # fmt: skip
# What looks like a macro and is none.
KEPT = [
    ("cpp", "class Foo bar;\nclass API_EXPORT;\nstruct Foo f();\nstruct FOO g(int a) {\n}\n"),
    ("cpp", "enum Color color;\nenum class Color : int { RED, GREEN };\nnamespace a::b {\n}\n"),
    ("cpp", "template <class T, class U> class A : B<T> {\n};\nclass A final {\n};\n"),
    ("cpp", "TEST(Foo, Bar) {\n  a();\n}\nTEST_F(Foo, Bar)\n{\n  a();\n}\n"),
    ("cpp", "template <class F>\nvoid for_each(F f) {\n}\nvoid g() {\n  std::for_each(a, b, f);\n}\n"),
    ("c", "void list_for_each(list *l) {\n}\nvoid\nlist_foreach(list *l)\n{\n}\n"),
    (
        "c",
        "FILE *f(void);\nHANDLE g(void) {\n  return FOO;\n}\nstatic HANDLE h(void);\nUINT const *k(void);\n",
    ),
    ("c", "enum a {\n  FIRST,\n  LAST\n};\nint b[] = {\n  ONE,\n  TWO\n};\n"),
    ("c", "void f(void) {\n  g(A |\n    B\n  );\n  if (a) RETURN;\n  x = MAX(a, b);\n  LOG(a);\n}\n"),
    ("c", "#define F(x) \\\n  A(x) \\\n  B(x)\nint a;\n"),
    ("c", "#ifdef A\nint f(int a) {\n}\n#else\nint f(void) {\n}\n#endif\n"),
    ("c", "void f() {\n  if (a) DONE;\n  g(a) DONE;\n  return g(a) DONE;\n}\n"),
    ("cpp", "void f() {\n  std::for_each(a, b, c)\n  g();\n  for_each(a, b)\n  g();\n}\n"),
    ("c", "#if A\nint a;\n#else\nint b;\n#endif\n#ifndef A_H\n#define A_H\n#endif\n"),
    ("c", "void f() {\n  x = a ? (struct b *) c : d;\n  return(struct b *)c;\n  public: g();\n}\n"),
    (
        "csharp",
        "class A {\n  int? b = c?.D == 1 ? 2 : 3;\n  E? f = g is H { I: 1 } ? null : J?[0] ?? k;\n}\n",
    ),
    ("csharp", "class A {\n#if B\n  int a;\n#else\n  int b;\n#endif\n  int[] c = d[1..];\n}\n"),
    ("cpp", "BOOL operator==(A a, B b);\nBOOL f();\n"),
]


@pytest.mark.parametrize("name", BLANKED)
def test_a_macro_is_read_as_blanks_of_its_length(name: str) -> None:
    language, source, wanted = BLANKED[name]
    loaded = load_language(language)
    assert loaded.readable(source.encode()).decode().replace(" ", ".") == wanted.replace(" ", ".")
    assert not loaded.parse(source.encode()).root_node.has_error


@pytest.mark.parametrize(("language", "source"), KEPT)
def test_what_is_no_macro_stays(language: str, source: str) -> None:
    assert load_language(language).readable(source.encode()) == source.encode()


def test_languages_without_macros_read_every_text_as_it_is() -> None:
    text = b"class API_EXPORT Foo {\n}\n"
    without = {name for name in known_languages() if load_language(name).readable(text) == text}
    assert without == set(known_languages()) - {"c", "cpp"}


@pytest.mark.parametrize("name", BLANKED)
def test_a_text_that_becomes_a_macro_while_one_types_is_parsed_as_if_read_afresh(name: str) -> None:
    language, source, _ = BLANKED[name]
    loaded, data = load_language(language), source.encode()
    tree = loaded.parse(b"")
    for at in range(len(data)):
        tree = loaded.reparse(tree, data[:at], (at, at), data[at : at + 1])
    assert str(tree.root_node) == str(loaded.parse(data).root_node)
    for at in range(0, len(data), 3):
        changed = loaded.reparse(tree, data, (at, at + 1), b"")
        afresh = loaded.parse(data[:at] + data[at + 1 :])
        # In a broken text a parser that goes on from an older tree recovers otherwise.
        assert changed.root_node.has_error == afresh.root_node.has_error
        assert afresh.root_node.has_error or str(changed.root_node) == str(afresh.root_node)


@pytest.mark.parametrize("name", ["long heads", "open brackets", "words", "quotes", "directives"])
def test_no_text_makes_the_search_for_macros_slow(name: str) -> None:
    texts = {
        "long heads": b"class API(a(b)) " * 8_000,
        "open brackets": b"\nAPI(" * 20_000,
        "words": b"\nAPI_X " + b"A_B " * 25_000,
        "quotes": b'\nAPI("\\' * 15_000,
        "directives": b"\n#if a\nb(\n#else\n" * 6_000,
    }
    begun = time.process_time()
    load_language("cpp").readable(texts[name])
    assert time.process_time() - begun < 5


OWNERS = {
    "an exported class": (
        "cpp", "class API_X Foo {\n  Foo();\n  int f() {}\n  int a¦;\n};\n", ["Foo.f"], "the cursor is in no f"
    ),
    "a class behind what nobody knows": (
        "cpp", "class some_api Foo\n{\n  Foo();\n  int f() {}\n  int a¦;\n};\n", ["f"], "the cursor is in no f"
    ),
    "a known loop": ("c", "void f(void) {\n  list_for_each(a, b) {\n    ¦c();\n  }\n}\n", ["f"], "list_for_each"),
    "an unknown loop": ("cpp", "void f() {\n  each_of(a, b) {\n    ¦c();\n  }\n}\n", ["f"], "each_of"),
    "an unknown loop of C": ("c", "void f(void) {\n  each_of(a, b) {\n    ¦c();\n  }\n}\n", ["f"], "each_of"),
    "a constructor": ("cpp", "class A {\n  A(int a) {\n    ¦b();\n  }\n};\n", ["A.A"], "b();"),
    "a class in a function": (
        "cpp", "void f() {\n  struct A {\n    A(int a) {\n      ¦b();\n    }\n  };\n}\n", ["f", "f.A.A"], "b();",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OWNERS)
def test_neither_a_class_nor_a_loop_by_a_macro_is_a_function(name: str) -> None:
    language, source, names, body = OWNERS[name]
    document = Document("file:///m", language, 0, source.replace("¦", "").encode())
    assert [gap.name for gap in find_gaps(document, 0, len(document.data))] == names
    try:
        gap = find_gap(document, len(source[: source.index("¦")].encode()), "function_body")
        said = document.data[gap.start : gap.end].decode()
    except ValueError as error:
        said = str(error)
    assert said.startswith(body)


def test_a_kind_of_macro_may_be_replaced_by_something_and_look_at_the_text_above() -> None:
    tables = [{"words": ["each"], "after": ";[ ]*", "blank": r"{WORD} \( {NAME} \)", "instead": "if(1)"}]
    macros = read_macros(tables, {"LETTER": "[a-z]", "NAME": "{LETTER}+"})
    assert blanked(macros, b"; each(ab) each(ab)") == b"; if(1)    each(ab)"
    assert blanked(Macros(), b"; each(ab)") == b"; each(ab)"


NAMED = "class my_api\n  Foo : Bar {\n  int f(int a) {\n    ¦\n    return a;\n  }\n};\nmy_decl(1) int g();\n"


def test_names_of_the_settings_are_read_as_blanks_in_all_that_reads_a_file() -> None:
    data = NAMED.replace("¦", "").encode()
    names = ("my_api", "my_decl")
    assert load_language("cpp").parse(data).root_node.has_error
    assert not load_language("cpp", names).parse(data).root_node.has_error
    assert not load_language("cpp", ("my_*",)).parse(data).root_node.has_error
    document = Document("file:///m", "cpp", 0, data, macros=names)
    gap = find_gap(document, NAMED.index("¦"))
    request = prompt.build(document, gap, Settings())
    assert request.macros == names
    assert faults_of(request, "foo(a);") == () and faults_of(request, "foo(a;") != ()
    edit = finish(document, gap, Fill("foo(a);")).edit
    assert edit is not None
    assert apply_edit(document, edit).macros == names
    assert finish(document, gap, Fill("foo(a;")).edit is None


def test_a_name_of_the_settings_before_a_brace_is_a_loop() -> None:
    source = b"void f() {\n  my_each(a, b) {\n    c();\n  }\n  x = my_value(1);\n}\n"
    read = load_language("c", ("my_each", "my_val*")).readable(source)
    assert read == source.replace(b"my_each(a, b)", b"for(;;)      ").replace(b"my_value(1)", b" " * 11)


def test_names_of_the_settings_mean_nothing_where_there_are_no_macros() -> None:
    assert load_language("python", ("def",)).readable(b"def f(): pass\n") == b"def f(): pass\n"


@pytest.mark.parametrize("name", ["", "A", "(a+)+$", "a b", "*", "A**", "a" * 80, "FOO()", "A.*"])
def test_only_names_are_taken_as_macros_by_the_settings(name: str) -> None:
    with pytest.raises(
        SettingsError, match=r"setting 'macros' takes names of macros such as MY_API, or MY_\*"
    ):
        override(Settings(), {"macros": [name]})
    assert override(Settings(), {"macros": ["MY_API", "My_*"]}).macros == ("MY_API", "My_*")


def test_so_many_names_that_each_file_would_be_slow_are_refused() -> None:
    with pytest.raises(SettingsError, match="at most 100 names, not 101"):
        override(Settings(), {"macros": [f"API_{number}" for number in range(101)]})


def test_an_edited_text_has_the_same_blanks_as_one_read_afresh() -> None:
    language, rng = load_language("cpp"), random.Random(3)
    parts = [
        b"class API_EXPORT Foo : public Bar {\n  Q_OBJECT\n",
        b"  int WINAPI f(int a);\n",
        b"};\n",
        b"\n",
    ]
    parts += [b"int x%d;\n" % number for number in range(9)]
    older = b"\n".join(rng.choice(parts) for _ in range(120))
    for _ in range(200):
        start = rng.randrange(len(older))
        end = min(start + rng.choice((0, 0, 1, 40)), len(older))
        text = rng.choice(
            (b"", b"x", b"\n", b"\n\n", b"\r\n\r\n", b" WINAPI ", b"\n\nAPI_EXPORT void g();\n\n")
        )
        data = older[:start] + text + older[end:]
        # An object of its own has no answers that are kept.
        assert blanked(language.macros, data) == blanked(Macros(language.macros.kinds), data)
        older = data.replace(b"\r\n", b"\n")


@pytest.mark.parametrize("name", ["css", "json", "sql", "toml", "yaml"])
@pytest.mark.parametrize("unit", [b"{", b"{{", b"{%", b"{{ a ", b"}", b"{ {"])
def test_repeated_braces_are_read_in_linear_time(name: str, unit: bytes) -> None:
    macros, began = load_language(name).macros, time.thread_time()
    assert blanked(macros, unit * 30_000) == unit * 30_000
    assert time.thread_time() - began < 1


def test_what_a_template_inserts_is_blanked_with_braces_of_its_own() -> None:
    macros = load_language("json").macros
    assert blanked(macros, b'{"a": {{ b }}, "c": {{ {1: 2} }}}') == b'{"a": 0      , "c": 0           }'


@pytest.mark.parametrize(
    "text",
    [
        "a: >-\n  {{ bbb }}\n  c\nd: 1\n",
        "a: |2-\r\n  {%- if b -%}\r\n  c\r\nd: 1\r\n",
        'a:\n  - &b >-\n    {%- if c -%}\n      {{ {\n        "d": 1\n      }[e] }}\nf: *b\n',
        "a: |-\n{{ .B | indent 2 }}\nc: {{ .D }}\n",
    ],
)
def test_a_template_in_a_text_of_a_block_is_read_as_text(text: str) -> None:
    assert not load_language("yaml").parse(text.encode()).root_node.has_error
