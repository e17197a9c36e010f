"""Whole fills of evaluation holes: the length searched beside the length given, and one effort beside the others.

The prefix of each hole is encoded before the clock starts, as it is for a person who types, so that the times are
those of the search and of the steps. Knows the engine and holes; knows no table.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from dg_lsp.bench.holes import Case
from dg_lsp.bench.measure import score_of
from dg_lsp.filling.fill import finish
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.fill import infill
from dg_lsp.model.tokens import tokenise
from dg_lsp.settings import EFFORTS, Settings
from dg_lsp.text.messages import Effort, Fill
from dg_lsp.text.prompts import prompt

KINDS = ("rest_of_line", "function_body")
VARIANTS = (("normal", "given"), *((effort, "searched") for effort in EFFORTS))


@dataclass(frozen=True, slots=True)
class Filled:
    """One hole, filled with one effort, its length given or searched.

    seconds: of the whole `infill`, the prefix being encoded. steps: denoising steps of the fill that is shown.
    passes: calls of the decoder in all, for whichever number of rows, the length search included. tokens: of the
    shown text. `offered` and `exact` are as in the other tables of `bench`.
    """

    case: str
    kind: str
    effort: str
    length: str
    seconds: float
    steps: int
    passes: int
    tokens: int
    offered: bool
    exact: bool


def fill_cases(
    model: Checkpoint, cases: Sequence[Case], settings: Settings, progress: Callable[[str], None]
) -> list[Filled]:
    """Every hole in every variant, in turns: all variants of a hole come one after the other.

    The first hole is filled once more, uncounted, since what comes first is slow.
    """
    found: list[Filled] = []
    for number, case in enumerate([*cases[:1], *cases]):
        cache = PrefixCache(model.network.config.text_config)
        laps = [_fill(model, cache, case, settings, variant) for variant in VARIANTS]
        found += laps if number else []
        if number and number % 10 == 0:
            progress(f"fills: {number} of {len(cases)} holes")
    return found


def summarise(filled: Sequence[Filled]) -> list[dict[str, Any]]:
    """A record for each kind and variant: shares, means over what was offered, and medians of seconds."""
    records = []
    for kind in KINDS:
        for effort, length in VARIANTS:
            some = [f for f in filled if (f.kind, f.effort, f.length) == (kind, effort, length)]
            if some:
                records.append({"kind": kind, "effort": effort, "length": length, **_summary(some)})
    return records


def _summary(some: Sequence[Filled]) -> dict[str, Any]:
    shown = [f for f in some if f.offered]
    return {
        "holes": len(some),
        "offered": round(statistics.fmean(f.offered for f in some), 4),
        "exact": round(statistics.fmean(f.exact for f in some), 4),
        "steps": round(statistics.fmean(f.steps for f in shown), 2) if shown else None,
        "tokens_per_step": round(sum(f.tokens for f in shown) / sum(f.steps for f in shown), 2)
        if shown
        else None,
        "passes": round(statistics.fmean(f.passes for f in some), 2),
        "seconds": round(statistics.median(f.seconds for f in some), 4),
    }


def _fill(
    model: Checkpoint, cache: PrefixCache, case: Case, settings: Settings, variant: tuple[str, str]
) -> Filled:
    effort, length = variant
    request = prompt.build(case.document, case.gap, settings)
    like = case.truth if length == "given" else None
    request = replace(request, effort=cast(Effort, effort), like=like, deadline=None)
    for _ in extend_to(model.network, cache, tokenise(model, request)[0]):
        pass
    with _count(model.network) as passes:
        # An infill is done when its texts are in memory, so there is no device to be waited for.
        start = time.perf_counter()
        *_, fill = infill(model, cache, request)
        seconds = time.perf_counter() - start
    assert isinstance(fill, Fill), "a Fill comes last"
    score = score_of(case, length, finish(case.document, case.gap, fill).edit, fill)
    return Filled(
        case=case.name,
        kind=case.kind,
        effort=effort,
        length=length,
        seconds=seconds,
        steps=fill.steps,
        passes=len(passes),
        tokens=len(model.encode(fill.text)),
        offered=score.offered,
        exact=score.exact,
    )


@contextmanager
def _count(network: Any) -> Iterator[list[None]]:
    """A list that grows by one with every pass through the decoder."""
    calls: list[None] = []
    hook = network.model.decoder.norm.register_forward_hook(lambda *_: calls.append(None))
    try:
        yield calls
    finally:
        hook.remove()
