"""Fetch the packages of a list, unpacked and not installed; nothing in them is run.

    python -m benchmarks.unseen.fetch new FOLDER

`new` is code first published in 2026, `fit` other packages, for fitting the judge, each in a folder of its own. A line
of their lists names a package, its version and, in `new.txt`, its last version of 2025. `corpus`
(`benchmarks/corpus.txt`, the newest versions) is what the embedded checkpoint learns from:
`python -m benchmarks.embedded --packages FOLDER --packages .venv/lib/python3.11/site-packages --out DIR`.
"""

import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks import parser_of

LISTS = ("new", "fit")
CORPUS = Path(__file__).parents[1] / "corpus.txt"


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


def fetch(asked: str, folder: Path) -> bool:
    """Unpack the wheel of `asked`: its Python files and its metadata; return False if the index does not have it."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", place, asked]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return False
        for wheel in Path(place).glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                wanted = [n for n in packed.namelist() if n.endswith(".py") or ".dist-info/" in n]
                packed.extractall(folder, wanted)
    return True


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("list", choices=(*LISTS, "corpus"))
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.list == "corpus":
        wanted = dict.fromkeys(CORPUS.read_text().split(), given.folder)
    else:
        wanted = {f"{pin.name}=={pin.version}": given.folder / pin.name for pin in read_pins(given.list)}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fetch, wanted, wanted.values()))
    missing = [name for name, there in zip(wanted, found, strict=True) if not there]
    print(f"{sum(found)} of {len(found)} packages fetched; missing: {', '.join(missing) or 'none'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
