"""Fetch the packages of an unseen list, each in the pinned version and unpacked into a folder of its own.

    python -m benchmarks.unseen.fetch new FOLDER

Lists are `new.txt` (code first published in 2026) and `fit.txt` (other packages, for fitting the judge). A line names a
package, its version and, in `new.txt`, its last version of 2025. Nothing fetched is run.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

LISTS = ("new", "fit")


@dataclass(frozen=True, slots=True)
class Pin:
    """A package and its version; `before` is its last version of 2025, empty where nobody needs it."""

    name: str
    version: str
    before: str = ""


def read_pins(name: str) -> list[Pin]:
    """The packages of the list `name`, one of LISTS."""
    text = Path(__file__).with_name(f"{name}.txt").read_text("utf-8")
    return [Pin(*line.split()) for line in text.splitlines() if line.strip()]


def list_path(name: str) -> Path:
    """The path of the list of holes `name`, one of LISTS."""
    return Path(__file__).with_name(f"{name}.json")


def fetch(name: str, version: str, folder: Path) -> bool:
    """Unpack the Python files of `name` in `version` into `folder`; False if the index lacks it."""
    with tempfile.TemporaryDirectory() as place:
        if _download([f"{name}=={version}"], Path(place)):
            return False
        for wheel in Path(place).glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(folder, [n for n in packed.namelist() if n.endswith(".py")])
    return True


def _download(asked: Sequence[str], place: Path) -> int:
    """Download a wheel without what it needs; return pip's exit status."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(place), *asked]
    return subprocess.run(command, capture_output=True, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", choices=LISTS)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    pins = read_pins(given.list)
    with ThreadPoolExecutor(4) as pool:
        there = list(pool.map(lambda pin: fetch(pin.name, pin.version, given.folder / pin.name), pins))
    missing = [pin.name for pin, found in zip(pins, there, strict=True) if not found]
    print(f"{sum(there)} of {len(there)} packages fetched; missing: {', '.join(missing) or 'none'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
