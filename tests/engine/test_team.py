"""The engine of a team's server, seen from an editor: what is sent to it, and what is done where it is away."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import certifi
import pytest

from dg_lsp.engine import scripted, wire
from dg_lsp.engine import team as team_engine
from dg_lsp.engine.client import RemoteEngine
from dg_lsp.engine.http import EngineAbsent, proxy_to
from dg_lsp.engine.local import LocalEngine
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.team import TeamEngine, open_engine
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.messages import Draft, Fill, Infill, Piece, Status
from dg_lsp.server.session import Session
from dg_lsp.server.settings import configured, silence
from dg_lsp.server.workspace import Workspace
from dg_lsp.serving import door
from dg_lsp.serving import team as serving
from dg_lsp.serving.tokens import make_token
from dg_lsp.settings import Settings, SettingsError, override
from tests.serving.team import Team, server_process, team_of
from tests.waiting import until

REQUEST = Infill("x = ", "\n", "python", "rest_of_line", session="file:///home/me/work/app.py", window="7")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Infill]]:
    """The requests that reach a scripted engine of this process."""
    requests: list[Infill] = []
    whole = scripted.ScriptedEngine.infill

    def kept(self: Any, request: Infill) -> Any:
        requests.append(request)
        return whole(self, request)

    monkeypatch.setattr(scripted.ScriptedEngine, "infill", kept)
    yield requests


def with_team(
    work: Callable[[Team], Awaitable[None]], folder: Path, checkpoint: str = "scripted", *, tls: bool = False
) -> None:
    async def whole() -> None:
        async with asyncio.timeout(180), team_of(folder, checkpoint, tls=tls) as team:
            await work(team)

    asyncio.run(whole())


async def fill_of(engine: Any, request: Infill = REQUEST) -> Fill:
    events = [event async for event in engine.infill(request)]
    assert isinstance(events[-1], Fill) and all(isinstance(e, Draft) for e in events[:-1])
    return events[-1]


class Answering:
    """A server that gives `answer` to everybody and counts the requests."""

    def __init__(self, answer: bytes) -> None:
        self._answer, self.requests, self.heard = answer, 0, b""

    async def __aenter__(self) -> "Answering":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard += await reader.read(10_000)
        self.requests += 1
        writer.write(self._answer)
        writer.close()


@asynccontextmanager
async def cutting(url: str, answers: int) -> AsyncIterator[str]:
    """The URL of a way to the server at `url` that breaks in the middle of the first so many answers."""
    left = answers

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        drafts = 0
        while some := await reader.read(10_000):
            drafts += some.count(b'"draft"')
            if drafts > 1 and left:
                left -= 1
                break
            writer.write(some)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        await asyncio.gather(carry(reader, out), carry(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def http(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_fill_over_tls_and_what_the_window_is_reported(tmp_path: Path) -> None:
    async def work(team: Team) -> None:
        reported: list[Status] = []
        engine = open_engine(team.settings(), reported.append)
        assert isinstance(engine, TeamEngine)
        assert (await engine.start()).checkpoint == "scripted:2:10"
        assert (await fill_of(engine)).text == "None"
        assert [status.state for status in reported] == ["ready", "busy", "ready"]
        status = await engine.status()
        assert status is not None and status.fills == 1
        await engine.close()

    with_team(work, tmp_path, "scripted:2:10", tls=True)


def test_no_name_of_a_file_or_window_is_sent(tmp_path: Path, seen: list[Infill]) -> None:
    async def work(team: Team) -> None:
        for _ in range(2):
            engine = TeamEngine(team.settings())
            for name in ("app.py", "other.py", "app.py"):
                await fill_of(engine, replace(REQUEST, session=f"file:///home/me/work/{name}"))
            await engine.close()

    with_team(work, tmp_path)
    names = [request.session for request in seen]
    assert all(name.startswith("alice ") and len(name) == len("alice ") + 32 for name in names)
    assert not any(part in name for name in names for part in ("home", "app", "file", "/"))
    # The same document is the same, in one window only.
    assert names[0] == names[2] != names[1] and names[0] != names[3]
    assert {request.window for request in seen} == {"alice"}


@pytest.mark.parametrize(
    ("name", "glob"),
    [
        ("file:///home/me/work/.env", ".env*"),
        ("file:///home/me/work/.ssh/config", ".ssh/"),
        ("file:///home/me/work/deploy/site.py", "deploy/*.py"),
        ("file:///home/me/work/my%20secret.toml", "my secret.*"),
    ],
)
def test_what_is_excluded_leaves_the_machine_by_no_way(
    name: str, glob: str, tmp_path: Path, seen: list[Infill]
) -> None:
    async def work(team: Team) -> None:
        exclude = (*Settings().exclude, "deploy/*.py", "my secret.*")
        engine = TeamEngine(team.settings(exclude=exclude))
        path = name.removeprefix("file:///home/me/work/")
        for request in (replace(REQUEST, session=name), replace(REQUEST, context=(Piece(path, "text"),))):
            if "%" not in path or request.session == name:
                with pytest.raises(EngineError, match="excluded by"):
                    await fill_of(engine, request)
        await fill_of(engine)
        await engine.close()

    with_team(work, tmp_path)
    assert len(seen) == 1


def test_what_a_changed_setting_excludes_leaves_the_machine_no_more(
    tmp_path: Path, seen: list[Infill]
) -> None:
    async def work(team: Team) -> None:
        session = Session(Workspace(team.settings()), TeamEngine, lambda _: None)
        secret = replace(REQUEST, session="file:///home/me/work/deploy/site.py")
        await fill_of(session.engine, secret)
        engine = session.engine
        assert session.configure({}, {"exclude": ["deploy/*.py"]}) == []
        assert session.engine is engine
        with pytest.raises(EngineError, match="excluded by"):
            await fill_of(session.engine, secret)
        # What is no longer excluded may leave again.
        session.configure({}, {})
        await fill_of(session.engine, secret)
        await session.engine.close()

    with_team(work, tmp_path)
    assert len(seen) == 2


def test_https_is_wanted_beyond_this_machine() -> None:
    for url in ("http://team.example", "http://10.0.0.1:8765", "http://localhost.example"):
        with pytest.raises(SettingsError, match="must begin with https"):
            override(Settings(), {"engineUrl": url})
        with pytest.raises(SettingsError, match="must begin with https"):
            TeamEngine(replace(Settings(), engine_url=url))
    for url in (
        "team.example",
        "ftp://x",
        "https://",
        "https://a:secret@b",
        "https://a:port",
        "https://a?b=c",
    ):
        with pytest.raises(SettingsError, match="is an address such as") as refused:
            override(Settings(), {"engineUrl": url})
        assert "secret" not in str(refused.value)
    for url in ("http://127.0.0.1:1", "http://localhost", "http://[::1]:1", "https://team.example/dg", ""):
        assert override(Settings(), {"engineUrl": url}).engine_url == url


def test_a_wrong_or_missing_token_is_named(tmp_path: Path, seen: list[Infill]) -> None:
    async def work(team: Team) -> None:
        file = tmp_path / "wrong"
        file.write_text("wrong")
        file.chmod(0o600)
        shared = tmp_path / "shared"
        shared.write_text(team.token)
        shared.chmod(0o644)
        for given, words in (
            ("", "it has no token"),
            (str(file), "its token is unknown"),
            (str(shared), "others may read your token"),
            (str(tmp_path / "nothing"), "cannot be read"),
        ):
            reported: list[Status] = []
            engine = TeamEngine(team.settings(engine_token_file=given), reported.append)
            with pytest.raises(EngineError, match=f"{words}.*engineTokenFile"):
                await fill_of(engine)
            assert reported[-1].state == "failed" and words in reported[-1].why
            await engine.close()
        # A new token is used at once.
        engine = TeamEngine(team.settings(engine_token_file=str(file)))
        with suppress(EngineError):
            await fill_of(engine)
        file.write_text(make_token(team.tokens, "bob"))
        engine._backoff._not_before = time.monotonic()
        assert (await fill_of(engine)).text == "None"
        await engine.close()

    with_team(work, tmp_path)
    assert len(seen) == 1


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path, seen: list[Infill]) -> None:
    async def work(team: Team) -> None:
        engine = TeamEngine(team.settings(engine_ca=""))
        with pytest.raises(EngineError, match=r"certificate of .* is not trusted here.*engineCa"):
            await fill_of(engine)
        await engine.close()
        engine = TeamEngine(team.settings(engine_ca=str(team.tokens)))
        with pytest.raises(EngineError, match="cannot be read"):
            await fill_of(engine)
        await engine.close()

    with_team(work, tmp_path, tls=True)
    assert not seen


def test_busy_is_reported_and_not_asked_again_at_once() -> None:
    async def work() -> None:
        answer = http(b'{"error": {"message": "the server is busy"}}', "429 Too Many", "Retry-After: 60\r\n")
        async with Answering(answer) as server:
            engine = TeamEngine(Settings(engine_url=server.url))
            for _ in range(50):
                with pytest.raises(EngineBusy, match="the server is busy"):
                    await fill_of(engine)
            # The first asks for the status; no request follows it before its time.
            assert server.requests <= 1 + 2
            engine._backoff._not_before = time.monotonic()
            with pytest.raises(EngineBusy):
                await fill_of(engine)
            await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_server_that_is_away_is_asked_ever_more_seldom() -> None:
    async def work() -> None:
        engine = TeamEngine(Settings(engine_url="http://127.0.0.1:1"))
        pauses = []
        for _ in range(8):
            engine._backoff._not_before = time.monotonic()
            with pytest.raises(EngineError, match=r"no engine answers at http://127\.0\.0\.1:1"):
                await fill_of(engine)
            pauses.append(round(engine._backoff.left))
        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
        with pytest.raises(EngineError, match="asked again in 60 s"):
            await fill_of(engine)
        status = await engine.status()
        assert status is not None and status.state == "failed" and "no engine answers" in status.why
        await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http(b"<html></html>"), "not a dg-lsp engine"),
        (http(b"", "302 Found", "Location: http://192.0.2.1/\r\n"), "not a dg-lsp engine"),
        (http(b"", "503 Down"), "busy"),
        (
            http(
                json.dumps(
                    {**wire.pack(Status("ready", wire=wire.WIRE + 1, package="9.9")), "new": 1}
                ).encode()
            ),
            "dg-lsp 9.9, which speaks version.*install a newer version of this dg-lsp",
        ),
        (http(wire.line("x", 1)), "not a dg-lsp engine"),
    ],
    ids=["page", "redirect", "gateway", "newer", "line"],
)
def test_what_is_no_engine_of_ours_is_named_and_gets_no_text(answer: bytes, words: str) -> None:
    async def work() -> None:
        async with Answering(answer) as server:
            engine = TeamEngine(Settings(engine_url=server.url))
            with pytest.raises(EngineError, match=words):
                await fill_of(engine)
            await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))


def test_what_a_certificate_was_checked_with_is_reported(
    tmp_path: Path, seen: list[Infill], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On this machine, too, SSL_CERT_FILE is obeyed where engineCa is empty."""

    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)

    async def work(team: Team) -> None:
        own = team.settings().engine_ca

        async def refused(settings: Settings) -> str:
            engine = TeamEngine(settings)
            with pytest.raises(EngineError) as caught:
                await fill_of(engine)
            await engine.close()
            return str(caught.value)

        assert "this system's authorities" in await refused(team.settings(engine_ca=""))
        monkeypatch.setenv("SSL_CERT_FILE", other := certifi.where())
        reported = await refused(team.settings(engine_ca=""))
        assert f"SSL_CERT_FILE ({other})" in reported and "certificate" in reported and "engineCa" in reported
        assert f"engineCa ({other})" in await refused(team.settings(engine_ca=other))
        monkeypatch.setenv("SSL_CERT_FILE", own)
        engine = TeamEngine(team.settings(engine_ca=""))
        assert (await fill_of(engine)).text == "None"
        await engine.close()

    with_team(work, tmp_path, tls=True)


