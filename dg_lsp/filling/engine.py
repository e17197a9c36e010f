"""The Engine protocol and its errors: all that the filling of a gap knows of whatever runs a model."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from dg_lsp.messages import Draft, Fill, Infill


class EngineError(Exception):
    """The engine cannot answer; the message states the cause and the fix."""


class EngineBusy(EngineError):
    """The engine has too many requests to accept another one. wait: seconds until it may accept one."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class EngineBroken(EngineError):
    """The engine's process can answer no further request; a new process could."""


class Engine(Protocol):
    """Anything that answers an Infill with Drafts and, at the end, one Fill. Closing the iterator cancels."""

    def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield any number of Drafts, then exactly one Fill.

        Raises:
            EngineError: there is no answer.
        """
        ...

    async def close(self) -> None:
        """Release the model; the engine answers no request afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class Checked:
    """The engine `inner`, which gets a request only if `check`, called right before, raises nothing."""

    inner: Engine
    check: Callable[[], Awaitable[None]]

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield what the inner engine yields; raise what `check` raises."""
        await self.check()
        async with aclosing(self.inner.infill(request)) as answers:
            async for answer in answers:
                yield answer

    async def close(self) -> None:
        """Close the inner engine."""
        await self.inner.close()
