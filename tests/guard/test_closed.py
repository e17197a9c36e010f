"""Lines as an editor closes their brackets: the same gap and the same fill as without what it has put there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import find_gap
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.messages import Fill, Wanted
from dg_lsp.source.document import Document
from tests.guard.test_neighbours import filled as filled_at_mark

# What is above and below a line that is being typed in a body, and between functions or members.
BODY = {
    "python": (
        "def first(a, b):\n    c = 1\n    ",
        "\n    return c\n",
    ),
    "javascript": (
        "function first(a, b) {\n  let c = 1;\n  ",
        "\n  return c;\n}\n",
    ),
    "typescript": (
        "function first(a: A, b: B) {\n  let c = 1;\n  ",
        "\n  return c;\n}\n",
    ),
    "tsx": (
        "function first(a: A, b: B) {\n  let c = 1;\n  ",
        "\n  return <b>{c}</b>;\n}\n",
    ),
    "java": (
        "class A {\n  int first(int a) {\n    int c = 1;\n    ",
        "\n    return c;\n  }\n}\n",
    ),
    "csharp": (
        "class A\n{\n    int First(int a)\n    {\n        int c = 1;\n        ",
        "\n        return c;\n    }\n}\n",
    ),
    "go": (
        "package p\n\nfunc first(a int) int {\n\tc := 1\n\t",
        "\n\treturn c\n}\n",
    ),
    "rust": (
        "fn first(a: i32) -> i32 {\n    let c = 1;\n    ",
        "\n    c\n}\n",
    ),
    "c": (
        "int first(int a) {\n  int c = 1;\n  ",
        "\n  return c;\n}\n",
    ),
    "cpp": (
        "int first(int a) {\n  int c = 1;\n  ",
        "\n  return c;\n}\n",
    ),
}
TOP = {
    "python": (
        "def first(a, b):\n    return a\n\n\n",
        "\n\n\ndef last(a):\n    return a\n",
    ),
    "javascript": (
        "function first(a) {\n  return a;\n}\n\n",
        "\n\nfunction last(a) {\n  return a;\n}\n",
    ),
    "typescript": (
        "function first(a: A) {\n  return a;\n}\n\n",
        "\n\nfunction last(a: A) {\n  return a;\n}\n",
    ),
    "tsx": (
        "function first(a: A) {\n  return <b/>;\n}\n\n",
        "\n\nfunction last(a: A) {\n  return <b>{a}</b>;\n}\n",
    ),
    "java": (
        "class A {\n  int first(int a) {\n    return a;\n  }\n\n  ",
        "\n\n  int last(int a) {\n    return a;\n  }\n}\n",
    ),
    "csharp": (
        "class A\n{\n    int First(int a)\n    {\n        return a;\n    }\n\n    ",
        "\n\n    int Last(int a)\n    {\n        return a;\n    }\n}\n",
    ),
    "go": (
        "package p\n\nfunc first(a int) int {\n\treturn a\n}\n\n",
        "\n\nfunc last(a int) int {\n\treturn a\n}\n",
    ),
    "rust": (
        "fn first(a: i32) -> i32 {\n    a\n}\n\n",
        "\n\nfn last(a: i32) -> i32 {\n    a\n}\n",
    ),
    "c": (
        "int first(int a) {\n  return a;\n}\n\n",
        "\n\nint last(int a) {\n  return a;\n}\n",
    ),
    "cpp": (
        "int first(int a) {\n  return a;\n}\n\n",
        "\n\nint last(int a) {\n  return a;\n}\n",
    ),
}
# Lines as they are to become: typed up to ⟦, missing up to ⟧, closed by the editor behind it.
IN_BODY = {
    "python": r"""
        if first(⟦a, b⟧)
        if first([1], ⟦b⟧)
        for value in sorted(⟦a⟧)
        while first([⟦a⟧])
        with open(⟦a⟧)
        elif first(⟦a⟧)
        x = [⟦a, b⟧]
        x = {⟦'a': b⟧}
        x = f(a[⟦b⟧])
        x = f"{⟦a⟧}"
        print(f"b {a[⟦0⟧]}")
        if c['⟦key⟧']
        def inner(⟦d, e⟧)
        print('⟦text⟧')
        return first(⟦a, c⟧)
        match first(⟦a, c⟧)
        async with open(⟦a⟧)
        assert first(⟦a, c⟧)
        lambda: first(⟦a, c⟧)
        raise ValueError(⟦a⟧)
        except (⟦A, B⟧)
    """,
    "javascript": r"""
        if (⟦a⟧)
        while (⟦a > b⟧)
        for (⟦const x of a⟧)
        switch (⟦a⟧)
        first(⟦a, b⟧)
        const x = [⟦a, b⟧]
        const x = {⟦ a: b ⟧}
        f(a[⟦0⟧])
        return first(⟦a, b⟧)
        f("⟦text⟧")
        f('⟦text⟧')
        f(`⟦text⟧`)
        f(`a${⟦b⟧}`)
        a.map((⟦x⟧))
        f({⟦ a: b ⟧})
        throw new Error(⟦a⟧)
    """,
    "java": r"""
        if (⟦a > c⟧)
        while (⟦a > c⟧)
        for (⟦int i = 0; i < a; i++⟧)
        switch (⟦a⟧)
        first(⟦a⟧)
        int d = first(⟦a⟧)
        f(a[⟦0⟧])
        f("⟦text⟧")
        return first(⟦a⟧)
        int[] d = {⟦1, 2⟧}
        List<⟦String⟧>
        throw new E(⟦a⟧)
        for (int d : first(⟦a⟧))
        synchronized (⟦this⟧)
    """,
    "csharp": r"""
        if (⟦a > c⟧)
        while (⟦a > c⟧)
        foreach (⟦var d in a⟧)
        switch (⟦a⟧)
        First(⟦a⟧)
        var d = First(⟦a⟧)
        F(a[⟦0⟧])
        F("⟦text⟧")
        F($"{⟦a⟧}")
        return First(⟦a⟧)
        int[] d = {⟦1, 2⟧}
        throw new E(⟦a⟧)
        using (⟦var d = F(a)⟧)
        lock (⟦this⟧)
    """,
    "go": r"""
        if first(⟦a⟧)
        if x := first(⟦a⟧)
        for _, d := range first(⟦a⟧)
        switch first(⟦a⟧)
        first(⟦a⟧)
        d := first(⟦a⟧)
        d := []int{⟦1, 2⟧}
        f("⟦text⟧")
        f(a[⟦0⟧])
        defer f(⟦a⟧)
        return first(⟦a⟧)
    """,
    "rust": r"""
        if first(⟦a⟧)
        match first(⟦a⟧)
        while first(⟦a⟧)
        for d in first(⟦a⟧)
        first(⟦a⟧)
        let d = first(⟦a⟧)
        let d = [⟦1, 2⟧]
        f("⟦text⟧")
        f(a[⟦0⟧])
        return first(⟦a⟧)
        let d: Vec<⟦i32⟧>
        println!(⟦"{}", a⟧)
        if let Some(⟦d⟧)
        let d = D { ⟦a: c ⟧}
    """,
    "c": r"""
        if (⟦a > c⟧)
        while (⟦a > c⟧)
        for (⟦int i = 0; i < a; i++⟧)
        switch (⟦a⟧)
        first(⟦a⟧)
        int d = first(⟦a⟧)
        int d[] = {⟦1, 2⟧}
        f("⟦text⟧")
        f(g[⟦0⟧])
        return first(⟦a⟧)
    """,
}
AT_TOP = {
    "python": r"""
        def second(⟦a: A, b=1⟧)
        def second(a: ⟦list[int]⟧)
        class Fourth(⟦Base⟧)
        async def second(⟦a⟧)
        @deco(⟦a⟧)
        def second(a) -> list[⟦int⟧]
        def second(a: dict[⟦str, int⟧])
    """,
    "javascript": r"""
        function second(⟦a, b⟧)
        const second = (⟦a, b⟧)
        class B extends f(⟦C⟧)
        export function second(⟦a, b⟧)
        async function second(⟦a, b⟧)
    """,
    "typescript": r"""
        function second(⟦a: A, b: B⟧)
        function second(a: ⟦A⟧)
        class B extends C<⟦D⟧>
        export const second = (⟦a: A⟧)
        type B = C<⟦D⟧>
        interface B extends C<⟦D⟧>
    """,
    "java": r"""
        void second(⟦int a, int b⟧)
        List<⟦String⟧>
        @B(⟦1⟧)
        int d = first(⟦1⟧)
        private Map<String, ⟦String⟧>
        static class C extends D<⟦E⟧>
    """,
    "csharp": r"""
        void Second(⟦int a, int b⟧)
        [B(⟦1⟧)]
        int d = F(⟦1⟧)
        class C : D<⟦E⟧>
    """,
    "go": r"""
        func second(⟦a int⟧)
        var d = first(⟦1⟧)
        func (⟦b B⟧)
    """,
    "rust": r"""
        fn second(⟦a: i32⟧)
        impl Foo<⟦T⟧>
        #[derive(⟦Debug⟧)]
        struct D(⟦i32⟧)
        fn second(a: Vec<⟦i32⟧>)
        static D: [⟦i32; 2⟧]
    """,
    "c": r"""
        int second(⟦int a, int b⟧)
        static void second(⟦int a⟧)
        int d[] = {⟦1, 2⟧}
        #include "⟦a.h⟧"
    """,
    "cpp": r"""
        int second(⟦int a, int b⟧)
        template <⟦typename T⟧>
        class D : public E<⟦int⟧>
        std::vector<⟦int⟧>
    """,
}
IN_BODY |= {"typescript": IN_BODY["javascript"], "cpp": IN_BODY["c"]}
IN_BODY["tsx"] = (
    IN_BODY["javascript"]
    + """
        const x = <div className={⟦a⟧}
        const x = <a b={f(⟦c⟧)}
        const x = <a>{⟦c⟧}</a>
        const x = <a b={⟦c⟧}></a>
    """
)
AT_TOP |= {"tsx": AT_TOP["typescript"]}


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is being typed in its surroundings."""

    language: str
    around: tuple[str, str]
    typed: str
    closers: str
    missing: str

    def __str__(self) -> str:
        place = "top" if self.around == TOP[self.language] else "body"
        return f"{self.language} {place} {self.typed}|{self.closers}"


