"""Functions of real packages cut to stubs and filled: how many lines the fills have, and whether the tests pass.

    python -m benchmarks.bodies fetch FOLDER
    python -m benchmarks.bodies choose FOLDER
    python -m benchmarks.bodies measure FOLDER --code CHECKOUT --checkpoint NAME --json OUT.json

`bodies.json` names the source distributions and the functions. A function counts whose body has 2 to 12 lines, and
whose package's own tests fail while it is a stub and pass with the truth. They run code out of FOLDER with your rights.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.bot import Cut, cuts, with_stub

LIST = Path(__file__).with_suffix(".json")
COUNT, EACH, TRIED = 60, 8, 24  # functions in all, kept and tried of a package
_LEAST, _MOST = 2, 12  # lines of a body
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


def read_list() -> tuple[list[Package], list[Function]]:
    """The packages and functions of `bodies.json`."""
    listed = json.loads(LIST.read_text("utf-8"))
    return [Package(*one) for one in listed["packages"]], [Function(*one) for one in listed["functions"]]


def write_list(packages: Sequence[Package], functions: Sequence[Function]) -> None:
    """Write `bodies.json`, a line for each package and function."""
    parts = [
        ",\n".join(json.dumps(list(asdict(one).values())) for one in part) for part in (packages, functions)
    ]
    LIST.write_text(f'{{"packages": [\n{parts[0]}\n],\n"functions": [\n{parts[1]}\n]}}\n', "utf-8")


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
    """Whether the tests of the package in `work`, its unpacked folder, pass."""
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


def choose(package: Package, folder: Path, kept: int) -> Iterator[Function]:
    """At most `kept` functions of the package, drawn by chance, whose stubs its tests notice."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "work"
        shutil.copytree(folder / package.folder, work)
        if not passes(package, work):
            return
        files = [path for path in sorted((work / package.source).rglob("*.py")) if "test" not in path.name]
        files = [path for path in files if "tests" not in path.relative_to(work).parts]
        found = [cut for path in files for cut in cuts(path, _MOST) if cut.last - cut.first + 1 >= _LEAST]
        random.Random(package.name).shuffle(found)
        for cut in found[:TRIED]:
            if kept and not _passes_with(package, work, cut.path, _stubbed(cut)):
                kept -= 1
                digest = hashlib.sha256(cut.path.read_bytes()).hexdigest()
                inside = cut.path.relative_to(work).as_posix()
                yield Function(package.name, inside, digest, cut.name, cut.first, cut.last, cut.indent)


def _stubbed(cut: Cut) -> str:
    """The file with the function cut to a stub."""
    return with_stub(cut.path.read_text("utf-8"), cut)


def _passes_with(package: Package, work: Path, path: Path, text: str) -> bool:
    """Whether the tests pass with `text` in the file `path`, which is put back afterwards."""
    whole = path.read_bytes()
    try:
        path.write_text(text, "utf-8")
        return passes(package, work)
    finally:
        path.write_bytes(whole)


def measure(folder: Path, code: Path, how: Sequence[str]) -> list[dict[str, Any]]:
    """What became of each function: its fill by the dg_lsp in `code`, the lines of both, and whether the tests pass.

    how: options of `worth_run.py`. The others of several fills are tried where the first one does not pass.
    """
    packages, functions = read_list()
    known = {package.name: package for package in packages}
    asked = []
    for one in functions:
        path = folder / known[one.package].folder / one.path
        whole = path.read_bytes()
        assert hashlib.sha256(whole).hexdigest() == one.sha256, f"{path} is another version"
        cut = Cut(path, one.name, one.first, one.last, one.indent)
        lines = whole.decode().splitlines(keepends=True)
        start = len("".join(lines[: one.first - 1]).encode()) + one.indent
        truth = "".join(lines[one.first - 1 : one.last]).strip()
        asked.append({"path": str(path), "text": _stubbed(cut), "start": start, "truth": truth})
    told = []
    filled = _fills(asked, folder, code, how)
    for one, fill in zip(functions, filled, strict=True):
        package = known[one.package]
        texts = [fill["filled"], *fill["others"]] if fill["offered"] else []
        passing = (n for n, text in enumerate(texts, 1) if _in_copy(package, folder, one.path, text))
        fill |= {"filled": "", "others": len(texts[1:]), "passed": next(passing, 0)}
        told.append({**asdict(one), **fill})
        print(
            f"{one.package} {one.name}: {_lines(fill['text'])} of {_lines(fill['truth'])} lines, {fill['passed']}"
        )
    return told


def _in_copy(package: Package, folder: Path, inside: str, text: str) -> bool:
    """Whether the tests of a copy of the package pass with `text` in one of its files."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "work"
        shutil.copytree(folder / package.folder, work)
        return _passes_with(package, work, work / inside, text)


def _fills(
    asked: Sequence[dict[str, Any]], folder: Path, code: Path, how: Sequence[str]
) -> list[dict[str, Any]]:
    """The answers of `worth_run.py`, in the order of `asked`."""
    with tempfile.TemporaryDirectory() as place:
        stubs, out = Path(place) / "stubs.json", Path(place) / "out.jsonl"
        stubs.write_text(json.dumps(list(asked)), "utf-8")
        runner = Path(__file__).with_name("worth_run.py").resolve()
        command = [sys.executable, "-P", str(runner), "shipped", str(out), "--stubs", str(stubs)]
        environment = {**os.environ, "PYTHONPATH": str(code.resolve()), "OMP_NUM_THREADS": "1"}
        subprocess.run([*command, *how], cwd=folder, env=environment, check=True)
        return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def report(told: Sequence[dict[str, Any]]) -> str:
    """The shares of fills with more than one line where the truth has, and of those that pass their tests."""
    long = [one for one in told if _lines(one["truth"]) > 1]
    several = sum(_lines(one["text"]) > 1 for one in long)
    first, any_of_them = sum(one["passed"] == 1 for one in told), sum(one["passed"] > 0 for one in told)
    offered = sum(one["offered"] for one in told)
    return (
        f"{len(told)} functions: {offered} filled, {several} of {len(long)} with more than one line where the "
        f"truth has, {first} pass their tests, {any_of_them} with one of their fills"
    )


def _lines(text: str) -> int:
    """How many lines of `text` are not blank."""
    return sum(bool(line.strip()) for line in text.splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("fetch", "choose", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--code", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument(
        "--related", choices=("yes", "no"), default="yes", help="read the rest of the package"
    )
    parser.add_argument("--checkpoint", default="embedded")
    parser.add_argument(
        "--alternatives", type=int, default=4, help="fills of a function, as a bot tries them"
    )
    parser.add_argument("--json", type=Path, help="also write each function's result to this file")
    given = parser.parse_args()
    folder = given.folder.resolve()
    packages, functions = read_list()
    if given.command == "fetch":
        for package in packages:
            fetch(package, folder)
    elif given.command == "choose":
        functions = []
        for package in packages:
            functions += choose(package, folder, min(EACH, COUNT - len(functions)))
            write_list(packages, functions)
            print(f"{package.name}: {len(functions)} functions so far", flush=True)
    else:
        how = ["--related", given.related, "--checkpoint", given.checkpoint]
        told = measure(folder, given.code, [*how, "--alternatives", str(given.alternatives)])
        if given.json:
            given.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(report(told))


if __name__ == "__main__":
    main()
