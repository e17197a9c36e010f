"""One gap filled by an engine of one's own: opened, asked, closed. What the subcommands share.

Knows the local engine by its name only: importing this module loads no model.
"""

import asyncio
import time
from collections.abc import Callable

from dg_lsp.host.base import Engine, EngineError, Outcome, fill_gap
from dg_lsp.host.local import LocalEngine
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.messages import Draft


def fill_alone(
    document: Document,
    gap: Gap,
    settings: Settings,
    show: Callable[[Draft], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Outcome, float]:
    """Open an engine, fill `gap`, close the engine; return the Outcome and the seconds that opening took.

    `show` gets each Draft, `tell` a few words on what is being loaded.

    Raises:
        EngineError: the checkpoint cannot be used, or the engine stopped.
    """
    start = time.perf_counter()
    engine = LocalEngine.open(settings, tell)
    loaded = time.perf_counter() - start
    return asyncio.run(_fill(engine, (document, gap), settings, show)), loaded


async def _fill(
    engine: Engine, place: tuple[Document, Gap], settings: Settings, show: Callable[[Draft], None]
) -> Outcome:
    outcome = None
    try:
        async for event in fill_gap(engine, *place, settings):
            if isinstance(event, Outcome):
                outcome = event
            else:
                show(event)
    finally:
        await engine.close()
    if outcome is None:
        raise EngineError("the engine stopped without an answer; run the command again")
    return outcome