def lines_of(lines: dict[str, str], around: dict[str, tuple[str, str]]) -> Iterator[Line]:
    """The lines of one of the tables."""
    for language, own in lines.items():
        for line in filter(None, map(str.strip, own.split("\n"))):
            typed, missing, closers = re.split("[⟦⟧]", line)
            yield Line(language, around[language], typed, closers, missing)


LINES = [*lines_of(IN_BODY, BODY), *lines_of(AT_TOP, TOP)]


def filled(line: Line, closers: str, text: str) -> tuple[str, str]:
    """The gap's kind, and what is on the line then, or in angle brackets why nothing is."""
    above, below = line.around
    before = above + line.typed
    document = Document("file:///m", line.language, 0, (before + closers + below).encode())
    gap = find_gap(document, len(before.encode()))
    outcome = finish(document, gap, Fill(text))
    if outcome.edit is None:
        return gap.kind, f"<{outcome.why}>"
    return gap.kind, apply_edit(document, outcome.edit).text[len(above) :].removesuffix(below)


INCOMPLETE = {
    "typescript top interface B extends C<|>",
    "java top List<|>",
    "java top private Map<String, |>",
    "java top static class C extends D<|>",
    "cpp top class D : public E<|>",
    "tsx top interface B extends C<|>",
}


