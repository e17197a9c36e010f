"""Bytes in and out: broken headers, absurd lengths, clients that do not read, and every way to end."""

import argparse
import asyncio
import contextlib
import io
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.cli import serve as cli
from dg_lsp.cli.main import main
from dg_lsp.server.rpc.framing import LIMIT, FrameError, read_frame
from dg_lsp.server.rpc.streams import Inbox, Writer
from tests.server.wire import HERE, ROOT, NoMessage, Wire, both, frame, notification, request, small


def frames(data: bytes, limit: int = 100) -> list[Any]:
    """All that is read from `data`: bodies, and error codes for what cannot be taken."""
    stream, found = io.BytesIO(data), list[Any]()
    while True:
        try:
            body = read_frame(stream, limit)
        except FrameError as error:
            assert str(error).count(";") == 1
            found.append(error.code)
            continue
        if body is None:
            return found
        found.append(body)


GOOD = b"Content-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (GOOD + GOOD, [b"{}", b"{}"]),
        (b"content-LENGTH:2\r\n\r\n{}", [b"{}"]),
        (b"  Content-Length \t:  2 \t\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 2\n\n{}", [b"{}"]),
        (b"\r\n\r\n" + GOOD, [b"{}"]),
        (b"Content-Type: x; charset=utf-8\r\nContent-Length: 2\r\nX-Content-Length: 7\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 0\r\n\r\n" + GOOD, [b"", b"{}"]),
        (b"Content-Length: 3\r\n\r\n{}", []),
        (b"Content-Length: 3", []),
        (b"Content-Length: 3\r\n", []),
        (b"Content-Type: x\r\n\r\n" + GOOD, [-32700, b"{}"]),
        (b'Content-Type: x\r\n\r\n{"method":1}' + GOOD, [-32700, b"{}"]),
        (b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}" + GOOD, [-32700, b"{}"]),
        (b"Content-Length: -2\r\n\r\n" + GOOD, [-32700, b"{}"]),
        (b"Content-Length: 0x2\r\n\r\n" + GOOD, [-32700, b"{}"]),
        (b"Content-Length: \xd9\xa2\r\n\r\n" + GOOD, [-32700, b"{}"]),
        (b"Content-Length:\r\n\r\n" + GOOD, [-32700, b"{}"]),
        (b"Content-Length: 101\r\n\r\n" + b"x" * 101 + GOOD, [-32600, b"{}"]),
        (b"Content-Length: 1000000000000\r\n\r\n" + GOOD, [-32600, b"{}"]),
        (b"Content-Length: 100000000000000000000\r\n\r\n{}" + GOOD, [-32600, b"{}"]),
        (b"Content-Length: " + b"9" * 6000 + b"\r\n\r\n" + GOOD, [-32600, b"{}"]),
        (b"Content-Length: 101\r\n\r\n" + b"x" * 50, [-32600]),
        (b"x" * 100_000 + b"\r\n\r\n" + GOOD, [-32700, b"{}"]),
        (b"\xff\x00\x01\n\n" + GOOD, [-32700, b"{}"]),
    ],
)
def test_frames(data: bytes, expected: list[Any]) -> None:
    """pygls' defects 4 and 14."""
    assert frames(data) == expected


