"""Real fills: the same holes filled by a checkpoint, and counted as the made-up ones are.

Knows the local engine by its name only: importing this module loads no model.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from benchmarks.gaps.case import Case
from benchmarks.gaps.fills import Fills, Hole
from benchmarks.gaps.shown import Shown, shown
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.engine import Engine
from dg_lsp.filling.fill import Outcome, fill_gap
from dg_lsp.settings import Settings


def real_fills(
    holes: Mapping[tuple[str, str], Iterable[Hole]], settings: Settings, tell: Callable[[str], None]
) -> list[Fills]:
    """What the checkpoint of `settings` puts into the holes, which are by language and kind.

    Raises:
        EngineError: the checkpoint cannot be used, or the engine stopped.
    """
    return asyncio.run(_all(holes, settings, tell))


async def _all(
    holes: Mapping[tuple[str, str], Iterable[Hole]], settings: Settings, tell: Callable[[str], None]
) -> list[Fills]:
    engine = LocalEngine.open(settings, tell)
    found = []
    try:
        for (language, kind), group in holes.items():
            good: list[Shown] = []
            refused: list[tuple[Case, str, str]] = []
            for hole in group:
                outcome = await _outcome(engine, hole, settings)
                if outcome.edit is None:
                    refused.append((hole.case, "real", outcome.why))
                else:
                    good.append(shown(hole.case, "real", hole.document, outcome.edit))
                if (len(good) + len(refused)) % 20 == 0:
                    tell(f"{language} {kind}: {len(good)} of {len(good) + len(refused)} got a fill")
            found.append(Fills(language, kind, len(good) + len(refused), tuple(good), tuple(refused)))
    finally:
        await engine.close()
    return found


async def _outcome(engine: Engine, hole: Hole, settings: Settings) -> Outcome:
    async for event in fill_gap(engine, hole.document, hole.gap, settings):
        if isinstance(event, Outcome):
            return event
    raise AssertionError("fill_gap ends with an Outcome")
