"""What is published is whole: the sdist has its tests, and the wheel made of it fills where it is installed."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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
    """A folder with the sdist, and the wheel that was built from it."""
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
    wanted = {"Makefile", "LICENSE", "README.md", "pyproject.toml", ".ci/constraints.txt", ".ci/run", *ours}
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
    # It is built by `make vsix`, and git ignores it.
    built = (ROOT / "editors/vscode/dg-lsp.vsix").exists()
    assert ("dg_lsp/editors/vscode/dg-lsp.vsix" in names) == built
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
