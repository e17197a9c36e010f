"""One command as several processes that share its work, and signals that end them in good order."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def side_by_side(count: int) -> int:
    """This very command `count` times, one of accelerate's processes each, until all have ended.

    A signal goes to all of them; where one fails the others are ended.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "true",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    command = [sys.executable, "-m", "dg_lsp", *sys.argv[1:]]
    workers = [
        subprocess.Popen(command, env={**os.environ, **shared, "RANK": str(n), "LOCAL_RANK": str(n)})
        for n in range(count)
    ]
    with until_told() as told:
        passed_on = False
        while any(worker.poll() is None for worker in workers):
            failed = any(worker.returncode for worker in workers)
            if (told or failed) and not passed_on:
                passed_on = True
                for worker in workers:
                    worker.send_signal(signal.SIGTERM if told else signal.SIGKILL)
            time.sleep(0.2)
    return max(abs(int(worker.returncode)) for worker in workers)


@contextmanager
def until_told() -> Iterator[list[int]]:
    """A list that holds the signal once SIGTERM or SIGINT came."""
    told: list[int] = []
    before = {
        s: signal.signal(s, lambda number, _: told.append(number)) for s in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
