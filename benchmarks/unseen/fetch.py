"""Fetch the packages of an unseen list, each in the pinned version and unpacked into a folder of its own.

    python -m benchmarks.unseen.fetch new FOLDER

Lists are `new.txt` (code first published in 2026) and `fit.txt` (other packages, for fitting the judge). A line names a
package, its version and, in `new.txt`, its last version of 2025. `pin` writes such a line. Nothing fetched is run.
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
_NEW_YEAR = "2026-01-01T00:00:00Z"


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


def fetch(name: str, version: str, folder: Path) -> bool:
    """Unpack the Python files of `name` in `version` into `folder`; False if the index lacks it."""
    with tempfile.TemporaryDirectory() as place:
        if _download([f"{name}=={version}"], Path(place)):
            return False
        for wheel in Path(place).glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(folder, [n for n in packed.namelist() if n.endswith(".py")])
    return True


def pin(name: str) -> Pin:
    """The newest version of `name`, and its last of 2025 by the index's times of upload.

    Needs pip 26 or later, and an index that tells times: `PIP_CONFIG_FILE=/dev/null` keeps local ones out.
    """
    versions = []
    for only in ([], ["--uploaded-prior-to", _NEW_YEAR]):
        with tempfile.TemporaryDirectory() as place:
            _download([*only, name], Path(place))
            versions += [path.name.split("-")[1] for path in Path(place).glob("*.whl")] or [""]
    return Pin(name, *versions)


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
    parser.add_argument("--before", action="store_true", help="fetch the last versions of 2025 instead")
    parser.add_argument("--pin", nargs="*", default=[], help="print the lines of these packages instead")
    given = parser.parse_args()
    if given.pin:
        for found in map(pin, given.pin):
            print(found.name, found.version, found.before)
        return 0
    pins = read_pins(given.list)
    wanted = [(one, one.before if given.before else one.version) for one in pins]
    with ThreadPoolExecutor(4) as pool:
        there = list(pool.map(lambda item: fetch(item[0].name, item[1], given.folder / item[0].name), wanted))
    lacking = [one.name for (one, _), found in zip(wanted, there, strict=True) if not found]
    print(f"{sum(there)} of {len(there)} packages fetched; not there: {', '.join(lacking) or 'none'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
