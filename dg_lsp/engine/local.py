"""The engine in this process: one thread does all the model's work, and the event loop waits for it.

Imports torch only when an engine is opened.
"""

import asyncio
import ctypes
import gc
import logging
import math
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, aclosing, closing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import psutil

from dg_lsp.budget import ASKED, BOT, Budget, spending
from dg_lsp.checkpoints import CheckpointError, find_directory
from dg_lsp.context import shortened
from dg_lsp.engine import memory
from dg_lsp.engine.memory import Cores
from dg_lsp.engine.turn import Turns
from dg_lsp.filling.engine import EngineBroken, EngineError
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.reasons import OutOfTime
from dg_lsp.settings import Settings
from dg_lsp.source.language import load_language
from dg_lsp.source.python import ignore_warnings

if TYPE_CHECKING:
    from dg_lsp.model.checkpoint import Checkpoint
    from dg_lsp.model.costs import Costs

Run = Callable[[Infill], Iterator[Draft | Fill]]
Begin = Callable[[Infill], AbstractContextManager[Iterator[Draft | Fill]]]
_log = logging.getLogger("dg_lsp.model")
# Where oneDNN gets no memory for the code of an operation it says this, and says it again for this operation as long as
# the process lives, however much memory there is by then (seen with torch 2.13). CUDA's errors, torch's
# AcceleratorError, are as lasting, but for those of memory. For a product of matrices torch only warns of it, and uses
# a way that takes eight times as long.
_LASTING = re.compile(r"(mkldnn_\w+ failed.*)?could not (create|execute) a ", re.DOTALL)
_LATE = "the engine was busy with other fills until the deadline; try again, or set ghostDeadline or deadline higher"
_ENDS = "the model's libraries failed, most likely because memory was full; the engine ends; the next request starts it"
_LESS = "; memory ran out, so it was tried at effort low, with half of the text before the gap"
# Seconds without a request after which the rest of a prompt is read.
_PAUSE = 0.3
# Seconds after which a model that was too slow for ghost text is measured again: other programs may have slowed it.
_AGAIN = 30.0
# Seconds, and bytes a second.
_COMPILING, _SLOW_DISK = 25.0, 100e6
# oneDNN and torch cache code for 1,024 shapes each, and a growing text makes ever new shapes; with 32 they take less by
# hundreds of MB and are as fast. Threads that sleep as soon as they wait for each other are no quicker than one thread,
# and those that wait for long take the core of the one they wait for where another program is busy: GNU's OpenMP lets
# them look 300,000 times, LLVM's, on other systems, for 200 ms, or as often and as long as is set here
# (docs/research/speed-and-memory.md).
ENVIRONMENT = {
    "GOMP_SPINCOUNT": "10000",
    "KMP_BLOCKTIME": "5",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32",
    "LRU_CACHE_CAPACITY": "32",
    # Whatever a library of the model would look for in a hub: it is here, or it is not used.
    "HF_HUB_OFFLINE": "1",
}