def test_a_dead_proxy_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://ann:secret@127.0.0.1:9")

    async def reported() -> str:
        engine = TeamEngine(Settings(engine_url="https://team.example"))
        with pytest.raises(EngineError) as caught:
            await fill_of(engine)
        await engine.close()
        return str(caught.value)

    said = asyncio.run(asyncio.wait_for(reported(), 120))
    assert "the proxy 127.0.0.1:9" in said and "does not answer" in said and "secret" not in said
    monkeypatch.setenv("NO_PROXY", "team.example")
    assert proxy_to("https://team.example") == "" and proxy_to("https://other.example") == "127.0.0.1:9"


@pytest.mark.parametrize("beyond", [True, False])
def test_a_proxy_leads_out_of_this_machine_only_and_reads_nothing(
    beyond: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with Answering(b"HTTP/1.1 403 Forbidden\r\n\r\n") as proxy:
            for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.url)
            token = tmp_path / "token"
            token.write_text("secret")
            token.chmod(0o600)
            url = "https://team.example" if beyond else "http://127.0.0.1:1"
            engine = TeamEngine(Settings(engine_url=url, engine_token_file=str(token)))
            with pytest.raises(EngineError):
                await fill_of(engine)
            await engine.close()
            assert proxy.heard.startswith(b"CONNECT team.example:443 " if beyond else b"")
            assert bool(proxy.heard) == beyond and b"secret" not in proxy.heard and b"x = " not in proxy.heard

    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_request_that_fails_says_nothing_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: Any, request: Infill) -> Any:
        raise EngineError("out of memory, also with less text")
        yield

    async def work(team: Team) -> None:
        engine = TeamEngine(team.settings())
        with monkeypatch.context() as patch:
            patch.setattr(scripted.ScriptedEngine, "infill", broken)
            with pytest.raises(EngineError, match="out of memory"):
                await fill_of(engine)
        assert (await fill_of(engine)).text == "None"
        await engine.close()

    with_team(work, tmp_path)


