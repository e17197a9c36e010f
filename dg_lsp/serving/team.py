"""The engine as a team's server: the application of `app` over TCP and TLS, behind tokens, bounds and a journal.

It runs in the foreground, for a supervisor such as systemd. On SIGTERM it ends what it has begun and takes no more.
"""

import asyncio
import logging
import re
import secrets
import signal
import socket
import ssl
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dg_lsp.checkpoints import digest_of
from dg_lsp.engine.fatal import FatalTexts
from dg_lsp.engine.runtime import runtime_directory
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Draft, Fill
from dg_lsp.serving.app import CLIENT, config_of, make_app, refusal
from dg_lsp.serving.door import ADMIT, Door, Guest, places, raise_limit
from dg_lsp.serving.process import FAILED, STUCK, host
from dg_lsp.serving.service import Service
from dg_lsp.serving.tokens import Tokens, check_file
from dg_lsp.settings import Settings, is_loopback

_EACH, _MOST = 8, 64  # fills under way for one token, and for all
_KEPT = 300  # seconds that a member's connection may wait for its next request
_DRAIN = 30  # seconds that fills have to end after SIGTERM
_BACKLOG = 4096  # connections that the system holds until they are accepted; it may hold fewer
_RETRY = 1.0  # seconds after which a refused client may come again
_LOOK = 1.0  # seconds between two looks at the engine
_SECONDS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # bounds of a histogram
_INFILL, _HEALTH, _READY, _METRICS = "/v1/infill", "/healthz", "/readyz", "/metrics"
_NO_METRICS = "no /metrics, because prometheus_client is not installed; install dg-lsp with its extra server"
_REQUEST_ID = re.compile(r"[\w.-]{1,64}")
_log = logging.getLogger("dg_lsp.model")


@dataclass(frozen=True, slots=True)
class Listening:
    """The address, token file, certificate (PEM) and key of a server; without a certificate it is plain HTTP."""

    tokens: Path
    host: str = "127.0.0.1"
    port: int = 8765
    certificate: Path | None = None
    key: Path | None = None


