"""The files of a project that an index may read: regular files of known languages, of bounded size, none excluded.

Reads folders and files; follows no links.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from dg_lsp.text.documents.document import Document, DocumentError, read_document
from dg_lsp.text.documents.excluded import excluding_file, excluding_names, names_of, path_of
from dg_lsp.text.documents.ignored import ignored
from dg_lsp.text.languages.language import UnknownLanguage, has_language, language_of
from dg_lsp.text.related.index import LARGEST, Index, Other, Stamp, family_of

# Folders of what others wrote or a program made; those whose name begins with a dot are left out, too.
JUNK = (
    *(
        "__pycache__",
        "node_modules",
        "bower_components",
        "site-packages",
        "venv",
        "env",
        "virtualenv",
        "vendor",
    ),
    *("third_party", "build", "dist", "out", "target", "coverage", "htmlcov"),
)
# Files that say that their folder is a project's root.
_ROOTS = (".git", ".hg", "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml")
# Entries of folders that are looked at, so that a home folder opened as a project costs no more than a large project.
_ENTRIES = 50_000
# Bytes of the files near one file that a command reads, and the seconds that it takes for them at most.
_NEAR, _SECONDS = 2 << 20, 1.0


def index_round(
    path: Path, exclude: Sequence[str], room: int = _NEAR, *, git: bool = False, seconds: float = _SECONDS
) -> Index:
    """Return an index of the files nearest to `path` in its project that share its family of languages.

    Without a project's root they are those of its folder. After `seconds` it holds what has been read by then.
    """
    path, end = path.absolute(), time.monotonic() + seconds
    root = root_of(path)
    roots = [root or path.parent]
    index = Index(room, lambda other: is_on_disk(other, roots, exclude))
    try:
        family = family_of(language_of(path))
    except UnknownLanguage:
        return index
    found = files_near(path.parent, roots, exclude, lambda: time.monotonic() > end, git=git)
    for file in found:
        if time.monotonic() > end or (root is None and file.parent != path.parent):
            break
        if (
            file == path
            or family_of(language_of(file)) != family
            or (other := read_file(index, file)) is None
        ):
            continue
        if not index.take(other):
            break
    return index


def root_of(path: Path) -> Path | None:
    """Return the innermost folder round `path`, which is absolute, that is a project's root; None without one."""
    return next((folder for folder in path.parents if any((folder / name).exists() for name in _ROOTS)), None)


def excluding_path(path: Path, exclude: Sequence[str]) -> str:
    """Return the first of the globs `exclude` that excludes the file at `path` for a command; empty if none does.

    Its names count from the project's root that it is in, and from the current folder.
    """
    path = path.absolute()
    return excluding_file(str(path), map(str, filter(None, (root_of(path), Path.cwd()))), exclude)


def files_near(
    start: Path,
    roots: Sequence[Path],
    exclude: Sequence[str],
    stop: Callable[[], bool] = lambda: False,
    *,
    git: bool = False,
) -> Iterator[Path]:
    """Yield the files below `roots` that may be read, the nearest to the folder `start` first.

    Those of `start` come first, then those of the folders below it, the fewest levels down first; then the same from
    the folder above, up to the root that `start` is in, and the other roots last. Example from /w/a: /w/a/x.py,
    /w/a/b/y.py, /w/z.py, /w/c/v.py. stop: asked before each folder; the walk ends when it returns True. git: no files
    that git ignores.
    """
    seen, left = set[Path](), _ENTRIES
    around = sorted((root for root in roots if start.is_relative_to(root)), key=lambda root: -len(root.parts))
    for root in dict.fromkeys((*around, *roots)):
        for top in _outwards(start if root in around else root, root, (roots, exclude)):
            folders = deque([top])
            while folders and left > 0 and not stop():
                current = folders.popleft()
                if current in seen:
                    continue
                seen.add(current)
                files, below, entries = _listed(current, (roots, exclude), left)
                left -= entries
                folders.extend(below)
                hidden = ignored(current, files) if git and files else set[Path]()
                yield from (path for path in files if path not in hidden)


