"""A raw client: bytes to a server's standard input, messages from its standard output, no library between."""

import contextlib
import io
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


class NoMessage(AssertionError):
    """The server said nothing in time, or is gone."""


def frame(message: Any) -> bytes:
    """`message` as it stands on the wire; text is taken as a body of its own."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode("ascii")
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def request(msg_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class Wire:
    """One server process; `messages` holds all that it has said so far, `stderr` what it has logged.

    `patience` is how many seconds an answer may take; short where none is expected.
    """

    def __init__(self, command: list[str], *, reading: bool = True, patience: float = PATIENCE) -> None:
        self.patience = patience
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = dict(os.environ, PYTHONPATH=path, PYTHONIOENCODING="utf-8")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        self.messages: list[dict[str, Any]] = []
        self.stray = b""
        self._stderr: list[bytes] = []
        self._incoming: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        if reading:
            self._reader.start()

    # -- to the server

    def send(self, *messages: Any) -> None:
        """All of `messages` in one write; bytes are sent as they are."""
        self.raw(b"".join(m if isinstance(m, bytes) else frame(m) for m in messages))

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # the server, or the test, may have ended
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def ask(
        self, msg_id: Any, method: str, params: Any = None, timeout: float | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.send(request(msg_id, method, params))
        return self.answer(msg_id, timeout)

    def initialize(self, timeout: float = 120, **params: Any) -> dict[str, Any]:
        given = {"processId": None, "rootUri": None, "capabilities": {}, **params}
        reply = self.ask("init", "initialize", given, timeout)
        self.send(notification("initialized", {}))
        return reply

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    # -- from the server

    def read(self, timeout: float | None = None) -> dict[str, Any]:
        """The next message."""
        timeout = self.patience if timeout is None else timeout
        try:
            message = self._incoming.get(timeout=timeout)
        except queue.Empty:
            raise NoMessage(f"nothing within {timeout} s") from None
        if message is None:
            self._incoming.put(None)
            raise NoMessage("the server has closed its output")
        self.messages.append(message)
        return message

    def answer(self, msg_id: Any, timeout: float | None = None) -> dict[str, Any]:
        """The next answer with this id; other messages are kept in `messages`."""
        end = time.monotonic() + (self.patience if timeout is None else timeout)
        while True:
            message = self.read(max(0.01, end - time.monotonic()))
            if "method" not in message and message.get("id", "none") == msg_id:
                return message

    def until(self, method: str, timeout: float | None = None) -> dict[str, Any]:
        """The next message of the server's own with this method."""
        end = time.monotonic() + (self.patience if timeout is None else timeout)
        while (message := self.read(max(0.01, end - time.monotonic()))).get("method") != method:
            pass
        return message

    def rest(self, timeout: float = 0.5) -> list[dict[str, Any]]:
        """What still comes until nothing has come for a while."""
        found: list[dict[str, Any]] = []
        with contextlib.suppress(NoMessage):
            while True:
                found.append(self.read(timeout))
        return found

    def start_reading(self) -> None:
        self._reader.start()

    @property
    def stderr(self) -> str:
        return b"".join(self._stderr).decode("utf-8", "replace")

    def logged(self, text: str, timeout: float = 60) -> bool:
        """Whether `text` comes on standard error in time."""
        end = time.monotonic() + timeout
        while text not in self.stderr and time.monotonic() < end:
            time.sleep(0.01)
        return text in self.stderr

    def wait(self, timeout: float = 60) -> int:
        """The exit code; an AssertionError when the server does not end in time."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server still runs after {timeout} s") from None
        self._collector.join(20)  # its last words may still be on their way
        return code

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream and stream.close()

    def _collect(self) -> None:
        assert isinstance(self.process.stderr, io.BufferedReader)
        while piece := self.process.stderr.read1(1 << 16):
            self._stderr.append(piece)

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline():
                name, _, value = line.partition(b":")
                if name.lower() != b"content-length":
                    self.stray += line
                    continue
                while stream.readline().strip():
                    pass
                self._incoming.put(json.loads(stream.read(int(value))))
        self._incoming.put(None)


def small(**options: Any) -> Wire:
    """The tiny server on our classes."""
    return Wire([sys.executable, str(HERE / "small.py")], **options)


def plain(**options: Any) -> Wire:
    """The same on plain pygls."""
    return Wire([sys.executable, str(HERE / "plain.py")], **{"patience": 0.7, **options})


def both(defect: str) -> list[Any]:
    """Our server, and plain pygls, which must fail the same scenario because of `defect`."""
    mark = pytest.mark.xfail(strict=True, raises=AssertionError, reason=f"pygls: {defect}")
    return [small, pytest.param(plain, marks=mark)]
