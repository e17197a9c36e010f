"""The JSON-RPC conversation with a client: exactly one answer to each request, from `initialize` to `exit`.

It runs each message's handler as a task that can be cancelled, and holds the requests in flight in both directions.
pygls keeps the registered features and serialises messages. Knows no document, no stream and no engine.
"""

import asyncio
import gc
import inspect
import json
import logging
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from lsprotocol import types as lsp
from lsprotocol.types import ErrorCodes
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol

from dg_lsp.server.rpc import envelope
from dg_lsp.server.rpc.envelope import Message, MsgId, RequestError

Handler = Callable[..., Any]
Result = TypeVar("Result")
# Returns the params of a message, or raises what is wrong with them.
Typed = Callable[[], Any]

# Bytes of a message that are read on the event loop; messages, and large ones, that wait for one before them.
_LARGE, _WAITING, _WAITING_LARGE = 64 << 10, 256, 2
# With more objects in a message the garbage collector, which holds Python's lock, would take long to look at them.
_OBJECTS = 20_000
_HANDLERS_END_S = 0.5  # seconds that cancelled handlers get to clean up
_CANCELLED = (lsp.LSPErrorCodes.RequestCancelled, "the request was cancelled")
_log = logging.getLogger(__name__)


class Conversation(LanguageServerProtocol):
    """The conversation with one client.

    exit_code: None until the client sends `exit`. ignored: errors for which a notification is ignored, with a warning.
    """

    ignored: tuple[type[Exception], ...] = ()

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        self.exit_code: int | None = None
        self._initialized = False
        self._live: dict[MsgId, _InFlight] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # The first one is being prepared, and None once it was cancelled or is handled.
        self._queue: deque[Message | bytes | None] = deque()
        self._thread = ThreadPoolExecutor(1, "messages")

    def handle_body(self, data: bytes) -> None:
        """Handle one message: refuse it, or start its handler's task, or give a reply to the task that waits for it.

        A thread reads a large message, and prepares what takes long. Messages that come meanwhile wait, in order,
        except replies, cancels and the end, which need no text.
        """
        message = data if len(data) > _LARGE else self._parsed(data)
        if message is None:
            return
        if self._queue:
            if not (isinstance(message, Message) and self._overtakes(message)):
                self._queue.append(message)
        elif isinstance(message, bytes) or self.is_slow(message):
            self._queue.append(message)
            self._start(self._catch_up(), copy_context())
        else:
            self._take(message)

    async def room(self) -> None:
        """Wait until not too much waits for a message that is being prepared."""
        while (
            len(self._queue) > _WAITING or sum(isinstance(one, bytes) for one in self._queue) > _WAITING_LARGE
        ):
            await asyncio.sleep(0.01)

    def is_slow(self, message: Message) -> bool:  # noqa: ARG002
        """Return whether what `prepare` does for a message takes long; False unless a subclass knows better."""
        return False

    async def prepare(self, method: str, params: Any) -> None:
        """Do nothing; called for a large or slow message before its handler, while all others wait."""

    def refuse(self, msg_id: MsgId | None, code: int, message: str) -> None:
        """Send an error for a message that is not a request in flight."""
        self._send_data({"jsonrpc": "2.0", "id": msg_id, "error": {"code": code, "message": message}})

    def status(self) -> int:
        """Return the exit code that the protocol requires: 0 after `shutdown`, else 1."""
        return 0 if self._shutdown else 1

    async def close(self) -> None:
        """Cancel all handlers, wait for them for half a second at most, and answer all requests in flight."""
        # If `exit` follows `shutdown` at once, the handler of `shutdown` is still running and is not cancelled.
        ending = {live.task for live in self._live.values() if live.method == lsp.SHUTDOWN}
        for task in self._tasks - ending:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_HANDLERS_END_S)
        for message in self._queue:
            if isinstance(message, Message) and message.id is not None:
                self.refuse(message.id, *_CANCELLED)
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._abandon()

    def send_request(
        self, method: str, params: Any = None, callback: Any = None, msg_id: MsgId | None = None
    ) -> Future[Any]:
        """Send a request to the client; the future gets its typed result or a JsonRpcException.

        `shutdown` cancels the future.
        """
        msg_id = str(uuid4()) if msg_id is None else msg_id
        future = super().send_request(method, params, callback, msg_id)
        # A cancelled future is removed too, so a late reply to it is ignored.
        future.add_done_callback(partial(self._forget, msg_id))
        return future

    def not_taken(self, method: str, body: dict[str, Any]) -> None:
        """Do nothing; called for a notification whose params do not fit their type, before it is dropped."""

    def complete(self, record: dict[str, Any]) -> None:
        """Do nothing; called for each object in params that do not fit their type, to add members that are missing."""

    def _params(self, message: Message) -> Any:
        """Return the typed params of a message; null members are left out if they do not fit as they are."""
        body, message_type = message.body, self.get_message_type(message.method or "")
        try:
            return envelope.read_params(self._converter, message_type, body)
        except Exception:
            params = envelope.without_nulls(body.get("params"), self.complete)
            return envelope.read_params(self._converter, message_type, {**body, "params": params})

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Return the result of `work`, which is done in the thread for messages."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _catch_up(self) -> None:
        """Handle the messages that wait, one after another."""
        while self._queue:
            try:
                await self._first()
            except Exception as error:
                # The others must not wait for ever.
                log_failure("a message", error)
            # It keeps its place, so that the next ones wait until its handler has taken its snapshot.
            self._queue[0] = None
            await asyncio.sleep(0)
            self._queue.popleft()

    async def _first(self) -> None:
        """Handle the first message that waits, if need be once a thread has prepared it."""
        first = self._queue[0]
        if isinstance(first, bytes):
            parsed, typed = await self.in_thread(partial(self._read, first))
            self._queue[0] = parsed
            await self._prepared(parsed, typed)
        elif first is not None and self.is_slow(first):
            await self._prepared(first, self._typed(first))
        elif first is not None:
            self._take(first)

    def _read(self, data: bytes) -> tuple[Message | None, Typed]:
        """Return the large message in `data`, and its params; any thread may call this."""
        with _uncollected() if data.count(b"{") > _OBJECTS else nullcontext():
            message = self._parsed(data)
            return message, self._typed(message) if message else lambda: None

    def _typed(self, message: Message) -> Typed:
        """Read the params of a message once: what `prepare` and the handler get is the same object."""
        try:
            params = self._params(message)
        except Exception as error:
            return partial(_fail_with, error)
        return lambda: params

    async def _prepared(self, message: Message | None, typed: Typed) -> None:
        """Prepare the first message that waits, and handle it unless it was cancelled meanwhile."""
        if message is not None and message.method is not None:
            with suppress(Exception):  # what is wrong is reported by `_take`
                await self.prepare(message.method, typed())
        if (first := self._queue[0]) is not None:
            assert first is message
            self._take(message, typed)

    def _parsed(self, data: bytes) -> Message | None:
        """Return the message in `data`; refuse it and return None if it is none. Any thread may call this."""
        try:
            return envelope.parse_message(data)
        except envelope.Refusal as error:
            self.refuse(error.id, error.code, error.message)
            return None

    def _overtakes(self, message: Message) -> bool:
        """Handle a message that need not wait for those before it; return False if it must."""
        if message.method == lsp.CANCEL_REQUEST:
            params = message.body.get("params")
            wanted = params.get("id") if isinstance(params, dict) else None
            for at, one in enumerate(self._queue):
                if isinstance(one, Message) and one.id == wanted is not None and one.method is not None:
                    self._queue[at] = None
                    self.refuse(one.id, *_CANCELLED)
                    return True
        elif message.method not in (None, lsp.SHUTDOWN, lsp.EXIT):
            return False
        self._take(message)
        return True

    def _take(self, message: Message, typed: Typed | None = None) -> None:
        """Handle one message now; by default its params are read now, too."""
        typed = typed or partial(self._params, message)
        if message.method is None:
            self._take_reply(message)
        elif message.id is None:
            self._take_notification(message.method, message.body, typed)
        else:
            self._take_request(message.id, message.method, typed)

    def _take_request(self, msg_id: MsgId, method: str, typed: Typed) -> None:
        try:
            handler, params = self._admit(msg_id, method, typed)
        except RequestError as error:
            self.refuse(msg_id, error.code, error.message)
            return
        if method == lsp.INITIALIZE:
            self._initialized = True
        elif method == lsp.SHUTDOWN:
            self._shutdown = True
            self._abandon()
        context = copy_context()
        context.run(self._ctx_msg_id.set, msg_id)
        live = self._live[msg_id] = _InFlight(msg_id, method)
        live.task = self._start(self._answer(live, handler, params), context)

    def _admit(self, msg_id: MsgId, method: str, typed: Typed) -> tuple[Handler, Any]:
        """Return the handler and the typed params of a request; raise RequestError if it may not be served now."""
        if msg_id in self._live:
            raise RequestError(ErrorCodes.InvalidRequest, "another request with this id is in flight")
        if self._shutdown:
            raise RequestError(ErrorCodes.InvalidRequest, "the server is shutting down")
        if not self._initialized and method != lsp.INITIALIZE:
            raise RequestError(ErrorCodes.ServerNotInitialized, "the first request must be initialize")
        if self._initialized and method == lsp.INITIALIZE:
            raise RequestError(ErrorCodes.InvalidRequest, "the server is initialized already")
        handler, message_type = self._handler(method), self.get_message_type(method)
        if handler is None or (message_type is not None and not hasattr(message_type, "id")):
            raise RequestError(ErrorCodes.MethodNotFound, f"this server answers no request {method[:100]!r}")
        try:
            return handler, typed()
        except Exception as error:
            raise RequestError(ErrorCodes.InvalidParams, envelope.misfit(error)) from error

    def _take_notification(self, method: str, body: dict[str, Any], typed: Typed) -> None:
        if method == lsp.CANCEL_REQUEST:
            self._cancel(body.get("params"))
            return
        handler, message_type = self._handler(method), self.get_message_type(method)
        serving = self._initialized and not self._shutdown
        if handler is None or hasattr(message_type, "id") or not (serving or method == lsp.EXIT):
            _log.debug("ignored the notification %.100r", method)
            return
        try:
            params = typed()
        except Exception as error:
            _log.warning("ignored a notification %s; %s", method, envelope.misfit(error))
            self.not_taken(method, body)
            return
        self._start(self._run(method, handler, params), copy_context())

    def _cancel(self, params: object) -> None:
        """Answer the request named by `params` as cancelled, at once, and cancel its handler."""
        msg_id = params.get("id") if isinstance(params, dict) else None
        live = self._live.get(msg_id) if isinstance(msg_id, int | str) else None
        if live is not None and live.task is not None:
            self._fail(live, *_CANCELLED)
            live.task.cancel()

    def _take_reply(self, message: Message) -> None:
        """Give a reply of the client to the task that waits for it, if one still does."""
        assert message.id is not None
        body, result_type = message.body, self._result_types.pop(message.id, None)
        future = self._request_futures.pop(message.id, None)
        if future is None or future.done():
            _log.debug("ignored a reply that nobody waits for")
            if not body.keys() & {"result", "error"}:
                self.refuse(message.id, ErrorCodes.InvalidRequest, "this is neither a request nor a reply")
            return
        try:
            future.set_result(envelope.read_result(self._converter, result_type, body))
        except JsonRpcException as error:
            future.set_exception(error)

    def begin(self, method: str, params: Any) -> None:
        """Begin the registered handler of a notification, if there is one, beside the one that runs."""
        if (handler := self.fm.features.get(method)) is not None:
            self._start(self._run(method, handler, params), copy_context())

    def _handler(self, method: str) -> Any:
        return self.fm.builtin_features.get(method) or self.fm.features.get(method)

    def _start(self, work: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
        # The event loop holds only weak references to tasks.
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _answer(self, live: "_InFlight", handler: Handler, params: Any) -> None:
        """Run a request's handler and answer with its result or its error."""
        try:
            self._reply(live, result=await _call(handler, (params,), {}))
        except (asyncio.CancelledError, GeneratorExit):
            self._fail(live, *_CANCELLED)
        except RequestError as error:
            self._fail(live, error.code, error.message)
        except BaseException as error:
            # Not even SystemExit of a handler may end the server. The text of an exception may hold source text or a
            # path, so neither the client nor the log gets it.
            if self._live.get(live.id) is live:
                log_failure(live.method, error)
            reason = f"the handler of {live.method} failed ({type(error).__name__}); see the server's log"
            self._fail(live, ErrorCodes.InternalError, reason)

    async def _run(self, method: str, handler: Handler, params: Any) -> None:
        """Run a notification's handler; a failure is only logged."""
        try:
            await _call(handler, (params,), {})
        except (asyncio.CancelledError, GeneratorExit):
            pass  # by `close`
        except self.ignored as reason:
            _log.warning("ignored a notification %s: %s", method, reason)
        except BaseException as error:
            log_failure(method, error)

    def _fail(self, live: "_InFlight", code: int, message: str) -> None:
        if self._live.get(live.id) is live and live.method == lsp.INITIALIZE:
            self._initialized = False  # the client may send `initialize` again
        self._reply(live, error={"code": code, "message": message})

    def _reply(self, live: "_InFlight", **outcome: Any) -> None:
        """Answer a request and remove it from those in flight; do nothing if it has been answered already."""
        if self._live.get(live.id) is live:
            self._send_data({"jsonrpc": "2.0", "id": live.id, **outcome})
            del self._live[live.id]

    def _abandon(self) -> None:
        """Cancel all requests in flight, those of the client and our own."""
        for live in list(self._live.values()):
            self._cancel({"id": live.id})
        for future in list(self._request_futures.values()):
            future.cancel()

    def _forget(self, msg_id: MsgId, _: Future[Any]) -> None:
        self._request_futures.pop(msg_id, None)
        self._result_types.pop(msg_id, None)

    def _send_data(self, data: Any) -> None:
        """Send one message. pygls logs its text, and reports a failure with another message."""
        plain = envelope.readable(self._converter.unstructure(data))
        body = json.dumps(plain, default=self._serialize_message, allow_nan=False, separators=(",", ":"))
        if self.writer is not None:
            self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body.encode("ascii")))


@dataclass(slots=True, eq=False)
class _InFlight:
    """A request of the client that has no answer yet, and the task of its handler."""

    id: MsgId
    method: str
    task: asyncio.Task[None] | None = None


def _fail_with(error: Exception) -> None:
    raise error


async def _call(handler: Handler, args: Any, kwargs: Any) -> Any:
    """Call a handler and return its result.

    A builtin handler is a generator that yields (handler, args, kwargs) of the registered handlers to call.
    """
    result: Any = handler(*(args or ()), **(kwargs or {}))
    if not inspect.isgenerator(result):
        return await result if inspect.isawaitable(result) else result
    steps: Generator[Any, Any, Any] = result
    value: Any = None
    while True:
        try:
            step = steps.send(value)
        except StopIteration as end:
            return end.value
        value = await _call(*step)


def log_failure(method: str, error: BaseException) -> None:
    """Log that the handler of `method` failed: the kind of `error` and its stack; its message may hold source text."""
    stack = "".join(traceback.format_tb(error.__traceback__))
    _log.error("the handler of %s failed: %s\n%s", method, type(error).__name__, stack)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Have the garbage collector never look at what the block makes: none of it refers to itself."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
