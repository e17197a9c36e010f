"""Where an engine process is met: its directory, its socket's name, its locks. Knows files; starts nothing.

All engines of a user live in one directory that only the user may enter: `DG_LSP_RUNTIME_DIR`, else the
session's runtime directory, else a folder in the temporary one.
"""

import hashlib
import os
import re
import socket
import stat
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dg_lsp
from dg_lsp.host.base import EngineError
from dg_lsp.host.wire import WIRE
from dg_lsp.settings import Settings

_LONGEST = 100  # bytes of a socket's path that every system takes


@dataclass(frozen=True, slots=True)
class Place:
    """The files of one engine. `lock` is held for the engine's life, `start` while somebody starts it."""

    socket: Path
    digest: str

    @property
    def lock(self) -> Path:
        """Held as long as the engine lives: the one truth on whether it does."""
        return self.socket.with_suffix(".lock")

    @property
    def start(self) -> Path:
        """Held by whoever starts the engine."""
        return self.socket.with_suffix(".start")

    @property
    def log(self) -> Path:
        """What the engine process says; no source text."""
        return self.socket.with_suffix(".log")


def runtime_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory of the user's engines, made when it is not there, for nobody else to enter.

    Raises:
        EngineError: it belongs to somebody else or cannot be made.
    """
    path = _directory(environment)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A link would be followed to wherever somebody else made it lead.
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise EngineError(f"{path} is no folder of yours; set DG_LSP_RUNTIME_DIR to one that is")
        if stat.S_IMODE(found.st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EngineError(
            f"the engine's folder {path} cannot be used ({reason}); set DG_LSP_RUNTIME_DIR to another"
        ) from error
    return path


def place_of(settings: Settings) -> Place:
    """The files of the engine that serves `settings`: one for each wire version, checkpoint and device.

    Raises:
        EngineError: the system has no such sockets, the directory cannot be used, or its path is too long.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise EngineError("this system has no Unix sockets, so no engine can be reached; use Linux or macOS")
    digest = digest_of(settings.checkpoint)
    device = re.sub(r"\W", "", settings.device)[:12]
    path = runtime_directory() / f"{WIRE}-{digest[:10]}-{device}.sock"
    if len(os.fsencode(path)) > _LONGEST:
        raise EngineError(f"{path} is too long for a socket; set DG_LSP_RUNTIME_DIR to a shorter path")
    return Place(path, digest)


def digest_of(checkpoint: str) -> str:
    """What tells checkpoints apart without reading their weights: hex.

    The manifest of hashes where there is one, so that the same files count as the same wherever they are;
    else the config with the sizes and times of the weights; else, for a hub, the name.
    """
    path = (
        Path(dg_lsp.__file__).parent / "engine" / "embedded" if checkpoint == "embedded" else Path(checkpoint)
    )
    path = path.expanduser()
    try:
        if (path / "manifest.json").is_file():
            told = (path / "manifest.json").read_bytes()
        elif (path / "config.json").is_file():
            weights = ((f.name, f.stat()) for f in sorted(path.glob("*.safetensors")))
            sizes = [(name, s.st_size, s.st_mtime_ns) for name, s in weights]
            told = (path / "config.json").read_bytes() + repr(sizes).encode()
        else:
            told = checkpoint.encode("utf-8", "surrogateescape")
    except OSError:
        told = checkpoint.encode("utf-8", "surrogateescape")
    return hashlib.sha256(told).hexdigest()


def sockets() -> list[Path]:
    """The sockets of all engines that may be running."""
    return sorted(runtime_directory().glob("*.sock"))


def peer(connection: Any) -> tuple[int, int]:
    """The process and the user at the other end of a Unix socket: (0, ours) where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0, os.getuid()
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process, user, _ = struct.unpack("3i", told)
    return process, user


def _directory(environment: Mapping[str, str]) -> Path:
    if named := environment.get("DG_LSP_RUNTIME_DIR"):
        return Path(named).expanduser().absolute()
    session = environment.get("XDG_RUNTIME_DIR")
    if session and os.access(session, os.W_OK):
        return Path(session) / "dg-lsp"
    return Path(tempfile.gettempdir()) / f"dg-lsp-{os.getuid()}"
