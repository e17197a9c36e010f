"""The files of a project that an index may read: regular files of known languages, of bounded size, none excluded.

Reads folders and files; follows no links.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from dg_lsp.text.documents.document import Document, DocumentError, read_document
from dg_lsp.text.documents.excluded import excluding
from dg_lsp.text.documents.ignored import ignored
from dg_lsp.text.languages.language import UnknownLanguage, language_of
from dg_lsp.text.related.index import LARGEST, Index

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
# Bytes of the files near one file that a command reads.
_NEAR = 2 << 20


def index_round(path: Path, exclude: Sequence[str], room: int = _NEAR, *, git: bool = False) -> Index:
    """An index of the files nearest to `path` in its project; without a project's root, of those in its folder."""
    path = path.absolute()
    root = next((folder for folder in path.parents if any((folder / name).exists() for name in _ROOTS)), None)
    found = (
        list(files_in(root, exclude, git=git)) if root else [p for p in path.parent.glob("*") if is_wanted(p)]
    )
    index = Index(room)
    for file in sorted(found, key=lambda one: (-len(_common(one, path)), str(one))):
        if file != path and (document := read(file)) is not None and not _took(index, document):
            break
    return index


def files_in(folder: Path, exclude: Sequence[str], *, git: bool = False) -> Iterator[Path]:
    """The files below `folder` that may be read, folder by folder, those of each in the order of their names.

    git: none that git ignores.
    """
    left, folders = _ENTRIES, [folder]
    while folders and left > 0:
        # A name that no folder can have, such as one with a NUL, is a ValueError.
        with suppress(OSError, ValueError):
            current, found = folders.pop(), list[Path]()
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
            left -= len(entries)
            for entry in entries:
                path = Path(entry.path)
                inside = PurePosixPath(path.relative_to(folder).as_posix())
                if entry.is_dir(follow_symlinks=False):
                    # A name behind the folder's, since a glob such as `.ssh/` names what lies in it.
                    if not _is_junk(entry.name) and not excluding(inside / "_", exclude):
                        folders.append(path)
                elif is_wanted(path) and not excluding(inside, exclude):
                    found.append(path)
            hidden = ignored(Path(current), found) if git and found else set[Path]()
            yield from (path for path in found if path not in hidden)


def is_wanted(path: Path) -> bool:
    """Whether `path` is a regular file, no link, of a known language, and not too large."""
    try:
        return bool(language_of(path)) and not path.is_symlink() and path.is_file() and _size(path) <= LARGEST
    except (UnknownLanguage, OSError):
        return False


def read(path: Path) -> Document | None:
    """The file at `path`; None if it cannot be read."""
    try:
        return read_document(path)
    except DocumentError:
        return None


def _took(index: Index, document: Document) -> bool:
    return index.put(document.uri, document.language, document.data)


def _is_junk(name: str) -> bool:
    return name.startswith(".") or name in JUNK or name.endswith(".egg-info")


def _size(path: Path) -> int:
    return path.stat().st_size


def _common(one: Path, other: Path) -> list[str]:
    return [a for a, b in zip(one.parts, other.parts, strict=False) if a == b]
