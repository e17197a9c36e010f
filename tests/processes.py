"""The processes that a test has started: engines by their runtime directory, and how much memory one holds."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def engines(runtime: Path) -> list[int]:
    """The engine processes that belong to `runtime`."""
    mark, found = f"DG_LSP_RUNTIME_DIR={runtime}".encode(), []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            inside = mark in (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if inside and b"engine" in words and b"run" in words:
            found.append(int(path.name))
    return found


def resident(process: int) -> int:
    """The bytes of memory that `process` holds; 0 if it has ended."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def end_all(runtime: Path) -> None:
    """Kill all processes of `runtime` but this one, until none is left to start another."""
    mark, end = f"DG_LSP_RUNTIME_DIR={runtime}".encode(), time.monotonic() + 60
    while time.monotonic() < end:
        left = [process for process in _marked(mark) if process != os.getpid()]
        if not left:
            return
        for process in left:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


def _marked(mark: bytes) -> Iterator[int]:
    """The processes with `mark` in their environment; those that have ended have none."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                yield int(process.name)


@contextmanager
def own_runtime() -> Iterator[Path]:
    """A runtime directory for the block alone, which ends the engines that it leaves.

    A socket's path may have only some hundred bytes, so the directory has a short name.
    """
    path, before = Path(tempfile.mkdtemp(prefix="dg-")), os.environ.get("DG_LSP_RUNTIME_DIR")
    os.environ["DG_LSP_RUNTIME_DIR"] = str(path)
    try:
        yield path
    finally:
        end_all(path)
        shutil.rmtree(path, ignore_errors=True)
        if before is None:
            del os.environ["DG_LSP_RUNTIME_DIR"]
        else:
            os.environ["DG_LSP_RUNTIME_DIR"] = before
