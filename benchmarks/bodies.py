"""Functions of real packages cut to stubs and filled: how many lines the fills have, and whether the tests pass.

    python -m benchmarks.bodies fetch FOLDER
    python -m benchmarks.bodies measure FOLDER --checkpoint NAME --json OUT.json

`bodies.json` names the source distributions and the functions. A function counts whose body has 2 to 12 lines, and
whose package's own tests fail while it is a stub and pass with the truth. They run code out of FOLDER with your rights.
"""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import parser_of
from benchmarks.unseen.projects import Projects
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.fill import FillOptions, fill_gap
from dg_lsp.gaps.find import Gap, find_gaps
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

LIST = Path(__file__).with_suffix(".json")
_SECONDS = 300.0  # of one run of the tests


@dataclass(frozen=True, slots=True)
class Package:
    """A source distribution: its unpacked folder, and in it the package, what is on the path, and the tests."""

    name: str
    version: str
    source: str
    root: str
    tests: str

    @property
    def folder(self) -> str:
        """The folder that its archive unpacks to."""
        return f"{self.name}-{self.version}"


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its package, its file in the package's folder, the file's sha256, and the lines of its body."""

    package: str
    path: str
    sha256: str
    name: str
    first: int
    last: int
    indent: int


def with_stub(text: str, function: Function) -> str:
    """`text` with the body of a function replaced by NotImplementedError."""
    lines = text.splitlines(keepends=True)
    stub = f"{' ' * function.indent}raise NotImplementedError\n"
    return "".join([*lines[: function.first - 1], stub, *lines[function.last :]])


def read_list() -> tuple[list[Package], list[Function]]:
    """The packages and functions of `bodies.json`."""
    listed = json.loads(LIST.read_text("utf-8"))
    return [Package(*one) for one in listed["packages"]], [Function(*one) for one in listed["functions"]]


def fetch(package: Package, folder: Path) -> None:
    """Unpack the source distribution of `package` into `folder`. pip runs its build script to learn its name."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        command += ["--dest", place, f"{package.name}=={package.version}"]
        subprocess.run(command, check=True)
        for archive in Path(place).glob("*.tar.gz"):
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")


def passes(package: Package, work: Path) -> bool:
    """Return whether the tests of the package in `work`, its unpacked folder, pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *package.tests.split()]
    path = os.pathsep.join([str(work / package.root), str(work)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=work, env=environment, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _passes_with(package: Package, work: Path, path: Path, text: str) -> bool:
    """Return whether the tests pass with `text` in the file `path`, which is restored afterwards."""
    whole = path.read_bytes()
    try:
        path.write_text(text, "utf-8")
        return passes(package, work)
    finally:
        path.write_bytes(whole)


async def measure(folder: Path, settings: Settings, count: int) -> AsyncIterator[dict[str, Any]]:
    """The result of each function: its fill, the truth, and the number of the first of `count` fills that passes.

    `passed` is 0 if none does. The others of several fills are tried where the first one does not pass.
    """
    packages, functions = read_list()
    known, projects = {package.name: package for package in packages}, Projects(folder)
    engine = LocalEngine.open(settings)
    try:
        for one in functions:
            path = folder / known[one.package].folder / one.path
            document, gap, truth = stub_at(path, one)
            options = FillOptions(count, index=projects.index(path))
            outcome = await fill_gap(engine, document, gap, settings, options)
            edits = [outcome.edit, *outcome.others] if outcome.edit else []
            texts = [apply_edit(document, edit).text for edit in edits if edit]
            passing = (
                n for n, text in enumerate(texts, 1) if _in_copy(known[one.package], folder, one.path, text)
            )
            fill = edits[0].text if edits and edits[0] else ""
            yield asdict(one) | {"text": fill, "truth": truth, "passed": next(passing, 0), "why": outcome.why}
    finally:
        await engine.close()


def stub_at(path: Path, function: Function) -> tuple[Document, Gap, str]:
    """The file with the function cut to a stub, the gap of that stub, and the body that was there."""
    whole = path.read_bytes()
    assert hashlib.sha256(whole).hexdigest() == function.sha256, f"{path} is another version"
    lines = whole.decode().splitlines(keepends=True)
    document = Document(path.as_uri(), "python", 0, with_stub(whole.decode(), function).encode())
    start = len("".join(lines[: function.first - 1]).encode()) + function.indent
    gaps = find_gaps(document, 0, len(document.data))
    gap = next(gap for gap in gaps if gap.start <= start <= gap.end and gap.stub)
    return document, gap, "".join(lines[function.first - 1 : function.last]).strip()


def _in_copy(package: Package, folder: Path, inside: str, text: str) -> bool:
    """Return whether the tests of a copy of the package pass with `text` in one of its files."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "work"
        shutil.copytree(folder / package.folder, work)
        return _passes_with(package, work, work / inside, text)


def report(records: Sequence[dict[str, Any]]) -> str:
    """The shares of fills with more than one line where the truth has, and of those that pass their tests."""
    long = [one for one in records if _lines(one["truth"]) > 1]
    several = sum(_lines(one["text"]) > 1 for one in long)
    first, any_of_them = sum(one["passed"] == 1 for one in records), sum(one["passed"] > 0 for one in records)
    offered = sum(bool(one["text"]) for one in records)
    return (
        f"{len(records)} functions: {offered} filled, {several} of {len(long)} with more than one line where the "
        f"truth has, {first} pass their tests, {any_of_them} with one of their fills"
    )


async def _printed(results: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """All results, each printed as soon as it is known."""
    records = []
    async for one in results:
        records.append(one)
        lines = f"{_lines(one['text'])} of {_lines(one['truth'])} lines"
        print(f"{one['package']} {one['name']}: {lines}, {one['passed']} {one['why']}", flush=True)
    return records


def _lines(text: str) -> int:
    """The number of lines of `text` that are not blank."""
    return sum(bool(line.strip()) for line in text.splitlines())


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("command", choices=("fetch", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument(
        "--alternatives", type=int, default=4, help="fills of a function, as a bot tries them"
    )
    parser.add_argument("--json", type=Path, help="also write each function's result to this file")
    given = parser.parse_args()
    folder = given.folder.resolve()
    if given.command == "fetch":
        for package in read_list()[0]:
            fetch(package, folder)
    else:
        settings = Settings(threads=1, checkpoint=given.checkpoint)
        records = asyncio.run(_printed(measure(folder, settings, given.alternatives)))
        if given.json:
            given.json.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(report(records))


if __name__ == "__main__":
    main()
