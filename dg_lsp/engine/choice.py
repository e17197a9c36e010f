"""The checkpoint that `auto` means just now: what was measured, free memory, engines that hold a checkpoint already."""

import sys
from contextlib import suppress
from dataclasses import replace

from dg_lsp.checkpoints import Choice, choose
from dg_lsp.engine.runtime import address_of
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import AUTO, Settings


def resolve(settings: Settings) -> Settings:
    """Return `settings` with the checkpoint that `auto` means just now."""
    return replace(settings, checkpoint=choice(settings).name) if settings.checkpoint == AUTO else settings


def choice(settings: Settings) -> Choice:
    """Return what `auto` means just now, and why."""
    return choose(lambda name: room_for(name, settings))


def room_for(name: str, settings: Settings) -> int:
    """Return the bytes of main memory that are free for the checkpoint `name`, without a bound if an engine has it."""
    from dg_lsp.engine.memory import free  # noqa: PLC0415 - only where there is a choice

    with suppress(EngineError):
        if address_of(replace(settings, checkpoint=name)).socket.exists():
            return sys.maxsize
    return free("cpu")[0]
