"""A team's server: who gets in, what it refuses, what it writes down, and how it ends."""

import asyncio
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dg_lsp.cli.main import main
from dg_lsp.engine import scripted, wire
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Infill
from dg_lsp.serving import door
from dg_lsp.serving import team as serving
from dg_lsp.serving.process import STUCK
from dg_lsp.serving.service import Service
from dg_lsp.serving.team import Listening, check
from dg_lsp.serving.tokens import Tokens, make_token
from dg_lsp.settings import Settings, is_loopback
from tests.serving.team import Team, certificate_in, is_ready, server_process, team_of
from tests.waiting import until

SECRET = Infill("secret_text = ", "\n", "python", "rest_of_line")
BODY = json.dumps(wire.pack(SECRET)).encode()


def with_team(work: Callable[[Team], Awaitable[None]], folder: Path, checkpoint: str = "scripted") -> None:
    async def whole() -> None:
        async with asyncio.timeout(180), team_of(folder, checkpoint) as team:
            await work(team)

    asyncio.run(whole())


async def fills(client: httpx2.AsyncClient) -> int:
    return int((await client.get("/v1/status")).json()["fills"])


def test_a_token_lets_in_and_nothing_else_does(tmp_path: Path) -> None:
    async def work(team: Team) -> None:
        async with team.client() as client, team.client("") as nobody, team.client("x" * 43) as wrong:
            for stranger in (nobody, wrong):
                for method, path in (("POST", "/v1/infill"), ("GET", "/v1/status"), ("GET", "/metrics")):
                    answer = await stranger.request(method, path, content=BODY)
                    assert answer.status_code == 401 and answer.headers["connection"] == "close"
            (known,) = (tmp_path / "tokens").read_text().split()
            # What the file holds is no token.
            headers = {"authorization": f"Bearer {known.partition(':')[2]}"}
            assert (await nobody.post("/v1/infill", content=BODY, headers=headers)).status_code == 401
            assert await fills(client) == 0
            answer = await client.post("/v1/infill", content=BODY)
            assert answer.status_code == 200 and b'{"fill":' in answer.content
            assert await fills(client) == 1
            assert (await client.post("/v1/stop")).status_code == 404

    with_team(work, tmp_path)


def test_the_tokens_are_read_again_when_the_file_changes(tmp_path: Path) -> None:
    async def work(team: Team) -> None:
        bob = make_token(team.tokens, "bob")
        async with team.client() as client, team.client(bob) as second:
            assert (await second.get("/v1/status")).status_code == 200
            kept = [line for line in team.tokens.read_text().splitlines() if line.startswith("bob")]
            team.tokens.write_text("\n".join(["# of the team", "nonsense", *kept]))
            assert (await client.get("/v1/status")).status_code == 401
            assert (await second.get("/v1/status")).status_code == 200
            team.tokens.unlink()
            assert (await second.get("/v1/status")).status_code == 401

    with_team(work, tmp_path)


def test_a_token_is_kept_as_its_hash_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokens"
    assert main(["serve-engine", "token", "alice", "--tokens", str(file)]) == 0
    token = capsys.readouterr().out.strip()
    assert token not in file.read_text() and file.stat().st_mode & 0o777 == 0o600
    assert Tokens(file).name_of(token) == "alice" and Tokens(file).name_of(token[:-1]) is None
    assert main(["serve-engine", "token", "a:b", "--tokens", str(file)]) == 2
    assert main(["serve-engine", "token", "--tokens", str(file)]) == 2
    assert len(Tokens(file)) == 1


def test_a_name_has_one_token_unless_it_is_replaced(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "tokens"
    file.write_text("# the team")
    command = ["serve-engine", "token", "alice", "--tokens", str(file)]
    first, bob = make_token(file, "alice"), make_token(file, "bob")
    before = file.read_bytes()
    assert main(command) == 2 and file.read_bytes() == before
    assert "alice has a token already; --replace makes a new one" in capsys.readouterr().err
    assert main([*command, "--replace"]) == 0
    second, found = capsys.readouterr().out.strip(), Tokens(file)
    assert [found.name_of(token) for token in (first, second, bob)] == [None, "alice", "bob"]
    assert file.read_text().startswith("# the team\n") and len(found) == 2
    assert main(["serve-engine", "--replace", "--tokens", str(file)]) == 2


def test_a_health_check_is_not_a_refused_request(tmp_path: Path) -> None:
    service = Service("scripted", "")

    async def work() -> str:
        team = serving.Team(service, lambda token: "alice", serving.Metrics(service))
        transport = httpx2.ASGITransport(team)
        async with httpx2.AsyncClient(transport=transport, base_url="http://team") as client:
            assert (await client.get("/readyz")).status_code == 503
            assert (await client.get("/v1/status")).status_code == 401
            headers = {"authorization": "Bearer x"}
            return (await client.get("/metrics", headers=headers)).text

    counted = asyncio.run(work())
    assert 'dg_lsp_refused_total{code="401"} 1.0' in counted and 'code="503"' not in counted


def test_a_new_token_is_on_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# no line end")
    token = make_token(file, "alice")
    assert Tokens(file).name_of(token) == "alice"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "team.example"])
