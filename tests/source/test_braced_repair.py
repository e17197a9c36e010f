"""What broken brace code lacks at a cursor `¦`."""

import pytest

from dg_lsp.source.brackets import state_at
from dg_lsp.source.items import top_level_item
from dg_lsp.source.language import load_language
from dg_lsp.source.repair import (
    TRIED,
    Closing,
    Repaired,
    cost_of,
    insertions,
    missing_tokens_at,
    repair,
)


def cut(text: str) -> tuple[bytes, int]:
    before, _, after = text.partition("¦")
    return (before + after).encode(), len(before.encode())


def mended(language: str, text: str) -> tuple[str, Repaired]:
    """`text` as its repair leaves it, the change marked, and the repair."""
    data, offset = cut(text)
    made = repair(load_language(language), data, offset)
    start, stop = next(((c.start, c.end) for c in made.changes.spans), (made.at, made.at))
    parts = made.data[:start], made.data[start:stop], made.data[stop:]
    return "{}«{}»{}".format(*(part.decode() for part in parts)), made


REPAIRS = {
    "arguments": ("java", "class A {\n  void f() {\n    g(¦\n    h();\n  }\n}\n", "g(«_g_);»\n"),
    "brackets of several kinds": ("go", "func f() {\n\tg(a, []int{1, b[¦\n\th()\n}\n", "b[«_g_]})»\n"),
    "what the rest of the line closes counts": ("c", "void f() {\n  if (g(a¦) {\n    h();\n  }\n}\n", "g(a«)») {"),
    "a bracket inside of what the rest closes": ("typescript", "f({ a: [1¦ })\n", "[1«]» })"),
    "nothing but a semicolon": ("java", "class A {\n  int b = c.d()¦\n}\n", "c.d()«;»\n"),
    "in front of the brace on its line": ("java", "class A {\n  int f() { return ¦ }\n}\n", "return «_g_;» }"),
    "a value behind its operator": ("go", "func f() {\n\tx := a +¦\n}\n", "a +«_g_»\n"),
    "half an operator": ("c", "void f() {\n  if (a =¦) {\n  }\n}\n", "a =«_g_») {"),
    "a string": ("rust", 'fn f() {\n    g("a¦\n    h();\n}\n', 'g("a«");»\n'),
    "a string behind a backslash": ("go", 'func f() {\n\tg("a\\¦\n\th()\n}\n', 'g("a\\«\\")»\n'),
    "a template with code": ("javascript", "f(`a${b¦\n", "b«}`)»\n"),
    "a directive's string": ("c", '#include "a¦\n\nint b;\n', '"a«"»\n'),
    "the function's brace": ("go", "func f() {\n\tg()¦\n\nfunc h() {\n}\n", "g()«\n}»\n"),
    "the braces of what is round it": (
        "java",
        "class A {\n    void f() {\n        if (a) {\n            b();¦\n\n    void g() {\n    }\n}\n",
        "b();«\n        }\n    }»\n",
    ),
    "an empty function's brace": ("java", "class A {\n  void f() {\n    ¦\n\n  void g() {\n  }\n}\n", "    «\n  }»\n"),
    "a lambda's brace and what follows it": (
        "java",
        "class A {\n  void f() {\n    g(() -> {\n      h();¦\n    i();\n  }\n}\n",
        "h();«\n    });»\n",
    ),
    "an object's member": ("javascript", "f({\n  a: g(¦\n  b: 1,\n})\n", "g(«_g_),»\n"),
    "the statement gives way": ("java", "class A {\n  void f() {\n    a b c ? d¦\n    e();\n  }\n}\n", "    «_g_;»\n"),
    "CRLF": ("go", "func f() {\r\n\tg()¦\r\n\r\nfunc h() {\r\n}\r\n", "g()«\r\n}»\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPAIRS)
def test_what_is_lacking_is_put_in(name: str) -> None:
    language, text, wanted = REPAIRS[name]
    found, made = mended(language, text)
    assert made.cost == 0, found
    assert wanted in found


def test_a_clean_text_needs_nothing() -> None:
    found, made = mended("go", "func f() {\n\tg(¦)\n}\n")
    assert not (made.cost or made.changes.spans)
    assert "«»" in found


def test_what_is_tried_has_a_bound() -> None:
    data, offset = cut("class A {\n  void f() {\n    for (a ? b < c(d[¦\n    }}}) ] )\n")
    java = load_language("java")
    tried = list(insertions(missing_tokens_at(java, data, offset, state_at(java, data, offset))))
    assert 5 < len(tried) <= TRIED + 5
    assert len(set(tried)) == len(tried)


def test_insertions_touch_nothing_else() -> None:
    data, offset = cut("func f() {\n\tg(a¦\n}\n")
    go = load_language("go")
    found = list(insertions(missing_tokens_at(go, data, offset, state_at(go, data, offset))))
    assert Closing(b")", offset, b"") in found


def test_a_large_class_is_repaired_without_its_other_members() -> None:
    members = "".join(f"    void f{n}() {{\n        g({n});\n    }}\n\n" for n in range(300))
    text = "class A {\n" + members.replace("g(7)", "g((7").replace("g(200)", "g(¦") + "}\n"
    data, offset = cut(text)
    made = repair(load_language("java"), data, offset)
    assert made.cost == 0
    assert len(made.data) == len(data) + sum(change.end - change.start for change in made.changes.spans)


@pytest.mark.parametrize("language", ["c", "cpp", "go", "java", "javascript", "rust", "tsx", "typescript"])
def test_no_place_of_a_text_raises(language: str) -> None:
    loaded = load_language(language)
    text = b"a { b(c[`${ \"d' /* e\n} // f\n#g )]}\n\r\n\t<h i='j'> case k: ;; for (\n"
    for offset in range(len(text) + 1):
        start, stop = top_level_item(loaded, text, offset)
        assert start <= stop
        state = state_at(loaded, text, offset)
        for way in insertions(missing_tokens_at(loaded, text, offset, state)):
            assert offset <= way.at <= len(text)
        assert cost_of(repair(loaded, text, offset).tree) >= 0
