"""The engine's own process: one for a user, a checkpoint and a device, shared by all windows.

Holds the lock for its life, listens before it loads, and exits when it is idle, told to, unreachable or of no use.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn
from filelock import FileLock, Timeout
from uvicorn.protocols.http.h11_impl import H11Protocol

from dg_lsp.host.app import make_app
from dg_lsp.host.base import EngineError
from dg_lsp.host.local import LocalEngine
from dg_lsp.host.runtime import Place, peer, place_of
from dg_lsp.host.scripted import open_scripted
from dg_lsp.host.service import Hosted, Service
from dg_lsp.settings import Settings

TAKEN = 3  # exit code: another process is this engine already
FAILED = 4  # exit code: the engine could not be loaded
_LINGER = 5.0  # seconds that an engine which cannot be loaded stays to say why
_STAGES = ("importing torch", "importing transformers", "fetching", "checking", "loading")
_log = logging.getLogger("dg_lsp.engine")


def run_engine(settings: Settings) -> int:
    """Be the engine for `settings` until it is of no more use; return the exit code.

    1. Take the lock: there is one engine.  2. Listen, so that clients can wait and see.
    3. Load while listening.  4. Serve; watch for idleness and for the socket's file.  5. Leave nothing behind.

    Raises:
        EngineError: the runtime directory cannot be used.
    """
    place = place_of(settings)
    # 1. The system frees the lock however the process ends.
    lock = FileLock(place.lock)
    try:
        lock.acquire(timeout=1)
    except Timeout:
        _log.info("another process is this engine already")
        return TAKEN
    # 2. Whoever holds the lock owns the name.
    listening = _listen(place.socket)
    identity = place.socket.stat().st_ino
    try:
        # 3. and 4.
        return asyncio.run(_serve(settings, place, (listening, identity)))
    finally:
        # 5.
        if _inode(place.socket) == identity:
            place.socket.unlink(missing_ok=True)
        lock.release()


async def _serve(settings: Settings, place: Place, listening: tuple[socket.socket, int]) -> int:
    service = Service(settings.checkpoint, place.digest)
    stop = asyncio.Event()
    config = uvicorn.Config(
        make_app(service, stop.set),
        http=_SameUser,
        loop="asyncio",
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=1,
    )
    server = uvicorn.Server(config)

    async def open_engine(done: Callable[[float], None]) -> Hosted:
        return await _open(settings, done)

    load = asyncio.create_task(service.load(open_engine))
    serve = asyncio.create_task(server.serve([listening[0]]))
    watch = asyncio.create_task(_watch(service, settings, (place.socket, listening[1])))
    await asyncio.wait([serve, watch, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    # A load that hangs must not keep the process; neither may a client that reads on.
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(serve), 3)
    if not load.done() or service.working:
        logging.shutdown()
        with suppress(OSError):
            place.socket.unlink()
        os._exit(0)
    await service.close()
    return FAILED if service.failed else 0


async def _open(settings: Settings, done: Callable[[float], None]) -> Hosted:
    if settings.checkpoint.split(":")[0] == "scripted":
        return open_scripted(settings.checkpoint)

    def tell(words: str) -> None:
        stage = next((i for i, s in enumerate(_STAGES) if words.startswith(s)), len(_STAGES) - 1)
        done((stage + 1) / (len(_STAGES) + 1))
        _log.info("%s", words)

    return await asyncio.to_thread(LocalEngine.open, settings, tell)


async def _watch(service: Service, settings: Settings, listening: tuple[Path, int]) -> None:
    """Return when the engine is of no more use."""
    while True:
        await asyncio.sleep(1)
        if _inode(listening[0]) != listening[1]:
            _log.warning("the socket is gone, so nobody can come any more; exiting")
            return
        status = service.status()
        if status.state == "failed" and time.monotonic() - service.touched > _LINGER:
            return
        patience = settings.idle_minutes or (60 if status.device.startswith("cuda") else 15)
        # A request that has not moved for as long is as good as none: nothing must keep an engine for ever.
        idle = status.state in ("ready", "busy")
        if idle and time.monotonic() - service.touched > patience * 60:
            _log.info("idle for %g minutes; exiting", patience)
            return


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Between bind and chmod nobody else must come in either; the folder keeps others out, this is the second bolt.
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
    try:
        return path.stat().st_ino
    except OSError:
        return 0


class _SameUser(H11Protocol):
    """uvicorn's HTTP over a socket whose other end must be a process of the same user."""

    def connection_made(self, transport: Any) -> None:
        """Close at once what comes from somebody else."""
        if peer(transport.get_extra_info("socket"))[1] != os.getuid():
            _log.warning("a connection of another user was refused")
            transport.abort()
            return
        super().connection_made(transport)