def test_beyond_this_machine_it_wants_tls_and_tokens(host: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    with pytest.raises(EngineError, match="tokens"):
        check(Listening(tokens, host))
    make_token(tokens, "alice")
    with pytest.raises(EngineError, match="needs TLS"):
        check(Listening(tokens, host))
    check(Listening(tokens, host, 1, *certificate_in(tmp_path)))
    check(Listening(tokens, "127.0.0.1"))
    with pytest.raises(EngineError, match="needs its key"):
        check(Listening(tokens, "127.0.0.1", 1, tmp_path / "cert"))
    assert main(["serve-engine", "--tokens", str(tokens), "--host", host]) == 2


def broken(folder: Path, what: str) -> str:
    """Break the certificate or the key in `folder` in a way, and return what the message must say."""
    certificate, key = certificate_in(folder)
    said = "name a certificate and its key as PEM files"
    match what:
        case "no certificate":
            certificate.unlink()
            said = f"--certificate {certificate} cannot be read (No such file or directory)"
        case "no key":
            key.unlink()
            said = f"--key {key} cannot be read (No such file or directory)"
        case "a folder":
            key.unlink()
            key.mkdir()
            said = f"--key {key} cannot be read (Is a directory)"
        case "not PEM":
            certificate.write_bytes(b"\0nonsense")
        case "an empty key":
            key.write_bytes(b"")
        case "another's key":
            mine = certificate.read_bytes()
            certificate_in(folder)
            certificate.write_bytes(mine)
        case "a password":
            locked = ["openssl", "ec", "-in", str(key), "-aes256", "-passout", "pass:x", "-out", str(key)]
            subprocess.run(locked, check=True, capture_output=True)
            said = f"openssl pkey -in {key} writes it without"
    return said


@pytest.mark.parametrize(
    "what", ["no certificate", "no key", "a folder", "not PEM", "an empty key", "another's key", "a password"]
)
def test_a_certificate_that_cannot_be_used_ends_it_before_it_listens(
    what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = broken(tmp_path, what)
    make_token(tmp_path / "tokens", "alice")
    given = [
        f"--{name}={tmp_path / file}" for name, file in (("certificate", "cert.pem"), ("key", "key.pem"))
    ]
    command = ["serve-engine", f"--tokens={tmp_path / 'tokens'}", "--port=0", "--checkpoint=scripted", *given]
    assert main(command) == 2
    err = capfd.readouterr().err
    assert said in err and "listening" not in err and "password" not in err.replace("has a password", "")


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_that_does_not_exist_is_named(port: str, tmp_path: Path, capsys: Any) -> None:
    make_token(tmp_path / "tokens", "alice")
    command = ["serve-engine", f"--tokens={tmp_path / 'tokens'}", f"--port={port}", "--checkpoint=scripted"]
    with suppress(SystemExit):
        assert main(command) == 2
    assert f"{port} is not a port; name one from 0 to 65535" in capsys.readouterr().err


def test_a_server_that_fails_to_begin_ends_with_its_error(tmp_path: Path, monkeypatch: Any) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("cannot begin")

    monkeypatch.setattr(serving._Server, "serve", fail)
    make_token(tmp_path / "tokens", "alice")
    with pytest.raises(RuntimeError, match="cannot begin"):
        serving.run_server(Settings(checkpoint="scripted"), Listening(tmp_path / "tokens", port=0))


@pytest.mark.parametrize("what", ["folder", "missing"])
def test_tokens_that_cannot_be_read_end_it(what: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    if what == "folder":
        file.mkdir()
    with pytest.raises(EngineError, match="serve-engine token NAME"):
        check(Listening(file))


def test_tokens_that_others_could_add_to_are_refused(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    make_token(tokens, "alice")
    tokens.chmod(0o620)
    with pytest.raises(EngineError, match="chmod go-w"):
        check(Listening(tokens))


def test_which_hosts_are_this_machine() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example", "")))


def test_an_oversized_body_is_refused_unread(tmp_path: Path) -> None:
    async def work(team: Team) -> None:
        async def endless() -> Any:
            for _ in range(40):
                yield b"[" * (1 << 20)

        async with team.client() as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(team.url.rpartition(":")[2]))
            head = "POST /v1/infill HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n"
            writer.write(head.format(team.token, 1 << 40).encode())
            # Nothing of the body is waited for.
            answer = await asyncio.wait_for(reader.read(), 60)
            assert answer.startswith(b"HTTP/1.1 413") and b"16 MiB" in answer
            writer.close()
            # It may be closed while we still send.
            with suppress(httpx2.NetworkError):
                assert (await client.post("/v1/infill", content=endless())).status_code == 413
            assert await fills(client) == 0

    with_team(work, tmp_path)


def test_a_request_out_of_bounds_is_refused_with_the_field_and_does_no_work(tmp_path: Path) -> None:
    asked = {"prefix": "x = ", "suffix": "", "language": "python", "kind": "statement"}

    async def work(team: Team) -> None:
        async with team.client() as client:
            for name, value in (("alternatives", 10**9), ("endings", ["e"] * 10**5), ("language", "klingon")):
                answer = await client.post("/v1/infill", json={**asked, name: value})
                assert answer.status_code == 400
                assert name in answer.json()["error"]["message"]
            assert await fills(client) == 0

    with_team(work, tmp_path)


@pytest.mark.parametrize(
    "drops",
    [
        [],
        [b"POST /v1/infill HTTP/1.1\r\n", *[b"x-a: b\r\n"] * 300],
        [
            b"POST /v1/infill HTTP/1.1\r\nhost: x\r\nauthorization: Bearer TOKEN\r\ncontent-length: 500\r\n\r\n",
            *b"{" * 300,
        ],
        [b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", *[b"G"] * 300],
    ],
    ids=["nothing", "headers", "body", "second request"],
)
def test_who_sends_slowly_is_hung_up_on(
    drops: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("_REQUEST", "_STRANGER"):
        monkeypatch.setattr(door, bound, 0.5)

    async def work(team: Team) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(team.url.rpartition(":")[2]))

        async def drip() -> None:
            for drop in drops:
                data = drop if isinstance(drop, bytes) else bytes([drop])
                writer.write(data.replace(b"TOKEN", team.token.encode()))
                await asyncio.sleep(0.1)

        dripping = asyncio.create_task(drip())
        try:
            async with asyncio.timeout(60):
                while await reader.read(1000):
                    pass
        except ConnectionError:
            pass
        # All that is sent takes half a minute.
        assert not drops or not dripping.done() or dripping.exception()
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        writer.close()
        async with team.client() as client:
            assert await fills(client) == 0
            # A whole request that takes longer to answer is none of these.
            assert (await client.post("/v1/infill", content=BODY)).status_code == 200

    with_team(work, tmp_path, "scripted:3:300")


def test_too_many_fills_are_answered_busy_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(team: Team) -> None:
        bob = make_token(team.tokens, "bob")
        async with team.client() as client, team.client(bob) as other:

            async def fill() -> httpx2.Response:
                return await client.post("/v1/infill", content=BODY)

            under_way = [asyncio.create_task(fill()) for _ in range(serving._EACH)]
            await until(lambda: len(held.waiting) == serving._EACH)
            refused = await fill()
            assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
            assert "8 fills of alice" in refused.json()["error"]["message"]
            # Another one's fills are not refused for that.
            others = asyncio.create_task(other.post("/v1/infill", content=BODY))
            await until(lambda: len(held.waiting) > serving._EACH)
            held.go_on.set()
            assert (await others).status_code == 200
            assert [answer.status_code for answer in await asyncio.gather(*under_way)] == [
                200
            ] * serving._EACH
            assert (await fill()).status_code == 200
            counted = (await client.get("/metrics")).text
        assert 'dg_lsp_refused_total{code="429"} 1.0' in counted
        assert 'dg_lsp_fills_total{reason="stable"} 10.0' in counted
        assert "dg_lsp_first_draft_seconds_count 10.0" in counted
        assert all(
            name in counted for name in ("dg_lsp_queue", "dg_lsp_steps_total", "dg_lsp_prefix_hits_total")
        )
        assert "alice" not in counted

    held = Held(monkeypatch)
    with_team(work, tmp_path, "scripted:2:10")


class Held:
    """Fills of scripted engines in this process, which wait at their beginning until `go_on` is set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.waiting, self.go_on = list[Infill](), asyncio.Event()
        whole = scripted.ScriptedEngine.infill

        async def infill(engine: Any, request: Infill) -> Any:
            self.waiting.append(request)
            await self.go_on.wait()
            async for event in whole(engine, request):
                yield event

        patch.setattr(scripted.ScriptedEngine, "infill", infill)


def test_more_than_all_places_is_busy_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_MOST", 1)

    async def work(team: Team) -> None:
        async with team.client() as client:
            first = asyncio.create_task(client.post("/v1/infill", content=BODY))
            await until(lambda: held.waiting)
            answer = await client.post("/v1/infill", content=BODY)
            assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
            held.go_on.set()
            assert (await first).status_code == 200

    held = Held(monkeypatch)
    with_team(work, tmp_path)


def test_closing_the_stream_frees_the_place_and_stops_the_steps(tmp_path: Path) -> None:
    async def work(team: Team) -> None:
        async with team.client() as client:

            async def is_idle() -> bool:
                return (await client.get("/v1/status")).json()["state"] == "ready"

            for _ in range(2 * serving._EACH):
                async with client.stream("POST", "/v1/infill", content=BODY) as answer:
                    assert answer.status_code == 200
                    await anext(answer.aiter_lines())
                await until(is_idle)
            before = (await client.get("/v1/status")).json()["passes"]
            await asyncio.sleep(0.2)
            assert (await client.get("/v1/status")).json()["passes"] == before < 2 * serving._EACH * 1_000

    with_team(work, tmp_path, "scripted:2000:20")


def test_a_client_is_what_its_token_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Infill] = []
    whole = scripted.ScriptedEngine.infill

    def kept(self: Any, request: Infill) -> Any:
        seen.append(request)
        return whole(self, request)

    monkeypatch.setattr(scripted.ScriptedEngine, "infill", kept)

    async def work(team: Team) -> None:
        async with team.client() as client:
            body = {**wire.pack(SECRET), "window": "of another", "session": "s"}
            assert (await client.post("/v1/infill", json=body)).status_code == 200
        assert [(r.window, r.session) for r in seen] == [("alice", "alice s")]

    with_team(work, tmp_path)


def test_the_journal_has_ids_and_no_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def work(team: Team) -> None:
        async with team.client() as client, team.client("secret-token") as wrong:
            answer = await client.post("/v1/infill", content=BODY, headers={"x-request-id": "of-mine.7"})
            assert answer.headers["x-request-id"] == "of-mine.7"
            made = await client.post(
                "/v1/infill", content=b'{"prefix": "secret_text', headers={"x-request-id": "a b\tsecret_id"}
            )
            assert made.status_code == 400 and re.fullmatch("[0-9a-f]{16}", made.headers["x-request-id"])
            await wrong.get("/secret_path?secret_query=1")
        tokens.append(team.token)

    tokens = list[str]()
    with_team(work, tmp_path)
    # What the client of this test logs is not the server's.
    ours = [record for record in caplog.records if record.name.startswith(("dg_lsp", "uvicorn", "starlette"))]
    reported = "\n".join(record.getMessage() for record in ours)
    assert tokens[0] not in reported
    assert "request of-mine.7: alice /v1/infill 200 in" in reported and "- 401 in" in reported
    assert "secret" not in reported


def test_an_error_of_ours_is_reported_without_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(answer: Any) -> Any:
        (request,) = answer.args
        raise RuntimeError(request.prefix)

    monkeypatch.setattr("dg_lsp.serving.app._Lines", broken)

    async def work(team: Team) -> None:
        async with team.client() as client:
            answer = await client.post("/v1/infill", content=BODY)
            assert answer.status_code == 500 and "secret" not in answer.text

    with_team(work, tmp_path)
    assert "RuntimeError" in caplog.text and "secret" not in caplog.text


@pytest.mark.slow
def test_on_sigterm_it_ends_what_it_has_begun(tmp_path: Path) -> None:
    async def work(team: Team, process: Any) -> None:
        async with team.client() as client:
            await until(lambda: is_ready(client), 120)
            async with client.stream("POST", "/v1/infill", content=BODY) as answer:
                lines = answer.aiter_lines()
                await anext(lines)
                process.send_signal(signal.SIGTERM)
                left = [line async for line in lines]
            assert left[-1].startswith('{"fill":')
            with pytest.raises(httpx2.ConnectError):
                async with team.client() as another:
                    await another.get("/healthz")

    with server_process(tmp_path, "scripted:40:100") as (team, process):
        asyncio.run(asyncio.wait_for(work(team, process), 120))
        assert process.wait(60) == 0
    reported = (tmp_path / "log").read_text()
    assert "ending: 1 fills" in reported and team.token not in reported and "secret" not in reported


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["scripted", "embedded"])
def test_at_its_end_it_prints_nothing_that_is_not_of_its_log(tmp_path: Path, checkpoint: str) -> None:
    async def work(team: Team) -> None:
        async with team.client() as client:
            await until(lambda: is_ready(client), 120)
            assert (await client.post("/v1/infill", content=BODY)).status_code == 200

    with server_process(tmp_path, checkpoint) as (team, process):
        asyncio.run(asyncio.wait_for(work(team), 120))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    reported = (tmp_path / "log").read_text().splitlines()
    own = re.compile(r"[\d:., -]*(INFO|WARNING) ")
    assert reported and not [line for line in reported if not own.match(line)]


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_loaded_ends_it(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    make_token(tokens, "alice")
    assert main(["serve-engine", "--tokens", str(tokens), "--port", "0", "--checkpoint", str(tmp_path)]) == 4


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    make_token(tmp_path / "tokens", "alice")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve-engine", "--tokens", str(tmp_path / "tokens"), "--port", port]) == 2


@pytest.mark.slow
def test_sigterm_does_not_wait_for_a_load(tmp_path: Path) -> None:
    with server_process(tmp_path, "embedded") as (_, process):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_an_engine_that_hangs_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = list[int]()

    class Ended(BaseException):
        pass

    def end(code: int) -> None:
        ends.append(code)
        raise Ended

    async def work(team: Team) -> None:
        async with team.client() as client:
            assert (await client.get("/healthz")).status_code == 200
            answer = asyncio.create_task(client.post("/v1/infill", content=BODY))
            await until(lambda: held.waiting)
            monkeypatch.setattr("dg_lsp.serving.service.Service.stuck", 30.0)
            assert (await client.get("/healthz")).status_code == 503
            reported = (await answer).text
            assert "hung for 30 s" in reported
            await until(lambda: ends)

    held = Held(monkeypatch)
    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr(serving, "_DRAIN", 1)
    with_team(work, tmp_path)
    assert ends == [STUCK]


def test_a_line_of_the_tokens_that_is_not_utf8_is_reported_by_its_number_and_spoils_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "tokens"
    alice = make_token(file, "alice")
    with file.open("ab") as lines:
        lines.write("geheim: jörg\n".encode("latin-1"))
    bob = make_token(file, "bob")
    with caplog.at_level("WARNING"):
        tokens = Tokens(file)
        assert (tokens.name_of(alice), tokens.name_of(bob)) == ("alice", "bob")
    assert "line 2 of the file of tokens" in caplog.text and "geheim" not in caplog.text


def test_a_name_that_is_not_ascii_gets_a_token_in_an_ascii_locale(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-X",
        "utf8=0",
        "-m",
        "dg_lsp",
        "serve-engine",
        "token",
        "jörg",
        "--tokens",
        "tokens",
    ]
    ascii_only = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(command, cwd=tmp_path, env=ascii_only, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Tokens(tmp_path / "tokens").name_of(done.stdout.split()[-1]) == "jörg"


def test_without_prometheus_there_are_no_metrics_and_the_log_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(team: Team) -> None:
        async with team.client() as client:
            answer = await client.get("/metrics")
            assert answer.status_code == 404 and "with its extra server" in answer.text
            assert (await client.get("/v1/status")).status_code == 200

    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with caplog.at_level(logging.INFO, "dg_lsp.model"):
        with_team(work, tmp_path)
    assert "install dg-lsp with its extra server" in caplog.text


def test_a_file_of_tokens_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"the file of tokens .*nowhere.* cannot be written"):
        make_token(tmp_path / "nowhere" / "tokens", "alice")
