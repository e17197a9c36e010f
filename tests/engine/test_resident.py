"""The engine in its own process: found, started once, cancelled by closing, outlived when it dies."""

import asyncio
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import httpx2
import pytest

from dg_lsp.checkpoints import located
from dg_lsp.cli import doctor
from dg_lsp.engine import resident
from dg_lsp.engine.client import RemoteEngine
from dg_lsp.engine.http import EngineDied, EngineSilent, EngineStrange
from dg_lsp.engine.resident import ResidentEngine, stop_at
from dg_lsp.engine.runtime import Address, address_of
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Draft, Fill, Infill, Status
from dg_lsp.settings import Settings
from tests.processes import engines
from tests.waiting import PATIENCE, until

SLOW = Settings(checkpoint="scripted:1000:20")
QUICK = Settings(checkpoint="scripted")
REQUEST = Infill("x = ", "\n", "python", "rest_of_line")


def with_engine(
    settings: Settings,
    work: Callable[[ResidentEngine], Awaitable[None]],
    tell: Callable[[Status], None] = lambda _: None,
) -> None:
    async def whole() -> None:
        engine = ResidentEngine(settings, tell)
        try:
            await work(engine)
        finally:
            await engine.close()

    asyncio.run(asyncio.wait_for(whole(), 120))


async def status_of(engine: ResidentEngine) -> Status:
    status = await engine.status()
    assert status is not None
    return status


async def fill_of(engine: ResidentEngine, request: Infill = REQUEST) -> Fill:
    events = [event async for event in engine.infill(request)]
    assert isinstance(events[-1], Fill) and all(isinstance(e, Draft) for e in events[:-1])
    return events[-1]


