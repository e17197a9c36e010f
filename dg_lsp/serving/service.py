"""The Service: one engine, its loading, its answers as lines, and its status. Knows no HTTP and no model.

A slow reader misses Drafts, and never delays a denoising step.
"""

import asyncio
import logging
import math
import os
import platform
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing, nullcontext, suppress
from functools import cache
from importlib import metadata
from statistics import median
from typing import Any, Protocol

import dg_lsp
from dg_lsp.engine import wire
from dg_lsp.engine.client import Pace
from dg_lsp.engine.fatal import FatalTexts
from dg_lsp.filling.engine import Engine, EngineBroken, EngineError
from dg_lsp.messages import Draft, Fill, Infill, Priority, State, Status
from dg_lsp.serving.waits import longest_wait, waits

_log = logging.getLogger("dg_lsp.model")


class Hosted(Engine, Protocol):
    """An engine that a Service can run.

    patience: seconds without a step after which it counts as stuck. first_step: those that each of the first steps may
    take, before it is known how long they usually take. why: the reason that it cannot answer now, though a request may
    find that this has changed; empty if it can.
    """

    device: str
    why: str
    patience: float
    first_step: float

    def numbers(self) -> dict[str, int]:
        """Return the fields `memory`, `queue`, `passes` and `hits` of its Status."""
        ...


# Called with the first Draft, and with the Fill, of each request, and the seconds since it came.
OnEvent = Callable[[Draft | Fill, float], None]