class Team:
    """The application of `service` for a team, with its checks of each request.

    find: returns the name that a token was made for, None for an unknown one. draining: nothing new is taken.
    """

    def __init__(
        self, service: Service, find: Callable[[str], str | None], metrics: "Metrics | None" = None
    ) -> None:
        self._service, self._find, self._metrics = service, find, metrics
        self._live: Counter[str] = Counter()
        self.draining = False
        routes = [Route(_HEALTH, self._health), Route(_READY, self._ready), Route(_METRICS, self._counts)]
        self._app = make_app(service, routes=routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and write its line in the journal: id, client, path, status and time, never its text."""
        if scope["type"] != "http":
            return
        given, code, began = Headers(scope=scope).get("x-request-id", ""), 0, time.monotonic()
        name = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)

        async def send_with_id(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code, headers = message["status"], MutableHeaders(scope=message)
                headers["x-request-id"] = name
                if CLIENT not in scope:
                    headers["connection"] = "close"  # who has no token keeps no connection
            await send(message)

        try:
            await self._guarded(scope, receive, send_with_id)
        except Exception as error:
            # The message of an error may hold source text, so only the stack is logged.
            stack = "".join(traceback.format_tb(error.__traceback__))
            _log.error("request %s: %s\n%s", name, type(error).__name__, stack)
            if not code:
                await refusal(500, "the server met an error of its own; see its log")(
                    scope, receive, send_with_id
                )
        # The status of a health check says how the server is, and refuses nothing.
        if code >= 400 and self._metrics is not None and scope["path"] not in (_HEALTH, _READY):
            self._metrics.refused(code)
        client, took = scope.get(CLIENT, "-"), (time.monotonic() - began) * 1000
        level = logging.DEBUG if scope["path"] in (_HEALTH, _READY, _METRICS) else logging.INFO
        path = scope["path"] if scope["path"].startswith("/v1/") and code != 404 else "-"
        _log.log(level, "request %s: %s %s %d in %.0f ms", name, client, path, code, took)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the name of its token in the scope, or refuse it.

        An infill is refused while its client, or all of them together, have too many under way. Anybody may ask whether
        the server works.
        """
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        name = self._find(token.strip()) if scheme.lower() == "bearer" and token else None
        if name is not None:
            scope[CLIENT] = name
            scope.get("state", {}).get(ADMIT, lambda: None)()
        elif scope["path"] not in (_HEALTH, _READY):
            said = "its token is unknown" if token else "it has no token"
            await refusal(401, said)(scope, receive, send)
            return
        if scope["path"] != _INFILL:
            await self._app(scope, receive, send)
            return
        client = scope[CLIENT]
        if reason := self._full(client):
            await refusal(*reason, wait=_RETRY)(scope, receive, send)
            return
        self._live[client] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._live[client] -= 1

    def _full(self, client: str) -> tuple[int, str] | None:
        """Return the HTTP status and the sentence with which an infill of `client` is refused; None if it is taken."""
        if self.draining:
            return 503, "the server ends; try again in a moment"
        if self._live.total() >= _MOST:
            return 503, f"the server is busy: {_MOST} fills are under way already; try again later"
        if self._live[client] >= _EACH:
            return (
                429,
                f"the server is busy: {_EACH} fills of {client} are under way already; try again later",
            )
        return None

    async def _health(self, _: Request) -> Response:
        return PlainTextResponse("hangs", 503) if self._service.stuck else PlainTextResponse("ok")

    async def _ready(self, _: Request) -> Response:
        state = "draining" if self.draining else self._service.state
        return JSONResponse({"state": state}, 200 if state in ("ready", "busy", "slow") else 503)

    async def _counts(self, _: Request) -> Response:
        if self._metrics is None:
            return refusal(404, _NO_METRICS)
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def run_server(settings: Settings, listening: Listening, loaded: Callable[[], None] = lambda: None) -> int:
    """Serve the checkpoint of `settings` until SIGTERM or SIGINT; return the exit code.

    loaded: called once the checkpoint is loaded, or cannot be.
    """
    check(listening)
    raise_limit()
    # Beside the files of engines, since a supervisor starts the server again where it was.
    fatal = FatalTexts(runtime_directory() / f"team-{listening.port}.texts")
    return asyncio.run(serve(settings, listening, loaded, fatal))


def check(listening: Listening) -> None:
    """Raise EngineError where tokens or source text could be read on their way, or anybody could come in."""
    check_file(listening.tokens)
    if (listening.certificate is None) != (listening.key is None):
        raise EngineError("a certificate needs its key, and a key its certificate: --certificate and --key")
    if listening.certificate is None and not is_loopback(listening.host):
        raise EngineError(
            f"{listening.host} can be reached from other machines, so this needs TLS: --certificate and --key, or "
            "--host 127.0.0.1 behind a proxy"
        )
    if listening.certificate and listening.key:
        _check_pair(listening.certificate, listening.key)


def _check_pair(certificate: Path, key: Path) -> None:
    """Raise EngineError unless a server can use `certificate` with `key`."""
    for option, path in (("--certificate", certificate), ("--key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise EngineError(
                f"{option} {path} cannot be read ({error.strerror}); name the PEM file, and give the user who runs the "
                "server the right to read it"
            ) from error
    asked = False

    def password() -> str:
        nonlocal asked
        asked = True
        return ""

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password)
    except (ssl.SSLError, ValueError) as error:
        if asked:
            raise EngineError(
                f"{key} has a password, which nobody can type for a server; openssl pkey -in {key} writes it without"
            ) from error
        raise EngineError(
            f"{certificate} and {key} do not belong together, or one of them is damaged ({error}); name a certificate "
            "and its key as PEM files"
        ) from error


async def serve(
    settings: Settings,
    listening: Listening,
    loaded: Callable[[], None] = lambda: None,
    fatal: FatalTexts | None = None,
) -> int:
    """Serve until SIGTERM, SIGINT or the end of the task; return the exit code. fatal: the texts that are not read."""
    service = Service(settings.checkpoint, digest_of(settings.checkpoint), fatal)
    team = Team(service, Tokens(listening.tokens).name_of, _metrics(service))
    # Listen, so that a supervisor sees the process.
    bound = _listen(listening)
    server = _Server(_config(team, listening))
    loop = asyncio.get_running_loop()

    # Drain: finish the fills that have begun.
    def drain() -> None:
        _log.info("ending: %d fills under way have %d s", team._live.total(), _DRAIN)
        team.draining = server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, drain)
    # Load, serve, and look whether the engine still moves.
    scheme = "https" if listening.certificate else "http"
    _log.info("listening at %s://%s:%d", scheme, listening.host, bound.getsockname()[1])
    return await host(service, settings, server, bound, _watch(service, loaded))