def test_a_cancel_ends_the_step_and_the_next_key_waits_for_no_handshake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    took, lane_of = list[bool](), TeamEngine._lane

    def noted(self: TeamEngine) -> Any:
        lane = lane_of(self)
        took.append(lane.open)
        return lane

    async def work(team: Team) -> None:
        engine = TeamEngine(team.settings())
        await engine.start()
        await until(lambda: spare(engine))
        monkeypatch.setattr(TeamEngine, "_lane", noted)
        for _ in range(15):
            async with aclosing(engine.infill(REQUEST)) as events:
                await anext(events)
                # A connection is opened while the answer comes.
                await until(lambda: spare(engine))
        assert took == [True] * len(took) and len(took) >= 15
        assert len(engine._lanes) <= 5
        await until(partial(is_ready, engine))
        passes = await passes_of(engine)
        await asyncio.sleep(0.2)
        assert await passes_of(engine) == passes < 15_000
        await engine.close()

    with_team(work, tmp_path, "scripted:2000:10", tls=True)


def spare(engine: TeamEngine) -> bool:
    """Return whether an open connection waits for the next request."""
    return any(lane.open and not lane.busy for lane in engine._lanes)


async def is_ready(engine: TeamEngine) -> bool:
    status = await engine.status()
    return status is not None and status.state == "ready"


