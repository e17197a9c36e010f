"""`dg-lsp engine`: start, stop or show the resident engine, or run it in the foreground."""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from dg_lsp.checkpoints import find_directory
from dg_lsp.cli.options import SERVING, add_settings, explain, log_to_stderr, say, settings_of
from dg_lsp.cli.shown import show
from dg_lsp.cli.waiting import Waiting, seldom
from dg_lsp.engine.client import name_of_state, other_version, running
from dg_lsp.engine.resident import ResidentEngine, stop_at
from dg_lsp.engine.runtime import sockets
from dg_lsp.engine.scripted import SCRIPTED
from dg_lsp.engine.team import TeamEngine, load, open_engine
from dg_lsp.messages import Status
from dg_lsp.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp engine`."""
    explain(
        parser,
        "Start, stop or show the engine process that all windows share. It holds the model, is started by the first "
        "request that needs it, and ends itself when nobody has asked for long.",
        "dg-lsp engine status --all",
        "0 done, 1 no engine is running (or it failed), 2 it cannot be started",
    )
    parser.add_argument(
        "action",
        choices=("start", "stop", "status", "run"),
        help="start: start it unless it is running, and wait until it is loaded; stop: end it; status: show it; "
        "run: run it in the foreground",
    )
    parser.add_argument("--all", action="store_true", help="stop and status: the engines of every checkpoint")
    parser.add_argument("--json", action="store_true", help="status and start: one JSON object a line")
    parser.add_argument("--socket", type=Path, help=argparse.SUPPRESS)
    add_settings(parser, SERVING)


def run(arguments: argparse.Namespace) -> int:
    """Run the given action; return the exit code."""
    settings = settings_of(arguments)
    if arguments.action == "run":
        from dg_lsp.serving.process import run_engine

        log_to_stderr(settings.log_level, ["httpx2"])
        return run_engine(settings, arguments.socket)
    if arguments.action == "start":
        return _show([asyncio.run(_start(settings))], arguments)
    if arguments.action == "stop":
        with Waiting("ending the engine"):
            stopped = asyncio.run(_stop(settings, everyone=arguments.all))
        show(f"dg-lsp: {stopped} stopped" if stopped else f"dg-lsp: {_absence()}")
        return 0 if stopped else 1
    with Waiting("asking the engine"):
        found = asyncio.run(_status(settings, everyone=arguments.all))
    if not found:
        say(f"{_absence()}; the first request starts it, or dg-lsp engine start")
    return _show(found, arguments)


def _absence() -> str:
    """Say that no engine is running, or which ones of other settings are."""
    others = [f"one of {status.checkpoint} is (process {status.process})" for status in running()]
    if not others:
        return "no engine is running"
    return f"no engine with these settings is running, but {', '.join(others)}; see --all"


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[TeamEngine | ResidentEngine]:
    """Open the engine of `settings`, and close it at the end of the block."""
    engine = open_engine(settings)
    try:
        yield engine
    finally:
        await engine.close()


async def _start(settings: Settings) -> Status:
    check_there(settings)
    async with opened(settings) as engine:
        with Waiting("starting the engine"):
            return await load(engine, teller())


async def begin(settings: Settings) -> None:
    """Start the resident engine unless it runs, and do not wait until it is loaded."""
    async with opened(settings) as engine:
        await engine.start()


def check_there(settings: Settings) -> None:
    """Raise CheckpointError if an engine of `settings` would not find its checkpoint, before a process is started."""
    if not settings.engine_url and not settings.checkpoint.startswith(SCRIPTED):
        find_directory(settings.checkpoint)


def teller() -> Callable[[Status], None]:
    """Return a function that reports the engine's start on stderr: that it starts, then a line in ten seconds."""
    passing, starts = seldom(say), False

    def tell(status: Status) -> None:
        nonlocal starts
        if status.state == "loading":
            passing(name_of_state(status))
        elif status.state == "starting" and not starts:
            starts = True
            passing("starting the engine ...")

    return tell


async def _stop(settings: Settings, *, everyone: bool) -> int:
    """End the engine of `settings`, or all; return how many there were."""
    if everyone:
        stopped = [await stop_at(path) for path in sockets()]
    else:
        engine = ResidentEngine(settings)
        stopped = [await engine.stop()]
        await engine.close()
    return sum(stopped)


async def _status(settings: Settings, *, everyone: bool) -> list[Status]:
    if everyone:
        return await asyncio.to_thread(running)
    async with opened(settings) as engine:
        status = await engine.status()
        return [status] if status else []


def _show(found: list[Status], arguments: argparse.Namespace) -> int:
    for status in found:
        show(json.dumps(asdict(status)) if arguments.json else _words(status))
    return 0 if found and all(s.state != "failed" for s in found) else 1


def _words(status: Status) -> str:
    slow = f": {status.why}" if status.state == "slow" else ""
    if not status.process and not status.checkpoint:
        # A server that does not answer says nothing else.
        return f"engine      {name_of_state(status)}{slow}"
    lines = [
        f"engine      {name_of_state(status)}{slow}",
        f"checkpoint  {status.checkpoint} ({status.digest[:10]})",
        f"device      {status.device or 'not known yet'}, {status.memory / 2**20:.0f} MiB held",
        f"last fill   {status.milliseconds:.0f} ms, {status.steps} steps; {status.fills} so far, "
        f"{status.hits} requests in documents that were encoded already",
        f"queue       {status.queue}",
        f"process     {status.process}, up {status.seconds:.0f} s, dg-lsp {status.package}, wire {status.wire}, "
        f"Python {status.python}, torch {status.torch or 'not there'}",
    ]
    if said := other_version(status):
        lines.append(f"version     {said}")
    return "\n".join(lines)