class LocalEngine:
    """A loaded checkpoint with a PrefixCache for each document, on one model thread. Make it with `open`.

    patience: seconds without a step after which it counts as stuck. first_step: those that each of the first steps may
    take: they compile, and read `weights` bytes, maybe from a slow disk. device: that of the model. why: see Hosted.
    passes: the denoising steps, encoded chunks and tokens written so far, each a pass of the network.
    """

    patience = 20.0
    why = ""

    def __init__(
        self,
        thread: ThreadPoolExecutor,
        run: Run,
        device: str,
        hits: Callable[[], int] = lambda: 0,
        weights: int = 0,
    ) -> None:
        self._thread, self._run, self._hits = thread, run, hits
        self._read: Run | None = None
        self._reading: asyncio.Task[None] | None = None
        self._turns = Turns()
        self.device, self.passes = device, 0
        self.first_step = _COMPILING + weights / _SLOW_DISK

    @classmethod
    def open(cls, settings: Settings, progress: Callable[[str], None] = lambda _: None) -> "LocalEngine":
        """Load the checkpoint that `settings` name; `progress` is called with a few words before each step."""
        thread = _model_thread()
        try:
            run, device, hits, weights, read = thread.submit(_load, settings, progress).result()
            engine = cls(thread, run, device, hits, weights)
            engine._read = read
            return engine
        except BaseException:
            thread.shutdown(wait=False)
            raise

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts, then one Fill. Closing the generator stops the model after the running step.

        Live infills take turns by the step (`Turns`). One whose deadline passes before its first turn is answered with
        that reason as long as others wait: a late text would make theirs late, too.
        """
        loop = asyncio.get_running_loop()
        came, steps = loop.time(), None
        # Checking texts is bounded by itself, because the model's deadline is looked at between its steps only.
        budget = Budget(BOT if request.deadline is None else ASKED, spare=bool(request.edits))
        if not request.edits:
            await self._stop_reading()
        with self._turns.seat(request) as seat:
            try:
                while True:
                    async with self._turns.turn(seat):
                        steps = steps or self._begin(request, loop.time() - came)
                        event = await loop.run_in_executor(self._thread, self._next, steps, budget)
                    if event is None:
                        return
                    yield event
            finally:
                budget.cancelled = True
                if steps is not None:
                    # The model thread closes the iterator after the step that is running.
                    await asyncio.shield(loop.run_in_executor(self._thread, _close, steps))
                if self._read is not None and not self._turns.waiting and not request.edits:
                    self._reading = asyncio.create_task(self._read_on(self._read(request)))

    async def _read_on(self, steps: Iterator[Draft | Fill]) -> None:
        """Take all `steps`, which read what the next fill needs, once nobody has asked for anything for a while."""
        loop, budget = asyncio.get_running_loop(), Budget(BOT, spare=True)
        await asyncio.sleep(_PAUSE)
        try:
            # Where memory ends the next request says so.
            with suppress(MemoryError, RuntimeError):
                while await loop.run_in_executor(self._thread, self._next, steps, budget) is not None:
                    pass
        finally:
            budget.cancelled = True
            await asyncio.shield(loop.run_in_executor(self._thread, _close, steps))

    async def _stop_reading(self) -> None:
        """End the work of `_read_on`, so that its cache is free."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])

    async def close(self) -> None:
        """End the model thread."""
        await self._stop_reading()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def numbers(self) -> dict[str, int]:
        """Return the fields of its Status: hits are infills whose document was still encoded from before."""
        memory, queue = _memory(self.device), self._turns.waiting
        return {"memory": memory, "queue": queue, "passes": self.passes, "hits": self._hits()}

    def _begin(self, request: Infill, waited: float) -> Iterator[Draft | Fill]:
        """Return the steps of `request`, which has `waited` that many seconds for its first turn."""
        if request.deadline is None:
            return self._run(request)
        if waited > request.deadline and self._turns.waiting:
            return iter([Fill("", refusal=_LATE, reason="deadline", milliseconds=waited * 1000)])
        return self._run(replace(request, deadline=max(request.deadline - waited, 0.001)))

    def _next(self, steps: Iterator[Draft | Fill], budget: Budget) -> Draft | Fill | None:
        """Return the next event of `steps`, whose text work spends `budget`; then, a Fill with the reason."""
        try:
            with spending(budget):
                event = next(steps, None)
        except OutOfTime as error:
            return Fill("", refusal=str(error), reason="deadline")
        self.passes += isinstance(event, Draft) and not event.pause
        return event


class ForeignServer(Protocol):
    """A server of another program. device: its name for the status, with its version once it was asked for it."""

    @property
    def device(self) -> str: ...

    def connect(self) -> object:
        """Check that it can be used; raise EngineError if it cannot."""
        ...

    def close(self) -> None:
        """Close the connections; the server runs on."""
        ...


class ForeignEngine(LocalEngine):
    """The engine of this process whose model runs on `server`, which may be busy, or still compile, for minutes.

    why: the reason that the server could not answer when it was last asked; empty if it could.
    """

    patience = 600.0

    def __init__(self, server: ForeignServer, run: Run) -> None:
        super().__init__(_model_thread(), run, server.device)
        self.server = server

    async def connect(self) -> None:
        """Check the server; the next infill does that again if it fails, as the server may be started or changed."""
        with self._noting():
            await asyncio.to_thread(self.server.connect)

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts, then one Fill, as LocalEngine does; keep the reason of a server that cannot answer in `why`."""
        with self._noting():
            async with aclosing(super().infill(request)) as events:
                async for event in events:
                    yield event

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note the server's name, and whether it could answer in the block."""
        try:
            yield
            self.why = ""
        except EngineError as error:
            self.why = str(error)
            raise
        finally:
            self.device = self.server.device

    async def close(self) -> None:
        """End the model thread and close the connections; the server runs on."""
        await super().close()
        await asyncio.to_thread(self.server.close)