async def passes_of(engine: TeamEngine) -> int:
    status = await engine.status()
    assert status is not None
    return status.passes


def test_a_whole_answer_leaves_its_connection_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections, made = list[Any](), door.Guest.connection_made
    opened, opening = list[Any](), team_engine._opened

    def counted(self: Any, transport: Any) -> None:
        connections.append(transport)
        # Else each line waits for the other end's word that it has the one before: 40 ms.
        assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        made(self, transport)

    def noted(lane: Any) -> Any:
        opened.append(lane)
        return opening(lane)

    async def work(team: Team) -> None:
        engine = TeamEngine(team.settings())
        await engine.start()
        await until(lambda: spare(engine) and not engine._background)
        monkeypatch.setattr(door.Guest, "connection_made", counted)
        monkeypatch.setattr(team_engine, "_opened", noted)
        for _ in range(5):
            await fill_of(engine)
        await until(lambda: connections and not engine._background)
        await asyncio.sleep(0.3)
        # While a fill has one, another one is opened to be spare, once.
        assert len(connections) == len(opened) == 1
        await engine.close()

    with_team(work, tmp_path, "scripted:2:10", tls=True)


def test_a_connection_that_the_server_closed_meanwhile_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_KEPT", 0.1)

    async def work(team: Team) -> None:
        engine = TeamEngine(team.settings())
        for _ in range(5):
            assert (await fill_of(engine)).text == "None"
            await asyncio.sleep(0.15)
        await engine.close()

    with_team(work, tmp_path)


@pytest.mark.parametrize("answers", [1, 2])
def test_an_answer_that_breaks_off_is_asked_for_once_more(
    tmp_path: Path, seen: list[Infill], answers: int
) -> None:
    async def work(team: Team) -> None:
        async with cutting(team.url, answers) as url:
            engine = TeamEngine(team.settings(engine_url=url))
            if answers == 1:
                assert (await fill_of(engine)).text == "None"
            else:
                with pytest.raises(EngineError, match="lost in the middle of an answer"):
                    await fill_of(engine)
            assert engine._backoff.count == answers - 1
            await engine.close()

    with_team(work, tmp_path, "scripted:5:20")
    assert len(seen) == 2


def test_where_the_server_is_away_this_machine_fills_and_the_status_says_why(runtime: Path) -> None:
    reported: list[Status] = []

    async def work() -> None:
        settings = Settings(checkpoint="scripted", engine_url="http://127.0.0.1:1", engine_fallback=True)
        engine = TeamEngine(settings, reported.append)
        assert (await fill_of(engine)).text == "None"
        assert (await fill_of(engine)).text == "None"
        status = await engine.status()
        assert status is not None and status.fills == 2
        await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))
    assert reported[-1].state == "ready"
    assert "no engine answers at http://127.0.0.1:1" in reported[-1].why
    assert "the engine of this machine fills meanwhile" in reported[-1].why


