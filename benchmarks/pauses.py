"""By hand: text within 2 s of a pause in typing, and the processor's time for it, while other programs hold the cores.

    python -m benchmarks.pauses [--models coder auto] [--turns 2] [--busy 3] [--seconds 150] [--slower 1] FILE...

Lines of each FILE, which lies alone in a folder, are written again as an editor sends them, a key every 120 to 190 ms.
Each key asks for ghost text and cancels what the one before has asked for. At the beginning of a line, and after some
of the words, it pauses for 2.5 s. A named model is what `auto` was before it changed models by itself. The models take
turns; each turn has engines of its own, and the same keys. On a machine that is busier than the one that is meant, the
typist, the limit and the deadline are as many times as slow.
"""

import argparse
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks import parser_of
from benchmarks.server import inline, opened, typed
from tests.processes import engines, own_runtime
from tests.server.wire import Wire, notification, request

PAUSE, LIMIT = 2.5, 2.0  # seconds of a pause, and those after which text comes too late
KEYS = (0.12, 0.19)
LINES = 8  # that are written at a place
OFTEN = 0.5  # of the words before the end of a line have a pause after them
_WORD = re.compile(r"\w+\W*")
_LOOP = "while True: pass"


@dataclass
class Turn:
    """The pauses of one turn: seconds to the text, None without one; how often it was right.

    answered: the number of those with an answer in time, text or the reason for none, such as that it is unsure.
    worked, lasted: processor seconds of the engines, and seconds of typing. said: the status at the end.
    """

    took: list[float | None] = field(default_factory=list)
    right: int = 0
    answered: int = 0
    worked: float = 0.0
    lasted: float = 0.0
    said: str = ""

    @property
    def in_time(self) -> int:
        """The number of pauses with text in time."""
        return sum(seconds is not None and seconds <= LIMIT for seconds in self.took)


@contextlib.contextmanager
def busy(programs: int) -> Iterator[None]:
    """Run as many programs that hold a core each, for the block."""
    running = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(programs)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


