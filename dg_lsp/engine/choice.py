"""The checkpoints of this machine: the one that `auto` means just now, and those of the model menu.

Both go by what was measured, free memory, and engines that hold a checkpoint already.
"""

import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dg_lsp.checkpoints import (
    EMBEDDED,
    FAST_ENOUGH,
    OFFERED,
    REFERENCE,
    Choice,
    abilities_of,
    choose,
    fetched_from_hub,
    folder_of,
    measured,
)
from dg_lsp.engine.runtime import address_of
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import AUTO, Settings

# Bytes that an engine takes beside its weights, and those as a multiple of their files.
_LIBRARIES, _LOADED = 500_000_000, 1.15


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


def resolve(settings: Settings) -> Settings:
    """Return `settings` with the checkpoint that `auto` means just now."""
    return replace(settings, checkpoint=choice(settings).name) if settings.checkpoint == AUTO else settings


def choice(settings: Settings) -> Choice:
    """Return what `auto` means just now, and why."""
    return choose(lambda name: room_for(name, settings))


def models(settings: Settings, held: int = 0) -> list[Model]:
    """Return the entries of the model menu, the best first, then those of the hub and the one in use.

    held: bytes of memory of the engine in use, which ends where another one needs them.
    """
    names = dict.fromkeys([*OFFERED, EMBEDDED, *fetched_from_hub(), settings.checkpoint])
    speed = _speed()
    return [_model(name, settings, held, speed) for name in names]


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
        if address_of(replace(settings, checkpoint=name)).socket.exists():
            return sys.maxsize
    return free("cpu")[0]


def _model(name: str, settings: Settings, held: int, speed: float) -> Model:
    """Return the entry for the checkpoint `name`; `speed` is that of this machine, as of `_speed`."""
    offered, known, folder = OFFERED.get(name), measured(name), folder_of(name)
    used, here = name == settings.checkpoint, folder.exists()
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
    large = not used and memory > room
    if large:
        notes.append(f"needs {memory / 1e9:.1f} GB of memory, of which {room / 1e9:.1f} GB are free")
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
