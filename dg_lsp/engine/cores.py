"""How many threads the model gets on a CPU: as many as there are cores that other programs leave free just now.

Threads wait for each other at the end of each product of matrices, so they are quick only if all of them run at once:
beside one busy program on two cores, two threads take three times as long as one (docs/research/speed-and-memory.md).
"""

import os
import time
from contextlib import suppress
from pathlib import Path

import psutil

from dg_lsp.engine.cgroup import OWN, ROOT, groups

# Seconds from one look to the next: the system counts a core's use in hundredths of a second.
_EVERY = 0.2
# Of a core: it counts as free if others use less of it. Two threads on two cores are still quicker than one then.
_LITTLE = 0.4


class Cores:
    """The threads to be used now. Make it and ask it on the model thread.

    most: how many threads at most; 0 is half of the cores, but two where there are two.
    """

    def __init__(self, most: int = 0) -> None:
        cores = allowed()
        self._most = most or max(cores // 2, min(cores, 2))
        self._online = psutil.cpu_count() or cores
        self._looked, self._own = time.perf_counter(), time.process_time()
        psutil.cpu_percent()  # from here on it tells of the time since the last call
        self._threads = min(self._most, max(cores // 2, 1))

    def threads(self) -> int:
        """How many threads to use now, from 1 to `most`; it looks again after _EVERY seconds."""
        now = time.perf_counter()
        seconds = now - self._looked
        if seconds >= _EVERY:
            own = time.process_time()
            others = psutil.cpu_percent() / 100 * self._online - (own - self._own) / seconds
            self._threads = min(max(int(self._online - others + _LITTLE), 1), self._most)
            self._looked, self._own = now, own
        return self._threads


def allowed(root: Path = ROOT, own: Path = OWN) -> int:
    """The cores that this process may use: what the machine has, or less in a container or with fewer assigned to it.

    The same page as in `cgroup`, "CPU Interface Files".
    """
    cores = float(os.cpu_count() or 1)
    with suppress(AttributeError, OSError):  # not on every system
        cores = len(os.sched_getaffinity(0))
    for group in groups(root, own):
        with suppress(OSError, ValueError):
            quota, period = (group / "cpu.max").read_text().split()
            cores = min(cores, int(quota) / int(period))  # "max" is no limit
    return max(int(cores), 1)
