"""Writing a file as a whole: readers see the old text or the new one, and never a part."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, data: bytes, prepare: Callable[[Path], None] = lambda _: None) -> None:
    """Replace `path` by a new one with `data`, or leave it; `prepare` gets the new one's path and may raise."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        prepare(Path(name))
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
