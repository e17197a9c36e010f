"""Faults of the engine at random moments: what is open is answered, the next fill works, nothing is left behind."""

import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.processes import engines, own_runtime
from tests.robustness.row import Row, complaint, missed
from tests.robustness.window import Window

URI = "file:///w/a.py"
HEALED = 30.0  # seconds
_FILL = 0.6  # seconds; the fault comes at any moment of a fill, and a little before or after it
_EVERYTHING = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
_STOPPED = 60.0  # seconds that an engine has to end itself, on a busy machine
_FRESH = itertools.count()
_TEXT = "".join(f"value_{n} = {n}\n" for n in range(2_000)) + "x = \n"  # large enough to need memory


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def stop(process: int) -> None:
    os.kill(process, signal.SIGSTOP)


def segfault(process: int) -> None:
    os.kill(process, signal.SIGSEGV)


def no_memory(process: int) -> None:
    """Not a page more than it has."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
    resource.prlimit(process, resource.RLIMIT_AS, (pages * resource.getpagesize(), resource.RLIM_INFINITY))


def disk_full(process: int) -> None:
    """Each further word in its log is refused."""
    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def lift(process: int) -> None:
    """Take the limits back, if the process still runs."""
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
        try:
            resource.prlimit(process, kind, _EVERYTHING)
        except ProcessLookupError:
            return


FAULTS: tuple[Callable[[int], None], ...] = (kill, stop, segfault, no_memory, disk_full)


class Harm:
    """The engine of a runtime directory, and the faults done to it so far."""

    def __init__(self, runtime: Path) -> None:
        self._runtime, self.done = runtime, dict.fromkeys((f.__name__ for f in FAULTS), 0)

    def do(self, fault: Callable[[int], None]) -> int:
        """Do `fault` to the engine that runs; its process, 0 if none runs."""
        for process in engines(self._runtime):
            try:
                fault(process)
            except ProcessLookupError:
                continue
            self.done[fault.__name__] += 1
            return process
        return 0


def asked(window: Window) -> int:
    """Ask for ghost text in the document's last line, whose name is new each time; the id of the request.

    A text that was there before would be answered from a fill before, without the engine.
    """
    text = window.texts[URI]
    end = text.rindex(" = ")
    start = text.rindex("\n", 0, end) + 1
    change = window.edit(URI, start, end, f"x_{next(_FRESH)}")
    at = window.texts[URI].rindex(" = ") + len(" = ")
    return window.ask("textDocument/inlineCompletion", window.inline(URI, at, 1), (change,))


def filled(window: Window, timeout: float) -> bool:
    """Whether a request for new ghost text gets some."""
    return bool(window.wait(asked(window), timeout)["result"]["items"])


def faults(count: int, silence: float | None = None, seed: int = 1) -> Row:
    """`count` faults, of all kinds in turn, while one window fills and another one has typed.

    silence: how long windows wait for a silent engine; None for as long as a user's.
    """
    os.environ |= {"DG_LSP_CHECKPOINT": "scripted:20:20", "DG_LSP_PREFIX_BYTES": "100000"}
    rng, healing, next_works, orphans = random.Random(seed), list[float](), 0, 0
    with own_runtime() as runtime:
        harm = Harm(runtime)
        windows = [Window(silence=silence) for _ in range(2)]
        for window in windows:
            window.open(URI, _TEXT)
            assert filled(window, 60)
        for number in range(count):
            windows = windows[::-1]
            began, worked = _one(windows, harm, FAULTS[number % len(FAULTS)], rng.uniform(0, _FILL))
            healing.append(began)
            next_works += worked
            orphans += len(engines(runtime)) > 1
        lost = sum(window.not_once() for window in windows)
        same = all(window.same_text(URI) for window in windows)
        noise = "".join(complaint(window.wire.stderr) for window in windows)
        codes = [window.close() for window in windows]
        left = _left(runtime)
    del os.environ["DG_LSP_PREFIX_BYTES"]
    kinds = ", ".join(f"{name.replace('_', ' ')} {times}" for name, times in harm.done.items())
    return Row(
        "engine: kill -9, SIGSTOP, segfault, no memory, no disk for its log, at random moments",
        "each open request answered; next fill works; no orphan, no leaked lock, other windows undisturbed",
        f"{sum(harm.done.values())} faults ({kinds}): {lost} unanswered, the next fill worked {next_works} times, "
        f"{orphans} times two engines, {left} left; healed after {max(healing):.1f} s at most",
        missed(
            (lost > 0, f"{lost} unanswered"),
            (next_works < count, f"{count - next_works} next fills failed"),
            (orphans + left > 0, f"{orphans} orphans, {left} left"),
            (not same, "a window's text is wrong"),
            (bool(noise), noise),
            (any(codes), f"exit codes {codes}"),
        ),
        missed((max(healing) > HEALED, f"healed only after {max(healing):.0f} s")),
    )


def _left(runtime: Path) -> int:
    """How many engines run on when all have been told to stop and had time to."""
    command = [sys.executable, "-P", "-m", "dg_lsp", "engine", "stop", "--all"]
    subprocess.run(command, check=False, capture_output=True, timeout=300)
    end = time.monotonic() + _STOPPED
    while (left := len(engines(runtime))) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def _one(
    windows: list[Window], harm: Harm, fault: Callable[[int], None], moment: float
) -> tuple[float, bool]:
    """One fault, `moment` seconds into a fill: the seconds until all windows fill again, and whether each did."""
    working, other = windows
    number = asked(working)
    time.sleep(moment)
    process, began = harm.do(fault), time.monotonic()
    working.wait(number, 90)
    if process:
        lift(process)
    worked = [filled(window, 90) for window in (other, working)]
    return time.monotonic() - began, all(worked)
