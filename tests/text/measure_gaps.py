"""How often `find_gap` finds the right body in files that are being typed: cut real files, the truth from `ast`.

Run it by hand: `python tests/text/measure_gaps.py --positions 200`. The files are the standard library's.
"""

import argparse
import ast
import random
import re
import sysconfig
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dg_lsp.text.document import Document
from dg_lsp.text.gaps import NoGap, find_gap

STUBS = {
    "c1": ["pass"],
    "c2": ["..."],
    "c3": ["raise NotImplementedError"],
    "c4": ['raise NotImplementedError("f")'],
    "c5": ["# TODO", "pass"],
    "c6": ["# TODO"],
    "c7": ["pass  # TODO"],
}
SCENARIOS = ("a1", "a2", "b1", "b2", "b3", "h1", *STUBS)
BREAKS = ("(", ")", "]", "}", "def (", "x = = 1", "if :", "'", "foo(", "[1, 2")


@dataclass(frozen=True, slots=True)
class Body:
    """A function of a valid file: its `def`, where its header ends, its body's text after a docstring."""

    define: int
    header: int
    start: int
    end: int
    indent: str
    statements: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A damaged file, a cursor, and the span that is right (compared without white space at its ends)."""

    data: bytes
    cursor: int
    start: int
    end: int


@cache
def sources(limit: int, seed: int) -> tuple[bytes, ...]:
    """Files of the standard library that parse, at most 150 kB each, `limit` of them at random."""
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = [
        p for p in sorted(root.rglob("*.py")) if "site-packages" not in p.parts and "badsyntax" not in p.name
    ]
    random.Random(seed).shuffle(paths)
    found: list[bytes] = []
    for path in paths:
        data = path.read_bytes()
        if 500 < len(data) < 150_000 and b"\r" not in data and b"\f" not in data and _parses(data):
            found.append(data)
        if len(found) == limit:
            break
    return tuple(found)


def _parses(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, UnicodeDecodeError):
        return False
    return True


@cache
def bodies(data: bytes) -> list[Body]:
    """The functions of `data` whose body stands on its own lines and has something besides a docstring."""
    starts = [0, *(m.end() for m in re.finditer(rb"\n", data))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(data)
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        kept = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        if not kept:
            continue
        spans = tuple((starts[s.lineno - 1] + s.col_offset, _end(starts, s)) for s in kept)
        define = starts[node.lineno - 1] + node.col_offset
        line = starts[node.body[0].lineno - 1]
        if line <= define or (data[line : spans[0][0]].strip() and kept is node.body):
            continue
        above = data[:line].rstrip() if kept is node.body else data[: _end(starts, node.body[0])]
        if kept is node.body and (not above.endswith(b":") or b"#" in above[above.rfind(b"\n") + 1 :]):
            continue  # a comment between header and body: where the header ends is another question
        if data[spans[-1][1] : data.find(b"\n", spans[-1][1])].strip():
            continue
        if re.match(rb"[ \t\n]*#", data[spans[-1][1] :]) or b";" in data[len(above) : spans[0][0]]:
            continue
        start = len(above) + len(data[len(above) :]) - len(data[len(above) :].lstrip())
        indent = data[line : starts[node.body[0].lineno - 1] + node.body[0].col_offset].decode()
        found.append(Body(define, len(above), start, spans[-1][1], indent, spans))
    return found


def _end(starts: list[int], node: ast.stmt) -> int:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return starts[node.end_lineno - 1] + node.end_col_offset


def cases(scenario: str, count: int, seed: int) -> Iterator[Case]:
    """`count` damaged files of `scenario`."""
    rng = random.Random(f"{scenario}-{seed}")
    files = sources(max(count // 2, 20), seed)
    done = 0
    while done < count:
        data = rng.choice(files)
        found = bodies(data)
        if not found:
            continue
        case = damage(scenario, data, rng.choice(found), rng)
        if case is not None:
            done += 1
            yield case


def damage(scenario: str, data: bytes, body: Body, rng: random.Random) -> Case | None:
    """One damaged file, or None where `body` does not lend itself to the scenario."""
    if scenario in ("b1", "b2", "b3"):
        return _emptied(scenario, data, body)
    if scenario in STUBS:
        indent = body.indent.encode()
        lines = (b"\n" + indent).join(line.encode() for line in STUBS[scenario])
        changed = data[: body.header] + b"\n" + indent + lines + data[body.end :]
        start = body.header + 1 + len(indent)
        return Case(changed, rng.randrange(start, start + len(lines) + 1), start, start + len(lines))
    tail = scenario == "a1" or (scenario == "h1" and rng.random() < 0.5)
    case = (_without_tail if tail else _without_statement)(data, body, rng)
    if case is None or _is_shallow(case, body):
        return None  # a blank line no deeper than the `def` is not the function's
    if re.search(rb"^[ \t]*(?:async )?def ", data[body.start : case.cursor], re.MULTILINE):
        return None  # the cursor may be in a nested function, and then that one is right
    return _break_elsewhere(case, body, rng) if scenario == "h1" else case


def _emptied(scenario: str, data: bytes, body: Body) -> Case | None:
    """The body gone: the cursor at the colon, on an indented blank line, or on a blank line at column 0."""
    if b'"""' in data[body.define : body.header]:
        return None  # a docstring's end is no empty body
    space = {"b1": "", "b2": "\n" + body.indent, "b3": "\n"}[scenario].encode()
    at = body.header + len(space)
    return Case(data[: body.header] + space + data[body.end :], at, at, at)


