"""The user's engine process as an Engine: found, or started if there is none. Loads no model itself.

All windows share one engine process for each checkpoint and device. It is started at the first request, as a
child of nobody, and again after it died; if it keeps dying, the pause before the next start grows.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from filelock import FileLock, Timeout

from dg_lsp.checkpoints import EMBEDDED, SMALL, folder_of, is_hub_name, named
from dg_lsp.engine.client import SILENCE, EngineAbsent, EngineDied, EngineFailed, EngineSilent, RemoteEngine
from dg_lsp.engine.leaving import check_leaving
from dg_lsp.engine.runtime import Address, address_of, peer, runtime_directory, shorten
from dg_lsp.engine.states import Pace, following
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import Settings, is_vllm, path_of
from dg_lsp.text.messages import Draft, Fill, Infill, Status

_PATIENCE = 20.0  # seconds in which a started process must listen; it loads after that
_LAST_WORD = 5.0  # seconds that it then has to answer
_STOOD_STILL = "the engine stood still and was ended; the next request starts it again"
_LONGEST_PAUSE = 60.0  # seconds between two starts of an engine that keeps failing
# Run by a Python of its own: start another Python with the given arguments, tell its process id, and end. What is
# started so is nobody's child; standard output, on which the id was told, becomes standard error, which is the log.
_LAUNCHER = """
import os, sys
if process := os.fork():
    print(process)
