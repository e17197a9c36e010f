"""What compilers refuse and grammars take, found in packages by other parsers: refused, and what is like it offered."""

import pytest

from dg_lsp.gaps.find import find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.guard import fit
from dg_lsp.guard.harm import harm_of
from dg_lsp.source.document import Document


def filled(language: str, marked: str, text: str) -> str:
    """The text with a fill at the cursor `‸`; the reason in brackets if it is refused."""
    before, _, after = marked.partition("‸")
    document = Document("file:///w/a", language, 1, (before + after).encode())
    gap = find_gap(document, len(before.encode()))
    edit = fit.make_edit(document, gap, text)
    reason = harm_of(document, gap, edit)
    return f"<{reason}>" if reason else apply_edit(document, edit).text


RUST = "fn f() {\n    ‸\n    foo(a);\n    let b = 1;\n}\n"
CSHARP = "class A {\n    ‸\n    public void F() {\n    }\n}\n"
RUBY = "class A\n  def f(x)\n    ‸\n    g(x)\n    h\n  end\n\n  def g\n    1\n  end\nend\n"
RUBY_NAME = "class A\n  def ‸\n    y = x\n    y\n  end\n\n  def g\n    1\n  end\nend\n"
PHP = "<?php\nfunction f()\n{\n    $a = 1;\n    ‸\n    \\g($a);\n    return $a;\n}\n"
HEADER = "#include <b.h>\nint f ( int a );\n\nFOO BAR int x BAZ <> y;\n\n‸\n\nvoid g ( int b );\n"
TYPES = "class A {\n    void F() {\n        return new R(‸);\n    }\n}\n"
PARTS = 'DELETE FROM "L" l\nUSING (\n    SELECT\n        ‸\n    ) AS i\nWHERE\n    l."id" = i."id"\nRETURNING l.*;\n'
INSERT = (
    'INSERT INTO "L" (\n    "a",\n    "b"\n)\nSELECT\n    now()‸\n    @b::uuid\nFROM (\n    SELECT 1\n    ) AS i\n'
    'ON CONFLICT ("a") DO UPDATE SET\n    "b" = EXCLUDED."b"\nRETURNING *;\n'
)
BLOCK = (
    "class A {\n  @Test\n  fun f() {\n    val x = object : B(c by d e) {\n      override fun on(p: P): P {\n"
    "        return p\n      }\n    }\n\n    val t = b / 1\n    ‸\n\n    g(t)\n  }\n}\n"
)
PAGE = "<!doctype html>\n‸\n  <head>\n    <title>a</title>\n  </head>\n  <body>\n  </body>\n</html>\n"
HANDLED = "def f\n  a\n  ‸\n  b\nrescue A => e\n  c\nensure\n  d\nend\n"
OBJECT = '{\n  "a": ‸,\n  "b": 1\n}\n'
GO_CASES = "package p\n\nfunc f() {\n\tswitch a {\n\tcase 1:\n\t\t‸\n\tdefault:\n\t\treturn c\n\t}\n}\n"
RUST_RETURN = "fn f() {\n    if a {\n        ‸\n    }\n    g();\n}\n"
BODY = (
    "CREATE FUNCTION f(a text) RETURNS text AS $$\nDECLARE\n  b text;\nBEGIN\n"
    "  SELECT c INTO b FROM d WHERE e = 'f';\n\n  ‸\n  b := g(a) || ' h';\n"
    "  IF b <> '' THEN\n    PERFORM i(b);\n  END IF;\n  RETURN b;\nEND\n$$ LANGUAGE 'plpgsql';\n"
)
BODY_CALL = BODY.replace("‸\n", "EXECUTE 'SET j = ' || k(‸) || ', ' || b;\n")
BODY_NAMES = BODY.replace("  b text;\n", "  b text;\n  ‸\n").replace("  ‸\n  b :=", "  b :=")
HEAD = BODY.replace("  ‸\n", "").replace("(a text)", "(‸)")
VIEW = "SELECT 1;\n\n-- a\n‸\n  SELECT b, min(c) AS c\n    FROM d;\n"
SHELL_IF = 'f() {\n  if [[ "$a" == ‸\n    b=1\n  elif [[ "$c" == "" ]]; then\n    d\n  fi\n}\n'
FORM = '<div\n  id="a"\n  ‸\n  class="b"></div>\n'


