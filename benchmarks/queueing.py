"""Waiting times where editors share engines: a simulation. Numbers only; knows no engine.

An engine finishes the ghost text that it has begun; the next one is that of the editor who has waited longest for a
turn, a queue with one server (`engine/turn.py`; Kleinrock, Queueing Systems I, 1975, chapter 5). An editor's newer
request overtakes its older one, as a keystroke does, and what is not begun before its deadline is given up. Documents
stay with the engine that holds their prefix, so editors are spread over the engines once.
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
    """The requests of a team.

    seconds: of requests that are alone on an engine; each is as likely. editors: the people who type. every:
    the mean number of seconds between two requests of one of them, which come at random (a Poisson process).
    deadline: the seconds after which a request ends with the best text so far; infinite where there is none.
    """

    seconds: Sequence[float]
    editors: int
    every: float
    deadline: float = math.inf

    def busy(self, engines: int) -> float:
        """The share of their time that `engines` would work if every request were finished; above 1 they cannot."""
        return self.editors / self.every * sum(self.seconds) / len(self.seconds) / engines


@dataclass(frozen=True, slots=True)
class Waiting:
    """The result of a load: p50 and p95 of the answered requests in seconds, and the share that gets no answer.

    overtaken: the share whose editor has asked again before. late: the share whose deadline passed before its turn.
    """

    p50: float
    p95: float
    overtaken: float
    late: float


def simulate(load: Load, engines: int, seed: int = 0) -> Waiting:
    """The Waiting of `load` on so many engines; the same seed gives the same numbers."""
    chance = random.Random(seed)
    crowds = [len(range(number, load.editors, engines)) for number in range(engines)]
    answered, overtaken, late = list[float](), 0, 0
    for crowd in filter(None, crowds):
        share = max(round(_REQUESTS * crowd / load.editors), 1)
        one = _Engine(load, crowd, chance)
        one.run(share)
        answered += one.answered
        overtaken += one.overtaken
        late += one.late
    answered.sort()
    count = max(len(answered) + overtaken + late, 1)
    return Waiting(quantile(answered, 0.5), quantile(answered, 0.95), overtaken / count, late / count)


class _Engine:
    """One engine and its `editors`. answered: the seconds of each answer; overtaken and late count the others.

    Time goes from event to event: a request comes, or the one that is worked on is done.
    """

    def __init__(self, load: Load, editors: int, chance: random.Random) -> None:
        self._load, self._editors, self._chance = load, editors, chance
        self._waiting: dict[int, tuple[float, float]] = {}  # editor -> work in seconds, when it came
        self._served = dict.fromkeys(range(editors), 0.0)  # editor -> when its last turn was
        self._works_on: tuple[int, float, float] | None = (
            None  # editor, what it takes in all, when it is done
        )
        self.answered, self.overtaken, self.late = list[float](), 0, 0

    def run(self, count: int) -> None:
        """Let `count` requests come, after those that fill the queue."""
        now, seen = 0.0, 0
        while seen < count + _WARM_UP:
            now, seen = now + self._chance.expovariate(self._editors / self._load.every), seen + 1
            while self._works_on and self._works_on[2] <= now:
                _, took, done = self._works_on
                self.answered.append(took)
                self._begin(done)
            if seen == _WARM_UP:
                self.answered, self.overtaken, self.late = [], 0, 0
            self._come(self._chance.randrange(self._editors), now)

    def _come(self, editor: int, now: float) -> None:
        is_working = self._works_on is not None and self._works_on[0] == editor
        self.overtaken += editor in self._waiting or is_working
        self._waiting[editor] = self._chance.choice(self._load.seconds), now
        if is_working or self._works_on is None:
            self._begin(now)

    def _begin(self, now: float) -> None:
        """Take the next request up, or none if none waits."""
        self._works_on = None
        while self._waiting and self._works_on is None:
            editor = min(self._waiting, key=self._served.__getitem__)
            work, came = self._waiting.pop(editor)
            self._served[editor], left = now, self._load.deadline - (now - came)
            if left < 0 and self._waiting:
                self.late += 1
            else:
                done = now + min(work, max(left, 0.0))
                self._works_on = editor, done - came, done
