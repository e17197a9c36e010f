"""The processes that a test has started: engines by their runtime directory, and how much memory one holds."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
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
        os.environ["DG_LSP_RUNTIME_DIR"] = str(path)
        command = [sys.executable, "-m", "dg_lsp", "engine", "stop", "--all"]
        subprocess.run(command, check=False, capture_output=True, timeout=300)
        # One that was being started in the last moment listened too late to hear of it.
        mark = f"DG_LSP_RUNTIME_DIR={path}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    mark in (process / "environ").read_bytes().split(b"\0")
                    and int(process.name) != os.getpid()
                ):
                    os.kill(int(process.name), signal.SIGKILL)
        shutil.rmtree(path, ignore_errors=True)
        if before is None:
            del os.environ["DG_LSP_RUNTIME_DIR"]
        else:
            os.environ["DG_LSP_RUNTIME_DIR"] = before
