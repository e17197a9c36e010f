"""Several windows that start in the same moment, with an editor that tells its settings late."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

from tests.processes import engines, own_runtime
from tests.robustness.row import Row, missed
from tests.robustness.window import Window

URI = "file:///w/a.py"


def together(times: int, seed: int = 1) -> Row:
    """2 to 8 windows at once, `times` times, each of which wants ghost text at once."""
    os.environ["DG_LSP_CHECKPOINT"] = "scripted"
    rng = random.Random(seed)
    most = served = asked = lost = 0
    for number in range(times):
        count = (2, 8)[number] if number < 2 else rng.randint(2, 8)
        with own_runtime() as runtime, ThreadPoolExecutor(count) as pool:
            windows = list(
                pool.map(lambda late: Window(late=late), [rng.uniform(0, 0.5) for _ in range(count)])
            )
            for window in windows:
                window.open(URI, "x = \n")
            numbers = [w.ask("textDocument/inlineCompletion", w.inline(URI, 4)) for w in windows]
            for window, one in zip(windows, numbers, strict=True):
                served += bool(window.wait(one)["result"]["items"])
            asked += count
            processes = {window.status()["process"] for window in windows}
            most = max(most, len(processes), len(engines(runtime)))
            lost += sum(window.not_once() for window in windows)
            for window in windows:
                window.close()
    return Row(
        "2 to 8 windows start at once, settings told late",
        "one engine, all served",
        f"{times} times: {most} engine at most, {served} of {asked} windows served",
        missed(
            (most != 1, f"{most} engines"),
            (served < asked, f"{asked - served} not served"),
            (lost > 0, f"{lost} ids not answered once"),
        ),
    )
