"""The engine in this process: one thread does all model work, the event loop only waits for it.

Imports torch only when an engine is opened.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dg_lsp.host.base import EngineError
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Draft, Fill, Infill


class LocalEngine:
    """A loaded checkpoint and one PrefixCache, on one model thread. Make it with `open`."""

    def __init__(self, thread: ThreadPoolExecutor, run: Callable[[Infill], Iterator[Draft | Fill]]) -> None:
        self._thread, self._run = thread, run
        self._turn = asyncio.Lock()

    @classmethod
    def open(cls, settings: Settings, progress: Callable[[str], None] = lambda _: None) -> "LocalEngine":
        """Load the checkpoint that the settings name.

        Raises:
            EngineError: the checkpoint cannot be used; the message says the mend.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="dg-lsp-model")
        try:
            return cls(thread, thread.submit(_load, settings, progress).result())
        except BaseException:
            thread.shutdown(wait=False)
            raise

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts and, last, one Fill. Closing the generator stops the model after the running step."""
        async with self._turn:
            loop = asyncio.get_running_loop()
            steps = self._run(request)
            try:
                while (event := await loop.run_in_executor(self._thread, next, steps, None)) is not None:
                    yield event
            finally:
                # The close waits in the model thread's queue behind the step that still runs.
                await asyncio.shield(loop.run_in_executor(self._thread, _close, steps))

    async def close(self) -> None:
        """End the model thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)


def _load(settings: Settings, progress: Callable[[str], None]) -> Callable[[Infill], Iterator[Draft | Fill]]:
    # Threads that wait for work in a loop take the cores from the editor; the variable is read at torch's import.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch  # noqa: PLC0415  (an engine that lives elsewhere must not pay for it)

    from dg_lsp.engine.cache import PrefixCache  # noqa: PLC0415
    from dg_lsp.engine.checkpoint import CheckpointError, load_checkpoint  # noqa: PLC0415
    from dg_lsp.engine.infill import infill  # noqa: PLC0415

    torch.set_num_threads(settings.threads or max((os.cpu_count() or 2) // 2, 1))
    try:
        model = load_checkpoint(settings.checkpoint, settings.device, progress)
    except CheckpointError as error:
        raise EngineError(str(error)) from error
    cache = PrefixCache(model.network.config.text_config)
    return lambda request: infill(model, cache, request)


def _close(steps: Any) -> None:
    steps.close()
