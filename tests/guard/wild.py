"""Files from the wild: modern syntax and macros that a grammar does not know, each with its clean twin, and fills.

`@` in a text is where the odd part stands, or the clean one in the twin; `¦` is the cursor.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wild:
    """One text. odd, clean: what stands at its `@` in the text and in its twin."""

    name: str
    language: str
    text: str
    odd: str
    clean: str

    @property
    def source(self) -> str:
        """The text with the odd part."""
        return self.text.replace("@", self.odd)

    @property
    def twin(self) -> str:
        """The text without it."""
        return self.text.replace("@", self.clean)


# Fills of a place that wants statements: those to be shown, and those never to be.
GOOD = {
    "c": ("foo(a);", "int b = a + 1;", "if (a) {\n        foo(a);\n    }", "b->c[0] = (a + 1);"),
    "cpp": ("foo(a);", "auto b = a + 1;", "if (a) {\n        foo(a);\n    }", "std::vector<int> v{1, 2};"),
    "csharp": ("foo(a);", "var b = a + 1;", "if (a) {\n            foo(a);\n        }", "x.Y = z[0];"),
    "go": ("foo(a)", "b := a + 1", "if a > 1 {\n\t\tfoo(a)\n\t}", "x.y = z[0]"),
    "java": ("foo(a);", "int b = a + 1;", "if (a) {\n            foo(a);\n        }", "x.y = z[0];"),
    "javascript": ("foo(a);", "const b = a + 1;", "if (a) {\n    foo(a);\n  }", "x.y = `${z[0]}`;"),
    "typescript": ("foo(a);", "const b: number = a + 1;", "if (a) {\n    foo(a);\n  }", "x.y = `${z[0]}`;"),
    "tsx": ("foo(a);", "const b: number = a + 1;", "if (a) {\n    foo(a);\n  }", "x.y = <b>{z}</b>;"),
    "python": ("foo(a)", "b = a + 1", "if a:\n        foo(a)", "x.y = z[0]"),
    "rust": ("foo(a);", "let b = a + 1;", "if a {\n        foo(a);\n    }", "x.y = z[0];"),
}
_BRACED = (
    *("foo(a;", "foo(a));", "foo(a]);", "if (a {", "if (a) {", "}", "} void g() {", "foo(a); }", "x = [1;"),
    *(
        "foo(a) /* x",
        "foo(a); /* x",
        "/*",
        "*/",
        "foo(a); */",
        'foo("a);',
        'x = "',
        "x = = 1;",
        "a b c d;",
        "foo(a b);",
        "x = ;",
        "x + ;",
    ),
)
BAD = {
    "c": (*_BRACED, "foo(a)", "foo('a);"),
    "cpp": (*_BRACED, "foo(a)", "foo('a);", 'x = R"(a";'),
    "csharp": (*_BRACED, "foo(a)", "foo('a);", 'x = """a";', 'x = $"{a";'),
    "go": ("foo(a", "foo(a))", "foo(a])", "if a {", "}", "} func g() {", "x = [1", "foo(a) /* x", "/*", "*/", 'foo("a)',
           'x = "', "x = = 1", "a b c d", "foo(a b)", "x = ", "x = `a"),
    "java": (*_BRACED, "foo(a)", "foo('a);", 'x = """a";'),
    "javascript": (*_BRACED, "foo('a);", "x = `a", "x = `${a`;"),
    "typescript": (*_BRACED, "foo('a);", "x = `a", "x = `${a`;"),
    "tsx": (*_BRACED, "foo('a);", "x = `a", "x = `${a`;", "x = <b>a;"),
    "python": ("foo(a", "foo(a))", "foo(a])", "if a", "if a:", "x = [1", 'foo("a)', 'x = """a', "x = = 1", "a b c d",
               "foo(a b)", "x = ", "x + "),
    "rust": (*_BRACED, "foo(a) bar(b)", 'x = r#"a";'),
}  # fmt: skip


def _in(language: str, text: str, *cases: tuple[str, str, str]) -> tuple[Wild, ...]:
    return tuple(Wild(name, language, text, odd, clean) for name, odd, clean in cases)


