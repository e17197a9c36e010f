"""The server's main loop: a reader thread, a writer thread, and the event loop between them.

The server ends at `exit`, at the end of its input, with its parent process, or when nobody reads its answers. Knows
bytes; knows no method and no document.
"""

import asyncio
import contextlib
import gc
import io
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from dg_lsp.server.rpc import watchdog
from dg_lsp.server.rpc.framing import LIMIT, FrameError, read_frame
from dg_lsp.server.rpc.protocol import Server

PARENT_CHECK_S = 1.0  # seconds between two looks at the parent process
# Seconds to write what waits, and until the process is ended by force. The whole ending takes two seconds at most, of
# which handlers have half a second to clean up.
FLUSH_S, LAST_RESORT_S = 1.0, 1.7

_WAITING_FRAMES = 16  # frames that are read ahead
# Threads that read and check texts. Work whose request was cancelled runs on to its end, and each piece of it holds
# several trees of its file, so with more of them memory grows by a fast typist's cancelled keys, and the work for the
# newest one shares Python's lock with theirs. Work that has not begun when it is cancelled never runs.
_WORKERS = 2
_log = logging.getLogger(__name__)


class Inbox:
    """The queue of frames from the reader thread to the event loop.

    If _WAITING_FRAMES of them wait, the reader stops reading, and the rest waits in the client's pipe.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._room = threading.Semaphore(_WAITING_FRAMES)
        self._frames: asyncio.Queue[bytes | FrameError | None] = asyncio.Queue()

    def fill(self, stream: BinaryIO) -> None:
        """Put the frames of `stream` into the queue until it ends; runs in the reader thread."""
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
        """Make `next` return None; any thread may call this."""
        self._put(None)

    async def next(self) -> bytes | FrameError | None:
        """Return the next frame, the FrameError of one that cannot be read, or None at the end."""
        frame = await self._frames.get()
        self._room.release()
        return frame

    def _put(self, frame: bytes | FrameError | None) -> None:
        # The event loop may be closed already; then nobody waits for the frame.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._frames.put_nowait, frame)


class Writer:
    """Writes to the client from a queue in a thread, so that a client that does not read blocks nobody.

    If more than `limit` bytes wait, or the pipe breaks, `lost` is called, and later writes are dropped.
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
        """Queue `data`; never blocks."""
        if self.closed:
            return
        with self._lock:
            # Only the bytes that wait already count, so that one reply may have any size.
            full = self._waiting > self._limit
            self._waiting += len(data)
        if full:
            _log.error(
                "the client does not read, and more than %d bytes are waiting; closing the connection",
                self._limit,
            )
            self._lose()
        else:
            self._queue.put(data)

    def close(self) -> None:
        """Write what waits, for FLUSH_S seconds at most; later writes are dropped."""
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
    """A timer that ends the process by force if a blocking handler or a running thread delays its end."""

    def __init__(self, code: Callable[[], int]) -> None:
        self._timer = threading.Timer(LAST_RESORT_S, self._leave)
        self._timer.daemon = True
        self._code = code
        self._started = threading.Lock()

    def start(self) -> None:
        """Start the timer, if it has not been started."""
        # The reader thread and the event loop may call this at the same time.
        if self._started.acquire(blocking=False):
            self._timer.start()

    def cancel(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def _leave(self) -> None:
        _log.warning("a handler or a thread does not end; the server exits without waiting for it")
        os._exit(self._code())


def serve(server: Server, parent: int = 0) -> int:
    """Serve over standard input and output until the client leaves; return the exit code that the protocol requires.

    parent: the process that has started this one, as it was known first; by default the one that is its parent now.
    From here on standard output carries the protocol only: everything else that is printed goes to standard error.
    """
    # Threads that parse share Python's lock with the reader, the writer and the event loop. With the default switch
    # interval of 5 ms a message that comes during a parse would wait for several turns.
    sys.setswitchinterval(0.001)
    # What was imported stays, so the garbage collector, which holds the lock while it looks, need not look at it again.
    gc.freeze()
    last_resort = LastResort(server.protocol.status)
    try:
        pipes = _take_over(sys.stdin.buffer, sys.stdout.buffer)
        code = asyncio.run(_converse(server, pipes, last_resort, parent or os.getppid()))
    except KeyboardInterrupt:
        code = 1
    finally:
        last_resort.cancel()
    # A thread that a handler has started must not keep the process alive.
    LastResort(lambda: code).start()
    return code


def _take_over(stdin: BinaryIO, stdout: BinaryIO) -> tuple[BinaryIO, BinaryIO | io.RawIOBase]:
    """Return private copies of both pipes; the descriptors 0 and 1 then lead to /dev/null and to standard error.

    Processes that the server starts do not inherit the copies. So they cannot read messages or write into answers, and
    do not keep the pipes open after the server has ended.
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
    server: Server, pipes: tuple[BinaryIO, BinaryIO | io.RawIOBase], last_resort: LastResort, parent: int
) -> int:
    """Handle one message after another; then end within two seconds. Returns the exit code."""
    loop, (source, sink) = asyncio.get_running_loop(), pipes
    loop.set_default_executor(ThreadPoolExecutor(_WORKERS, "text"))
    inbox = Inbox(loop)
    writer = Writer(sink, inbox.end)
    protocol = server.protocol
    protocol.set_writer(writer)

    def read() -> None:
        inbox.fill(source)
        # This thread sees the end of the input even while a handler blocks the event loop.
        last_resort.start()

    threading.Thread(target=read, name="reader", daemon=True).start()
    watches = [
        asyncio.create_task(work) for work in (_watch_parent(server, inbox.end, parent), watchdog.watch())
    ]
    try:
        while protocol.exit_code is None and (frame := await inbox.next()) is not None:
            if isinstance(frame, FrameError):
                protocol.refuse(None, frame.code, str(frame))
            else:
                protocol.handle_body(frame)
            # Each handler runs to its first `await` before the next message is handled, so the snapshot that it takes
            # at its beginning is the document as the client saw it, and `exit` takes effect at once.
            await asyncio.sleep(0)
            await protocol.room()
    finally:
        last_resort.start()
        for watch in watches:
            watch.cancel()
        await protocol.close()
        writer.close()
    return protocol.status()


async def _watch_parent(server: Server, end: Callable[[], None], parent: int) -> None:
    """Call `end` when the client's process, which it named in `initialize`, has ended.

    A client that starts the server itself, as `parent`, may have ended before `initialize` is read.
    """
    seen = False
    while True:
        await asyncio.sleep(PARENT_CHECK_S)
        client = server.process_id
        alive = watchdog.is_alive(client)
        # A process that was never seen alive runs on another machine or in another container.
        seen = seen or alive or server.protocol.client_seen or client == parent
        if seen and client is not None and not alive:
            _log.warning("the client's process has ended; the server exits")
            end()
            return
