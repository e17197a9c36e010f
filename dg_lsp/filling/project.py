"""The files of a project: which are its own, which may be read, and an index of those near one file.

Reads folders and files; follows no links.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dg_lsp.context import LARGEST, Index, Other, Stamp, family_of
from dg_lsp.files.excluded import excluding_file, excluding_names, names_of, path_of
from dg_lsp.files.ignored import UNIGNORED, Which, ignored, listed
from dg_lsp.files.ignoring import rules_stamp
from dg_lsp.settings import Settings
from dg_lsp.source.document import DocumentError, read_document
from dg_lsp.source.language import UnknownLanguage, has_language, language_of

# Folders of other people's code and of build results; so are hidden folders and those of installed packages.
JUNK = {
    *("__pycache__", "node_modules", "bower_components", "site-packages", "venv", "env", "virtualenv"),
    *("vendor", "third_party", "build", "dist", "out", "target", "coverage", "htmlcov"),
}
# Files whose folder is a project's root.
_ROOTS = (".git", ".hg", "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml")
STAMP = 4  # the numbers of a stamp that say which file it is and when it changed
# The most entries of folders to look at: a home folder opened as a project costs no more than a large project.
_ENTRIES = 50_000
# The most bytes of files near one file that a command reads, and the most seconds that this takes.
_NEAR, _SECONDS = 2 << 20, 1.0


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for files that may be read: below `roots`, and named by no glob of `exclude`.

    git: nor those that git ignores.
    """

    roots: tuple[Path, ...]
    exclude: Sequence[str]
    git: bool = False

    def excludes(self, path: Path | str) -> bool:
        """Return whether a glob names the file at `path`."""
        return bool(excluding_file(str(path), map(str, self.roots), self.exclude))

    def stamp(self, path: Path) -> Stamp | None:
        """Return the stamp of the file at `path`, with the state of what git ignores there if that matters."""
        found = stamp_of(path)
        return (*found, rules_stamp(path.parent)) if found is not None and self.git else found


def project_files(folder: Path, which: Which = UNIGNORED) -> list[Path]:
    """Return the project's own files below `folder`, sorted: those that git tracks, or all that it does not ignore.

    Where git lists none they are all files outside of hidden folders and JUNK.
    """
    found = listed(folder, which) or _walked(folder)
    # During a merge git lists a file more than once.
    return sorted({path for path in found if path.is_file() and not path.is_symlink()})


def index_near(path: Path, settings: Settings, room: int = _NEAR, seconds: float = _SECONDS) -> Index:
    """Return an index of the files nearest to `path` in its project that share its family of languages.

    It holds at most `room` bytes, read within `seconds`. Without a project's root the files are those of its folder.
    """
    path, end = path.absolute(), time.monotonic() + seconds
    root = root_of(path)
    rules = Rules((root or path.parent,), settings.exclude, settings.exclude_ignored)
    index = Index(room, lambda other: is_on_disk(other, rules))
    try:
        family = family_of(language_of(path))
    except UnknownLanguage:
        return index
    for file in files_near(path.parent, rules, lambda: time.monotonic() > end):
        if time.monotonic() > end or (root is None and file.parent != path.parent):
            break
        if file == path or family_of(language_of(file)) != family:
            continue
        other = read_file(index, file, rules)
        if other is not None and not index.take(other):
            break
    return index


def files_near(start: Path, rules: Rules, stop: Callable[[], bool] = lambda: False) -> Iterator[Path]:
    """Yield the files that may be read, the nearest to the folder `start` first.

    Those of `start` come first, then those of the folders below it, the fewest levels down first; then the same from
    the folder above, up to the root that `start` is in, and the other roots last. Example from /w/a: /w/a/x.py,
    /w/a/b/y.py, /w/z.py, /w/c/v.py. stop: asked before each folder; the walk ends when it returns True.
    """
    seen, left = set[Path](), _ENTRIES
    for top in _tops(start, rules):
        folders = deque([top])
        while folders and left > 0 and not stop():
            current = folders.popleft()
            if current in seen:
                continue
            seen.add(current)
            files, below, entries = _listed(current, rules, left)
            left -= entries
            folders.extend(below)
            yield from _unignored(current, files, rules)


def _unignored(folder: Path, files: Sequence[Path], rules: Rules) -> Iterator[Path]:
    """Yield those of `files`, all in `folder`, that git does not ignore, if `rules` ask for that.

    The files are read one by one, so the rules of git may change meanwhile.
    """
    state, hidden = None, set[Path]()
    for path in files:
        if rules.git and (now := rules_stamp(folder)) != state:
            state, hidden = now, ignored(folder, files)
        if path not in hidden:
            yield path


