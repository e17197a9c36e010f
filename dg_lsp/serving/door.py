"""The door of a team's server: who may hold a connection, for how long, and which one is closed when places run out.

A connection is a stranger's until a request on it had a valid token. A stranger has seconds, in which TLS counts too,
and goes first when places run out; a member may wait for long between two requests.
"""

import asyncio
import ipaddress
import resource
import socket
import ssl
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ADMIT = "dg_lsp.admit"  # the key in the state of a request's scope for the function that makes its sender a member
_PLACES = 2048  # connections at once
_RESERVED = 128  # file descriptors for all but connections
_SHARE = 2  # strangers of one address may hold a place of so many
_STRANGER = 5.0  # seconds in which a connection must have brought a token
_REQUEST = 10.0  # seconds in which a member's request must have come whole
_CLOSING = 2.0  # seconds that a client has to end TLS
_PAUSE = 0.1  # seconds until the next attempt where the system gives no further connection


def raise_limit() -> None:
    """Raise this process's limit of file descriptors to what all places need, where its hard limit allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _PLACES + _RESERVED
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def places() -> int:
    """Return how many connections this process may hold, so that descriptors are left for the rest of it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _PLACES
    return min(_PLACES, max(soft - _RESERVED, soft // 2))


def neighbourhood(host: str) -> str:
    """Return the part of an address that one person holds: an IPv4 address whole, the first 64 bits of an IPv6 one."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)


class Door:
    """Accept connections from `listening`, and close one when places run out; for uvicorn it is a server of asyncio.

    make: returns the protocol of a new connection of this Door from an address. most: of connections at once.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[["Door", str], "Guest"],
        tls: ssl.SSLContext | None,
        most: int,
    ) -> None:
        listening.setblocking(False)
        self._listening, self._make, self._tls, self._most = listening, make, tls, most
        # The strangers of each address and the members, in both those first that go first.
        self._strangers = defaultdict[str, dict[Guest, None]](dict)
        self._members = dict[Guest, None]()
        self._accepting = asyncio.create_task(self._accept())

    def admit(self, guest: "Guest") -> None:
        """Note that a request of `guest` had a valid token; of all members it goes last now."""
        self.forget(guest)
        self._members[guest] = None

    def forget(self, guest: "Guest") -> None:
        """Note that the place of `guest` is free."""
        self._members.pop(guest, None)
        if (group := self._strangers.get(guest.address)) is not None:
            group.pop(guest, None)
            if not group:
                del self._strangers[guest.address]

    def close(self) -> None:
        """Take no more connections, and drop those that have not said what they want; uvicorn ends the others."""
        self._accepting.cancel()
        for group in list(self._strangers.values()):
            for guest in list(group):
                guest.drop()

    async def wait_closed(self) -> None:
        """Wait until nothing is accepted any more."""
        await asyncio.gather(self._accepting, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(self._listening)
            except OSError:
                # The rest of the process has taken the last descriptors; strangers give some back soon.
                await asyncio.sleep(_PAUSE)
                continue
            self._take(connection, neighbourhood(address[0]))
            await asyncio.sleep(0)  # accepting does not wait while connections wait

    def _take(self, connection: socket.socket, address: str) -> None:
        """Give `connection` a place, and begin to serve it."""
        group = self._strangers.get(address, {})
        if len(group) >= max(self._most // _SHARE, 1):
            next(iter(group)).drop()
        held = len(self._members) + sum(map(len, self._strangers.values()))
        if held >= self._most and not self._make_room():
            connection.close()
            return
        guest = self._make(self, address)
        self._strangers[address][guest] = None
        guest.serve(connection, self._tls)

    def _make_room(self) -> bool:
        """Drop the stranger that came first, of the address with most of them, or else a member without a request."""
        if self._strangers:
            fullest = max(self._strangers, key=lambda address: len(self._strangers[address]))
            next(iter(self._strangers[fullest])).drop()
            return True
        idle = next((member for member in self._members if member.is_idle), None)
        if idle is not None:
            idle.drop()
        return idle is not None


class Guest(H11Protocol):
    """uvicorn's HTTP protocol for a connection from `address` that came through `door`."""

    def __init__(self, door: Door, address: str, **own: Any) -> None:
        super().__init__(**own)
        self.address, self._door = address, door
        self.app_state = {**self.app_state, ADMIT: self._admit}
        self._stay: asyncio.TimerHandle | None = None  # ends a stranger
        self._hurry: asyncio.TimerHandle | None = None  # ends a request that does not come whole
        self._opening: asyncio.Task[Any] | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether no request is answered or on its way."""
        return self._hurry is None and (self.cycle is None or self.cycle.response_complete)

    def serve(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Serve `connection`, over TLS if there is a context for it."""
        self._stay = self.loop.call_later(_STRANGER, self.drop)
        times = {"ssl_handshake_timeout": _STRANGER, "ssl_shutdown_timeout": _CLOSING} if tls else {}
        opened = self.loop.connect_accepted_socket(lambda: self, connection, ssl=tls, **times)
        self._opening = asyncio.ensure_future(opened)

        def is_open(task: asyncio.Task[Any]) -> None:
            # Without TLS, or with TLS that could not be agreed on, there is no connection to be lost.
            if task.cancelled() or task.exception():
                self._leave()
                connection.close()

        self._opening.add_done_callback(is_open)

    def drop(self) -> None:
        """Close the connection at once."""
        self._leave()
        if self._opening is not None:
            self._opening.cancel()
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Continue or begin to wait for the rest of a request; stop with its last byte."""
        super().data_received(data)
        partial = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not partial:
            self._end_hurry()
        elif self._hurry is None:
            self._hurry = self.loop.call_later(_REQUEST, self.drop)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._leave()
        super().connection_lost(exc)

    def _admit(self) -> None:
        """Make this a member's connection."""
        if not self.transport.is_closing():
            self._end_stay()
            self._door.admit(self)

    def _leave(self) -> None:
        self._end_stay()
        self._end_hurry()
        self._door.forget(self)

    def _end_stay(self) -> None:
        if self._stay is not None:
            self._stay.cancel()
            self._stay = None

    def _end_hurry(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None
