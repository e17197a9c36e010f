"""One engine and what is known of it, without a process and without HTTP."""

import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest

from dg_lsp.engine import wire
from dg_lsp.engine.fatal import CRASHED, FatalTexts
from dg_lsp.engine.scripted import ScriptedEngine, open_scripted
from dg_lsp.filling.engine import EngineBroken, EngineError
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.serving import process
from dg_lsp.serving.app import make_app
from dg_lsp.serving.service import Hosted, Service
from dg_lsp.serving.waits import longest_wait, waits
from dg_lsp.settings import Settings
from tests.serving import toy
from tests.waiting import PATIENCE, until

REQUEST = Infill("x = ", "\n", "python", "rest_of_line")


def opener(engine: Hosted) -> Callable[[Callable[[float], None]], Awaitable[Hosted]]:
    async def open_engine(_: Callable[[float], None]) -> Hosted:
        return engine

    return open_engine


async def lines_of(service: Service, pause: float = 0.0) -> list[dict[str, Any]]:
    found = []

    async def read(line: bytes) -> None:
        found.append(json.loads(line))
        await asyncio.sleep(pause)

    await service.answer(REQUEST, read)
    return found


def test_a_text_that_crashed_the_last_process_is_not_given_to_the_engine() -> None:
    class Known:
        @contextmanager
        def reading(self, request: Infill) -> Iterator[None]:
            assert request == REQUEST
            raise EngineError(CRASHED)
            yield

    async def work() -> None:
        service = Service("scripted", "", cast(FatalTexts, Known()))
        await service.load(opener(open_scripted("scripted")))
        assert await lines_of(service) == [{"error": {"message": CRASHED}}]

    asyncio.run(work())


def test_a_slow_reader_misses_drafts_and_holds_no_step_up() -> None:
    async def work() -> None:
        engine = open_scripted("scripted:200:1")
        service = Service("scripted", "")
        await service.load(opener(engine))
        reading = asyncio.create_task(lines_of(service, 0.05))
        await until(lambda: engine.passes == 200)
        # The engine has finished, the reader still reads.
        assert not reading.done()
        found = await reading
        steps = [line["draft"]["step"] for line in found if "draft" in line]
        assert steps == sorted(set(steps)) and 1 < len(steps) < 50
        assert found[-1]["fill"]["text"] == "None"

    asyncio.run(work())


def test_an_error_of_loading_is_named_by_its_kind_only() -> None:
    async def work() -> None:
        async def open_engine(_: Callable[[float], None]) -> Hosted:
            raise ValueError("secret = 1")

        service = Service("scripted", "")
        await service.load(open_engine)
        (answer,) = await lines_of(service)
        said = "the engine cannot start (ValueError); run dg-lsp doctor"
        assert answer == {"error": {"message": said, "failed": True}}
        assert (service.status().state, service.status().why) == ("failed", said)

    asyncio.run(work())


def test_the_status_tells_the_stages_of_a_life() -> None:
    async def work() -> None:
        service = Service("scripted", "abc")
        go = asyncio.Event()

        async def open_engine(done: Callable[[float], None]) -> Hosted:
            done(0.5)
            await go.wait()
            return open_scripted("scripted:5:20")

        assert service.status().state == "starting"
        load = asyncio.create_task(service.load(open_engine))
        await asyncio.sleep(0)
        assert (service.status().state, service.status().done) == ("loading", 0.5)
        reading = asyncio.create_task(lines_of(service))
        await asyncio.sleep(0.05)
        go.set()
        await load
        await until(lambda: service.status().state == "busy")
        found = await reading
        assert found[0] == {"state": {"state": "loading", "done": 0.5}}
        status = service.status()
        assert (status.state, status.fills, status.steps, status.passes) == ("ready", 1, 1, 5)
        assert status.milliseconds > 50 and status.digest == "abc" and status.process and status.wire

    asyncio.run(work())


def test_an_error_of_the_engine_is_the_last_line() -> None:
    def refuse(_: Infill) -> Fill:
        raise EngineError("no room")

    def fail(_: Infill) -> Fill:
        raise ValueError("secret text")

    async def work(answer: Callable[[Infill], Fill]) -> dict[str, Any]:
        service = Service("scripted", "")
        await service.load(opener(ScriptedEngine(answer)))
        return (await lines_of(service))[-1]["error"]  # type: ignore[no-any-return]

    assert asyncio.run(work(refuse)) == {"message": "no room"}
    reported = asyncio.run(work(fail))["message"]
    assert "ValueError" in reported and "secret" not in reported


def test_an_engine_that_cannot_be_opened_answers_with_the_fix() -> None:
    async def work() -> None:
        service = Service("nothing", "")

        async def open_engine(_: Callable[[float], None]) -> Hosted:
            raise EngineError("name another")

        await service.load(open_engine)
        assert service.failed and service.status().why == "name another"
        assert (await lines_of(service))[-1]["error"] == {"message": "name another", "failed": True}

    asyncio.run(work())


