"""Service: one engine, from its loading to its end, and what is known of it. Knows no HTTP and no model.

A reader that is slow misses Drafts, and never holds up a step.
"""

import asyncio
import logging
import os
import platform
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from importlib import metadata
from typing import Any, Protocol

import dg_lsp
from dg_lsp.host import wire
from dg_lsp.host.base import Engine, EngineError
from dg_lsp.text.messages import Draft, Fill, Infill, State, Status

_log = logging.getLogger("dg_lsp.engine")


class Hosted(Engine, Protocol):
    """An engine that can say how it fares."""

    device: str
    passes: int

    @property
    def queue(self) -> int:
        """How many infills wait."""
        ...

    def memory(self) -> int:
        """Bytes held."""
        ...


class Service:
    """One engine, from its loading to its end, and what is known of it. `load` it once; then `lines` and `status`."""

    def __init__(self, checkpoint: str, digest: str) -> None:
        self._checkpoint, self._digest = checkpoint, digest
        self._engine: Hosted | None = None
        self._ready = asyncio.Event()
        self._doing: tuple[State, float, str] = ("starting", 0.0, "")
        self._last = (0.0, 0)
        self._fills = 0
        self._began = time.monotonic()
        self._unanswered: set[_Post] = set()
        self._working: set[asyncio.Task[None]] = set()
        self.touched = time.monotonic()

    async def load(self, open_engine: Callable[[Callable[[float], None]], Awaitable[Hosted]]) -> None:
        """Open the engine; `open_engine` is given a function that takes the share of the loading that is done."""

        def done(share: float) -> None:
            self._doing = ("loading", share, "")

        try:
            self._engine = await open_engine(done)
            self._doing = ("ready", 1.0, "")
            _log.info("ready on %s after %.1f s", self._engine.device, time.monotonic() - self._began)
        except EngineError as error:
            self._doing = ("failed", 0.0, str(error))
            _log.error("failed: %s", error)
        except Exception as error:
            self._doing = (
                "failed",
                0.0,
                f"the engine cannot start ({type(error).__name__}); run dg-lsp doctor",
            )
            _log.error(
                "failed: %s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
            )
        self.touched = time.monotonic()
        self._ready.set()

    @property
    def failed(self) -> bool:
        """Whether loading has failed; such an engine answers with the reason only."""
        return self._doing[0] == "failed"

    @property
    def working(self) -> bool:
        """Whether the model may still run for a request, perhaps for one that nobody waits for any more."""
        return bool(self._working)

    def status(self) -> Status:
        """How the engine fares now; it is busy while somebody waits for a Fill."""
        state, done, mend = self._doing
        engine = self._engine
        return Status(
            "busy" if state == "ready" and self._unanswered else state,
            done,
            mend,
            checkpoint=self._checkpoint,
            digest=self._digest,
            device=engine.device if engine else "",
            memory=engine.memory() if engine else 0,
            milliseconds=self._last[0],
            steps=self._last[1],
            queue=engine.queue if engine else len(self._unanswered),
            passes=engine.passes if engine else 0,
            fills=self._fills,
            wire=wire.WIRE,
            package=dg_lsp.__version__,
            python=platform.python_version(),
            torch=_version("torch"),
            process=os.getpid(),
            seconds=time.monotonic() - self._began,
        )

    async def lines(self, request: Infill) -> AsyncGenerator[bytes, None]:
        """The answer to `request`, line by line; closing it stops the model after the running step.

        1. Wait until the engine is loaded, telling how far it is.  2. Let the engine run at its own pace.
        3. Send the newest Draft that has not been sent; a beat when there is none; the Fill or the error last.
        """
        self.touched = time.monotonic()
        post = _Post()
        self._unanswered.add(post)
        work: asyncio.Task[None] | None = None
        try:
            # 1. A reader that sees nothing for long takes the engine for dead.
            while not self._ready.is_set():
                state, done, _ = self._doing
                yield wire.line("state", {"state": state, "done": done})
                # Not wait_for: before Python 3.12 it may swallow the cancel of a client that leaves just now.
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await self._ready.wait()
            if self._engine is None:
                yield wire.line("error", {"message": self._doing[2], "failed": True})
                return
            # 2.
            work = asyncio.create_task(self._run(self._engine, request, post))
            self._working.add(work)
            work.add_done_callback(self._working.discard)
            # 3.
            while (name := await post.next()) not in ("fill", "error"):
                yield wire.line(
                    name, wire.pack(post.draft) if name == "draft" and post.draft else self._beat()
                )
            yield wire.line(name, post.last)
        finally:
            # Before the wait below: a step may take long to end, and a second cancel ends the wait itself.
            self._unanswered.discard(post)
            self.touched = time.monotonic()
            if work is not None:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _run(self, engine: Hosted, request: Infill, post: "_Post") -> None:
        try:
            async with aclosing(engine.infill(request)) as events:
                async for event in events:
                    self.touched = time.monotonic()
                    if isinstance(event, Draft):
                        post.put(event)
                    else:
                        self._note(event)
                        self._end(post, "fill", wire.pack(event))
        except EngineError as error:
            self._end(post, "error", {"message": str(error)})
        except Exception as error:
            # The message may hold source text; the places in the code do not.
            _log.error("%s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
            message = f"the engine met an error of its own ({type(error).__name__}); see its log"
            self._end(post, "error", {"message": message})
        finally:
            self._end(post, "error", {"message": "the engine stopped without an answer"})

    def _end(self, post: "_Post", name: str, last: dict[str, Any]) -> None:
        """Answer a request; from now on nobody waits for the model on its account."""
        post.end(name, last)
        self._unanswered.discard(post)

    def _note(self, fill: Fill) -> None:
        self._fills += 1
        self._last = (fill.milliseconds, fill.steps)
        _log.info("fill %d: %.0f ms, %d steps, %s", self._fills, fill.milliseconds, fill.steps, fill.reason)

    def _beat(self) -> dict[str, int]:
        return {"queue": self._engine.queue if self._engine else 0}

    async def close(self) -> None:
        """End the engine."""
        if self._engine is not None:
            await self._engine.close()


class _Post:
    """Room for one Draft and the end: a newer Draft takes the place of one that nobody fetched."""

    def __init__(self) -> None:
        self.draft: Draft | None = None
        self.last: dict[str, Any] = {}
        self._fresh = False
        self._name = ""
        self._bell = asyncio.Event()

    def put(self, draft: Draft) -> None:
        self.draft, self._fresh = draft, True
        self._bell.set()

    def end(self, name: str, last: dict[str, Any]) -> None:
        # The first end counts.
        if not self._name:
            self._name, self.last = name, last
            self._bell.set()

    async def next(self) -> str:
        """What there is to send: draft, fill, error, or beat after a silent second."""
        if not self._fresh and not self._name:
            self._bell.clear()
            try:
                async with asyncio.timeout(wire.BEAT):
                    await self._bell.wait()
            except TimeoutError:
                return "beat"
        if self._fresh:
            self._fresh = False
            return "draft"
        return self._name


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
