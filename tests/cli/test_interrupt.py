"""Ctrl+C in `fill`, `trace` and `bot`: exit 130 at once, whatever they are at, and nothing is half written."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dg_lsp.settings import Settings
from tests.cli.test_fill import status_of

# Seconds of processor time from the signal to the end, so that a busy machine fails nothing; and of patience.
SOON, PATIENCE = 2.0, 60
STUBS = "".join(
    f'def stub_{n}(a):\n    """Return a."""\n    raise NotImplementedError\n\n\n' for n in range(40)
)
# A line just begun, above labels that the parser takes seconds over.
SLOW = (
    "export function f(a: number) {\n  let b = \n  switch (a)\n"
    + "".join(f"    case {n}:\n" for n in range(2_000))
    + "  return 1;\n}\n"
)


class Command:
    """A running `dg-lsp`. folder: where its files are."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._log = (folder.parent / "log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dg_lsp", *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            start_new_session=True,
        )
        self._seen = psutil.Process(self.process.pid)

    @property
    def used(self) -> float:
        """Its processor time so far."""
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    @property
    def said(self) -> str:
        """Its messages so far."""
        return Path(self._log.name).read_text()

    def until(self, met: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not met():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.01)

    def interrupt(self) -> None:
        """Press Ctrl+C, as a terminal does it, and check the end."""
        used = self.used
        os.killpg(self.process.pid, signal.SIGINT)
        end = time.monotonic() + PATIENCE
        while (done := os.wait4(self.process.pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < end, "it goes on"
            time.sleep(0.01)
        self.process.returncode = os.waitstatus_to_exitcode(done[1])
        assert self.process.returncode == 130, self.said
        assert done[2].ru_utime + done[2].ru_stime - used < SOON
        assert "Traceback" not in self.said


@pytest.fixture
def folder(tmp_path: Path, runtime: Path) -> Path:
    """A folder with stubs.py, and slow.ts."""
    made = tmp_path / "files"
    made.mkdir()
    (made / "stubs.py").write_text(STUBS)
    (made / "slow.ts").write_text(SLOW + STUBS.replace("def", "function"))
    return made


FILLING = {
    "fill": ("fill", "stubs.py::stub_0", "--write"),
    "trace": ("trace", "stubs.py::stub_0", "--html", "trace.html"),
    "bot": ("bot", "stubs.py", "--json", "report.json"),
}
LONG = "scripted:2000:20"


@pytest.mark.parametrize("name", FILLING)
def test_while_a_model_is_loaded(name: str, folder: Path) -> None:
    command = Command(folder, *FILLING[name], "--checkpoint", "embedded", "--alone")
    command.until(lambda: "importing torch" in command.said)
    command.interrupt()
    assert whole(folder) == STUBS


@pytest.mark.parametrize("name", FILLING)
def test_while_a_gap_is_filled(name: str, folder: Path) -> None:
    command = Command(folder, *FILLING[name], "--checkpoint", LONG)
    command.until(lambda: (status := status_of(Settings(checkpoint=LONG))) is not None and status.passes > 0)
    command.interrupt()
    assert whole(folder) == STUBS


@pytest.mark.parametrize("name", ["fill", "trace", "bot"])
def test_while_a_file_is_read_that_takes_long(name: str, folder: Path) -> None:
    target = "slow.ts" if name == "bot" else "slow.ts:2"
    command = Command(folder, name, target, "--checkpoint", "scripted")
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        while command.used < 1.0 and command.process.poll() is None:
            time.sleep(0.01)
    if command.process.poll() is not None:
        pytest.skip("the file is read at once")
    command.interrupt()
    assert whole(folder) == STUBS


def test_stubs_that_were_filled_before_are_kept(folder: Path) -> None:
    command = Command(folder, *FILLING["bot"], "--checkpoint", "scripted:2:100")
    command.until(lambda: "stub_1: kept" in command.said)
    command.interrupt()
    text = whole(folder)
    kept = text.count("return None")
    assert 2 <= kept < 40 and text == STUBS.replace("raise NotImplementedError", "return None", kept)
    assert f'"kept": {kept}' in (folder / "report.json").read_text()


def whole(folder: Path) -> str:
    """The text of stubs.py, which parses, and beside which no file is left that was not there."""
    assert {path.name for path in folder.iterdir()} <= {"stubs.py", "slow.ts", "report.json"}
    text = (folder / "stubs.py").read_text()
    compile(text, "stubs.py", "exec")
    return text
