"""Records in the cache folder: the newest names stay, and damage costs no more than measuring again."""

from pathlib import Path

import pytest

from dg_lsp.files.records import note_in_record, read_record, write_record


def test_the_newest_names_stay(tmp_path: Path) -> None:
    file = tmp_path / "made" / "record.json"
    for name in ("a", "b", "a", "c"):
        note_in_record(file, name, [name, 1.5], 2)
    assert [*read_record(file).items()] == [("a", ["a", 1.5]), ("c", ["c", 1.5])]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, "\udcff"])
def test_what_is_damaged_is_empty_and_is_written_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "record.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read_record(file) == {}
    note_in_record(file, "a", 1, 3)
    assert read_record(file) == {"a": 1}


def test_where_nothing_can_be_written_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_record(tmp_path / "file" / "record.json", {"a": 1})
    assert read_record(tmp_path / "file" / "record.json") == {}