class Typist:
    """Somebody who writes in one file of a server."""

    def __init__(self, wire: Wire, uri: str, text: str, options: Any) -> None:
        self.wire, self.uri, self.slower = wire, uri, options.slower
        self.chance = random.Random(options.seed)
        self.version, self.number, self.answers = 1, 0, dict[Any, tuple[float, list[Any]]]()
        lines = text.split("\n")
        code = [n for n in range(5, len(lines) - LINES) if all(len(one) > 12 for one in lines[n : n + LINES])]
        self.line = self.chance.choice(code)
        self.above, self.intended = lines[self.line - 1], lines[self.line : self.line + LINES]
        left = "\n".join([*lines[: self.line], *lines[self.line + LINES :]])
        opened(wire, left, 1, uri)

    def hear(self, seconds: float) -> None:
        """Take what the server says for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            with contextlib.suppress(AssertionError):
                message = self.wire.read(left)
                if "method" not in message and "id" in message:
                    items = (message.get("result") or {}).get("items", [])
                    self.answers[message["id"]] = time.monotonic(), items

    def key(self, at: tuple[int, int], text: str) -> int:
        """Type `text` at a line and column, and ask for ghost text after it; return the number of the request."""
        line, column = at
        self.version += 1
        typed(self.wire, self.uri, self.version, at, text)
        if self.number:
            self.wire.send(notification("$/cancelRequest", {"id": self.number}))
        self.number += 1
        rest = text.rpartition("\n")[2]
        after = (line + 1, len(rest)) if "\n" in text else (line, column + len(text))
        self.wire.send(request(self.number, "textDocument/inlineCompletion", inline(*after, uri=self.uri)))
        return self.number

    def write(self, turn: Turn, until: float) -> None:
        """Write the lines, and note the pauses, until the time `until`."""
        for offset, line in enumerate(self.intended):
            number = self.line + offset
            indent = line[: len(line) - len(line.lstrip())]
            # The line above is written by then.
            above = self.intended[offset - 1] if offset else self.above
            self.pause(turn, self.key((number - 1, len(above)), "\n" + indent), line[len(indent) :])
            column = len(indent)
            for word in _WORD.findall(line[column:]) if line[column:][:1].isalnum() else [line[column:]]:
                if time.monotonic() > until:
                    return
                for letter in word:
                    asked, column = self.key((number, column), letter), column + 1
                    self.hear(self.chance.uniform(*KEYS) * self.slower)
                if column < len(line) and self.chance.random() < OFTEN:
                    self.pause(turn, asked, line[column:])

    def pause(self, turn: Turn, asked: int, rest: str) -> None:
        """Pause, and note when text came; `rest` is what the line is to have."""
        began = time.monotonic()
        self.hear(PAUSE * self.slower)
        came, items = self.answers.get(asked, (0.0, []))
        took = (came - began) / self.slower
        turn.answered += bool(came) and took <= LIMIT
        turn.took.append(took if items else None)
        if items and took <= LIMIT:
            turn.right += items[0]["insertText"].split("\n")[0].strip() == rest.strip()


def measure(model: str, files: list[Path], options: Any) -> Turn:
    """One turn of `model`."""
    turn, options = Turn(), argparse.Namespace(**vars(options))
    with own_runtime() as runtime, tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        command = [sys.executable, "-m", "dg_lsp", "--stdio", "--checkpoint", model, "--log-level", "error"]
        wire = Wire(command)
        stack.callback(wire.__exit__)
        wire.initialize(
            rootUri=Path(folder).as_uri(), capabilities={"experimental": {"dgLsp": {"status": True}}}
        )
        stack.enter_context(busy(options.busy))
        end = 0.0
        for round_, path in enumerate(files * 9):
            # On the disk there is nothing that text could be found in.
            copy = Path(folder) / f"{round_}_{path.name}"
            copy.touch()
            typist = Typist(wire, copy.as_uri(), path.read_text(encoding="utf-8"), options)
            options.seed += 1
            if not end:
                _wait_until_ready(wire)
                began, before = time.monotonic(), _worked(runtime)
                end = began + options.seconds
            typist.write(turn, end)
            wire.send(notification("textDocument/didClose", {"textDocument": {"uri": typist.uri}}))
            if time.monotonic() > end:
                break
        turn.lasted, turn.worked = time.monotonic() - began, _worked(runtime) - before
        status = wire.ask("status", "dg-lsp/status", {})["result"]
        turn.said = f"{status['name']}: {status.get('choice') or status['why']}"
    return turn


def _wait_until_ready(wire: Wire) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        if wire.ask("state", "dg-lsp/status", {})["result"]["state"] in ("ready", "busy", "slow"):
            return
        time.sleep(0.5)
    raise SystemExit("the engine was not loaded within five minutes")


def _worked(runtime: Path) -> float:
    """The processor seconds that all engines of `runtime` have worked."""
    found = 0.0
    for process in engines(runtime):
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(process).cpu_times()
            found += times.user + times.system
    return found


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--models", nargs="+", default=["coder", "auto"])
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--busy", type=int, default=3, help="other programs that hold a core each")
    parser.add_argument("--seconds", type=float, default=150.0, help="of typing in a turn")
    parser.add_argument("--slower", type=float, default=1.0, help="times that everything lasts as long")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ |= {"DG_LSP_STATISTICS": "off", "DG_LSP_GHOST_DEADLINE": str(2 * options.slower)}
    for _ in range(options.turns):
        for model in options.models:
            turn = measure(model, options.files, options)
            came = [seconds for seconds in turn.took if seconds is not None]
            print(
                f"{model:<12} in time {turn.in_time} of {len(turn.took)}, right in time {turn.right}, "
                f"answered in time {turn.answered}, "
                f"text p50 {statistics.median(came) if came else 0:.1f} s, "
                f"{turn.worked / turn.lasted:.2f} processor seconds a second, load {os.getloadavg()[0]:.1f}; "
                f"{turn.said}",
                flush=True,
            )


if __name__ == "__main__":
    main()
