"""The fetch of a checkpoint in a process of its own, `dg-lsp fetch NAME --json`, when the user picks it in the menu."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from dg_lsp.filling.engine import EngineError

_PATIENCE = 5.0  # seconds in which an interrupted fetch ends the package clients that it has started
_LONGEST = 1 << 20  # bytes of a line


async def fetch(name: str, tell: Callable[[str, int | None], None]) -> None:
    """Fetch the checkpoint `name`; `tell` is called with each message and its percentage, if it has one.

    Cancelling ends the process; the next fetch continues from what it has got.

    Raises:
        EngineError: it cannot be fetched.
    """
    process = await asyncio.create_subprocess_exec(
        *command(name),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=_LONGEST,
        start_new_session=True,
    )
    assert process.stdout is not None
    said = ""
    try:
        async for line in process.stdout:
            try:
                message = json.loads(line)
                tell(str(message["say"]), message["percent"])
            except (ValueError, LookupError, TypeError):
                said = line.decode("utf-8", "replace").strip() or said
        await process.wait()
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode:
        why = said.removeprefix("dg-lsp: error: ") or f"it ended with exit code {process.returncode}"
        raise EngineError(f"{name} was not fetched: {why}")


def command(name: str) -> list[str]:
    """Return the command line of the process. With -P no module is taken from the current folder."""
    return [sys.executable, "-P", "-m", "dg_lsp", "fetch", name, "--json"]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Interrupt a process, and kill it with all that it has started if it does not end."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    # Not by `wait`, which waits for the other end of the pipe, too, and what it has started may have that.
    end = time.monotonic() + _PATIENCE
    while process.returncode is None and time.monotonic() < end:
        await asyncio.sleep(0.02)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    with suppress(TimeoutError):
        await asyncio.wait_for(process.stdout.read(), _PATIENCE)
