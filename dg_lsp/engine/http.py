"""HTTP connections to an engine: by a Unix socket, or by TLS with a token and a proxy; and pauses after failures."""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpcore2
import httpx2
from anyio.abc import SocketStream

from dg_lsp.engine.runtime import is_own
from dg_lsp.files.excluded import excluding, split_uri
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.messages import Infill
from dg_lsp.settings import Settings, address_in, is_loopback, path_of

Trust = ssl.SSLContext | bool  # how a certificate is checked; True is as this system does
CONNECT = 10.0  # seconds for a connection to a server and its handshake
_SHORTEST = 0.5  # seconds between two attempts at a busy server at least
_TOKEN = 4096  # bytes of a token's file
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # variables of OpenSSL
LONGEST = 60.0  # seconds of a pause after a failure


class EngineAbsent(EngineError):
    """No engine listens at the socket, or it ended before its first line."""


class EngineDied(EngineError):
    """The engine ended, or became silent, in the middle of an answer."""


class EngineSilent(EngineDied):
    """Not a line came for long, although a living engine sends one each second."""


class EngineStrange(EngineDied):
    """The listener at the socket does not answer as an engine does."""


class EngineFailed(EngineError):
    """The engine cannot load its checkpoint; the message is the engine's own, and says what to do."""


class EngineRefused(EngineError):
    """The engine does not let this client in."""


class EngineForeign(EngineError):
    """The process that listens at the socket belongs to another user; it got nothing."""


class Backoff:
    """The times at which an engine that failed may be asked or started again, and the reason for each pause.

    Each pause is twice as long as the one before. first: the seconds after a first failure, which may be an accident.
    count: all failures so far; an attempt is identified by the count at its beginning, so that the requests that one
    failure left open count once.
    """

    def __init__(self, first: float) -> None:
        self._first, self._in_a_row, self._not_before = first, 0, 0.0
        self.count = 0
        self.why = EngineError("")

    @property
    def left(self) -> float:
        """The seconds until the next attempt; 0 or less if it may be now."""
        return self._not_before - time.monotonic()

    def fail(self, why: EngineError, count: int, wait: float = 0.0) -> bool:
        """Note that the attempt that began after `count` failures failed; return False if that is known already.

        wait: the seconds that the engine itself asked for; 0 if it did not.
        """
        if count != self.count:
            return False
        self.count += 1
        # Failures that are long apart are accidents, also where no fill came to its end between them.
        accident = time.monotonic() > self._not_before + LONGEST
        self._in_a_row, self.why = 1 if accident else self._in_a_row + 1, why
        pause = wait or (self._first if self._in_a_row == 1 else 2.0 ** (self._in_a_row - 1))
        self._not_before = time.monotonic() + min(pause, LONGEST)
        return True

    def succeed(self) -> None:
        """Note that an attempt succeeded: the next failure is a first one again."""
        self._in_a_row = 0


def client_options(settings: Settings, verify: Trust, read: float) -> dict[str, Any]:
    """Return the options of a client of the server at `settings.engine_url`, which sends the user's token.

    verify: as from `trusted`. read: seconds for the next bytes of an answer.
    """
    url = address_in(settings.engine_url)

    def with_token(request: httpx2.Request) -> httpx2.Request:
        # The file is read for each request, so that a new token is used at once.
        if settings.engine_token_file:
            request.headers["authorization"] = f"Bearer {token_in(Path(settings.engine_token_file))}"
        return request

    return {
        "base_url": url,
        "auth": with_token,
        "verify": verify,
        # A proxy of the environment leads out of this machine, not into it.
        "trust_env": not is_loopback(urlsplit(url).hostname or ""),
        "timeout": httpx2.Timeout(CONNECT, read=read, pool=None),
    }


@contextmanager
def reaching(settings: Settings, name: str) -> Iterator[None]:
    """Raise the engine's errors in place of the HTTP library's; they say that the server is `name`, and where it is."""
    url = address_in(settings.engine_url)
    try:
        yield
    except httpx2.TimeoutException as error:
        slow = f"the {name} server at {url} answers too slowly; ask its administrator"
        raise EngineSilent(slow) from error
    except (httpx2.HTTPError, OSError) as error:
        away = f"no {name} server answers at {url}; ask its administrator, or empty the setting engineUrl"
        raise in_the_way(settings, error) or EngineAbsent(away) from error


