"""The sources that places are taken out of: the packages of a set, fetched and unpacked, and their files.

`sources.txt` has a package a line: its set, language, registry, name, version, and the folders of it that count, if not
all do. Python's packages are those of benchmarks/unseen. The packages of `new` were first published in 2025 or later,
or the files that count were: a file whose header names an earlier year is left out.
"""

import re
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.unseen import fetch as wheels

SETS = ("fit", "new")
SUFFIXES = {"python": ".py", "typescript": ".ts", "go": ".go", "rust": ".rs", "java": ".java"}
_LIST = Path(__file__).with_name("sources.txt")
_SMALLEST, _LARGEST = 1_000, 60_000  # bytes of a file
_YEAR = re.compile(r"[Cc]opyright[^\n]{0,20}?\b((?:19|20)\d\d)")
_HEADER = 1_500  # characters
_FIRST_YEAR = 2025


@dataclass(frozen=True, slots=True)
class Package:
    """A package of a registry; `folders` are those of it that count, all if there are none."""

    language: str
    registry: str
    name: str
    version: str
    folders: tuple[str, ...] = ()

    def root(self, sources: Path) -> Path:
        """Return its folder below `sources`, the folder of its set."""
        return sources / self.language / re.sub(r"[^\w.-]", "_", self.name)


def packages(name: str, language: str) -> list[Package]:
    """Return the packages of the set `name` in `language`."""
    if language == "python":
        return [Package(language, "pypi", pin.name, pin.version) for pin in wheels.read_pins(name)]
    rows = [line.split() for line in _LIST.read_text("utf-8").splitlines()]
    return [
        Package(language, registry, package, version, tuple(folders))
        for owner, own, registry, package, version, *folders in rows
        if (owner, own) == (name, language)
    ]


def fetch(package: Package, sources: Path) -> bool:
    """Fetch `package` into its folder below `sources`, if it is not there; return whether it is there then."""
    root = package.root(sources)
    if not root.exists():
        print(f"fetching {package.name} {package.version}", flush=True)
        with tempfile.TemporaryDirectory() as place:
            into = Path(place) / "unpacked"
            into.mkdir()
            if not _FETCHERS[package.registry](package, Path(place), into):
                print(f"left out: {package.name} {package.version} is not to be had", flush=True)
                return False
            _keep(package, into, root)
    return True


def files(package: Package, sources: Path) -> list[Path]:
    """Return the files of `package` that places may be in, in the order of their paths."""
    return [path for path in sorted(package.root(sources).rglob("*")) if path.is_file() and _counts(path)]


def is_new(text: str) -> bool:
    """Return whether the header of a file names no year before 2025.

    A generated file is not new: nobody types it.
    """
    header = text[:_HEADER]
    years = [int(found[1]) for found in _YEAR.finditer(header)]
    return "DO NOT EDIT" not in header and not any(year < _FIRST_YEAR for year in years)


def _counts(path: Path) -> bool:
    """Return whether the file at `path` is of a usual size and written by hand."""
    return _SMALLEST < path.stat().st_size < _LARGEST and not path.name.endswith(".d.ts")


def _keep(package: Package, unpacked: Path, root: Path) -> None:
    """Copy the sources in the language of `package` from the folder `unpacked` to `root`."""
    for archive in unpacked.rglob("src.zip"):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(unpacked / "src")
    suffix = SUFFIXES[package.language]
    root.mkdir(parents=True)
    for path in unpacked.rglob(f"*{suffix}"):
        own = path.relative_to(unpacked)
        wanted = not package.folders or set(package.folders) & set(own.parts)
        if wanted and path.is_file() and not path.is_symlink():
            (root / own).parent.mkdir(parents=True, exist_ok=True)
            (root / own).write_bytes(path.read_bytes())


def _run(command: list[str], folder: Path) -> bool:
    """Run `command` in `folder`; return whether it succeeded."""
    try:
        return not subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


def _wheel(package: Package, _: Path, into: Path) -> bool:
    """Unpack the wheel of `package`."""
    return wheels.fetch(f"{package.name}=={package.version}", into)


def _npm(package: Package, place: Path, into: Path) -> bool:
    """Unpack the archive that the npm package was published as."""
    fetched = _run(["npm", "pack", "--silent", f"{package.name}@{package.version}"], place)
    return fetched and all(
        _run(["tar", "-xzf", str(one), "-C", str(into)], place) for one in place.glob("*.tgz")
    )


def _debian(package: Package, place: Path, into: Path) -> bool:
    """Unpack a package of Debian's unstable distribution; it is not installed, and no other list is changed."""
    fetched = _unstable(place) and _run(
        ["apt-get", "-c", "apt.conf", "download", f"{package.name}={package.version}"], place
    )
    return fetched and all(
        _run(["dpkg-deb", "-x", str(one), str(into)], place) for one in place.glob("*.deb")
    )


def _unstable(place: Path) -> bool:
    """Write a configuration of apt for the unstable distribution to `place`, with its list of packages."""
    sites = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    if not sites:
        return False
    (place / "lists" / "partial").mkdir(parents=True)
    (place / "unstable.list").write_text(f"deb {sites[0]} sid main\n")
    (place / "apt.conf").write_text(
        f'Dir::State::Lists "{place}/lists";\nDir::Etc::sourcelist "{place}/unstable.list";\n'
        f'Dir::Etc::sourceparts "-";\nDir::Cache "{place}/cache";\nAPT::Sandbox::User "root";\n'
    )
    return _run(["apt-get", "-c", "apt.conf", "update"], place)


_FETCHERS: dict[str, Callable[[Package, Path, Path], bool]] = {"pypi": _wheel, "npm": _npm, "debian": _debian}