else:
    os.setsid()
    os.dup2(2, 1)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class ResidentEngine:
    """The engine process that serves `settings`; `tell` is called with a Status whenever it changes."""

    def __init__(self, settings: Settings, tell: Callable[[Status], None] = lambda _: None) -> None:
        self._settings, self._tell = settings, tell
        self._address: Address | None = None
        self._remote: RemoteEngine | None = None
        self._failures, self._not_before, self._reason = 0, 0.0, ""
        self._window = f"{os.getpid()}-{id(self):x}"
        self._pace = Pace()
        self._starting: asyncio.Task[Status] | None = None
        # How many engines have failed. All requests that one has left open count as one failure.
        self._ended = 0
        # time.monotonic() of the first request since the engine's last word, and who waits for the next word.
        self._asked = 0.0
        self._listening: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()

    def exclude(self, globs: tuple[str, ...]) -> None:
        """Keep the text of files that `globs` name on this machine from now on."""
        self._settings = replace(self._settings, exclude=globs)

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts, then one Fill; start the engine if there is none. Closing the generator cancels.

        Raises:
            EngineError: the engine cannot be started or loaded, or died; the message says what to do. Or the request is
                for another machine, and has text that must stay here.
        """
        if self._settings.engine_url:
            check_leaving(request, self._settings.exclude)
        wait = self._not_before - time.monotonic()
        if wait > 0:
            raise EngineError(f"{self._reason} (it is tried again in {wait:.0f} s)")
        ended, answered = self._ended, False
        for again in (False, True):
            try:
                if again:
                    await self.start()
                    ended = self._ended
                async with aclosing(self._events(request)) as events:
                    async for event in events:
                        answered = True
                        yield event
                self._failures = 0
                return
            except EngineSilent as error:
                if not await self._end_silent(ended):
                    raise
                if answered or again:
                    raise EngineDied(_STOOD_STILL) from error
            except (EngineAbsent, EngineFailed, EngineDied) as error:
                if again or not isinstance(error, EngineAbsent):
                    self._back_off(str(error), ended)
                    raise
            # There was no answer yet, so the request can be sent again.

    async def status(self) -> Status | None:
        """The engine's status; None if there is no engine."""
        try:
            return await self._connect().status()
        except EngineAbsent:
            return None

    async def start(self) -> Status:
        """Start the engine if there is none; return its status once it listens (it may still be loading).

        All who ask meanwhile wait for the same start, and whoever is cancelled leaves it running: a start that ended
        with the request that began it would be begun anew by the next one, a process for each key.

        Raises:
            EngineError: it does not start; the message says what to do.
        """
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        return await asyncio.shield(self._starting)

    def _started(self, start: asyncio.Task[Status]) -> None:
        self._starting = None
        # Nobody may wait any more for the error that it ended with.
        _ = start.cancelled() or start.exception()

    async def _start(self) -> Status:
        """What `start` does, for all who wait for it.

        1. Take the start lock, so that one client at a time starts it.  2. Look again: another client may have started
        it.  3. Start the process, which is nobody's child.

        Raises:
            EngineError: it does not start; the message says what to do.
        """
        remote = self._connect()
        assert self._address is not None
        async with AsyncExitStack() as stack:
            # 1.
            with self._failure_told():
                # Again each time: the directory may have been removed, or made anew by somebody else.
                runtime_directory()
                await stack.enter_async_context(_held(self._address.start_lock))
            # 2.
            with suppress(EngineAbsent):
                status = await remote.status()
                self._tell(status)
                return status
            # 3.
            self._say(Status("starting"))
            status = await self._spawned(remote, self._address)
            self._tell(status)
            return status

    async def stop(self) -> bool:
        """End the engine, by force if it does not answer; return False if there is none."""
        self._connect()
        assert self._address is not None
        return await stop_at(self._address.socket)

    async def close(self) -> None:
        """Close the connections; the engine process runs on."""
        if self._starting is not None:
            self._starting.cancel()
        if self._listening is not None:
            self._listening.cancel()
        if self._remote is not None:
            await self._remote.close()

    async def _events(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """The answer of the running engine; tells that it is busy, and then that it is ready or slow."""
        mine, remote = replace(request, window=self._window), self._connect()
        if remote.heard >= self._asked:
            self._asked = time.monotonic()
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(remote))
        async with (
            aclosing(remote.infill(mine)) as events,
            aclosing(following(events, request.priority, self._pace, self._say)) as followed,
        ):
            async for event in followed:
                yield event

    async def _listen(self, remote: RemoteEngine) -> None:
        """End the engine if not a word comes from it in SILENCE seconds after a request.

        A request that waits as long sees that by itself; but while somebody types, each key cancels the request before.
        """
        try:
            while remote.heard < self._asked:
                left = self._asked + SILENCE - time.monotonic()
                if left <= 0:
                    await self._end_silent(self._ended)
                    return
                await asyncio.sleep(left)
        finally:
            self._listening, self._asked = None, 0.0

    async def _end_silent(self, ended: int) -> bool:
        """Kill an engine that has been silent, if it is so a second time; whether it is gone.

        ended: how many engines had failed before it.
        """
        assert self._address is not None
        # One look at a time, so that the second does not meet the engine that comes after.
        async with self._looking:
            if ended == self._ended:
                try:
                    await self._connect().status(_LAST_WORD)
                except EngineSilent:
                    _kill(self._address.socket)
                    self._back_off(_STOOD_STILL, ended)
                except EngineError:
                    pass
            return ended != self._ended

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
            reason = f"{error}; if dg-lsp was installed anew, restart the editor"
        reason = f"the engine does not start: {reason}"
        self._back_off(reason, self._ended)
        raise EngineError(reason)

    def _connect(self) -> RemoteEngine:
        if self._remote is None:
            with self._failure_told():
                self._address = address_of(self._settings)
            self._remote = RemoteEngine(self._address.socket, self._loading, SILENCE)
        return self._remote

    @contextmanager
    def _failure_told(self) -> Iterator[None]:
        """Tell an EngineError of the block as the status "failed" before it is raised."""
        try:
            yield
        except EngineError as error:
            self._say(Status("failed", mend=str(error)))
            raise

    def _loading(self, done: float) -> None:
        self._say(Status("loading", done))

    def _say(self, status: Status) -> None:
        self._tell(replace(status, checkpoint=self._settings.checkpoint))

    def _back_off(self, reason: str, ended: int) -> None:
        """Set the time before which the engine is not started again; the pause doubles from failure to failure.

        Nothing is done where the failure of the engine that came after `ended` others is known already.
        """
        if ended != self._ended:
            return
        self._ended += 1
        # Failures that are long apart are accidents, also where no fill came to its end between them.
        accident = time.monotonic() > self._not_before + _LONGEST_PAUSE
        self._failures, self._reason = 1 if accident else self._failures + 1, reason
        # No pause after the first failure.
        pause = 0.0 if self._failures == 1 else min(2.0 ** (self._failures - 1), _LONGEST_PAUSE)
        self._not_before = time.monotonic() + pause
        self._say(Status("failed", mend=reason))


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
        # An engine that stands still takes no connection in, and at some thousands that wait a connect blocks.
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
        """Whether the process has not ended; its id could be another's by now, and a dead process may keep it."""
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
    if checkpoint not in (EMBEDDED, SMALL) and not is_hub_name(checkpoint) and folder.is_dir():
        checkpoint = str(folder)
    for name in ("device", "threads", "idle_minutes", "cache_megabytes", "log_level"):
        command += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
    # Named also where they are empty: the engine inherits the variables of this process.
    for name in ("engine_url", "engine_token_file", "engine_ca"):
        value = getattr(settings, name) if is_vllm(settings.engine_url) else ""
        command += [
            f"--{name.replace('_', '-')}",
            value if name == "engine_url" or not value else str(path_of(value)),
        ]
    command += ["--engine-fallback", "off"]
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    life = FileIO(ours)
    try:
        # The log goes on over several starts, up to a limit.
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
                    f"somebody else has been starting the engine for long ({path}); try again"
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
    """The last line of the file `log`, or a phrase that stands for it."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "no word from it"
    return lines[-1] if lines else "no word from it"