def test_cancelling_an_answer_stops_the_engine() -> None:
    async def work() -> None:
        engine = open_scripted("scripted:100:10")
        service = Service("scripted", "")
        await service.load(opener(engine))
        began = asyncio.Event()

        async def read(_: bytes) -> None:
            began.set()

        answering = asyncio.create_task(service.answer(REQUEST, read))
        await began.wait()
        answering.cancel()
        await asyncio.wait([answering])
        at_close = engine.passes
        assert service.status().state == "ready"
        await asyncio.sleep(0.05)
        assert engine.passes == at_close

    asyncio.run(work())


class _SlowToClose(ScriptedEngine):
    """An engine that takes long to end a piece of work, as one does whose step runs on after a cancel."""

    def __init__(self, answer: Fill, until: asyncio.Event) -> None:
        super().__init__(answer)
        self._until = until

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        try:
            async for event in super().infill(request):
                yield event
            await self._until.wait()
        finally:
            # As with a real one, the first cancel is answered when the running step has ended.
            await self._until.wait()


def test_the_engine_is_ready_as_soon_as_the_fill_is_there() -> None:
    async def work() -> None:
        until = asyncio.Event()
        service = Service("scripted", "")
        await service.load(opener(_SlowToClose(Fill("x"), until)))
        seen = []

        async def read(line: bytes) -> None:
            seen.append((b"fill" in line, service.status().state, service.working))
            until.set()

        await service.answer(REQUEST, read)
        # The model thread was still busy with the request, so the process must not be ended yet.
        assert seen == [(True, "ready", True)] and not service.working

    asyncio.run(work())


def test_a_reader_that_leaves_twice_leaves_no_busy_engine_behind() -> None:
    """The client closes its stream, and the server cancels the answer while that still waits for the engine."""

    async def work() -> None:
        until = asyncio.Event()
        service = Service("scripted", "")
        await service.load(opener(_SlowToClose(Fill("x"), until)))
        reading = asyncio.create_task(lines_of(service))
        await asyncio.sleep(0.01)
        for _ in range(2):
            reading.cancel()
            await asyncio.sleep(0.01)
        assert service.status().state == "ready"
        until.set()
        await asyncio.gather(reading, return_exceptions=True)
        assert service.status().state == "ready" and not service.working

    asyncio.run(work())


class _Stuck(ScriptedEngine):
    """An engine whose last step never ends."""

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        async for event in super().infill(request):
            if isinstance(event, Fill):
                await asyncio.sleep(3600)
            yield event


def test_an_engine_without_a_step_for_long_says_so_to_who_waits_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LOOK", 0.05)

    async def work() -> dict[str, Any]:
        service = Service("scripted", "")
        engine = _Stuck(Fill("x"), [Draft(n, (), 0.0) for n in range(1, 8)], 0.01)
        engine.patience = 0.5
        await service.load(opener(engine))
        socket = tmp_path / "socket"
        socket.touch()
        watch = asyncio.create_task(process._watch(service, Settings(), (socket, socket.stat().st_ino)))
        await asyncio.sleep(0.8)
        assert not watch.done() and not service.stuck, "nobody waits, so nothing is stuck"
        reading = asyncio.create_task(lines_of(service))
        await asyncio.wait_for(watch, PATIENCE)
        return (await asyncio.wait_for(reading, PATIENCE))[-1]["error"]  # type: ignore[no-any-return]

    assert "hung" in asyncio.run(work())["message"]


class _Clock:
    """The time of a service, and the times that its threads have waited for a core: of one not at all."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self._folder = 100.0, folder
        monkeypatch.setattr("dg_lsp.serving.service.time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr("dg_lsp.serving.waits._THREADS", folder)

    def waited(self, seconds: int) -> None:
        for thread, share in (("7", 0), ("8", 1)):
            (self._folder / thread).mkdir(exist_ok=True)
            (self._folder / thread / "schedstat").write_text(f"54785843 {share * seconds * 10**9} 37\n")


@asynccontextmanager
async def _hanging() -> AsyncIterator[Service]:
    """A service whose engine hangs in its first step, which may take 50 s, while a request waits."""
    service = Service("scripted", "")
    engine = _Stuck(Fill("x"))
    engine.patience, engine.first_step = 10.0, 50.0
    await service.load(opener(engine))
    reading = asyncio.create_task(lines_of(service))
    await until(lambda: service.working)
    yield service
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


def test_an_engine_that_hangs_in_its_first_step_ends_as_soon_as_no_disk_can_be_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock(tmp_path, monkeypatch)  # the machine is idle

    async def work() -> None:
        async with _hanging() as service:
            clock.now += 49.0
            assert not service.stuck
            clock.now += 2.0
            assert service.stuck == 51.0

    asyncio.run(work())


def test_the_time_that_other_programs_take_is_not_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside ten busy programs a healthy engine was ended after 37 seconds, and loaded again for three minutes."""
    clock = _Clock(tmp_path, monkeypatch)
    clock.waited(7)

    async def work() -> None:
        async with _hanging() as service:
            assert not service.stuck
            clock.now += 300.0
            clock.waited(277)
            assert not service.stuck
            clock.now += 21.0
            assert service.stuck == 51.0

    asyncio.run(work())