@pytest.mark.parametrize("line", LINES, ids=str)
def test_what_the_editor_has_closed_does_not_forbid_the_fill(line: Line) -> None:
    whole = line.typed + line.missing + line.closers
    typed, closed = (filled(line, closers, line.missing) for closers in ("", line.closers))
    assert closed[1] == whole
    # The text alone completes few lines that begin a list of types or an element, or continue a statement above.
    is_offered = not typed[1].startswith("<the fill")
    assert is_offered != (str(line) in INCOMPLETE)
    assert not is_offered or typed[1].replace(" ", "").startswith(
        whole.removesuffix("</a>").rstrip(">").replace(" ", "")
    )


@pytest.mark.parametrize("line", LINES, ids=str)
def test_no_bracket_stands_twice(line: Line) -> None:
    # After a brace another one may be opened by right.
    for end in ("", ":", ";", *((" {",) if "}" not in line.closers else ())):
        shown = filled(line, line.closers, line.missing + line.closers + end)[1]
        assert shown == line.typed + line.missing + line.closers


RETURNS = {
    "python": ("def second(a) -> ", ("int", "int:", "dict[str, int]:", '"A":')),
    "typescript": ("function second(a): ", ("string", "string {")),
    "rust": ("fn second(a: A) -> ", ("usize",)),
}


