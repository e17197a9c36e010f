"""The brackets and strings that a text opens and closes."""

import re
import time

import pytest

from dg_lsp.filling.pairs import Pair, pairs_of
from dg_lsp.gaps import Edit
from dg_lsp.source.brackets import state_at
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language


def pairs(language: str, before: str, text: str, after: str = "") -> list[Pair]:
    document = Document("file:///a", language, 0, (before + after).encode())
    at = len(before.encode())
    return pairs_of(document, Edit(at, at, text))


@pytest.mark.parametrize(
    ("language", "before", "text", "found"),
    [
        ("python", "x = ", 'f(a, "(b", [1])', ['(a, "(b", [1])', '"(b"', "[1]"]),
        ("python", "x = ", 'f"{g(1)}" + """a"b"""', ['"{g(1)}"', "{g(1)}", "(1)", '"a"b"""']),
        ("python", "x = f(", "a, g(b)", ["(b)"]),
        ("python", "x = ", "f(a", []),
        ("python", "x = ", "a] + (b)", ["(b)"]),
        ("python", "x = 'it ", '(is) "so"\'', []),
        ("python", "# it ", "(is) [so]", []),
        ("python", "x = ", "f(  # ) is [text]\n    a)", ["(  # ) is [text]\n    a)"]),
        ("javascript", "x = ", "`${f({})} (`", ["`${f({})} (`", "{f({})}", "({})", "{}"]),
        ("javascript", "x = ", "/[(]/.test('(')", ["('(')", "'('"]),
        ("rust", "fn f<'a>(x: &'a u8) {\n    ", "g::<'a>('(', &x[1..]);", ["('(', &x[1..])", "'('", "[1..]"]),
        ("cpp", "auto s = ", 'f(R"(a(b)", {1});', ['(R"(a(b)", {1})', '"(a(b)"', "{1}"]),
        ("go", "x := ", "[]int{len(`a(`)}", ["[]", "{len(`a(`)}", "(`a(`)", "`a(`"]),
    ],
)
def test_the_pairs_of_a_text(language: str, before: str, text: str, found: list[str]) -> None:
    data = text.encode()
    assert [data[p.open : p.end].decode() for p in pairs(language, before, text)] == found


TEXTS = (
    ("python", 'print("hello, world", names[0], sep="")\nf(g(h(1), {2: (3, "4")}), *a[:-1])'),
    ("javascript", "if (a[b(1)]) {\n  c(`x ${d('e')} f`, { g: [1, 2] });\n}\n"),
    ("go", 'for i := range f([]int{1, 2}) {\n\tg("a", h(i)[0])\n}'),
    ("rust", 'let a = b(|c| c.d("e{}"), vec![1, 2])?;\nif f(&a) { g(); }'),
    ("bash", 'if [ "$a" = "b" ]; then\n  f "${c[0]}" $(g "h")\nfi'),
    ("php", '<?php f($a["b"], [1, "{$c[0]}"]);'),
)


@pytest.mark.parametrize(("language", "text"), TEXTS)
def test_each_beginning_is_closed_by_the_closers_of_its_open_pairs(language: str, text: str) -> None:
    """Where the beginning ends between two tokens: inside of what opens a string nothing is known of it yet."""
    data, known, found = text.encode(), load_language(language), pairs(language, "", text)
    assert found
    for at in range(1, len(data)):
        if data[at - 1 : at] in (b'"', b"'", b"`", b"$") or data[at : at + 1] in (b'"', b"'", b"`", b"{"):
            continue
        closers = b"".join(_closer(data, p, at) for p in reversed(found) if p.open < at <= p.close)
        state = state_at(known, data[:at] + closers, at + len(closers), 0)
        assert (state.brackets, state.string) == (b"", b""), (data[:at], closers)


def _closer(data: bytes, pair: Pair, at: int) -> bytes:
    """Return the closer of `pair`, with its line if it begins one below `at`, as the clients put it."""
    line = re.search(rb"\n[ \t]*\Z", data[at : pair.close])
    return data[pair.close - len(line[0] if line else b"") : pair.end]


def test_of_a_long_text_the_beginning_is_read_in_little_time() -> None:
    text = "f(a[1], 'x', {1: (2, 3)})\n" * 2_000
    begun = time.perf_counter()
    found = pairs("python", "def g():\n    ", text)
    assert time.perf_counter() - begun < 2
    assert 0 < len(found) < 100
