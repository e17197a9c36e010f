"""The plug-ins into editors and out again, with stand-ins for the editors' programs."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

import dg_lsp
from dg_lsp.cli import doctor, plugins
from dg_lsp.cli.main import main
from dg_lsp.settings import Settings

# A program that notes how it was called, and keeps a list of extensions and the files of one as VS Code does.
CODE = f"""#!/bin/sh
echo "$@" >> "$HOME/calls"
case "$1" in
  --version) echo 1.95.2 ;;
  --install-extension) echo dg-lsp.dg-lsp@0.1.0 > "$HOME/extensions"; {sys.executable} -m zipfile -e "$2" "$HOME" ;;
  --locate-extension) echo "$HOME/extension" ;;
  --uninstall-extension) rm "$HOME/extensions" ;;
  --list-extensions) echo other.thing@1.0; cat "$HOME/extensions" 2>/dev/null; true ;;
esac
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with its own programs and nothing else on PATH but the system's; dg-lsp is not called as a program."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("NVIM_APPNAME", raising=False)
    monkeypatch.setattr(sys, "argv", ["pytest"])
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    return tmp_path


def program(home: Path, name: str, text: str) -> Path:
    path = home / "bin" / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def vsix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path, real = tmp_path / "dg-lsp.vsix", plugins.source
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("extension/package.json", "{}")
    monkeypatch.setattr(plugins, "source", lambda editor: path if editor == "vscode" else real(editor))
    return path


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_neovims_files_go_where_neovim_looks_and_come_out_again(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["editor", "install", "nvim"]) == 0
    place = home / "share/nvim/site/pack/dg-lsp/start/dg-lsp"
    assert {"plugin/dg_lsp.lua", "lsp/dg_lsp.lua", "lua/dg_lsp/health.lua"} < files(place)
    said = capsys.readouterr().out
    assert str(place) in said and "doctor --editor nvim" in said and "is not there" in said
    # Again, as after an update: nothing of an older version is left.
    (place / "lua/old.lua").write_text("-- gone")
    record = json.loads((place / "installed.json").read_text())
    record["files"]["lua/old.lua"] = plugins._sum(place / "lua/old.lua")
    (place / "installed.json").write_text(json.dumps(record))
    assert main(["editor", "install", "nvim"]) == 0 and not (place / "lua/old.lua").exists()
    assert main(["editor", "list"]) == 0 and f"plug-in {dg_lsp.__version__}" in capsys.readouterr().out
    assert main(["editor", "remove", "nvim"]) == 0
    assert not (home / "share/nvim/site/pack/dg-lsp").exists() and (home / "share/nvim/site/pack").exists()
    assert main(["editor", "remove", "nvim"]) == 1


def test_what_the_user_has_changed_or_added_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["editor", "install", "nvim"])
    place = plugins.nvim_folder()
    (place / "plugin/dg_lsp.lua").write_text("-- mine")
    (place / "lua/mine.lua").write_text("-- mine")
    assert main(["editor", "remove", "nvim"]) == 0
    assert files(place) == {"plugin/dg_lsp.lua", "lua/mine.lua"}
    assert "plugin/dg_lsp.lua stays" in capsys.readouterr().out
    assert main(["editor", "install", "nvim"]) == 2
    assert "was not installed by dg-lsp" in capsys.readouterr().err
    assert files(place) == {"plugin/dg_lsp.lua", "lua/mine.lua"}


def test_a_folder_that_is_a_link_is_not_written_through(home: Path, tmp_path: Path) -> None:
    place = plugins.nvim_folder()
    place.parent.mkdir(parents=True)
    (tmp_path / "clone").mkdir()
    place.symlink_to(tmp_path / "clone")
    assert main(["editor", "install", "nvim"]) == 2 and not files(tmp_path / "clone")


