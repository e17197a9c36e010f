"""The control groups of Linux, by which a container is limited.

Version 2: https://docs.kernel.org/admin-guide/cgroup-v2.html.
"""

from collections.abc import Iterator
from pathlib import Path

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def groups(root: Path = ROOT, own: Path = OWN) -> Iterator[Path]:
    """The folders of this process's group and of all that hold it, the innermost first; none where there are none.

    root: where they are mounted. own: the file that names this process's group.
    """
    try:
        name = next(line[3:] for line in own.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return
    group = root / name.strip("/")
    for folder in (group, *group.parents):
        yield folder
        if folder == root:
            return
