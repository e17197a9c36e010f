"""`dg-lsp uninstall` lists all that was written, and removes that and nothing else."""

import sys
from pathlib import Path

import pytest

from dg_lsp.cli import plugins
from dg_lsp.cli.main import main
from dg_lsp.model.manifest import matrices_file


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which dg-lsp has written a file of each kind, beside files of others."""
    for variable, folder in (("DATA", "share"), ("CACHE", "cache"), ("STATE", "state")):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(tmp_path / folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("NVIM_APPNAME", raising=False)
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(plugins, "PROGRAMS", ())
    for name in (
        *("share/dg-lsp/coder/net.gguf", "share/dg-lsp/small/net.gguf", "share/dg-lsp/picked.txt"),
        *(
            "cache/dg-lsp/verified.json",
            "state/dg-lsp/use.json",
            "run/5-0123456789-cpu.log",
            "run/5-0123456789-cpu.lock",
        ),
        *("share/other/file", "cache/other/file", "run/notes.txt", "run/build.log"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 1_000_000)
    plugins.plugin_of("nvim").install()
    return tmp_path


def files(home: Path) -> set[str]:
    return {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}


def test_without_yes_it_lists_and_removes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(home)
    assert main(["uninstall"]) == 0
    out = capsys.readouterr().out
    assert files(home) == before and "Nothing was removed" in out
    assert f"     3.0 MB  checkpoints: {home / 'share/dg-lsp'}\n" in out
    for named in ("cache/dg-lsp", "state/dg-lsp", "run", "share/nvim/site/pack/dg-lsp/start/dg-lsp"):
        assert f"{home / named}\n" in out
    assert "To remove the program" in out and sys.prefix in out


def test_with_yes_all_of_it_goes_and_nothing_else(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uninstall", "--yes"]) == 0
    assert files(home) == {"share/other/file", "cache/other/file", "run/notes.txt", "run/build.log"}
    capsys.readouterr()
    assert main(["uninstall", "--yes"]) == 0
    assert "has written nothing" in capsys.readouterr().out


def test_one_checkpoint_goes_alone_with_all_that_was_made_of_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("coder", "small"):
        for made in ("in 4 bits", "in 8 bits"):
            kept = matrices_file(home / f"share/dg-lsp/{name}/net.gguf", made)
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(name.encode())
    before = files(home)
    assert main(["uninstall", "coder", "--yes"]) == 0
    assert "its matrices" in capsys.readouterr().out
    gone = before - files(home)
    assert "share/dg-lsp/coder/net.gguf" in gone and len(gone) == 3
    assert [path.read_bytes() for path in (home / "cache/dg-lsp/matrices").iterdir()] == [b"small"] * 2
    assert main(["uninstall", "coder"]) == 2
    assert "the checkpoint coder is not here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "meant"), [("codr", "coder"), ("Coder-0.5B", "coder-0.5b"), ("smal", "small")]
)
def test_a_name_that_is_misspelt_is_refused_with_the_nearest(
    home: Path, name: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(home)
    assert main(["uninstall", name, "--yes"]) == 2 and files(home) == before
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_of_a_linked_folder_only_the_link_goes(home: Path) -> None:
    (home / "disk").mkdir()
    (home / "share/dg-lsp").rename(home / "disk/models")
    (home / "share/dg-lsp").symlink_to(home / "disk/models")
    assert main(["uninstall", "--yes"]) == 0
    assert (home / "disk/models/coder/net.gguf").exists() and not (home / "share/dg-lsp").is_symlink()
