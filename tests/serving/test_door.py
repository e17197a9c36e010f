"""Who may hold a connection of a team's server, and for how long: strangers have seconds, members find a place."""

import asyncio
import resource
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dg_lsp.serving import door
from dg_lsp.serving.door import Door, neighbourhood, places, raise_limit
from tests.serving.team import Team, is_ready, server_process, team_of
from tests.waiting import until

HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
BEGUN = b"POST /v1/infill HTTP/1.1\r\nhost: x\r\n"
# What a stranger sends, and whether it has agreed on TLS before.
SHAPES = {
    "nothing": (b"", False),
    "half a handshake": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", False),
    "no TLS": (HEALTH, False),
    "a handshake": (b"", True),
    "a request": (HEALTH, True),
    "half a line": (b"GET /hea", True),
    "half of the headers": (BEGUN, True),
    "headers and no body": (BEGUN + b"content-length: 500\r\n\r\n", True),
    "an unknown token": (HEALTH[:-2] + b"authorization: Bearer x\r\n\r\n", True),
    "headers without end": (BEGUN + b"x-a: b\r\n" * 1_000, True),
    "many requests at once": (HEALTH * 200, True),
}


async def strangers(port: int, count: int, sent: bytes, tls: ssl.SSLContext | None) -> list[Any]:
    """Open `count` connections, send `sent` on each, and keep them."""

    async def one() -> Any:
        with suppress(OSError):
            found = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            found[1].write(sent)
            return found

    return [one for one in await asyncio.gather(*(one() for _ in range(count))) if one is not None]


async def asked(team: Team, times: int) -> list[float]:
    """Return the seconds in which a new connection of a member was answered, `times` times."""
    took = []
    for _ in range(times):
        began = time.monotonic()
        async with team.client() as client:
            assert (await client.get("/v1/status")).status_code == 200
        took.append(time.monotonic() - began)
    return took


@pytest.mark.slow
def test_members_are_answered_beside_more_strangers_than_there_are_descriptors(tmp_path: Path) -> None:
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE

    async def work(team: Team) -> None:
        port = int(team.url.rpartition(":")[2])
        async with team.client() as member:
            await until(lambda: is_ready(member), 120)
            # From here on this connection is never opened again.
            assert (await member.get("/v1/status")).status_code == 200
            kept = list[Any]()
            for sent, with_tls in SHAPES.values():
                kept += await strangers(port, 120, sent, anybody if with_tls else None)
                took = await asked(team, 3)
                assert max(took) < 10, took  # a lockout lasts for minutes
                assert (await member.get("/v1/status")).status_code == 200
            for _, writer in kept:
                writer.transport.abort()

    with server_process(tmp_path, descriptors=160) as (team, _):
        asyncio.run(asyncio.wait_for(work(team), 300))


def with_team(work: Callable[[Team], Awaitable[None]], folder: Path) -> None:
    async def whole() -> None:
        async with asyncio.timeout(120), team_of(folder) as team:
            await work(team)

    asyncio.run(whole())


def test_who_has_no_token_keeps_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(team: Team) -> None:
        monkeypatch.setattr(door, "_STRANGER", 0.5)
        port = int(team.url.rpartition(":")[2])
        async with team.client() as member, team.client("") as nobody:
            answer = await member.get("/healthz")
            assert answer.status_code == 200 and "connection" not in answer.headers
            for path in ("/healthz", "/readyz", "/v1/status", "/nowhere"):
                assert (await nobody.get(path)).headers["connection"] == "close"
            silent = await strangers(port, 20, b"", None)
            ends = [reader.read() for reader, _ in silent]
            async with asyncio.timeout(60):
                assert not any(await asyncio.gather(*ends))
            # The member's connection is as old.
            made = list[Any]()
            monkeypatch.setattr(door.Guest, "connection_made", lambda *given: made.append(given))
            assert (await member.get("/v1/status")).status_code == 200 and not made

    with_team(work, tmp_path)


def test_a_token_that_comes_with_a_later_request_lets_stay(tmp_path: Path) -> None:
    async def work(team: Team) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(team.url.rpartition(":")[2]))
        known = HEALTH[:-2] + f"authorization: Bearer {team.token}\r\n\r\n".encode()
        for _ in range(2):
            writer.write(known)
            answer = await reader.readuntil(b"\r\n\r\nok")
            assert b"200" in answer and b"connection: close" not in answer
        # On a connection of a proxy the next request may be a stranger's.
        writer.write(HEALTH)
        assert b"connection: close" in await reader.read()
        writer.close()

    with_team(work, tmp_path)


