"""A row of the suite's table: what was tried, the bar, what was found."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. wrong: a sentence for each bar that it misses; slow: the same for bars of time.

    Times hold on an idle machine only, so the tests look at `wrong` alone, and the table shows both.
    """

    test: str
    bar: str
    found: str
    wrong: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The row as a line of Markdown."""
        missed = "; ".join((*self.wrong, *self.slow))
        return f"| {self.test} | {self.bar} | {self.found} | {missed or 'held'} |"


HEAD = "| test | bar | found | bars |\n|---|---|---|---|"


def complaint(log: str) -> str:
    """What a server complained of in `log`: its first error, with what stands round it; empty if there is none.

    A handler's failure is logged without the word Traceback.
    """
    told = re.search(r"\b(?:ERROR|CRITICAL)\b|Traceback|Exception ignored", log)
    return log[max(told.start() - 200, 0) : told.end() + 500] if told else ""


def share(values: Sequence[float], part: float) -> float:
    """The value that `part` of `values` are not above; 0 of none."""
    ranked = sorted(values)
    return ranked[min(int(len(ranked) * part), len(ranked) - 1)] if ranked else 0.0


def missed(*bars: tuple[bool, str]) -> tuple[str, ...]:
    """The sentences of those `bars` that are missed: (whether it is missed, the sentence)."""
    return tuple(sentence for is_missed, sentence in bars if is_missed)
