"""Writing a file as a whole."""

import os
from pathlib import Path

import pytest

from dg_lsp.text.documents.files import write_whole


def test_a_file_is_replaced_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"one", b"two"):
        write_whole(path, data)
        assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("at", ["prepare", "fsync", "replace"])
def test_whatever_fails_the_old_text_stays_whole(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fails(*_: object) -> None:
        raise OSError("disk full")

    if at == "fsync":
        monkeypatch.setattr(os, "fsync", fails)
    if at == "replace":
        monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new", fails if at == "prepare" else lambda _: None)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_the_text_is_written_before_it_takes_its_place(tmp_path: Path) -> None:
    path, seen = tmp_path / "file", list[bytes]()
    path.write_bytes(b"old")

    def look(part: Path) -> None:
        seen.extend([part.read_bytes(), path.read_bytes()])

    write_whole(path, b"new", look)
    assert seen == [b"new", b"old"] and path.read_bytes() == b"new"
