"""Fatal texts: those that a process was reading when it crashed, which are not read again until they change."""

import faulthandler
import logging
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Infill

CRASHED = "the engine crashed when it read this text, which is not sent again until it changes"
CRASH = b"Fatal Python error"  # what Python says at the end of a process that crashed, and at no other end
TEXTS = 64  # texts that are remembered, as hashes
_HASH = 32
_log = logging.getLogger("dg_lsp.model")


class FatalTexts:
    """The texts that a process is reading, in a file that tells its next run of them if it crashes.

    A process that was killed or has exited says nothing of its texts. Those that were read beside the one that crashed
    it count, too: nobody knows which one it was.
    """

    def __init__(self, file: Path) -> None:
        """Use `file`, and one beside it for what Python says of a crash."""
        report = os.open(file.with_suffix(".crash"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        last = os.pread(report, 1 << 16, 0)
        os.ftruncate(report, 0)
        faulthandler.enable(report)
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(handle, 2 * TEXTS * _HASH)
            # Its content stays after the process has ended, however it did.
            self._hashes = mmap.mmap(handle, 2 * TEXTS * _HASH)
        finally:
            os.close(handle)
        under_way, known = self._at(range(TEXTS)), self._at(range(TEXTS, 2 * TEXTS))
        if CRASH in last:
            known = [*under_way, *known][:TEXTS]
            _log.error(
                "the last process crashed; texts that are not read again until they change: %d\n%s",
                len(under_way),
                last.decode("utf-8", "replace"),
            )
        self._known = frozenset(known)
        self._hashes[:] = (bytes(TEXTS * _HASH) + b"".join(known)).ljust(2 * TEXTS * _HASH, b"\0")
        self._free = [*range(TEXTS)]

    @contextmanager
    def reading(self, request: Infill) -> Iterator[None]:
        """Note in the block that the text of `request` is read.

        Raises:
            EngineError: a process that read it has crashed.
        """
        text = hash_of(request)
        if text in self._known:
            raise EngineError(CRASHED)
        # With more requests than places those that came last are not noted.
        place = self._free.pop() if self._free else None
        try:
            self._put(place, text)
            yield
        finally:
            self._put(place, bytes(_HASH))
            self._free += [] if place is None else [place]

    def _put(self, place: int | None, text: bytes) -> None:
        if place is not None:
            self._hashes[place * _HASH : (place + 1) * _HASH] = text

    def _at(self, places: range) -> list[bytes]:
        found = (self._hashes[place * _HASH : (place + 1) * _HASH] for place in places)
        return [text for text in found if any(text)]


def hash_of(request: Infill) -> bytes:
    """Return a hash of the text around the gaps of `request`, wherever in it these are."""
    text = "".join((request.language, request.prefix, *request.between, request.suffix))
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
