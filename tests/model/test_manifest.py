"""A large file is read once; what has changed since is read again and refused."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from dg_lsp.checkpoints import CheckpointError
from dg_lsp.model import manifest
from dg_lsp.model.manifest import verify
from tests.model.tiny import write_manifest


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "large.safetensors").write_bytes(b"x" * 1000)
    (folder / "config.json").write_text("{}")
    write_manifest(folder)
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were hashed."""
    names: list[str] = []
    whole = hashlib.file_digest

    def digest(stream, kind):
        names.append(Path(stream.name).name)
        return whole(stream, kind)

    monkeypatch.setattr(manifest.hashlib, "file_digest", digest)
    return names


def test_a_large_file_is_read_once_and_a_small_one_each_time(checkpoint: Path, read: list[str]) -> None:
    first = verify(checkpoint, large=500)
    assert verify(checkpoint, large=500) == first
    assert (read.count("large.safetensors"), read.count("config.json")) == (1, 2)


def test_what_has_changed_is_read_again(checkpoint: Path, read: list[str]) -> None:
    verify(checkpoint, large=500)
    file = checkpoint / "large.safetensors"
    before = file.stat()
    file.write_bytes(b"y" * 1000)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(CheckpointError, match="damaged"):
        verify(checkpoint, large=500)
    assert read.count("large.safetensors") == 2


def test_another_manifest_is_not_believed_for_what_an_older_one_said(
    checkpoint: Path, read: list[str]
) -> None:
    verify(checkpoint, large=500)
    told = json.loads((checkpoint / "manifest.json").read_text())
    told["files"]["large.safetensors"]["sha256"] = "0" * 64
    (checkpoint / "manifest.json").write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match="damaged"):
        verify(checkpoint, large=500)


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_broken_memory_is_as_none(checkpoint: Path, read: list[str], text: str) -> None:
    memory = checkpoint.parent / "cache" / "dg-lsp" / "verified.json"
    memory.parent.mkdir(parents=True)
    memory.write_text(text)
    verify(checkpoint, large=500)
    verify(checkpoint, large=500)
    assert read.count("large.safetensors") == 1


def test_without_a_cache_folder_the_file_is_read_each_time(checkpoint: Path, read: list[str]) -> None:
    (checkpoint.parent / "cache").write_text("a file")
    verify(checkpoint, large=500)
    verify(checkpoint, large=500)
    assert read.count("large.safetensors") == 2
