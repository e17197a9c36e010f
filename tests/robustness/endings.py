"""Every way in which a client may leave, in the middle of a fill, and one that stops reading."""

import os
import subprocess
import sys
import threading
import time
from typing import Any

from tests.processes import own_runtime, resident
from tests.robustness.row import Row, complaint, missed
from tests.robustness.window import Window
from tests.server.wire import Wire, frame, notification, request

URI = "file:///w/a.py"
GONE = 2.0  # seconds
MEMORY = 250  # megabytes of a server whose client does not read


def vanishes(window: Window) -> int:
    """Both pipes close."""
    window.wire.end_input()
    assert window.wire.process.stdout is not None
    return window.wire.wait()


def half_a_message(window: Window) -> int:
    """The input ends within a message."""
    window.wire.raw(frame(request(99, "dg-lsp/status", {}))[:-9])
    window.wire.end_input()
    return window.wire.wait()


def exit_at_once(window: Window) -> int:
    """`exit` without `shutdown`."""
    window.tell("exit", None)
    return window.wire.wait()


def as_it_should_be(window: Window) -> int:
    """`shutdown` and `exit`."""
    return window.close()


def parent_dies(window: Window) -> int:
    """The client's process ends, but another one holds the pipes."""
    return window.wire.wait()


ENDINGS = {vanishes: 1, half_a_message: 1, exit_at_once: 1, as_it_should_be: 0, parent_dies: 1}


def endings(times: int) -> Row:
    """Each ending, `times` times."""
    os.environ["DG_LSP_CHECKPOINT"] = "scripted:60:200"
    codes, took, noise = list[str](), list[float](), ""
    with own_runtime():
        for _ in range(times):
            for leave, code in ENDINGS.items():
                parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
                window = Window(processId=parent.pid)
                window.open(URI, "x = \n")
                window.ask("textDocument/inlineCompletion", window.inline(URI, 4))
                # By then the fill runs, and the parent has been seen alive.
                time.sleep(4 if leave is parent_dies else 1.2)
                began = time.monotonic()
                if leave is parent_dies:
                    parent.kill()
                    parent.wait()
                found = leave(window)
                took.append(time.monotonic() - began)
                codes += [f"{leave.__name__}: {found}, not {code}"] if found != code else []
                noise += complaint(window.wire.stderr)
                parent.kill()
                parent.communicate()
        megabytes = deaf()
    return Row(
        "client vanishes, half a message, exit without shutdown; stops reading",
        f"gone within {GONE:.0f} s with the right code; memory bounded",
        f"{len(took)} endings: {len(codes)} wrong codes, at most {max(took):.2f} s; {megabytes:.0f} MB at most "
        "while nobody reads",
        missed(
            (bool(codes), "; ".join(codes)),
            (bool(noise), noise),
            (megabytes > MEMORY, f"{megabytes:.0f} MB"),
        ),
        missed((max(took) > GONE, f"{max(took):.1f} s")),
    )


def deaf() -> float:
    """The most megabytes that a server holds whose client asks 200,000 times and reads nothing."""
    command = [sys.executable, "-P", "-m", "dg_lsp", "--stdio", "--log-level", "error"]
    with Wire(command, reading=False) as wire:
        given: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
        wire.send(request("init", "initialize", given), notification("initialized", {}))
        many = [request(number, "textDocument/hover", None) for number in range(2_000)]
        sender = threading.Thread(target=wire.send, args=many * 100, daemon=True)
        sender.start()
        most, end = 0, time.monotonic() + 30
        while sender.is_alive() and wire.process.poll() is None and time.monotonic() < end:
            most = max(most, resident(wire.process.pid))
            time.sleep(0.05)
    return most / 2**20