@pytest.mark.slow
def test_one_failure_counts_once_however_many_requests_are_open(tmp_path: Path) -> None:
    async def work(team: Team, server: Any) -> None:
        engine = TeamEngine(team.settings())
        fills = [asyncio.create_task(fill_of(engine)) for _ in range(4)]
        async with team.client() as client:

            async def work_on() -> bool:
                return int((await client.get("/v1/status")).json()["passes"]) >= 8

            await until(work_on)
        server.kill()
        ends = await asyncio.gather(*fills, return_exceptions=True)
        assert all("no engine answers" in str(end) for end in ends)
        assert engine._backoff.count == 1
        await engine.close()

    with server_process(tmp_path, "scripted:1000:20") as (team, server):
        asyncio.run(asyncio.wait_for(work(team, server), 120))


def test_another_version_after_a_restart_gets_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(team: Team) -> None:
        engine = TeamEngine(team.settings())
        await engine.start()
        await fill_of(engine)
        # A request that meets closed connections asks first what is there now.
        asked = list[bool]()
        whole, infill = TeamEngine._agree, RemoteEngine.infill

        async def agree(self: TeamEngine) -> Status:
            asked.append(True)
            return await whole(self)

        async def broken(self: Any, request: Infill) -> Any:
            if not asked:
                raise EngineAbsent("closed")
            async for event in infill(self, request):
                yield event

        monkeypatch.setattr(TeamEngine, "_agree", agree)
        monkeypatch.setattr(RemoteEngine, "infill", broken)
        assert (await fill_of(engine)).text == "None" and asked == [True]
        await engine.close()

    with_team(work, tmp_path)


def test_where_the_server_is_slow_this_machine_fills(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_engine, "_SLOW", 0.5)
    reported: list[Status] = []

    async def work(team: Team) -> None:
        engine = TeamEngine(team.settings(engine_fallback=True), reported.append)
        assert (await fill_of(engine)).text == "None"
        await engine.close()
        async with team.client() as client:

            async def is_free() -> bool:
                return (await client.get("/v1/status")).json()["state"] in ("ready", "slow")

            # The server knows that nobody waits for its answer, which would take 100 seconds, any more.
            await until(is_free, 50)

    with_team(work, tmp_path, "scripted:5:20000")
    assert "answers too slowly; the engine of this machine" in reported[-1].why


def test_the_url_is_no_matter_of_a_workspace() -> None:
    evil = {"engineUrl": "https://evil.example", "engineFallback": True, "engineCa": "/x"}
    settings, wrong = configured(Settings(), {}, evil)
    assert len(wrong) == 3 and settings == Settings()
    settings, wrong = configured(Settings(), {"engineUrl": "https://team.example"}, {"engineUrl": ""})
    assert wrong and settings.engine_url == "https://team.example"
    # Nor is what the checkpoint of this machine has learned a matter of the server's.
    assert not silence(settings, "go")


BODY = Infill(
    "def add(first, second):\n    ", "\n\n\ndef sub(first, second):\n    return first - second\n", "python",
    "function_body", indent="    ", seed=3, effort="low", session="file:///w/a.py",
)  # fmt: skip


@pytest.mark.slow
def test_the_same_fill_here_in_a_process_and_from_a_server(tmp_path: Path, runtime: Path) -> None:
    def same(fill: Fill) -> Fill:
        return replace(fill, milliseconds=0.0)

    async def here() -> list[Fill]:
        engine = LocalEngine.open(Settings(checkpoint="embedded", threads=1))
        found = [same(await fill_of(engine, replace(BODY, seed=seed))) for seed in (3, 4)]
        await engine.close()
        return found

    async def resident() -> list[Fill]:
        engine = ResidentEngine(Settings(checkpoint="embedded", threads=1))
        found = [same(await fill_of(engine, replace(BODY, seed=seed))) for seed in (3, 4)]
        await engine.close()
        return found

    async def from_server() -> list[Fill]:
        async with team_of(tmp_path, "embedded", tls=True) as team:
            engine = TeamEngine(team.settings())
            found = [same(await fill_of(engine, replace(BODY, seed=seed))) for seed in (3, 4)]
            await engine.close()
            return found

    one, two, three = asyncio.run(here()), asyncio.run(resident()), asyncio.run(from_server())
    assert one == two == three
    assert all(fill.text for fill in one)
