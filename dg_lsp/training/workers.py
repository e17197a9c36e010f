"""Workers: run one command as several processes that share its work, and catch the signals that end them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def run_processes(count: int) -> int:
    """Run this command as `count` processes of one accelerate group; return the largest exit code (or signal number).

    SIGTERM and SIGINT are passed on to all of them; if one fails, the others are killed.
    """
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
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
    with caught_signals() as received:
        passed_on = False
        while any(worker.poll() is None for worker in workers):
            failed = any(worker.returncode for worker in workers)
            if (received or failed) and not passed_on:
                passed_on = True
                for worker in workers:
                    worker.send_signal(signal.SIGTERM if received else signal.SIGKILL)
            time.sleep(0.2)
    return max(abs(int(worker.returncode)) for worker in workers)


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """A list to which SIGTERM and SIGINT are added when they arrive, instead of ending this process."""
    received: list[int] = []
    before = {
        s: signal.signal(s, lambda number, _: received.append(number))
        for s in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
