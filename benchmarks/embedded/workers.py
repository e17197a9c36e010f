"""Workers: several processes that share the work of one training run on a CPU."""

import os
import signal
import socket
import subprocess
import sys
import time

from dg_lsp.training.loop import caught_signals


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
    command = [sys.executable, "-m", "benchmarks.embedded", *sys.argv[1:]]
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
