"""The processor time that next edits cost while one types in a file of more than 2,000 lines.

It is that of a server which is asked after each key, less that of one which is not.
"""

import argparse
import inspect
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.server.wire import Wire, notification, request

URI = "file:///w/long.py"
LONG = inspect.getsource(argparse)
LINE = LONG.count("\n") + 3  # where is typed, after the end
# What is typed there, and as the new name of a parameter.
TYPED = (
    "def narrow(width, height):\n"
    "    if width < height:\n"
    "        return height - width\n"
    "    return step7(width, 2)\n"
)
RENAMED, NAME = "def _get_action_name(argument):", "named_by_the_user"
PER_SECOND = 5  # keys of somebody who types


class Typist:
    """A client with one long file."""

    def __init__(self, wire: Wire, *, asks: bool) -> None:
        self.wire, self.asks, self.version = wire, asks, 1
        wire.initialize()
        document = {"uri": URI, "languageId": "python", "version": 1, "text": LONG}
        wire.send(notification("textDocument/didOpen", {"textDocument": document}))
        wire.ask("begin", "dg-lsp/status", {"uri": URI})

    def spent(self) -> float:
        """The processor time of the server so far."""
        times = psutil.Process(self.wire.process.pid).cpu_times()
        return float(times.user + times.system)

    def put(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Make a change, and ask for the next edit after it; the next change comes at a typist's pace."""
        self.version += 1
        span = [{"line": line, "character": column} for line, column in (start, end)]
        change = {"range": {"start": span[0], "end": span[1]}, "text": text}
        about = {"uri": URI, "version": self.version}
        self.wire.send(
            notification("textDocument/didChange", {"textDocument": about, "contentChanges": [change]})
        )
        line, column = (start[0] + 1, 0) if text == "\n" else (start[0], start[1] + len(text))
        if self.asks:
            params = {"textDocument": {"uri": URI}, "position": {"line": line, "character": column}}
            self.wire.send(request(self.version, "dg-lsp/nextEdit", params))
        time.sleep(1 / PER_SECOND)

    def type(self) -> int:
        """Type a function, and another name for a parameter; how many keys that took."""
        line, column = LINE, 0
        for key in TYPED:
            self.put((line, column), (line, column), key)
            line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
        above, begin = LONG[: LONG.index(RENAMED)].count("\n"), RENAMED.index("(") + 1
        self.put((above, begin), (above, len(RENAMED) - 2), "")
        for number, key in enumerate(NAME):
            self.put((above, begin + number), (above, begin + number), key)
        return len(TYPED) + 1 + len(NAME)


@pytest.mark.slow
def test_next_edits_take_little_of_a_processor_while_one_types(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    taken, keys = dict[bool, float](), 0
    for asks in (False, True):
        with Wire([sys.executable, "-m", "dg_lsp", "--stdio"]) as wire:
            typist = Typist(wire, asks=asks)
            # What is loaded at the first key is not what typing costs.
            for _ in range(3):
                typist.put((LINE - 3, 0), (LINE - 3, 0), "\n")
            before = typist.spent()
            keys = typist.type()
            taken[asks] = typist.spent() - before
            if asks:
                found = wire.answer(typist.version)["result"]["edit"]
                assert found["newText"] == NAME, "the new name has more places"
    more = (taken[True] - taken[False]) / keys
    print(
        f"{keys} keys: {1000 * taken[False] / keys:.1f} ms each, and {1000 * more:.1f} ms for the next edit:"
        f" {100 * more * PER_SECOND:.1f} % of a processor at {PER_SECOND} keys a second"
    )
    assert more * PER_SECOND < 0.1
