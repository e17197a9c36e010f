"""Files that git ignores or tracks, by a repository's own files. Starts no process: git would run what these name."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dg_lsp.budget import within, working
from dg_lsp.files.gitignore import Pattern, read_patterns, verdict
from dg_lsp.files.repository import (
    LONGEST,
    SECONDS,
    Repository,
    UnknownRepository,
    excludes_files,
    find_repository,
    ignores_case,
    own_exclude,
    read_bounded,
    tracked_paths,
)
from dg_lsp.reasons import OutOfTime

Which = Literal["tracked", "unignored"]
TRACKED: Which = "tracked"
UNIGNORED: Which = "unignored"


_DEEPEST, _MOST = 128, 20_000  # folders of a path, and lines of patterns, that are looked at
_PROJECT = 60.0  # seconds of processor time for all files of a project


def ignored(folder: Path, paths: Sequence[Path]) -> set[Path]:
    """Return those of `paths`, files below `folder`, that git ignores; all where its rules cannot be read in time."""
    try:
        with within(SECONDS), working():
            return _ignored(folder, paths)
    except (UnknownRepository, OSError, ValueError):
        return set(paths)


def listed(folder: Path, which: Which) -> list[Path]:
    """Return the files below `folder` that git tracks, or all that it does not ignore; [] where that is not known."""
    try:
        with within(_PROJECT), working():
            return _listed(folder, which)
    except (UnknownRepository, OutOfTime, OSError):
        return []


def _ignored(folder: Path, paths: Sequence[Path]) -> set[Path]:
    """Return those of `paths` that git ignores, or raise UnknownRepository or OutOfTime."""
    repository = find_repository(_real(folder))
    if repository is None:
        return set()
    rules = _rules_of(repository)
    parents = {path.parent: _real(path.parent).relative_to(repository.root) for path in paths}
    inside = {path: parents[path.parent] / path.name for path in paths}
    found = {path for path, name in inside.items() if rules.ignore(name)}
    # What is tracked is not ignored, whatever pattern fits it.
    tracked = tracked_paths(repository) if found else frozenset[bytes]()
    return {path for path in found if os.fsencode(inside[path]) not in tracked}


def _listed(folder: Path, which: Which) -> list[Path]:
    """Return the files below `folder` that `which` says, or raise UnknownRepository or OutOfTime."""
    place = _real(folder)
    repository = find_repository(place)
    if repository is None:
        return []
    base = place.relative_to(repository.root)
    tracked = (Path(os.fsdecode(name)) for name in tracked_paths(repository))
    found = {path for path in tracked if path.is_relative_to(base)}
    if which == UNIGNORED:
        found |= {*_unignored(_rules_of(repository), base)}
    return [folder / path.relative_to(base) for path in found]


def _real(folder: Path) -> Path:
    """Return `folder` without links; what leads back to itself stays as it is."""
    return Path(os.path.realpath(folder))


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of a repository; each file of them is read once.

    exclude: the patterns after those of .gitignore files. configured: those that come last, of one file each. fold:
    case does not matter.
    """

    root: Path
    exclude: Sequence[Pattern]
    configured: Sequence[Sequence[Pattern]]
    fold: bool
    _folders: dict[Path, tuple[Sequence[Pattern], bool]] = field(default_factory=dict)

    def ignore(self, path: Path, *, is_folder: bool = False) -> bool:
        """Return whether the rules ignore the file or folder at `path`, which is relative to the root.

        The nearest .gitignore that says something decides, and nothing takes out of a folder that is ignored.
        """
        if len(path.parts) > _DEEPEST or ".git" in path.parts:
            return True
        if path == Path():
            return False
        if self._folder(path.parent)[1]:
            return True
        for folder in path.parents:
            if (
                found := self._say(self._folder(folder)[0], path.relative_to(folder), is_folder=is_folder)
            ) is not None:
                return found
        if (found := self._say(self.exclude, path, is_folder=is_folder)) is not None:
            return found
        return any(self._say(patterns, path, is_folder=is_folder) for patterns in self.configured)

    def _folder(self, folder: Path) -> tuple[Sequence[Pattern], bool]:
        """Return the patterns in the .gitignore of `folder`, and whether it is itself ignored."""
        if folder not in self._folders:
            hidden, file = self.ignore(folder, is_folder=True), self.root / folder / ".gitignore"
            # git follows no link here.
            patterns = [] if hidden or file.is_symlink() else _patterns(file, fold=self.fold)
            self._folders[folder] = patterns, hidden
            if sum(len(patterns) for patterns, _ in self._folders.values()) > _MOST:
                raise UnknownRepository(f"{self.root} has too many patterns")
        return self._folders[folder]

    def _say(self, patterns: Sequence[Pattern], path: Path, *, is_folder: bool) -> bool | None:
        """Return what `patterns` say of `path`, which is relative to their folder."""
        name = os.fsencode(path)
        return verdict(patterns, (name.lower() if self.fold else name).decode("latin-1"), is_folder=is_folder)


def _rules_of(repository: Repository) -> _Rules:
    """Return the rules of `repository`."""
    fold = ignores_case(repository)
    configured = [_patterns(file, fold=fold) for file in excludes_files(repository)]
    return _Rules(repository.root, _patterns(own_exclude(repository), fold=fold), configured, fold)


def _patterns(file: Path, *, fold: bool) -> Sequence[Pattern]:
    """Return the patterns in `file`, which may be missing."""
    data = read_bounded(file) or b""
    if data.count(b"\n") > _MOST or max(map(len, data.split(b"\n"))) > LONGEST:
        raise UnknownRepository(f"{file} has too many patterns, or one that is too long")
    return read_patterns(data.lower() if fold else data)


def _unignored(rules: _Rules, base: Path) -> Iterator[Path]:
    """Yield the files below `base` that the rules do not ignore, from the root on; none of another repository."""
    left = [] if rules.ignore(base, is_folder=True) else [base]
    while left:
        folder = left.pop()
        with os.scandir(rules.root / folder) as entries:
            found = [(folder / entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        if folder != Path() and folder / ".git" in (path for path, _ in found):
            continue
        for path, is_folder in found:
            if not rules.ignore(path, is_folder=is_folder):
                if is_folder:
                    left.append(path)
                else:
                    yield path