def _model_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="dg-lsp-model")


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector off, which would look at all that is imported and loaded again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_uncollected()
def _load(
    settings: Settings, progress: Callable[[str], None]
) -> tuple[Run, str, Callable[[], int], int, Run]:
    try:
        path = find_directory(settings.checkpoint)  # before torch is imported, which takes seconds
    except CheckpointError as error:
        raise EngineError(str(error)) from error
    # torch reads these variables when it is imported.
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    cores = Cores(settings.threads)  # which sees during the imports how many of them are free
    progress("importing torch")
    import torch  # noqa: PLC0415  (slow to import, and a client needs none)

    progress("importing transformers")
    from dg_lsp.model.networks.lean import import_transformers  # noqa: PLC0415

    import_transformers()
    from dg_lsp.model.cache import PrefixCaches  # noqa: PLC0415
    from dg_lsp.model.checkpoint import load_checkpoint  # noqa: PLC0415
    from dg_lsp.model.fill import fill, near, read_on, with_time_to_read  # noqa: PLC0415

    _set_up(cores.threads())
    budget = cache_budget(settings)
    try:
        # Checked first, because loading a network that does not fit would first exhaust the machine.
        with memory.loading(progress):
            bits = memory.bits_for(path, settings.place, settings.weight_bits)
            memory.check(path, settings.place, budget, bits)
            model = load_checkpoint(settings.checkpoint, settings.device, progress, bits=bits)
    except CheckpointError as error:
        raise EngineError(str(error)) from error
    _give_back()  # of a GGUF file, whose matrices are made in threads, nearly as much as the weights take
    caches = PrefixCaches(model.network.text_config, budget, _give_back)
    counts = Counter[str]()
    measured = _Measured(model, f"{model.digest} {bits} {settings.place}")

    @contextmanager
    def begin(request: Infill) -> Iterator[Iterator[Draft | Fill]]:
        if why := measured.why_off(request):
            yield iter([Fill("", refusal=why, reason="deadline")])
            return
        model = measured.model
        with ExitStack() as stack:
            name = f"{request.session} edits" if request.edits else request.session
            cache = stack.enter_context(caches.lend(name))
            nearest = near(model, cache, request)
            if nearest is not request:
                cache = stack.enter_context(caches.lend(f"{name} near"))
            counts["hits"] += bool(cache.tokens)
            timed = with_time_to_read(model, cache, nearest)
            yield stack.enter_context(closing(fill(model, cache, timed)))

    def read(request: Infill) -> Iterator[Draft | Fill]:
        with caches.lend(request.session) as cache:
            for count in read_on(measured.model, cache, request):
                yield Draft(count, (), 0.0, pause=cache.is_paused)
        for _ in measured.again():
            yield Draft(0, (), 0.0, pause=True)

    def free() -> None:
        caches.clear()
        torch.cuda.empty_cache()
        _give_back()

    weights = sum(t.nbytes for t in (*model.network.parameters(), *model.network.buffers()))
    run = with_second_try(begin, free, lambda: torch.set_num_threads(cores.threads()))
    return run, str(model.device), lambda: counts["hits"], weights, read


def _set_up(threads: int) -> None:
    """Set how torch computes in this thread, and in those that compute for it, which begin later."""
    import torch  # noqa: PLC0415  (an engine is about to load)

    warnings.filterwarnings("error", r"mkldnn_\w+ failed")
    ignore_warnings()
    # Numbers below 1e-38 count as zero: the softmax of attention scores that are far apart takes a fifth of the time.
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)