@pytest.mark.parametrize("language", RETURNS)
def test_a_header_without_its_body_is_no_error(language: str) -> None:
    typed, texts = RETURNS[language]
    for text in texts:
        line = Line(language, TOP[language], typed, "", text)
        assert filled(line, "", text)[1].startswith(typed + text)


@pytest.mark.parametrize("text", ["int int:", "a = 1", "]"])
def test_a_return_type_with_an_error_is_refused(text: str) -> None:
    assert "syntax error" in filled(Line("python", TOP["python"], "def second(a) -> ", "", text), "", text)[1]


def test_a_class_gets_its_bases() -> None:
    for around in (BODY, TOP):
        line = Line("python", around["python"], "class Fourth(", "", "Base")
        assert filled(line, "", "Base):") == ("rest_of_line", "class Fourth(Base):")


@pytest.mark.parametrize(
    ("owner", "typed", "text", "shown"),
    [
        ("impl A", "pub fn len(&self) -> ", "usize", "pub fn len(&self) -> usize"),
        ("impl A", "pub fn len(&self) -> ", "usize {", "pub fn len(&self) -> usize {\n    }"),
        ("impl A", "fn add(&mut self, word: ", "&str) {", "fn add(&mut self, word: &str) {\n    }"),
        ("impl B for A", "fn len(&self) -> ", "usize", "fn len(&self) -> usize"),
        ("trait A", "fn len(&self) -> ", "usize;", "fn len(&self) -> usize;"),
        ("impl A", "#[cfg(", "test)]", "#[cfg(test)]"),
    ],
)
def test_a_header_of_rust_ends_as_it_is_written(owner: str, typed: str, text: str, shown: str) -> None:
    around = f"{owner} {{\n    fn a(&self);\n\n    ", "\n\n    fn b(&self);\n}\n"
    if owner != "trait A":
        around = around[0].replace(";", " {}"), around[1].replace(";", " {}")
    assert filled(Line("rust", around, typed, "", text), "", text)[1] == shown


# Texts whose blocks nothing closes, a fill for the end of the line, and the fill with the end of all blocks.
UNFINISHED = [
    ("typescript", "export function a(s: string) {\n  let count = ", "0;", "\n}"),
    ("typescript", "class A {\n  b() {\n    for (const c of d) {\n      ", "count++;", "\n    }\n  }\n}"),
    ("typescript", "foo(() => {\n  ", "a();", "\n});"),
    ("javascript", "function a() {\n  if (b) {\n    c(d, ", "e);", "\n  }\n}"),
    ("tsx", "function A() {\n  return <b>{c(", "d)}</b>;", "\n}"),
    ("go", "package p\n\nfunc (c *C) Get(key string) int {\n\te, ok := ", "c.entries[key]", "\n}"),
    ("go", "package p\n\nfunc a(key string) int {\n\te, ok := f(", "key)", "\n}"),
    ("rust", "impl A {\n    fn a(&self) -> usize {\n        ", "self.b.len()", "\n    }\n}"),
    ("rust", "impl A {\n    fn a(&self) -> usize {\n        let x = ", "self.b.len();", "\n    }\n}"),
    ("java", "class A {\n    int f() {\n        ", "return 1;", "\n    }\n}"),
    ("java", "class A {\n    int f() {\n        int x = g(", "1);", "\n    }\n}"),
    ("java", 'class A {\n    int f() {\n        g("', 'a");', "\n    }\n}"),
    ("csharp", "class A\n{\n    int F()\n    {\n        var x = ", "1;", "\n    }\n}"),
    ("c", "int f(int a) {\n  if (a) {\n    int b = ", "1;", "\n  }\n}"),
    ("cpp", "int f(int a) {\n  if (a) {\n    int b = ", "1;", "\n  }\n}"),
]


def offered(language: str, typed: str, text: str, below: str = "", kind: Wanted | None = None) -> str:
    """The text that the edit writes at the end of `typed`."""
    document = Document("file:///m", language, 0, (typed + below).encode())
    outcome = finish(document, find_gap(document, len(typed.encode()), kind), Fill(text))
    assert outcome.edit is not None, outcome.why
    return outcome.edit.text


