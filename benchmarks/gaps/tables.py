"""The tables of gaps and their times in `bench --gaps`, and the cases that went wrong. `fill_tables` has the fills'.

Knows what was measured; measures nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.gaps.case import Case
from benchmarks.gaps.cells import Cell, Failure
from benchmarks.gaps.sizes import Size
from dg_lsp.text.documents.document import Document

# The scenarios of the totals by their first letters: those of typing alone, those with more damage.
_ALL = (("typing", "abcdef"), ("damaged", "h"))
_LEFT = 2  # columns of words
_SHOWN = 260  # bytes before the cursor


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


def cells_table(language: str, cells: Sequence[Cell]) -> str:
    """One language's cells, and what their columns mean."""
    head = ("id", "kind", "n", "alone %", "replayed %", "chosen %", "fits %", "p50", "p95", "max ms")
    rows = [
        (c.scenario, c.kind, str(c.count), *(percent(v) for v in (c.alone, c.replayed, c.chosen, c.fits)),
         f"{c.p50:.1f}", f"{c.p95:.1f}", f"{c.most:.1f}")
        for c in cells
    ]  # fmt: skip
    for name, letters in _ALL:
        if group := [c for c in cells if c.scenario[0] in letters and is_classic(c.kind)]:
            rows.append(_total(name, group))
    return f"{language}: gaps in broken files\n{table(head, rows)}"


def _total(name: str, cells: Sequence[Cell]) -> tuple[str, ...]:
    """The mean of cells, each position counted once."""

    def mean(column: str) -> str:
        values = [(c.count, getattr(c, column)) for c in cells if getattr(c, column) is not None]
        return percent(sum(n * v for n, v in values) / sum(n for n, _ in values) if values else None)

    columns = (mean(column) for column in ("alone", "replayed", "chosen", "fits"))
    return (name, "total", str(sum(c.count for c in cells)), *columns, "", "", "")


def is_classic(kind: str) -> bool:
    """Whether cells of `kind` belong to the totals, which have to be comparable with older ones."""
    return kind not in ("class_body", "parameters", "collection")


def scenarios_told(told: Sequence[tuple[str, str]]) -> str:
    """What the scenarios are, and what the columns say; nothing where there are no scenarios."""
    if not told:
        return ""
    lines = [f"{name}: {sentence}" for name, sentence in told]
    lines.append(
        "alone, replayed: both ends of the gap right, from the damaged file, and with its edits since it was valid"
    )
    lines.append(
        "chosen: an acceptable kind without a wish; fits: what stood in a right gap makes the file parse again"
    )
    return "\n".join(lines)


def percent(value: float | None) -> str:
    """A share; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.1f}"


def classes(cell: Cell) -> dict[str, int]:
    """How often a cell went wrong in which way, by column and way."""
    return dict(Counter(f"{f.column}: {f.how}" for f in cell.failures).most_common())


def classes_told(cells: Sequence[Cell]) -> str:
    """The same of several cells, a line each."""
    lines = []
    for cell in cells:
        if found := classes(cell):
            told = ", ".join(f"{name} {count}" for name, count in found.items())
            lines.append(f"{cell.language} {cell.scenario} {cell.kind} (of {cell.count}): {told}")
    return "\n".join(lines)


def failures_told(cells: Sequence[Cell], count: int) -> str:
    """The first `count` failures of each cell and column, with the text round the cursor."""
    parts = []
    for cell in cells:
        seen: dict[str, int] = {}
        for failure in cell.failures:
            seen[failure.column] = seen.get(failure.column, 0) + 1
            if seen[failure.column] <= count:
                parts.append(f"{cell.language} {cell.scenario} {cell.kind}, {_failure(failure)}")
    return "\n".join(parts)


def _failure(failure: Failure) -> str:
    case = failure.case
    start, end = case.span
    wanted = ", ".join(sorted(case.acceptable)) if failure.column == "chosen" else f"{start}-{end}"
    return f"{failure.column}: right is {wanted}; got {failure.got}; {cursor_told(case)}"


def cursor_told(case: Case) -> str:
    """Where a case's cursor is, and the text round it."""
    data, cursor = case.data, case.cursor
    before = data[max(cursor - _SHOWN, 0) : cursor].decode("utf-8", "replace")
    after = data[cursor : cursor + _SHOWN // 2].decode("utf-8", "replace")
    line = Document("", case.language, 0, data).position(cursor)[0] + 1
    text = "\n    ".join(f"{before}⟦⟧{after}".split("\n"))
    return f"cursor {cursor} on line {line}\n    {text}"


def sizes_table(sizes: Sequence[Size]) -> str:
    """How long gaps took in long files."""
    rows = [
        (s.language, "buffer, older text known" if s.known else "file alone", f"{s.lines:,}", str(s.count),
         f"{s.p50:.1f}", f"{s.p95:.1f}", f"{s.most:.1f}", str(s.missed))
        for s in sizes
    ]  # fmt: skip
    head = ("language", "from", "lines", "n", "p50", "p95", "max ms", "no gap")
    return f"long files, one character changed at a random place\n{table(head, rows)}"
