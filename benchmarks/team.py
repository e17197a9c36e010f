"""Editors that type against one team's server over TLS: how many bursts of keys get a fill, and how soon.

    python -m benchmarks.team [--editors 32] [--seconds 60] [--checkpoint NAME]

The server is a process of its own on this machine.
"""

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks import parser_of, spread
from dg_lsp.engine.team import TeamEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Infill
from dg_lsp.serving.tokens import make_token
from dg_lsp.settings import Settings

_FILE = "def total{number}(items, price):\n    count = len(items)\n    "
_LINES = ("total = ", "    if i", "count = ", "print(it")


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--editors", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60, help="how long they do")
    parser.add_argument("--checkpoint", default="embedded", help="what the server serves them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dg-") as name:
        os.environ["DG_LSP_RUNTIME_DIR"] = name
        asyncio.run(_type(Path(name), arguments))


async def _type(folder: Path, arguments: argparse.Namespace) -> None:
    """Let editors type bursts of eight keys, five a second, and wait for the ghost text after each burst."""
    with _server(folder, arguments.checkpoint) as settings:
        tokens = [folder / f"token{number}" for number in range(arguments.editors)]
        for number, path in enumerate(tokens):
            path.write_text(make_token(folder / "tokens", f"editor{number}"))
            path.chmod(0o600)
        engines = [TeamEngine(replace(settings, engine_token_file=str(path))) for path in tokens]
        # Until it is loaded.
        await _ghost(engines[0], _FILE, 0)
        end = time.monotonic() + arguments.seconds
        rows = await asyncio.gather(*(_editor(n, engine, end) for n, engine in enumerate(engines)))
        for engine in engines:
            await engine.close()
    took = [one for row in rows for one in row if one is not None]
    asked = sum(map(len, rows))
    print(
        f"{arguments.editors} editors: {asked} bursts, {len(took)} filled; from the last key {spread(took)}"
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


if __name__ == "__main__":
    main()