async def _watch(service: Service, loaded: Callable[[], None]) -> int:
    """Return the exit code once the engine hangs or could not be loaded; call `loaded` before, or once it is."""
    while True:
        await asyncio.sleep(_LOOK)
        if service.state not in ("starting", "loading"):
            loaded()
        if still := service.stuck:
            _log.error("no step for %.0f s although a request waits; exiting", still)
            service.give_up(f"the engine hung for {still:.0f} s and ends; try again")
            return STUCK
        if service.failed:
            return FAILED


def _config(app: ASGIApp, listening: Listening) -> uvicorn.Config:
    return config_of(
        app,
        Guest,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_DRAIN,
        timeout_keep_alive=_KEPT,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )


def _listen(listening: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # asyncio sends lines at once (TCP_NODELAY) only where the protocol is named; else each answer takes 40 ms longer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listening.host.strip("[]"), listening.port))
        bound.listen(_BACKLOG)
        return bound
    except OSError as error:
        bound.close()
        raise EngineError(
            f"the server cannot listen at {listening.host}:{listening.port} ({error.strerror})"
        ) from error


class Metrics:
    """The counts of one Service, for Prometheus. Names of users and documents are in none of them."""

    def __init__(self, service: Service) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram  # noqa: PLC0415  (an extra)

        self._service, self._registry = service, CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry}
        self._fills = Counter("dg_lsp_fills", "Fills by why they stopped", ["reason"], **own)
        words = "Seconds from a request to its first draft"
        self._first = Histogram("dg_lsp_first_draft_seconds", words, buckets=_SECONDS, **own)
        self._refused = Counter("dg_lsp_refused", "Refused requests", ["code"], **own)
        self._registry.register(self)
        service.on_event = self._count

    def refused(self, code: int) -> None:
        """Count a request that was answered with the HTTP status `code`."""
        self._refused.labels(str(code)).inc()

    def text(self) -> bytes:
        """Return all counts in Prometheus' text format."""
        from prometheus_client import generate_latest  # noqa: PLC0415

        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """Yield the numbers that the Service has of itself; Prometheus' registry calls this."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

        status = self._service.status()
        loaded = status.state in ("ready", "busy", "slow")
        yield GaugeMetricFamily("dg_lsp_loaded", "1 once the checkpoint is loaded", int(loaded))
        yield GaugeMetricFamily("dg_lsp_queue", "Fills that wait for their turn", status.queue)
        yield GaugeMetricFamily("dg_lsp_memory_bytes", "Bytes that the model holds", status.memory)
        yield CounterMetricFamily("dg_lsp_steps", "Steps of denoising, and encoded chunks", status.passes)
        words = "Fills whose document was still encoded from before"
        yield CounterMetricFamily("dg_lsp_prefix_hits", words, status.hits)

    def _count(self, event: Draft | Fill, seconds: float) -> None:
        """Count the first Draft, or the Fill, of a request that came `seconds` ago."""
        if isinstance(event, Fill):
            self._fills.labels(event.reason).inc()
        else:
            self._first.observe(seconds)


def _metrics(service: Service) -> Metrics | None:
    """Return the counts of `service` for Prometheus; None without prometheus_client."""
    try:
        return Metrics(service)
    except ImportError:
        _log.info(_NO_METRICS)
        return None


class _Server(uvicorn.Server):
    """uvicorn's server, whose connections come through a Door, and whose signals are handled here."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections from each of `sockets`."""
        await super().startup([])
        self.servers: list[Any] = [
            Door(listening, self._guest, self.config.ssl, places()) for listening in sockets or ()
        ]

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit`; accept nothing more, however it ends."""
        try:
            await super().serve(sockets)
        finally:
            for door in getattr(self, "servers", ()):
                door.close()

    def _guest(self, door: Door, address: str) -> Guest:
        state = self.lifespan.state
        return Guest(door, address, config=self.config, server_state=self.server_state, app_state=state)