class _Measured:
    """A loaded model with the costs of its passes: those of an earlier start, until they are measured in a pause.

    They are measured again where ghost text is off because passes take too long.
    """

    def __init__(self, model: "Checkpoint", about: str) -> None:
        from dg_lsp.model.costs import kept_costs, measure, place_of  # noqa: PLC0415  (it imports torch)

        self._place = place_of(about, model.network)
        self.model, self._time = replace(model, costs=kept_costs(self._place)), -math.inf
        if self.model.costs is None:
            self._take(measure(model.network))

    def again(self) -> Iterator[None]:
        """Measure unless that was done since the start; yield after each pass."""
        from dg_lsp.model.costs import measuring  # noqa: PLC0415

        if self._time == -math.inf:
            self._take((yield from measuring(self.model.network)))

    def why_off(self, request: Infill) -> str:
        """Return why ghost text could not come in time, as a sentence; empty if it could."""
        from dg_lsp.model.costs import measure  # noqa: PLC0415
        from dg_lsp.model.plan import why_off  # noqa: PLC0415

        why = why_off(request, self.model)
        if why and time.monotonic() - self._time >= _AGAIN:
            self._take(measure(self.model.network))
            why = why_off(request, self.model)
        return why

    def _take(self, costs: "Costs | None") -> None:
        """Take the measured `costs` for those of the model, and keep them for later starts."""
        from dg_lsp.model.costs import keep_costs  # noqa: PLC0415

        self.model, self._time = replace(self.model, costs=costs), time.monotonic()
        if costs is not None:
            keep_costs(self._place, costs)


def cache_budget(settings: Settings) -> int:
    """Return the bytes for encoded prefixes, which lie where the first layers of the model run."""
    import torch  # noqa: PLC0415  (an engine is about to load)

    on_gpu = not settings.place.startswith("cpu") and torch.cuda.is_available()
    return (settings.cache_megabytes or (4096 if on_gpu else 192)) << 20


def with_second_try(begin: Begin, free: Callable[[], None], before: Callable[[], None] = lambda: None) -> Run:
    """Return the function that makes the steps of `begin`, and calls `before` before each of them.

    Where a step runs out of memory they are begun once more, after `free`, with a smaller request. The log says so, and
    so does the reason where the smaller request gets no text. EngineBroken: the libraries do not recover.
    """

    def run(request: Infill) -> Iterator[Draft | Fill]:
        asked, note = request, ""
        for _ in range(2):
            try:
                with begin(asked) as steps:
                    before()
                    for event in steps:
                        if isinstance(event, Fill) and event.refusal:
                            event = replace(event, refusal=event.refusal + note)  # noqa: PLW2901
                        yield event
                        before()
                return
            except (MemoryError, RuntimeError, UserWarning) as error:
                if _LASTING.match(str(error)) or type(error).__name__ == "AcceleratorError":
                    raise EngineBroken(_ENDS) from error
                if not _is_out_of_memory(error):
                    raise
            # Outside of the handler, whose error holds the tensors of this try.
            free()
            asked, note = smaller(request), _LESS
            _log.warning(
                "out of memory; trying once more at effort low with %d of %d characters before the gap",
                len(asked.prefix),
                len(request.prefix),
            )
        raise EngineError(
            "out of memory, also with less text; set prefixBytes or cacheMegabytes lower, or the effort to low"
        )

    return run


def smaller(request: Infill) -> Infill:
    """Return `request` with half of its prefix, the lowest effort and no alternatives."""
    before = request.prefix.encode("utf-8")
    short = shortened(load_language(request.language, request.macros), before, len(before) // 2)
    return replace(request, prefix=short.decode("utf-8"), effort="low", alternatives=1)


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether torch or Python could not get memory; on a CPU, torch raises a plain RuntimeError."""
    words = str(error)
    return isinstance(error, MemoryError) or "out of memory" in words or "can't allocate memory" in words


def _memory(device: str) -> int:
    """Return the bytes reserved on the GPU `device`; on a CPU, the memory of this process."""
    import torch  # noqa: PLC0415  (imported already where an engine is open)

    if device.startswith("cuda"):
        return int(torch.cuda.memory_reserved(device))
    return int(psutil.Process().memory_info().rss)


def _give_back() -> None:
    """Give the memory that was freed back to the system: GNU's C library keeps free pieces between used ones."""
    with suppress(AttributeError, OSError, TypeError):  # another system has another library
        ctypes.CDLL(None).malloc_trim(0)


def _close(steps: Any) -> None:
    steps.close()
