"""Requests that are cancelled at once or a moment later, from several windows of one engine."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

from tests.processes import engines, own_runtime, resident
from tests.robustness.row import Row, missed, share
from tests.robustness.window import Window

URI = "file:///w/a.py"
BAR = "every id answered exactly once; memory within 5 %; reply to a cancel p99 20 ms"
GROWN = 1.05
PAUSES = (0.0, 0.0, 0.001, 0.01)  # seconds between a request and its cancel
ROUNDS = 5  # of requests at most; caches that fill up grow in the first ones, and a leak in all


def storm(pairs: int, clients: int = 4) -> Row:
    """`pairs` requests and cancels by `clients` windows of an engine that never ends in time."""
    os.environ["DG_LSP_CHECKPOINT"] = "scripted:50:2"
    with own_runtime() as runtime, ThreadPoolExecutor(clients) as pool:
        windows = [Window() for _ in range(clients)]
        for window in windows:
            window.open(URI, "".join(f"value_{n} = {n}\n" for n in range(100)) + "x = \n")
            window.wait(window.ask("textDocument/inlineCompletion", window.inline(URI, 0)))
        half = pairs // clients // 2
        replies = [t for found in pool.map(_pairs, windows, [half] * clients) for t in found]
        processes, grown = [*(w.wire.process.pid for w in windows), *engines(runtime)], 2 * GROWN
        for _ in range(ROUNDS):
            if grown <= GROWN:
                break
            before = [resident(process) for process in processes]
            replies += [t for found in pool.map(_pairs, windows, [half] * clients) for t in found]
            grown = max(resident(p) / b for p, b in zip(processes, before, strict=True))
        time.sleep(0.5)  # a second answer to an id would come now
        lost = sum(window.not_once() for window in windows)
        codes = [window.close() for window in windows]
    p99 = share(replies, 0.99) * 1000
    return Row(
        "request and cancel storm",
        BAR,
        f"{len(replies):,} pairs, {clients} windows: {lost} ids not answered once; largest process "
        f"{(grown - 1) * 100:+.1f} %; reply p50 {share(replies, 0.5) * 1000:.1f}, p99 {p99:.1f} ms",
        missed(
            (bool(lost), f"{lost} ids not answered exactly once"),
            (grown > GROWN, f"memory grew by {(grown - 1) * 100:.1f} %"),
            (any(codes), f"exit codes {codes}"),
        ),
        missed((p99 > 20, "p99 above 20 ms")),
    )


def _pairs(window: Window, count: int) -> list[float]:
    """The seconds from each cancel to its reply, of `count` requests."""
    rng, took = random.Random(count), []
    at = window.texts[URI].rindex(" = ") - 1
    for _ in range(count):
        # Something new is typed, so that no recent fill answers.
        change = window.edit(URI, at, at + 1, rng.choice("abcdefgh"))
        number = window.ask("textDocument/inlineCompletion", window.inline(URI, at + 4), (change,))
        time.sleep(rng.choice(PAUSES))
        sent = time.monotonic()
        window.tell("$/cancelRequest", {"id": number})
        window.wait(number)
        took.append(max(window.answers[number][0][0] - sent, 0.0))
    return took
