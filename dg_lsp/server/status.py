"""The status that the client gets: the state of the engine, the reason, and the result of the last request.

Knows the engine's Status; knows no protocol type and starts nothing.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import dg_lsp
from dg_lsp.engine.client import name_of_state
from dg_lsp.messages import Status

_EVERY = 0.1  # seconds between two notifications about the last request
_BETWEEN = 0.3  # seconds in which a client that shows a longer text asks again, so that more is written
# The fields that stay true of an engine whatever it does.
_LASTING = (
    *("checkpoint", "digest", "device", "milliseconds", "steps"),
    *("wire", "package", "python", "torch", "process"),
)
IDLE = "no engine is running; the first request starts it"


@dataclass(frozen=True, slots=True)
class Last:
    """The result of the last request for ghost text or a fill: an offer, or `why` there was none.

    chance, source: those of the fill that was offered. note: both in words for the user. files: the uris of the files
    that candidates for it were found in.
    """

    uri: str
    offered: bool
    why: str
    milliseconds: float
    chance: float | None = None
    source: str = ""
    note: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences that are made for each status. use: how ghost text was used. choice: which model writes it, and why."""

    use: Callable[[], str] = lambda: ""
    choice: Callable[[], str] = lambda: ""


class StatusBoard:
    """The newest Status of the engine and the newest Last, sent to the client with `send` when they change.

    engine: None before the first status of the engine. checkpoint: the one that the settings name.
    """

    def __init__(
        self, send: Callable[[dict[str, Any]], None], checkpoint: str, sentences: Sentences = Sentences()
    ) -> None:
        self._send, self._sentences = send, sentences
        self._watchers: list[Callable[[Status], None]] = []
        self.checkpoint = checkpoint
        self._timer: asyncio.TimerHandle | None = None
        self._sent = 0.0
        self._growing = 0
        self.engine: Status | None = None
        self.last: Last | None = None

    def engine_changed(self, status: Status) -> None:
        """Keep the engine's new `status`, send it, and pass it to those who watch."""
        for watch in list(self._watchers):
            watch(status)
        self.engine = self._completed(status)
        self._send_now()

    def begin(self, checkpoint: str) -> None:
        """Forget the engine; one with `checkpoint` replaces it."""
        self.checkpoint, self.engine = checkpoint, None
        self._send_now()

    @contextmanager
    def watched_by(self, watch: Callable[[Status], None]) -> Iterator[None]:
        """Call `watch` with each new status of the engine while the block runs."""
        self._watchers.append(watch)
        try:
            yield
        finally:
            self._watchers.remove(watch)

    def record(self, last: Last) -> None:
        """Keep the result of a request and send it: at once, or 0.1 seconds after the last notification."""
        self.last = last
        self._send_soon()

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Say that more is coming below the ghost text that is shown, while the block runs."""
        self._growing += 1
        self._send_soon()
        try:
            yield
        finally:
            self._growing -= 1
            self._send_soon(_BETWEEN)

    def payload(self, found: Status | None, off: str = "") -> dict[str, Any]:
        """Return the object for the client.

        found: the status of the engine, None if none runs. off: why the document that the client asks about gets
        nothing; empty if it does.
        """
        # Without an answer the engine is being started, or it has failed.
        engine = self.engine if self.engine and self.engine.state in ("starting", "failed") else None
        status = self._completed(found) if found else engine
        state = "off" if off else status.state if status else "idle"
        why = off or (_why(status) if status else IDLE)
        name = f"off here: {off}" if off else name_of_state(status) if status else state
        last = asdict(self.last) if self.last else None
        fields = asdict(status or Status("ready", checkpoint=self.checkpoint))
        own = {"state": state, "name": name, "why": why, "version": dg_lsp.__version__, "last": last}
        said = {"use": self._sentences.use(), "choice": self._sentences.choice()}
        return {**fields, **own, **said, "growing": self._growing > 0}

    def _completed(self, status: Status) -> Status:
        """Return `status` with the lasting fields of the same engine, which a change of its state leaves out."""
        known = self.engine
        other = known is not None and status.checkpoint not in ("", known.checkpoint)
        if known is None or other or status.state in ("starting", "failed"):
            return status
        return replace(
            status, **{n: getattr(known, n) for n in _LASTING if not getattr(status, n) and getattr(known, n)}
        )

    def _send_soon(self, pause: float = 0.0) -> None:
        """Send the newest status after `pause` seconds, and at most every _EVERY seconds."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._sent + _EVERY, loop.time() + pause), self._send_now)

    def _send_now(self) -> None:
        """Send the newest status, with everything that a timer would send later."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._sent = asyncio.get_running_loop().time()
        self._send(self.payload(self.engine))


def _why(status: Status) -> str:
    """Return the sentence that explains `status`; empty where all is well."""
    if status.state == "loading":
        return f"the model is {name_of_state(status)}"
    return "starting the engine" if status.state == "starting" else status.why
