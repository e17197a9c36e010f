"""The programs that dg-lsp starts: where they start, and what they find there."""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dg_lsp.processes import environment, find_program, python, run, start, start_talking, start_users_command

WHERE = "import os; print(os.getcwd(), os.environ['PATH'], os.environ.get('PYTHONPATH'))"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a program, as the current folder, and some relative folders in lists."""
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the workspace')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".::/usr/bin:bin:/bin")
    monkeypatch.setenv("PYTHONPATH", ".")
    return tmp_path


def by_start(command: list[str]) -> str:
    with tempfile.TemporaryFile() as output:
        assert start(command, output, {}).wait() == 0
        output.seek(0)
        return output.read().decode()


def by_talking(command: list[str]) -> str:
    async def said() -> str:
        process = await start_talking(command, 1 << 16)
        return (await process.communicate())[0].decode()

    return asyncio.run(said())


@pytest.mark.parametrize("started", [lambda command: run(command, 60).stdout, by_start, by_talking])
def test_a_program_of_ours_starts_elsewhere(started: Callable[[list[str]], str], folder: Path) -> None:
    assert started(python("-c", f"import json; {WHERE}")) == "/ /usr/bin:/bin None\n"


def test_a_program_is_found_in_absolute_folders_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_program("tool") is None
    assert find_program("./tool") == str(folder / "tool")
    assert find_program("sh") in ("/usr/bin/sh", "/bin/sh")
    monkeypatch.setenv("PATH", f".:{folder}")
    assert find_program("tool") == str(folder / "tool")
    monkeypatch.setenv("PATH", ".:")
    assert find_program("sh") is None and "PATH" not in environment()


def test_the_users_own_command_runs_where_the_user_is(folder: Path) -> None:
    async def ran() -> str:
        with tempfile.TemporaryFile() as output:
            command = (
                f'{sys.executable} -c \'import os; print(os.getcwd(), os.environ["PATH"], os.environ["A"])\''
            )
            process = await start_users_command(f"env -u PYTHONPATH {command}", output, {"A": "1"})
            await process.wait()
            output.seek(0)
            return output.read().decode()

    assert asyncio.run(ran()) == f"{folder} .::/usr/bin:bin:/bin 1\n"


def test_a_program_that_takes_too_long_or_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(TimeoutError):
        run(python("-c", "import time; time.sleep(60)"), 0.2)
    with pytest.raises(OSError, match="No such file"):
        run([str(folder / "none")], 5)
