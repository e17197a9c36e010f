"""The main function of an engine process: one for a user, a checkpoint and a device, shared by all windows.

It holds its lock for life, listens before it loads, and exits when it is idle, asked to, unreachable or cannot load.
"""

import asyncio
import gc
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from filelock import FileLock, Timeout
from uvicorn.protocols.http.h11_impl import H11Protocol

from dg_lsp.checkpoints import digest_of
from dg_lsp.engine.local import ForeignEngine, LocalEngine
from dg_lsp.engine.runtime import Address, address_of, is_own, remove_old, shorten
from dg_lsp.engine.scripted import open_scripted
from dg_lsp.filling.engine import EngineError
from dg_lsp.serving.app import config_of, make_app
from dg_lsp.serving.loading import Loading
from dg_lsp.serving.service import Hosted, Service
from dg_lsp.settings import LLAMA, VLLM, Settings, address_in

TAKEN = 3  # exit code: another process is this engine already
FAILED = 4  # exit code: the engine could not be loaded
STUCK = 5  # exit code: the engine hung, or its libraries failed
_LOOK = 1.0  # seconds between two looks whether the engine has to exit
_LINGER = 5.0  # seconds that an engine which failed to load stays to tell clients the reason
_TICK = 0.2  # seconds between two looks at how far the loading is
_log = logging.getLogger("dg_lsp.model")


def run_engine(settings: Settings, named: Path | None = None) -> int:
    """Run the engine for `settings` until it has to exit; return the exit code.

    named: the socket at which the client that starts it will look for it; by default the one for `settings`.
    """
    address = Address(named, digest_of(settings.checkpoint)) if named else address_of(settings)
    # If memory ends, the system should end the engine rather than an editor.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    # Take the lock, so that there is one engine. The operating system frees the lock however the process ends.
    lock = FileLock(address.lock)
    try:
        lock.acquire(timeout=1)
    except Timeout:
        _log.info("another process is this engine already")
        return TAKEN
    with suppress(EngineError, OSError):
        remove_old()
    # Listen, so that clients can follow the loading. The holder of the lock may replace a socket that is left over.
    listening = _listen(address.socket)
    identity = address.socket.stat().st_ino
    try:
        # Load and serve; watch for idleness and for the removal of the socket.
        return asyncio.run(_serve(settings, address, (listening, identity)))
    finally:
        # Remove the socket and free the lock.
        if _inode(address.socket) == identity:
            address.socket.unlink(missing_ok=True)
        lock.release()


async def _serve(settings: Settings, address: Address, listening: tuple[socket.socket, int]) -> int:
    def stop() -> None:
        server.should_exit = True

    service = Service(settings.checkpoint, address.digest)
    app = make_app(service, stop)
    server = uvicorn.Server(config_of(app, _SameUser, timeout_graceful_shutdown=1, timeout_keep_alive=1))
    watch = _watch(service, settings, (address.socket, listening[1]))
    return await host(service, settings, server, listening[0], watch)


