"""A change of a file on trial: written, tested by a command, and kept or taken back byte for byte.

Knows files and processes; knows no engine and prints nothing.
"""

import asyncio
import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from dg_lsp.cli.target import replace_file
from dg_lsp.settings import UsageError

_SHOWN = 200  # characters of the command's last line


def backup_of(path: Path) -> Path:
    """The file that holds the text of `path` from before a trial while the trial runs."""
    return path.with_name(f".{path.name}.dg-lsp-before")


def check_no_backup(path: Path) -> None:
    """Do nothing unless an earlier run was killed in the middle of a trial of `path`.

    Raises:
        UsageError: it was, and its backup is still there.
    """
    backup = backup_of(path)
    if backup.exists():
        raise UsageError(
            f"an earlier run was killed while it tried a change of {path}; the text from before is in {backup}: "
            "put it back, or delete it"
        )


async def keep_if(path: Path, change: tuple[bytes, bytes], command: str, seconds: float) -> str:
    """Write a change to `path` and run `command`; return why the change was taken back, empty if it was kept.

    change: the text before and after. The command passes if its exit status is 0 within `seconds`. Whatever else
    happens, an interrupt included, the text before stands in the file again; if this process is killed, it is in
    `backup_of(path)`.

    Raises:
        UsageError: the file does not hold the text before the change, or is changed by somebody else meanwhile.
    """
    path = path.resolve()
    before, after = change
    backup = backup_of(path)
    backup.write_bytes(before)
    try:
        replace_file(path, before, after)
    except BaseException:
        backup.unlink()
        raise
    why = "interrupted"
    try:
        why = await _run(command, seconds)
    finally:
        if why:
            # Where somebody else has changed the file meanwhile, this raises, and the backup stays.
            replace_file(path, after, before)
        backup.unlink()
    return why


async def _run(command: str, seconds: float) -> str:
    """Run `command` in a shell; return why it did not pass, empty if it did.

    It runs in a process group of its own, so that its children end with it.
    """
    # Two changes in one second may have one size, which Python's cache of compiled files would take for one text.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(seconds):
                status = await process.wait()
        except TimeoutError:
            return f"the command took longer than {seconds:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        return f"the command ended with {status}: {_last_line(output)}" if status else ""


def _last_line(output: BinaryIO) -> str:
    """The last line that is not blank, of the last 64 kB of `output`."""
    output.seek(max(output.seek(0, os.SEEK_END) - (64 << 10), 0))
    lines = output.read().decode("utf-8", "replace").split("\n")
    return next((line.strip()[:_SHOWN] for line in reversed(lines) if line.strip()), "it said nothing")
