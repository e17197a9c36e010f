"""Bodies of real packages removed and filled by `dg-lsp bot`: how many fills it keeps, and how many of them are wrong.

    python -m benchmarks.bot FOLDER --package jsonpointer==3.12 --package "uritemplate==4.2.0 tests" --seed 0 \\
        --python PYTHON --checkpoint coder --fills PLACE --json OUT.json

With --fills, what the model writes is kept in the folder PLACE, a file a package, and read from there the next time.
With --mutants no model is asked: four texts of each body are mutants of the true one, or it and three mutants.

FOLDER gets the source distributions. A package may be followed by arguments of its pytest. PYTHON has pytest and what
the tests need. Of each package five functions are chosen by the seed whose body has 2 to 12 lines and whose tests fail
without it; all five are removed, and the bot runs once, or with --alone one after another, and the bot runs for each.
Then every fill that its command has seen is put into the untouched package, alone: it is right if all tests pass. A
right one can be known to be right if it turns a test green while all right fills are in the files and other bodies are
not: of two functions that one test needs, of which one got wrong fills only, no test shows whether the other is right.
The bot does not see which functions the package itself has left unwritten. The packages' code runs with your rights.
"""

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import mutated, parser_of, recorded
from benchmarks.bodies import Package, fetch
from dg_lsp.cli.reports import read_junit
from dg_lsp.gaps.find import Gap, NoGap, find_gaps, find_named
from dg_lsp.gaps.gap import Edit
from dg_lsp.source.document import Document, read_document

STUB = b"raise NotImplementedError"
LEAST, MOST = 2, 12  # lines of a body
# What raises as before and is no stub in brackets.
_ABSTRACT = re.compile(rb"^(\s+raise )NotImplementedError(?:\(\))?(?=\s*$)", re.MULTILINE)
_SECONDS = 300.0  # of one run of the tests