_C = "static int f(int a)\n{\n    @\n    ¦\n    return a;\n}\n\nint g(void)\n{\n    return 1;\n}\n"
_CPP = "int f(int a) {\n    @\n    ¦\n    return a;\n}\n\nint g() {\n    return 1;\n}\n"
_CSHARP = (
    "class A {\n    void F(A? a) {\n        @\n        ¦\n    }\n\n    void G() {\n        H();\n    }\n}\n"
)
_GO = "package p\n\nfunc f(a int) {\n\t@\n\t¦\n}\n\nfunc g() int {\n\treturn 1\n}\n"
_JAVA = "class A {\n    int f(int a) {\n        @\n        ¦\n        return a;\n    }\n\n    void g() {\n    }\n}\n"
_JS = "function f(a) {\n  @\n  ¦\n}\n\nfunction g() {\n  return 1;\n}\n"
_TS = "function f(a: number): void {\n  @\n  ¦\n}\n\nfunction g(): number {\n  return 1;\n}\n"
_PYTHON = "def f(a):\n    @\n    ¦\n    return a\n\n\ndef g():\n    return 1\n"
_RUST = "fn f(a: u32) {\n    @\n    ¦\n}\n\nfn g() -> u32 {\n    1\n}\n"

WILD = (
    # C
    Wild("an export", "c", "@int f(int a) {\n    foo(a);\n    ¦\n    return a;\n}\n", "EXPORT ", ""),
    Wild("a calling convention", "c", "DWORD @f(void *a) {\n    foo(a);\n    ¦\n    return 0;\n}\n", "WINAPI ", ""),
    Wild("a deprecation", "c", '@static int f(int a) {\n    foo(a);\n    ¦\n}\n', 'API_DEPRECATED("use g") ', ""),
    Wild("a kernel's loop", "c", "void f(struct list *a) {\n    @ {\n        foo(a);\n        ¦\n    }\n}\n",
         "list_for_each_entry(pos, &a->head, node)", "while (next(pos, &a->head))"),
    Wild("two heads", "c", "@ {\n    foo(a);\n    ¦\n    return 1;\n}\n",
         "#ifdef WIDE\nint f(long a)\n#else\nint f(int a)\n#endif\n", "int f(int a)"),
    Wild("two heads with braces", "c", "@\n    foo(a);\n    ¦\n    return 1;\n}\n",
         "#ifdef WIDE\nint f(long a) {\n#else\nint f(int a) {\n#endif", "int f(int a) {"),
    *_in("c", _C,
         ("a block", "run(^{ foo(a); });", "run(a);"),
         ("a type of nobody", "foo bar baz = a;", "foo baz = a;"),
         ("an operator of nobody", "a <=> b;", "a <= b;"),
         ("an unknown statement macro", "WITH_LOCK(a) foo(a) END_LOCK", "foo(a);")),
    # C++
    Wild("an exported class", "cpp", "class @Foo : public Bar {\npublic:\n    int f(int a) {\n        foo(a);\n"
         "        ¦\n    }\n    int b() const override { return 2; }\n};\n", "API_EXPORT ", ""),
    Wild("an exported struct", "cpp", "struct @X : Y {\n    int f(int a) {\n        foo(a);\n        ¦\n    }\n};\n",
         "Q_DECL_EXPORT ", ""),
    Wild("a final class", "cpp", "class @Foo final : public Bar {\n    int f(int a) {\n        ¦\n    }\n};\n",
         "Q_CORE_EXPORT ", ""),
    Wild("properties", "cpp", "class A : public QObject {\n    @\npublic:\n    int f(int a) {\n        foo(a);\n"
         "        ¦\n    }\n};\n",
         "Q_OBJECT\n    Q_PROPERTY(int a READ a WRITE setA)", "int a_;"),
    Wild("a loop", "cpp", "void f(int a) {\n    @ {\n        foo(a);\n        ¦\n    }\n}\n",
         "foreach (const QString &x, list)", "for (const QString &x : list)"),
    *_in("cpp", _CPP,
         ("a reflection", "auto t = ^^int;", "auto t = 1;"),
         ("a pack", "auto t = ts...[0];", "auto t = ts[0];"),
         ("a contract", "contract_assert (a > 0) or die;", "contract_assert(a > 0);"),
         ("an expansion", "template for (auto x : xs) { foo(x); }", "for (auto x : xs) { foo(x); }"),
         ("a match", "int y = a match { 0 => 1; _ => 2; };", "int y = a;")),
    # C#
    *_in("csharp", _CSHARP,
         ("a conditional assignment", "a?.B = 1;", "a.B = 1;"),
         ("a conditional sum", "a?.B?.C += 1;", "a.B.C += 1;"),
         ("a conditional element", "a?[0] = 1;", "a[0] = 1;"),
         ("a raw string", 'var s = $@"""{p}""";', 'var s = $"{p}";'),
         ("a modifier without a type", "P p = (text, out r) => T(text, out r);", "P p = (text, r) => T(text, r);"),
         ("a union", "var u = union { a, b };", "var u = new { a, b };")),
    Wild("an extension", "csharp", "static class E {\n    @\n    static void F(A a) {\n        foo(a);\n"
         "        ¦\n    }\n}\n",
         "extension(string s) { public int N => s.Length; }", "static int N(string s) => s.Length;"),
    # Go
    *_in("go", _GO,
         ("a question", "b := open(a)?", "b := open(a)"),
         ("a try", "b := try open(a)", "b := open(a)"),
         ("an arrow", "b := x -> x + 1", "b := x - x + 1"),
         ("a template", "{{ .Field }} := a", "Field := a"),
         ("a ternary", "b := a > 1 ? a : 2", "b := a"),
         ("an optional chain", "b := a?.c", "b := a.c")),
    # Java
    *_in("java", _JAVA,
         ("a template", 'var s = STR."\\{a} is" + RAW."\\{b}"."c";', 'var s = "is" + "c";'),
         ("a wither", "var p = q with { x = a; };", "var p = q;"),
         ("a null check", "String! s = t!;", "String s = t;"),
         ("an elvis", "var s = t ?: u;", "var s = t;"),
         ("a safe call", "t?.u();", "t.u();"),
         ("a list", "List<Integer> l = [1, 2];", "List<Integer> l = of(1, 2);")),
    # JavaScript
    *_in("javascript", _JS,
         ("a pipeline", "const b = a |> double(%);", "const b = double(a);"),
         ("a partial call", "const b = double(?, 1);", "const b = double(1);"),
         ("a record", "const b = #{ a: 1 };", "const b = { a: 1 };"),
         ("a do", "const b = do { if (a) 1; else 2; };", "const b = a;"),
         ("a match", "match (a) { when 1: foo(a); }", "switch (a) { case 1: foo(a); }")),
    Wild("a template", "javascript", "function @(a) {\n  foo(a);\n  ¦\n}\n", "{{ name }}", "name"),
    # TypeScript
    *_in("typescript", _TS,
         ("a pipeline", "const b = a |> double(%);", "const b = double(a);"),
         ("a deferred import", "const b = import.defer ('x');", "const b = import('x');"),
         ("a throw", "const b = a ?? throw new E();", "const b = a ?? new E();"),
         ("a do", "const b = do { if (a) 1; else 2; };", "const b = a;"),
         ("a record", "const b = #{ a: 1 };", "const b = { a: 1 };"),
         ("a cast of nobody", "const b = a as? number;", "const b = a as number;")),
    # TSX
    *_in("tsx", _TS,
         ("a pipeline", "const b = a |> double(%);", "const b = double(a);"),
         ("a record", "const b = #{ a: 1 };", "const b = { a: 1 };"),
         ("an attribute of nobody", "const b = <p #ref on:click={foo}>x</p>;", "const b = <p on:click={foo}>x</p>;"),
         ("a shorthand", "const b = <p {a}>x</p>;", "const b = <p a={a}>x</p>;"),
         ("a block of nobody", "const b = <p>{#if a}x{/if}</p>;", "const b = <p>{a}</p>;"),
         ("a throw", "const b = a ?? throw new E();", "const b = a ?? new E();")),
    # Python
    *_in("python", _PYTHON,
         ("a question", "b = a?.c", "b = a.c"),
         ("a coalescence", "b = a ?? c", "b = a or c"),
         ("a lazy import", "lazy import c", "import c"),
         ("a magic", "!ls -l", "ls(-1)"),
         ("a definition of Cython", "cdef int b = 0", "b = 0"),
         ("a template", "b = {{ cookiecutter.name }}.{% x %}", "b = name")),
    # Rust
    *_in("rust", _RUST,
         ("a yeet", "do yeet a;", "return a;"),
         ("an is", "let b = a is Some(x) && x > 1;", "let b = a && x > 1;"),
         ("a super let", "super let b = a;", "let b = a;"),
         ("a pipeline", "let b = a |> double;", "let b = a | double;"),
         ("a block of a generator", "let b = iter! { yield a; } |x| x;", "let b = a;"),
         ("a default argument", "foo(a: 1);", "foo(1);")),
)  # fmt: skip
