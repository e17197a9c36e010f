"""Tables as text."""

from collections.abc import Iterable, Sequence

_LEFT = 2  # columns of words


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows under their heads; the first columns are words, the others numbers."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    made = []
    for line in lines:
        cells = [
            c.ljust(w) if n < _LEFT else c.rjust(w) for n, (c, w) in enumerate(zip(line, widths, strict=True))
        ]
        made.append("  ".join(cells).rstrip())
    return "\n".join(made)


def percent(value: float) -> str:
    """A share in per cent with one digit."""
    return f"{100 * value:.1f}"
