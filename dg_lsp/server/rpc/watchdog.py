"""The watchdog: ends a server whose event loop has not run for long, though the process works.

A library's code may hold Python's lock for ever, and then no thread of Python runs, so a timer of the system watches.
"""

import asyncio
import contextlib
import faulthandler
import signal
import sys
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
