"""What is published is whole: the sdist has its tests, and the wheel made of it fills where it is installed."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTENSION = ROOT / "editors/vscode/dg-lsp.vsix"  # built by `make vsix`; git ignores it
SOURCE = '''def add(a, b):
    """Return the sum of a and b."""
    pass


def double(a):
    """Return twice a."""
    return add(a, a)
'''


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


def test_the_sdist_holds_what_its_makefile_and_tests_use(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    ours = {
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "benchmarks", "editors/nvim", "examples", "dg_lsp", "grammars")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".scm", ".toml", ".sh", ".lua")
    }
    wanted = {
        "Makefile",
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "hatch_build.py",
        ".ci/constraints.txt",
        ".ci/run",
        *ours,
    }
    assert not sorted(wanted - names)


def test_queries_and_checkpoint_are_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "dg_lsp/grammars/python/gaps.scm",
        "dg_lsp/grammars/python/language.toml",
        "dg_lsp/model/embedded/model.safetensors",
        "dg_lsp/model/embedded/manifest.json",
        "dg_lsp/model/embedded/tokenizer.json",
        "dg_lsp/py.typed",
        "dg_lsp/editors/nvim/plugin/dg_lsp.lua",
        "dg_lsp/editors/nvim/lsp/dg_lsp.lua",
    ):
        assert wanted in names
    assert ("dg_lsp/editors/vscode/dg-lsp.vsix" in names) == EXTENSION.exists()
    assert not [n for n in names if n.startswith("tests/") or n.endswith((".bin", ".pt", ".pkl"))]


def test_the_installed_wheel_fills_a_gap(wheel: Path, tmp_path: Path, runtime: Path) -> None:
    place, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    (work / "sums.py").write_text(SOURCE, encoding="utf-8")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(place),
        str(wheel),
    ]
    subprocess.run(install, check=True)
    # The dependencies come from this environment; the package itself must come from the wheel alone.
    environment = {**os.environ, "PYTHONPATH": str(place)}
    where = [sys.executable, "-c", "import dg_lsp; print(dg_lsp.__file__)"]
    found = subprocess.run(where, cwd=work, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(place))
    fill = [sys.executable, "-m", "dg_lsp", "fill", "sums.py::add"]
    done = subprocess.run(fill, cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("--- a/sums.py\n+++ b/sums.py\n") and "\n-    pass\n" in done.stdout
    assert (work / "sums.py").read_text(encoding="utf-8") == SOURCE
    # The plug-in for Neovim comes from the wheel, too.
    editor = [sys.executable, "-m", "dg_lsp", "editor", "install", "nvim"]
    subprocess.run(editor, cwd=work, env={**environment, "XDG_DATA_HOME": str(tmp_path)}, check=True)
    plugin = tmp_path / "nvim/site/pack/dg-lsp/start/dg-lsp/plugin/dg_lsp.lua"
    assert plugin.read_bytes() == (place / "dg_lsp/editors/nvim/plugin/dg_lsp.lua").read_bytes()


def test_a_wheel_without_the_extension_is_built_with_a_warning(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name in ("dg_lsp/__init__.py", "grammars/x/gaps.scm"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    command = [sys.executable, "-m", "build", "--wheel", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "`make wheel` builds both" in done.stdout + done.stderr
    (tmp_path / "editors/vscode").mkdir(parents=True)
    (tmp_path / "editors/vscode/dg-lsp.vsix").write_bytes(b"PK")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "make wheel" not in done.stdout + done.stderr


def test_the_makefile_packs_the_extension_into_the_wheel_first() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^wheel: .*\bvsix\b", makefile, re.MULTILINE)


# Stand-ins for the parts of a command that need a network: the dependencies are those of this environment.
# What the commands become without a network: the wheel is there, and its packages are those of this environment.
OFFLINE = {
    r"git clone .*": "true",
    r"make install": f"sed -e '/ uv$/d' -e 's/uv.* pip install.* --/pip\" install --quiet --no-deps --no-index --/' "
    f"'{ROOT}/install.sh' > install.sh && sh install.sh dist/*.whl",
    r"\S+ fetch coder": "true",
}
NVIM = ROOT / ".editors/nvim/bin/nvim"  # of `make editors`; without it a stand-in says its version
ASK = """
local ok, answer = pcall(function()
  local client = function() return vim.lsp.get_clients({ bufnr = 0 })[1] end
  assert(vim.wait(60000, function() return client() and client().initialized end), "no server")
  local where = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = { line = 1, character = 11 } }
  where.context = { triggerKind = 1 }
  return client():request_sync("textDocument/inlineCompletion", where, 60000, 0)
