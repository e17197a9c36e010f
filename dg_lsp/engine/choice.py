"""The checkpoints of this machine: the one that `auto` means just now, those of the model menu, and the fetch of one.

The choice and the menu go by what was measured, free memory, and engines that hold a checkpoint already.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dg_lsp.checkpoints import (
    AFTER,
    EMBEDDED,
    FAST_ENOUGH,
    OFFERED,
    REFERENCE,
    Choice,
    abilities_of,
    choose,
    fetched_from_hub,
    folder_of,
    languages_of,
    measured,
    picked,
    prompt_of,
    too_large_for,
)
from dg_lsp.engine.runtime import address_of
from dg_lsp.engine.served import Served, servers
from dg_lsp.filling.engine import EngineError
from dg_lsp.processes import python, start_talking
from dg_lsp.settings import AUTO, Settings

_PATIENCE = 5.0  # seconds in which an interrupted fetch ends the package clients that it has started
_LONGEST = 1 << 20  # bytes of a line
# Bytes that an engine takes beside its weights, and those as a multiple of their files.
_LIBRARIES, _LOADED = 500_000_000, 1.15
_QUICKER = (
    1.3  # times the seconds of a smaller checkpoint that the larger one takes at least, so that a change pays
)


@dataclass(frozen=True, slots=True)
class Model:
    """An entry of the model menu.

    bytes: of the files, or of the download. memory: bytes that an engine with it needs. seconds: of a line, measured
    on this machine; None if nobody has. expected: the same, or an estimate. can, note: in words.
    """

    name: str
    bytes: int
    memory: int
    seconds: float | None
    expected: float | None
    can: tuple[str, ...]
    state: Literal["in use", "fetched", "not fetched", "too large"]
    note: str


@dataclass(frozen=True, slots=True)
class Smaller:
    """A quicker checkpoint beside that of the settings.

    seconds: of a line, alone. larger: those of the checkpoint of the settings. too_large: why it does not fit the
    memory, as a clause; empty if it does.
    """

    name: str
    seconds: float
    larger: float
    too_large: str


def resolve(settings: Settings) -> Settings:
    """Return `settings` with the checkpoint that `auto` means just now."""
    return replace(settings, checkpoint=choice(settings).name) if settings.checkpoint == AUTO else settings


def choice(settings: Settings) -> Choice:
    """Return what `auto` means just now, and why."""
    return choose(lambda name: room_for(name, settings))


def models(settings: Settings, held: int = 0) -> list[Model]:
    """Return the entries of the model menu, the best first, then those of the hub, the one in use, and servers.

    held: bytes of memory of the engine in use, which ends if another one needs them.
    """
    used = settings.engine_url or settings.checkpoint
    names = dict.fromkeys([*OFFERED, EMBEDDED, *fetched_from_hub(), settings.checkpoint])
    speed, here = _speed(), replace(settings, engine_url="")
    found = [_model(name, here, held, speed, used=name == used) for name in names]
    own = servers()
    absent = {used: None} if settings.engine_url and used not in own else {}
    return found + [_server(url, served, used=url == used) for url, served in {**own, **absent}.items()]


def smaller_than(settings: Settings) -> Smaller | None:
    """Return the next smaller checkpoint that is here and clearly quicker than that of `settings`; None without one.

    It reads the same requests: its prompts have the same parts, and it knows the same languages. What was picked in the
    model menu has none, because somebody wants it as it is.
    """
    used, names = settings.checkpoint, [*OFFERED]
    if used not in OFFERED or picked() or (alone := measured(used)) is None:
        return None
    for name in names[names.index(used) + 1 :]:
        found = measured(name)
        alike = all(of(name) == of(used) for of in (prompt_of, languages_of))
        if found and alike and 0 < found.seconds * _QUICKER <= alone.seconds:
            too_large = too_large_for(found.memory or OFFERED[name].memory, room_for(name, settings))
            return Smaller(name, found.seconds, alone.seconds, too_large)
    return None


def better_in(found: list[Model]) -> str | None:
    """Return the best of the models in OFFERED that is fast enough and fits here, if it is better than the one in use.

    Nothing is known to be better than a checkpoint that has no name of its own.
    """
    used = next(number for number, one in enumerate(found) if one.state == "in use")
    if found[used].name not in (*OFFERED, EMBEDDED):
        return None
    fit = (m.name for m in found[:used] if m.state != "too large" and (m.expected or 0) <= FAST_ENOUGH)
    return next(fit, None)


def room_for(name: str, settings: Settings) -> int:
    """Return the bytes of main memory that are free for the checkpoint `name`, without a bound if an engine has it."""
    from dg_lsp.engine.memory import free  # noqa: PLC0415 - only where there is a choice

    with suppress(EngineError):
        if address_of(replace(settings, checkpoint=name)).is_held:
            return sys.maxsize
    return free("cpu")[0]


async def fetch(name: str, tell: Callable[[str, int | None], None]) -> None:
    """Fetch the checkpoint `name` in a process; `tell` is called with each message and its percentage, if it has one.

    Cancelling ends the process; the next fetch continues from what it has got.
    """
    if name.startswith("-"):
        raise EngineError(f"{name} is no name of a checkpoint; the model menu lists them")
    process = await start_talking(command(name), _LONGEST)
    assert process.stdout is not None
    said = ""
    try:
        async for line in process.stdout:
            try:
                message = json.loads(line)
                tell(str(message["say"]), message["percent"])
            except (ValueError, LookupError, TypeError):
                said = line.decode("utf-8", "replace").strip() or said
        await process.wait()
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode:
        why = said.removeprefix("dg-lsp: error: ") or f"it ended with exit code {process.returncode}"
        raise EngineError(f"{name} was not fetched: {why}")


def command(name: str) -> list[str]:
    """Return the command line of the process."""
    return python("-m", "dg_lsp", "fetch", name, "--json")


def _server(url: str, served: Served | None, *, used: bool) -> Model:
    """Return the entry for the llama.cpp server at `url`, None if it does not answer."""
    what = f"{served.model}, served by llama.cpp {served.build}" if served else "it does not answer now"
    note = f"{what}; for this window only: the setting engineUrl keeps it"
    can = ("lines", "bodies", "holes", AFTER)
    return Model(url, 0, 0, None, None, can, "in use" if used else "fetched", note)


def _model(name: str, settings: Settings, held: int, speed: float, *, used: bool) -> Model:
    """Return the entry for the checkpoint `name`; `speed` is that of this machine, as of `_speed`."""
    offered, known, folder = OFFERED.get(name), measured(name), folder_of(name)
    here = folder.exists()
    size = offered.download if offered else _size(folder)
    memory = known.memory if known and known.memory else offered.memory if offered else 0
    memory = memory or int(size * _LOADED) + _LIBRARIES
    expected = known.seconds if known else offered.seconds / speed if offered else None
    notes = [offered.words if offered else "part of dg-lsp" if name == EMBEDDED else ""]
    if known is None and offered:
        where = "here" if speed != 1 else f"on {REFERENCE}"
        notes.append(f"about {expected:.1f} s for a line {where}")
    elif known and known.seconds > FAST_ENOUGH:
        notes.append("slow here")
    room = room_for(name, settings) + held
    large = "" if used else too_large_for(memory, room)
    notes.append(large)
    state: Literal["in use", "fetched", "not fetched", "too large"]
    state = "in use" if used else "too large" if large else "fetched" if here else "not fetched"
    memory, seconds = held if used and held else memory, known.seconds if known else None
    return Model(
        name, size, memory, seconds, expected, abilities_of(name), state, "; ".join(filter(None, notes))
    )


def _speed() -> float:
    """Return the speed of this machine as a multiple of that of REFERENCE, by a measured checkpoint; 1 without one."""
    found = ((one.seconds, known) for name, one in OFFERED.items() if (known := measured(name)))
    return next((seconds / known.seconds for seconds, known in found if known.seconds > 0), 1.0)


def _size(folder: Path) -> int:
    """Return the bytes of a checkpoint's files."""
    files = [folder] if folder.is_file() else folder.glob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


async def _end(process: asyncio.subprocess.Process) -> None:
    """Interrupt a process, and kill it with all that it has started if it does not end."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    # Not by `wait`, which waits for the other end of the pipe, too, and what it has started may have that.
    end = time.monotonic() + _PATIENCE
    while process.returncode is None and time.monotonic() < end:
        await asyncio.sleep(0.02)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    with suppress(TimeoutError):
        await asyncio.wait_for(process.stdout.read(), _PATIENCE)
