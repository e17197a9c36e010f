"""Tasks like those of HumanEval-Infilling, cut out of the standard library; how many true solutions survive.

    python -m benchmarks.spans [--seed N] [--cut whole|function] [--kinds SingleLine,MultiLine] [--share F] [--show N]

A task is a record of that benchmark: `prompt` + `canonical_solution` + `suffix` is Python, and the solution lies in
the body of one function. As in Bavarian et al. 2022 it is one line, several whole lines, or the characters between
two places of the body. The true solution goes through the product as a fill does; it survives if the edit gives the
text again, byte for byte.
"""

import argparse
import ast
import random
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dg_lsp.bench import humaneval
from dg_lsp.bench.holes import Case
from dg_lsp.filling.fill import finish
from dg_lsp.text.gaps.gap import apply_edit
from dg_lsp.text.messages import Fill

Record = dict[str, str]
Span = tuple[int, int]
# A longer body is not like the benchmark's; in a larger file each task costs a long parse.
_LINES, _BYTES = 40, 60_000


@dataclass(frozen=True, slots=True)
class Function:
    """A function in a `text`: its name, the span of all of it and that of its body, both in whole lines."""

    place: str
    text: str
    name: str
    span: Span
    body: Span

    def alone(self) -> "Function":
        """The same without the text round it."""
        start, end = self.span
        body = self.body[0] - start, self.body[1] - start
        return Function(self.place, self.text[start:end], self.name, (0, end - start), body)


def standard_library() -> list[Path]:
    """The files of the standard library that are not too large."""
    root = Path(sysconfig.get_path("stdlib"))
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if "site-packages" not in path.parts and path.stat().st_size <= _BYTES
    ]


