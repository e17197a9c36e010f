"""The wheel is whole: installed elsewhere it has its queries and its checkpoint, and it fills."""

import os
import subprocess
import sys
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(out.glob("*.whl"))


def test_queries_and_checkpoint_are_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "dg_lsp/grammars/python/gaps.scm",
        "dg_lsp/grammars/python/language.toml",
        "dg_lsp/engine/embedded/model.safetensors",
        "dg_lsp/engine/embedded/manifest.json",
        "dg_lsp/engine/embedded/tokenizer.json",
        "dg_lsp/py.typed",
    ):
        assert wanted in names
    assert not [n for n in names if n.startswith("tests/") or n.endswith((".bin", ".pt", ".pkl"))]


@pytest.mark.slow
def test_the_installed_wheel_fills_a_gap(wheel: Path, tmp_path: Path) -> None:
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
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == 0:
        assert "--- a/sums.py" in done.stdout
    assert (work / "sums.py").read_text(encoding="utf-8") == SOURCE
