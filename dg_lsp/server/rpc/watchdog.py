"""The watchdog: ends a server whose event loop has not run for long, though the process works; looks for processes.

A library's code may hold Python's lock for ever, and then no thread of Python runs, so a timer of the system watches.
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
from pathlib import Path
from typing import TextIO

# Seconds of processor time without a turn of the event loop: a stopped or suspended process uses none.
PATIENCE_S = 20.0


async def watch(patience: float = PATIENCE_S, log: TextIO | None = None) -> None:
    """End the process once its event loop does not run for `patience` seconds; first write where it is to `log`.

    It writes the files and lines of each thread, and no source text. The process ends by SIGVTALRM, which
    clients take for a crash and restart the server.
    """
    log = log or sys.stderr
    with contextlib.suppress(OSError, ValueError):  # a standard error without a file
        # After the handler comes the default of this signal, which ends the process.
        faulthandler.register(signal.SIGVTALRM, log, all_threads=True, chain=True)
        try:
            while True:
                signal.setitimer(signal.ITIMER_VIRTUAL, patience)
                await asyncio.sleep(patience / 8)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def is_alive(process: int | None) -> bool:
    """Return whether the process with this id runs; one that has ended and that nobody has waited for does not."""
    if process is None or process <= 0:
        return False
    try:
        os.kill(process, 0)
        # Only Linux has this file. The name of the program, in brackets, may contain anything.
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (PermissionError, FileNotFoundError):
        return True
    except (OSError, OverflowError):
        return False
