"""Law 11: a file of any shape and size costs bounded memory and time."""

import math
import time
import tracemalloc
from contextlib import suppress

import pytest

from dg_lsp.gaps.find import LONGEST_LINE, MOST_OPEN, NEAR, NoGap, find_gap, reach
from dg_lsp.gaps.gap import Edit, apply_edit
from dg_lsp.messages import Kind
from dg_lsp.source.brackets import state_at
from dg_lsp.source.document import Document
from dg_lsp.source.items import FARTHEST
from dg_lsp.source.language import load_language
from dg_lsp.source.repair import insertions, missing_tokens_at

LANGUAGES = ("python", "typescript", "cpp")
# A machine that is busy measures processor time all the same, but not as exactly as an idle one.
MILLISECONDS = 100
MEGABYTES = 50

SHAPES = {
    "200,000 brackets": b"x = " + b"(" * 200_000,
    "200,000 brackets on lines": b"x = " + b"(\n" * 200_000,
    "a line of 5 MB": b"x = " + b"a + " * 1_250_000,
    "a line of 5 MB with brackets": b"x = " + b"f(a, " * 1_000_000,
    "a string of 5 MB": b'x = "' + b"ab, " * 1_250_000,
    "5 MB of short lines": b"a\n" * 2_500_000,
}
NESTED = {
    "python": b"".join(b" " * n + b"if x:\n" for n in range(1_000)) + b" " * 1_000,
    "brace": b"if (x) {\n" * 10_000,
}


def spent(document: Document, offset: int, kind: Kind | None) -> float:
    """Milliseconds of processor time that finding a gap took."""
    begun = time.thread_time()
    with suppress(NoGap):
        find_gap(document, offset, kind)
    return (time.thread_time() - begun) * 1000


def least(data: bytes, language: str, offset: int, kind: Kind | None) -> float:
    """The least of some measurements, each of a text that no cache knows; one where that is short enough."""
    texts = (data[:offset] + b" " * n + data[offset:] for n in range(5))
    times = (spent(Document("file:///shape", language, 0, text), offset, kind) for text in texts)
    return next((ms for ms in times if ms < MILLISECONDS), math.inf)


@pytest.mark.parametrize("kind", [None, "function_body"])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_of_a_file_takes_long(shape: str, language: str, kind: Kind | None) -> None:
    data = SHAPES[shape]
    spent(Document("file:///shape", language, 0, b"x\n"), 1, kind)
    # The middle of what is open is as bad as its end.
    assert least(data, language, len(data) // 2 if kind else len(data), kind) < MILLISECONDS


@pytest.mark.parametrize("kind", [None, "function_body"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_nor_do_blocks_in_blocks(language: str, kind: Kind | None) -> None:
    data = NESTED["python" if language == "python" else "brace"]
    spent(Document("file:///shape", language, 0, b"x\n"), 1, kind)
    assert least(data, language, len(data), kind) < MILLISECONDS
    if language != "python":
        assert least(data + b"}\n" * 10_000, language, len(data), kind) < MILLISECONDS


def test_a_keystroke_in_such_a_line_of_a_buffer_costs_no_more() -> None:
    document = Document("file:///shape", "python", 0, b"x = 1\ny = 2\n")
    document = apply_edit(document, Edit(4, 5, "(" * 200_000))
    times = []
    for _ in range(3):
        document = apply_edit(document, Edit(200_004, 200_004, "("))
        times.append(spent(document, 200_005, None))
    assert min(times) < MILLISECONDS


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("shape", ["200,000 brackets", "a line of 5 MB"])
def test_memory_is_bounded_too(shape: str, language: str) -> None:
    data = SHAPES[shape]
    tracemalloc.start()
    try:
        spent(Document("file:///shape", language, 0, data), len(data), None)
        assert tracemalloc.get_traced_memory()[1] < MEGABYTES << 20
    finally:
        tracemalloc.stop()


def test_insertions_are_bounded_however_much_is_open() -> None:
    data = b"x = " + b"(" * 4_000
    language = load_language("python")
    state = state_at(language, data, len(data), 0)
    found = list(insertions(missing_tokens_at(language, data, len(data), state)))
    assert sum(len(way.text) for way in found) < 8 << 20


@pytest.mark.parametrize("size", [LONGEST_LINE // 2, LONGEST_LINE * 2])
def test_only_a_text_of_strange_shape_is_read_in_part(size: int) -> None:
    data = b"a = 1\n" * 100_000
    assert reach(data, len(data) // 2) == (0, len(data))
    line = data + b"b + " * (size // 4)
    assert (reach(line, len(line)) == (0, len(line))) == (size < LONGEST_LINE)
    deep = data + b"(" * (MOST_OPEN - 1)
    assert reach(deep, len(deep)) == (0, len(deep))
    assert reach(deep + b"(", len(deep) + 1) == (len(deep) + 1 - NEAR, len(deep) + 1)


def test_what_is_read_cuts_no_character_and_no_line_end() -> None:
    data = "ü".encode() * LONGEST_LINE
    start, stop = reach(data, LONGEST_LINE)
    assert data[start:stop].decode()
    data = b"(" * FARTHEST + b"x\r\n" + b"(" * (NEAR - 1)
    assert reach(data, len(data))[0] == FARTHEST + 1


def test_a_gap_in_a_long_line_is_where_it_is_in_the_document() -> None:
    data = b"x = [" + b"1, " * 20_000 + b"]\n" + b"y = 1\n"
    gap = find_gap(Document("file:///shape", "python", 0, data), 30_005)
    assert gap.start == gap.end == 30_005