def in_the_way(settings: Settings, cause: BaseException | None) -> EngineError | None:
    """Return the error that names the certificate or the proxy where `cause` is due to one; else None."""
    url = address_in(settings.engine_url)
    if "CERTIFICATE_VERIFY_FAILED" in str(cause):
        return EngineRefused(_untrusted(settings, url, str(cause)))
    proxy = proxy_to(url)
    if proxy and isinstance(cause, httpx2.ConnectError):
        return EngineAbsent(f"the proxy {proxy}, which the environment names for {url}, does not answer")
    if proxy and isinstance(cause, httpx2.ProxyError):
        return EngineAbsent(
            f"the proxy {proxy} does not lead to {url}; ask its administrator, or set NO_PROXY"
        )
    return None


@contextmanager
def attempting(backoff: Backoff) -> Iterator[None]:
    """Ask a server in the block, and note in `backoff` how that ended; raise EngineBusy in a pause."""
    if (left := backoff.left) > 0:
        raise EngineBusy(f"{backoff.why} (it is asked again in {left:.0f} s)", left)
    count = backoff.count
    try:
        yield
        backoff.succeed()
    except (EngineAbsent, EngineBusy, EngineSilent) as error:
        backoff.fail(error, count, pause_after(error))
        raise


def pause_after(error: EngineError) -> float:
    """Return the seconds for which a server that is busy wants not to be asked; 0 for any other `error`."""
    return max(error.wait, _SHORTEST) if isinstance(error, EngineBusy) else 0.0


def refusal_of(answer: httpx2.Response, settings: Settings, name: str) -> EngineError:
    """Return the error that `answer`, which is not 200, means; the server is `name`."""
    url, code, path = address_in(settings.engine_url), answer.status_code, answer.request.url.path
    if (wait := busy_for(answer)) is not None:
        return EngineBusy(f"the {name} server at {url} is busy ({code}); try again later", wait)
    if code in (401, 403):
        return EngineRefused(
            f"the {name} server at {url} does not accept your token; see the setting engineTokenFile"
        )
    return EngineError(f"the {name} server at {url} refused {path} ({code}): {said_in(answer)}")


def said_in(answer: httpx2.Response) -> str:
    """Return the first words of the error in `answer`."""
    try:
        said = answer.json()["error"]["message"]
    except (LookupError, TypeError, ValueError):
        said = ""
    return " ".join(str(said).split())[:200] or f"{answer.status_code} without a reason"


def busy_for(answer: httpx2.Response) -> float | None:
    """Return the seconds after which a server that says that it is busy may be asked again; None if it is not busy."""
    if answer.status_code not in (429, 503):
        return None
    wait = answer.headers.get("retry-after", "")
    return float(wait) if wait.isdecimal() else 1.0


def check_leaving(request: Infill, globs: tuple[str, ...]) -> None:
    """Raise EngineError if a request has text of a file that one of `globs` keeps on this machine."""
    for name in (request.session, *(piece.path for piece in request.context)):
        if reason := _kept_here(name, globs):
            raise EngineError(reason)


@lru_cache(1024)
def _kept_here(name: str, globs: tuple[str, ...]) -> str:
    """Return why the file `name`, a uri or a path, must not leave this machine, as a sentence; empty if it may.

    The workspace folder is not known here, so each end of the path is compared.
    """
    parts = PurePosixPath(split_uri(name)[1]).parts
    for start in range(len(parts)):
        if glob := excluding(PurePosixPath(*parts[start:]), globs):
            return (
                f"{parts[-1]} is excluded by {glob} in the setting exclude, so it is not sent to the server"
            )
    return ""


