"""The line that moves while a user waits: in a terminal, and never in a pipe."""

import os
import pty
import re
import subprocess
import sys
import threading

import pytest

from dg_lsp.cli.engine import teller
from dg_lsp.messages import Status

PROGRAM = """
import sys, time
from dg_lsp.cli.waiting import Waiting
with Waiting("filling a.py::add") as line:
    time.sleep(0.4)
    line.say("filling a.py::add: step 3 [x]")
    print("dg-lsp: a sentence", file=sys.stderr, flush=True)
    time.sleep(1.4)
print("done", file=sys.stderr)
"""


def in_terminal(program: str, **environment: str) -> str:
    """Return all that `program` writes to a terminal that is its stderr."""
    ours, theirs = pty.openpty()
    said = bytearray()

    def read() -> None:
        try:
            while piece := os.read(ours, 4096):
                said.extend(piece)
        except OSError:
            pass  # the program has ended

    reader = threading.Thread(target=read)
    variables = {**os.environ, "TERM": "xterm-256color", **environment}
    child = subprocess.Popen([sys.executable, "-c", program], stderr=theirs, env=variables)
    os.close(theirs)
    reader.start()
    assert child.wait(60) == 0
    reader.join(10)
    os.close(ours)
    return said.decode()


def test_a_terminal_shows_what_runs_and_for_how_long_and_is_left_clean() -> None:
    said = in_terminal(PROGRAM)
    assert "filling a.py::add" in said and "step 3 [x]" in said and "0:00:01" in said
    # What is printed meanwhile is whole, and the line is gone at the end.
    assert "dg-lsp: a sentence" in said and said.rindex("\x1b[2K") < said.rindex("done")
    assert said.rindex("\x1b[?25h") > said.index("\x1b[?25l")


def test_a_pipe_and_a_dumb_terminal_get_nothing_of_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stderr == "dg-lsp: a sentence\ndone\n" and not done.stdout
    assert "filling" not in in_terminal(PROGRAM, TERM="dumb")


def test_what_goes_to_another_program_does_not_go_to_the_terminal() -> None:
    program = PROGRAM.replace(", file=sys.stderr, flush=True", "").replace("1.4", "0.1")
    outer = """import subprocess, sys
done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE)
sys.exit(done.stdout != b"dg-lsp: a sentence\\n")"""
    assert "dg-lsp: a sentence" not in in_terminal(outer.replace("PROGRAM", repr(program)))


TELLING = """
import time
from dg_lsp.cli.waiting import telling
with telling("fetching coder") as tell:
    tell("fetching coder from the hub")
    for number in range(8):
        tell(f"{number} of 8 MB\\r")
        time.sleep(0.15)
    tell("comparing it with its hash")
"""


def test_a_message_that_passes_is_on_the_line_that_moves_alone() -> None:
    said = in_terminal(f"import sys\nsys.stdout = sys.stderr\n{TELLING}")
    assert (
        re.search("[1-7] of 8 MB", said)
        and "\n7 of 8 MB" not in said
        and "comparing it with its hash\r\n" in said
    )


def test_a_pipe_gets_a_message_that_passes_each_ten_seconds_at_most() -> None:
    done = subprocess.run([sys.executable, "-c", TELLING], capture_output=True, text=True, check=True)
    assert (
        done.stdout == "fetching coder from the hub\n0 of 8 MB\ncomparing it with its hash\n"
        and not done.stderr
    )


def test_an_interrupt_leaves_the_terminal_clean() -> None:
    program = PROGRAM.replace("    time.sleep(1.4)", "    raise SystemExit(0)")
    said = in_terminal(program)
    assert said.rindex("\x1b[?25h") > said.index("\x1b[?25l")


def test_the_start_of_an_engine_is_reported_in_few_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    tell = teller()
    tell(Status("starting"))
    for done in range(400):
        now += 0.05
        tell(Status("starting"))
        tell(Status("loading", done / 400))
    tell(Status("ready", 1.0))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "dg-lsp: starting the engine ..."
    assert lines[1:] == ["dg-lsp: loading 50 %"]
    # Another program has started it.
    teller()(Status("loading", 0.4))
    assert capsys.readouterr().err == "dg-lsp: loading 40 %\n"
