"""The names of the states, and when an engine is slow."""

import asyncio
import json
import math
from contextlib import aclosing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from dg_lsp.checkpoints import CODER, Measured, note_measured
from dg_lsp.engine.client import Pace, RemoteEngine, name_of_state
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.messages import OFF, Draft, Fill, Infill, Priority, Status
from dg_lsp.server.status import StatusBoard
from dg_lsp.serving.service import Service
from tests.waiting import until

GHOST = Infill("x = ", "\n", "python", "rest_of_line", priority="ghost")


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (Status("starting"), "starting"),
        (Status("loading", 0.404), "loading 40 %"),
        (Status("ready", 1.0), "ready"),
        (Status("busy", 1.0), "busy"),
        (Status("slow", 1.0, "a GPU is faster"), "slow"),
        (Status("failed", why="end another program"), "failed: end another program"),
    ],
)
def test_each_state_has_one_name(status: Status, name: str) -> None:
    assert name_of_state(status) == name
    board = StatusBoard(lambda _: None, "scripted")
    assert board.payload(status)["name"] == name
    assert board.payload(status, "by a setting")["name"] == "off here: by a setting"
    assert board.payload(status, "by a setting")["why"] == "by a setting"


@pytest.mark.parametrize(
    ("times", "priority", "state"),
    [
        ((2500,) * 3, "ghost", "slow"),
        ((2500,) * 2, "ghost", "ready"),
        ((1900,) * 9, "ghost", "ready"),
        ((2500,) * 9, "fill", "ready"),
        ((2500, 2500, 100, 100, 100), "ghost", "ready"),
        ((100,) * 20 + (2500,) * 5, "ghost", "slow"),
    ],
)
def test_an_engine_is_slow_if_ghost_text_usually_takes_long(
    times: tuple[float, ...], priority: Priority, state: str
) -> None:
    pace = Pace()
    for milliseconds in times:
        pace.note(Fill("x", milliseconds=milliseconds), priority)
    assert pace.state == state
    assert bool(pace.why) == (state == "slow")


def test_text_that_the_user_did_not_wait_for_was_too_late() -> None:
    pace = Pace(CODER)
    # The keys of a word end the requests before them, and say nothing.
    for _ in range(20):
        pace.gave_up(0.3, "ghost")
        pace.gave_up(9.0, "ahead")
    assert (pace.usual, pace.why) == (0.0, "")
    pace.note(Fill("x", milliseconds=900), "ghost")
    pace.gave_up(1.2, "ghost")
    assert pace.why == ""
    pace.gave_up(3.0, "ghost")
    assert (pace.usual, pace.state) == (math.inf, "slow")
    assert "ghost text usually takes longer than you wait, which is too long" in pace.why
    pace.forget()
    assert (pace.usual, pace.why, pace.state) == (0.0, "", "ready")