def functions_of(path: Path) -> list[Function]:
    """The functions of a file whose body has lines of its own; none where the file is not Python with LF line ends."""
    try:
        text = path.read_bytes().decode("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    if "\r" in text or "\f" in text or text.startswith("\ufeff"):
        return []
    starts = [0]
    for line in text.split("\n"):
        starts.append(min(starts[-1] + len(line) + 1, len(text)))
    defs = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [f for node in defs if (f := _function(path, text, starts, node)) is not None]


def _function(
    path: Path, text: str, starts: Sequence[int], node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Function | None:
    """The function of `node`; None where its body is too long or has no lines of its own."""
    documented = ast.get_docstring(node, clean=False) is not None
    above, body = (node.body[0], node.body[1:]) if documented else (None, node.body)
    if not body:
        return None
    first = above.end_lineno or 0 if above else body[0].lineno - 1
    first = min([first, *(d.lineno - 1 for d in getattr(body[0], "decorator_list", ()))])
    last = node.end_lineno or 0
    own = text[starts[first] : starts[first + 1]]
    begun = text[starts[body[0].lineno - 1] :][: body[0].col_offset].strip()
    if begun or last - first > _LINES or not own.startswith((" ", "\t", "\n")):
        return None
    top = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
    place = f"{path.name}:{node.lineno}"
    return Function(place, text, node.name, (starts[top], starts[last]), (starts[first], starts[last]))


def single_line(body: str, chance: random.Random) -> Span | None:
    """One line of the body that is not blank."""
    lines = _lines(body)
    return chance.choice(lines) if lines else None


def multi_line(body: str, chance: random.Random) -> Span | None:
    """From one line of the body that is not blank to a later one."""
    lines = _lines(body)
    if len(lines) < 2:
        return None
    first, last = sorted(chance.sample(lines, 2))
    return first[0], last[1]


def random_span(body: str, chance: random.Random) -> Span | None:
    """The characters between two places of the body, where they are not all blank."""
    start, end = sorted(chance.sample(range(len(body.rstrip()) + 1), 2))
    return (start, end) if body[start:end].strip() else None


def _lines(body: str) -> list[Span]:
    """The lines of the body that are not blank, each with its line end."""
    found, at = [], 0
    for line in body.splitlines(keepends=True) if "\x0b" not in body else ():
        found += [(at, at + len(line))] if line.strip() else []
        at += len(line)
    return found


CUTS: dict[str, Callable[[str, random.Random], Span | None]] = {
    "SingleLine": single_line,
    "MultiLine": multi_line,
    "RandomSpanLight": random_span,
}
COUNTS = {"SingleLine": 600, "MultiLine": 600, "RandomSpanLight": 200}


def make_records(paths: Sequence[Path], kind: str, count: int, seed: int, cut: str = "whole") -> list[Record]:
    """At most `count` tasks of one of CUTS out of the files, at most two a file; the same seed gives the same.

    With `cut` "function" a task's text is a top-level function alone, else the whole file.
    """
    chance = random.Random(f"{kind} {seed}")
    records: list[Record] = []
    for path in chance.sample(list(paths), len(paths)) * 2:
        if len(records) == count:
            break
        functions = [f for f in functions_of(path) if cut == "whole" or f.text[f.span[0]] in "d@a"]
        if not functions:
            continue
        function = chance.choice(functions)
        function = function if cut == "whole" else function.alone()
        start, end = function.body
        span = CUTS[kind](function.text[start:end], chance)
        if span is not None:
            records.append(_record(kind, function, (start + span[0], start + span[1])))
    return records


def _record(kind: str, function: Function, span: Span) -> Record:
    start, end = span
    return {
        "task_id": f"{kind}Infilling/{function.place}/{start}-{end}",
        "entry_point": function.name,
        "prompt": function.text[:start],
        "canonical_solution": function.text[start:end],
        "suffix": function.text[end:],
        "test": "",
    }


def verdict(case: Case) -> str:
    """`survives` where the true solution, taken as a fill, gives the text again; else why not."""
    whole = case.document.data[: case.gap.start] + case.truth.encode() + case.document.data[case.gap.end :]
    outcome = finish(case.document, case.gap, Fill(case.truth))
    if outcome.edit is None:
        return f"refused: {outcome.why}"
    return "survives" if apply_edit(case.document, outcome.edit).data == whole else "changed"


def verdicts(records: Sequence[Record]) -> Iterator[tuple[Case, str]]:
    """Each task's case and its verdict."""
    for record in records:
        case = humaneval.make_task(record).case
        yield case, verdict(case)


def _show(case: Case, said: str) -> str:
    data, at = case.document.data, case.gap.start
    before = data[:at].decode().splitlines(keepends=True)[-6:]
    after = data[case.gap.end :].decode().splitlines(keepends=True)[:4]
    got = finish(case.document, case.gap, Fill(case.truth)).edit
    lost = f"\n--- instead of the solution: {got.text!r}" if got else ""
    return f"=== {case.name}: {said}\n{''.join(before)}⟦{case.truth}⟧{''.join(after)}{lost}"


def main() -> int:
    """Make the tasks, feed the truth, print what survives."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cut", choices=("whole", "function"), default="whole")
    parser.add_argument("--kinds", default=",".join(CUTS))
    parser.add_argument("--share", type=float, default=1.0, help="of 600, 600 and 200 tasks")
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="print N of those that do not survive"
    )
    arguments = parser.parse_args()
    paths = standard_library()
    for kind in arguments.kinds.split(","):
        count = round(COUNTS[kind] * arguments.share)
        begun = time.perf_counter()
        found = list(verdicts(make_records(paths, kind, count, arguments.seed, arguments.cut)))
        alive = sum(said == "survives" for _, said in found)
        seconds = time.perf_counter() - begun
        print(f"{kind}: {alive} of {len(found)} survive ({alive / max(len(found), 1):.1%}), {seconds:.0f} s")
        lost = [(case, said) for case, said in found if said != "survives"]
        for said, number in Counter(said for _, said in lost).most_common():
            print(f"  {number:4d} {said}")
        for case, said in lost[: arguments.show]:
            print(_show(case, said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
