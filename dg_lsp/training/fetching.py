"""Parts that all fetches share: the working folder, hashes, room on the disk, progress with a rate.

Knows files; connects to nothing.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout
from rich.progress import Progress as Bar

from dg_lsp.settings import UsageError

# Called with each message. One that ends in "\r" is replaced by the next one, where a terminal can do so.
Progress = Callable[[str], None]
PIECE = 1 << 20  # bytes that are copied or hashed at a time
_PERIOD = 30.0  # seconds over which the speed of a download is measured
_SETTLED = 2.0  # seconds before the speed of a download says how long the rest takes


class FetchError(UsageError):
    """The checkpoint cannot be fetched; the message says why, and how to fix it."""


@contextmanager
def working(to: Path) -> Iterator[Path]:
    """Yield the folder beside `to` that a checkpoint is made in, and remove it once the block has succeeded.

    After an error or an interrupt it stays, and the next fetch continues from it.
    """
    folder = to.with_name(to.name + ".part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(to.with_name(to.name + ".lock"), timeout=0):
            folder.mkdir(exist_ok=True)
            yield folder
            shutil.rmtree(folder)
    except Timeout as error:
        raise FetchError("another dg-lsp is fetching it; wait until that one has finished") from error
    except OSError as error:
        raise FetchError(f"{to.parent} cannot hold it ({error.strerror or error}); try again") from error


def put_in_place(made: Path, to: Path) -> None:
    """Replace the folder `to` by the folder `made`, which lies in its working folder."""
    old = made.with_name("old")
    shutil.rmtree(old, ignore_errors=True)
    if to.exists():
        to.replace(old)
    made.replace(to)


def check_room(folder: Path, needed: int) -> None:
    """Raise FetchError unless the disk of `folder` has `needed` bytes left."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FetchError(
            f"{folder} needs {needed / 1e9:.2f} GB and its disk has {free / 1e9:.2f} GB left; free some, or set "
            "XDG_DATA_HOME to a folder on a larger disk"
        )


def sha256_of(file: BinaryIO, size: int) -> str:
    """Return the sha256, hex, of the next `size` bytes of `file`, or of fewer if it ends before."""
    digest = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, PIECE))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


def is_right(file: Path, size: int, sha256: str) -> bool:
    """Return whether `file` exists with this size and hash."""
    if not file.is_file() or file.stat().st_size != size:
        return False
    with file.open("rb") as stream:
        return sha256_of(stream, size) == sha256


class Rate:
    """Measure the speed of a download of `total` bytes, of which `done` were there at the beginning.

    It is that of the last half minute, so that a download without progress shows no rate.
    """

    def __init__(self, total: int, done: int) -> None:
        self._bar = Bar(disable=True, speed_estimate_period=_PERIOD, get_time=_now)
        self._bar.advance(self._bar.add_task("", total=total, completed=done), 0)

    def describe(self, done: int) -> str:
        """Return how far it is once `done` bytes are there, such as "120 of 1117 MB, 8.1 MB/s, 2:03 left".

        The first seconds, in which little has come, give the amount alone.
        """
        (task,) = self._bar.tasks
        self._bar.advance(task.id, done - task.completed)
        amount = f"{done / 1e6:.0f} of {(task.total or 0) / 1e6:.0f} MB"
        if (task.elapsed or 0) < _SETTLED or not task.speed or task.time_remaining is None:
            return amount
        left = int(task.time_remaining)
        return f"{amount}, {task.speed / 1e6:.1f} MB/s, {left // 60}:{left % 60:02} left"


def _now() -> float:
    return time.monotonic()