@pytest.mark.parametrize(
    ("language", "marked", "text"),
    [
        # The statement below becomes a part of half of one.
        ("rust", RUST, "let"),
        ("rust", RUST, "let mut x ="),
        ("rust", "‸\nfn f() {\n    g();\n}\n", "pub unsafe"),
        ("csharp", CSHARP, "public static"),
        ("csharp", CSHARP, "override"),
        ("java", "class A {\n    ‸\n    public void f() {\n    }\n}\n", "@"),
        ("ruby", RUBY, "return true if"),
        ("ruby", RUBY, "x = y,"),
        ("ruby", RUBY_NAME, "f(x) = 1"),
        ("php", PHP, "catch"),
        ("php", PHP, "$x ="),
        # A file's level, which a room of nothing else did not show.
        ("c", HEADER, "return 1;"),
        ("c", HEADER, "case 1:"),
        ("java", "/** a */\n‸\npackage a.b;\n", "x();"),
        ("csharp", "// a\n‸\n\nnamespace A\n{\n    public class B\n    {\n    }\n}\n", "x = 1;"),
        # What a text in code ends or begins for all that follows.
        ("php", PHP, "?>"),
        ("sql", "/*\n a ‸\n b\n*/\nSELECT 1;\n", "and /* x"),
        # The statement in brackets of one that the grammar does not know, and one that is cut in two.
        ("sql", PARTS, "WHERE"),
        ("sql", PARTS, "- a: b"),
        ("sql", INSERT, "END;"),
        ("sql", INSERT, "%("),
        ("kotlin", BLOCK, "x = %()"),
        ("kotlin", BLOCK, "let x = `${y}`"),
        # Words in the place of names, names without a letter, and what has no such place.
        ("sql", "SELECT count‸\n\n", "(*) = FROM bar;"),
        ("sql", 'INSERT INTO "L" (\n    ‸\n    "b"\n) VALUES (1, 2);\n', '"",'),
        ("sql", "SELECT f(‸);\n", "'a', 'b' 'a', 'b'"),
        ("typescript", "f(‸);\n", "{null"),
        ("java", "class A {\n    ‸\n    int b;\n}\n", "throws E;"),
        ("yaml", "a:\n  b: ‸\n  c: 1\n", "&x;"),
        ("ruby", "def f(env)\n  ‸\nend\n", "a == b or super = x"),
        ("ruby", "def f(x)\n  ‸\nend\n", "a\n  x.frozen? = b"),
        ("ruby", "class A\n  D = ‸\n  f :a\nend\n", "https{ 'a' => 80 }"),
        ("ruby", "f(‸)\n", '("a" => "b"'),
        ("rust", 'fn f() {\n    g("a{‸}");\n}\n', "x = \\"),
        ("rust", "fn f() {\n    println!(‸);\n}\n", '"{}", errb\'abc;'),
        ("rust", "impl A {\n    fn f(‸) -> B {\n        c()\n    }\n}\n", "s"),
        ("go", 'package p\n\nvar a = "b‸c"\n', "\\q"),
        ("c", "int f(int a);\n‸\nint g(int b);\n", "int h(T a)\n   x = 1;"),
        ("c", "void f() {\n  g();\n  {\n    a();\n    ‸\n    b();\n  }\n}\n", "case 1:"),
        ("c", "int a[] = {\n  1, 2, ‸\n  3, 4};\n", "default:"),
        ("c", "#ifdef A\n‸\n#endif\nint b;\n", "#define a b'cd"),
        ("csharp", TYPES, "member member"),
        ("csharp", "class A<T> : B‸\n{\n    int c;\n}\n", "<T> <T>"),
        ("python", "f(\n    ‸\n    b=1,\n    c=2,\n)\n", "a=1, b=1,"),
        ("tsx", "const a = (\n  <B\n    c={d}\n    ‸\n    e={1}\n  />\n);\n", "{f={g}"),
        ("css", '@font-face {\n  font-family: "a";\n  ‸\n  src: url("b");\n}\n', "c: d{"),
        ("css", "a:b,\n‸\nc:d {\n  e: f;\n}\n\ng {\n  h: i;\n}\n", "return 1;"),
        ("css", "a {\n  b: ‸;\n  c: d;\n}\n", "var("),
        ("html", PAGE, '<html lang="en">"abc'),
        ("html", FORM, "let x = `${y}`"),
        ("html", FORM, 'b="c"`abc'),
        ("html", "<input\n  id=‸\n  disabled\n>\n", '"a" disabled'),
        # What is above the type of a document, and a second type.
        ("html", "‸\n" + PAGE.replace("‸\n", ""), "x = 1"),
        ("html", "<!-- a -->\n‸\n" + PAGE.replace("‸\n", ""), "<p>a</p>"),
        ("html", PAGE, "<!DOCTYPE html>"),
        # Words in the place of values, also those with which a text is ended, and handlers out of order.
        ("ruby", "x = 1\n‸\ny = 2\n", "rescue"),
        ("ruby", RUBY, "x += "),
        ("ruby", RUBY, "not"),
        ("ruby", RUBY, "case"),
        ("ruby", HANDLED, "ensure"),
        ("ruby", HANDLED, "else"),
        ("ruby", "class A < B‸\n  def f\n  end\nend\n", " if x"),
        ("php", "<?php\nf(‸);\n", "A:class"),
        # Brackets and braces where their language has none.
        ("rust", "fn f<C>()\nwhere\n    C: ‸\n{\n}\n", "(A + B),"),
        ("rust", "fn f<C>(a: &‸) {\n}\n", "dyn (A + B)"),
        ("csharp", "class A {\n    void F() {\n        G(‸);\n    }\n}\n", "x = {1}"),
        ("csharp", "class A {\n    void F() {\n        ‸\n    }\n}\n", "x = {1};"),
        # Statements in the braces of a value, which make a function of it.
        ("cpp", "struct A {\n  int b{‸};\n  int c;\n};\n", "g();"),
        ("cpp", "struct A {\n  T* b{‸};\n  int c;\n};\n", "if (a) { b(); }"),
        ("cpp", "struct A {\n  std::vector<int> b{1,\n    ‸\n  };\n};\n", "g(2);"),
        ("cpp", "struct A {\n  T b‸\n};\n", "{ x; }"),
        ("cpp", "void f() {\n  auto& a{‸};\n  g();\n}\n", "return 1;"),
        ("cpp", "unsigned long a{‸};\n", "g();"),
        ("cpp", "std::array<int, 2> a{‸};\n", "g();"),
        # What a statement is not followed by: a comment and no semicolon, a sign, a case on its line.
        ("rust", "fn f() {\n    ‸\n    assert!(a);\n    g();\n}\n", "h!(b) // c"),
        ("rust", RUST_RETURN, "return<<EOF"),
        ("go", GO_CASES, "return b default:"),
        ("go", GO_CASES, "x = 1 case 2:"),
        # Brackets with nothing in them.
        ("cpp", "void f() {\n  a << ‸\n  g();\n}\n", "b[];"),
        ("cpp", "void f() {\n  a << ‸\n  g();\n}\n", "b["),
        # Words and signs that end nothing, or begin nothing: a handler of no statement, a choice of none, an argument.
        ("ruby", RUBY, "a = 0rescue\n    end"),
        ("ruby", "begin\n  a\n‸\n  b\nend\n", "else"),
        ("ruby", "require 'a'\n‸\ntask 'c' => 'd'\n", "yield"),
        ("ruby", RUBY, "f(nil:text, a)"),
        ("ruby", RUBY, "x = /(?)/"),
        ("ruby", "class A\n  def f(‸)\n    g\n  end\nend\n", "(a, b = C)"),
        ("shell", SHELL_IF, '"-" ]] ; then${x}'),
        ("shell", SHELL_IF, '"-" ]] ; then$(x)'),
        ("csharp", "class A ‸\n{\n}\n", ": B : B"),
        ("kotlin", "package a\n\nimport b.c‸\n\ninterface C {\n}\n", "{{}}"),
        ("kotlin", "class A {\n    ‸\n\n    interface B {\n    }\n}\n", "var c = null interface D {\n    }"),
        ("rust", "fn f() {\n    a(b).c(‸)\n}\n", "b<_>::c"),
        ("rust", "fn f() {\n    a(b).c(‸)\n}\n", "a == b == c"),
        # Statements of a routine's body, each read alone, and what is in brackets, or before a body.
        ("sql", BODY, "BEGIN"),
        ("sql", BODY, "END;"),
        ("sql", BODY, "END IF;"),
        ("sql", BODY, "x();"),
        ("sql", BODY, "PERFORM a b c;"),
        ("sql", BODY, "IF a THEN b := 1"),
        ("sql", BODY, "b := a +"),
        ("sql", BODY_CALL, "a a"),
        ("sql", BODY_CALL, "class A < B; end"),
        ("sql", BODY_CALL, "a["),
        ("sql", BODY.replace("‸", "EXECUTE ‸"), "END;"),
        ("sql", BODY_NAMES, "x = 1;"),
        ("sql", HEAD, "FROM a FROM b"),
        ("sql", HEAD, "RETURNS text AS"),
        # Words that the next line's statement is read with, as names.
        ("sql", VIEW, "SELECT b, min(c) AS c,"),
        ("sql", "WITH a AS (\n  SELECT b‸\n  FROM c\n)\nSELECT d FROM a;\n", ", e FROM c,"),
        # The first template of a file of data.
        ("json", OBJECT, "{{ x }}"),
        ("toml", "a = ‸\nb = 1\n", "{{ x }}"),
    ],
)
def test_what_compilers_refuse_is_refused(language: str, marked: str, text: str) -> None:
    assert filled(language, marked, text).startswith("<the fill would ")


