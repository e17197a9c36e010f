"""How long requests wait where editors share engines: a simulation. Numbers only; knows no engine.

An engine's one model thread gives each live request a step in turn, so n of them go at 1/n of the speed each: processor
sharing (Kleinrock, Queueing Systems II, 1976, section 4.4). An editor's newer request overtakes its older one, as a
keystroke does. Documents stay with the engine that holds their prefix, so editors are spread over the engines once.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from dg_lsp.bench.score import quantile

# Requests that a simulation answers, and those before them that do not count, while the queues fill.
_REQUESTS, _WARM_UP = 20_000, 1_000


@dataclass(frozen=True, slots=True)
class Load:
    """What a team asks for.

    seconds: what requests take that are alone on an engine; each is as likely. editors: how many people type. every:
    the mean number of seconds between two requests of one of them, which come at random (a Poisson process).
    """

    seconds: Sequence[float]
    editors: int
    every: float

    def busy(self, engines: int) -> float:
        """The share of their time that `engines` would work if every request were finished; above 1 they cannot."""
        return self.editors / self.every * sum(self.seconds) / len(self.seconds) / engines


@dataclass(frozen=True, slots=True)
class Waiting:
    """What comes of a load: p50 and p95 of the answered requests in seconds, and the share that is overtaken."""

    p50: float
    p95: float
    overtaken: float


def simulate(load: Load, engines: int, seed: int = 0) -> Waiting:
    """The Waiting of `load` on so many engines; the same seed gives the same numbers.

    An engine's time goes from event to event: a request comes, or the one with the least work left is done.
    """
    chance = random.Random(seed)
    crowds = [len(range(number, load.editors, engines)) for number in range(engines)]
    answered, overtaken = list[float](), 0
    for crowd in filter(None, crowds):
        share = max(round(_REQUESTS * crowd / load.editors), 1)
        times, lost = _one_engine(load, crowd, share, chance)
        answered += times
        overtaken += lost
    answered.sort()
    return Waiting(
        quantile(answered, 0.5), quantile(answered, 0.95), overtaken / max(overtaken + len(answered), 1)
    )


def _one_engine(load: Load, editors: int, count: int, chance: random.Random) -> tuple[list[float], int]:
    """The times of the answered ones of `count` requests of `editors` on one engine, and how many were overtaken."""
    live: dict[int, tuple[float, float]] = {}  # editor -> work left in seconds, when it came
    answered, overtaken = list[float](), 0
    now, comes, seen = 0.0, chance.expovariate(editors / load.every), 0
    while seen < count + _WARM_UP:
        first = min(live, key=lambda editor: live[editor][0], default=None)
        ends = now + live[first][0] * len(live) if first is not None else math.inf
        then = min(ends, comes)
        done = (then - now) / max(len(live), 1)
        live = {editor: (left - done, came) for editor, (left, came) in live.items()}
        now = then
        counts = seen >= _WARM_UP
        if first is not None and ends <= comes:
            _, came = live.pop(first)
            answered += [now - came] if counts else []
        else:
            editor = chance.randrange(editors)
            overtaken += editor in live and counts
            live[editor] = chance.choice(load.seconds), now
            comes, seen = now + chance.expovariate(editors / load.every), seen + 1
    return answered, overtaken
