"""The life of the user's engine process: started once for all windows, watched while it answers, ended if it hangs.

Loads no model itself. The process is nobody's child; if it keeps dying, the pause before the next start grows.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from filelock import FileLock, Timeout

from dg_lsp.checkpoints import EMBEDDED, OFFERED, folder_of, is_hub_name, named
from dg_lsp.engine.backoff import Backoff
from dg_lsp.engine.client import SILENCE, RemoteEngine
from dg_lsp.engine.http import EngineAbsent, EngineDied, EngineSilent
from dg_lsp.engine.runtime import Address, address_of, peer, runtime_directory, shorten
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import Settings, is_foreign, path_of
from dg_lsp.text.messages import Status

_PATIENCE = 20.0  # seconds in which a started process must listen; it loads after that
_LAST_WORD = 5.0  # seconds that a silent process has to answer before it is killed
HUNG = "the engine hung and was ended; the next request starts it again"
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


class Supervisor:
    """Starts, watches and ends the engine process that serves `settings`; `tell` is called with each new Status.

    backoff: when it may be started again.
    """

    def __init__(self, settings: Settings, tell: Callable[[Status], None]) -> None:
        self._settings, self._tell = settings, tell
        self._found: tuple[RemoteEngine, Address] | None = None
        self._starting: asyncio.Task[Status] | None = None
        # time.monotonic() of the first request since the engine's last word; the task that waits for the next word.
        self._asked = 0.0
        self._listening: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()
        self.backoff = Backoff(first=0.0)

    def connect(self) -> RemoteEngine:
        """Return the client of the engine, which may not run.

        Raises:
            EngineError: the folder of the engines cannot be used.
        """
        return self._connected()[0]

    async def start(self) -> Status:
        """Start the engine if there is none; return its status once it listens (it may still be loading).

        All callers wait for the same start, and it continues if a caller is cancelled: a start that ended with the
        request that began it would be begun again by the next one, a process for each key.

        Raises:
            EngineError: it does not start; the message says what to do.
        """
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        return await asyncio.shield(self._starting)

    async def stop(self) -> bool:
        """End the engine, by force if it does not answer; return False if there is none."""
        return await stop_at(self._connected()[1].socket)

    async def close(self) -> None:
        """Close the connections; the engine process runs on."""
        for task in (self._starting, self._listening):
            if task is not None:
                task.cancel()
        if self._found is not None:
            await self._found[0].close()

    def say(self, status: Status) -> None:
        """Tell `status`, with the name of the checkpoint."""
        self._tell(replace(status, checkpoint=self._settings.checkpoint))

    def fail(self, error: EngineError, count: int) -> None:
        """Note that the engine that came after `count` failures failed, and tell it once."""
        if self.backoff.fail(error, count):
            self.say(Status("failed", why=str(error)))

    def watch(self) -> None:
        """End the engine if it is silent for SILENCE seconds from a request that begins now.

        A request that waits as long notices that by itself; but while somebody types, each key cancels the request
        before.
        """
        remote = self.connect()
        if remote.heard >= self._asked:
            self._asked = time.monotonic()
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(remote))

    async def end_silent(self, count: int) -> bool:
        """Kill the silent engine that came after `count` failures, if it is silent once more.

        Return True if it is gone.
        """
        remote, address = self._connected()
        # One look at a time, so that the second does not meet the engine that comes after.
        async with self._looking:
            if count == self.backoff.count:
                try:
                    await remote.status(_LAST_WORD)
                except EngineSilent:
                    _kill(address.socket)
                    self.fail(EngineDied(HUNG), count)
                except EngineError:
                    pass
            return count != self.backoff.count

    def _connected(self) -> tuple[RemoteEngine, Address]:
        if self._found is None:
            with self._failure_reported():
                address = address_of(self._settings)
            tell = lambda done: self.say(Status("loading", done))  # noqa: E731
            self._found = RemoteEngine(address.socket, tell, SILENCE), address
        return self._found

    @contextmanager
    def _failure_reported(self) -> Iterator[None]:
        """Tell an EngineError of the block as the status "failed" before it is raised."""
        try:
            yield
        except EngineError as error:
            self.say(Status("failed", why=str(error)))
            raise

    def _started(self, start: asyncio.Task[Status]) -> None:
        self._starting = None
        # Nobody may wait any more for the error that it ended with.
        _ = start.cancelled() or start.exception()

    async def _start(self) -> Status:
        """Do the work of `start`, for all its callers.

        1. Take the start lock, so that one client at a time starts it.  2. Look again: another client may have started
        it.  3. Start the process, which is nobody's child.

        Raises:
            EngineError: it does not start; the message says what to do.
        """
        remote, address = self._connected()
        async with AsyncExitStack() as stack:
            # 1.
            with self._failure_reported():
                # Again each time: the directory may have been removed, or made again by another process.
                runtime_directory()
                await stack.enter_async_context(_held(address.start_lock))
            # 2.
            try:
                status = await remote.status()
            except EngineAbsent:
                # 3.
                self.say(Status("starting"))
                status = await self._spawned(remote, address)
            self._tell(status)
            return status

    async def _listen(self, remote: RemoteEngine) -> None:
        try:
            while remote.heard < self._asked:
                left = self._asked + SILENCE - time.monotonic()
                if left <= 0:
                    await self.end_silent(self.backoff.count)
                    return
                await asyncio.sleep(left)
        finally:
            self._listening, self._asked = None, 0.0

    async def _spawned(self, remote: RemoteEngine, address: Address) -> Status:
        """Start a process and wait until it listens; its status.

        Raises:
            EngineError: it ended, or did not listen within _PATIENCE seconds.
        """
        try:
            started = await asyncio.to_thread(_spawn, self._settings, address)
            with started.life:
                end = time.monotonic() + _PATIENCE
                while time.monotonic() < end and started.lives:
                    with suppress(EngineAbsent, EngineDied):
                        return await remote.status()
                    await asyncio.sleep(0.02)
                if started.lives:
                    os.kill(started.process, signal.SIGKILL)
            reason = f"{_last_line(address.log)} (more in {address.log})"
        except OSError as error:
            # Such as a Python that was taken away with its installation, or a log that cannot be written.
            reason = f"{error}; if dg-lsp was reinstalled, restart the editor"
        failure = EngineError(f"the engine does not start: {reason}")
        self.fail(failure, self.backoff.count)
        raise failure


async def stop_at(path: Path) -> bool:
    """End the engine that listens at `path`, by force if it does not answer; return False if there is none."""
    remote = RemoteEngine(path)
    try:
        await remote.stop()
    except EngineAbsent:
        return False
    except EngineDied:
        _kill(path)
    finally:
        await remote.close()
    # The lock is free as soon as the process has ended.
    async with _held(path.with_suffix(".lock")):
        path.unlink(missing_ok=True)
    return True


def _kill(path: Path) -> None:
    """Kill the process that listens at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, suppress(OSError):
        # An engine that hangs accepts no connection, and with some thousands waiting a connect blocks.
        connection.settimeout(1)
        connection.connect(str(path))
        process = peer(connection)[0]
        if process:
            os.kill(process, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class _Started:
    """A process that is nobody's child. life: the end of a pipe, at its end once the process has ended."""

    process: int
    life: FileIO

    @property
    def lives(self) -> bool:
        """Return whether the process lives; its id may be reused, and a dead process may keep it."""
        # Without an id nobody may be ended: 0 would be the window's own group, the editor with it.
        return self.process > 0 and self.life.read(1) is None


def _spawn(settings: Settings, address: Address) -> _Started:
    """Start an engine process for `settings`, with its output in the log file.

    It belongs to no window: an editor that ends its children, their process group or their session does not reach it.
    """
    # With -P no module is taken from the current folder. The socket is named, because another version of dg-lsp may
    # have another rule for it.
    command = ["-P", "-m", "dg_lsp", "engine", "run", "--socket", str(address.socket)]
    # A folder is named from the root, as the engine runs elsewhere. Our own names and the hub's are no folders of here.
    checkpoint, folder = named(settings.checkpoint), folder_of(settings.checkpoint)
    if checkpoint not in (EMBEDDED, *OFFERED) and not is_hub_name(checkpoint) and folder.is_dir():
        checkpoint = str(folder)
    for name in ("device", "weight_bits", "threads", "idle_minutes", "cache_megabytes", "log_level"):
        command += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
    # Named also where they are empty: the engine inherits the variables of this process.
    for name in ("engine_url", "engine_token_file", "engine_ca"):
        value = getattr(settings, name) if is_foreign(settings.engine_url) else ""
        command += [
            f"--{name.replace('_', '-')}",
            value if name == "engine_url" or not value else str(path_of(value)),
        ]
    command += ["--engine-fallback", "off"]
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    life = FileIO(ours)
    try:
        # The log is kept over several starts, up to a limit.
        with address.log.open("ab") as log:
            shorten(log.fileno())
            launched = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command, "--checkpoint", checkpoint],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=address.socket.parent,
                pass_fds=(theirs,),
                check=False,
            )
    finally:
        # The engine has a copy of it, which is closed when it ends.
        os.close(theirs)
    return _Started(int(launched.stdout or 0), life)


@asynccontextmanager
async def _held(path: Path) -> AsyncIterator[None]:
    """Hold the lock at `path`, waiting without blocking the event loop."""
    lock = FileLock(path, thread_local=False)
    end = time.monotonic() + 2 * _PATIENCE
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            if time.monotonic() > end:
                raise EngineError(
                    f"another process has been starting the engine for a long time ({path}); try again"
                ) from None
            await asyncio.sleep(0.02)
        except OSError as error:
            # Such as NFS without locks.
            raise EngineError(
                f"the folder {path.parent} cannot hold a lock ({error.strerror}); set DG_LSP_RUNTIME_DIR to a folder "
                "on a disk of this machine"
            ) from error
    try:
        yield
    finally:
        lock.release()


def _last_line(log: Path) -> str:
    """Return the last line of the file `log`, or a phrase if there is none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "it logged nothing"
    return lines[-1] if lines else "it logged nothing"
