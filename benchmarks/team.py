"""What a team's server costs beside the resident engine: whole fills, and keys that cancel the request before.

Run it as `python -m benchmarks.team`. Both engines are scripted, so that nothing but the way there and back is
measured; the server is a process of its own on this machine, over TLS.
"""

import argparse
import asyncio
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.engine.team import TeamEngine
from dg_lsp.filling.engine import EngineBusy, EngineError
from dg_lsp.serving.tokens import make_token
from dg_lsp.settings import Settings
from dg_lsp.text.messages import Infill

# As long as what an editor usually sends.
_REQUEST = Infill("x = 1\n" * 2000, "y = 2\n" * 600, "python", "rest_of_line", session="file:///w/a.py")
_FILE = "def total{number}(items, price):\n    count = len(items)\n    "
_LINES = ("total = ", "    if i", "count = ", "print(it")
_PLACES = 8  # fills of one token that the server takes at a time


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fills", type=int, default=300, help="whole fills, and keys")
    parser.add_argument("--editors", type=int, default=0, help="instead: so many editors that type")
    parser.add_argument("--seconds", type=float, default=60, help="how long they do")
    parser.add_argument("--checkpoint", default="embedded", help="what the server serves them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dg-") as name:
        os.environ["DG_LSP_RUNTIME_DIR"] = name
        if arguments.editors:
            asyncio.run(_type(Path(name), arguments))
        else:
            asyncio.run(_compare(Path(name), arguments.fills))