@pytest.mark.parametrize("below", ["", "\n", "\n\n"])
@pytest.mark.parametrize(("language", "typed", "text", "end"), UNFINISHED)
def test_an_offer_ends_no_block_of_an_earlier_line(
    language: str, typed: str, text: str, end: str, below: str
) -> None:
    assert offered(language, typed, text, below) == text
    assert offered(language, typed, text + end, below) == text


@pytest.mark.parametrize(
    ("language", "typed", "text", "shown"),
    [
        ("java", "class A {\n    int f() {", "return 1;", "\n        return 1;\n    }"),
        ("typescript", "class A {\n  b() {", "return 1;", "\n    return 1;\n  }"),
        ("go", "package p\n\nfunc a() int {\n\tif b {", "return 1", "\n\t\treturn 1\n\t}"),
    ],
)
def test_an_offer_ends_the_block_of_its_own_line(language: str, typed: str, text: str, shown: str) -> None:
    assert offered(language, typed, text) == shown


def test_a_body_that_was_asked_for_is_closed() -> None:
    typed = "class A {\n    int f() {\n        "
    assert offered("java", typed, "return 1;", kind="function_body") == "return 1;\n    }\n}"


def test_an_offer_keeps_its_chance_where_blocks_stay_open() -> None:
    typed = "class A {\n    int f() {\n        "
    document = Document("file:///m", "java", 0, typed.encode())
    outcome = finish(document, find_gap(document, len(typed)), Fill("return 1;", chance=0.7))
    assert outcome.edit is not None
    assert (outcome.edit.text, outcome.fill.chance) == ("return 1;", 0.7)


# What no repair reads: the rest of its statement is missing, too.
HALF = [
    ("typescript", "return a ? first(", "b) : c", ""),
    ("typescript", "({ d = 1, e", ", f } = g", ")"),
    ("cpp", "cout << (b.type() == json:", ":value_t::text", ")"),
    ("go", 'files := []T{{"a", []by', "te(b)", "}}"),
    ("java", "f(", "(byte)(1 | ((a >>> 8) & 2))", ")"),
    # After these a repair puts more than brackets.
    ("java", "f(a, (byte) 0x", "7f", ");"),
    ("java", "f(new Ac", "tion()", ");"),
    ("java", 'f("a\\', "n", '");'),
    ("cpp", 'cout << "a\\', "n", '";'),
    ("csharp", "f(new ", "A()", ");"),
    ("java", "for (int i = 0; i < dep", "th; i++", ")"),
    ("cpp", "for (int i = 0; i <", " b(); ++i", ")"),
    *(
        (language, f"for ({declared} = {typed}", text, ")")
        for language, declared in (
            ("c", "int i"),
            ("cpp", "auto i"),
            ("csharp", "var i"),
            ("javascript", "let i"),
        )
        for typed, text in (
            ("", "0; i < b; i++"),
            ("a.", "b; i != c; i++"),
            ("0; ", "i < b; i++"),
            ("0; i", " < b; i++"),
        )
    ),
]


@pytest.mark.parametrize(("language", "typed", "text", "closers"), HALF)
def test_half_a_statement_gets_its_brackets(language: str, typed: str, text: str, closers: str) -> None:
    line = Line(language, BODY[language], typed, "", text)
    assert filled(line, "", text)[1].startswith(typed + text + closers)


COMMENTED = [HALF[1], HALF[3], ("java", "b = first(", "c, d", ")"), ("c", "b = first(", "c, d", ")")]


@pytest.mark.parametrize(("language", "typed", "text", "closers"), COMMENTED)
@pytest.mark.parametrize("comment", ["  // why", "  /* why */", "  /* (why */ // how"])
def test_brackets_are_closed_in_front_of_a_comment(
    language: str, typed: str, text: str, closers: str, comment: str
) -> None:
    line = Line(language, BODY[language], typed, "", text)
    shown = filled(line, comment, text)[1]
    assert (shown.startswith(typed + text + closers), shown.endswith(comment)) == (True, True)


BLOCKS = ["if (a) {|}", "while (a) {|}", "foo(() => {|})", "a.map((b) => {|})"]


@pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
@pytest.mark.parametrize("block", BLOCKS)
def test_no_bracket_of_a_block_stands_twice(language: str, block: str) -> None:
    typed, closers = block.split("|")
    above, below = BODY[language]
    for end in ("", "\n  }", "\n  })", "\n  });"):
        before = f"{above}{typed}\n    "
        assert offered(language, before, "b();" + end, f"\n  {closers}{below}") == "b();"
        assert offered(language, before, "b();" + end, below) == "b();"


# What is typed, what is missing, and the rest of the line, which closes other brackets or begins a body.
FOLLOWED = [
    ("java", "if (! (a == 1 || a ==", " 5", ")", ") {\n            first();\n        }"),
    ("java", "if (! (a == 1 || a ==", " 5", "))", " {\n            first();\n        }"),
    ("csharp", "var c = new HashSet<Type> { typeof(", "I", ")", " };"),
    ("rust", "if !(*", "a >= b", ")", " {\n        return 1;\n    }"),
    ("rust", "unsafe { first(|", "rc| rc.clone()", ")", " }"),
    ("c", "while (!(a ", "& 1", "))", " {\n    first();\n  }"),
    ("go", "d := []T{{a, first(", "b", ")", "}}"),
    ("typescript", "d = [first(", "b, c", ")", "];"),
]


@pytest.mark.parametrize(("language", "typed", "text", "closers", "rest"), FOLLOWED)
def test_brackets_are_closed_in_front_of_the_rest_of_the_line(
    language: str, typed: str, text: str, closers: str, rest: str
) -> None:
    above, below = BODY[language]
    for fill in (text, text + closers):
        assert offered(language, above + typed, fill, rest + below) == text + closers
        # As an editor closes them.
        assert offered(language, above + typed, fill, closers + rest + below) == text


CLOSED_BELOW = [
    (
        "tsx",
        "  return (\n    <div\n      id={\n        f(\n          'a",
        "b'",
        "\n      )}>\n    </div>\n  );\n",
    ),
    ("javascript", "  f({\n    a: [\n        b(c", "d", "\n    )]\n  });\n"),
]


@pytest.mark.parametrize(("language", "typed", "text", "below"), CLOSED_BELOW)
def test_a_bracket_that_the_next_line_closes_is_not_closed_here(
    language: str, typed: str, text: str, below: str
) -> None:
    above = "function first(a) {\n"
    assert offered(language, above + typed, text, below + "}\n") == text


# In a function that is an argument itself, whose list is not the one to be filled.
INNER = [
    (
        "typescript",
        "const a = wrap((b) => {\n  const c = b ? d : first(e.f, in",
        "put.right",
        "\n  return c;\n});\n",
    ),
    (
        "tsx",
        "const a = wrap((b) => {\n  const c = first(() =",
        "> b(true), []",
        "\n  return <i>{c}</i>;\n});\n",
    ),
]


@pytest.mark.parametrize(("language", "typed", "text", "below"), INNER)
def test_half_a_statement_in_an_argument_gets_its_own_brackets(
    language: str, typed: str, text: str, below: str
) -> None:
    assert (offered(language, typed, text, below) or "").startswith(text + ")")


# Text that is not what indentation says elsewhere: a rest of the line that closes an outer bracket, a bracket as deep
# as that of the list, and a brace that is deeper than its header.
STRANGE = [
    ("typescript", "f({\n  a: { [SHOULD_", "BATCH]: true", " },\n});\n", "BATCH]: true"),
    ("python", "def f(a):\n    b = [\n        'c'[(a", " + 1", "\n\n        ]\n    return b\n", " + 1)]"),
    (
        "cpp",
        "void f()\n{\n  if (a(b)\n      || (!c(*d,\n\t     e[",
        "g",
        "])\n    {\n      h();\n    }\n}\n",
        "g",
    ),
    ("c", "void f()\n{\n  if (a(b)\n      || (!c(*d, e", "g", "\n    {\n      h();\n    }\n}\n", "g)))"),
]


@pytest.mark.parametrize(("language", "typed", "text", "below", "shown"), STRANGE)
def test_brackets_are_closed_once_where_lines_mislead(
    language: str, typed: str, text: str, below: str, shown: str
) -> None:
    assert offered(language, typed, text, below) == shown


