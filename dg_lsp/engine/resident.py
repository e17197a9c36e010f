"""The user's engine process as an Engine: found, or started if there is none.

All windows share one engine process for each checkpoint and device. It is started at the first request, and again
after it died.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from dg_lsp.engine.http import EngineAbsent, EngineDied, EngineFailed, EngineSilent, check_leaving
from dg_lsp.engine.states import Pace, telling
from dg_lsp.engine.supervisor import HUNG, Supervisor
from dg_lsp.filling.engine import EngineError
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Draft, Fill, Infill, Status


class ResidentEngine:
    """The engine process that serves `settings`; `tell` is called with a Status whenever it changes."""

    def __init__(self, settings: Settings, tell: Callable[[Status], None] = lambda _: None) -> None:
        self._settings = settings
        self._supervisor = Supervisor(settings, tell)
        self._window = f"{os.getpid()}-{id(self):x}"
        self._pace = Pace()

    def exclude(self, globs: tuple[str, ...]) -> None:
        """Keep the text of files that `globs` name on this machine from now on."""
        self._settings = replace(self._settings, exclude=globs)

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield Drafts, then one Fill; start the engine if there is none. Closing the generator cancels.

        Raises:
            EngineError: the engine cannot be started or loaded, or died; the message says what to do. Or the request is
                for another machine, and has text that must stay here.
        """
        if self._settings.engine_url:
            check_leaving(request, self._settings.exclude)
        supervisor, backoff = self._supervisor, self._supervisor.backoff
        if (wait := backoff.left) > 0:
            raise EngineError(f"{backoff.why} (it is tried again in {wait:.0f} s)")
        request, count, answered = replace(request, window=self._window), backoff.count, False
        for again in (False, True):
            try:
                if again:
                    await supervisor.start()
                    count = backoff.count
                remote = supervisor.connect()
                supervisor.watch()
                async with aclosing(remote.infill(request)) as events:
                    with telling(request.priority, self._pace, supervisor.say) as note:
                        async for event in events:
                            answered = True
                            note(event)
                            yield event
                backoff.succeed()
                return
            except EngineSilent as error:
                if not await supervisor.end_silent(count):
                    raise
                if answered or again:
                    raise EngineDied(HUNG) from error
            except (EngineAbsent, EngineFailed, EngineDied) as error:
                if again or not isinstance(error, EngineAbsent):
                    supervisor.fail(error, count)
                    raise
            # There was no answer yet, so the request can be sent again.

    async def status(self) -> Status | None:
        """Return the engine's status; None if there is no engine."""
        try:
            return await self._supervisor.connect().status()
        except EngineAbsent:
            return None

    async def start(self) -> Status:
        """Start the engine if there is none; return its status once it listens (it may still be loading).

        Raises:
            EngineError: it does not start; the message says what to do.
        """
        return await self._supervisor.start()

    async def stop(self) -> bool:
        """End the engine, by force if it does not answer; return False if there is none."""
        return await self._supervisor.stop()

    async def close(self) -> None:
        """Close the connections; the engine process runs on."""
        await self._supervisor.close()