def test_the_first_request_starts_it_and_the_second_finds_it(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        assert await engine.status() is None
        assert (await fill_of(engine)).text == "None"
        first = (await status_of(engine)).process
        other = ResidentEngine(QUICK)
        await fill_of(other)
        await other.close()
        assert (await status_of(engine)).process == first
        assert (await status_of(engine)).fills == 2

    with_engine(QUICK, work)


@pytest.mark.parametrize("starters", [2, 4])
def test_several_that_start_at_once_share_one_engine(runtime: Path, starters: int) -> None:
    async def whole() -> None:
        starting = [ResidentEngine(QUICK) for _ in range(starters)]
        fills = await asyncio.gather(*(fill_of(e) for e in starting))
        assert [f.text for f in fills] == ["None"] * starters
        for engine in starting:
            await engine.close()

    asyncio.run(whole())
    assert len(engines(runtime)) == 1


def test_a_request_that_is_cancelled_while_the_engine_starts_does_not_begin_a_second_start(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, spawn = list[Address](), resident._spawn

    def counted(settings: Settings, address: Address) -> resident._Started:
        starts.append(address)
        return spawn(settings, address)

    monkeypatch.setattr(resident, "_spawn", counted)

    async def work(engine: ResidentEngine) -> None:
        for _ in range(5):
            task = asyncio.create_task(fill_of(engine))
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert (await fill_of(engine)).text == "None"
        assert len(starts) == 1

    with_engine(QUICK, work)


def test_closing_the_stream_stops_the_steps(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        more = []
        for _ in range(5):
            async with aclosing(engine.infill(REQUEST)) as events:
                await anext(events)
                await anext(events)
            at_close = (await status_of(engine)).passes
            await until(partial(is_ready, engine))
            more.append((await status_of(engine)).passes - at_close)
        # On a busy machine the engine may hear late that the stream is closed.
        assert min(more) <= 1 and max(more) < 500
        await stands_still(engine)

    with_engine(SLOW, work)


async def is_ready(engine: ResidentEngine) -> bool:
    return (await status_of(engine)).state == "ready"


async def stands_still(engine: ResidentEngine) -> None:
    """Assert that the engine makes no more steps."""
    passes = (await status_of(engine)).passes
    await asyncio.sleep(0.15)
    assert (await status_of(engine)).passes == passes


def test_a_cancelled_task_stops_the_steps(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        (task,) = await open_requests(engine, 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(partial(is_ready, engine))
        assert 0 < (await status_of(engine)).passes < 500
        await stands_still(engine)

    with_engine(SLOW, work)


def test_a_killed_engine_is_noticed_and_the_next_request_starts_another(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        for _ in range(3):
            await engine.start()
            process = (await status_of(engine)).process
            with pytest.raises(EngineDied, match="died"):
                async with aclosing(engine.infill(REQUEST)) as events:
                    await anext(events)
                    os.kill(process, signal.SIGKILL)
                    async for _ in events:
                        pass
            async with aclosing(engine.infill(REQUEST)) as events:
                assert isinstance(await anext(events), Draft)
            # A good answer in between means that it does not keep dying.
            engine._backoff.succeed()
        assert len(engines(runtime)) == 1

    with_engine(SLOW, work)


def test_an_engine_that_cannot_be_loaded_says_why_and_is_tried_again_later(runtime: Path) -> None:
    # Torch is imported before it is read, so that loading is seen.
    (runtime / "config.json").write_text("{}")
    states: list[Status] = []

    async def whole() -> None:
        engine = ResidentEngine(Settings(checkpoint=str(runtime)), states.append)
        with pytest.raises(EngineError, match="holds a None model"):
            await fill_of(engine)
        with pytest.raises(EngineError, match="holds a None model"):
            await fill_of(engine)
        with pytest.raises(EngineError, match="tried again in"):
            await fill_of(engine)
        await engine.close()

    asyncio.run(asyncio.wait_for(whole(), 120))
    assert states[0].state == "starting" and states[-1].state == "failed"
    assert any(s.state == "loading" for s in states)
    assert "holds a None model" in states[-1].why


def test_an_engine_that_does_not_start_says_what_its_log_says(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    async def work(engine: ResidentEngine) -> None:
        with pytest.raises(EngineError, match="does not start"):
            await fill_of(engine)

    with_engine(QUICK, work)


CLIENT = """
import asyncio, sys, time
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.settings import Settings
print(asyncio.run(ResidentEngine(Settings(checkpoint="scripted")).start()).process, flush=True)
time.sleep(60)
"""


def stat_of(process: int) -> list[str]:
    """State, parent, process group and session of a process."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:4]


def test_an_engine_is_no_windows_child_and_outlives_its_group(runtime: Path) -> None:
    client = subprocess.Popen([sys.executable, "-c", CLIENT], stdout=subprocess.PIPE, start_new_session=True)
    assert client.stdout is not None
    engine = int(client.stdout.readline())
    _, parent, group, session = stat_of(engine)
    assert int(parent) != client.pid and int(group) == int(session) == engine
    # If memory ends, the system ends it rather than an editor.
    assert int(Path(f"/proc/{engine}/oom_score_adj").read_text()) >= 500
    children = [p.name for p in Path("/proc").glob("[0-9]*") if stat_or_none(p) == str(client.pid)]
    assert children == [], "the launcher must have been waited for"
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    client.stdout.close()

    async def work(engine_of_another: ResidentEngine) -> None:
        assert (await status_of(engine_of_another)).process == engine
        await fill_of(engine_of_another)

    with_engine(QUICK, work)


def stat_or_none(path: Path) -> str | None:
    """The parent of the process at `path`; None if it has ended."""
    try:
        return stat_of(int(path.name))[1]
    except OSError:
        return None


def test_an_engine_that_ends_at_once_is_reported_with_its_last_words(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_EFFORT", "most")

    async def work(engine: ResidentEngine) -> None:
        # Its end must be noticed, not waited for.
        with pytest.raises(EngineError, match=r"does not start: .*'effort' takes one of"):
            await fill_of(engine)

    monkeypatch.setattr("dg_lsp.engine.resident._PATIENCE", 3600.0)
    with_engine(QUICK, work)


def test_a_folder_without_locks_says_the_fix(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    reported = list[Status]()

    async def work(engine: ResidentEngine) -> None:
        with pytest.raises(EngineError, match=r"cannot hold a lock .No locks available.; set DG_LSP"):
            await fill_of(engine)

    monkeypatch.setattr("fcntl.flock", refuse)
    with_engine(QUICK, work, reported.append)
    assert reported[-1].state == "failed" and "DG_LSP_RUNTIME_DIR" in reported[-1].why
    assert doctor.check_engine(QUICK).found == reported[-1].why


def test_the_log_goes_on_over_several_starts_and_is_begun_again_when_it_is_long(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], stderr: IO[bytes], **_: object) -> subprocess.CompletedProcess[bytes]:
        stderr.write(b"a line\n")
        return subprocess.CompletedProcess(command, 0, b"0")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("dg_lsp.engine.runtime._LOG_BYTES", 20)
    address = Address(runtime / "x.sock", "digest")
    sizes = []
    for _ in range(5):
        resident._spawn(QUICK, address)
        sizes.append(address.log.stat().st_size)
    assert sizes == [7, 14, 21, 7, 14]


def test_the_log_of_a_running_engine_is_begun_again_when_it_is_long(runtime: Path) -> None:
    # An engine lives as long as somebody works, and tells of each fill.
    async def work(engine: ResidentEngine) -> None:
        await fill_of(engine)
        log = address_of(QUICK).log
        with log.open("ab") as file:
            file.write(b"x" * (2 << 20))
        await until(lambda: not log.stat().st_size)
        await fill_of(engine)
        assert 0 < log.stat().st_size < 1_000

    with_engine(QUICK, work)


def test_an_idle_engine_exits_and_leaves_no_socket(runtime: Path) -> None:
    settings = Settings(checkpoint="scripted", idle_minutes=0.05)

    async def work(engine: ResidentEngine) -> None:
        await fill_of(engine)
        await until(lambda: not engines(runtime))
        assert await engine.status() is None and not list(runtime.glob("*.sock"))
        assert (await fill_of(engine)).text == "None"

    with_engine(settings, work)
    assert len(engines(runtime)) <= 1


def test_an_idle_engine_whose_server_is_away_exits(runtime: Path) -> None:
    """It counts as failed, though it was loaded, and so it never exited."""

    async def work(engine: ResidentEngine) -> None:
        with pytest.raises(EngineError, match=r"no llama\.cpp server answers"):
            await fill_of(engine)
        status = await engine.status()
        assert status is not None and status.state == "failed" and "no llama.cpp" in status.why
        await until(lambda: not engines(runtime))

    with_engine(Settings(engine_url="llama+http://127.0.0.1:9", idle_minutes=0.05), work)


def test_an_engine_whose_socket_vanished_exits(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        address_of(QUICK).socket.unlink()
        await until(lambda: not engines(runtime))

    with_engine(QUICK, work)


def test_an_engine_that_hangs_can_be_stopped(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        process = (await engine.start()).process
        os.kill(process, signal.SIGSTOP)
        assert await stop_at(address_of(QUICK).socket)
        assert (await fill_of(engine)).text == "None"

    with_engine(QUICK, work)


def test_an_engine_that_hangs_is_ended_and_the_next_request_is_answered(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dg_lsp.engine.resident.SILENCE", 4.0)
    monkeypatch.setattr("dg_lsp.engine.resident._LAST_WORD", 2.0)

    async def work(engine: ResidentEngine) -> None:
        for _ in range(2):
            await engine.start()
            process = (await status_of(engine)).process
            with pytest.raises(EngineDied, match="hung and was ended"):
                async with aclosing(engine.infill(REQUEST)) as events:
                    await anext(events)
                    os.kill(process, signal.SIGSTOP)
                    async for _ in events:
                        pass
            async with aclosing(engine.infill(REQUEST)) as events:
                assert isinstance(await anext(events), Draft)
            assert (await status_of(engine)).process != process
            engine._backoff.succeed()
        assert len(engines(runtime)) == 1

    with_engine(SLOW, work)


def test_a_request_to_an_engine_that_hangs_already_is_filled_by_the_next_engine(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dg_lsp.engine.resident.SILENCE", 3.0)
    monkeypatch.setattr("dg_lsp.engine.resident._LAST_WORD", 2.0)
    reported: list[Status] = []

    async def work() -> None:
        engine = ResidentEngine(QUICK, reported.append)
        process = (await engine.start()).process
        await fill_of(engine)
        os.kill(process, signal.SIGSTOP)
        fills = await asyncio.gather(*(fill_of(engine) for _ in range(3)))
        assert [fill.text for fill in fills] == ["None"] * 3
        assert (await status_of(engine)).process != process
        assert [status.state for status in reported].count("failed") == 1
        await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))


async def first_of(engine: ResidentEngine, request: Infill = REQUEST) -> Draft | Fill:
    """The first event of the answer, whose stream is closed then."""
    async with aclosing(engine.infill(request)) as events:
        return await anext(events)


async def open_requests(engine: ResidentEngine, count: int) -> list[asyncio.Task[Fill]]:
    """`count` requests that are being answered."""
    begun = set[int]()

    async def fill(number: int) -> Fill:
        events = []
        async for event in engine.infill(REQUEST):
            begun.add(number)
            events.append(event)
        assert isinstance(events[-1], Fill)
        return events[-1]

    tasks = [asyncio.create_task(fill(number)) for number in range(count)]
    await until(lambda: len(begun) == count)
    return tasks


def test_a_text_that_crashed_the_engine_is_not_sent_again_until_it_changes(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        process = (await status_of(engine)).process
        with pytest.raises(EngineDied, match="crashed when it read this text"):
            async with aclosing(engine.infill(REQUEST)) as events:
                await anext(events)
                os.kill(process, signal.SIGSEGV)
                async for _ in events:
                    pass
        # Wherever the cursor is in it; and no process is started for it.
        for same in (REQUEST, replace(REQUEST, prefix="x", suffix=" = \n", kind="statement")):
            with pytest.raises(EngineError, match="not sent again until it changes"):
                await first_of(engine, same)
        assert not engines(runtime)
        assert isinstance(await first_of(engine, replace(REQUEST, prefix="y = ")), Draft)

    with_engine(SLOW, work)


def test_one_death_is_one_failure_however_many_requests_are_open(runtime: Path) -> None:
    reported: list[Status] = []

    async def work() -> None:
        engine = ResidentEngine(SLOW, reported.append)
        await engine.start()
        tasks = await open_requests(engine, 6)
        os.kill((await status_of(engine)).process, signal.SIGKILL)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ends] == [EngineDied] * 6
        assert [status.state for status in reported].count("failed") == 1
        # No pause after the first failure, which may be an accident.
        assert isinstance(await first_of(engine), Draft)
        await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_request_waits_for_no_other_of_its_window(runtime: Path) -> None:
    """As many as the engine has seats for, and its status, which windows ask to learn whether it lives."""

    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        tasks = await open_requests(engine, 40)
        async with asyncio.timeout(10):
            assert (await status_of(engine)).state == "busy"
            assert isinstance(await first_of(engine, replace(REQUEST, priority="ghost")), Draft)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with_engine(SLOW, work)


def test_an_engine_that_hangs_is_noticed_though_no_request_waits_long(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody types, each key cancels the request before it."""
    monkeypatch.setattr("dg_lsp.engine.resident.SILENCE", 3.0)
    monkeypatch.setattr("dg_lsp.engine.resident._LAST_WORD", 2.0)
    reported: list[Status] = []

    async def work() -> None:
        engine = ResidentEngine(QUICK, reported.append)
        process = (await engine.start()).process
        await fill_of(engine)
        os.kill(process, signal.SIGSTOP)
        # More than the engine was told to let wait at its door.
        keys, found = 0, None
        while found is None:
            with suppress(TimeoutError):
                keys += 1
                async with asyncio.timeout(0.005 if keys < 200 else 1.0):
                    found = await first_of(engine)
        assert (await status_of(engine)).process != process
        assert [status.why for status in reported if status.state == "failed"] == [
            "the engine hung and was ended; the next request starts it again"
        ]
        await engine.close()

    asyncio.run(asyncio.wait_for(work(), 2 * PATIENCE))


def test_an_engine_that_answers_is_never_killed(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # It sends a line each second only.
    monkeypatch.setattr("dg_lsp.engine.resident.SILENCE", 0.3)

    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        process = (await status_of(engine)).process
        with pytest.raises(EngineSilent, match="too slowly"):
            await fill_of(engine)
        assert (await status_of(engine)).process == process

    with_engine(Settings(checkpoint="scripted:5:2000"), work)


def test_an_engine_that_is_slow_to_tell_its_status_is_no_dead_one(runtime: Path) -> None:
    """While torch is imported on a busy machine nothing else of the process may run for seconds."""

    async def work(engine: ResidentEngine) -> None:
        process = (await engine.start()).process
        os.kill(process, signal.SIGSTOP)
        asyncio.get_running_loop().call_later(3, os.kill, process, signal.SIGCONT)
        assert (await status_of(engine)).process == process

    with_engine(QUICK, work)


@pytest.mark.parametrize("answer", [b"220 ready\r\n", b"HTTP/1.1 200 OK\r\n\r\n[1]\n"])
def test_what_listens_in_the_engines_place_is_named(answer: bytes, runtime: Path) -> None:
    reported: list[Status] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        writer.close()

    async def work() -> None:
        engine = ResidentEngine(QUICK, reported.append)
        async with await asyncio.start_unix_server(serve, address_of(QUICK).socket):
            with pytest.raises(EngineStrange, match="not an engine of this dg-lsp"):
                await fill_of(engine)
        assert reported[-1].state == "failed" and "dg-lsp engine stop" in reported[-1].why
        await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))


def test_an_engine_of_another_user_gets_nothing(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(engine: ResidentEngine) -> None:
        await fill_of(engine)
        before = (await status_of(engine)).fills
        # As if the directory had been made by somebody else, who listens there.
        monkeypatch.setattr("dg_lsp.engine.runtime.peer", lambda _: (1, os.getuid() + 1))
        with pytest.raises(EngineError, match="belongs to another user, so nothing was sent"):
            await fill_of(engine)
        monkeypatch.undo()
        monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(runtime))
        assert (await status_of(engine)).fills == before

    with_engine(QUICK, work)


def test_a_runtime_directory_that_vanished_is_made_again(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        await fill_of(engine)
        shutil.rmtree(runtime)
        assert (await fill_of(engine)).text == "None"
        assert runtime.stat().st_mode & 0o077 == 0

    with_engine(QUICK, work)


def test_a_runtime_directory_that_became_a_link_is_refused(runtime: Path, tmp_path: Path) -> None:
    reported: list[Status] = []

    async def work() -> None:
        engine = ResidentEngine(QUICK, reported.append)
        await fill_of(engine)
        shutil.rmtree(runtime)
        (tmp_path / "elsewhere").mkdir()
        runtime.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(EngineError, match=r"is not your own folder; set DG_LSP_RUNTIME_DIR"):
            await fill_of(engine)
        await engine.close()
        runtime.unlink()
        runtime.mkdir()

    asyncio.run(asyncio.wait_for(work(), 120))
    assert reported[-1].state == "failed" and "DG_LSP_RUNTIME_DIR" in reported[-1].why


def test_the_engine_listens_where_the_client_looks_and_runs_no_module_of_its_folder(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runtime / "httpx2.py").write_text("raise SystemExit('a module of this folder was run')")
    here = Address(runtime / "named-by-another-rule.sock", "digest")
    monkeypatch.setattr("dg_lsp.engine.resident.address_of", lambda _: here)

    async def work(engine: ResidentEngine) -> None:
        assert (await fill_of(engine)).text == "None"
        assert here.socket.exists()

    with_engine(QUICK, work)


def test_a_folder_of_the_workspace_is_never_taken_for_a_checkpoint_of_our_own(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("embedded", "small", "mine"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    asked = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command[-1])
        return subprocess.CompletedProcess(command, 0, b"0")

    monkeypatch.setattr(subprocess, "run", run)
    for name in ("embedded", "small", "mine", "owner/name"):
        settings = replace(QUICK, checkpoint=name)
        resident._spawn(settings, Address(runtime / "x.sock", "digest"))
    assert asked == ["embedded", "small", str(tmp_path / "mine"), "owner/name"]


def test_a_python_that_was_taken_away_is_a_failure_with_its_reason(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where dg-lsp is installed anew below an open window; it was an error of our own for each key.
    monkeypatch.setattr(sys, "executable", str(runtime / "no-python"))
    reported: list[Status] = []

    async def work() -> None:
        engine = ResidentEngine(QUICK, reported.append)
        for _ in range(2):
            with pytest.raises(
                EngineError, match=r"the engine does not start: .*no-python.*restart the editor"
            ):
                await fill_of(engine)
        assert reported[-1].state == "failed"
        assert "no-python" in reported[-1].why
        await engine.close()

    asyncio.run(work())


def test_work_ahead_of_a_request_is_not_reported_as_busy(runtime: Path) -> None:
    reported: list[Status] = []

    async def work() -> None:
        engine = ResidentEngine(QUICK, reported.append)
        await engine.start()
        await fill_of(engine, replace(REQUEST, priority="ahead"))
        assert "busy" not in [status.state for status in reported]
        await fill_of(engine)
        assert [status.state for status in reported][-2:] == ["busy", "ready"]
        await engine.close()

    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_stale_socket_is_no_obstacle(runtime: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(address_of(QUICK).socket))

    async def work(engine: ResidentEngine) -> None:
        assert (await fill_of(engine)).text == "None"

    with_engine(QUICK, work)


def test_a_silent_second_is_filled_by_a_beat(runtime: Path) -> None:
    """A reader that allows four silent seconds outlives a step of six."""

    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        remote = RemoteEngine(address_of(Settings(checkpoint="scripted:1:6000")).socket, silence=4.0)
        events = [event async for event in remote.infill(REQUEST)]
        assert isinstance(events[-1], Fill)
        await remote.close()

    with_engine(Settings(checkpoint="scripted:1:6000"), work)


def test_a_malformed_request_gets_a_sentence(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        await engine.start()
        transport = httpx2.AsyncHTTPTransport(uds=str(address_of(QUICK).socket))
        async with httpx2.AsyncClient(transport=transport, base_url="http://engine") as client:
            for body in (b"", b"[1", b"{}", b'{"prefix": 1}', b"[" * 100_000):
                answer = await client.post("/v1/infill", content=body)
                assert answer.status_code == 400 and answer.json()["error"]["message"]
            assert (await client.get("/nothing")).status_code == 404
        assert (await fill_of(engine)).text == "None"

    with_engine(QUICK, work)


def test_the_log_holds_no_source_text(runtime: Path) -> None:
    async def work(engine: ResidentEngine) -> None:
        await fill_of(engine, Infill("secret_name = ", "\nsecret_suffix", "python", "rest_of_line"))

    with_engine(QUICK, work)
    log = address_of(QUICK).log.read_text()
    assert "fill 1" in log and "secret" not in log


def test_a_request_that_never_moves_does_not_keep_the_engine_for_ever(runtime: Path) -> None:
    settings = Settings(checkpoint="scripted:1:60000", idle_minutes=0.02)

    async def work(engine: ResidentEngine) -> None:
        with pytest.raises(EngineDied):
            await fill_of(engine)
        await until(lambda: not engines(runtime))

    with_engine(settings, work)


def test_an_engine_of_an_older_version_is_replaced_once_nobody_uses_it(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(engine: ResidentEngine) -> None:
        async with aclosing(engine.infill(REQUEST)) as events:
            await anext(events)
            old = await status_of(engine)
            monkeypatch.setattr("dg_lsp.__version__", "9999.1")
            other = ResidentEngine(SLOW)
            # A window's request is under way.
            assert (await other.start()).process == old.process
            assert not await other._connected()[0].stop_idle()
            assert f"dg-lsp {old.package}, and this is 9999.1: dg-lsp engine stop" in caplog.text

        async def is_idle() -> bool:
            return (await status_of(engine)).state == "ready"

        await until(is_idle)
        new = await other.start()
        assert new.process != old.process
        # One of a newer version is left alone: else two versions would end each other's.
        monkeypatch.setattr("dg_lsp.__version__", "0.0.1")
        assert (await other.start()).process == new.process
        await other.close()

    with_engine(SLOW, work)


def test_a_file_by_a_relative_path_is_found_by_the_shared_engine(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "folder").mkdir()
    for name in ("./net.gguf", "net.gguf", "~/net.gguf", "../" + tmp_path.name + "/net.gguf"):
        assert Path(located(name)).samefile(tmp_path / "net.gguf") and Path(located(name)).is_absolute()
    assert located("folder") == str(tmp_path / "folder")
    assert located("./nowhere.gguf") == str(tmp_path / "nowhere.gguf")
    for name in ("embedded", "coder", "owner/name", "scripted:2:10"):
        assert located(name) == name

    async def work(engine: ResidentEngine) -> None:
        with pytest.raises(EngineError, match="is no GGUF file that can be read"):
            await fill_of(engine)

    with_engine(Settings(checkpoint="./net.gguf"), work)
