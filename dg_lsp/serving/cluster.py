"""A team's server as replicas on Ray Serve: `serve run dg_lsp.serving.cluster:build checkpoint=small tokens=FILE`.

Each replica is a process with an engine of its own. A document stays with the replica that holds its prefix: the router
hashes the header x-session-id, and continues to the next replica where that one takes no more. Needs `dg-lsp[ray]`.
"""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ray import serve
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter

from dg_lsp.checkpoints import digest_of
from dg_lsp.engine import wire
from dg_lsp.engine.choice import resolve
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Fill, Infill
from dg_lsp.serving.process import open_engine
from dg_lsp.serving.service import Service
from dg_lsp.serving.team import Team
from dg_lsp.serving.tokens import Tokens, check_file
from dg_lsp.settings import from_environment, override

# Requests that a replica works on at a time, and those that wait at the proxy for one; beyond it answers 503.
_ONGOING, _QUEUED = 16, 64
# Seconds between two health checks of a replica, and those that one may take.
_TRIED_EVERY, _TRIED_FOR = 30.0, 60.0
# What a health check fills: a gap of one line in a file of two.
_TRIAL = Infill(
    "total = 1\ncount = ", "\n", "python", "rest_of_line", effort="low", priority="ahead", session="trial"
)


@serve.ingress()
class Replica:
    """One engine after the application of a team's server.

    settings: those that differ from the environment's, by name. tokens: the file of tokens, on each machine.
    """

    async def __init__(self, settings: Mapping[str, Any], tokens: str) -> None:  # type: ignore[misc]  # Ray awaits it
        """Load the engine; if that fails Ray says why in the state of the deployment."""
        chosen = resolve(override(from_environment(), settings))
        self._service = Service(chosen.checkpoint, digest_of(chosen.checkpoint))
        self._team = Team(self._service, Tokens(Path(tokens)).name_of)

        await self._service.load(partial(open_engine, chosen))
        if self._service.failed:
            raise EngineError(self._service.status().why)

    def __serve_build_asgi_app__(self) -> Team:
        """Return the application; Ray calls this once the engine is loaded."""
        return self._team

    async def check_health(self) -> None:
        """Raise EngineError if no gap can be filled; Ray replaces a replica for which this fails or takes too long."""
        if still := self._service.stuck:
            raise EngineError(f"the engine hangs for {still:.0f} s")
        if time.monotonic() - self._service.last_active < _TRIED_EVERY:
            return
        last = b""

        async def keep(line: bytes) -> None:
            nonlocal last
            last = line

        async with asyncio.timeout(_TRIED_FOR):
            await self._service.answer(_TRIAL, keep)
        if not isinstance(wire.event(last.decode("ascii")), Fill):
            raise EngineError("the engine gives no fill")

    async def __del__(self) -> None:
        """End the engine."""
        await self._service.close()


def build(arguments: Mapping[str, Any]) -> serve.Application:
    """Return the application that `serve run` and a config file name.

    arguments: `tokens`, the file of tokens; `replicas`, how many engines, or `least` and `most` of them, between which
    their number follows the requests; `gpus`, how many a replica takes (0); all others are settings, such as
    `checkpoint`.
    """
    left = dict(arguments)
    tokens, gpus = str(left.pop("tokens", "")), float(left.pop("gpus", 0))
    least, most = int(left.pop("least", 1)), int(left.pop("most", 1))
    replicas = int(left.pop("replicas", least))
    check_file(Path(tokens))
    override(from_environment(), left)
    many: dict[str, Any] = {"num_replicas": replicas}
    if most > least:
        scaling = AutoscalingConfig(min_replicas=least, max_replicas=most, target_ongoing_requests=2)
        many = {"autoscaling_config": scaling}
    return (
        serve.deployment(Replica)
        .options(
            name="engine",
            max_ongoing_requests=_ONGOING,
            max_queued_requests=_QUEUED,
            ray_actor_options={"num_gpus": gpus},
            request_router_config=RequestRouterConfig(request_router_class=ConsistentHashRouter),
            health_check_period_s=_TRIED_EVERY,
            health_check_timeout_s=_TRIED_FOR,
            **many,
        )
        .bind(left, tokens)
    )
