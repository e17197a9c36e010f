"""What all tests share: one torch thread, hypothesis' settings, and a runtime directory for each test with engines."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings


def pytest_configure() -> None:
    # Set before torch is imported anywhere, and inherited by the processes that tests start; two test runs on a
    # small machine then do not fight for cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # The same examples in each run, without a time limit, so that a busy machine and a lucky draw turn nothing red;
    # HYPOTHESIS_PROFILE=search looks for new ones.
    settings.register_profile("same", max_examples=300, deadline=None, derandomize=True, database=None)
    settings.register_profile("few", max_examples=40, deadline=None, derandomize=True, database=None)
    settings.register_profile("search", max_examples=10_000, deadline=None, print_blob=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No test meets another's engine, and none is left behind. A socket's path may have only some hundred bytes."""
    path = Path(tempfile.mkdtemp(prefix="dg-"))
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(path))
    yield path
    subprocess.run(
        [sys.executable, "-m", "dg_lsp", "engine", "stop", "--all"],
        check=False,
        capture_output=True,
        timeout=60,
    )
    # One that was being started in the test's last moment listened too late to hear of it.
    mark = f"DG_LSP_RUNTIME_DIR={path}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)
    shutil.rmtree(path, ignore_errors=True)