async def _compare(folder: Path, count: int) -> None:
    with _server(folder, "scripted") as settings:
        engines: dict[str, Any] = {"resident": ResidentEngine(Settings(checkpoint="scripted"))}
        engines["server"] = TeamEngine(settings)
        took = dict[str, list[float]]({name: [] for name in engines})
        for engine in engines.values():
            await engine.start()
            await _fill(engine)
        await asyncio.sleep(0.5)
        # In turns, so that the load of the machine is the same for both.
        for _ in range(count):
            for name, engine in engines.items():
                took[name].append(await _fill(engine))
        _tell("whole fill", took)
        await engines["resident"].stop()
        await _close(engines)
    with _server(folder, "scripted:100:10") as settings:
        local = Settings(checkpoint="scripted:100:10")
        engines = {"resident": ResidentEngine(local), "server": TeamEngine(settings)}
        took = {name: [] for name in engines}
        for engine in engines.values():
            await engine.start()
        await asyncio.sleep(0.5)
        for _ in range(count // 3):
            for name, engine in engines.items():
                took[name].append(await _key(engine))
        _tell("first draft after a key (a step of 10 ms included)", took)
        await engines["resident"].stop()
        await _close(engines)
    # As many lines a second as one model thread may well send.
    with _server(folder, "scripted:60:100") as settings:
        busy = await _overload(settings)
        print(f"busy, beyond {_PLACES} fills: {_row(busy)} ms, n = {len(busy)}")


async def _type(folder: Path, arguments: argparse.Namespace) -> None:
    """Let editors type bursts of eight keys, five a second, and wait for the ghost text after each burst."""
    with _server(folder, arguments.checkpoint) as settings:
        tokens = [folder / f"token{number}" for number in range(arguments.editors)]
        for number, path in enumerate(tokens):
            path.write_text(make_token(folder / "tokens", f"editor{number}"))
            path.chmod(0o600)
        engines = [TeamEngine(replace(settings, engine_token_file=str(path))) for path in tokens]
        # Until it is loaded.
        await _fill(engines[0])
        end = time.monotonic() + arguments.seconds
        rows = await asyncio.gather(*(_editor(n, engine, end) for n, engine in enumerate(engines)))
        await _close({str(n): engine for n, engine in enumerate(engines)})
    took = [one for row in rows for one in row if one is not None]
    asked = sum(map(len, rows))
    print(
        f"{arguments.editors} editors: {asked} bursts, {len(took)} filled; from the last key {_row(took)} ms"
    )


async def _editor(number: int, engine: TeamEngine, end: float) -> list[float | None]:
    """Milliseconds from the last key of each burst to its fill; None where it got none."""
    dice, found = random.Random(number), list[float | None]()
    text = _FILE.format(number=number)
    while time.monotonic() < end:
        await asyncio.sleep(dice.uniform(0, 2))
        typed, line = "", dice.choice(_LINES)
        for key in line:
            typed += key
            work = asyncio.create_task(_ghost(engine, text + typed, number))
            if len(typed) < len(line):
                await asyncio.sleep(0.2)
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        found.append(await work)
        text += line + "1\n    "
    return found


async def _ghost(engine: TeamEngine, prefix: str, number: int) -> float | None:
    request = Infill(prefix, "\n", "python", "rest_of_line", deadline=2.0, priority="ghost")
    began = time.perf_counter()
    try:
        async with aclosing(engine.infill(replace(request, session=f"file:///w/{number}.py"))) as events:
            async for _ in events:
                pass
    except EngineError:
        return None
    return (time.perf_counter() - began) * 1000


async def _fill(engine: Any) -> float:
    began = time.perf_counter()
    async with aclosing(engine.infill(_REQUEST)) as events:
        async for _ in events:
            pass
    return (time.perf_counter() - began) * 1000


async def _key(engine: Any) -> float:
    """Milliseconds to the first draft of a request that the next key, after 60 ms, cancels."""
    began = time.perf_counter()
    async with aclosing(engine.infill(_REQUEST)) as events:
        await anext(events)
        took = (time.perf_counter() - began) * 1000
        await asyncio.sleep(0.06)
    return took


async def _overload(settings: Settings) -> list[float]:
    """Milliseconds to the answer "busy" while all places are taken."""
    windows = [TeamEngine(settings) for _ in range(_PLACES)]
    under_way = [asyncio.create_task(_fill(window)) for window in windows]
    await asyncio.sleep(0.4)
    found = []
    late = TeamEngine(settings)
    await late.start()
    for _ in range(50):
        late._backoff.retry()
        began = time.perf_counter()
        try:
            await _fill(late)
        except EngineBusy:
            found.append((time.perf_counter() - began) * 1000)
    await asyncio.gather(*under_way)
    await _close({str(i): window for i, window in enumerate((*windows, late))})
    return found


@contextmanager
def _server(folder: Path, checkpoint: str) -> Iterator[Settings]:
    """A server over TLS; the settings of who uses it."""
    certificate, key, tokens, mine = (folder / name for name in ("cert.pem", "key.pem", "tokens", "token"))
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    mine.write_text(make_token(tokens, "bench"))
    mine.chmod(0o600)
    command = [sys.executable, "-P", "-m", "dg_lsp", "serve-engine", "--tokens", str(tokens), "--port", "0"]
    command += ["--certificate", str(certificate), "--key", str(key), "--checkpoint", checkpoint]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while not (found := re.search(r"listening at (\S+)", process.stderr.readline())):
            assert process.poll() is None
        # Its journal is thrown away, as a full pipe would stop it.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        try:
            yield Settings(
                checkpoint=checkpoint,
                engine_url=found[1],
                engine_token_file=str(mine),
                engine_ca=str(certificate),
            )
        finally:
            process.terminate()
            process.wait()
            drain.wait()


async def _close(engines: dict[str, Any]) -> None:
    for engine in engines.values():
        await engine.close()


def _tell(what: str, took: dict[str, list[float]]) -> None:
    for name, times in took.items():
        print(f"{what}, {name}: {_row(times)} ms, n = {len(times)}")
    medians = [statistics.median(times) for times in took.values()]
    print(f"{what}, the server over the resident engine: {medians[1] - medians[0]:+.2f} ms of the median")


def _row(times: list[float]) -> str:
    ordered = sorted(times)
    return f"p50 {statistics.median(ordered):.1f}, p95 {ordered[int(len(ordered) * 0.95)]:.1f}, most {ordered[-1]:.1f}"


if __name__ == "__main__":
    main()