def test_a_line_without_an_end_is_not_kept() -> None:
    class Watched(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert 0 < size <= 1 << 16
            return super().readline(size)

    with pytest.raises(FrameError):
        read_frame(Watched(b"x" * 1_000_000 + b"\r\n\r\n"))


def test_junk_between_messages_loses_none_of_them() -> None:
    rng = random.Random(5)
    junk = [
        b"\r\n",
        b"\n",
        b"hello\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        b"{}\n\n",
        b"X: y\r\n\r\n",
        b'{"a":1}',
    ]
    for _ in range(300):
        data, sent = b"", []
        for number in range(rng.randrange(1, 8)):
            data += b"".join(rng.choices(junk, k=rng.randrange(3)))
            # What comes right before a header must end its line, or be no header itself.
            data += b"" if data.endswith((b"\n", b"}")) else b"\r\n\r\n"
            sent.append(b"%d" % number)
            data += b"Content-Length: 1\r\n\r\n" + sent[-1]
        found = [item for item in frames(data) if isinstance(item, bytes)]
        assert found == sent, data


def test_a_large_body_is_read_away_without_being_kept() -> None:
    size = 3 * LIMIT

    class Endless(io.RawIOBase):
        """The body's bytes, made when they are asked for."""

        left, header, most = size, b"Content-Length: %d\r\n\r\n" % size, 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            piece, self.header = self.header[: len(buffer)], self.header[len(buffer) :]
            if not piece:
                self.most = max(self.most, len(buffer))
                piece = b"x" * min(len(buffer), self.left)
                self.left -= len(piece)
            buffer[: len(piece)] = piece
            return len(piece)

    raw = Endless()
    stream = io.BufferedReader(raw)
    with pytest.raises(FrameError, match="larger than"):
        read_frame(stream)
    assert raw.left == 0
    assert raw.most <= 1 << 20
    assert read_frame(stream) is None


def test_the_reader_stops_when_nobody_takes_its_frames() -> None:
    taken = 0

    class Counting(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            nonlocal taken
            taken += 1
            return super().readline(-1 if size is None else size)

    async def work() -> list[Any]:
        inbox = Inbox(asyncio.get_running_loop())
        threading.Thread(target=inbox.fill, args=(Counting(GOOD * 1000),), daemon=True).start()
        await asyncio.sleep(0.2)
        assert taken < 50
        return [await inbox.next() for _ in range(1001)]

    assert asyncio.run(work()) == [b"{}"] * 1000 + [None]


# -- the writer


def pipe_writer(lost: Callable[[], None], limit: int = LIMIT) -> tuple[int, Writer]:
    reading, writing = os.pipe()
    return reading, Writer(os.fdopen(writing, "wb", buffering=0), lost, limit)


def test_what_is_written_arrives_in_order_and_then_the_end() -> None:
    reading, writer = pipe_writer(lambda: None)
    for number in range(1000):
        writer.write(b"%d\n" % number)
    writer.close()
    writer.write(b"late")
    with os.fdopen(reading, "rb") as stream:
        assert stream.read().split() == [b"%d" % number for number in range(1000)]


def test_a_broken_pipe_is_noticed_once_and_later_writes_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    lost = threading.Event()
    reading, writer = pipe_writer(lost.set)
    os.close(reading)
    writer.write(b"x")
    assert lost.wait(60)
    for _ in range(100):
        writer.write(b"x")
    writer.close()
    assert writer.closed
    assert caplog.text == ""


def test_a_client_that_does_not_read_loses_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    lost: list[bool] = []
    reading, writer = pipe_writer(lambda: lost.append(True), limit=1 << 20)
    began = time.monotonic()
    for _ in range(100):
        writer.write(b"x" * 100_000)
    assert time.monotonic() - began < 60  # nobody ever reads
    writer.close()
    assert lost == [True]
    assert caplog.text.count("the client does not read") == 1
    os.close(reading)


def test_closing_waits_for_a_second_at_most() -> None:
    reading, writer = pipe_writer(lambda: None)
    writer.write(b"x" * 1_000_000)
    began = time.monotonic()
    writer.close()
    assert 0.9 < time.monotonic() - began < 60  # nobody ever reads
    os.close(reading)


# -- a server's whole life


@pytest.mark.parametrize("length", [b"1000000000000", b"100000000000000000000"])
@pytest.mark.parametrize("start", both("it takes the length at its word and exits (4)"))
def test_an_absurd_length_ends_nothing(start: Callable[[], Wire], length: bytes) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(b"Content-Length: " + length + b"\r\n\r\n")
        assert wire.ask(1, "test/sleep", {"seconds": 0})["result"] == "slept"
        assert any(m.get("id", 0) is None and m["error"]["code"] == -32600 for m in wire.messages)


@pytest.mark.parametrize("start", both("it knows one spelling of one header only (14)"))
def test_header_names_have_no_case(start: Callable[[], Wire]) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(
            frame(request(1, "test/sleep", {"seconds": 0})).replace(b"Content-Length: ", b"content-length:")
        )
        assert wire.answer(1)["result"] == "slept"


@pytest.mark.parametrize("start", both("it writes the protocol where prints go"))
def test_a_stray_print_does_not_reach_the_client(start: Callable[[], Wire]) -> None:
    """What is printed, also by children, is told on standard error."""
    with start() as wire:
        wire.initialize()
        assert wire.ask(1, "test/print")["result"] == "printed"
        assert wire.ask(2, "test/sleep", {"seconds": 0})["result"] == "slept"
        assert wire.stray == b""
        for stray in ("print", "write", "child"):
            assert wire.logged(f"a stray {stray}")


@pytest.mark.parametrize("start", both("it writes in the loop (13)"))
def test_answers_that_nobody_reads_stop_nobody(start: Callable[..., Wire]) -> None:
    with start(reading=False) as wire:
        wire.send(request("init", "initialize", {"processId": None, "rootUri": None, "capabilities": {}}))
        wire.send(notification("initialized", {}))
        sender = threading.Thread(
            target=wire.send,
            args=[request(n, "test/big", {"size": 1000}) for n in range(3000)],
            daemon=True,
        )
        sender.start()
        sender.join(max(3, wire.patience))
        assert not sender.is_alive(), "the server stopped reading"
        wire.start_reading()
        assert len(wire.answer(2999)["result"]["text"]) == 1000


def test_a_client_that_never_reads_is_left() -> None:
    with small(reading=False) as wire:
        wire.send(request("init", "initialize", {"processId": None, "rootUri": None, "capabilities": {}}))
        wire.send(*(request(n, "test/big", {"size": 10_000_000}) for n in range(10)))
        assert wire.wait(120) == 1
        assert wire.stderr.count("the client does not read") == 1
        assert "Traceback" not in wire.stderr


def test_a_flood_is_answered_and_keeps_memory() -> None:
    with small() as wire:
        wire.initialize()
        with contextlib.suppress(FileNotFoundError):
            before = _resident(wire.process.pid)
            big = frame(notification("test/nothing", {"text": "x" * 10_000_000}))
            for _ in range(30):
                wire.raw(big)
            assert wire.ask(1, "test/sleep", {"seconds": 0})["result"] == "slept"
            assert _resident(wire.process.pid) - before < 250 << 20


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


# Whether the client said `shutdown` before; that plain pygls does right.
SHUT = [False, True]
# Seconds in which a server ends on a busy machine; one that waits for its handlers takes half a minute and more.
QUICK = 20


def left(wire: Wire) -> tuple[int, float]:
    """The exit code, and how long the server took to end."""
    began = time.monotonic()
    code = wire.wait(min(QUICK + 5, max(4, wire.patience)))
    return code, time.monotonic() - began


@pytest.mark.parametrize("shut", SHUT)
def test_the_end_of_the_input(shut: bool) -> None:
    """The code says whether the client took its leave."""
    with small() as wire:
        wire.initialize()
        if shut:
            wire.ask(1, "shutdown")
        wire.end_input()
        code, seconds = left(wire)
        assert code == (0 if shut else 1)
        assert seconds < QUICK
        assert wire.stderr == ""


@pytest.mark.parametrize("shut", SHUT)
def test_exit(shut: bool) -> None:
    with small() as wire:
        wire.initialize()
        # Also when both come at once, and though the input stays open.
        wire.send(*([request(1, "shutdown")] if shut else []), notification("exit"))
        code, seconds = left(wire)
        assert code == (0 if shut else 1)
        assert seconds < QUICK
        assert wire.stderr == ""
        if shut:
            assert wire.answer(1)["result"] is None


@pytest.mark.parametrize("start", both("it returns 0 also to a client that has not said shutdown (10)"))
@pytest.mark.parametrize("ending", ["input", "exit"])
def test_a_client_that_did_not_say_shutdown(start: Callable[[], Wire], ending: str) -> None:
    with start() as wire:
        wire.initialize()
        if ending == "input":
            wire.end_input()
        else:
            wire.send(notification("exit"))
        assert wire.wait() == 1


def test_exit_before_initialize() -> None:
    with small() as wire:
        wire.send(notification("exit"))
        assert wire.wait() == 1


@pytest.mark.parametrize(
    ("handler", "ending"),
    [
        ("test/sleep", "input"),
        ("test/sleep", "exit"),
        ("test/stubborn", "exit"),
        ("test/block", "input"),
        ("test/thread", "exit"),
        ("test/thread", "input"),
        ("test/busy", "exit"),
        ("test/busy", "input"),
    ],
)
def test_a_running_handler_does_not_keep_the_server(handler: str, ending: str) -> None:
    """One that waits, one that will not be cancelled, one that blocks, one in a thread, one whose thread computes."""
    with small() as wire:
        wire.initialize()
        wire.send(request(1, handler, {"seconds": 30}))
        time.sleep(0.2)
        if ending == "input":
            wire.end_input()
        else:
            wire.send(notification("exit"))
        code, seconds = left(wire)
        assert code == 1
        assert seconds < QUICK
        assert "Traceback" not in wire.stderr
        if handler != "test/block":
            assert wire.answer(1)["error"]["code"] == -32800
            assert wire.rest() == []


@pytest.mark.parametrize("start", both("it waits for its threads, and writes megabytes of tracebacks (11)"))
def test_a_running_handler_and_exit_after_shutdown(start: Callable[[], Wire]) -> None:
    with start() as wire:
        wire.initialize()
        wire.send(request(1, "test/block", {"seconds": 30}))
        time.sleep(0.2)
        wire.send(request(2, "shutdown"), notification("exit"))
        wire.end_input()
        _, seconds = left(wire)
        assert seconds < QUICK
        assert "Traceback" not in wire.stderr


def test_the_parent_is_watched() -> None:
    with (
        small() as wire,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent,
    ):
        wire.initialize(processId=parent.pid)
        with pytest.raises(NoMessage, match="nothing within"):
            wire.read(4)  # it has been seen alive by then
        parent.kill()
        parent.wait()
        assert wire.wait() == 1
        assert "the client's process has ended" in wire.stderr


# A client that starts a server, sends `initialize` once it answers, and is killed at once.
CLIENT = """
import os, subprocess, sys
from tests.server.wire import frame, notification, request
source, sink, answers, output = map(int, sys.argv[2:])
subprocess.Popen([sys.executable, sys.argv[1]], stdin=source, stdout=output)
os.write(sink, frame(request("early", "shutdown")))
os.read(answers, 1)
start = dict(processId=os.getpid(), rootUri=None, capabilities={})
os.write(sink, frame(request("init", "initialize", start)) + frame(notification("initialized", {})))
os.kill(os.getpid(), 9)
"""


def test_a_client_that_dies_before_initialize_is_read_takes_the_server_along() -> None:
    """Both pipes of the server stay open."""
    pipes = *os.pipe(), *os.pipe()
    program = [sys.executable, "-c", CLIENT, str(HERE / "small.py"), *map(str, pipes)]
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    with subprocess.Popen(program, stderr=subprocess.PIPE, pass_fds=pipes, env=environment) as one:
        assert one.stderr is not None
        # The input ends at last, so that a server that runs on ends then.
        late = threading.Timer(20, os.close, [pipes[1]])
        late.start()
        said = one.stderr.read().decode()
        late.cancel()
    for end in pipes:
        with contextlib.suppress(OSError):
            os.close(end)
    assert "the client's process has ended" in said


def test_a_client_that_dies_right_after_initialize_takes_the_server_along() -> None:
    with (
        small() as wire,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent,
    ):
        wire.initialize(processId=parent.pid)
        parent.kill()
        parent.wait()
        assert wire.wait() == 1


def test_a_client_that_died_before_the_server_was_ready_takes_it_along() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Wire([sys.executable, str(HERE / "small.py"), str(gone.pid)]) as wire:
        wire.initialize(processId=gone.pid)
        assert wire.wait() == 1


def test_the_parent_is_known_before_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[int]()

    def run(arguments: argparse.Namespace) -> int:
        found.append(arguments.parent)
        return 0

    monkeypatch.setattr(cli, "run", run)
    assert main(["serve"]) == 0 and found == [os.getppid()]


def test_a_process_that_was_never_seen_says_nothing() -> None:
    with small() as wire:
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        wire.initialize(processId=gone.pid)
        time.sleep(1.5)
        assert wire.ask(1, "test/sleep", {"seconds": 0})["result"] == "slept"


def test_the_handler_sees_the_document_that_the_client_saw() -> None:
    """Three messages in one write: the request's snapshot is the document between the two changes."""
    with small() as wire:
        wire.initialize()
        opened = {"uri": "file:///a", "languageId": "python", "version": 1, "text": "one"}
        wire.send(notification("textDocument/didOpen", {"textDocument": opened}))

        def changed(version: int, text: str) -> dict[str, Any]:
            document = {"uri": "file:///a", "version": version}
            return notification(
                "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
            )

        for number in range(20):
            asked = request(number, "test/text", {"uri": "file:///a", "seconds": 0.05})
            wire.send(changed(2 * number, "two"), asked, changed(2 * number + 1, "three"))
        for number in range(20):
            found = wire.answer(number)["result"]
            assert found == {"text": "two", "version": 2 * number, "language": "python"}


def test_work_that_nobody_waits_for_any_more_does_not_pile_up() -> None:
    """A thread runs on when its request is cancelled: of thirty that a fast typist cancels two do, six did."""
    with small() as wire:
        wire.initialize()
        threads = Path(f"/proc/{wire.process.pid}/task")
        before = len(list(threads.iterdir()))
        for number in range(30):
            wire.send(request(number, "test/thread", {"seconds": 2}))
            wire.send(notification("$/cancelRequest", {"id": number}))
            assert wire.answer(number)["error"]["code"] == -32800
        assert len(list(threads.iterdir())) <= before + 2
        # Those that had not begun are gone.
        assert wire.ask(30, "test/thread", {"seconds": 0}, timeout=20)["result"] is None
