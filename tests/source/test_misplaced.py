"""Statements where the language has none: the grammars take them, and compilers refuse the file."""

import pytest

from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import Fill
from dg_lsp.source.document import Document

BRACES = (
    "return 1;",
    "x.y();",
    "if (a) { b(); }",
    "for (;;) { b(); }",
    "while (a) { b(); }",
    "break;",
    "{ b(); }",
)
JAVA = (*BRACES, "x = 1;", "x();", "throw x;", "try { b(); } catch (E e) { }", "int x = 1;", "void x() { }")
CPP = (*BRACES, "x = 1;", "x();", "throw x;", "new X();", "try { b(); } catch (E e) { }", "1;", "delete x;")
GO = (
    "return 1",
    "x = 1",
    "x := 1",
    "x()",
    "x++",
    "if a { b() }",
    "for { b() }",
    "break",
    "defer b()",
    "go b()",
    "{ b() }",
)
RUST = (
    "return 1;",
    "x = 1;",
    "x();",
    "if a { b(); }",
    "loop { b(); }",
    "break;",
    "let a = 1;",
    "{ b(); }",
    ";",
)
KOTLIN = (
    "return 1",
    "x = 1",
    "x()",
    "if (a) { b() }",
    "for (a in b) { c() }",
    "break",
    "throw x",
    '"abc"',
    "x++",
)
SWIFT = (
    "return",
    "x = 1",
    "x()",
    "if a { b() }",
    "for a in b { c() }",
    "break",
    "throw x",
    "guard a else { return }",
)
SCALA = ("return 1", "x = 1", "x()", "if (a) { b() }", "throw x", "{ b() }", "1")
CASES = {
    "go, between functions": ("go", "package p\n\nfunc f() {\n}\n\n|\n\nfunc g() {\n}\n", GO),
    "go, before the package": ("go", "|\npackage p\n\nfunc f() {\n}\n", GO),
    "go, before the imports": ("go", 'package p\n\n|\n\nimport "a"\n', GO),
    "go, at the end": ("go", "package p\n\nfunc f() {\n}\n\n|\n", GO),
    "go, no loop": (
        "go",
        "package p\n\nfunc f() {\n\ta()\n\t|\n\tb()\n}\n",
        ("break", "continue", "if a { break }"),
    ),
    "java, between classes": ("java", "class A {\n}\n\n|\n\nclass B {\n}\n", JAVA),
    "java, before the package": ("java", "|\npackage p;\n\nclass A {\n}\n", JAVA),
    "java, at the end": ("java", "class A {\n}\n\n|\n", JAVA),
    "java, in a class": ("java", "class A {\n    int a;\n\n    |\n}\n", ("assert x;", "goto x;", "yield x;")),
    "java, in a record": ("java", "record A(int a) {\n    |\n}\n", ("{ b(); }",)),
    "java, no loop": (
        "java",
        "class A {\n    void f() {\n        a();\n        |\n    }\n}\n",
        ("break;", "continue;"),
    ),
    "c, between functions": (
        "c",
        "void f(void) {\n}\n\n|\n\nvoid g(void) {\n}\n",
        (*BRACES, "x = 1;", "x();", "x++;"),
    ),
    "c, in the guard of a header": (
        "c",
        "#ifndef A\n#define A\n#ifdef B\n\n|\n\n#endif\nvoid f(void);\n#include <a.h>\n#endif\n",
        ("return 1;", "break;", "x = 1;"),
    ),
    "c, no loop and no switch": (
        "c",
        "void f(void) {\n    a();\n    |\n    b();\n}\n",
        ("break;", "continue;", "case 1:", "default:", "if (a) break;"),
    ),
    "cpp, between functions": ("cpp", "void f() {\n}\n\n|\n\nvoid g() {\n}\n", CPP),
    "cpp, in a namespace": ("cpp", "namespace n {\n\nvoid f() {\n}\n\n|\n\n}\n", CPP),
    "cpp, in a class": (
        "cpp",
        "class A {\n    int a;\n\n    |\n\n    void f() {\n    }\n};\n",
        ("x();", "x(a);", "if (a) { b(); }", "throw x;", "new X();"),
    ),
    "cpp, no loop": ("cpp", "void f() {\n    a([] {\n        |\n    });\n}\n", ("break;", "continue;")),
    "csharp, below a class": ("csharp", "class A\n{\n}\n\n|\n", (*BRACES, "x = 1;", "x();", "int x = 1;")),
    "csharp, in a namespace": (
        "csharp",
        "namespace N\n{\n    class A\n    {\n    }\n\n    |\n}\n",
        ("x();", "new X();", "int x;"),
    ),
    "csharp, in a class": ("csharp", "class A\n{\n    int a;\n\n    |\n}\n", ("x();", "new X();")),
    "csharp, in an interface": ("csharp", "interface A\n{\n    int B();\n\n    |\n}\n", ("x();", "int x;")),
    "csharp, no loop": (
        "csharp",
        "class A\n{\n    void F()\n    {\n        a();\n        |\n    }\n}\n",
        ("break;", "continue;"),
    ),
    "rust, between functions": ("rust", "fn f() {\n}\n\n|\n\nfn g() {\n}\n", RUST),
    "rust, in an implementation": (
        "rust",
        "impl A {\n    fn f() {\n    }\n\n    |\n}\n",
        ("let a = 1;", ";"),
    ),
    "rust, no loop": (
        "rust",
        "fn f() {\n    a();\n    |\n    b();\n}\n",
        ("break;", "continue;", "a(|| { break; });"),
    ),
    "kotlin, between functions": ("kotlin", "fun f() {\n}\n\n|\n\nfun g() {\n}\n", KOTLIN),
    "kotlin, no loop": (
        "kotlin",
        "fun f() {\n    a()\n    |\n    b()\n}\n",
        ("break", "continue", "else { b() }"),
    ),
    "kotlin, a keyword as a value": ("kotlin", "fun f() {\n    a(|)\n}\n", ("else", "while")),
    "swift, between functions": ("swift", "func f() {\n}\n\n|\n\nfunc g() {\n}\n", SWIFT),
    "scala, between objects": ("scala", "object A {\n}\n\n|\n\nobject B {\n}\n", SCALA),
    "scala, a keyword as a value": (
        "scala",
        "object A {\n  def f() = {\n    a(|)\n  }\n}\n",
        ("else", "catch"),
    ),
    "php, no loop": (
        "php",
        "<?php\nfunction f() {\n    a();\n    |\n    b();\n}\n",
        ("break;", "continue;", "use A;", "const A = 1;"),
    ),
    "php, below nothing but a namespace": ("php", "<?php\n|\nnamespace A;\n\nclass B {}\n", ("break;",)),
    "php, a keyword as an index": ("php", "<?php\n$a = $b[|];\n", ("else", "break")),
    "php, a keyword in a list": ("php", "<?php\n$a = [1, |];\n", ("else", "return")),
    "cpp, a header of macros": ("cpp", "#pragma once\n#define A 1\n|\n#define B 2\n", ("x();", "return 1;")),
    "csharp, above what is of the file": ("csharp", "using A;\n|\n[assembly: B]\n", ("x = 1;", "x();")),
    "csharp, above what is imported": ("csharp", "|\nusing A;\n\nnamespace B {}\n", ("x = 1;", "x();")),
    "csharp, a list in an attribute": (
        "csharp",
        "class A\n{\n    [B(|)]\n    void C();\n}\n",
        ("{1}", "{D.E"),
    ),
    "ruby, a keyword as a parameter": ("ruby", "a = ->(|) { b }\nc\n", ("end", "else")),
    "rust, a keyword as a value": ("rust", "fn f() {\n    a(|);\n}\n", ("else", "in", "b, let")),
    "rust, a keyword as a field": (
        "rust",
        "fn f() {\n    A {\n        b: 1,\n        |\n    }\n}\n",
        ("in", "else"),
    ),
    "typescript, an old number": ("typescript", "const a = f(|);\n", ("00", "1, 017")),
    "go, a mark of order": ("go", "package a\n\nfunc f() {\n\tg(|)\n}\n", ("1\ufeff", '"\ufeff"')),
    "rust, a macro without its semicolon": (
        "rust",
        "fn f() {\n    a();\n    |\n    b!(1);\n}\n",
        ("assert!(a)", "vec![1]"),
    ),
    "typescript, a body of a declaration": (
        "typescript",
        "export declare class A {\n  f(): void;\n  g|\n}\n",
        ("() { b(); }", "(): void {}"),
    ),
    "shell, a bracket that is a letter": (
        "shell",
        "f() {\n  if a; then\n    |\n    b\n  fi\n}\n",
        ("{$c d", "{x"),
    ),
    "ruby, a choice in a block": ("ruby", "a do |s|\n  s.b = 1\n  ‸\n  s.c = 2\nend\n", ("else",)),
    "php, a property without a hook": (
        "php",
        "<?php\nclass A\n{\n    |\n\n    public function b() {}\n}\n",
        ("private $c{",),
    ),
    "yaml, a template that is part of a text": (
        "yaml",
        "a:\n  - b: c ${{ d.e |\n    f: 1\n",
        ("x: *y z", "--- a: b:"),
    ),
    "shell, a choice without a command": (
        "shell",
        "if a; then\n  b\n|\n  c\nfi\n",
        ("elif d; then elif e; then", "elif d; then else"),
    ),
    "php, a keyword as a value": ("php", "<?php\nfunction f() {\n    return |;\n}\n", ("else", "break")),
    "javascript, of a module": (
        "javascript",
        "import a from 'a';\n\n|\n\nfunction f() {\n}\n",
        ("return 1;", "break;", "yield x;", "if (a) { return; }"),
    ),
    "javascript, in a function": (
        "javascript",
        "function f() {\n  a();\n  |\n  b();\n}\n",
        (
            "break;",
            "await x();",
            "yield x;",
            "export default 1;",
            "import a from 'b';",
            "for await (a of b) {}",
        ),
    ),
    "javascript, in a function of a loop": (
        "javascript",
        "for (const a of b) {\n  a(() => {\n    |\n  });\n}\n",
        ("break;", "continue;"),
    ),
    "typescript, in a namespace": (
        "typescript",
        "namespace N {\n  function f() {\n  }\n\n  |\n}\n",
        ("return 1;", "break;", "await x();", "import a from 'b';"),
    ),
    "python, of a module": (
        "python",
        "import a\n\n|\n\ndef f():\n    return 1\n",
        ("return 1", "break", "yield x", "if a: return"),
    ),
    "python, in a class": (
        "python",
        "class A:\n    a = 1\n    |\n    b = 2\n",
        ("return 1", "yield x", "nonlocal x", "await x"),
    ),
    "python, in a function": (
        "python",
        "def f():\n    a()\n    |\n    b()\n",
        ("break", "continue", "await x", "from a import *"),
    ),
    "ruby, in a class": (
        "ruby",
        "class A\n  B = 1\n\n  |\n\n  def f\n  end\nend\n",
        ("return 1", "redo", "next", "yield", "retry", "else"),
    ),
    "ruby, in a method": (
        "ruby",
        "def f\n  a()\n  |\n  b()\nend\n",
        ("redo", "break", "retry", "A = 1", "class A; end", "module B; end"),
    ),
    "ruby, a keyword as a value": (
        "ruby",
        "def f\n  a(|)\nend\n",
        ("else", "end", "redo", "when 1", "rescue"),
    ),
    "swift, no loop": ("swift", "func f() {\n    a()\n    |\n    b()\n}\n", ("break", "continue")),
    "swift, a closure in a loop": (
        "swift",
        "func f() {\n    for a in b {\n        a.each { c in\n            |\n        }\n    }\n}\n",
        ("break", "continue"),
    ),
    "lua, no loop": ("lua", "local function f()\n  a()\n  |\n  b()\nend\n", ("break",)),
    "lua, in a table": ("lua", "local a = {\n  b = 1,\n  |\n}\n", ("return", "break", "else", "end")),
    "lua, a sign that no name holds": ("lua", "local a = |\n", ("$x", "false`b", "a!")),
    "swift, a case outside of a switch": (
        "swift",
        "func f() {\n    a()\n    |\n}\n",
        ("default:", "case 1:"),
    ),
    "kotlin, a second statement": (
        "kotlin",
        "fun f() {\n    return a |\n}\n",
        ("if (b) { c() }", "return c"),
    ),
    "css, a declaration without its end": (
        "css",
        "a {\n  b: c;\n  |\n  d: e;\n}\n",
        ("f: g: h;", "- a: b"),
    ),
    "css, signs of no value": ("css", "a {\n  b: |;\n}\n", ("1rem`c", "c`", "c !important !important", "@c")),
    "css, arguments": ("css", "a {\n  b: c(|) d;\n}\n", ("!important", "!important !important")),
    "css, words and signs of others": (
        "css",
        "a {\n  b: c;\n  |\n}\n",
        ("@else", "d: e\\", "d: <div>e</div>;"),
    ),
    "css, in a keyframe": (
        "css",
        "@keyframes a {\n  10% {\n    |\n  }\n}\n",
        ("@media (a) { b { c: d } }", "b { c: d }"),
    ),
    "css, in a rule": ("css", "a {\n  b: c;\n  |\n}\n", ("@media (a) { b { c: d } }",)),
    "html, in the head": (
        "html",
        "<html>\n<head>\n  <title></title>\n  <meta a>\n  |\n  <link b>\n</head>\n<body>\n</body>\n</html>\n",
        ("return 1;", "<meta a>`b", "{<meta a>", '"""', "<div>a</div>", "<p>a</p>"),
    ),
    "html, below the body": (
        "html",
        "<html>\n<body>\n</body>\n|\n</html>\n",
        ("x", '"""', "return 1;", "<!-- a --> b"),
    ),
    "html, below everything": ("html", "<html>\n<body>\n</body>\n</html>\n|\n", ("x", '"""')),
    "html, in a table": (
        "html",
        "<table>\n  |\n  <tr>\n  </tr>\n</table>\n",
        ("x", "a && b;", "<div>a</div>"),
    ),
    "html, attributes below": (
        "html",
        '<p>\n  |\n    class="a"\n    id="b"\n  />\n</p>\n',
        ('<img class="c"', "<img <img", "<img(a, [", "<i", "<#img"),
    ),
    "html, an element with a dot": ("html", "<p>\n  |\n</p>\n", ("#include <stdio.h>", "<a.b>")),
    "kotlin, no index": ("kotlin", "val a = |\n", ("b[]", "b.c[ ]")),
    "go, no first element": ("go", "package p\n\nvar a = []int{|}\n", (", 1", ",")),
    "ruby, class in a block of code": ("ruby", 'def f\n  a "#{|}"\nend\n', ("class A; end",)),
    "ruby, in a method of a class": (
        "ruby",
        "def self.f\n  |\n  a\nend\n",
        ("class A; end", "module B; end"),
    ),
    "ruby, no value": ("ruby", "a do |b|\n  c = ‸\nend\n", ("break", "next", "d[next]", "redo")),
    "ruby, no element": (
        "ruby",
        "def f\n  a([|])\nend\n",
        ("return 1", "extend A", "b[else], c", "d[rescue]"),
    ),
    "ruby, no parameter": ("ruby", "def f(|)\nend\n", ("break", "if", "self")),
    "ruby, a variable that is called": (
        "ruby",
        "def f\n  |\n  a\nend\n",
        ("@media (a) { b { c: d } }", "a = @b (c) { d }"),
    ),
    "ruby, a block of a text": (
        "ruby",
        "class A\n  |\nend\n",
        ('require "a" { }', "b = C::D {}", '-a.b "c", "d"'),
    ),
    "swift, a word as a value": (
        "swift",
        "func f() {\n    a(b)\n    |\n    c()\n}\n",
        ("catch", "else", "a(else)", "x = default", "a(return .none)", "[var d: Bool = false]"),
    ),
    "swift, halves": (
        "swift",
        "func f() {\n    a(b)\n    |\n    c()\n}\n",
        ("\\", "x = \\", "a(b: 1, c:)", "x = .try a.b()", "#{"),
    ),
    "swift, below a statement": (
        "swift",
        "func f() {\n    switch a {\n    case b:\n        c()\n    |\n}\n",
        ("}(a, [])", "}(a)"),
    ),
    "csharp, a parameter without a name": (
        "csharp",
        "class A\n{\n    void F(|)\n    {\n    }\n}\n",
        ("strin", "int a, b"),
    ),
    "scala, no declaration": ("scala", "class A {\n  type B = C {|}\n}\n", ("x()", "val a: B = c")),
    "shell, no case": ("shell", "if a; then\n  b |\n  c\nfi\n", ("d ;;", ";;")),
    "shell, nothing to do": ("shell", "a\n|\nb\n", ("if c; then\nfi", "if c; then\nelse\n  d\nfi")),
    "shell, half a variable": ("shell", "if a; then\n  b\nfi\n|\nc\n", ("a > $", "a >> $")),
    "shell, text without an end": ("shell", "a\n|\nb\n", ("c <<~A", "c <<A")),
    "yaml, no key": ("yaml", "a:\n  b: 1\n  |\n  d: 2\n", (': "x"', ": :")),
    "typescript, types alone": (
        "typescript",
        "export type A = B;\n|\nexport type C = A;\n",
        ("return 1;", "break;"),
    ),
    "typescript, exports alone": (
        "typescript",
        'export * as A from "./a";\n|\nexport * as B from "./b";\n',
        ("return 1;", "break;"),
    ),
    "sql, no beginning": (
        "sql",
        "ABORT;\n-- one;\n|\nABORT WORK;\nGRANT a ON b TO c;\n",
        ("RETURN 1;", "THEN", "ABOR", "if x then y end", "<<EOF", " WORK;", "<?php echo 1; ?>", "ELSE"),
    ),
    "sql, a part": ("sql", "LOCK TABLE a;\nDROP TABLE |\nLOCK TABLE b;\n", ("a, 1;", "(a);", "(a, WHERE);")),
    "javascript, a value before what is assigned": (
        "javascript",
        "function f() {\n  return !a && b|\n}\n",
        (" = c;", " += c;", " || !d = e;"),
    ),
    "typescript, a constant without its value": (
        "typescript",
        "type A = B;\n|\n\nexport const c = 1;\n",
        ("const d: E", "const d: E<F>;"),
    ),
    "rust, a keyword as a type": ("rust", "impl<A> B for C\nwhere\n    A: |,\n{\n}\n", ("else", "D + in")),
    "kotlin, half an import": (
        "kotlin",
        "package a\n\n|\nimport b.c\n\nclass D\n",
        ("import d.", "import d.e. "),
    ),
    "java, below comments alone": (
        "java",
        "/** a */\n|\n",
        ("x();", "if (a) { b(); }", "package a; package b;"),
    ),
    "c, below comments alone": ("c", "/* a */\n\n|\n", ("return 1;", "break;", "x();")),
    "c, in a header without includes": (
        "c",
        "#ifndef A\n#define A\n\nint f(void);\n|\n\n#endif\n",
        ("break;", "return 1;", "int g(void); #endif", "x; #if B"),
    ),
    "c, a field of no type": (
        "c",
        "struct a {\n    int b;\n    |\n    int c;\n};\n",
        ("passes;", "len; int d;"),
    ),
    "c, a value that takes in the line below": (
        "c",
        "void f(void) {\n    int a |\n    char *b = c, *d = e;\n}\n",
        ("=", "= 1, g ="),
    ),
    "c, a value that takes in a deeper line": (
        "c",
        "void f(void) {\n    int a |\n        char *b = c, *d = e;\n}\n",
        ("=", "= 1, g ="),
    ),
    "php, no value": (
        "php",
        "<?php\nfunction f() {\n    |\n}\n",
        ("return new A($b)[];", "return $a[", "$c = $d[];"),
    ),
    "ruby, two calls without brackets": (
        "ruby",
        "def f\n  a b|\n  c\nend\n",
        (", d e", ", d, e f", ", d raise"),
    ),
    "ruby, a keyword in a list without brackets": ("ruby", "a = |\nb = 1\n", ("else", "rescue, c")),
    "ruby, no exception": ("ruby", "def f\n  a\nrescue |\n  b\nend\n", ("rescue", "A, else")),
    "rust, a keyword that is called": (
        "rust",
        "const A: [B; 2] = [\n    |\n    (1, 2),\n];\n",
        ("(3, 4),\nelse",),
    ),
    "css, behind what is important": (
        "css",
        "a {\n  b: |;\n}\n",
        ("1ms !important 1ms !important", "c !importanturl(x)", "c !important d"),
    ),
    "css, a value with a key": ("css", "a {\n  b: c(1)|\n}\n", ("- d: e", " + d: e")),
    "typescript, a value of a declaration": (
        "typescript",
        "export declare const a|\nexport {};\n",
        (": B = 1;", ": string = 'c';"),
    ),
    "typescript, a function among types": (
        "typescript",
        "interface A {\n  b: |\n  c: d;\n}\n",
        ("B | (x: C) => D;", "B & () => D;", "new () => A | new () => B;"),
    ),
    "typescript, a name twice": (
        "typescript",
        "f({\n  ...a,\n  |\n  b: c,\n});\n",
        ("d, b: e,", "b,", "d,\n  d,", "d: 1, d: 2,", "d, d: 1,"),
    ),
    "tsx, an attribute twice": (
        "tsx",
        "const a = <B c={d} | />;\n",
        ("c={e}", "f={g} f={h}", "c"),
    ),
    "sql, a clause of a statement that is ended": (
        "sql",
        "CREATE FUNCTION a(b)\n RETURNS c\n IMMUTABLE |\nRETURN $2 + $1;\n\nGRANT a ON b TO c;\n",
        ("STRICT RETURN $2 + $1;", "RETURN $2 + $1;", "RETURN 1;"),
    ),
    "sql, a statement that takes in the next one": (
        "sql",
        "ALTER TABLE a ADD UNIQUE USING INDEX b;\n\n|\n\nALTER TABLE c ADD UNIQUE USING INDEX d;\n",
        ("ALTER TABLE e", "ALTER TABLE", "ALTER TABLE ;", "DROP TABLE;"),
    ),
    "sql, no value": ("sql", "LOAD 'a';\nSELECT |\n", ("END;", "ELSE", "a WHERE THEN")),
    "sql, a quote": (
        "sql",
        "ALTER TABLE a ADD UNIQUE USING INDEX b;\n|\nGRANT a ON b TO c;\n",
        ("DROP TABLE a`;", "DROP TABLE `a;"),
    ),
}
RIGHT = {
    "swift, in loops": (
        "swift",
        "func f() {\n    for a in b {\n        |\n    }\n}\n",
        ("break", "continue"),
    ),
    "swift, in a condition of a loop": (
        "swift",
        "func f() {\n    while a {\n        if b {\n            |\n        }\n    }\n}\n",
        ("break", "continue"),
    ),
    "swift, in a switch": (
        "swift",
        "func f() {\n    switch a {\n    case 1:\n        |\n    }\n}\n",
        ("break",),
    ),
    "swift, a labelled block": (
        "swift",
        "func f() {\n    a: do {\n        g()\n        |\n    }\n}\n",
        ("break a",),
    ),
    "javascript, a value that is assigned": (
        "javascript",
        "function f() {\n  return !a && b|\n}\n",
        (" === c;", " && (d = e);", ".map((c) => d = c);"),
    ),
    "typescript, a constant of a declaration of others": (
        "typescript",
        "declare namespace A {\n  |\n  const b: C;\n}\n",
        ("const d: E;",),
    ),
    "kotlin, an import": (
        "kotlin",
        "package a\n\n|\nimport b.c\n\nclass D\n",
        ("import d.*", "import d.e.F"),
    ),
    "java, below comments alone": ("java", "/** a */\n|\n", ("package a;", "class A { }")),
    "java, a text of nothing": ("java", "|\n", ("x();",)),
    "c, in a header without includes": (
        "c",
        "#ifndef A\n#define A\n\nint f(void);\n|\n\n#endif\n",
        ("int g(void);", "#define B 1", "struct c;"),
    ),
    "c, signs of a macro": ("c", "#define A(x) \\\n    f(|)\n", ("#x", "a##x")),
    "c, a field of a macro": (
        "c",
        "struct a {\n    int b;\n    |\n};\n",
        ("HEAD;", "int c;", "struct d;", "b_t *e;"),
    ),
    "c, a product": ("c", "void f(void) {\n    int a = |;\n}\n", ("b * c", "g(b * c)", "(char *) b")),
    "php, the next place of a list": (
        "php",
        "<?php\nfunction f() {\n    |\n}\n",
        ("$a[] = 1;", "return $a[0];", "f($a[]);"),
    ),
    "ruby, calls in calls": (
        "ruby",
        "def f\n  |\n  c\nend\n",
        ("a b, c(d)", "a b c, d", "raise A, b", "a b, c: d", "a b, c.d"),
    ),
    "css, what is important": ("css", "a {\n  b: |;\n}\n", ("c !important", "c !important /* d */")),
    "typescript, a constant of a declaration": (
        "typescript",
        "export declare const a|\nexport {};\n",
        (": B;", " = 1;"),
    ),
    "typescript, a function among types": (
        "typescript",
        "interface A {\n  b: |\n  c: d;\n}\n",
        ("B | ((x: C) => D);", "() => A | B;"),
    ),
    "typescript, names of other objects": (
        "typescript",
        "f({\n  ...a,\n  |\n  b: c,\n});\n",
        ("d,", "d: { b: 1 },", "[b]: e,", "...b,"),
    ),
    "tsx, attributes": ("tsx", "const a = <B c={d} | />;\n", ("e={<F c={g} />}", "{...c}")),
    "sql, statements that are ended": (
        "sql",
        "ALTER TABLE a ADD UNIQUE USING INDEX b;\n\n|\n\nALTER TABLE c ADD UNIQUE USING INDEX d;\n",
        ("DROP TABLE `g`;", "DROP TABLE g; DROP TABLE e;", "CREATE VIEW h AS SELECT 1;"),
    ),
    "sql, a statement that goes on below": ("sql", "|\nSELECT 1;\n", ("CREATE VIEW a AS", "INSERT INTO a")),
    "css, at-rules in rules": (
        "css",
        "a {\n  @media (b) { c: d; }\n}\n\ne {\n  f: g;\n  |\n}\n",
        ("@media (h) { i: j; }",),
    ),
    "css, after what the grammar does not know": (
        "css",
        "@keyframes a {\n  6.5% {\n    |\n  }\n\n  18.5% {\n    b: c;\n  }\n}\n",
        ("b: translateX(-6px) d(-9deg);",),
    ),
    "html, in the head": (
        "html",
        "<html>\n<head>\n  <meta a>\n  |\n  <link b>\n</head>\n<body>\n</body>\n</html>\n",
        (
            "<title>a</title>",
            "{% block head %}",
            "{{ a }}",
            "<!-- b -->",
            "<script>a()</script>",
            "<meta a.b>",
        ),
    ),
    "html, in the body": (
        "html",
        "<html>\n<body>\n  |\n</body>\n</html>\n",
        ("x", "a<br>b", '<a (b)="c" [d]="e" *f="g" @h="i" #j></a>', "<svg><path d='a'/></svg>", "<a-b/>"),
    ),
    "html, attributes of templates": (
        "html",
        "<p>\n  |\n</p>\n",
        ("<a {% if b %}c{% endif %} {% if d %}e{% endif %}></a>",),
    ),
    "kotlin, an index": ("kotlin", "val a = |\n", ("b[c]", "b[c, d]")),
    "ruby, methods with names of words": (
        "ruby",
        "def f\n  |\n  a\nend\n",
        (
            "a.begin",
            "a.end.next",
            "b = a.next",
            "a.class",
            "a { |b| }",
            "a(b) { }",
            "[a(b), c]",
            "return a",
            "A() { }",
            "not a b",
        ),
    ),
    "ruby, a class in a block": ("ruby", "a do\n  |\nend\n", ("class A; end",)),
    "swift, words and paths": (
        "swift",
        "func f() {\n    |\n    c()\n}\n",
        (
            "x = .default",
            "a(for: b, in: c)",
            "a.map(\\.b)",
            "a = \\A.b",
            "let d = [b: c]",
            "defer { a() }",
            "do { try a() } catch { }",
            "b(c:d:)",
        ),
    ),
    "shell": ("shell", "case a in\n  b) |\nesac\n", ("c ;;", ";;")),
    "yaml, a key of its own": ("yaml", "a:\n  |\n", ("b: 1", '"b": 1')),
    "sql": (
        "sql",
        "ABORT;\n|\nGRANT a ON b TO c;\n",
        ("DROP TABLE a;", "-- one", "/* one */", "DROP TABLE b; -- one"),
    ),
    "sql, far from an error": (
        "sql",
        "GRANT a ON b TO c;\nEXPLAIN (COSTS OFF)\n  SELECT 1;\nDROP TABLE |\n\nLOCK TABLE a IN b MODE;\n",
        ("a;",),
    ),
    "sql, in quotes around code": (
        "sql",
        "CREATE FUNCTION a() RETURNS void AS $$\nBEGIN\n  b := 1;\n  |\nEND;\n$$ LANGUAGE plpgsql;\n",
        ("c := 2;",),
    ),
    "css": (
        "css",
        "a {\n  b: c;\n  |\n}\n",
        ("f: g;", "f: url(data:a:b);", "--f: g;", "f: g !important;", "f: 1"),
    ),
    "css, a filter": ("css", "a {\n  filter: |;\n}\n", ("progid:A.B(c=0)", "alpha(opacity=0)", "url('a:b')")),
    "css, a selector": (
        "css",
        "|\n\na {\n  b: c;\n}\n",
        ("a:hover { b: c; }", "a::before { b: c; }", "@media (a: b) { }"),
    ),
    "kotlin, an infix function": ("kotlin", "fun f() {\n    return a |\n}\n", ("to b", "until b", "or b")),
    "go": (
        "go",
        "package p\n\nfunc f() {\n}\n\n|\n\nfunc g() {\n}\n",
        ("var a = 1", "func h() { return }", "type T int"),
    ),
    "go, in a loop": (
        "go",
        "package p\n\nfunc f() {\n\tfor {\n\t\t|\n\t}\n}\n",
        ("break", "continue", "return"),
    ),
    "java": (
        "java",
        "class A {\n    void f() {\n        a();\n        |\n    }\n}\n",
        ("return;", "int x = 1;", "{ b(); }"),
    ),
    "java, below a class": ("java", "class A {\n}\n\n|\n", ("class B { }", "interface C { int d(); }")),
    "c": (
        "c",
        "void f(void) {\n}\n\n|\n\nvoid g(void) {\n}\n",
        ("int a = 1;", "MODULE(a);", "module_init(f);", "void h(void) { return; }"),
    ),
    "c, a loop by a macro": (
        "c",
        "void f(void) {\n    EACH(a) {\n        |\n    }\n}\n",
        ("break;", "continue;", "return;"),
    ),
    "cpp": (
        "cpp",
        "class A {\n    int a;\n\n    |\n};\n",
        ("A();", "~A();", "int x();", "A(int b) : a(b) {}"),
    ),
    "cpp, a test by a macro": (
        "cpp",
        "#include <a>\n\n|\n",
        ("TEST(a, b) { return; }", "BENCHMARK(a);", "namespace n { }"),
    ),
    "csharp, above a class": ("csharp", "using A;\n\n|\n\nclass B\n{\n}\n", ("x();", "int x = 1;")),
    "csharp, in a class": (
        "csharp",
        "class A\n{\n    int a;\n\n    |\n}\n",
        ("A() { }", "~A() { }", "void F() { return; }"),
    ),
    "rust": (
        "rust",
        "fn f() {\n}\n\n|\n\nfn g() {\n}\n",
        ("const A: u8 = { 1 };", "x!();", "x!{}", "a::b!(c);", "fn h() { return; }"),
    ),
    "rust, a loop": ("rust", "fn f() {\n    loop {\n        |\n    }\n}\n", ("break;", "if a { continue; }")),
    "kotlin": ("kotlin", "fun f() {\n}\n\n|\n", ("val a = 1", "fun g() { return }", "class B")),
    "kotlin, a loop": (
        "kotlin",
        "fun f() {\n    for (a in b) {\n        |\n    }\n}\n",
        ("break", "continue", "if (a) break else c()"),
    ),
    "swift": ("swift", "func f() {\n}\n\n|\n", ("let a = 1", "func g() { return }", "struct B { }")),
    "javascript, asynchronous": (
        "javascript",
        "async function f() {\n  a();\n  |\n  b();\n}\n",
        ("await x();", "for await (const a of b) { break; }", "return;"),
    ),
    "javascript, a generator": (
        "javascript",
        "const a = { *f() {\n  a();\n  |\n  b();\n} };\n",
        ("yield x;", "yield* x;"),
    ),
    "typescript": (
        "typescript",
        "namespace N {\n  function f() {\n  }\n\n  |\n}\n",
        ("export const a = 1;", "export function g() { return; }"),
    ),
    "python": (
        "python",
        "async def f():\n    a()\n    |\n    b()\n",
        ("await x", "return", "yield x", "for a in b: break"),
    ),
    "python, a cell": ("python", "import a\n\n|\n", ("await x", "x = [a for a in b]")),
    "ruby": (
        "ruby",
        "class A\n  |\nend\n",
        ("B = 1", "x.each { |a| next }", "def f; yield; end", "return_type :a"),
    ),
    "ruby, in a method": (
        "ruby",
        "def f\n  a()\n  |\nrescue\n  b()\nend\n",
        ("return 1", "x.each { break }", "if a then b else c end"),
    ),
    "lua": ("lua", "local function f()\n  while a do\n    |\n  end\nend\n", ("break", "return")),
    "ruby, a choice below what failed": ("ruby", "a do |s|\n  b\nrescue C\n  d\n‸\n  e\nend\n", ("else",)),
    "shell, a group": ("shell", "f() {\n  |\n  b\n}\n", ("{ c; }",)),
    "php, a hook": (
        "php",
        "<?php\nclass A\n{\n    |\n\n    public function b() {}\n}\n",
        ("private $c { get => 1; }",),
    ),
    "yaml, a text with a template": (
        "yaml",
        "a: >-\n  {{ b }}\nc: ${{ d }}\n|\nf: 1\n",
        ("e: {{ b }}", "e: ${{ b }}"),
    ),
    "php, an index and a list": ("php", "<?php\n$a = [B, $c[|]];\n", ("D", "$d")),
    "rust, the last macro of a block": (
        "rust",
        "fn f() {\n    a();\n    |\n    // b\n}\n",
        ("c!(1)", "c!{}"),
    ),
    "typescript, a declaration": (
        "typescript",
        "export declare class A {\n  f(): void;\n  g|\n}\n",
        ("(): void;", ": number;"),
    ),
    "csharp, a program": ("csharp", "using A;\n[assembly: B]\n|\n", ("x();",)),
    "php": ("php", "<?php\nforeach ($a as $b) {\n    |\n}\n", ("break;", "continue;")),
    # What holds such statements already, or nothing else, is a part of a file or another dialect.
    "go, a snippet": ("go", "a := 1\n|\n", ("b := 2", "return a", "if a { b() }")),
    "go, a snippet with a function": ("go", "func f() {\n}\n\nf()\n|\n", ("f()", "g()")),
    "kotlin, a script": ("kotlin", "fun f() {\n}\n\nf()\n|\n", ("g()", "if (a) { b() }")),
    "rust, a snippet": ("rust", "let a = 1;\n|\n", ("let b = 2;", "f(a);")),
    "java, a snippet": ("java", "int a = 1;\n|\n", ("int b = 2;",)),
}


def _offered(language: str, text: str, fill: str) -> bool:
    before, after = text.split("‸" if "‸" in text else "|", 1)
    document = Document(f"file:///a.{language}", language, 1, (before + after).encode())
    return finish(document, find_gap(document, len(before.encode())), Fill(fill)).edit is not None


@pytest.mark.parametrize("name", CASES)
def test_a_statement_is_refused_where_the_language_has_none(name: str) -> None:
    language, text, fills = CASES[name]
    assert [fill for fill in fills if _offered(language, text, fill)] == []


@pytest.mark.parametrize("name", RIGHT)
def test_a_statement_is_offered_where_it_may_be(name: str) -> None:
    language, text, fills = RIGHT[name]
    assert [fill for fill in fills if not _offered(language, text, fill)] == []