def test_another_name_of_the_configuration_is_respected(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIM_APPNAME", "other")
    main(["editor", "install", "nvim"])
    assert files(home / "share/other/site/pack/dg-lsp/start/dg-lsp")


@pytest.mark.parametrize("name", ["code", "codium", "code-server"])
def test_the_extension_goes_in_and_out_by_the_editors_own_program(
    home: Path, vsix: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(home, name, CODE)
    assert main(["editor", "install", "vscode"]) == 0
    assert f"{path} has installed dg-lsp.dg-lsp 0.1.0" in capsys.readouterr().out
    called = (home / "calls").read_text().splitlines()[0].split()
    assert (called[0], Path(called[1]).name, called[2]) == ("--install-extension", vsix.name, "--force")
    assert main(["editor", "list", "--with", name]) == 0 and "extension 0.1.0" in capsys.readouterr().out
    assert main(["editor", "remove", "vscode", "--with", name]) == 0 and not (home / "extensions").exists()
    assert main(["editor", "remove", "vscode"]) == 1


def test_what_cannot_be_done_is_reported_with_the_fix(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["editor", "install", "vscode", "--with", "nothing"]) == 2
    assert "nothing is not on PATH" in capsys.readouterr().err
    program(home, "code", "#!/bin/sh\necho no room >&2\nexit 3\n")
    assert main(["editor", "list"]) == 0 and "failed with 3: no room" in capsys.readouterr().out
    monkeypatch.setattr(dg_lsp, "__file__", str(home / "dg_lsp" / "__init__.py"))
    assert main(["editor", "install", "vscode"]) == 2
    assert "make vsix` (needs npm and Node 20 or newer)" in capsys.readouterr().err
    assert main(["editor", "remove", "vscode"]) == 2 and "failed with 3: no room" in capsys.readouterr().err
    assert main(["editor", "install", "nvim"]) == 2 and "has no Neovim plug-in" in capsys.readouterr().err
    assert main(["editor", "install"]) == 2


# -- doctor --editor


def states(editor: str) -> list[str]:
    return [check(editor, None, Settings()).state for check in doctor.EDITOR_CHECKS]


def test_the_chain_of_neovim_is_checked_link_by_link(home: Path) -> None:
    assert states("nvim") == ["fail", "fail", "fail"]
    program(home, "nvim", "#!/bin/sh\necho NVIM v0.10.4\n")
    assert doctor.check_editor("nvim", None, Settings()).state == "warn"
    program(home, "nvim", "#!/bin/sh\necho NVIM v0.12.4\n")
    program(home, "dg-lsp", f"#!/bin/sh\necho dg-lsp {dg_lsp.__version__}\n")
    main(["editor", "install", "nvim"])
    assert states("nvim") == ["ok", "ok", "ok"]
    record = plugins.nvim_folder() / "installed.json"
    record.write_text(record.read_text().replace(dg_lsp.__version__, "0.0.1"))
    program(home, "dg-lsp", "#!/bin/sh\necho dg-lsp 0.0.1\n")
    assert states("nvim") == ["ok", "warn", "warn"]
    assert doctor.check_plugin("nvim", None, Settings()).fix == "dg-lsp editor install nvim"


@pytest.mark.parametrize("editor", ["nvim", "vscode"])
def test_the_plug_in_finds_the_program_that_installed_it(
    home: Path, vsix: Path, editor: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(home, "code", CODE)
    (home / "venv/bin").mkdir(parents=True)
    server = program(home, "../venv/bin/dg-lsp", f"#!/bin/sh\necho dg-lsp {dg_lsp.__version__}\n").resolve()
    program(home, "dg-lsp", "#!/bin/sh\necho dg-lsp 0.0.1\n")
    monkeypatch.setattr(sys, "argv", [str(server)])
    assert main(["editor", "install", editor]) == 0 and "is not there" not in capsys.readouterr().out
    folder = home / "extension" if editor == "vscode" else plugins.nvim_folder()
    assert (folder / "server.txt").read_text() == f"{server}\n"
    found = doctor.check_server(editor, None, Settings())
    assert found.state == "ok" and str(server) in found.found
    server.unlink()
    assert doctor.check_server(editor, None, Settings()).state == "warn", "the older one on PATH"
    if editor == "nvim":
        assert main(["editor", "remove", editor]) == 0 and not folder.exists()
    assert zipfile.ZipFile(vsix).namelist() == ["extension/package.json"], (
        "the one of the package stays as it is"
    )


def test_a_server_in_the_users_own_folder_is_found(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".local/bin").mkdir(parents=True)
    program(home, "../.local/bin/dg-lsp", f"#!/bin/sh\necho dg-lsp {dg_lsp.__version__}\n")
    assert doctor.check_server("nvim", None, Settings()).state == "ok"
    assert main(["editor", "install", "nvim"]) == 0 and "is not there" not in capsys.readouterr().out


def test_the_chain_of_vs_code_is_checked_link_by_link(home: Path, vsix: Path) -> None:
    program(home, "codium", CODE)
    assert states("vscode") == ["ok", "fail", "fail"]
    main(["editor", "install", "vscode"])
    program(home, "dg-lsp", "#!/bin/sh\nexit 1\n")
    assert states("vscode") == ["ok", "ok", "fail"]


def test_doctor_tells_the_chain(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--editor", "nvim", "--no-fill", "--json"]) == 1
    reported = json.loads(capsys.readouterr().out)
    assert [one["check"] for one in reported["checks"]] == ["editor", "plugin", "server"]