def own_files(folder: Path) -> Iterator[Path]:
    """Yield all files below `folder` that are in no hidden folder and none of JUNK, in the order of their names."""
    for current, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_junk(name))
        yield from (Path(current, name) for name in sorted(names) if not name.startswith("."))


def may_be_read(path: Path, roots: Sequence[Path], exclude: Sequence[str], *, git: bool = False) -> bool:
    """Return whether `files_near` would yield `path`, whose folders need not be listed for it."""
    rules = (roots, exclude)
    for root in roots:
        if path.is_relative_to(root) and next(_outwards(path.parent, root, rules), None) == path.parent:
            wanted = has_language(path.name) and not excluding_file(str(path), map(str, roots), exclude)
            found = stamp_of(path) if wanted else None
            return found is not None and found[1] <= LARGEST and not (git and ignored(path.parent, [path]))
    return False


def read_file(index: Index, path: Path) -> Other | None:
    """Return the file at `path` as an entry for `index`, which is not changed; None if it cannot be read."""
    # Before it is read: what is written meanwhile then makes another stamp.
    stamp = stamp_of(path)
    document = read(path) if stamp else None
    return index.read(document.uri, document.language, document.data, stamp) if document else None


def read(path: Path) -> Document | None:
    """Return the file at `path`; None if it cannot be read."""
    try:
        return read_document(path)
    except DocumentError:
        return None


def stamp_of(path: Path) -> Stamp | None:
    """Return what tells this state of the file at `path` from others; None where there is no regular file."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return None
    return _stamp(found) if stat.S_ISREG(found.st_mode) else None


def is_on_disk(other: Other, roots: Sequence[Path], exclude: Sequence[str]) -> bool:
    """Return whether the file of `other` is as it was when it was read, and is not excluded under any of its names."""
    path = path_of(other.uri)
    if other.stamp is None or stamp_of(Path(path)) != other.stamp:
        return False
    return not excluding_file(path, map(str, roots), exclude)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _outwards(start: Path, root: Path, rules: tuple[Sequence[Path], Sequence[str]]) -> Iterator[Path]:
    """Yield `start` and the folders above it up to `root`, without those inside of a folder that is not listed.

    rules: the folders of the workspace, and the globs of what is excluded.
    """
    inside, (roots, exclude) = start.relative_to(root).parts, rules
    listed = 0
    for name in inside:
        folder = root.joinpath(*inside[: listed + 1])
        if _is_junk(name) or folder.is_symlink() or excluding_file(f"{folder}/_", map(str, roots), exclude):
            break
        listed += 1
    yield from (root.joinpath(*inside[:count]) for count in range(listed, -1, -1))


def _listed(
    folder: Path, rules: tuple[Sequence[Path], Sequence[str]], most: int
) -> tuple[list[Path], list[Path], int]:
    """Return the files of `folder` that may be read, its folders to list, and the number of entries looked at.

    They are in the order of their names; at most `most` entries are looked at.
    """
    files, folders, entries = list[Path](), list[Path](), list[os.DirEntry[str]]()
    # A name that no folder can have, such as one with a NUL, is a ValueError.
    with suppress(OSError, ValueError), os.scandir(folder) as found:
        entries = sorted(islice(found, most), key=lambda entry: entry.name)
    roots, exclude = rules
    # No entry is a link, so the names of each differ from those of the others in their ends only.
    begins = [name[:-1] for name in names_of(f"{folder}/_", map(str, roots))]
    for entry in entries:
        with suppress(OSError):
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                # A name behind the folder's, since a glob such as `.ssh/` names its contents.
                names = (f"{begin}{entry.name}/_" for begin in begins)
                if not _is_junk(entry.name) and not excluding_names(names, exclude):
                    folders.append(path)
            elif _is_wanted(entry) and not excluding_names((b + entry.name for b in begins), exclude):
                files.append(path)
    return files, folders, len(entries)


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    """Return whether `entry` is a regular file, no link, of a known language, and not too large."""
    is_file = has_language(entry.name) and entry.is_file(follow_symlinks=False)
    return is_file and entry.stat(follow_symlinks=False).st_size <= LARGEST


def _is_junk(name: str) -> bool:
    return name.startswith(".") or name in JUNK or name.endswith(".egg-info")