def may_be_read(path: Path, rules: Rules) -> bool:
    """Return whether `files_near` yields `path`; no folder is listed to find out."""
    for root in rules.roots:
        if path.is_relative_to(root) and next(_outwards(path.parent, root, rules), None) == path.parent:
            wanted = has_language(path.name) and not rules.excludes(path)
            found = stamp_of(path) if wanted else None
            return (
                found is not None and found[1] <= LARGEST and not (rules.git and ignored(path.parent, [path]))
            )
    return False


def is_on_disk(other: Other, rules: Rules) -> bool:
    """Return whether the file of `other` is as it was when it was read, and is not excluded under any of its names.

    Nor may the rules of git have changed since, where these exclude files.
    """
    path = path_of(other.uri)
    return other.stamp is not None and rules.stamp(Path(path)) == other.stamp and not rules.excludes(path)


def read_file(index: Index, path: Path, rules: Rules) -> Other | None:
    """Return the file at `path` as an entry for `index`, which is not changed; None if it may not or cannot be read."""
    # Taken before git's rules and the text are read, so that a change in the meantime gives another stamp.
    stamp = rules.stamp(path)
    if stamp is None or (rules.git and ignored(path.parent, [path])):
        return None
    try:
        document = read_document(path)
    except DocumentError:
        return None
    return index.read(document.uri, document.language, document.data, stamp)


def stamp_of(path: Path) -> Stamp | None:
    """Return the inode, size and times of the file at `path`; None where there is no regular file."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def root_of(path: Path) -> Path | None:
    """Return the innermost folder around `path`, which is absolute, that is a project's root; None without one."""
    return next((folder for folder in path.parents if any((folder / name).exists() for name in _ROOTS)), None)


def excluding_path(path: Path, exclude: Sequence[str]) -> str:
    """Return the first of the globs `exclude` that excludes the file at `path` for a command; empty if none does.

    Its names count from the project's root that it is in, and from the current folder.
    """
    path = path.absolute()
    return excluding_file(str(path), map(str, filter(None, (root_of(path), Path.cwd()))), exclude)


def _walked(folder: Path) -> Iterator[Path]:
    for current, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_junk(name)]
        yield from (Path(current, name) for name in names if not name.startswith("."))


def _tops(start: Path, rules: Rules) -> Iterator[Path]:
    """Yield the folders that `files_near` walks down from: outwards from `start`, then the other roots."""
    around = sorted(
        (root for root in rules.roots if start.is_relative_to(root)), key=lambda root: -len(root.parts)
    )
    for root in dict.fromkeys((*around, *rules.roots)):
        yield from _outwards(start if root in around else root, root, rules)


def _outwards(start: Path, root: Path, rules: Rules) -> Iterator[Path]:
    """Yield `start` and the folders above it up to `root`, without those inside of a folder that is not listed."""
    inside, depth = start.relative_to(root).parts, 0
    for name in inside:
        folder = root.joinpath(*inside[: depth + 1])
        if _is_junk(name) or folder.is_symlink() or rules.excludes(f"{folder}/_"):
            break
        depth += 1
    yield from (root.joinpath(*inside[:count]) for count in range(depth, -1, -1))


def _listed(folder: Path, rules: Rules, most: int) -> tuple[list[Path], list[Path], int]:
    """Return the files of `folder` that may be read, its folders to list, and the number of entries looked at.

    They are in the order of their names; at most `most` entries are looked at.
    """
    files, folders, entries = list[Path](), list[Path](), list[os.DirEntry[str]]()
    # A name that no folder can have, such as one with a NUL, is a ValueError.
    with suppress(OSError, ValueError), os.scandir(folder) as found:
        entries = sorted(islice(found, most), key=lambda entry: entry.name)
    # No entry is a link, so the names of each differ from those of the others in their ends only.
    begins = [name[:-1] for name in names_of(f"{folder}/_", map(str, rules.roots))]
    for entry in entries:
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                # A name after the folder's, since a glob such as `.ssh/` names its contents.
                names = (f"{begin}{entry.name}/_" for begin in begins)
                if not _is_junk(entry.name) and not excluding_names(names, rules.exclude):
                    folders.append(folder / entry.name)
            elif _is_wanted(entry) and not excluding_names((b + entry.name for b in begins), rules.exclude):
                files.append(folder / entry.name)
    return files, folders, len(entries)


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    """Return whether `entry` is a regular file, no link, of a known language, and not too large."""
    is_file = has_language(entry.name) and entry.is_file(follow_symlinks=False)
    return is_file and entry.stat(follow_symlinks=False).st_size <= LARGEST


def _is_junk(name: str) -> bool:
    return name.startswith(".") or name in JUNK or name.endswith(".egg-info")
