"""The user's engine process as an Engine: found or started, watched while it answers, ended if it hangs.

All windows share one process for each checkpoint and device. It is nobody's child; it is started at the first request,
and again after it died. If it keeps dying, the pause before the next start grows. Loads no model itself.
"""

import asyncio
import logging
import os
import signal
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from filelock import FileLock, Timeout

from dg_lsp.checkpoints import located, named
from dg_lsp.engine.client import SILENCE, Pace, RemoteEngine, is_older, other_version
from dg_lsp.engine.fatal import CRASH, CRASHED, TEXTS, hash_of
from dg_lsp.engine.http import Backoff, EngineAbsent, EngineDied, EngineFailed, EngineSilent, check_leaving
from dg_lsp.engine.runtime import Address, address_of, peer, runtime_directory, shorten
from dg_lsp.filling.engine import Engine, EngineBusy, EngineError
from dg_lsp.messages import Draft, Fill, Infill, Status
from dg_lsp.processes import launch
from dg_lsp.settings import Settings, is_foreign, path_of

# Seconds in which a started process must listen; it loads after that. A busy machine needs many for the imports alone.
_PATIENCE = 60.0
_LAST_WORD = 5.0  # seconds that a silent process has to answer before it is killed
_log = logging.getLogger(__name__)
HUNG = "the engine hung and was ended; the next request starts it again"


