"""Times of ghost text while somebody types, as an editor gets it: from a key to the answer, over the wire.

    python -m benchmarks.keys FOLDER --checkpoint coder --report out.json

In each of some files below FOLDER, a statement of one line is typed again with the rest of the file in place: a key at
the end of the line above, where nothing was asked before; Enter; then the first letters, each key asked about until it
is answered. Only answers with text count, and of the letters those for which the model wrote it: text that is shown and
agrees with a letter stays at once. FOLDER is made by `python -m benchmarks.unseen.fetch new FOLDER`. Run it on an idle
machine.
"""

import json
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks import parser_of
from benchmarks.server import inline, opened, server, status, stop_all, typed
from tests.server.wire import Wire

LETTERS = 5
AT_ONCE = 0.05  # seconds in which text that is known already is answered
_LEAST = 12  # characters of a line that is typed
_FARTHEST = 40_000  # bytes of a file
_PATIENCE = 120.0


def lines_of(path: Path) -> list[int]:
    """Return the lines of the file `path`, from 0, that are typed: indented ones of code, in its second half."""
    lines = path.read_text("utf-8").split("\n")
    return [
        number
        for number in range(len(lines) // 2, len(lines))
        if lines[number].isascii()
        and lines[number].startswith("    ")
        and lines[number].strip()[:1].isalpha()
        and len(lines[number].strip()) >= _LEAST
        and lines[number - 1].strip()
    ]


class _Typist:
    """Somebody who types in one open file."""

    def __init__(self, wire: Wire, path: Path, text: str) -> None:
        self._wire, self._uri, self._version, self._count = wire, path.as_uri(), 1, 0
        opened(wire, text, 1, self._uri)

    def ask(self, line: int, column: int) -> float | None:
        """Ask for ghost text as an editor does by itself; return the seconds until it came, None if none came."""
        self._count += 1
        began = time.perf_counter()
        about = inline(line, column, 2, self._uri)
        reply = self._wire.ask(
            f"{self._uri} {self._count}", "textDocument/inlineCompletion", about, _PATIENCE
        )
        return time.perf_counter() - began if reply["result"]["items"] else None

    def key(self, line: int, column: int, text: str) -> None:
        """Type `text`."""
        self._version += 1
        typed(self._wire, self._uri, self._version, (line, column), text)


def line_typed(wire: Wire, path: Path, number: int) -> Iterator[tuple[str, float | None]]:
    """Yield the kind of each key and the seconds until its text, while line `number` of the file `path` is typed."""
    lines = path.read_text("utf-8").split("\n")
    line, above = lines[number], lines[number - 1]
    indent = line[: len(line) - len(line.lstrip())]
    rest = lines[:number] + lines[number + 1 :]
    rest[number - 1] = above[:-1]
    typist = _Typist(wire, path, "\n".join(rest))
    typist.key(number - 1, len(above) - 1, above[-1])
    yield "first_key", typist.ask(number - 1, len(above))
    typist.key(number - 1, len(above), "\n" + indent)
    yield "new_line", typist.ask(number, len(indent))
    for column, letter in enumerate(line[len(indent) :][:LETTERS], len(indent)):
        typist.key(number, column, letter)
        yield "further_key", typist.ask(number, column + 1)


def measure(folder: Path, checkpoint: str, count: int) -> dict[str, list[float]]:
    """Return the seconds of the keys that count by their kind, in `count` files below `folder`."""
    found: dict[str, list[float]] = {"first_key": [], "new_line": [], "further_key": []}
    asked = Counter[str]()
    paths = sorted(path for path in folder.rglob("*.py") if 2_000 < path.stat().st_size < _FARTHEST)
    chance = random.Random(0)
    chance.shuffle(paths)
    wire = server(checkpoint, rootUri=folder.resolve().as_uri())
    try:
        files = ((path, lines) for path in paths if (lines := lines_of(path)))
        # The first file starts the engine and warms what lasts.
        for turn, (path, lines) in zip(range(count + 1), files, strict=False):
            for kind, seconds in line_typed(wire, path.resolve(), chance.choice(lines)):
                while status(wire)["state"] in ("starting", "loading"):
                    time.sleep(0.2)
                if turn:
                    asked[kind] += 1
                    asked[f"{kind} with text"] += seconds is not None
                    found[kind] += (
                        [seconds] if seconds and (kind != "further_key" or seconds > AT_ONCE) else []
                    )
    finally:
        wire.__exit__()
    print("; ".join(f"{what}: {count}" for what, count in asked.items()))
    return found


def numbers(found: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """Return the numbers of a report: the median of each kind of key, and the time of 95 % of the further keys."""
    medians = {kind: {"value": round(median(took), 2), "n": len(took)} for kind, took in found.items()}
    further = found["further_key"]
    most = quantiles(further, n=20, method="inclusive")[-1]
    return {**medians, "further_key_95": {"value": round(most, 2), "n": len(further)}}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoint", default="coder")
    parser.add_argument("--count", type=int, default=12, help="files")
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    os.environ["DG_LSP_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="dg-")
    try:
        found = measure(given.folder, given.checkpoint, given.count)
    finally:
        stop_all()
        shutil.rmtree(os.environ["DG_LSP_RUNTIME_DIR"], ignore_errors=True)
    report = {
        "model": given.checkpoint,
        "command": f"python -m benchmarks.keys FOLDER --checkpoint {given.checkpoint}",
        "date": date.today().isoformat(),
        "numbers": numbers(found),
    }
    text = json.dumps(report, indent=2)
    print(text)
    if given.report:
        given.report.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
