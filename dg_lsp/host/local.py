"""The engine in this process: one thread does all model work, the event loop only waits for it.

Imports torch only when an engine is opened.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dg_lsp.host import room
from dg_lsp.host.base import EngineError
from dg_lsp.host.turn import Turn
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Draft, Fill, Infill

Run = Callable[[Infill], Iterator[Draft | Fill]]
# Threads that wait for work in a loop take the cores from the editor. oneDNN and torch keep code for 1,024 shapes each,
# and a file that grows makes new ones all the time: 300 MB more than 128 shapes, which are as fast (docs/log).
_ENVIRONMENT = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128",
    "LRU_CACHE_CAPACITY": "128",
}


class LocalEngine:
    """A loaded checkpoint and a PrefixCache for each document, on one model thread. Make it with `open`.

    device: where the model runs. passes: denoising steps and encoding chunks so far.
    """

    def __init__(self, thread: ThreadPoolExecutor, run: Run, device: str) -> None:
        self._thread, self._run = thread, run
        self._turn = Turn()
        self.device = device
        self.passes = 0

    @classmethod
    def open(cls, settings: Settings, progress: Callable[[str], None] = lambda _: None) -> "LocalEngine":
        """Load the checkpoint that the settings name.

        Raises:
            EngineError: the checkpoint cannot be used; the message says the mend.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="dg-lsp-model")
        try:
            return cls(thread, *thread.submit(_load, settings, progress).result())
        except BaseException:
            thread.shutdown(wait=False)
            raise

    @property
    def queue(self) -> int:
        """How many infills wait for their turn."""
        return self._turn.waiting

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts and, last, one Fill. Closing the generator stops the model after the running step.

        A request with a deadline has a person waiting, so it comes before those without.
        """
        async with self._turn.take(0 if request.deadline else 1):
            loop = asyncio.get_running_loop()
            steps = self._run(request)
            try:
                while (event := await loop.run_in_executor(self._thread, self._next, steps)) is not None:
                    yield event
            finally:
                # The close waits in the model thread's queue behind the step that still runs.
                await asyncio.shield(loop.run_in_executor(self._thread, _close, steps))

    async def close(self) -> None:
        """End the model thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def memory(self) -> int:
        """Bytes that the model holds on its device; on a CPU, of this process."""
        return _memory(self.device)

    def _next(self, steps: Iterator[Draft | Fill]) -> Draft | Fill | None:
        event = next(steps, None)
        self.passes += isinstance(event, Draft)
        return event


def _load(settings: Settings, progress: Callable[[str], None]) -> tuple[Run, str]:
    # All three are read at torch's import.
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    progress("importing torch")
    import torch  # noqa: PLC0415  (an engine that lives elsewhere must not pay for it)

    progress("importing transformers")
    from dg_lsp.engine.cache import PrefixCaches  # noqa: PLC0415
    from dg_lsp.engine.fill.infill import infill  # noqa: PLC0415
    from dg_lsp.engine.fill.several import infill_several  # noqa: PLC0415
    from dg_lsp.engine.load.checkpoint import CheckpointError, find_directory, load_checkpoint  # noqa: PLC0415

    torch.set_num_threads(settings.threads or max((os.cpu_count() or 2) // 2, 1))
    try:
        # A network that does not fit would take the whole machine down before it says so.
        room.check(find_directory(settings.checkpoint, progress), settings.place)
        model = load_checkpoint(settings.checkpoint, settings.device, progress)
    except CheckpointError as error:
        raise EngineError(str(error)) from error
    megabytes = settings.cache_megabytes or (4096 if model.device.type == "cuda" else 512)
    caches = PrefixCaches(model.network.config.text_config, megabytes << 20)

    def run(request: Infill) -> Iterator[Draft | Fill]:
        try:
            fill = infill_several if request.between else infill
            yield from fill(model, caches.of(request.session), request)
        finally:
            caches.trim()

    return run, str(model.device)


def _memory(device: str) -> int:
    import torch  # noqa: PLC0415  (it is loaded where there is an engine)

    if device.startswith("cuda"):
        return int(torch.cuda.memory_reserved(device))
    import resource  # noqa: PLC0415  (there is none on every system)

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _close(steps: Any) -> None:
    steps.close()