async def host(
    service: Service,
    settings: Settings,
    server: uvicorn.Server,
    listening: socket.socket,
    watch: Coroutine[Any, Any, int],
) -> int:
    """Load the engine of `settings` into `service`, and serve it meanwhile; return the exit code of the process.

    It ends when `watch` returns the exit code, the server is to exit, or the task is cancelled.
    """
    path = listening.getsockname() if listening.family == socket.AF_UNIX else ""  # the server closes it
    load = asyncio.create_task(service.load(partial(open_engine, settings)))
    serving, watching = asyncio.create_task(server.serve([listening])), asyncio.create_task(watch)
    try:
        await asyncio.wait([serving, watching], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        # A client that reads on may not keep the process.
        await asyncio.wait([serving], timeout=(server.config.timeout_graceful_shutdown or 0) + 2)
        if serving.done():
            serving.result()  # raises what the server failed with
    finally:
        ended = watching.result() if watching.done() else 0
        for task in (watching, load, serving):
            task.cancel()
    # Nor may a load or a step that hangs.
    if ended == STUCK or not load.done() or service.working:
        logging.shutdown()
        if path:
            Path(path).unlink(missing_ok=True)
        os._exit(ended)
    await service.close()
    return ended


async def open_engine(settings: Settings, done: Callable[[float], None]) -> Hosted:
    """Load the engine for `settings`; `done` gets the share of the loading that is done."""
    server = settings.engine_url.removesuffix(address_in(settings.engine_url))
    engine = await ENGINES.get(server or settings.checkpoint.partition(":")[0], _open_local)(settings, done)
    # The objects that exist now stay. To walk through all of them takes half of the time that ghost text has for text.
    gc.collect()
    gc.freeze()
    return engine


async def _open_local(settings: Settings, done: Callable[[float], None]) -> Hosted:
    loading = Loading(digest_of(settings.checkpoint))

    def tell(words: str) -> None:
        loading.say(words)
        _log.info("%s", words)

    async def follow() -> None:
        while True:
            done(loading.share)
            await asyncio.sleep(_TICK)

    following = asyncio.create_task(follow())
    try:
        engine = await asyncio.to_thread(LocalEngine.open, settings, tell)
    finally:
        following.cancel()
    loading.keep()
    return engine


async def _open_scripted(settings: Settings, _: Callable[[float], None]) -> Hosted:
    return open_scripted(settings.checkpoint)


async def _open_foreign(settings: Settings, _: Callable[[float], None]) -> Hosted:
    # In a thread, since clients take an engine that does not answer for some seconds for dead.
    engine = await asyncio.to_thread(_foreign, settings)
    # The reason is in its status, and each request checks the server again.
    with suppress(EngineError):
        await engine.connect()
    return engine


def _foreign(settings: Settings) -> ForeignEngine:
    # They import torch, which is slow, and which a process with weights imports later.
    from dg_lsp.engine.llama import LlamaEngine  # noqa: PLC0415
    from dg_lsp.engine.vllm import VllmEngine  # noqa: PLC0415

    return (VllmEngine if settings.engine_url.startswith(VLLM) else LlamaEngine)(settings)


# The engines except a checkpoint in this process: by the beginning of its name, or of a server's address.
ENGINES: dict[str, Callable[[Settings, Callable[[float], None]], Awaitable[Hosted]]] = {
    "scripted": _open_scripted,
    VLLM: _open_foreign,
    LLAMA: _open_foreign,
}


async def _watch(service: Service, settings: Settings, listening: tuple[Path, int]) -> int:
    """Return the exit code when the engine must exit: it cannot work, cannot be reached, failed to load, or is idle."""
    log = listening[0].with_suffix(".log")
    while True:
        await asyncio.sleep(_LOOK)
        # Standard error is the log only where a client has started this engine.
        with suppress(OSError):
            if _inode(log) == os.fstat(2).st_ino:
                shorten(2)
        why = service.broken
        if still := service.stuck:
            why = f"the engine hung for {still:.0f} s and ends; the next request starts it again"
        if why:
            _log.error("%s", why)
            service.give_up(why)
            # Time for the answers to leave. The model's thread cannot be ended, so the process ends with it.
            await asyncio.sleep(0.5)
            return STUCK
        if _inode(listening[0]) != listening[1]:
            _log.warning("the socket is gone, so no client can connect any more; exiting")
            return 0
        status = service.status()
        if service.failed and time.monotonic() - service.last_active > _LINGER:
            return FAILED
        patience = settings.idle_minutes or (60 if status.device.startswith("cuda") else 15)
        # A request without progress for that long does not keep the engine either.
        idle = status.state not in ("starting", "loading")
        if idle and time.monotonic() - service.last_active > patience * 60:
            _log.info("idle for %g minutes; exiting", patience)
            return 0


def _listen(path: Path) -> socket.socket:
    """Open a socket that listens at `path`, and that only the user may connect to."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # With this umask the socket is closed to others from its first moment, as its folder is.
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    except OSError as error:
        raise EngineError(
            f"no socket can be made at {path} ({error.strerror}); set DG_LSP_RUNTIME_DIR"
        ) from error
    finally:
        os.umask(before)
    listening.listen(128)
    return listening


def _inode(path: Path) -> int:
    """Return the inode of `path`; 0 if there is no such file."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


class _SameUser(H11Protocol):
    """uvicorn's HTTP protocol, for clients of the same user only."""

    def connection_made(self, transport: Any) -> None:
        """Close the connection of another user at once."""
        if not is_own(transport.get_extra_info("socket")):
            _log.warning("a connection of another user was refused")
            transport.abort()
            return
        super().connection_made(transport)