# A header above its own body, and other lines that a parser joins with those below while they are typed.
ABOVE = [
    ("python", "class A(Gene", "ric[R]", "\n    b = 1\n", "ric[R]):"),
    ("python", "def at(self, key,", " /", "\n    return key\n", " /):"),
    ("python", "def f(a: dict[str, int],", " *, b: int = 1", "\n    return a\n", " *, b: int = 1):"),
    ("go", "package p\n\nfunc f(a []T) (o", "ut []U", "\n\tdefer g()\n\treturn\n}\n", "ut []U) {"),
    (
        "java",
        "enum K {\n    A(1);\n\n    priv",
        "ate int b;",
        "\n    K(int c) {\n        b = c;\n    }\n}\n",
        "ate int b;",
    ),
    (
        "rust",
        "fn f(n: (i32, i32)) {\n    match n {\n        (a, 1) if a > 5 && is",
        "(a) => {}",
        "\n        (.., b) => { let _ = b; }\n    }\n}\n",
        "(a) => {}",
    ),
]
# Templates in templates, and elements that are only begun.
NESTED = [
    (
        "javascript",
        'const a = tag`<a href="$',
        '{b}">${`c ${`d`}`}</a>`',
        "\nf();\n",
        '{b}">${`c ${`d`}`}</a>`',
    ),
    (
        "tsx",
        "function A() {\n  return (\n    <p>\n      <T",
        '>a {b["c"]}</T>',
        "\n    </p>\n  );\n}\n",
        '>a {b["c"]}</T>',
    ),
    (
        "tsx",
        "function A() {\n  return (\n    <p>\n      {a.map((b, i) ",
        "=> (",
        "\n        <b>{i}</b>\n      ))}\n    </p>\n  );\n}\n",
        "=> (",
    ),
]


@pytest.mark.parametrize(("language", "typed", "text", "below", "shown"), [*ABOVE, *NESTED])
def test_a_line_above_its_own_body_or_in_text_gets_its_end(
    language: str, typed: str, text: str, below: str, shown: str
) -> None:
    assert offered(language, typed, text, below) == shown


@pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
@pytest.mark.parametrize("closers", ["", ")"])
def test_brackets_in_a_regular_expression_are_text(language: str, closers: str) -> None:
    for typed, text in (
        ("const b = a.match(/\\.([", "0-9]+)(c)$/"),
        ("b = a.replace(/([^/]", "+|\\/)$/g"),
    ):
        line = Line(language, BODY[language], typed, "", text)
        assert filled(line, closers, text + ", e)")[1].startswith(typed + text)
        assert "/, e" not in filled(line, closers, text + ", e)")[1]
    divided = Line(language, BODY[language], "b = f(a ", "", "/ (d + 1)")
    assert filled(divided, closers, "/ (d + 1)")[1].startswith("b = f(a / (d + 1)")


# A text that is being typed at ¦, and the true rest of its line.
STATES = [
    ("c", "static in¦\nf(void)\n{\n    g();\n}\n", "t"),
    ("java", "class A {\n    boolean of¦\n    int b;\n}\n", "fer;"),
    ("c", "void f() {\n    if ((a && !(b &¦\n        g();\n    }\n}\n", " c)) || (d == e)) {"),
    ("cpp", "void f() {\n    if constexpr (g<A,¦\n        h();\n}\n", " B>)"),
    ("c", "#define NAME ¦\n#include <a.h>\n", "1"),
    ("c", "#define NAME ¦\n\n#include <a.h>\n", "1"),
    ("cpp", "A::A(int a)\n    : b(¦\n      c(1) {}\n", "std::move(a)),"),
]


@pytest.mark.parametrize(("language", "source", "text"), STATES)
def test_the_true_rest_of_a_line_is_offered(language: str, source: str, text: str) -> None:
    _, outcome = filled_at_mark(language, source, Fill(text))
    assert outcome.edit is not None
    assert outcome.edit.text.startswith(text.partition(")")[0])


@pytest.mark.parametrize("language", ["c", "cpp", "csharp", "java", "javascript"])
@pytest.mark.parametrize(
    ("typed", "text"), [("", "0; i < b; i++"), ("0; ", "i < b; i++"), ("0; i < b; ", "i++")]
)
def test_a_header_of_a_loop_needs_its_three_parts(language: str, typed: str, text: str) -> None:
    line = Line(language, BODY[language], f"for (i = {typed}", "", text)
    assert filled(line, ") {", text)[1].startswith(f"for (i = {typed}{text})")
    if ";" in text:
        assert filled(line, ") {", "i")[1].startswith("<")


