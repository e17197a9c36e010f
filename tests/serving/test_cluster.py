"""A team's server as two replicas on a local Ray cluster, seen through Ray's own proxy."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import pytest

from dg_lsp.engine.local import LocalEngine
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.team import TeamEngine
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.serving.tokens import make_token
from dg_lsp.settings import Settings

ray = pytest.importorskip("ray", reason="Ray is not installed here; `make ray` runs these tests")
serve = pytest.importorskip("ray.serve")

from dg_lsp.serving.cluster import build  # noqa: E402  (needs Ray)

EXAMPLES = Path(__file__).parents[2] / "examples" / "team"
# Starting Ray and a deployment takes seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
REQUEST = Infill("total = 1\ncount = ", "\n", "python", "rest_of_line", session="file:///home/me/work/app.py")


@pytest.fixture(scope="module")
def cluster() -> Iterator[int]:
    """A cluster on this machine; the port of its proxy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    yield port
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A file of tokens, and the token in it."""
    path = tmp_path_factory.mktemp("team") / "tokens"
    return path, make_token(path, "alice")


@pytest.fixture
def serving(cluster: int, tokens: tuple[Path, str]) -> Callable[[str], str]:
    """A function that has two replicas serve a checkpoint; it returns their URL."""

    def begin(checkpoint: str) -> str:
        arguments = {"tokens": str(tokens[0]), "checkpoint": checkpoint, "replicas": 2, "threads": 1}
        serve.run(build(arguments), name="dg-lsp", route_prefix="/")
        return f"http://127.0.0.1:{cluster}"

    return begin


def settings_for(url: str, tokens: tuple[Path, str], folder: Path, **others: Any) -> Settings:
    path = folder / "token"
    path.write_text(tokens[1])
    path.chmod(0o600)
    return Settings(engine_url=url, engine_token_file=str(path), **others)


def with_engine(engine: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        try:
            async with asyncio.timeout(120):
                return await work(engine)
        finally:
            await engine.close()

    return asyncio.run(whole())


async def fill_of(engine: Any, request: Infill = REQUEST) -> Fill:
    return [event async for event in engine.infill(request)][-1]


def process_of(url: str, token: str, session: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}", "x-session-id": session}
    return dict(httpx2.get(f"{url}/v1/status", headers=headers).json())


def test_fills_are_those_of_an_engine_in_this_process(
    serving: Callable[[str], str], tokens: tuple[Path, str], tmp_path: Path
) -> None:
    settings = settings_for(serving("embedded"), tokens, tmp_path)
    requests = [
        REQUEST,
        Infill(
            "def add(a, b):\n    ", "\n", "python", "function_body", "    ", seed=3, effort="low", session="b"
        ),
    ]

    async def fills(engine: Any) -> list[tuple[str, float]]:
        found = [await fill_of(engine, request) for request in requests]
        return [(fill.text, round(fill.score, 3)) for fill in found]

    here = with_engine(LocalEngine.open(Settings(checkpoint="embedded", threads=1)), fills)
    assert with_engine(TeamEngine(settings), fills) == here
    assert here[0][0]


def test_a_document_stays_with_its_replica_and_both_are_used(
    serving: Callable[[str], str], tokens: tuple[Path, str]
) -> None:
    url = serving("scripted")
    found = {
        f"doc{n}": {process_of(url, tokens[1], f"doc{n}")["process"] for _ in range(5)} for n in range(16)
    }
    assert all(len(processes) == 1 for processes in found.values())
    assert len(set.union(*found.values())) == 2


def test_who_has_no_token_gets_nothing(serving: Callable[[str], str], tmp_path: Path) -> None:
    url = serving("scripted")
    assert httpx2.get(f"{url}/v1/status").status_code == 401
    assert httpx2.post(f"{url}/v1/infill", json={}).status_code == 401
    settings = settings_for(url, (tmp_path, "not-a-token"), tmp_path)
    with pytest.raises(EngineError, match="token"):
        with_engine(TeamEngine(settings), fill_of)


def test_a_cancel_ends_the_work_on_the_replica_through_the_proxy(
    serving: Callable[[str], str], tokens: tuple[Path, str], tmp_path: Path
) -> None:
    url = serving("scripted:1000:20")
    settings = settings_for(url, tokens, tmp_path)

    def passes() -> list[int]:
        states = {s["process"]: s["passes"] for s in (process_of(url, tokens[1], f"{n}") for n in range(16))}
        return [states[process] for process in sorted(states)]

    async def cancelled(engine: TeamEngine) -> None:
        async with aclosing(engine.infill(REQUEST)) as events:
            seen = 0
            async for event in events:
                assert isinstance(event, Draft)
                if (seen := seen + 1) == 5:
                    break

    with_engine(TeamEngine(settings), cancelled)
    time.sleep(1)
    before = passes()
    time.sleep(1)
    assert passes() == before and sum(before) < 500


def test_a_replica_that_dies_costs_its_request_one_retry(
    serving: Callable[[str], str], tokens: tuple[Path, str], tmp_path: Path
) -> None:
    url = serving("scripted:60:50")
    settings = settings_for(url, tokens, tmp_path)

    async def work(engine: TeamEngine) -> tuple[list[Fill | EngineError], float]:
        began = time.monotonic()
        asked = [
            asyncio.create_task(
                fill_of(engine, Infill("x = ", "\n", "python", "rest_of_line", session=f"{n}"))
            )
            for n in range(6)
        ]
        await asyncio.sleep(1.5)
        os.kill(process_of(url, tokens[1], "0")["process"], signal.SIGKILL)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.sleep(5)  # what a client waits after a failure, at most
        return [*answers, await fill_of(engine)], time.monotonic() - began  # type: ignore[list-item]

    answers, seconds = with_engine(TeamEngine(settings), work)
    # Those of the other replica are undisturbed, and the next request is answered.
    assert sum(isinstance(answer, Fill) for answer in answers[:-1]) >= 1
    assert all(isinstance(answer, Fill | EngineError) for answer in answers), answers
    assert isinstance(answers[-1], Fill) and seconds < 60


def test_beyond_what_one_token_may_ask_the_answer_is_busy_at_once(
    serving: Callable[[str], str], tokens: tuple[Path, str], tmp_path: Path
) -> None:
    settings = settings_for(serving("scripted:200:50"), tokens, tmp_path)

    async def work(engine: TeamEngine) -> tuple[str, float]:
        asked: list[asyncio.Task[Fill]] = []
        try:
            # How soon the replicas have taken the first ones depends on the machine; the fills take ten seconds.
            for _ in range(24):
                began = time.monotonic()
                asked.append(asyncio.create_task(fill_of(engine)))
                await asyncio.wait(asked[-1:], timeout=0.5)
                if asked[-1].done() and isinstance(error := asked[-1].exception(), EngineBusy):
                    return str(error), time.monotonic() - began
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        raise AssertionError("nobody was refused")

    said, seconds = with_engine(TeamEngine(settings), work)
    assert "busy" in said and seconds < 2


def test_a_token_file_or_a_setting_that_is_wrong_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        build({"tokens": str(tmp_path / "missing")})


def test_the_examples_are_what_ray_takes() -> None:
    util = pytest.importorskip("ray.autoscaler._private.util")
    schema = pytest.importorskip("ray.serve.schema")
    yaml = pytest.importorskip("yaml")
    cluster, deployed = (
        yaml.safe_load((EXAMPLES / name).read_text("utf-8")) for name in ("cluster.yaml", "serve.yaml")
    )
    util.validate_config(util.prepare_config(cluster))
    (application,) = schema.ServeDeploySchema.model_validate(deployed).applications
    module, _, name = application.import_path.partition(":")
    assert getattr(sys.modules[module], name) is build


def test_the_overhead_of_the_cluster(
    serving: Callable[[str], str],
    tokens: tuple[Path, str],
    tmp_path: Path,
    runtime: Path,
    record_property: Callable[[str, object], None],
) -> None:
    settings = settings_for(serving("scripted"), tokens, tmp_path)

    async def times(engine: Any) -> float:
        await fill_of(engine)
        found = []
        for _ in range(60):
            began = time.perf_counter()
            await fill_of(engine)
            found.append(time.perf_counter() - began)
        return 1000 * median(found)

    cluster = with_engine(TeamEngine(settings), times)
    resident = with_engine(ResidentEngine(Settings(checkpoint="scripted")), times)
    print(f"median of a fill: through Ray {cluster:.1f} ms, resident {resident:.1f} ms")
    record_property("milliseconds", (cluster, resident))
    assert cluster < 200
