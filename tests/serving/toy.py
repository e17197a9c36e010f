"""A toy engine: it writes the text after the colon of its checkpoint's name."""

from collections.abc import AsyncGenerator, Callable

from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.settings import Settings


class ToyEngine:
    """An engine without a model, as a Service wants one."""

    device, why = "a toy", ""
    first_step, patience = 1.0, 1.0

    def __init__(self, text: str) -> None:
        self._text = text

    async def infill(self, request: Infill) -> AsyncGenerator[Draft | Fill, None]:
        """Yield the one text."""
        yield Fill(self._text)

    def numbers(self) -> dict[str, int]:
        """Count nothing."""
        return {}

    async def close(self) -> None:
        """Do nothing."""


async def open_toy(settings: Settings, _: Callable[[float], None]) -> ToyEngine:
    """Open the engine that `settings` name."""
    return ToyEngine(settings.checkpoint.partition(":")[2])