class Service:
    """One engine and its status: call `load` once, then `answer` for each request.

    last_active: time.monotonic() of the last request, event or end of a request. broken: why this process can compute
    no more; empty while it can. on_event: notes nothing, unless it is set. fatal: the texts that are not read.
    """

    def __init__(self, checkpoint: str, digest: str, fatal: FatalTexts | None = None) -> None:
        self._checkpoint, self._digest, self._fatal = checkpoint, digest, fatal
        self._engine: Hosted | None = None
        self._ready = asyncio.Event()
        self._state: tuple[State, float, str] = ("starting", 0.0, "")
        self._last, self._pace = (0.0, 0), Pace(checkpoint)
        self._fills = 0
        self._began = time.monotonic()
        self._unanswered: set[_Mailbox] = set()
        self._working: set[asyncio.Task[None]] = set()
        self.last_active = time.monotonic()
        self.broken = ""
        self._moved = self.last_active
        # The step that was the last one when somebody looked, and the waits for a core until then.
        self._looked = self._moved, waits()
        self.on_event: OnEvent = lambda *_: None
        self._paces: deque[float] = deque(maxlen=50)

    async def load(self, open_engine: Callable[[Callable[[float], None]], Awaitable[Hosted]]) -> None:
        """Open the engine with `open_engine`, whose argument is a function to call with the share of the loading done.

        A failure becomes the state "failed" with its reason; nothing is raised.
        """

        def done(share: float) -> None:
            self._state = ("loading", share, "")

        try:
            self._engine = await open_engine(done)
            self._state = ("ready", 1.0, "")
            _log.info("ready on %s after %.1f s", self._engine.device, time.monotonic() - self._began)
        except EngineError as error:
            self._state = ("failed", 0.0, str(error))
            _log.error("failed: %s", error)
        except Exception as error:
            name, stack = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
            self._state = ("failed", 0.0, f"the engine cannot start ({name}); run dg-lsp doctor")
            _log.error("failed: %s\n%s", name, stack)
        self.last_active = time.monotonic()
        self._ready.set()

    @property
    def failed(self) -> bool:
        """Return whether loading has failed; every request is then answered with the reason."""
        return self._state[0] == "failed"

    @property
    def working(self) -> bool:
        """Return whether the model may still run for a request, even for a cancelled one."""
        return bool(self._working)

    @property
    def in_use(self) -> bool:
        """Return whether a request is unanswered, or the model still runs for one."""
        return bool(self._unanswered or self._working)

    @property
    def state(self) -> State:
        """Return the engine's state; it is "busy" while a request is unanswered, else "ready", "slow" or "failed"."""
        loaded, _, _ = self._state
        if loaded != "ready":
            return loaded
        if self._unanswered:
            return "busy"
        return "failed" if self._engine and self._engine.why else self._pace.state

    def status(self) -> Status:
        """Return the engine's status."""
        state, done, why = self._state
        engine = self._engine
        if state == "ready" and engine:
            why = "" if self._unanswered else engine.why or self._pace.why
        return Status(
            self.state,
            done,
            why,
            checkpoint=self._checkpoint,
            digest=self._digest,
            device=engine.device if engine else "",
            milliseconds=self._last[0],
            steps=self._last[1],
            fills=self._fills,
            wire=wire.WIRE,
            package=dg_lsp.__version__,
            python=platform.python_version(),
            torch=_version("torch"),
            process=os.getpid(),
            seconds=time.monotonic() - self._began,
            **(engine.numbers() if engine else {"queue": len(self._unanswered)}),
        )

    async def answer(self, request: Infill, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Answer `request`: call `send` with each line. Cancelling stops the model after the running step.

        1. Wait until the engine is loaded, with a state line every 0.2 seconds.  2. Run the engine in a task of its
        own.
        3. Send the newest Draft not sent yet, or a beat after a second without one; last the Fill or the error.
        """
        self.last_active = time.monotonic()
        mailbox, began = _Mailbox(), math.inf
        self._unanswered.add(mailbox)
        work: asyncio.Task[None] | None = None
        try:
            # 1. Clients take an engine for dead that sends no line for long.
            while not self._ready.is_set():
                state, done, _ = self._state
                await send(wire.line("state", {"state": state, "done": done}))
                # Not wait_for, which before Python 3.12 may swallow a cancellation that comes at the same moment.
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await self._ready.wait()
            if self._engine is None:
                await send(wire.line("error", wire.pack(wire.Failure(self._state[2], failed=True))))
                return
            # 2.
            began = time.monotonic()
            if not self._working:
                self._moved = began
            work = asyncio.create_task(self._run(self._engine, request, mailbox))
            self._working.add(work)
            work.add_done_callback(self._working.discard)
            # 3.
            while (name := await mailbox.next()) not in ("fill", "error"):
                draft = mailbox.draft if name == "draft" else None
                await send(wire.line(name, wire.pack(draft) if draft else self._engine.numbers()))
            await send(wire.line(name, mailbox.last))
        except asyncio.CancelledError:
            if not mailbox.last:
                self._pace.gave_up(time.monotonic() - began, request.priority)
            raise
        finally:
            # Before the wait below, which may take long, and which a second cancellation ends.
            self._unanswered.discard(mailbox)
            self.last_active = time.monotonic()
            if work is not None:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _run(self, engine: Hosted, request: Infill, mailbox: "_Mailbox") -> None:
        """Run the engine for `request`, and put its Drafts and its end into the mailbox."""
        came = time.monotonic()
        try:
            noted = self._fatal.reading(request) if self._fatal else nullcontext()
            with noted:
                async with aclosing(engine.infill(request)) as events:
                    async for event in events:
                        self._step()
                        if isinstance(event, Fill) or mailbox.draft is None:
                            self.on_event(event, time.monotonic() - came)
                        if isinstance(event, Draft):
                            mailbox.put(event)
                        else:
                            self._note(event, request.priority)
                            self._end(mailbox, "fill", wire.pack(event))
        except EngineError as error:
            self._end(mailbox, "error", {"message": str(error)})
            if isinstance(error, EngineBroken):
                self.broken = str(error)
        except Exception as error:
            # The message of an error may hold source text, so only the stack is logged.
            _log.error("%s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
            message = f"the engine met an error of its own ({type(error).__name__}); see its log"
            self._end(mailbox, "error", {"message": message})
        finally:
            self._end(mailbox, "error", {"message": "the engine stopped without an answer"})

    def _step(self) -> None:
        """Note that the model has made a step."""
        now = self.last_active = time.monotonic()
        self._paces.append(now - self._moved)
        self._moved = now

    @property
    def stuck(self) -> float:
        """Seconds without a step while a request waits, if they are too many; else 0.

        Too many are more than the engine's `patience`, and more than 20 steps usually take, or one of the first few may
        take. Those in which a thread has waited for a core do not count: on a busy machine a step takes long.
        """
        if not self._working or self._engine is None:
            return 0.0
        usual = 20 * median(self._paces) if len(self._paces) > 2 else self._engine.first_step
        if self._looked[0] != self._moved:
            self._looked = self._moved, waits()
        still = time.monotonic() - self._moved - longest_wait(self._looked[1])
        return still if still > max(self._engine.patience, usual) else 0.0

    def give_up(self, message: str) -> None:
        """Answer each open request with the error `message`."""
        for mailbox in list(self._unanswered):
            self._end(mailbox, "error", {"message": message})

    def _end(self, mailbox: "_Mailbox", name: str, last: dict[str, Any]) -> None:
        """Put the end into the mailbox; the request counts as answered from now on."""
        mailbox.end(name, last)
        self._unanswered.discard(mailbox)

    def _note(self, fill: Fill, priority: Priority) -> None:
        """Count `fill` in the status and log it."""
        self._pace.note(fill, priority)
        self._fills += 1
        self._last = (fill.milliseconds, fill.steps)
        _log.info("fill %d: %.0f ms, %d steps, %s", self._fills, fill.milliseconds, fill.steps, fill.reason)

    async def close(self) -> None:
        """Close the engine."""
        if self._engine is not None:
            await self._engine.close()


class _Mailbox:
    """A mailbox for the answer to one request: one Draft, replaced by newer ones until it is fetched, and the end."""

    def __init__(self) -> None:
        self.draft: Draft | None = None
        self.last: dict[str, Any] = {}
        self._fresh = False
        self._name = ""
        self._changed = asyncio.Event()

    def put(self, draft: Draft) -> None:
        self.draft, self._fresh = draft, True
        self._changed.set()

    def end(self, name: str, last: dict[str, Any]) -> None:
        # Later ends are ignored.
        if not self._name:
            self._name, self.last = name, last
            self._changed.set()

    async def next(self) -> str:
        """Wait for something to send: the name "draft", "fill" or "error", or "beat" after wire.BEAT seconds."""
        if not self._fresh and not self._name:
            self._changed.clear()
            try:
                async with asyncio.timeout(wire.BEAT):
                    await self._changed.wait()
            except TimeoutError:
                return "beat"
        if self._fresh:
            self._fresh = False
            return "draft"
        return self._name


@cache
def _version(package: str) -> str:
    """Return the installed version of `package`; empty if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
