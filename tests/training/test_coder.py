"""The checkpoint coder: the published file with its description, notice and manifest, and never half of one."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.checkpoints import (
    CODER,
    FAST_ENOUGH,
    CheckpointError,
    Measured,
    find_directory,
    folder_of,
    measured,
    network_in,
    prompt_of,
)
from dg_lsp.cli import fetch
from dg_lsp.cli.main import main
from dg_lsp.model.manifest import verify
from dg_lsp.training import coder
from dg_lsp.training.coder import fetch_coder, is_current
from dg_lsp.training.fetching import FetchError
from dg_lsp.training.packages import Pinned

DATA = b"GGUF, some weights"


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The network's file, on a machine that has fetched nothing."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pinned = Pinned("Net", "Apache-2.0", "net.gguf", len(DATA), hashlib.sha256(DATA).hexdigest(), "", ())
    monkeypatch.setattr(coder, "pinned_network", lambda _: pinned)
    file = tmp_path / "here.gguf"
    file.write_bytes(DATA)
    return file


def test_the_folder_holds_the_file_as_it_is_with_a_notice_and_a_manifest(given: Path) -> None:
    folder = folder_of(CODER)
    with pytest.raises(CheckpointError, match=r"is not here; run dg-lsp fetch coder$"):
        find_directory(CODER)
    fetch_coder(CODER, folder, given, lambda _: None)
    assert {p.name for p in folder.iterdir()} == {"net.gguf", "dg_lsp.json", "README.md", "manifest.json"}
    assert network_in(find_directory(CODER)).read_bytes() == DATA
    assert "Apache License, Version 2.0" in (folder / "README.md").read_text()
    assert json.loads((folder / "dg_lsp.json").read_text())["prompt"] == "fim" == prompt_of(CODER)
    assert not [p for p in folder.parent.iterdir() if p.name.endswith(".part")]
    digest = verify(folder)
    for name in ("net.gguf", "dg_lsp.json"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(b"x" + kept[1:])
        with pytest.raises(CheckpointError, match=f"{name} does not match"):
            verify(folder)
        (folder / name).write_bytes(kept)
    # Again, from nothing but the data: the same checkpoint.
    fetch_coder(CODER, folder, given, lambda _: None)
    assert verify(folder) == digest


def test_what_fails_leaves_what_was_there(given: Path) -> None:
    folder = folder_of(CODER)
    fetch_coder(CODER, folder, given, lambda _: None)
    given.write_bytes(DATA[:-1])
    with pytest.raises(
        FetchError, match=r"is not Net as it should be; name net.gguf \(18 bytes, .*leave that out"
    ):
        fetch_coder(CODER, folder, given, lambda _: None)
    assert is_current(CODER, folder)


def test_another_description_or_a_file_cut_short_is_not_current(given: Path) -> None:
    folder = folder_of(CODER)
    assert not is_current(CODER, folder)
    fetch_coder(CODER, folder, given, lambda _: None)
    assert is_current(CODER, folder)
    (folder / "dg_lsp.json").write_text("{}")
    assert not is_current(CODER, folder)
    fetch_coder(CODER, folder, given, lambda _: None)
    (folder / "net.gguf").write_bytes(DATA[:-1])
    assert not is_current(CODER, folder)


def test_the_command_fetches_measures_and_says_what_comes_of_it(
    given: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for seconds, word in (
        (0.7, "dg-lsp now uses coder, the best checkpoint"),
        (FAST_ENOUGH + 1, "dg-lsp uses it all the same, since none that is here is quicker"),
    ):
        monkeypatch.setattr(fetch, "line_of", lambda *_, s=seconds: Measured(s, 5))
        assert main(["fetch", CODER, "--file", str(given), "--again"]) == 0
        assert word in capsys.readouterr().out and measured(CODER) == Measured(seconds, 5)
    assert main(["fetch", CODER]) == 0
    assert "is already fetched; --again" in capsys.readouterr().out
    # One that was not measured, as the trial was interrupted, is.
    (folder_of(CODER) / "fetched.json").unlink()
    assert main(["fetch", CODER]) == 0 and measured(CODER)
    given.unlink()
    assert main(["fetch", CODER, "--file", str(given), "--again"]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert main(["fetch", CODER, "--revision", "main"]) == 2
    assert "has one version" in capsys.readouterr().err
