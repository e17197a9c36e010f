"""A checkpoint of the hub: only `dg-lsp fetch` gets it, at one commit, and only what the lock file says is loaded."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dg_lsp.checkpoints import (
    CheckpointError,
    digest_of,
    find_directory,
    folder_of,
    is_hub_name,
    lock_file,
    pinned,
)
from dg_lsp.cli import doctor
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.manifest import verify
from dg_lsp.settings import Settings
from dg_lsp.training.importing import ImportRefusedError, read_source
from tests.training.hub import Hub, serving

NAME = "some-owner/a_net"
EMBEDDED = Path(folder_of("embedded"))
FILES = {
    **{file.name: file.read_bytes() for file in EMBEDDED.iterdir() if file.suffix in (".json", ".safetensors")},
    "pytorch_model.bin": b"\x80\x04 a pickle",
    "modeling_net.py": b"raise SystemExit('code of a stranger')",
    "README.md": b"about",
    "original/model.safetensors": b"another copy",
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one checkpoint, and a machine that has fetched nothing yet."""
    made = Hub(NAME)
    made.commit(FILES)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with serving(made) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield made


def fetch(*options: str) -> subprocess.CompletedProcess[str]:
    """`dg-lsp fetch`, in a process of its own, since the hub's library reads the environment when it is imported."""
    command = [sys.executable, "-P", "-m", "dg_lsp", "fetch", NAME, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def commit_of(name: str) -> str:
    pin = pinned(name)
    return pin.commit if pin else ""


def test_it_is_fetched_at_one_commit_compared_and_pinned(hub: Hub) -> None:
    commit = next(iter(hub.commits))
    done = fetch()
    assert done.returncode == 0, done.stderr
    entry = json.loads(lock_file().read_text())[NAME]
    data = {name for name in FILES if Path(name).suffix in (".json", ".safetensors") and "/" not in name}
    assert entry["commit"] == commit and {*entry["files"]} == data
    assert {path.name for path in Path(entry["folder"]).iterdir()} == data
    # Not one of the others was even asked for.
    assert not [path for path in hub.asked if path.endswith((".bin", ".py", ".md")) or "original" in path]
    found = load_checkpoint(NAME, "cpu")
    assert found.name == NAME and find_directory(NAME) == Path(entry["folder"])
    finding = doctor.check_checkpoint(Settings(checkpoint=NAME), sys.maxsize)
    assert finding.state == "ok" and commit in finding.found
    # A newer commit is another checkpoint, and comes only when it is asked for.
    newer = hub.commit(FILES | {"README.txt": b"new"})
    before = digest_of(NAME)
    hub.asked.clear()
    assert f"is already fetched, at {commit}" in fetch().stdout and not hub.asked
    assert fetch("--again").returncode == 0 and commit_of(NAME) == newer
    assert fetch("--revision", commit).returncode == 0 and commit_of(NAME) == commit
    assert digest_of(NAME) == before


@pytest.mark.slow
def test_what_is_not_what_the_hub_says_is_not_pinned(hub: Hub) -> None:
    names = ["config.json", "model.safetensors"]
    hub.served = {name: FILES[name][:-1] + bytes([FILES[name][-1] ^ 1]) for name in names}
    for _ in names:
        done = fetch()
        (reported,) = re.findall(r"(\S+) is not what the hub says", done.stderr)
        assert done.returncode == 2 and not pinned(NAME)
        del hub.served[reported]
    assert fetch().returncode == 0 and pinned(NAME)


@pytest.mark.slow
@pytest.mark.parametrize("files", [{"config.json": b"{}"}, {"model.bin": b"x", "config.json": b"{}"}])
def test_pickles_alone_are_no_checkpoint(hub: Hub, files: dict[str, bytes]) -> None:
    hub.commit(files)
    done = fetch()
    assert done.returncode == 2 and "nothing else is fetched" in done.stderr
    assert not any("/resolve/" in path for path in hub.asked)


@pytest.mark.slow
def test_one_file_of_a_repository_is_fetched_if_it_is_named(hub: Hub) -> None:
    made = {"a-q4.gguf": b"GGUF" + b"4" * 2000, "q8/b.gguf": b"GGUF" + b"8" * 3000}
    hub.commit(FILES | made | {"second.safetensors": b"s" * 2000, "model.safetensors.index.json": b"{}"})
    for name in ("a-q4.gguf", "q8/b.gguf"):
        hub.asked.clear()
        done = fetch("--file", name)
        assert done.returncode == 1 and "cannot be run" in done.stdout, done.stderr
        assert {path.rpartition("/")[2] for path in hub.asked if "/resolve/" in path} == {Path(name).name}
        path = find_directory(NAME)
        assert path.read_bytes() == made[name] and path.name == Path(name).name
        pin = pinned(NAME)
        assert pin is not None and verify(path, pins=pin.files) == pin.files[path.name]["sha256"]
        assert "is already fetched, at" in fetch("--file", name).stdout
    # Another file of the same name is another checkpoint, for an engine, too.
    before = digest_of(NAME)
    assert fetch("--file", "a-q4.gguf").returncode == 1 and digest_of(NAME) != before
    assert fetch("--file", "model.safetensors").returncode == 0
    folder = find_directory(NAME)
    pin = pinned(NAME)
    assert pin is not None and load_checkpoint(f"{folder}", "cpu")
    assert not {"second.safetensors", "model.safetensors.index.json", "a-q4.gguf"} & {*pin.files}
    for name in ("c.gguf", "modeling_net.py"):
        done = fetch("--file", name)
        assert (
            done.returncode == 2
            and f"has no file {name} with weights; it has model.safetensors, " in done.stderr
        )
    hub.commit(made)
    done = fetch("--again")
    assert done.returncode == 2 and "with --file, such as a-q4.gguf" in done.stderr


@pytest.mark.slow
def test_a_file_of_the_hub_that_was_cut_short_or_changed_is_refused(hub: Hub) -> None:
    hub.commit(FILES | {"a.gguf": b"GGUF" + b"4" * 2000})
    done = fetch("--file", "a.gguf")
    assert done.returncode == 1 and "cannot be run" in done.stdout
    path, pin = find_directory(NAME), pinned(NAME)
    assert pin is not None
    for data, why in (
        (b"GGUF", "4 bytes instead of 2004"),
        (b"GGUF" + b"5" * 2000, "does not match its sha256"),
    ):
        path.resolve().write_bytes(data)
        with pytest.raises(CheckpointError, match=why):
            verify(path, pins=pin.files)


@pytest.mark.slow
def test_a_hub_that_has_it_not_or_is_not_there_is_reported(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    said = fetch("--revision", "no-such").stderr
    assert "does not give some-owner/a_net at no-such" in said and "check the name and your access" in said
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = fetch()
    assert done.returncode == 2 and done.stderr.endswith("; check the connection\n")
    assert "Traceback" not in done.stderr


@pytest.fixture
def pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is pinned as NAME, with a config and weights."""
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    folder = tmp_path / "snapshot"
    folder.mkdir()
    files = {}
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("{}")
        digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        files[name] = {"bytes": 2, "sha256": digest}
    lock_file().parent.mkdir(parents=True)
    lock_file().write_text(json.dumps({NAME: {"commit": "c" * 40, "folder": str(folder), "files": files}}))
    return folder


def test_only_what_the_lock_file_names_is_loaded(pin: Path) -> None:
    entry = pinned(NAME)
    assert entry is not None
    pins = entry.files
    verify(find_directory(NAME), pins=pins)
    for name, text, why in (
        ("model.safetensors", "{", "1 bytes instead of 2"),
        ("model.safetensors", "[]", "does not match its sha256"),
        ("tokenizer.json", "{}", "is not in the lock file"),
    ):
        before = (pin / name).read_text() if (pin / name).exists() else None
        (pin / name).write_text(text)
        with pytest.raises(CheckpointError, match=why):
            load_checkpoint(NAME, "cpu")
        finding = doctor.check_checkpoint(Settings(checkpoint=NAME))
        assert finding.state == "fail" and finding.fix == f"dg-lsp fetch {NAME} --again"
        (pin / name).unlink() if before is None else (pin / name).write_text(before)
    (pin / "pytorch_model.bin").write_text("a pickle is not looked at")
    verify(find_directory(NAME), pins=pins)


@pytest.mark.parametrize("lock", [None, "no JSON", "[]", "{}", '{"some-owner/a_net": {"commit": 1}}'])
def test_what_was_not_fetched_says_the_command(
    lock: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if lock is not None:
        lock_file().parent.mkdir()
        lock_file().write_text(lock)
    for load in (find_directory, load_checkpoint):
        with pytest.raises(CheckpointError, match=f"is not here; run dg-lsp fetch {NAME}$"):
            load(NAME)
    with pytest.raises(ImportRefusedError, match=f"run dg-lsp fetch {NAME}"):
        read_source(NAME)
    finding = doctor.check_checkpoint(Settings(checkpoint=NAME))
    assert (finding.state, finding.fix) == ("warn", f"run dg-lsp fetch {NAME}")


def test_a_folder_of_the_workspace_is_never_taken_for_a_checkpoint_of_the_hub(
    pin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / NAME).mkdir(parents=True)
    (tmp_path / NAME / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert find_directory(NAME) == pin
    lock_file().unlink()
    with pytest.raises(CheckpointError, match=f"for the folder of that name write ./{NAME}"):
        find_directory(NAME)
    assert find_directory(f"./{NAME}") == tmp_path / NAME


@pytest.mark.parametrize(
    ("name", "hub"),
    [
        ("google/diffusiongemma-26B-A4B-it", True),
        *(
            (name, False)
            for name in ("embedded", "./a/b", "../a", "~/a", "/a/b", "a/b/c", "a/", "a/..", "a/.b")
        ),
    ],
)
def test_which_names_are_the_hubs(name: str, hub: bool) -> None:
    assert is_hub_name(name) is hub
