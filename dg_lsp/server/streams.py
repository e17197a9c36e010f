"""A reader thread in, a writer thread out, and the loop between them.

Holds the hand-over to the loop, the queue to the client, and how the server ends: at `exit`, at the end of its
input, with its parent, or when nobody reads its answers. Knows bytes; knows no method and no document.
"""

import asyncio
import contextlib
import io
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from dg_lsp.server.framing import LIMIT, FrameError, read_frame

if TYPE_CHECKING:
    from dg_lsp.server.protocol import Server

PARENT_CHECK_S = 1.0
# The whole ending may take two seconds. Half a second of it is for the handlers to clean up.
FLUSH_S, LAST_RESORT_S = 1.0, 1.7

_WAITING_FRAMES = 16
_log = logging.getLogger(__name__)


class Inbox:
    """Frames on their way from the reader thread to the event loop.

    Few of them wait at a time: the reader stops reading then, and the client's pipe holds the rest.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._room = threading.Semaphore(_WAITING_FRAMES)
        self._frames: asyncio.Queue[bytes | FrameError | None] = asyncio.Queue()

    def fill(self, stream: BinaryIO) -> None:
        """Read frames until the input ends; the reader thread's work."""
        frame: bytes | FrameError | None = b""
        while frame is not None:
            try:
                frame = read_frame(stream)
            except FrameError as error:
                frame = error
            except (OSError, ValueError):
                frame = None
            self._room.acquire()
            self._put(frame)

    def end(self) -> None:
        """Make `next` say that there is nothing more; any thread may call this."""
        self._put(None)

    async def next(self) -> bytes | FrameError | None:
        """The next frame, or what is wrong with it, or None at the end."""
        frame = await self._frames.get()
        self._room.release()
        return frame

    def _put(self, frame: bytes | FrameError | None) -> None:
        # The loop may be gone already, and then nobody waits for this.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._frames.put_nowait, frame)


class Writer:
    """The way to the client: a queue and a thread, so that a client that does not read stops nobody.

    When more than `limit` bytes wait, or the pipe breaks, the connection is lost: `lost` is called, and what
    is written later is dropped in silence.
    """

    def __init__(self, stream: BinaryIO | io.RawIOBase, lost: Callable[[], None], limit: int = LIMIT) -> None:
        self.closed = False
        self._stream, self._lost, self._limit = stream, lost, limit
        self._waiting = 0
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Hand over `data`; never waits for the client."""
        if self.closed:
            return
        with self._lock:
            # What waits already counts, not what comes: one reply of any size may pass.
            full = self._waiting > self._limit
            self._waiting += len(data)
        if full:
            _log.error("the client reads nothing, and over %d bytes wait; the connection ends", self._limit)
            self._lose()
        else:
            self._queue.put(data)

    def close(self) -> None:
        """Write what waits, for a second at most, and take nothing more."""
        if not self.closed:
            self.closed = True
            self._queue.put(None)
            self._thread.join(FLUSH_S)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[self._stream.write(rest) or 0 :]
            except (OSError, ValueError):
                self._lose()
                return
            with self._lock:
                self._waiting -= len(data)
        with contextlib.suppress(OSError):
            self._stream.close()

    def _lose(self) -> None:
        self.closed = True
        self._lost()


class LastResort:
    """Ends the process when its own ending takes too long: a handler that blocks, a thread that goes on."""

    def __init__(self, code: Callable[[], int]) -> None:
        self._timer = threading.Timer(LAST_RESORT_S, self._leave)
        self._timer.daemon = True
        self._code = code
        self._started = threading.Lock()

    def start(self) -> None:
        """Begin to count, if that has not begun."""
        # The reader thread and the loop may both come here at the same moment.
        if self._started.acquire(blocking=False):
            self._timer.start()

    def cancel(self) -> None:
        """The ending went well."""
        self._timer.cancel()

    def _leave(self) -> None:
        _log.warning("a handler or a thread does not end; the server leaves without it")
        os._exit(self._code())


def serve(server: "Server", stdin: BinaryIO, stdout: BinaryIO) -> int:
    """Speak with the client until it leaves, and return the exit code that the protocol demands.

    From here on, standard output belongs to the protocol alone: what else is printed goes to standard error.
    """
    # The reader, the writer and the loop share one lock with parses; at the usual 5 ms a turn, each message
    # that comes during a parse would wait for several of them.
    sys.setswitchinterval(0.001)
    last_resort = LastResort(server.protocol.status)
    try:
        return asyncio.run(_converse(server, *_take_over(stdin, stdout), last_resort))
    except KeyboardInterrupt:
        return 1
    finally:
        last_resort.cancel()


def _take_over(stdin: BinaryIO, stdout: BinaryIO) -> tuple[BinaryIO, BinaryIO | io.RawIOBase]:
    """Private copies of both pipes; their usual numbers then lead to nothing and to standard error.

    Processes that the server starts inherit neither copy: they can steal no message, corrupt no answer, and
    do not keep the client waiting for the end of a pipe that the server has left.
    """
    try:
        numbers = stdin.fileno(), stdout.fileno()
    except OSError:
        return stdin, stdout
    copies = os.dup(numbers[0]), os.dup(numbers[1])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, numbers[0])
    os.close(nothing)
    os.dup2(2, numbers[1])
    sys.stdout = sys.stderr
    return io.BufferedReader(io.FileIO(copies[0], "rb")), io.FileIO(copies[1], "wb")


async def _converse(
    server: "Server", source: BinaryIO, sink: BinaryIO | io.RawIOBase, last_resort: LastResort
) -> int:
    """The loop: one message after the other, then an ending of two seconds at most."""
    inbox = Inbox(asyncio.get_running_loop())
    writer = Writer(sink, inbox.end)
    protocol = server.protocol
    protocol.set_writer(writer)

    def read() -> None:
        inbox.fill(source)
        # A handler that blocks the loop hides the end of the input from it, but not from this thread.
        last_resort.start()

    threading.Thread(target=read, name="reader", daemon=True).start()
    watch = asyncio.create_task(_watch_parent(server, inbox.end))
    try:
        while protocol.exit_code is None and (frame := await inbox.next()) is not None:
            if isinstance(frame, FrameError):
                protocol.refuse(None, frame.code, str(frame))
            else:
                protocol.handle_body(frame)
            # Each handler runs to its first await before the next message is taken: the snapshot that it
            # takes first is the document that the client saw when it asked, and `exit` is seen at once.
            await asyncio.sleep(0)
    finally:
        last_resort.start()
        watch.cancel()
        await protocol.close()
        writer.close()
    return protocol.status()


async def _watch_parent(server: "Server", end: Callable[[], None]) -> None:
    """Call `end` when the process that the client named as its own is gone."""
    seen = False
    while True:
        await asyncio.sleep(PARENT_CHECK_S)
        alive = _alive(server.process_id)
        if seen and not alive:
            _log.warning("the client's process is gone; the server ends")
            end()
            return
        # A number that was never seen alive belongs to another machine or container, and says nothing.
        seen = seen or alive


def _alive(process: int | None) -> bool:
    # On Windows signal 0 is no question but Ctrl-C; there the end of the input has to do.
    if process is None or process <= 0 or os.name == "nt":
        return False
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
