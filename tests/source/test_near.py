"""Law 11: where the parser cannot read a whole file in time, a smaller part round the cursor is read and filled."""

import random
import time

import pytest

from dg_lsp.budget import UNASKED, Budget, spending
from dg_lsp.gaps.find import find_gap, find_gaps
from dg_lsp.gaps.gap import Edit, apply_edit
from dg_lsp.guard.harm import harm_of
from dg_lsp.reasons import OutOfTime
from dg_lsp.source.analysis import analyze
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from tests.source.fixtures import fixtures

SWITCH = "  switch (a) {\n" + "".join(f"    case {n}:\n" for n in range(2_000)) + "      return 1;\n  }\n"
# Files that the parser cannot read in time, with the cursor at `|`, and a fill that is right.
UNREADABLE = (
    ("typescript", "function f(a: number) {\n  let b = |\n" + SWITCH + "}\n", "a + 1;"),
    ("javascript", "function f(a) {\n  return |\n}\n\nx = \n" + "->\n" * 4_000, "a + 1;"),
    ("go", "func f(a int) int {\n\tb := |\n\treturn b\n}\n\n" + "->\n" * 4_000, "a"),
    ("java", "class A {\n  int f(int a) {\n    return |\n  }\n}\n" + "x =>\n" * 4_000, "a + 1;"),
    ("cpp", "int f(int a) {\n  return |\n}\n\n" + "% let =\n" * 4_000, "a + 1;"),
)
BAD = ("g(a;", 'g("a);', "a /* b")


@pytest.mark.parametrize("language, marked, good", UNREADABLE)
def test_a_file_that_cannot_be_read_in_time_is_filled_by_a_part_of_it(
    language: str, marked: str, good: str
) -> None:
    before, after = marked.encode().split(b"|")
    document = Document("file:///w/a", language, 1, before + after)
    with spending(Budget(UNASKED)), pytest.raises(OutOfTime):
        load_language(language).parse(document.data)
    with spending(Budget(8 * UNASKED)):
        gap = find_gap(document, len(before))
        assert gap.start <= len(before) <= gap.end
        assert harm_of(document, gap, Edit(gap.start, gap.end, good)) == ""
        for bad in BAD:
            assert harm_of(document, gap, Edit(gap.start, gap.end, bad)), bad


def test_the_functions_of_an_item_are_found_where_another_cannot_be_read_in_time() -> None:
    before, after = UNREADABLE[1][1].encode().split(b"|")
    document = Document("file:///w/a", "javascript", 1, b"\n\n" + before + after)
    with spending(Budget(2 * UNASKED)):
        found = find_gaps(document, len(before), len(before))
    assert [(gap.name, document.data[gap.start : gap.end].strip()) for gap in found] == [("f", b"return")]


def test_a_request_for_a_file_that_cannot_be_read_in_time_spends_no_more_than_its_budget() -> None:
    before, after = UNREADABLE[0][1].encode().split(b"|")
    document = Document("file:///w/a", "typescript", 1, before + after)
    for _ in range(2):
        began = time.thread_time()
        with spending(Budget(UNASKED)):
            find_gap(document, len(before))
        assert time.thread_time() - began < 4 * UNASKED
        document = apply_edit(document, Edit(0, 0, ""))


BROKEN = "class A {\n  f(a) {\n    return a;\n  }\n  g(b {\n    return b;\n  }\n}\n\nfunction h(c) {\n  return c;\n}\n"


def whole_file_is_read(document: Document, cursor: int) -> bool:
    return analyze(document, cursor).whole


def test_a_file_that_is_broken_elsewhere_is_read_again_once_it_is_mended() -> None:
    document = apply_edit(Document("file:///w/a.js", "javascript", 1, BROKEN.encode()), Edit(0, 0, ""))
    # Its errors stay where they are while something is typed below and above them, and where it is mended they go.
    for where, text, whole in (
        ("c;", "x", False),
        ("a;", "x", False),
        (" {\n    return b", ")", True),
    ):
        at = document.data.index(where.encode())
        document = apply_edit(document, Edit(at, at, text))
        assert whole_file_is_read(document, at + 1) == whole, where


def test_only_a_text_with_errors_is_given_up() -> None:
    stopped = 0
    for language in ("python", "typescript", "csharp", "cpp"):
        loaded, rng = load_language(language), random.Random(language)
        for data in [case.document.data * 30 for case in fixtures(language) if not case.broken][:12]:
            tree = loaded.parse(data)
            for text in (b"(", b"{", b")", b"x", b"[1, ", b"\n", b"f(a)", b"}"):
                at = rng.randrange(len(data) // 2)
                while 0x80 <= data[at] < 0xC0:
                    at -= 1
                if loaded.reparse_until_broken(tree, data, (at, at), text) is None:
                    stopped += 1
                    assert loaded.parse(data[:at] + text + data[at:]).root_node.has_error
    assert stopped
