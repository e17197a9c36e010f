"""Where engines are met."""

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from dg_lsp.checkpoints import digest_of
from dg_lsp.engine import runtime
from dg_lsp.engine.choice import room_for
from dg_lsp.engine.runtime import address_of, runtime_directory
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import Settings


def test_the_directory_is_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "rt"
    assert runtime_directory({"DG_LSP_RUNTIME_DIR": str(path)}) == path
    assert path.stat().st_mode & 0o777 == 0o700
    path.chmod(0o755)
    runtime_directory({"DG_LSP_RUNTIME_DIR": str(path)})
    assert path.stat().st_mode & 0o777 == 0o700


def test_the_session_s_runtime_directory_comes_before_the_temporary_one(tmp_path: Path) -> None:
    assert runtime_directory({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "dg-lsp"


def test_a_link_somebody_laid_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(EngineError, match="DG_LSP_RUNTIME_DIR"):
        runtime_directory({"DG_LSP_RUNTIME_DIR": str(tmp_path / "link")})


def test_a_home_that_is_not_there_is_no_folder_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError, match="it is no path from the root"):
        runtime_directory({"DG_LSP_RUNTIME_DIR": "~no_such_user/x"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EngineError, match="cannot be used"):
        runtime_directory({"DG_LSP_RUNTIME_DIR": str(tmp_path / "x")})


def test_a_path_too_long_for_a_socket_says_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path / ("x" * 120)))
    with pytest.raises(EngineError, match="shorter path"):
        address_of(Settings())


def test_checkpoints_devices_and_changed_weights_have_engines_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path))
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"1")
    places = {address_of(Settings(checkpoint=c)).socket for c in ("embedded", "scripted", "a/b", str(model))}
    places.add(address_of(Settings(device="cuda:1")).socket)
    places.add(address_of(Settings(weight_bits=4)).socket)
    (model / "model.safetensors").write_bytes(b"12")
    places.add(address_of(Settings(checkpoint=str(model))).socket)
    assert len(places) == 7


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells cheaply whether there is a GPU")
def test_auto_and_cpu_are_one_engine_where_there_is_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path))
    for there, engines in ((tmp_path / "none", 1), (tmp_path, 2)):
        monkeypatch.setattr(runtime, "_GPUS", (str(there),))
        assert len({address_of(Settings(device=device)).socket for device in ("auto", "cpu")}) == engines


def test_the_same_files_are_the_same_checkpoint_wherever_they_are(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}")
    assert digest_of(str(tmp_path / "a")) == digest_of(str(tmp_path / "b"))


def test_a_folder_that_was_deleted_and_a_home_that_is_none_are_no_errors_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both were errors without a reason at each key; an editor stays in a folder that git takes away.
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path))
    for checkpoint in ("my/folder/of/mine", "~nobody-at-all/small"):
        assert address_of(Settings(checkpoint=checkpoint)).socket.parent == tmp_path
    for folder in ("my/folder", "~nobody-at-all/engines"):
        with pytest.raises(EngineError, match="set DG_LSP_RUNTIME_DIR to another"):
            runtime_directory({"DG_LSP_RUNTIME_DIR": folder})


class _MacSocket:
    """A Unix socket of macOS: the process and the user at its other end are two options at level 0."""

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert level == 0
        return {
            1: struct.pack("=2Ih2x16I", 0, 501, 1, *range(16)),  # LOCAL_PEERCRED: struct xucred
            2: struct.pack("=i", 4321),  # LOCAL_PEERPID
        }[option][:size]


def test_on_macos_the_process_and_the_user_at_the_other_end_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert runtime.peer(_MacSocket()) == (4321, 501)
    assert runtime.is_own(_MacSocket()) is (os.getuid() == 501)


def test_the_files_of_engines_that_ran_a_week_ago_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path))
    kinds = (".log", ".lock", ".start", ".sock")
    engines = {
        what: tmp_path / f"13-{number:010x}-cpu-4" for number, what in enumerate(("old", "new", "runs"))
    }
    others = [tmp_path / "build.log", tmp_path / "13-notes.log", tmp_path / "loading.lock"]
    old = time.time() - 8 * 86_400
    for file in (*others, *(engine.with_suffix(kind) for engine in engines.values() for kind in kinds)):
        file.touch()
        os.utime(file, (old, old))
    os.utime(engines["new"].with_suffix(".log"))
    with FileLock(engines["runs"].with_suffix(".lock")):
        os.utime(engines["runs"].with_suffix(".lock"), (old, old))
        runtime.remove_old()
        left = {path for path in tmp_path.iterdir() if path.suffix in kinds}
    kept = {engine.with_suffix(kind) for what, engine in engines.items() for kind in kinds if what != "old"}
    assert left == {*others, *kept}


def test_what_an_engine_that_was_killed_leaves_is_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path))
    settings = Settings(checkpoint="embedded")
    address = address_of(settings)
    monkeypatch.setattr("dg_lsp.engine.memory.free", lambda _: (5, "this machine"))
    assert room_for("embedded", settings) == 5
    holder = (
        "import sys, socket, time; from filelock import FileLock; lock = FileLock(sys.argv[1]); "
        "lock.acquire(); socket.socket(socket.AF_UNIX).bind(sys.argv[2]); print(1, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", holder, str(address.lock), str(address.socket)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as engine:
        assert engine.stdout is not None and engine.stdout.readline()
        assert address.is_held and address.is_held and room_for("embedded", settings) == sys.maxsize
        engine.kill()
    assert address.socket.exists() and address.lock.exists()
    assert not address.is_held and room_for("embedded", settings) == 5
