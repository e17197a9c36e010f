"""The user's engine process, found or started, as an Engine. Knows processes and locks; loads no model itself.

All windows share one engine for each checkpoint and device. It is started on the first request, in a session of
its own, and again after it died, each time later when it keeps dying.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from dg_lsp.host.base import EngineError
from dg_lsp.host.client import EngineAbsent, EngineDied, EngineFailed, RemoteEngine
from dg_lsp.host.runtime import Place, peer, place_of
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Draft, Fill, Infill, Status

_PATIENCE = 20.0  # seconds until a process that was started must listen; loading comes after that
_LOG_BYTES = 1 << 20


class ResidentEngine:
    """The engine that serves `settings`. `tell` gets a Status whenever there is something new to say."""

    def __init__(self, settings: Settings, tell: Callable[[Status], None] = lambda _: None) -> None:
        self._settings, self._tell = settings, tell
        self._place: Place | None = None
        self._remote: RemoteEngine | None = None
        self._failures, self._not_before, self._reason = 0, 0.0, ""

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts and, last, one Fill; starts the engine when there is none. Closing the generator cancels.

        Raises:
            EngineError: the engine cannot be started or loaded, or died; the message says the mend.
        """
        wait = self._not_before - time.monotonic()
        if wait > 0:
            raise EngineError(f"{self._reason} (it is tried again in {wait:.0f} s)")
        try:
            try:
                async with aclosing(self._events(request)) as events:
                    async for event in events:
                        yield event
            except EngineAbsent:
                # Nothing was answered, so nothing is done twice.
                await self.start()
                async with aclosing(self._events(request)) as events:
                    async for event in events:
                        yield event
            self._failures = 0
        except (EngineAbsent, EngineFailed, EngineDied) as error:
            self._put_off(str(error))
            raise

    async def status(self) -> Status | None:
        """How the engine fares; None when there is none."""
        try:
            return await self._connect().status()
        except EngineAbsent:
            return None

    async def start(self) -> Status:
        """Start the engine unless there is one; return when it listens (it may still be loading).

        1. One starter at a time.  2. Somebody else may have been quicker.  3. A process in a session of its own.

        Raises:
            EngineError: it does not start, or died too often; the message says the mend.
        """
        remote = self._connect()
        assert self._place is not None
        # 1.
        async with _held(self._place.start):
            # 2.
            with suppress(EngineAbsent):
                status = await remote.status()
                self._tell(status)
                return status
            # 3.
            self._say(Status("starting"))
            status = await self._spawned(remote, self._place)
            self._tell(status)
            return status

    async def stop(self) -> bool:
        """End the engine, by force when it does not answer; False when there is none."""
        self._connect()
        assert self._place is not None
        return await stop_at(self._place.socket)

    async def close(self) -> None:
        """Leave the engine alone and running."""
        if self._remote is not None:
            await self._remote.close()

    async def _events(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        status = None
        try:
            async with aclosing(self._connect().infill(request)) as events:
                async for event in events:
                    if status is None:
                        self._say(status := Status("busy", 1.0))
                    if isinstance(event, Fill):
                        status = Status("ready", 1.0, milliseconds=event.milliseconds, steps=event.steps)
                    yield event
        finally:
            # Also after a cancel: the engine is free again.
            if status is not None:
                self._say(replace(status, state="ready"))

    async def _spawned(self, remote: RemoteEngine, place: Place) -> Status:
        process = _spawn(self._settings, place)
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with suppress(EngineAbsent, EngineDied):
                return await remote.status()
            if process.poll() is not None:
                break
            await asyncio.sleep(0.02)
        process.kill()
        reason = f"the engine does not start: {_last_line(place.log)} (more in {place.log})"
        self._put_off(reason)
        raise EngineError(reason)

    def _connect(self) -> RemoteEngine:
        if self._remote is None:
            try:
                self._place = place_of(self._settings)
            except EngineError as error:
                self._say(Status("failed", mend=str(error)))
                raise
            self._remote = RemoteEngine(self._place.socket, self._loading)
        return self._remote

    def _loading(self, done: float) -> None:
        self._say(Status("loading", done))

    def _say(self, status: Status) -> None:
        self._tell(replace(status, checkpoint=self._settings.checkpoint))

    def _put_off(self, reason: str) -> None:
        """Wait longer each time, so that an engine which dies at once does not eat the machine."""
        self._failures, self._reason = self._failures + 1, reason
        # The first death may be an accident: the next request starts it at once.
        pause = 0.0 if self._failures == 1 else min(2.0 ** (self._failures - 1), 60.0)
        self._not_before = time.monotonic() + pause
        self._say(Status("failed", mend=reason))


async def stop_at(path: Path) -> bool:
    """End the engine that listens at `path`, by force when it does not answer; False when there is none."""
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
    """End the process that listens at `path`, whatever it is doing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, suppress(OSError):
        connection.connect(str(path))
        process = peer(connection)[0]
        if process:
            os.kill(process, signal.SIGKILL)


def _spawn(settings: Settings, place: Place) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dg_lsp", "engine", "run"]
    checkpoint = Path(settings.checkpoint)
    named = str(checkpoint.absolute()) if checkpoint.is_dir() else settings.checkpoint
    for name in ("device", "threads", "idle_minutes", "cache_megabytes", "log_level"):
        command += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
    # What it says from here on belongs to this life; an endless log helps nobody.
    mode = "ab" if place.log.exists() and place.log.stat().st_size < _LOG_BYTES else "wb"
    with place.log.open(mode) as log:
        return subprocess.Popen(
            [*command, "--checkpoint", named],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=place.socket.parent,
            start_new_session=True,
        )


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
    try:
        yield
    finally:
        lock.release()


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "no word from it"
    return lines[-1] if lines else "no word from it"
