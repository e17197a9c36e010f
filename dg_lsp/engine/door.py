"""The file that says at which port of this machine an engine listens, where there are no Unix sockets.

It holds a token, too, made anew at each start, which only the user may read. Either end proves that it knows the token:
the engine before it is sent anything, the client with each request.
"""

import hashlib
import hmac
import json
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

SUFFIX = ".port"
HOST = "127.0.0.1"
PROOF = "/v1/proof"  # where an engine proves that it knows the token
NONCE = "x-nonce"  # the header with the text that it has to prove it for


@dataclass(frozen=True, slots=True)
class Door:
    """Where an engine listens: its port, its token, and the id of its process."""

    port: int
    token: str
    process: int


def is_door(path: Path) -> bool:
    """Whether an engine that is found at `path` listens at a port; else `path` is a Unix socket."""
    return path.suffix == SUFFIX


def read(path: Path) -> Door | None:
    """What the file `path` says; None if there is no such file, or it says something else."""
    try:
        told = json.loads(path.read_bytes())
        return Door(int(told["port"]), str(told["token"]), int(told["process"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def listen(path: Path) -> socket.socket:
    """A socket that listens at a free port of this machine only; the file `path` says which.

    Raises:
        OSError: there is no port, or the file cannot be written.
    """
    # asyncio sends lines at once (TCP_NODELAY) only where the protocol is named; else each answer takes 40 ms longer.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # Without this another program may listen at the same port on Windows.
    if exclusive := getattr(socket, "SO_EXCLUSIVEADDRUSE", 0):
        listening.setsockopt(socket.SOL_SOCKET, exclusive, 1)
    listening.bind((HOST, 0))
    listening.listen(128)
    door = Door(listening.getsockname()[1], secrets.token_urlsafe(32), os.getpid())
    # Written whole before it has its name, and closed to others from its first moment.
    unnamed = path.with_suffix(".new")
    with suppress(FileNotFoundError):
        unnamed.unlink()
    with os.fdopen(os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(door), file)
    unnamed.replace(path)
    return listening


def proof(token: str, nonce: str) -> str:
    """What only a process that knows `token` can answer to `nonce`, hex."""
    return hmac.new(token.encode(), b"dg-lsp engine " + nonce.encode(), hashlib.sha256).hexdigest()
