"""Write the tables of docs/results.md and README.md from the reports in benchmarks/reports.

    python -m benchmarks.results

A report is one run of one command with one model: its command, machine, date, and numbers. A number has a value, the
count `n` that it was measured on, and, where they were stored, the lowest and highest value (`range`) or the chance
`from` which a text was shown. The interval of a share is computed here. `claims.json` holds what is true of all models.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import parser_of

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "benchmarks" / "reports"
MODELS = ("embedded", "small", "coder-0.5b", "coder")
# Each measure with its title in the tables and its unit. Those with `%` are shares of `n`.
MEASURES = {
    "line": ("rest of a line exactly right", "%"),
    "shown": ("lines for which ghost text is likely enough to be shown", "%"),
    "shown_right": ("of these, exactly right", "%"),
    "body": ("function body that passes its tests, first fill", "%"),
    "first_key": ("ghost text at a new place, median", "s"),
    "further_key": ("ghost text at the next keys there, median", "s"),
    "body_time": ("function body, median", "s"),
    "start": ("start of the engine, from the second on", "s"),
    "loaded": ("memory of the engine, loaded", "GB"),
    "memory": ("memory of the engine after fills", "GB"),
    "disk": ("disk, the model and what is cached of it", "GB"),
}
# The README has the models that are fetched, and one line for memory.
_LETTERS = "ABCDEFG"
README_MODELS, README_MEASURES = MODELS[1:], tuple(name for name in MEASURES if name != "loaded")


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a report, and the report that it is from."""

    value: float
    n: int
    spread: tuple[float, float] | None
    least: int | None
    report: dict[str, Any]


Show = Callable[[Number | None, str], str]


def numbers() -> dict[tuple[str, str], Number]:
    """Return the number of each (measure, model) that a report has."""
    found = {}
    for path in sorted(REPORTS.glob("*.json")):
        if path.name == "claims.json":
            continue
        report = json.loads(path.read_text(encoding="utf-8"))
        for name, number in report["numbers"].items():
            spread = tuple(number["range"]) if "range" in number else None
            key = (name, report["model"])
            assert key not in found, f"{path.name}: {key} is in another report, too"
            found[key] = Number(number["value"], number.get("n", 0), spread, number.get("from"), report)
    return found


def interval(percent: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of `n`, in percent."""
    share, z = percent / 100, 1.96
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5 / (1 + z * z / n)
    return 100 * (middle - half), 100 * (middle + half)


def cell(number: Number | None, unit: str) -> str:
    """Return a number as the long table shows it, such as `65 % [59, 70]`; `-` if it was not measured."""
    if number is None:
        return "-"
    text = f"{number.value:g} {unit}"
    if unit == "%":
        low, high = interval(number.value, number.n)
        return f"{text} [{low:.0f}, {high:.0f}]"
    return f"{text} ({number.spread[0]:g} to {number.spread[1]:g})" if number.spread else text


def short_cell(number: Number | None, unit: str) -> str:
    return f"{number.value:g} {unit}" if number else "-"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def models_table() -> str:
    return _numbers_table(MODELS, tuple(MEASURES), cell)


def readme_table() -> str:
    return _numbers_table(README_MODELS, README_MEASURES, short_cell)


def _numbers_table(models: Sequence[str], measures: Sequence[str], shown: Show) -> str:
    """Return a table with a row for each of `measures` and a column for each of `models`."""
    known = numbers()
    rows = []
    for name in measures:
        title, unit = MEASURES[name]
        rows.append([title, *(shown(known.get((name, model)), unit) for model in models)])
    return table(["", *(f"`{model}`" for model in models)], rows)


def methods_table() -> str:
    """Return a row for each command: its measures, as it was for `coder`, and each model's count, machine and date."""
    known = numbers()
    machines = sorted({number.report["machine"] for number in known.values()})
    measures: dict[str, list[str]] = {}
    for name in MEASURES:
        measures.setdefault(known[name, "coder"].report["command"], []).append(name)
    rows = []
    for command, names in measures.items():
        runs = [[known[name, model] for name in names if (name, model) in known] for model in MODELS]
        titles = "; ".join(MEASURES[name][0] for name in names)
        rows.append([titles, _command(command), "; ".join(_run(run, machines) for run in runs if run)])
    legend = "; ".join(f"{letter}: {machine}" for letter, machine in zip(_LETTERS, machines, strict=False))
    head = ["", "measured by (for `coder`)", "model: count, machine, date"]
    return f"{table(head, rows)}\nMachines: {legend}.\n"


def _command(command: str) -> str:
    no_script, text = command.startswith("none: "), command.removeprefix("none: ")
    return f"no script; {text}" if no_script else f"`{text.replace(', then ', '`, then `')}`"


def _run(run: Sequence[Number], machines: Sequence[str]) -> str:
    """Describe the numbers of one run with one model, such as `small`: 300 on B, shown from 25 %, 2026-11-25."""
    report = run[0].report
    counts = dict.fromkeys(str(number.n) for number in run if number.n and not number.least)
    shown = "".join({f", shown from {number.least} %" for number in run if number.least})
    where = f"{' and '.join(counts)} on {_LETTERS[machines.index(report['machine'])]}".strip()
    return f"`{report['model']}`: {where}{shown}, {report['date']}"


def claims_table() -> str:
    claims = json.loads((REPORTS / "claims.json").read_text(encoding="utf-8"))
    rows = [[one["claim"], one["number"], one["command"], one["date"]] for one in claims]
    return table(["", "number", "measured by", "date"], rows)


PAGES = (ROOT / "docs" / "results.md", ROOT / "README.md")
BLOCKS = {"models": models_table, "methods": methods_table, "claims": claims_table, "readme": readme_table}


def filled(text: str) -> str:
    """Return a page with each of its blocks, `<!-- results: NAME -->` to `<!-- end -->`, written again."""

    def block(found: re.Match[str]) -> str:
        return f"{found[1]}\n{BLOCKS[found[2]]()}{found[3]}"

    return re.sub(r"(<!-- results: (\w+) -->)\n.*?(<!-- end -->)", block, text, flags=re.DOTALL)


def main() -> None:
    parser_of(__doc__).parse_args()
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
