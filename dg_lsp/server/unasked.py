"""Unasked: who writes the text that nobody has asked for, the engine in use or that of a smaller checkpoint.

It runs on the event loop, and starts no engine before one is needed.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dg_lsp.checkpoints import FAST_ENOUGH, cores_are_held
from dg_lsp.engine.choice import Smaller, smaller_than
from dg_lsp.engine.client import duration
from dg_lsp.engine.resident import Fallback, ResidentEngine
from dg_lsp.engine.team import load
from dg_lsp.filling.engine import Engine, EngineError
from dg_lsp.messages import Status
from dg_lsp.settings import Settings

# The larger checkpoint writes again once its text is expected in this share of FAST_ENOUGH, or in hardly more than its
# time on an idle machine.
_CLEARLY, _HARDLY = 0.6, 1.3
# Seconds from one change to the next, at least: twice as many after each, up to the most.
_FIRST, _MOST = 30.0, 3600.0
_log = logging.getLogger("dg_lsp.server")


def is_to_change(usual: float, smaller: Smaller | None) -> bool:
    """Return whether unasked text is to change its writer, who usually takes `usual` seconds now; 0 is unknown.

    smaller: None while the larger checkpoint writes. That one would take as many times longer than the smaller as each
    takes alone.
    """
    if smaller is None:
        return usual > FAST_ENOUGH
    expected = usual * smaller.larger / smaller.seconds
    return 0 < expected <= max(_CLEARLY * FAST_ENOUGH, _HARDLY * smaller.larger)


class Unasked:
    """The engine of a smaller checkpoint, opened while unasked text comes too late with the engine in use.

    Until it is loaded, and once it has failed or ended, the engine in use writes. open_engine: makes an Engine from
    settings. tell: called with each Status of the smaller one while it writes, and after each change. clock: returns
    the time in seconds.
    """

    def __init__(
        self,
        open_engine: Callable[[Settings, Callable[[Status], None]], Engine],
        tell: Callable[[Status], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_engine, self._tell, self._clock = open_engine, tell, clock
        self._engine: ResidentEngine | None = None
        self._smaller: Smaller | None = None
        self._loaded = False
        self._took, self._off, self._held = 0.0, "", False
        self._why_not = ""
        self._changing: asyncio.Task[None] | None = None
        self._closing = set[asyncio.Task[None]]()
        self._changes, self._not_before = 0, 0.0

    @property
    def writes(self) -> bool:
        """Return whether the smaller checkpoint writes now."""
        return self._engine is not None and self._loaded

    @property
    def name(self) -> str:
        """The name of the smaller checkpoint while it writes; else empty."""
        return self._smaller.name if self._smaller and self.writes else ""

    def engine(self, used: Engine) -> Engine:
        """Return the engine for a request that nobody has made; `used` is the one in use."""
        if self._engine is None or not self._loaded:
            return used
        if not self._engine.lives:
            # It was idle for long, or somebody has ended it.
            self._end()
            _forget(used)
            return used
        return Fallback(self._engine, used, partial(self._failed, self._engine))

    async def status(self) -> Status | None:
        """Return the status of the smaller engine while it writes; None if it does not."""
        return await self._engine.status() if self._engine is not None and self._loaded else None

    def noted(self, used: Engine, settings: Settings) -> None:
        """Begin a change if one is due, after a request for unasked text has ended; `settings` are those of `used`."""
        if not isinstance(used, ResidentEngine) or settings.engine_url or self._changing is not None:
            return
        writer, smaller = (self._engine, self._smaller) if self.writes else (used, None)
        assert writer is not None
        if self._clock() >= self._not_before and is_to_change(writer.pace.usual, smaller):
            self._changing = asyncio.create_task(self._change(used, settings))
            self._changing.add_done_callback(self._changed)

    def sentence(self, engine: ResidentEngine, used: str) -> str:
        """Say who writes unasked text and why, if not only the `engine` in use, of the checkpoint `used`, does."""
        smaller = self._smaller
        if smaller is None or not (self._engine or (self._why_not and engine.pace.usual > FAST_ENOUGH)):
            return ""
        took, off = (self._took, self._off) if self._engine else (engine.pace.usual, engine.pace.off)
        why = f"with {used} " + (off or f"it usually {duration(took)} ({smaller.larger:.1f} s alone)")
        if self._held:
            why += ", because other programs hold the cores"
        if self._engine is None:
            return f"{used} writes ghost text: {why}; {smaller.name} would be quicker, but {self._why_not}"
        if not self._loaded:
            return f"{smaller.name} is being loaded for ghost text: {why}"
        usual = self._engine.pace.usual
        taken = f" and usually {duration(usual)}" if usual else ""
        return f"{smaller.name} writes ghost text now{taken}: {why}; {used} fills what you ask for"

    async def close(self) -> None:
        """End a change, and close the connections to the smaller engine, whose process continues to run."""
        if self._changing is not None:
            self._changing.cancel()
        self._end()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _changed(self, change: asyncio.Task[None]) -> None:
        self._changing = None
        if not change.cancelled() and (error := change.exception()) is not None:
            _log.error("the model of ghost text was not changed: %s", type(error).__name__)

    async def _change(self, used: ResidentEngine, settings: Settings) -> None:
        """Change the writer: to the smaller checkpoint if it is here and fits, or back to the one in use."""
        if self.writes:
            self._end()
            self._wait()
            _forget(used)
            _log.info("%s writes ghost text again", settings.checkpoint)
            if (status := await used.status()) is not None:
                self._tell(status)
            return
        self._smaller = await asyncio.to_thread(smaller_than, settings)
        self._took, self._off, self._held = used.pace.usual, used.pace.off, cores_are_held()
        self._why_not = self._smaller.too_large if self._smaller else ""
        if self._smaller is None or self._why_not:
            self._not_before = self._clock() + _FIRST
            return
        # Before it writes, its status is not the one of ghost text.
        engine = self._open_engine(replace(settings, checkpoint=self._smaller.name), self._pass_on)
        assert isinstance(engine, ResidentEngine)
        self._engine = engine
        try:
            status = await load(engine, lambda _: None)
            if status.state == "failed":
                raise EngineError(status.why)
        except EngineError as error:
            self._failed(engine, error)
            return
        self._loaded = True
        self._wait()
        _log.info("%s writes ghost text from now on", self._smaller.name)
        self._tell(status)

    def _pass_on(self, status: Status) -> None:
        if self.writes and status.state in ("ready", "busy", "slow"):
            self._tell(status)

    def _failed(self, engine: ResidentEngine, error: EngineError) -> None:
        """Let the engine in use write again, because the smaller one, `engine`, cannot."""
        if engine is not self._engine:
            return
        self._end()
        self._why_not = f"it failed: {error}"
        self._wait()
        _log.warning("the smaller model for ghost text cannot be used: %s", error)

    def _end(self) -> None:
        """Let the engine in use write, and close the connections to the smaller one."""
        if self._engine is not None:
            closing = asyncio.create_task(self._engine.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        self._engine, self._loaded, self._why_not = None, False, ""

    def _wait(self) -> None:
        """Allow no further change for a while."""
        self._not_before = self._clock() + min(_FIRST * 2**self._changes, _MOST)
        self._changes += 1


def _forget(used: Engine) -> None:
    """Forget how long the engine in use took while the machine was busier."""
    if isinstance(used, ResidentEngine):
        used.pace.forget()