# A cast that awaits its operand, which comes after the bracket.
CASTS = [
    ("java", "byte[] b = { (by", "te", ")}"),
    ("java", "x = g(a, (by", "te", "))"),
    ("c", "x = g((ch", "ar *", "))"),
    ("cpp", "x = g(a, (unsigned ", "char", "))"),
    ("csharp", "byte[] b = { (by", "te", ")}"),
]


@pytest.mark.parametrize(("language", "typed", "text", "closers"), CASTS)
def test_a_type_in_a_cast_is_offered_before_its_operand(
    language: str, typed: str, text: str, closers: str
) -> None:
    line = Line(language, BODY[language], typed, "", text)
    assert filled(line, closers, text)[1] == typed + text + closers
    assert filled(line, closers, text + " int")[1].startswith("<")


@pytest.mark.parametrize(
    ("language", "typed", "text"),
    [
        ("c", "void f(void) {\n    x = (", "char *)y;"),
        ("c", "void f(void) {\n    x = (ch", "ar *)y;"),
        ("c", "int f(void) {\n    return (a == 0 || b == (u", "int8_t)c);"),
        ("java", "class A { void f() {\n    x = (by", "te) c;"),
    ],
)
def test_a_cast_that_is_only_begun_is_offered_with_its_operand(language: str, typed: str, text: str) -> None:
    assert offered(language, typed, text, "\n}\n") == text


COMMENTS: list[tuple[str, str, Wanted | None, str, str]] = [
    ("int b;\n/* ", "\nint c;\n", None, "one", "one */"),
    ("int b;\n/* ", "\nint c;\n", None, "one */", "one */"),
    ("int a; /*", "*/", "comment", "one", "one"),
    ("int a; /*", "*/", "comment", "one */", "one "),
    ("int a; /**", "*/", "comment", "one", "one"),
    ("int a; /* ", "", "rest_of_line", "one */", "one */"),
    ("int a; /* ", "\nint b;\n", "rest_of_line", "one */", "one */"),
    ("int a; /* |", "\n", "comment", "one", "one */"),
    ("int a; /* }", "\nint b;\n", "comment", "one */", "one */"),
    ("/* {", "\n/* Two. */\nint b;\n", "comment", "one", "one"),
]


@pytest.mark.parametrize("case", COMMENTS)
@pytest.mark.parametrize("language", ["c", "cpp", "java", "csharp"])
def test_a_comment_ends_once(language: str, case: tuple[str, str, Wanted | None, str, str]) -> None:
    typed, below, kind, text, shown = case
    assert offered(language, typed, text, below, kind) == shown


TEMPLATE = "class A {\n  b(c) {\n    for (const d of c) {\n      const e =\n        `in ${d} at:\\n${d"
METHOD = "\n\n  f(c, { d } = {}) {\n    let g = c.h\n    if (!d) {\n      g = d\n    }\n  }\n}\n"


@pytest.mark.parametrize(
    ("language", "typed", "below", "text", "shown"),
    [
        (
            "cpp",
            'int f()\n{\n    json j =\n    {\n        {"',
            '\n\n    // "a"\n    int b = j.value("c", 0);\n    bool d = j.value("e", "f");\n}\n',
            'integer", 1},',
            'integer", 1},',
        ),
        (
            "javascript",
            'var f = function (a) {\n  return a ? a : { "',
            ' };\n};\ng("b");\n',
            'b": a',
            'b": a',
        ),
        ("javascript", TEMPLATE, METHOD, ".name", ".name}`"),
        ("javascript", TEMPLATE, METHOD, ".name}`", ".name}`"),
    ],
    ids=["an outer list", "the rest of the line", "code of a template", "all of a template"],
)
def test_a_text_may_end_the_quote_of_its_line_where_lines_above_are_not_closed(
    language: str, typed: str, below: str, text: str, shown: str
) -> None:
    assert offered(language, typed, text, below) == shown


@pytest.mark.parametrize("below", ['")\n  }\n}\n', '");\n}\n', '", a);\n}\n'])
def test_half_an_escape_does_not_open_the_string_that_an_editor_has_closed(below: str) -> None:
    assert offered("cpp", 'void f(bool a) {\n  if (!a) {\n    g("b: %s\\', "n", below) == "n"
