"""An engine at a port of this machine, where there are no Unix sockets: only who knows its token gets anything."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dg_lsp.engine import door
from dg_lsp.engine.base import EngineError
from dg_lsp.engine.client import EngineAbsent, RemoteEngine, running
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.runtime import address_of, sockets
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Draft, Fill, Infill
from tests.processes import engines

QUICK = Settings(checkpoint="scripted")
SECRET = Infill("secret_text = ", "\n", "python", "rest_of_line")


@pytest.fixture(autouse=True)
def without_unix_sockets(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dg_lsp.engine.runtime.has_unix_sockets", lambda: False)


def with_engine(work: Callable[[ResidentEngine], Awaitable[None]], settings: Settings = QUICK) -> None:
    async def whole() -> None:
        engine = ResidentEngine(settings)
        try:
            await work(engine)
        finally:
            await engine.close()

    asyncio.run(asyncio.wait_for(whole(), 60))


async def text_of(engine: ResidentEngine | RemoteEngine) -> str:
    events = [event async for event in engine.infill(SECRET)]
    assert isinstance(events[-1], Fill)
    return events[-1].text


class Stranger:
    """A program at the port that the file names; it answers everybody with `answer` and keeps what it was sent."""

    def __init__(self, answer: bytes | None) -> None:
        self._answer, self.heard = answer, b""

    async def __aenter__(self) -> "Stranger":
        self._server = await asyncio.start_server(self._serve, door.HOST, 0)
        port = self._server.sockets[0].getsockname()[1]
        door.listen(address_of(QUICK).socket).close()
        found = door.read(address_of(QUICK).socket)
        assert found is not None
        text = address_of(QUICK).socket.read_text().replace(str(found.port), str(port))
        address_of(QUICK).socket.write_text(text)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(1000):
            self.heard += part
            if self._answer is not None:
                writer.write(self._answer)
        writer.close()


def test_a_whole_fill_a_cancel_and_a_second_window(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        for _ in range(3):
            async with aclosing(engine.infill(SECRET)) as events:
                assert isinstance(await anext(events), Draft)
        status = await engine.status()
        assert status is not None
        await asyncio.sleep(0.1)
        later = await engine.status()
        assert later is not None and later.passes <= status.passes + 1 and later.state == "ready"
        other = ResidentEngine(settings)
        started = await other.start()
        assert started.process == status.process
        await other.close()
        assert [s.process for s in await asyncio.to_thread(running)] == [status.process]
        assert await engine.stop() and not await engine.stop()

    settings = Settings(checkpoint="scripted:200:20")
    with_engine(work, settings)
    assert not list(runtime.glob("*.sock")) and not sockets()


def test_the_fill_is_that_of_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(engine: ResidentEngine) -> None:
        assert await text_of(engine) == "None"

    with_engine(work)
    assert sockets()[0].suffix == ".port"


def test_only_the_user_may_read_the_token(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        path = address_of(QUICK).socket
        assert path.stat().st_mode & 0o777 == 0o600 and runtime.stat().st_mode & 0o777 == 0o700
        first = door.read(path)
        await engine.stop()
        await engine.start()
        second = door.read(path)
        assert first is not None and second is not None and first.token != second.token
        assert first.token not in address_of(QUICK).log.read_text()

    with_engine(work)


def test_without_the_token_nothing_is_answered_and_nothing_computed() -> None:
    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        found = door.read(address_of(QUICK).socket)
        assert found is not None
        async with httpx2.AsyncClient(base_url=f"http://{door.HOST}:{found.port}", trust_env=False) as client:
            wrong = ("", "Bearer", "Bearer x", f"Basic {found.token}", f"Bearer {found.token}x")
            for given in wrong:
                headers = {"authorization": given} if given else {}
                for method, path in (("GET", "/v1/status"), ("POST", "/v1/infill"), ("POST", "/v1/stop")):
                    answer = await client.request(method, path, headers=headers, content=b"{}")
                    assert answer.status_code == 401 and answer.json()["error"]["message"]
            # A proof is no token.
            proven = await client.get(door.PROOF, headers={door.NONCE: "7"})
            assert proven.text == door.proof(found.token, "7")
            headers = {"authorization": f"Bearer {proven.text}"}
            assert (await client.get("/v1/status", headers=headers)).status_code == 401
        status = await engine.status()
        assert status is not None and status.fills == 0

    with_engine(work)


@pytest.mark.parametrize(
    "answer",
    [b"220 ready\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n" + b"0" * 64, b"x" * 100_000],
    ids=["mail", "wrong proof", "long"],
)
def test_a_stranger_at_the_port_gets_no_text_and_another_engine_is_started(
    answer: bytes, runtime: Path
) -> None:
    async def work(engine: ResidentEngine) -> None:
        async with Stranger(answer) as stranger:
            token = door.read(address_of(QUICK).socket)
            assert token is not None
            assert await text_of(engine) == "None"
            assert stranger.heard.startswith(b"GET /v1/proof") and b"secret" not in stranger.heard
            assert token.token.encode() not in stranger.heard
        assert len(engines(runtime)) == 1

    with_engine(work)


def test_a_silent_stranger_keeps_nobody_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dg_lsp.engine.resident.SILENCE", 1.0)
    monkeypatch.setattr("dg_lsp.engine.resident._LAST_WORD", 0.5)

    async def work(engine: ResidentEngine) -> None:
        async with Stranger(None) as stranger:
            assert await text_of(engine) == "None"
            assert b"secret" not in stranger.heard

    with_engine(work)


def test_what_stands_still_is_ended_and_what_lives_in_its_place_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dg_lsp.engine.resident.SILENCE", 1.0)
    monkeypatch.setattr("dg_lsp.engine.resident._LAST_WORD", 0.5)

    async def work(engine: ResidentEngine) -> None:
        process = (await engine.start()).process
        os.kill(process, signal.SIGSTOP)
        assert await text_of(engine) == "None"
        after = await engine.status()
        assert after is not None and after.process != process

    with_engine(work)


@pytest.mark.parametrize("text", [None, "", "{}", "[1]", '{"port": "x", "token": 1}'])
def test_without_the_file_there_is_no_engine(text: str | None) -> None:
    path = address_of(QUICK).socket
    if text is not None:
        path.write_text(text)

    async def ask() -> Any:
        remote = RemoteEngine(path)
        try:
            await text_of(remote)
        finally:
            await remote.close()

    with pytest.raises(EngineAbsent):
        asyncio.run(ask())


def test_the_engine_exits_once_its_file_is_gone(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        address_of(QUICK).socket.unlink()
        await asyncio.sleep(3)
        assert engines(runtime) == []

    with_engine(work)


def test_an_engine_that_died_leaves_a_file_that_is_no_obstacle() -> None:
    async def work(engine: ResidentEngine) -> None:
        process = (await engine.start()).process
        os.kill(process, signal.SIGKILL)
        with suppress(EngineError):
            await text_of(engine)
        assert await text_of(engine) == "None"

    with_engine(work)


def test_it_listens_on_this_machine_only() -> None:
    path = address_of(QUICK).socket
    with door.listen(path) as listening:
        assert listening.family == socket.AF_INET and listening.getsockname()[0] == "127.0.0.1"
        # asyncio switches delays off for such sockets only.
        assert listening.proto == socket.IPPROTO_TCP
