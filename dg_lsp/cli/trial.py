"""A change of a file on trial: written, tested by a command, and kept or taken back byte for byte.

Knows files and processes; knows no engine and prints nothing.
"""

import asyncio
import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from dg_lsp.cli.ran import Ran, read_run
from dg_lsp.cli.target import replace_file
from dg_lsp.settings import UsageError

_READ = 64 << 10  # bytes of the end of a command's output


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


async def trial(path: Path, change: tuple[bytes, bytes], command: str, seconds: float) -> Ran:
    """Write a change to `path` and run `command`; return how it ran. The change stays only if the command passed.

    change: the text before and after. The command passes if its exit status is 0 within `seconds`. Whatever else
    happens, an interrupt included, the file holds the text before again; if this process is killed, that is in
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
    ran: Ran | None = None
    try:
        ran = await run(command, seconds)
    finally:
        if ran is None or ran.status != 0:
            # Where somebody else has changed the file meanwhile, this raises, and the backup stays.
            replace_file(path, after, before)
        backup.unlink()
    return ran


async def run(command: str, seconds: float) -> Ran:
    """Run `command` in a shell for at most so many seconds; return how it ended.

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
            return Ran(None, f"the command took longer than {seconds:g} s")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        output.seek(max(output.seek(0, os.SEEK_END) - _READ, 0))
        return read_run(status, output.read().decode("utf-8", "replace"))
