"""Bearer tokens of a team's server: the file of their hashes.

A line of the file is `name:sha256`, so that the file itself opens nothing.
"""

import codecs
import hashlib
import hmac
import logging
import os
import re
import secrets
from collections.abc import Container
from pathlib import Path

from dg_lsp.files.writing import write_whole
from dg_lsp.filling.engine import EngineError

_NAME = re.compile(r"[\w.-]{1,40}")
_LINE = re.compile(r"([\w.-]{1,40}):([0-9a-f]{64})")
_log = logging.getLogger("dg_lsp.model")


class Tokens:
    """The tokens in the file `path`, which is read again when it has changed; without the file nobody has one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[int, int, int] | None = None
        self._known: tuple[tuple[str, str], ...] = ()

    def name_of(self, token: str) -> str | None:
        """Return the name that `token` was made for; None if it is not known.

        Each line is compared to its end, so the time does not reveal how much of a token is right.
        """
        given, found = _hash(token), None
        for name, known in self._lines():
            if hmac.compare_digest(given, known):
                found = name
        return found

    def __len__(self) -> int:
        return len(self._lines())

    def _lines(self) -> tuple[tuple[str, str], ...]:
        try:
            now = self._path.stat()
            state = (now.st_mtime_ns, now.st_size, now.st_ino)
            if state != self._read:
                self._read, self._known = state, _parsed(self._path.read_bytes())
        except (OSError, ValueError):
            self._read, self._known = None, ()
        return self._known


def make_token(path: Path, name: str, ended: Container[str] = ()) -> str:
    """Return a new token for `name`, and add its hash to the file `path`; the token itself is stored nowhere.

    ended: the names whose tokens are removed from the file.
    """
    if not _NAME.fullmatch(name):
        raise EngineError(
            f"{name!r} is not a valid name for a token; use up to 40 letters, digits, dots and hyphens"
        )
    token = secrets.token_urlsafe(32)
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
        kept = [line for line in lines if not (found := _parsed(line)) or found[0][0] not in ended]
        if name in dict(_parsed(b"\n".join(kept))):
            raise EngineError(
                f"{name} has a token already; --replace makes a new one and ends that, or give this one a name of its "
                f"own, such as {name[:38]}.2"
            )
        line = f"{name}:{_hash(token)}".encode()
        write_whole(path, b"\n".join([*kept, line, b""]), mode=0o600)
    except OSError as error:
        raise EngineError(f"the file of tokens {path} cannot be written ({error.strerror})") from error
    return token


def check_file(path: Path) -> None:
    """Raise EngineError for a file of tokens that cannot be read, or that others than its owner may change."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
    except OSError as error:
        raise EngineError(
            f"the file of tokens {path} cannot be read ({error.strerror}); "
            "dg-lsp serve-engine token NAME --tokens FILE makes it"
        ) from error
    if mode & 0o022:
        raise EngineError(f"others may write to {path}, and so let themselves in; chmod go-w {path}")


def _parsed(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return the names and hashes in the lines of `data`; empty lines and comments are left out.

    A line that is neither, or is not UTF-8, opens nothing, and spoils no other one.
    """
    found = []
    for number, raw in enumerate(data.removeprefix(codecs.BOM_UTF8).splitlines(), 1):
        line = raw.decode("utf-8", "replace")
        if match := _LINE.fullmatch(line.strip()):
            found.append((match[1], match[2]))
        elif line.strip() and not line.startswith("#"):
            _log.warning("line %d of the file of tokens is not NAME:SHA256 in UTF-8 and is ignored", number)
    return tuple(found)


def _hash(token: str) -> str:
    """Return the SHA-256 of `token`, hex. Tokens are random, so nobody can guess one from its hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
