"""The programs that dg-lsp starts: no other module starts a process.

They start in the root folder, where they find no module, configuration or environment of a workspace, and are found in
the absolute folders of PATH only. Two are started otherwise: what a model wrote, and the user's own command.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

AWAY = Path("/")  # no workspace, it cannot be removed, and only the administrator writes there
# Variables that hold lists of folders; a relative one would be a workspace's.
_LISTS = ("PATH", "PYTHONPATH")
# Run by a Python of its own: start another Python with the given arguments, print its process id, and end. A
# process started so is nobody's child; its standard output, on which the id was printed, becomes the log.
_LAUNCHER = """
import os, sys
if process := os.fork():
    print(process)
else:
    os.setsid()
    os.dup2(2, 1)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def find_program(name: str) -> str | None:
    """Return the absolute path of the program `name` in an absolute folder of PATH; None if there is none.

    A name with a slash is a path, from the current folder.
    """
    folders = _absolute(os.environ.get("PATH", os.defpath)).split(os.pathsep)
    places = (
        [Path(name).absolute()] if os.sep in name else [Path(folder, name) for folder in folders if folder]
    )
    return next((found for place in places if (found := shutil.which(str(place)))), None)


def python(*arguments: str) -> list[str]:
    """Return the command that runs our own Python; with -P it takes no module from the folder it is started in."""
    return [sys.executable, "-P", *arguments]


def run(command: Sequence[str], seconds: float) -> "subprocess.CompletedProcess[str]":
    """Run `command` to its end and return its exit code, output and error output.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it took longer than `seconds`.
    """
    try:
        return subprocess.run(
            command,
            cwd=AWAY,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(str(error)) from error


def start(command: Sequence[str], output: IO[bytes], more: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start `command` with `more` variables; all that it prints goes to `output`."""
    return subprocess.Popen(
        command,
        cwd=AWAY,
        env={**environment(), **more},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
    )


async def start_talking(command: Sequence[str], longest: int) -> Process:
    """Start `command` in a session of its own; its `stdout` gives all that it prints, in lines of `longest` bytes."""
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=AWAY,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=longest,
        start_new_session=True,
    )


def launch(arguments: Sequence[str], folder: Path, log: IO[bytes], kept: int) -> int:
    """Start our own Python with `arguments` as nobody's child and return its process id; 0 if that failed.

    It starts in `folder`, its output goes to `log`, and it inherits the descriptor `kept`. It belongs to no window: an
    editor that ends its children, their process group or their session does not reach it.
    """
    launched = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, "-P", *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        pass_fds=(kept,),
        check=False,
    )
    return int(launched.stdout or 0)


def start_untrusted(command: Sequence[str], folder: str, output: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start `command`, which runs what a model wrote: in `folder`, in a session of its own, without any variable."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env={},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """Wait at most so many seconds for the end of `process` and return its exit code; None if it has not ended."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


async def start_users_command(command: str, output: IO[bytes], more: Mapping[str, str]) -> Process:
    """Start the shell command that the user has typed, with `more` variables, in a session of its own.

    It runs as in the user's shell: in the current folder, and with all variables as they are.
    """
    return await asyncio.create_subprocess_shell(
        command,
        env={**os.environ, **more},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def environment() -> dict[str, str]:
    """Return the variables of this process, without the relative folders in lists of folders."""
    own = dict(os.environ)
    for name in own.keys() & {*_LISTS}:
        own[name] = _absolute(own[name])
        # An empty list would mean the current folder.
        if not own[name]:
            del own[name]
    return own


def _absolute(folders: str) -> str:
    """Return the absolute ones of a list of folders; an empty one means the current folder."""
    return os.pathsep.join(filter(os.path.isabs, folders.split(os.pathsep)))