def proxy_to(url: str) -> str:
    """Return the host and the port of the proxy that the environment names for `url`, without its password; else ""."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    named = getproxies()
    proxy = named.get(parts.scheme) or named.get("all", "")
    if not proxy or is_loopback(host) or proxy_bypass(host):
        return ""
    return urlsplit(proxy if "://" in proxy else f"//{proxy}").netloc.rpartition("@")[2]


def _untrusted(settings: Settings, url: str, words: str) -> str:
    """Return that the certificate of `url` is not trusted, and with which authorities it was checked.

    words: OpenSSL's own, such as "... certificate verify failed: self-signed certificate (_ssl.c:1000)".
    """
    by = next((f"{name} ({os.environ[name]})" for name in _AUTHORITIES if os.environ.get(name)), "")
    by = (
        f"the setting engineCa ({settings.engine_ca})"
        if settings.engine_ca
        else by or "this system's authorities"
    )
    reason = words.partition("verify failed: ")[2].partition(" (_ssl")[0]
    way = f", by way of the proxy {proxy}" if (proxy := proxy_to(url)) else ""
    return (
        f"the certificate of {url} is not trusted here{f' ({reason})' if reason else ''}: it was checked with "
        f"{by}{way}; name the file of your company's certificates in the setting engineCa"
    )


def trusted(certificates: str) -> Trust:
    """Return the check of servers' certificates: by the file `certificates`, or by this system's."""
    # The HTTP library reads these variables only where it may use a proxy, which it may not on this machine.
    file, folder = (os.environ.get(name) for name in _AUTHORITIES)
    if not certificates and not file and not folder:
        return True
    try:
        if certificates:
            return ssl.create_default_context(cafile=path_of(certificates))
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    except (OSError, ssl.SSLError) as error:
        named = (
            f"{certificates}, the setting engineCa," if certificates else f"{file or folder} (SSL_CERT_FILE)"
        )
        raise EngineError(f"the certificates in {named} cannot be read") from error


def token_in(path: Path) -> str:
    """Return the token in the file `path`; raise EngineRefused if it holds none, or other users may read it."""
    try:
        with path_of(str(path)).open("rb") as file:
            token = file.read(_TOKEN).decode("ascii").strip()
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, ValueError) as error:
        raise EngineRefused(f"the token in {path} cannot be read") from error
    if mode & 0o077:
        raise EngineRefused(f"others may read your token; chmod 600 {path}")
    if not token or not token.isprintable() or " " in token:
        raise EngineRefused(f"{path} holds no token")
    return token


class _Stream(httpcore2.AsyncNetworkStream):
    """The bytes of a connection, both ways, with the errors that httpcore2 knows."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes, at most `max_bytes` of them; none at the end."""
        try:
            with anyio.fail_after(timeout):
                return await self._stream.receive(max_bytes)
        except anyio.EndOfStream:
            return b""
        except TimeoutError as error:
            raise httpcore2.ReadTimeout from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise httpcore2.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes of `buffer`."""
        try:
            with anyio.fail_after(timeout):
                await self._stream.send(buffer)
        except TimeoutError as error:
            raise httpcore2.WriteTimeout from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise httpcore2.WriteError(str(error)) from error

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()


class SameUser(httpcore2.AnyIOBackend):
    """A network backend for engines of this user: it checks the process at the other end before a byte is sent."""

    async def connect_unix_socket(self, path: str, timeout: float | None = None, *_: Any, **__: Any) -> Any:
        """Return a connection to the Unix socket at `path`; raise EngineForeign if it is another user's.

        anyio's own stream for Unix sockets fails if a wait is cancelled just as bytes come (anyio issue 1267); its
        stream for any other socket does not, so it gets that one.
        """
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.setblocking(False)
            async with asyncio.timeout(timeout):
                await asyncio.get_running_loop().sock_connect(connection, path)
            if not is_own(connection):
                raise EngineForeign(
                    f"the engine at {path} belongs to another user, so nothing was sent; set DG_LSP_RUNTIME_DIR to a "
                    "folder of your own"
                )
            return _Stream(await SocketStream.from_socket(connection))
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise httpcore2.ConnectTimeout from error
            if isinstance(error, OSError | ValueError):
                raise httpcore2.ConnectError(str(error)) from error
            raise