def _without_tail(data: bytes, body: Body, rng: random.Random) -> Case | None:
    at = rng.randrange(body.start + 1, body.end) if body.end > body.start + 1 else body.end
    return None if data[at] & 0xC0 == 0x80 else Case(data[:at] + data[body.end :], at, body.start, at)


def _without_statement(data: bytes, body: Body, rng: random.Random) -> Case | None:
    """A statement cut to the end of its line at a random character; later ones stay."""
    start, end = rng.choice(body.statements)
    if end == body.end or end - start < 2:
        return None
    at, cut = rng.randrange(start + 1, end), data.find(b"\n", end)
    return (
        None
        if data[at] & 0xC0 == 0x80
        else Case(data[:at] + data[cut:], at, body.start, body.end - (cut - at))
    )


def _is_shallow(case: Case, body: Body) -> bool:
    line = case.data[case.data.rfind(b"\n", 0, case.cursor) + 1 : case.cursor]
    return not line.strip() and len(line) <= body.define - case.data.rfind(b"\n", 0, body.define) - 1


def _break_elsewhere(case: Case, body: Body, rng: random.Random) -> Case | None:
    """One to three syntax errors outside of the function."""
    for _ in range(rng.randrange(1, 4)):
        ends = [m.start() for m in re.finditer(rb"\n", case.data)]
        outside = [e for e in ends if e < body.define - 1 or e > case.end]
        if not outside:
            return None
        at = rng.choice(outside)
        text = b" " + rng.choice(BREAKS).encode()
        moved = len(text) if at < body.define else 0
        body = Body(body.define + moved, body.header, 0, 0, "", ())
        case = Case(
            case.data[:at] + text + case.data[at:], case.cursor + moved, case.start + moved, case.end + moved
        )
    return case


def right(case: Case) -> bool:
    """Whether the gap's two ends are the true ones, white space not counted."""
    try:
        gap = find_gap(Document("case", "python", 0, case.data), case.cursor, "function_body")
    except NoGap:
        return False
    return all(
        not case.data[min(a, b) : max(a, b)].strip()
        for a, b in ((gap.start, case.start), (gap.end, case.end))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="scenarios, separated by commas")
    parser.add_argument("--show", type=int, default=0, help="print so many failures of each scenario")
    options = parser.parse_args()
    for scenario in options.only.split(",") if options.only else SCENARIOS:
        hits, slow, shown = 0, [], 0
        for case in cases(scenario, options.positions, options.seed):
            begun = time.perf_counter()
            hit = right(case)
            slow.append((time.perf_counter() - begun) * 1000)
            hits += hit
            if not hit and shown < options.show:
                shown += 1
                show(case)
        slow.sort()
        middle, late = slow[len(slow) // 2], slow[len(slow) * 95 // 100]
        share = 100 * hits / options.positions
        times = f"p50 {middle:6.1f} ms  p95 {late:6.1f} ms"
        print(f"{scenario}  {share:5.1f} % of {options.positions}  {times}", flush=True)


def show(case: Case) -> None:
    """The text round a case that went wrong; the cursor is between the two marks."""
    print(f"--- right is {case.start}-{case.end}, the cursor at {case.cursor}")
    before, after = case.data[max(case.cursor - 300, 0) : case.cursor], case.data[case.cursor :][:100]
    print(before.decode("utf-8", "replace") + "<<<>>>" + after.decode("utf-8", "replace"))


if __name__ == "__main__":
    main()
