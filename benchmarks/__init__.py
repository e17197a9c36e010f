"""Programs that reproduce the numbers of docs/results.md; not in the wheel."""

import argparse
import statistics
from collections.abc import Sequence


def parser_of(words: str | None) -> argparse.ArgumentParser:
    """Return a parser of command lines whose help is `words`, the program's docstring, as it is."""
    return argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """Describe `values` by their median, their 95th percentile, the largest, and their number."""
    ranked = sorted(values)
    late = ranked[min(int(len(ranked) * 0.95), len(ranked) - 1)]
    median = statistics.median(ranked)
    return f"p50 {median:.1f}, p95 {late:.1f}, most {ranked[-1]:.1f} {unit}, n = {len(ranked)}"
