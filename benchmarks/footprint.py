"""Measure what one checkpoint takes: disk, memory of its engine before and after fills, seconds of its start.

    python -m benchmarks.footprint coder --lines 32 --bodies 4

Starts an engine of its own, fills places in the files of dg_lsp/ by `dg-lsp fill`, and prints a report for
benchmarks/reports. Disk and memory hardly depend on the load of the machine; the start does.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import parser_of
from dg_lsp.checkpoints import folder_of

ROOT = Path(__file__).parents[1]
DG_LSP = [sys.executable, "-m", "dg_lsp"]
_STARTS = 3


def places(lines: int, bodies: int) -> list[str]:
    """Return targets of `dg-lsp fill`: the middle line of `lines` files, then the first function of `bodies` more."""
    files = sorted((ROOT / "dg_lsp").rglob("*.py"), key=lambda path: -path.stat().st_size)
    middles = [f"{path}:{len(path.read_text().splitlines()) // 2}" for path in files[:lines]]
    headers = ((path, re.search(r"^def (\w+)", path.read_text(), re.MULTILINE)) for path in files)
    return middles + [f"{path}::{header[1]}" for path, header in headers if header][:bodies]


def status() -> dict[str, Any]:
    """Return the status of the engine."""
    shown = subprocess.run([*DG_LSP, "engine", "status", "--json"], capture_output=True, check=True)
    return dict(json.loads(shown.stdout))


def bytes_of(*folders: Path) -> int:
    return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def start() -> float:
    """Start the engine, and return the seconds until it was loaded."""
    began = time.monotonic()
    subprocess.run([*DG_LSP, "engine", "start"], check=True, stdout=sys.stderr)
    return time.monotonic() - began


def stop() -> None:
    subprocess.run([*DG_LSP, "engine", "stop"], check=False, stdout=sys.stderr)


def measure(checkpoint: str, lines: int, bodies: int) -> dict[str, dict[str, Any]]:
    """Return the numbers of `checkpoint`: GB on the disk and in memory, seconds of the starts after the first one."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        own = {"DG_LSP_RUNTIME_DIR": folder, "DG_LSP_CHECKPOINT": checkpoint, "XDG_CACHE_HOME": str(cache)}
        os.environ |= own
        try:
            start()  # makes what the cache keeps
            took = list[float]()
            for _ in range(_STARTS):
                stop()
                took.append(start())
            loaded = status()
            for place in places(lines, bodies):
                subprocess.run([*DG_LSP, "fill", place], check=False, capture_output=True)
            filled = status()
        finally:
            stop()
        disk = bytes_of(folder_of(checkpoint), cache)
    sizes = {"disk": disk, "loaded": loaded["memory"], "memory": filled["memory"]}
    found: dict[str, dict[str, Any]] = {name: {"value": round(size / 1e9, 2)} for name, size in sizes.items()}
    found["start"] = {"value": round(median(took), 1), "range": [round(min(took), 1), round(max(took), 1)]}
    found["memory"]["n"] = lines + bodies
    return found


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--lines", type=int, default=32)
    parser.add_argument("--bodies", type=int, default=4)
    given = parser.parse_args()
    numbers = measure(given.checkpoint, given.lines, given.bodies)
    report = {
        "model": given.checkpoint,
        "command": f"python -m benchmarks.footprint {given.checkpoint}",
        "date": date.today().isoformat(),
        "numbers": numbers,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
