"""Editors that type against two replicas on a local Ray cluster, one of which is killed in the middle.

    .venv-ray/bin/python -m benchmarks.cluster --editors 32 --seconds 300
    .venv-ray/bin/python -m benchmarks.cluster --editors 16 --seconds 60 --checkpoint embedded --alive [--any-replica]

Each editor has a token and a document of its own, asks at random moments (a Poisson process), cancels a third of its
requests at the first draft, and wants a word that nobody else wants. Prints how many were answered, with what, how
long that took, and how many found their document encoded already (with a model, and --alive). Needs `dg-lsp[ray]`.
"""

import argparse
import asyncio
import os
import random
import signal
import socket
import tempfile
import time
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import ray
from ray import serve

from dg_lsp.bench.score import quantile
from dg_lsp.engine.remote import TeamEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.serving.cluster import Replica, build
from dg_lsp.serving.tokens import make_token
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Fill, Infill

_PROCESSORS = 4  # that Ray counts with, more than there are


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--editors", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--every", type=float, default=4.0, help="mean seconds between two requests of one")
    parser.add_argument("--checkpoint", default="scripted:10:30")
    parser.add_argument("--alive", action="store_true", help="kill no replica")
    parser.add_argument(
        "--any-replica", action="store_true", help="Ray's own router, which knows no document"
    )
    given = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory(prefix="dg-") as name, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
        free.close()
        tokens = Path(name) / "tokens"
        files = [_token(tokens, number) for number in range(given.editors)]
        ray.init(num_cpus=_PROCESSORS, include_dashboard=False, log_to_driver=False)
        try:
            serve.start(http_options={"host": "127.0.0.1", "port": port})
            arguments = {
                "tokens": str(tokens),
                "checkpoint": given.checkpoint,
                "replicas": 2,
                "threads": 1,
            }
            serve.run(_unrouted(arguments) if given.any_replica else build(arguments), name="dg-lsp")
            asyncio.run(_type(f"http://127.0.0.1:{port}", files, given))
        finally:
            serve.shutdown()
            ray.shutdown()


def _unrouted(arguments: dict[str, Any]) -> serve.Application:
    """What `build` makes, without its router."""
    return (
        serve.deployment(Replica)
        .options(name="engine", num_replicas=arguments["replicas"], max_ongoing_requests=16)
        .bind(
            {name: arguments[name] for name in ("checkpoint", "threads")},
            arguments["tokens"],
        )
    )


def _token(tokens: Path, number: int) -> Path:
    path = tokens.with_name(f"token{number}")
    path.write_text(make_token(tokens, f"editor{number}"))
    path.chmod(0o600)
    return path


async def _type(url: str, files: list[Path], given: argparse.Namespace) -> None:
    seen, end = _Seen(), time.monotonic() + given.seconds
    engines = [TeamEngine(Settings(engine_url=url, engine_token_file=str(file))) for file in files]
    editors = [
        asyncio.create_task(_editor(number, engine, given.every, end, seen))
        for number, engine in enumerate(engines)
    ]
    if not given.alive:
        await asyncio.sleep(given.seconds / 2)
        victim = (await _status(url, files[0], "0"))["process"]
        os.kill(victim, signal.SIGKILL)
        print(f"killed the replica {victim}", flush=True)
    await asyncio.gather(*editors)
    took = sorted(seen.took)
    print(
        f"{len(files)} editors, {given.seconds:.0f} s: {dict(seen.ends)}; p50 {1000 * quantile(took, 0.5):.0f}, p95 "
        f"{1000 * quantile(took, 0.95):.0f}, most {1000 * took[-1]:.0f} ms"
    )
    replicas = dict[int, dict[str, Any]]()
    for number in range(64):
        status = await _status(url, files[0], f"look{number}")
        replicas[status["process"]] = status
    hits = sum(status["hits"] for status in replicas.values())
    asked = seen.ends["answered"] + seen.ends["cancelled"]
    print(
        f"{len(replicas)} replicas: {hits} of {asked} requests found their document encoded, {hits / max(asked, 1):.1%}"
    )


@dataclass(slots=True)
class _Seen:
    """How the requests ended, and the seconds of those that were answered."""

    ends: Counter[str] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)


async def _editor(number: int, engine: TeamEngine, every: float, end: float, seen: "_Seen") -> None:
    """Ask until `end`."""
    dice, turn = random.Random(number), 0
    base = Infill(
        "".join(f"value_{line} = compute({number}, {line})\n" for line in range(40)),
        "\n",
        "python",
        "rest_of_line",
        session=f"file:///w/{number}.py",
        priority="ghost",
    )
    while time.monotonic() < end:
        await asyncio.sleep(dice.expovariate(1 / every))
        turn += 1
        word = f"word_{number}_{turn}"
        request, began = replace(base, prefix=base.prefix + "x = w", endings=(word,)), time.perf_counter()
        try:
            async with aclosing(engine.infill(request)) as events:
                async for event in events:
                    if not isinstance(event, Fill) and dice.random() < 0.03:
                        seen.ends["cancelled"] += 1
                        break
                    if isinstance(event, Fill):
                        right = event.text.startswith(word) or not event.text
                        seen.ends["answered" if right else "crossed"] += 1
                        seen.took.append(time.perf_counter() - began)
        except EngineError as error:
            seen.ends[f"failed: {error}"] += 1
    await engine.close()


async def _status(url: str, token: Path, session: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token.read_text()}", "x-session-id": session}
    async with httpx2.AsyncClient(trust_env=False) as client:
        return dict((await client.get(f"{url}/v1/status", headers=headers)).json())


if __name__ == "__main__":
    main()