@pytest.mark.parametrize(
    ("language", "marked", "text"),
    [
        ("rust", RUST, "let x = y;"),
        ("rust", "‸\nfn f() {\n    g();\n}\n", "#[inline]"),
        ("csharp", CSHARP, "[Obsolete]"),
        ("java", "class A {\n    ‸\n    public void f() {\n    }\n}\n", "@Override"),
        ("java", "interface A {\n    T f(int a)\n        ‸\n}\n", "throws E;"),
        ("ruby", RUBY, "return true if x"),
        ("ruby", RUBY_NAME, "f(x)"),
        ("php", PHP, "$x = 1;"),
        ("php", "<?php if ($a): ‸\n<b></b>\n<?php endif; ?>\n", "?>"),
        ("php", "<?php\n‸\n\nnamespace A;\n", "declare(strict_types=1);"),
        ("c", HEADER, "int h ( int c );"),
        ("cpp", "A_B\ninline void\n‸\nf()\n{\n  g();\n}\n\nA_B (C int\n", "A::"),
        ("cpp", "struct A {\n  int b{‸};\n  int c;\n};\n", "g(), 2"),
        ("cpp", "struct A {\n  T b‸\n};\n", "() { x; }"),
        ("cpp", "struct A {\n  ‸\n};\n", "operator bool() const { return x; }"),
        ("cpp", "A_BEGIN\n‸\nint b;\n}\nA_END\n", "namespace c {"),
        ("sql", PARTS, 'unnest(a) AS "id"'),
        ("kotlin", BLOCK, "val s = b / 1"),
        ("python", "f(\n    ‸\n    b=1,\n    c=2,\n)\n", "a=1,"),
        ("csharp", "class A {\n    void F() {\n        G(‸);\n    }\n}\n", "out int x"),
        ("typescript", "f(‸);\n", "{ a, b }"),
        ("html", FORM, 'b="c"'),
        ("html", "<input\n  id=‸\n  disabled\n>\n", '"a" checked'),
        ("html", PAGE.replace("‸\n", "<html>\n").replace("<head>\n", "<head>\n    ‸\n"), "{{ a }}"),
        ("yaml", "a:\n  b: ‸\n  c: 1\n", "&x 1"),
        ("html", "‸\n" + PAGE.replace("‸\n", ""), "<!-- a -->"),
        ("html", "‸\n" + PAGE.replace("‸\n", ""), "{% load a %}"),
        ("ruby", HANDLED, "rescue B"),
        ("ruby", RUBY, "x += 1"),
        ("ruby", RUBY, "return if x"),
        ("ruby", RUBY, "(a..b).end"),
        ("php", "<?php\nf(‸);\n", "a: A::class"),
        ("php", "<?php\nf(‸);\n", "default: 1"),
        ("rust", "fn f<C>()\nwhere\n    C: ‸\n{\n}\n", "(A) + B,"),
        ("rust", "fn f<C>(a: ‸) {\n}\n", "&(A + B)"),
        ("csharp", "class A {\n    void F() {\n        G(‸);\n    }\n}\n", "new B { C = {1} }"),
        ("rust", "fn f() {\n    ‸\n    assert!(a);\n    g();\n}\n", "h! { b } // c"),
        ("rust", RUST_RETURN, "return a << b;"),
        ("rust", RUST_RETURN, "vec![a]"),
        ("go", GO_CASES, 'g("a default:")'),
        ("tsx", "import a;\n\nexport type P = ‸\n  b?: C;\n};\n", "D<typeof E> & {"),
        ("cpp", "void f() {\n  a << ‸\n  g();\n}\n", "[] { return 1; }();"),
        ("cpp", "void f() {\n  ‸\n  g();\n}\n", "delete[] a, b = new int[1]{}, c[1] = {};"),
        ("ruby", RUBY, "a = 0 rescue nil"),
        ("ruby", "begin\n  a\n‸\n  b\nend\n", "rescue A"),
        ("ruby", "f do\n  ‸\n  a\nend\n", "yield b"),
        ("ruby", RUBY, "f(a, b: c, **d, &e)"),
        ("ruby", RUBY, "f({ a: 1 }, b)"),
        ("ruby", RUBY, "x = /(?<a>b)(?:c)(?i-m)(?#d)(?~e)/"),
        ("ruby", "class A\n  def f(‸)\n    g\n  end\nend\n", "(a, *b), c = D"),
        ("shell", SHELL_IF, '"-" ]]; then'),
        ("shell", "if a; then\n  b\nfi\n‸\nc\n", 'if d; then "$e"; else $(f); fi'),
        ("csharp", "class A ‸\n{\n}\n", ": B, C"),
        ("kotlin", "package a\n\nimport b.c‸\n\ninterface C {\n}\n", ".*"),
        ("kotlin", "class A {\n    ‸\n\n    interface B {\n    }\n}\n", "var c = d::class"),
        ("rust", "fn f() {\n    a(b).c(‸)\n}\n", "b::<_>::c"),
        ("rust", "fn f() {\n    a(b).c(‸)\n}\n", "(a < b) == (c > d)"),
        ("sql", BODY, "PERFORM public.j('k' || a);"),
        ("sql", BODY, "b := CASE WHEN a = '' THEN 'k' ELSE a END;"),
        ("sql", BODY, "IF a = 'k' THEN RETURN a; END IF;"),
        ("sql", BODY, "FOR b IN SELECT k FROM l LOOP RAISE NOTICE 'm %', b; END LOOP;"),
        ("sql", BODY, "BEGIN NULL; EXCEPTION WHEN OTHERS THEN RAISE; END;"),
        ("sql", BODY, "INSERT INTO k VALUES (a);"),
        ("sql", BODY, "b := substring(a from 1 for 2) || position('k' in a);"),
        ("sql", BODY, "EXECUTE a INTO b USING a, b;"),
        ("sql", BODY, "RAISE EXCEPTION 'k %', a USING ERRCODE = '22023', HINT = a;"),
        ("sql", BODY, "RETURN QUERY EXECUTE a USING b;"),
        ("sql", BODY, "SELECT k, l INTO STRICT a, b FROM m;"),
        ("sql", BODY, "b = EXTRACT(epoch FROM now());"),
        ("sql", BODY, "b := count(*) FROM k;"),
        ("sql", BODY, "CREATE TEMP TABLE k AS SELECT 1;"),
        ("sql", BODY, "RETURN QUERY SELECT * FROM k;"),
        ("sql", BODY, "GET DIAGNOSTICS b = ROW_COUNT;"),
        ("sql", BODY, "-- a comment"),
        ("sql", BODY_CALL, "a, b"),
        ("sql", BODY_CALL, "a[1]"),
        ("sql", BODY_NAMES, "c constant numeric(1, 2) NOT NULL := 1;"),
        ("sql", BODY_NAMES, "c d.e%TYPE;"),
        ("sql", BODY_NAMES, "c timestamp with time zone DEFAULT now();"),
        ("sql", BODY_NAMES, "c CURSOR FOR SELECT 1;"),
        ("sql", HEAD, "a text, VARIADIC b int[] DEFAULT '{}'"),
        ("sql", VIEW, "CREATE VIEW e AS"),
        ("sql", "SELECT a,\n  ‸\n  b\nFROM c;\n", "count(*) FILTER (WHERE d) AS d,"),
        ("json", OBJECT, '"{{ x }}"'),
        ("json", OBJECT.replace("1", "{{ y }}"), "{{ x }}"),
    ],
)
def test_what_is_like_it_and_right_is_offered(language: str, marked: str, text: str) -> None:
    assert filled(language, marked, text) == marked.replace("‸", text)