end)
io.stdout:write(vim.inspect(answer))
vim.cmd("qall!")
"""
CODE = """#!/bin/sh
case "$1" in
  --version) echo 1.95.2 ;;
  --install-extension) cp "$2" "$HOME/extension" ;;
  --locate-extension) echo "$HOME/nowhere" ;;
  --list-extensions) test -s "$HOME/extension" && echo dg-lsp.dg-lsp@0.1.0 ;;
esac
"""


def readme_commands() -> list[str]:
    """The commands of README's section on installing, the sections of the editors included."""
    section = (
        (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Install")[2].partition("\n## ")[0]
    )
    return re.findall(r"^\$ (.*?)(?:  +#.*)?$", section, re.MULTILINE)


def test_the_commands_of_the_readme_install_the_wheel_where_nothing_is(
    wheel: Path, tmp_path: Path, runtime: Path
) -> None:
    home = tmp_path / "home"
    (home / "programs").mkdir(parents=True)
    (home / "dist").mkdir()
    (home / "dist" / wheel.name).symlink_to(wheel)
    (home / "programs/python3").symlink_to(os.path.realpath(sys.executable))
    (home / "programs/code").write_text(CODE)
    (home / "programs/code").chmod(0o755)
    if NVIM.exists():
        (home / "programs/nvim").write_text(f'#!/bin/sh\nexec {NVIM} "$@"\n')
    else:
        (home / "programs/nvim").write_text("#!/bin/sh\necho NVIM v0.12.4\n")
    (home / "programs/nvim").chmod(0o755)
    path = f"{home / '.local/bin'}:{home / 'programs'}:/usr/bin:/bin"
    environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "DG_LSP_RUNTIME_DIR": str(runtime)}
    commands = readme_commands()
    assert len(commands) == 4
    if EXTENSION.exists():
        commands.append(commands[-1].replace("nvim", "vscode"))
    for command in commands:
        line = command
        for pattern, instead in OFFLINE.items():
            line = re.sub(pattern, instead, line)
        done = subprocess.run(
            ["bash", "-ec", line], cwd=home, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        if command == "make install":
            here = next(path for path in sys.path if path.endswith("site-packages"))
            site = next((home / ".dg-lsp/lib").glob("python*/site-packages"))
            (site / "dependencies.pth").write_text(f"import sys; sys.path.append({here!r})\n")
    # An editor that is started from a menu has another PATH.
    program = f"{home / '.local/bin/dg-lsp'}\n"
    plugin = home / ".local/share/nvim/site/pack/dg-lsp/start/dg-lsp"
    assert (plugin / "server.txt").read_text() == program
    if EXTENSION.exists():
        assert zipfile.ZipFile(home / "extension").read("extension/server.txt").decode() == program
    if not NVIM.exists():
        return
    (home / "ask.lua").write_text(ASK)
    (home / "sums.py").write_text("def add(first, second):\n    return \n")
    ask = ["nvim", "--headless", "sums.py", "-c", "luafile ask.lua"]
    done = subprocess.run(
        ask, cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    assert "insertText" in done.stdout, done.stdout + done.stderr
