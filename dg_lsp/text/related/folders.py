"""The files of a project that an index may read: regular files of known languages, of bounded size, none excluded.

Reads folders and files; follows no links.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath

from dg_lsp.text.documents.document import Document, DocumentError, read_document
from dg_lsp.text.documents.excluded import excluding
from dg_lsp.text.documents.ignored import ignored
from dg_lsp.text.languages.language import UnknownLanguage, has_language, language_of
from dg_lsp.text.related.index import LARGEST, Index, family_of

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
    path, end, index = path.absolute(), time.monotonic() + seconds, Index(room)
    try:
        family = family_of(language_of(path))
    except UnknownLanguage:
        return index
    root = next((folder for folder in path.parents if any((folder / name).exists() for name in _ROOTS)), None)
    found = files_near(path.parent, [root or path.parent], exclude, lambda: time.monotonic() > end, git=git)
    for file in found:
        if time.monotonic() > end or (root is None and file.parent != path.parent):
            break
        if file == path or family_of(language_of(file)) != family or (document := read(file)) is None:
            continue
        if not index.put(document.uri, document.language, document.data):
            break
    return index


def files_in(folder: Path, exclude: Sequence[str], *, git: bool = False) -> Iterator[Path]:
    """Yield the files below `folder` that may be read, those of few folders first; git: none that git ignores."""
    return files_near(folder, [folder], exclude, git=git)


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
        for top in _outwards(start if root in around else root, root, exclude):
            folders = deque([top])
            while folders and left > 0 and not stop():
                current = folders.popleft()
                if current in seen:
                    continue
                seen.add(current)
                files, below, entries = _listed(current, root, exclude, left)
                left -= entries
                folders.extend(below)
                hidden = ignored(current, files) if git and files else set[Path]()
                yield from (path for path in files if path not in hidden)


def own_files(folder: Path) -> Iterator[Path]:
    """Yield all files below `folder` that are in no hidden folder and none of JUNK, in the order of their names."""
    for current, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_junk(name))
        yield from (Path(current, name) for name in sorted(names) if not name.startswith("."))


def read(path: Path) -> Document | None:
    """Return the file at `path`; None if it cannot be read."""
    try:
        return read_document(path)
    except DocumentError:
        return None


def _outwards(start: Path, root: Path, exclude: Sequence[str]) -> Iterator[Path]:
    """Yield `start` and the folders above it up to `root`, without those inside of a folder that is not listed."""
    inside = start.relative_to(root).parts
    listed = 0
    for name in inside:
        folder = root.joinpath(*inside[: listed + 1])
        if _is_junk(name) or folder.is_symlink() or excluding(_inside(folder / "_", root), exclude):
            break
        listed += 1
    yield from (root.joinpath(*inside[:count]) for count in range(listed, -1, -1))


def _listed(
    folder: Path, root: Path, exclude: Sequence[str], most: int
) -> tuple[list[Path], list[Path], int]:
    """Return the files of `folder` that may be read, its folders to list, and the number of entries looked at.

    They are in the order of their names; at most `most` entries are looked at.
    """
    files, folders, entries = list[Path](), list[Path](), list[os.DirEntry[str]]()
    # A name that no folder can have, such as one with a NUL, is a ValueError.
    with suppress(OSError, ValueError), os.scandir(folder) as found:
        entries = sorted(islice(found, most), key=lambda entry: entry.name)
    for entry in entries:
        with suppress(OSError):
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                # A name behind the folder's, since a glob such as `.ssh/` names its contents.
                if not _is_junk(entry.name) and not excluding(_inside(path / "_", root), exclude):
                    folders.append(path)
            elif _is_wanted(entry) and not excluding(_inside(path, root), exclude):
                files.append(path)
    return files, folders, len(entries)


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    """Return whether `entry` is a regular file, no link, of a known language, and not too large."""
    is_file = has_language(entry.name) and entry.is_file(follow_symlinks=False)
    return is_file and entry.stat(follow_symlinks=False).st_size <= LARGEST


def _inside(path: Path, root: Path) -> PurePosixPath:
    return PurePosixPath(path.relative_to(root).as_posix())


def _is_junk(name: str) -> bool:
    return name.startswith(".") or name in JUNK or name.endswith(".egg-info")
