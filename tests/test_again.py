"""`make test` forgives few tests that fail beside others and pass alone, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PASSES = "def test_passes(): pass\n"
FLAKY = """
import pathlib
def test_flaky():
    mark = pathlib.Path(__file__).with_name("mark")
    known = mark.exists()
    mark.touch()
    assert known
"""
FAILS = "import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_fails(n): assert False\n"


@pytest.mark.parametrize(
    ("text", "workers", "code", "said"),
    [
        (PASSES + FLAKY, "1", 0, "failed beside others, passed alone: test_some.py::test_flaky"),
        (FLAKY + FAILS.format(count=1), "0", 1, "failed beside others, failed alone: test_some.py::test_"),
        (PASSES + FAILS.format(count=4), "1", 1, ""),
        ("import nothing_of_this_name\n", "1", 1, ""),
        ("", "0", 5, ""),
    ],
    ids=["flaky", "red", "many", "broken", "empty"],
)
def test_few_failures_are_tried_once_more(
    tmp_path: Path, text: str, workers: str, code: int, said: str
) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_some.py").write_text(text)
    command = [sys.executable, "-m", "tests.again", "-n", workers]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": "-p no:hypothesispytest"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == code, done.stdout
    assert said in done.stdout and ("once more" in done.stdout) == bool(said)