@pytest.mark.parametrize(("pause", "state"), [(0.0, "slow"), (60.0, "ready")])
def test_a_request_that_ends_unanswered_after_a_pause_counts_on_both_sides(
    pause: float, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dg_lsp.engine.client._PAUSE", pause)
    draft = json.dumps({"draft": asdict(Draft(1, (), 0.0))}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + draft + b"\n")
        await reader.read()
        writer.close()

    async def work() -> None:
        # The client's side.
        pace, path = Pace(), tmp_path / "socket"
        async with await asyncio.start_unix_server(serve, path):
            remote = RemoteEngine(path, pace=pace)
            for _ in range(3):
                async with aclosing(remote.infill(GHOST)) as events:
                    assert await anext(events) == Draft(1, (), 0.0)
            await remote.close()
        assert pace.state == state
        # The engine's side.
        engine, service = ScriptedEngine(Fill("x"), [Draft(1, (), 0.0)] * 2, 600.0), Service("c", "d")

        async def opened(_: object) -> ScriptedEngine:
            return engine

        async def ignore(_: bytes) -> None:
            pass

        def asked(engine: ScriptedEngine, before: int) -> bool:
            return len(engine.requests) > before

        await service.load(opened)
        for number in range(3):
            answering = asyncio.create_task(service.answer(GHOST, ignore))
            await until(partial(asked, engine, number))
            answering.cancel()
            await asyncio.wait([answering])
        assert service.status().state == state

    asyncio.run(work())


def test_text_of_several_lines_makes_no_engine_slow() -> None:
    pace = Pace()
    for _ in range(9):
        pace.note(Fill("if x:\n    y", milliseconds=5000), "ghost")
        pace.note(Fill("x", milliseconds=100), "ghost")
    assert pace.state == "ready"


def slow(checkpoint: str, fetched: dict[str, float], data: Path) -> str:
    """Return why an engine with `checkpoint` is slow where others were `fetched` and take so many seconds."""
    for name, seconds in fetched.items():
        (data / name).mkdir()
        note_measured(name, Measured(seconds, 0))
    pace = Pace(checkpoint)
    for _ in range(3):
        pace.note(Fill("x", milliseconds=2500), "ghost")
    return pace.why


@pytest.mark.parametrize(
    ("checkpoint", "fetched", "said"),
    [
        ("coder", {"coder": 1.4, "coder-0.5b": 0.4}, "; take coder-0.5b, which is here and takes 0.4 s"),
        ("coder", {"coder": 1.4, "small": 0.5}, "; take small, which is here and takes 0.5 s"),
        ("coder", {"coder": 1.4}, "fetch a smaller checkpoint (dg-lsp fetch coder-0.5b)"),
        ("coder-0.5b", {"coder-0.5b": 1.4, "small": 1.5}, "set the effort or prefixBytes lower"),
        ("small", {"small": 1.4}, "set the effort or prefixBytes lower"),
        ("embedded", {}, "set the effort or prefixBytes lower"),
        ("", {"coder": 1.0}, "set the effort or prefixBytes lower"),
    ],
)
def test_a_slow_engine_names_the_next_smaller_checkpoint_that_is_here(
    checkpoint: str,
    fetched: dict[str, float],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dg_lsp.checkpoints.data_folder", lambda: tmp_path)
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    why = slow(checkpoint, fetched, tmp_path)
    assert said in why and "embedded" not in why and "other programs" not in why


@pytest.mark.parametrize(
    ("alone", "load", "named"), [(1.4, 3.0, True), (1.4, 2.9, False), (0.1, 2.9, False), (2.6, 3.0, False)]
)
def test_other_programs_are_named_only_if_they_hold_the_cores(
    alone: float, load: float, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dg_lsp.checkpoints.data_folder", lambda: tmp_path)
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    why = slow("coder", {"coder": alone}, tmp_path)
    assert (f"coder alone takes {alone} s, so other programs keep this machine busy" in why) is named


def test_ghost_text_that_is_off_is_said_in_the_status_until_one_comes() -> None:
    pace, why = Pace(), f"{OFF} here the shortest takes 3.0 s; ask for it"
    pace.note(Fill("", refusal=why), "ahead")
    assert (pace.state, pace.why) == ("ready", "")
    pace.note(Fill("", refusal=why), "ghost")
    assert (pace.state, pace.why, pace.usual) == ("slow", why, math.inf)
    assert pace.off == "here the shortest takes 3.0 s"
    # The keys that end a request say nothing else.
    pace.gave_up(0.5, "ghost")
    assert pace.why == why
    pace.note(Fill("", refusal="the model left the gap empty"), "ghost")
    assert (pace.state, pace.why, pace.off, pace.usual) == ("ready", "", "", 0.0)


def test_a_slow_engine_says_so_and_how_to_fix_it() -> None:
    async def work() -> list[Status]:
        engine, service, found = (
            ScriptedEngine(Fill("None", milliseconds=2700)),
            Service("c", "d"),
            list[Status](),
        )

        async def opened(_: object) -> ScriptedEngine:
            return engine

        async def ignore(_: bytes) -> None:
            pass

        await service.load(opened)
        for request in (GHOST, replace(GHOST, priority="bot"), GHOST, GHOST):
            found.append(service.status())
            await service.answer(request, ignore)
        return [*found, service.status()]

    *before, after = asyncio.run(work())
    assert [status.state for status in before] == ["ready"] * 4
    assert after.state == "slow" and "2.7 s" in after.why and "effort" in after.why
    reported = StatusBoard(lambda _: None, "scripted").payload(after)
    assert (reported["state"], reported["why"]) == ("slow", after.why)
