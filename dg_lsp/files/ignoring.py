"""Ignoring: the state of the files that say what git ignores, so that an answer holds only as long as they stay."""

import os
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from dg_lsp.budget import within, working
from dg_lsp.files.repository import SECONDS, UnknownRepository, excludes_files, find_repository

# In a repository's own folder; those after `commondir` belong to the repository that a worktree is of.
_OWN, _COMMON = ("HEAD", "index", "commondir"), ("info/exclude", "config")
_LONGEST = 4096  # bytes of a path in a file


def rules_stamp(folder: Path) -> int:
    """Return a number that changes when a file changes that says which files of `folder` git ignores, or tracks."""
    place = Path(os.path.realpath(folder))
    rules = tuple((path, _stamp(path)) for path in _files(place))
    return hash((rules, *((path, _stamp(path)) for path in _configured(place, rules))))


def _files(place: Path) -> Iterator[str]:
    """Yield the paths of the files of rules, whether they exist or not."""
    for root in (place, *place.parents):
        yield f"{root}/.gitignore"
        yield (data := f"{root}/.git")
        if not os.path.lexists(data):
            continue
        if own := _named_in(data, "gitdir:"):
            data = os.path.join(root, own)  # noqa: PTH118 - many of these are made at each key
        yield from (f"{data}/{name}" for name in _OWN)
        common = os.path.join(data, _named_in(f"{data}/commondir"))  # noqa: PTH118
        yield from (f"{common}/{name}" for name in _COMMON)
        break
    home = os.path.expanduser("~")  # noqa: PTH111
    user = f"{os.environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git"
    yield from (f"{user}/config", f"{user}/ignore", f"{home}/.gitconfig", "/etc/gitconfig")


@lru_cache(maxsize=1024)
def _configured(place: Path, _: object) -> tuple[str, ...]:
    """Return the files of patterns that a configuration names for `place`; read again when a file of rules changes."""
    try:
        with within(SECONDS), working():
            repository = find_repository(place)
            return tuple(map(str, excludes_files(repository))) if repository is not None else ()
    except (UnknownRepository, OSError, ValueError):
        return ()


def _stamp(path: str) -> tuple[int, ...]:
    """Return what tells one state of the file at `path` from the next; of a folder only which one it is."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return ()
    if not stat.S_ISREG(found.st_mode):
        return found.st_ino, found.st_mode
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _named_in(path: str, before: str = "") -> str:
    """Return the path that the regular file at `path` holds after the word `before`; empty if there is none."""
    if len(_stamp(path)) < 3:
        return ""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return os.fsdecode(file.read(_LONGEST)).removeprefix(before).strip()
    except OSError:
        return ""
