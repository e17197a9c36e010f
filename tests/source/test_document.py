"""Documents: bytes as they are, lines by the protocol's rule, positions in three encodings."""

import os
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.gaps.gap import Edit, apply_edit
from dg_lsp.source.document import LARGEST, Document, DocumentError, Encoding, read_document
from dg_lsp.source.lexer import line_end

MIXED = "a = 1\r\né = '😀x'\rb\n\u2028\x0c c\n"


def document(text: str) -> Document:
    return Document("file:///m.py", "python", 0, text.encode())


def test_lines_end_at_lf_crlf_and_cr_and_nowhere_else() -> None:
    found = document(MIXED)
    lines = [found.data[s : found.line_end(n)].decode() for n, s in enumerate(found.line_starts)]
    assert lines == ["a = 1", "é = '😀x'", "b", "\u2028\x0c c", ""]


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 10), ("utf-16", 7), ("utf-32", 6)])
def test_columns_count_units_of_the_encoding(encoding: str, column: int) -> None:
    found = document(MIXED)
    at = found.data.index(b"x'")
    assert found.position(at, encoding) == (1, column)  # type: ignore[arg-type]
    assert found.offset(1, column, encoding) == at  # type: ignore[arg-type]


PIECES = st.sampled_from(["a", "\t", "é", "√", "🙂", "\n", "\r\n", "\r", "\x0c", "\x85", "\u2028", "\x00"])
TEXTS = st.lists(PIECES | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join)
ENCODINGS = st.sampled_from(get_args(Encoding))


@given(TEXTS, ENCODINGS)
def test_every_character_comes_back_from_its_position(text: str, encoding: Encoding) -> None:
    found = document(text)
    offset = 0
    for number, character in enumerate(text):
        # The second half of a line end has no position of its own.
        if text[number - 1 : number + 1] != "\r\n" or not number:
            assert found.offset(*found.position(offset, encoding), encoding) == offset
        offset += len(character.encode())
    assert found.offset(*found.position(offset, encoding), encoding) == offset


@given(TEXTS, ENCODINGS)
def test_a_position_counts_the_units_after_the_last_line_end(text: str, encoding: Encoding) -> None:
    width = {
        "utf-8": lambda c: len(c.encode()),
        "utf-16": lambda c: 1 + (c > "\uffff"),
        "utf-32": lambda _: 1,
    }
    found, line, column = document(text), 0, 0
    for number, character in enumerate(text):
        if number and text[number - 1 : number + 1] != "\r\n":
            assert found.position(len(text[:number].encode()), encoding) == (line, column)
        column += width[encoding](character)
        if character == "\n" or (character == "\r" and text[number + 1 : number + 2] != "\n"):
            line, column = line + 1, 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_a_column_past_the_line_is_its_end(encoding: str) -> None:
    found = document(MIXED)
    assert found.offset(0, 99, encoding) == 5  # type: ignore[arg-type]
    assert found.offset(4, 99, encoding) == len(found.data)  # type: ignore[arg-type]


def test_a_position_inside_a_character_is_its_beginning() -> None:
    found = document("'😀'")
    assert found.offset(0, 2, "utf-16") == 1
    assert found.offset(0, 3, "utf-8") == 1
    assert found.position(3, "utf-16") == (0, 1)


def test_a_line_outside_the_file_is_refused_with_the_lines_there_are() -> None:
    with pytest.raises(DocumentError, match="from 1 to 2"):
        document("a\n").offset(2, 0)
    with pytest.raises(DocumentError, match="column 0 is before the line; columns count from 1"):
        document("a\n").offset(0, -1)
    with pytest.raises(DocumentError, match="has 2 bytes"):
        document("a\n").position(3)


def test_an_empty_file_has_one_line() -> None:
    assert document("").offset(0, 7) == 0
    assert document("").position(0) == (0, 0)


def test_reading_keeps_mark_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r")
    found = read_document(path)
    assert found.data == path.read_bytes()
    assert (found.language, found.version) == ("python", 0)
    assert found.uri == path.as_uri()


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"s = '\xe9'\n")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "a.txt").write_text("x")
    os.mkfifo(tmp_path / "pipe.py")
    with (tmp_path / "large.py").open("wb") as file:
        file.truncate(LARGEST + 1)
    for name, sentence in {
        "latin.py": r"byte 5.*convert it to UTF-8",
        "folder.py": "is a directory",
        "none.py": "there is no file",
        "pipe.py": "is a pipe or a device; name a file",
        "large.py": "is larger than 32 MiB",
        "a.txt": r"no language is known for a\.txt; known are .*\.py",
    }.items():
        with pytest.raises(DocumentError, match=sentence):
            read_document(tmp_path / name)


@pytest.mark.parametrize(
    ("data", "offset", "end"), [(b"\nab", 0, 0), (b"ab\rcd\n", 0, 2), (b"ab\ncd\r", 0, 2), (b"ab", 1, 2)]
)
def test_a_line_ends_before_the_first_line_end_after_the_offset(data: bytes, offset: int, end: int) -> None:
    assert line_end(data, offset) == end


def test_an_edited_document_remembers_the_text_before() -> None:
    edited = apply_edit(document("a = 1\n"), Edit(4, 5, "22"))
    assert (edited.text, edited.version) == ("a = 22\n", 1)
    assert edited.history is not None and edited.history.base is not None
    assert edited.history.base.reading.data == b"a = 1\n"
    assert edited.history.base.changes.spans == ((4, 5, 4, 6),)