@dataclass(frozen=True, slots=True)
class Suite:
    """The unpacked source distribution in `folder`, and the command that runs its tests there."""

    folder: Path
    command: str

    def passes(self) -> bool:
        """Return whether the tests pass."""
        try:
            done = subprocess.run(
                self.command,
                shell=True,
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def green(self) -> set[str]:
        """Return the names of the tests that pass."""
        with tempfile.TemporaryDirectory() as place:
            report = Path(place, "report.xml")
            command = f"{self.command} --continue-on-collection-errors --junitxml={shlex.quote(str(report))}"
            Suite(self.folder, command).passes()
            return {name for name, how in read_junit(report).items() if not how} if report.exists() else set()

    def passes_with(self, path: Path, data: bytes) -> bool:
        """Return whether the tests pass with `data` in the file `path`, which is restored afterwards."""
        whole = path.read_bytes()
        try:
            path.write_bytes(data)
            return self.passes()
        finally:
            path.write_bytes(whole)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which the tests find the package."""
        path = os.pathsep.join(map(str, (self.folder / "src", self.folder)))
        return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(slots=True)
class Result:
    """The result of one stub: the bot's entry, whether its kept text is right, and the fills it saw, right or not.

    shown: whether a test shows that a right fill is right. None if there is no right one.
    """

    package: str
    stub: dict[str, object]
    kept_right: bool | None = None
    fills: list[tuple[str, bool]] = field(default_factory=list)
    shown: bool | None = None

    @property
    def right(self) -> bytes | None:
        """Return the first fill that is right."""
        return next((text.encode() for text, good in self.fills if good), None)


@dataclass(slots=True)
class Run:
    """The bot's run on one package. code: its exit code. green: whether all tests passed at its end."""

    package: str
    code: int
    green: bool
    results: list[Result]


def choose(suite: Suite, count: int, seed: int) -> Iterator[tuple[Path, str]]:
    """Yield the files and names of `count` functions that the tests need, in an order that `seed` decides."""
    found = [(path, gap.name) for path in _sources(suite.folder) for gap in _bodies(read_document(path))]
    random.Random(seed).shuffle(found)
    taken = list[tuple[Path, str]]()
    for path, name in found:
        inside = any(
            (p == path and f"{name}.".startswith(f"{n}.")) or f"{n}.".startswith(f"{name}.") for p, n in taken
        )
        if len(taken) == count or inside:
            continue
        if not suite.passes_with(path, put(read_document(path), name, STUB)):
            taken.append((path, name))
            yield path, name


def _sources(folder: Path) -> list[Path]:
    paths = sorted(folder.rglob("*.py"))
    return [
        path
        for path in paths
        if not any(
            part.startswith("test") or part in ("docs", "doc", "setup.py")
            for part in path.relative_to(folder).parts
        )
    ]


def _bodies(document: Document) -> list[Gap]:
    """Return the gaps of the bodies with some lines, of functions that no other one in the file is called like."""
    gaps = find_gaps(document, 0, len(document.data))
    names = [gap.name for gap in gaps]
    lines = [document.data[gap.start : gap.end].count(b"\n") + 1 for gap in gaps]
    return [
        gap
        for gap, count in zip(gaps, lines, strict=True)
        if LEAST <= count <= MOST and names.count(gap.name) == 1 and not gap.stub
    ]


def put(document: Document, name: str, body: bytes) -> bytes:
    """Return the text of `document` with `body` as that of the function `name`."""
    gap = find_named(document, name)
    return document.data[: gap.start] + body + document.data[gap.end :]


def body_of(path: Path, name: str) -> bytes | None:
    """Return the body of the function `name` in the file `path`; None if there is none, or it is not written."""
    document = read_document(path)
    try:
        gap = find_named(document, name)
    except NoGap:
        return None
    return None if gap.stub else document.data[gap.start : gap.end]


def measure(
    suite: Suite,
    package: str,
    options: Sequence[str],
    places: Sequence[tuple[Path, str]],
    store: Path | None = None,
) -> Run:
    """Remove the bodies of `places`, let the bot fill them, restore the files, and judge every fill by the tests.

    store: the file of recorded fills.
    """
    whole = {path: path.read_bytes() for path, _ in places}
    with tempfile.TemporaryDirectory() as place:
        seen = Path(place, "seen")
        seen.mkdir()
        try:
            for path in whole:
                path.write_bytes(_ABSTRACT.sub(rb"\1(NotImplementedError)", path.read_bytes()))
            for path, name in places:
                path.write_bytes(put(read_document(path), name, STUB))
            report, code = _run_bot(suite, [*whole], options, Path(place), store)
            green, now = suite.passes(), {place: body_of(*place) for place in places}
        finally:
            for path, data in whole.items():
                path.write_bytes(data)
        results = []
        for path, name in places:
            stub: dict[str, object] = next(
                (s for s in report["stubs"] if (s["path"], s["name"]) == (str(path), name)), {}
            )
            copies = sorted(seen.glob(f"*-{path.stem}.py"), key=lambda copy: copy.stat().st_mtime_ns)
            fills = dict.fromkeys(body for copy in copies if (body := body_of(copy, name)) is not None)
            result = Result(package, stub)
            for body in fills:
                right = suite.passes_with(path, put(read_document(path), name, body))
                result.fills.append((body.decode(), right))
                if body == now[path, name]:
                    result.kept_right = right
            results.append(result)
    _show(suite, places, results)
    return Run(package, code, green, results)


def write_mutants(suite: Suite, places: Sequence[tuple[Path, str]], store: Path, seed: int) -> None:
    """Write fills for the functions `places` into `store`, a file of recorded fills: mutants, or they and the truth."""
    rng, known = random.Random(seed), {}
    for path, name in places:
        document = read_document(path)
        gap = find_named(document, name)
        body = document.data[gap.start : gap.end].decode()
        fills = mutated.fills_of(body, gap.indent, rng)
        place = recorded.place_of(f"/{path.relative_to(suite.folder)}", name)
        known[place] = recorded.entry(
            [Edit(0, len(STUB), fill) for fill in fills], "" if fills else "no mutant"
        )
    store.write_text(json.dumps(known, indent=1))


def _show(suite: Suite, places: Sequence[tuple[Path, str]], results: Sequence[Result]) -> None:
    """Find out which right fills of `results` a test needs, with all others in the files; restore these."""
    whole = {path: path.read_bytes() for path, _ in places}
    try:
        for (path, name), result in zip(places, results, strict=True):
            path.write_bytes(put(read_document(path), name, result.right or STUB))
        green = suite.green()
        for (path, name), result in zip(places, results, strict=True):
            if result.right is None:
                continue
            filled = path.read_bytes()
            path.write_bytes(put(read_document(path), name, STUB))
            result.shown = bool(green - suite.green())
            path.write_bytes(filled)
    finally:
        for path, data in whole.items():
            path.write_bytes(data)


def _run_bot(
    suite: Suite, paths: Sequence[Path], options: Sequence[str], place: Path, store: Path | None
) -> tuple[dict, int]:
    """Run the bot on `paths`; the folder `seen` of `place` gets a copy of the file at each run of the tests."""
    program = ["-m", "dg_lsp"] if store is None else [recorded.__file__, str(store)]
    copy = f'cp {{path}} {shlex.quote(str(place / "seen"))}/$$-"$(basename {{path}})"'
    report = place / "report.json"
    command = [
        sys.executable,
        *program,
        "bot",
        *map(str, paths),
        "--keep-if",
        f"{copy}; {suite.command}",
    ]
    done = subprocess.run(
        [*command, "--json", str(report), *options], cwd=suite.folder, env=suite.environment, check=False
    )
    return json.loads(report.read_bytes()), done.returncode


def table(runs: Sequence[Run]) -> str:
    """Return the numbers of `runs`, a line each."""
    results = [result for run in runs for result in run.results]
    kept = [result for result in results if result.stub.get("outcome") == "kept"]
    right = [result for result in results if result.right is not None]
    held = [result for result in right if result.stub.get("outcome") == "kept" and result.kept_right]
    seen = [good for result in results for _, good in result.fills]
    packages = {run.package for run in runs}
    return "\n".join(
        (
            f"packages: {len(packages)}; bodies removed: {len(results)}; fills seen: {len(seen)}, right: {sum(seen)}",
            f"kept: {len(kept)}; kept that fail the package's tests: {sum(not r.kept_right for r in kept)}",
            f"bodies with a right fill among those seen: {len(right)}; kept of these: {len(held)}; "
            f"of the others, a test shows {sum(result.shown is True for result in right if result not in held)}",
            f"exit status 0 with red tests: {sum(run.code == 0 and not run.green for run in runs)}",
            f"left in the files without being kept: {sum(r.kept_right is not None for r in results if r not in kept)}",
        )
    )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--package", action="append", required=True, metavar="NAME==VERSION [ARGUMENT ...]")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--checkpoint", default="coder")
    parser.add_argument("--alone", action="store_true", help="remove one body at a time")
    parser.add_argument("--count", type=int, default=5, help="of bodies in each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fills", type=Path, metavar="PLACE", help="a folder of recorded fills")
    parser.add_argument("--mutants", action="store_true", help="take mutants of the true body for fills")
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    if given.fills:
        given.fills.mkdir(exist_ok=True)
    runs = list[Run]()
    for words in given.package:
        package, *tests = words.split()
        name, _, version = package.partition("==")
        store = (given.fills / f"{name}.json").absolute() if given.fills else None
        work = given.folder / f"{name.replace('-', '_')}-{version}"
        shutil.rmtree(work, ignore_errors=True)
        fetch(Package(name, version, "", "", ""), given.folder)
        suite = Suite(
            work.absolute(),
            shlex.join([given.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]),
        )
        if not suite.passes():
            sys.exit(f"{package}: its tests fail as they are")
        places = [*choose(suite, given.count, given.seed)]
        print(package, [name for _, name in places], flush=True)
        if given.mutants:
            store = given.folder.absolute() / f"{name}.mutants.json"
            write_mutants(suite, places, store, given.seed)
        for removed in [[place] for place in places] if given.alone else [places]:
            runs.append(measure(suite, package, ["--checkpoint", given.checkpoint], removed, store))
            given.json.write_text(json.dumps([asdict(run) for run in runs], indent=1))
            print(table(runs), flush=True)


if __name__ == "__main__":
    main()
