"""Files that git ignores or lists, asked of git itself. Starts a process, and reads no file."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_PATIENCE = 2.0  # seconds
_ANSWERED = (0, 1)  # some are ignored, none is
# Options of `git ls-files`: files that git tracks, and all that it does not ignore.
TRACKED = ("--cached",)
UNIGNORED = (*TRACKED, "--others", "--exclude-standard")


def ignored(folder: Path, paths: Sequence[Path]) -> set[Path]:
    """Return those of `paths`, files in `folder`, that git ignores; in a repository where it cannot say, all."""
    names = b"\0".join(map(os.fsencode, paths))
    try:
        done = _git(folder, ("check-ignore", "-z", "--stdin"), names, _PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        done = None
    if done is not None and done.returncode in _ANSWERED:
        return set(_paths_in(done.stdout))
    in_repository = any((parent / ".git").exists() for parent in (folder, *folder.parents))
    return set(paths) if in_repository else set()


def listed(folder: Path, which: Sequence[str]) -> list[Path]:
    """Return the files below `folder` that git lists by the options `which`; [] where it cannot tell."""
    try:
        done = _git(folder, ("ls-files", "-z", *which))
    except OSError:
        return []
    return [folder / name for name in _paths_in(done.stdout)] if done.returncode == 0 else []


def _git(
    folder: Path, arguments: Sequence[str], given: bytes = b"", patience: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    # A repository of anybody may name a program here that git then starts.
    command = ("git", "-c", "core.fsmonitor=false", *arguments)
    # A hook of git that starts an editor names its own repository in the environment.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        command, cwd=folder, input=given, capture_output=True, env=own, timeout=patience, check=False
    )


def _paths_in(output: bytes) -> list[Path]:
    return [Path(os.fsdecode(name)) for name in output.split(b"\0") if name]