def test_who_waits_for_a_core_is_seen() -> None:
    code = "while True: pass"
    core = {min(os.sched_getaffinity(0))}
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    own = os.sched_getaffinity(0)
    try:
        for other in others:
            os.sched_setaffinity(other.pid, core)
        os.sched_setaffinity(0, core)
        before, ends = waits(), time.monotonic() + 1.0
        while time.monotonic() < ends:
            pass
        assert 0.2 < longest_wait(before) < 1.5
    finally:
        os.sched_setaffinity(0, own)
        for other in others:
            other.kill()
            other.wait()


class _Broken(ScriptedEngine):
    """Its libraries fail for good."""

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        raise EngineBroken("it ends")
        yield Fill(request.prefix)


def test_an_engine_that_can_compute_no_more_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LOOK", 0.05)

    async def work() -> str:
        service = Service("scripted", "")
        await service.load(opener(_Broken(Fill("x"), [], 0.0)))
        socket = tmp_path / "socket"
        socket.touch()
        watch = asyncio.create_task(process._watch(service, Settings(), (socket, socket.stat().st_ino)))
        await asyncio.sleep(0.2)
        assert not watch.done()
        said = (await lines_of(service))[-1]["error"]["message"]
        await asyncio.wait_for(watch, PATIENCE)
        return str(said)

    assert asyncio.run(work()) == "it ends"


def test_slow_steps_are_not_taken_for_none() -> None:
    async def work() -> None:
        service = Service("scripted", "")
        engine = open_scripted("scripted:6:100")
        engine.patience = 0.05
        await service.load(opener(engine))
        reading = asyncio.create_task(lines_of(service))
        while not reading.done():
            assert not service.stuck
            await asyncio.sleep(0.01)
        assert "fill" in reading.result()[-1]

    asyncio.run(work())


def test_a_toy_engine_is_served_by_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of its own and an entry in a table: no other module knows of it."""
    monkeypatch.setitem(process.ENGINES, "toy", toy.open_toy)

    async def work() -> dict[str, Any]:
        service = Service("toy", "")
        await service.load(partial(process.open_engine, Settings(checkpoint="toy:abc")))
        assert (service.status().state, service.status().device) == ("ready", "a toy")
        return (await lines_of(service))[-1]["fill"]  # type: ignore[no-any-return]

    assert asyncio.run(work())["text"] == "abc"


def test_a_garbage_collection_leaves_out_the_objects_of_a_loaded_engine() -> None:
    before = gc.get_freeze_count()
    engine = asyncio.run(process.open_engine(Settings(checkpoint="scripted:1:1"), lambda _: None))
    assert gc.get_freeze_count() > before and isinstance(engine, ScriptedEngine)


def odd_messages(count: int) -> Iterator[bytes]:
    """Yield `count` bodies of requests: broken, deep, long, of wrong types, and with half characters."""
    chance = random.Random(54)
    sound = {"prefix": "x = ", "suffix": "\n", "language": "python", "kind": "rest_of_line"}
    values: list[Any] = [None, True, -1, 2**70, 1e308, "\ud800", "\0", "a" * 70_000, [], [[]], {}, {"a": []}]
    values += [
        ["\udfff"],
        [None],
        [{"path": "a"}],
        [{"path": 1, "text": []}],
        ["x"] * 200,
        "12",
        [1.5],
        [[1], "a"],
    ]
    names = [field.name for field in fields(Infill)]
    for number in range(count):
        body = json.dumps({**sound, chance.choice(names): chance.choice(values)}).encode()
        if number % 4 == 1:
            body = body[: chance.randrange(len(body))]
        elif number % 4 == 2:
            depth = chance.choice([10, 900, 100_000])
            name = chance.choice(names).encode()
            body = b'{"%b": %b%b}' % (name, b"[" * depth, b"]" * (depth - number % 8 // 4))
        elif number % 4 == 3:
            at = chance.randrange(len(body))
            body = (
                body[:at] + chance.choice([b"\xff", b"NaN", b"Infinity", b"1" * 5_000, b'"']) + body[at + 1 :]
            )
        yield body


def test_no_message_of_a_client_ends_the_engine_of_the_others() -> None:
    async def work() -> None:
        service = Service("toy", "d")
        await service.load(partial(process.open_engine, Settings(checkpoint="scripted")))
        app = make_app(service)
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://engine") as client:
            for body in odd_messages(400):
                answer = await client.post("/v1/infill", content=body)
                assert answer.status_code in (200, 400), body[:300]
                last = wire.event(answer.text.splitlines()[-1])
                assert isinstance(last, (Fill, wire.Failure))
            sound = json.dumps(wire.pack(Infill("x = ", "\n", "python", "rest_of_line")))
            answer = await client.post("/v1/infill", content=sound)
            assert isinstance(wire.event(answer.text.splitlines()[-1]), Fill)
        assert not service.broken and not service.in_use
        await service.close()

    asyncio.run(asyncio.wait_for(work(), 120))
