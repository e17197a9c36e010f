"""Connections to an engine: a Unix socket whose other end belongs to the same user. Knows no engine.

They are asyncio's own streams, because anyio's for Unix sockets fail if a wait is cancelled just as bytes come: an
error in the log, sometimes one when it is closed (anyio issue 1267).
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpcore2

from dg_lsp.engine.runtime import is_own
from dg_lsp.filling.engine import EngineError


class EngineForeign(EngineError):
    """The process that listens at the socket belongs to another user; it got nothing."""


class SameUser(httpcore2.AnyIOBackend):
    """Opens connections; the other end is checked before a byte is sent."""

    async def connect_unix_socket(self, path: str, timeout: float | None = None, *_: Any, **__: Any) -> Any:
        """A connection to `path`.

        Raises:
            EngineForeign: another user's process listens there. ConnectError, ConnectTimeout: nobody answers.
        """
        with _told_as(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_unix_connection(path)
        connection = Connection(reader, writer)
        if not is_own(connection.get_extra_info("socket")):
            await connection.aclose()
            raise EngineForeign(
                f"the engine at {path} belongs to another user, so nothing was sent; set DG_LSP_RUNTIME_DIR to a "
                "folder of your own"
            )
        return connection


class Connection(httpcore2.AsyncNetworkStream):
    """One connection, as httpcore2 wants it. A wait may be cancelled at any moment."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """At most `max_bytes` bytes; none at the end.

        Raises:
            ReadTimeout, ReadError: see httpcore2.
        """
        with _told_as(httpcore2.ReadTimeout, httpcore2.ReadError):
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send `buffer`.

        Raises:
            WriteTimeout, WriteError: see httpcore2.
        """
        with _told_as(httpcore2.WriteTimeout, httpcore2.WriteError):
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()

    async def aclose(self) -> None:
        """Close it without waiting."""
        with suppress(OSError):
            self._writer.close()

    def get_extra_info(self, info: str) -> Any:
        """What is known of the connection by the name `info`, such as its socket."""
        return self._writer.get_extra_info(info)


@contextmanager
def _told_as(late: type[Exception], broken: type[Exception]) -> Iterator[None]:
    """Raise what httpcore2 knows in place of a time-out and of an error of the system."""
    try:
        yield
    except TimeoutError as error:
        raise late from error
    except OSError as error:
        raise broken(str(error)) from error
