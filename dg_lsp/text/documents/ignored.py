"""Which files git ignores, asked of git itself. Starts a process, and reads no file."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_PATIENCE = 2.0  # seconds
_TOLD = (0, 1)  # some are ignored, none is
# git for a repository of anybody, which may name a program that git then starts.
GIT = ("git", "-c", "core.fsmonitor=false")


def ignored(folder: Path, paths: Sequence[Path]) -> set[Path]:
    """Those of `paths`, files in `folder`, that git ignores; all of them where git cannot tell.

    Outside of a repository none is ignored. A file that is tracked is not ignored, whatever .gitignore says.
    """
    names = b"\0".join(map(os.fsencode, paths))
    # A hook of git that starts an editor names its own repository in the environment.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            (*GIT, "check-ignore", "-z", "--stdin"),
            cwd=folder,
            input=names,
            capture_output=True,
            env=own,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        done = None
    if done is not None and done.returncode in _TOLD:
        return {Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name}
    in_repository = any((parent / ".git").exists() for parent in (folder, *folder.parents))
    return set(paths) if in_repository else set()
