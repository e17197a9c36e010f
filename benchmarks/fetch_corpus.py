"""Fetch the packages that the embedded checkpoint learns from, unpacked and not installed.

    python benchmarks/fetch_corpus.py FOLDER [--list FILE]

then `python -m benchmarks.embedded --packages FOLDER --packages .venv/lib/python3.11/site-packages --out DIR`. Names
come from `benchmarks/corpus.txt`, one a line, from the index that pip is set up for; those it does not have are named.
Wheels only, and nothing in them is run.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def fetch(name: str, folder: Path) -> bool:
    """Unpack the newest wheel of `name` into `folder`: its Python files and what it says of itself."""
    with tempfile.TemporaryDirectory() as place:
        asked = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", place, name]
        if subprocess.run([sys.executable, "-m", "pip", *asked], capture_output=True, check=False).returncode:
            return False
        for wheel in Path(place).glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                wanted = [n for n in packed.namelist() if n.endswith(".py") or ".dist-info/" in n]
                packed.extractall(folder, wanted)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", type=Path, default=Path(__file__).with_name("corpus.txt"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    names = given.list.read_text().split()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: fetch(name, given.folder), names))
    lacking = [name for name, there in zip(names, found, strict=True) if not there]
    print(
        f"{len(names) - len(lacking)} of {len(names)} packages fetched; not there: {', '.join(lacking) or 'none'}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