class ResidentEngine:
    """The engine process that serves `settings`; `tell` is called with a Status whenever it changes.

    pace: that of this client's requests.
    """

    def __init__(self, settings: Settings, tell: Callable[[Status], None] = lambda _: None) -> None:
        self._settings, self._tell = settings, tell
        self._window = f"{os.getpid()}-{id(self):x}"
        self.pace = Pace(named(settings.checkpoint))
        self._found: tuple[RemoteEngine, Address] | None = None
        self._starting: asyncio.Task[Status] | None = None
        # time.monotonic() of the first request since the engine's last word; the task that waits for the next word.
        self._asked = 0.0
        self._listening: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()
        self._backoff = Backoff(first=0.0)
        self._fatal = deque[bytes](maxlen=TEXTS)

    def exclude(self, globs: tuple[str, ...]) -> None:
        """Keep the text of files that `globs` name on this machine from now on."""
        self._settings = replace(self._settings, exclude=globs)

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts, then one Fill; start the engine if there is none. Closing the generator cancels.

        A text that has crashed an engine is not sent again.
        """
        if self._fatal and hash_of(request) in self._fatal:
            raise EngineError(CRASHED)
        if self._settings.engine_url:
            check_leaving(request, self._settings.exclude)
        if (wait := self._backoff.left) > 0:
            raise EngineError(f"{self._backoff.why} (it is tried again in {wait:.0f} s)")
        request, count, answered = replace(request, window=self._window), self._backoff.count, False
        log = self._connected()[1].log
        known = _size(log)
        for again in (False, True):
            try:
                if again:
                    await self.start()
                    count = self._backoff.count
                async with aclosing(self._watched().infill(request)) as events:
                    async for event in events:
                        answered = True
                        yield event
                self._backoff.succeed()
                return
            except EngineSilent as error:
                if not await self._end_silent(count):
                    raise
                if answered or again:
                    raise EngineDied(HUNG) from error
            except (EngineAbsent, EngineFailed, EngineDied) as error:
                if _has_crashed(log, known):
                    self._fatal.append(hash_of(request))
                    self._fail(error, count)
                    raise EngineDied(CRASHED) from error
                if again or not isinstance(error, EngineAbsent):
                    self._fail(error, count)
                    raise
            # There was no answer yet, so the request can be sent again.

    async def status(self) -> Status | None:
        """Return the engine's status; None if there is no engine."""
        try:
            return await self._connected()[0].status()
        except EngineAbsent:
            return None

    @property
    def lives(self) -> bool:
        """Return whether the engine's process lives; it may still be loading."""
        return self._connected()[1].is_held

    async def start(self) -> Status:
        """Start the engine if there is none; return its status once it listens (it may still be loading).

        All callers wait for the same start, and it continues if a caller is cancelled: a start that ended with the
        request that began it would be begun again by the next one, a process for each key.
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

    def _say(self, status: Status) -> None:
        """Tell `status`, with the name of the checkpoint."""
        self._tell(replace(status, checkpoint=self._settings.checkpoint))

    def _fail(self, error: EngineError, count: int) -> None:
        """Note that the engine that came after `count` failures failed, and tell it once."""
        if self._backoff.fail(error, count):
            self._say(Status("failed", why=str(error)))

    def _watched(self) -> RemoteEngine:
        """Return the client of the engine for a request; end the engine if it is silent for SILENCE seconds from now.

        A request that waits as long notices that by itself; but while somebody types, each key cancels the request
        before.
        """
        remote, _ = self._connected()
        if remote.heard >= self._asked:
            self._asked = time.monotonic()
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(remote))
        return remote

    async def _listen(self, remote: RemoteEngine) -> None:
        try:
            while remote.heard < self._asked:
                left = self._asked + SILENCE - time.monotonic()
                if left <= 0:
                    await self._end_silent(self._backoff.count)
                    return
                await asyncio.sleep(left)
        finally:
            self._listening, self._asked = None, 0.0

    async def _end_silent(self, count: int) -> bool:
        """Kill the silent engine that came after `count` failures, if it is silent once more.

        Return True if it is gone.
        """
        remote, address = self._connected()
        # One look at a time, so that the second does not meet the engine that comes after.
        async with self._looking:
            if count == self._backoff.count:
                try:
                    await remote.status(_LAST_WORD)
                except EngineSilent:
                    _kill(address.socket)
                    self._fail(EngineDied(HUNG), count)
                except EngineError:
                    pass
            return count != self._backoff.count

    def _connected(self) -> tuple[RemoteEngine, Address]:
        """Return the client of the engine, which may not run, and where it is."""
        if self._found is None:
            with self._failure_reported():
                address = address_of(self._settings)
            self._found = RemoteEngine(address.socket, self._say, SILENCE, self.pace), address
        return self._found

    @contextmanager
    def _failure_reported(self) -> Iterator[None]:
        """Tell an EngineError of the block as the status "failed" before it is raised."""
        try:
            yield
        except EngineError as error:
            self._say(Status("failed", why=str(error)))
            raise

    def _started(self, start: asyncio.Task[Status]) -> None:
        self._starting = None
        # Nobody may wait any more for the error that it ended with.
        _ = start.cancelled() or start.exception()

    async def _start(self) -> Status:
        """Do the work of `start`, for all its callers."""
        remote, address = self._connected()
        # Take the start lock, so that one client at a time starts it.
        with self._failure_reported():
            # Again each time: the directory may have been removed, or made again by another process.
            runtime_directory()
            lock = await _taken(address.start_lock)
        with lock:
            # Look again: another client may have started it.
            if (status := await _running(remote, address)) is None:
                # Start the process, which is nobody's child.
                self._say(Status("starting"))
                status = await self._spawned(remote, address)
            if said := other_version(status):
                _log.warning("%s", said)
            self._tell(status)
            return status

    async def _spawned(self, remote: RemoteEngine, address: Address) -> Status:
        """Start a process, and return its status once it listens."""
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
        self._fail(failure, self._backoff.count)
        raise failure


@dataclass(frozen=True, slots=True)
class Fallback:
    """The engine `first`, and `second` for each request that the first one fails; `fail` is called with its error."""

    first: Engine
    second: Engine
    fail: Callable[[EngineError], None]

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield the answer of one of the engines; the Drafts of the second one begin again."""
        try:
            async with aclosing(self.first.infill(request)) as events:
                async for event in events:
                    yield event
            return
        except EngineBusy:
            raise
        except EngineError as error:
            self.fail(error)
            # A text that has crashed one engine is not sent to another.
            if str(error) == CRASHED:
                raise
        async with aclosing(self.second.infill(request)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Do nothing: the engines belong to their owner."""


async def _running(remote: RemoteEngine, address: Address) -> Status | None:
    """Return the status of the engine at `address`; None if there is none, or none any more.

    One that an older dg-lsp has left behind, and that nobody uses, is ended here.
    """
    try:
        status = await remote.status()
    except EngineAbsent:
        return None
    if not is_older(status) or not await remote.stop_idle():
        return status
    _log.info("ended the engine of dg-lsp %s, which nobody used", status.package)
    with await _taken(address.lock):
        return None


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
    with await _taken(path.with_suffix(".lock")):
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
    """Start an engine process for `settings`, with its output in the log file."""
    # The log tells of a crash. The socket is named, because another version of dg-lsp may have another rule for it.
    command = ["-X", "faulthandler", "-m", "dg_lsp", "engine", "run", "--socket", str(address.socket)]
    for name in ("device", "weight_bits", "threads", "idle_minutes", "cache_megabytes", "log_level"):
        command += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
    # Named also where they are empty: the engine inherits the variables of this process.
    for name in ("engine_url", "engine_token_file", "engine_ca"):
        value = getattr(settings, name) if is_foreign(settings.engine_url) else ""
        is_path = name != "engine_url" and value
        command += [f"--{name.replace('_', '-')}", str(path_of(value)) if is_path else value]
    command += ["--engine-fallback", "off"]
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    life = FileIO(ours)
    try:
        # The log is kept over several starts, up to a limit.
        with address.log.open("ab") as log:
            shorten(log.fileno())
            command += ["--checkpoint", located(settings.checkpoint)]
            process = launch(command, address.socket.parent, log, theirs)
    finally:
        # The engine has a copy of it, which is closed when it ends.
        os.close(theirs)
    return _Started(process, life)


async def _taken(path: Path) -> AbstractContextManager[object]:
    """Take the lock at `path` without blocking the event loop; it is released at the end of a `with` block."""
    lock, end = FileLock(path, thread_local=False), time.monotonic() + 2 * _PATIENCE
    while True:
        try:
            return lock.acquire(blocking=False)
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


def _size(log: Path) -> int:
    """Return the size of the file `log`; 0 if there is none."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _has_crashed(log: Path, known: int) -> bool:
    """Return whether `log` tells of a crash after its first `known` bytes."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(known)
        return CRASH in file.read()
    return False


def _last_line(log: Path) -> str:
    """Return the last line of the file `log`, or a phrase if there is none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "it logged nothing"
    return lines[-1] if lines else "it logged nothing"
