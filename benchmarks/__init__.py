"""Programs that reproduce the numbers of docs/results.md; not in the wheel."""

import argparse
import statistics
from collections.abc import Generator, Sequence
from typing import TypeVar

Event = TypeVar("Event")
Result = TypeVar("Result")


def parser_of(words: str | None) -> argparse.ArgumentParser:
    """Return a parser of command lines whose help is `words`, the program's docstring, as it is."""
    return argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """Describe `values` by their median, their 95th percentile, the largest, and their number."""
    ranked = sorted(values)
    late = ranked[min(int(len(ranked) * 0.95), len(ranked) - 1)]
    median = statistics.median(ranked)
    return f"p50 {median:.1f}, p95 {late:.1f}, most {ranked[-1]:.1f} {unit}, n = {len(ranked)}"


def run_to_end(events: Generator[Event, None, Result]) -> tuple[list[Event], Result]:
    """All events that the generator yields, and the value that it returns."""
    seen: list[Event] = []
    while True:
        try:
            seen.append(next(events))
        except StopIteration as end:
            return seen, end.value
