"""The files of an engine process: its directory, socket, locks and log. Knows files; starts nothing.

All engines of a user share one directory that only the user may enter: `DG_LSP_RUNTIME_DIR`, else a folder in
`XDG_RUNTIME_DIR`, else one in the system's temporary folder.
"""

import errno
import fcntl
import hashlib
import os
import re
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dg_lsp.checkpoints import digest_of
from dg_lsp.engine.wire import WIRE
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import RUNTIME_DIR, Settings, is_foreign, path_of

_GPUS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # one of them is there where torch can see a GPU
_LOG_BYTES = 1 << 20  # a longer log is written from its beginning
LOADING = "loading.lock"  # held by the engine that loads a model
_FILE = re.compile(r"\d+-[0-9a-f]{10}-\w+(?:-\d+)?\.(?:sock|lock|start|log)")
_OLD = 7 * 86_400  # seconds after which the files of an engine that does not run are removed
_LONGEST = 100  # bytes of a socket's path; every system accepts as many


@dataclass(frozen=True, slots=True)
class Address:
    """The files of one engine process. digest: that of the checkpoint, hex. socket: where the engine listens."""

    socket: Path
    digest: str

    @property
    def lock(self) -> Path:
        """The lock file that the engine holds while it lives; nothing else says whether it lives."""
        return self.socket.with_suffix(".lock")

    @property
    def is_held(self) -> bool:
        """Return whether an engine lives here. A socket may be left over from one that was killed."""
        try:
            lock = os.open(self.lock, os.O_RDWR)
        except OSError:
            return False
        try:
            # Shared, so that others who look at the same moment do not take it for an engine's.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False  # such as NFS without locks, where no engine runs
        finally:
            os.close(lock)
        return False

    @property
    def start_lock(self) -> Path:
        """The lock file that a client holds while it starts the engine."""
        return self.socket.with_suffix(".start")

    @property
    def log(self) -> Path:
        """The log file of the engine; it holds no source text."""
        return self.socket.with_suffix(".log")


def runtime_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the user's engines, made if missing and closed to others, or raise EngineError."""
    path = _directory(environment)
    try:
        if not path.is_absolute():
            raise FileNotFoundError(errno.ENOENT, "it is no path from the root")
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # lstat, because a link could lead to a folder of somebody else's choice.
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise EngineError(f"{path} is not your own folder; set DG_LSP_RUNTIME_DIR to one that is")
        if stat.S_IMODE(found.st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EngineError(
            f"the engine's folder {path} cannot be used ({reason}); set DG_LSP_RUNTIME_DIR to another"
        ) from error
    return path


def is_of_engine(path: Path) -> bool:
    """Return whether `path` is named as a file of an engine; the folder may hold files of others."""
    return _FILE.fullmatch(path.name) is not None


def remove_old() -> None:
    """Remove the files of engines that have not been started for a week and do not run."""
    found: dict[Path, list[Path]] = {}
    for path in filter(is_of_engine, runtime_directory().iterdir()):
        found.setdefault(path.with_suffix(".sock"), []).append(path)
    for socket_path, files in found.items():
        address = Address(socket_path, "")
        with suppress(OSError, Timeout):
            if max(file.stat().st_mtime for file in files) > time.time() - _OLD:
                continue
            # Nobody starts it meanwhile: a client that waits for a lock whose file is gone makes a new one.
            with FileLock(address.start_lock, timeout=0), FileLock(address.lock, timeout=0):
                for file in (address.socket, address.log, address.lock, address.start_lock):
                    file.unlink(missing_ok=True)


def shorten(log: int) -> None:
    """Empty the log file that is open as the descriptor `log`, if it is too long; writers continue in it."""
    if os.fstat(log).st_size > _LOG_BYTES:
        os.ftruncate(log, 0)


def address_of(settings: Settings) -> Address:
    """Return the address of the engine of `settings`, one for each wire version, checkpoint, device and bits."""
    digest = digest_of(settings.checkpoint)
    device = re.sub(r"\W", "", _device(settings))[:12]
    bits = "" if settings.weight_bits == 16 else f"-{settings.weight_bits}"
    path = runtime_directory() / f"{WIRE}-{digest[:10]}-{device}{bits}.sock"
    if len(os.fsencode(path)) > _LONGEST:
        raise EngineError(f"{path} is too long for a socket; set DG_LSP_RUNTIME_DIR to a shorter path")
    return Address(path, digest)


def _device(settings: Settings) -> str:
    """Return the device of the settings for the address; auto is cpu on Linux without a GPU, so that one engine runs.

    For a server of vLLM or llama.cpp it is a hash of its address, the token's file and the certificates.
    """
    if is_foreign(settings.engine_url):
        server = repr((settings.engine_url, settings.engine_token_file, settings.engine_ca))
        return "at" + hashlib.sha256(server.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    if settings.device != "auto" or sys.platform != "linux" or any(Path(gpu).exists() for gpu in _GPUS):
        return settings.device
    return "cpu"


def sockets() -> list[Path]:
    """List the sockets of all engines of this user, running or not."""
    return sorted(runtime_directory().glob("*.sock"))


# macOS' <sys/un.h>: who is at the other end of a Unix socket; struct xucred begins with a version and the user.
_SOL_LOCAL, _PEERCRED, _PEERPID, _XUCRED = 0, 1, 2, 76


def peer(connection: Any) -> tuple[int, int]:
    """Return the ids of the process and the user at the other end of a Unix socket; (0, own user) if unknown."""
    if sys.platform == "darwin":
        process = int.from_bytes(connection.getsockopt(_SOL_LOCAL, _PEERPID, 4), sys.byteorder)
        _, user = struct.unpack_from("=2I", connection.getsockopt(_SOL_LOCAL, _PEERCRED, _XUCRED))
        return process, user
    if not hasattr(socket, "SO_PEERCRED"):
        return 0, os.getuid()
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process, user, _ = struct.unpack("3i", credentials)
    return process, user


def is_own(connection: Any) -> bool:
    """Return whether a Unix socket's other end belongs to the same user; True where the system does not tell."""
    return peer(connection)[1] == os.getuid()


def _directory(environment: Mapping[str, str]) -> Path:
    if named := environment.get(RUNTIME_DIR):
        return path_of(named)
    session = environment.get("XDG_RUNTIME_DIR")
    if session and os.access(session, os.W_OK):
        return Path(session) / "dg-lsp"
    return Path(tempfile.gettempdir()) / f"dg-lsp-{os.getuid()}"