class _Held:
    """A connection in place of a Guest."""

    def __init__(self, owner: Door, address: str) -> None:
        self.address, self.is_idle, self.dropped = address, True, False
        self._door = owner

    def serve(self, *_: Any) -> None:
        pass

    def drop(self) -> None:
        self.dropped = True
        self._door.forget(self)  # type: ignore[arg-type]


class _Doorway:
    """A Door whose connections come from the given addresses."""

    def __init__(self, most: int) -> None:
        self.held = list[_Held]()
        self._listening = socket.socket()
        self._door = Door(self._listening, self._make, None, most)
        self._door.close()

    def _make(self, owner: Door, address: str) -> Any:
        self.held.append(_Held(owner, address))
        return self.held[-1]

    def take(self, addresses: Sequence[str]) -> list[_Held]:
        before = len(self.held)
        for address in addresses:
            self._door._take(socket.socket(), address)
        return self.held[before:]

    def admit(self, members: Sequence[Any]) -> None:
        for member in members:
            self._door.admit(member)

    @property
    def left(self) -> list[str]:
        return [one.address for one in self.held if not one.dropped]


def with_doorway(most: int, work: Callable[[_Doorway], None]) -> None:
    async def whole() -> None:
        work(_Doorway(most))

    asyncio.run(whole())


def test_an_address_has_a_share_and_loses_its_oldest_stranger() -> None:
    def work(doorway: _Doorway) -> None:
        first = doorway.take(["a"] * 4)
        other = doorway.take(["b"])
        more = doorway.take(["a"] * 3)
        assert [one.dropped for one in (*first, *other, *more)] == [True] * 3 + [False] * 5

    with_doorway(8, work)


def test_without_a_free_place_a_stranger_goes_first_from_where_most_are() -> None:
    def work(doorway: _Doorway) -> None:
        members = doorway.take(["proxy"] * 2)
        doorway.admit(members)
        doorway.take(["a", "b", "b", "c", "c", "d"])
        assert len(doorway.left) == 8
        doorway.take(["proxy"])
        assert sorted(doorway.left) == ["a", "b", "c", "c", "d", "proxy", "proxy", "proxy"]
        assert not any(one.dropped for one in members)

    with_doorway(8, work)


def test_members_behind_one_address_have_no_share_and_only_idle_ones_make_room() -> None:
    def work(doorway: _Doorway) -> None:
        members = list[_Held]()
        for _ in range(8):
            members += (new := doorway.take(["proxy"]))
            doorway.admit(new)
        assert not any(one.dropped for one in members)
        doorway.admit(members[:1])  # it has asked again
        members[1].is_idle = False
        doorway.admit(doorway.take(["proxy"]))
        assert [one.dropped for one in members] == [False, False, True, *[False] * 5]
        for one in doorway.held:
            one.is_idle = False
        assert not doorway.take(["proxy"])

    with_doorway(8, work)


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_whose_address_it_is(host: str, known: str) -> None:
    assert neighbourhood(host) == known


@pytest.mark.parametrize(
    ("limits", "raised", "most"),
    [
        ((1024, 4096), 2176, 896),
        ((1024, 1024), None, 896),
        ((256, 500), 500, 128),
        ((1_000_000, 1_000_000), None, 2048),
        ((1024, resource.RLIM_INFINITY), 2176, 896),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None, 2048),
    ],
)
def test_descriptors_are_left_for_the_rest(
    limits: tuple[int, int], raised: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[int]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: given.append(both[0]))
    raise_limit()
    assert given == ([] if raised is None else [raised]) and places() == most


def test_a_connection_that_the_system_does_not_give_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(team: Team) -> None:
        loop, failed = asyncio.get_running_loop(), list[int]()
        whole = loop.sock_accept

        async def accept(listening: socket.socket) -> Any:
            if len(failed) < 3:
                failed.append(1)
                raise OSError(24, "Too many open files")
            return await whole(listening)

        monkeypatch.setattr(loop, "sock_accept", accept)
        for _ in range(5):
            async with team.client() as client:
                assert (await client.get("/v1/status")).status_code == 200
        assert len(failed) == 3

    with_team(work, tmp_path)


def test_a_client_of_a_member_is_let_in_by_its_first_look(tmp_path: Path) -> None:
    async def work(team: Team) -> None:
        async with team.client() as client:
            answers = [await client.get(path) for path in ("/healthz", "/readyz")]
            assert all(isinstance(answer, httpx2.Response) for answer in answers)
            assert not any("connection" in answer.headers for answer in answers)

    with_team(work, tmp_path)
