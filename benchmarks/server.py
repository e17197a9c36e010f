"""Measures the server by hand: start, memory, cancelled requests, starts at once, kills, overhead, share of fills.

    python -m benchmarks.server [start|cancel|together|kill|overhead|share ...]

Each part prints one line for each number. Run it on an idle machine; a fresh runtime directory is used.
"""

import argparse
import asyncio
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dg_lsp.bench.files import find_heldout
from dg_lsp.engine.local import LocalEngine
from dg_lsp.filling.fill import Outcome, fill_gap
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import find_gap, find_gaps
from tests.processes import engines
from tests.server.wire import Wire, notification, request

URI = "file:///w/a.py"
LINES = "".join(f"value_{n} = compute({n}, other={n})\n" for n in range(10_000))


def server(engine: str, **params: Any) -> Wire:
    os.environ["DG_LSP_CHECKPOINT"] = engine
    wire = Wire([sys.executable, "-m", "dg_lsp", "--stdio", "--log-level", "error"])
    wire.initialize(**params)
    return wire


def opened(wire: Wire, text: str, version: int = 1, uri: str = URI) -> None:
    document = {"uri": uri, "languageId": "python", "version": version, "text": text}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))


def inline(line: int, character: int, kind: int = 2, uri: str = URI) -> dict[str, Any]:
    at = {"line": line, "character": character}
    return {"textDocument": {"uri": uri}, "position": at, "context": {"triggerKind": kind}}


def spread(name: str, values: list[float], unit: str = "ms") -> None:
    ranked = sorted(values)
    p95 = ranked[min(int(len(ranked) * 0.95), len(ranked) - 1)]
    print(
        f"{name}: p50 {statistics.median(values):.1f}, p95 {p95:.1f}, most {ranked[-1]:.1f} {unit}, n = {len(values)}"
    )


def status(wire: Wire) -> dict[str, Any]:
    return wire.ask(f"s{time.monotonic()}", "dg-lsp/status", {}, 20)["result"]  # type: ignore[no-any-return]


def start() -> None:
    times = []
    for _ in range(6):
        before = time.perf_counter()
        wire = server("scripted")
        times.append((time.perf_counter() - before) * 1000)
        wire.__exit__()
    spread("start to initialize answered (first run left out)", times[1:])
    wire = server("scripted")
    opened(wire, LINES)
    wire.ask(1, "textDocument/inlineCompletion", inline(9_999, 4), 20)
    proc = Path(f"/proc/{wire.process.pid}")
    fields = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    print(f"RSS with 10,000 lines open, after a request: {int(fields['VmRSS'].split()[0]) / 1024:.1f} MB")
    print(f"torch mapped: {'torch' in (proc / 'maps').read_text()}")
    wire.__exit__()


def cancel() -> None:
    for engine, pairs, pause in (("scripted:50:2", 2000, 0.004), ("embedded", 200, 0.15)):
        wire = server(engine)
        opened(wire, LINES[:4000] + "x = \n")
        line = LINES[:4000].count("\n")
        wire.ask("warm", "textDocument/inlineCompletion", inline(line, 4), 90)
        answers: dict[Any, int] = {}
        replies, beyond = [], []
        for number in range(pairs):
            # Typing something new keeps recent fills from answering.
            span = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 5}}
            change = {"range": span, "text": f"{chr(97 + number % 26)} = {number % 7}"}
            document = {"uri": URI, "version": number + 2}
            wire.send(
                notification(
                    "textDocument/didChange", {"textDocument": document, "contentChanges": [change]}
                ),
                request(number, "textDocument/inlineCompletion", inline(line, 4)),
            )
            time.sleep(pause * (number % 3))
            before = time.perf_counter()
            wire.send(notification("$/cancelRequest", {"id": number}))
            wire.answer(number, 10)
            replies.append((time.perf_counter() - before) * 1000)
            if number % 10 == 0:
                passes = status(wire)["passes"]
                time.sleep(0.3)
                beyond.append(status(wire)["passes"] - passes)
        wire.rest(0.5)
        for message in wire.messages:
            if "method" not in message and isinstance(message.get("id"), int):
                answers[message["id"]] = answers.get(message["id"], 0) + 1
        once = sum(count == 1 for count in answers.values())
        codes = [m.get("error", {}).get("code") for m in wire.messages if isinstance(m.get("id"), int)]
        print(f"{engine}: {once} of {pairs} ids answered exactly once, {codes.count(-32800)} by -32800")
        spread(f"{engine}: reply to a cancel", replies)
        print(f"{engine}: passes after a close: most {max(beyond)}, n = {len(beyond)}")
        wire.__exit__()


def together() -> None:
    counts, served, asked = [], 0, 0
    for number in range(20):
        stop_all()
        with ThreadPoolExecutor(4) as pool:
            wires = list(pool.map(lambda _: server("scripted"), range(2 + number % 3)))
        for wire in wires:
            opened(wire, "x = \n")
            wire.send(request(1, "textDocument/inlineCompletion", inline(0, 4)))
        served += sum(bool(wire.answer(1, 30)["result"]["items"]) for wire in wires)
        asked += len(wires)
        counts.append(len({status(wire)["process"] for wire in wires}))
        counts[-1] = max(counts[-1], len(engines(Path(os.environ["DG_LSP_RUNTIME_DIR"]))))
        for wire in wires:
            wire.__exit__()
    print(f"2 to 4 servers at once, 20 times: engines {sorted(set(counts))}, served {served} of {asked}")


def kill() -> None:
    answered = again = 0
    for number in range(20):
        wire = server("scripted:40:20")
        opened(wire, f"x{number} = \n")
        wire.send(request(1, "textDocument/inlineCompletion", inline(0, len(f"x{number} = "))))
        time.sleep(0.6 if number else 1.0)
        found = engines(Path(os.environ["DG_LSP_RUNTIME_DIR"]))
        for process in found:
            os.kill(process, signal.SIGKILL)
        answered += "result" in wire.answer(1, 5)
        again += bool(wire.ask(2, "textDocument/inlineCompletion", inline(0, 4), 20)["result"]["items"])
        wire.__exit__()
    left = len(engines(Path(os.environ["DG_LSP_RUNTIME_DIR"])))
    print(
        f"kill -9 in a fill, 20 times: answered {answered}, next fill works {again}, engines left at the end {left}"
    )


def overhead() -> None:
    """The same requests in this process and through server, wire and engine process, alternating.

    The last line leaves out the model's own time, which differs by some per cent between two runs of one fill.
    """
    files = [path for _, path in zip(range(40), heldout(), strict=False)]
    local = LocalEngine.open(Settings(threads=1, ghost_deadline=0))
    wire = server("embedded", initializationOptions={"ghostDeadline": 0, "threads": 1, "debounce": 0})
    opened(wire, "x = \n")
    wire.ask("warm", "textDocument/inlineCompletion", inline(0, 4), 90)
    here, there, model_here, model_there = [], [], [], []
    settings = Settings(threads=1)

    async def alone(document: Document, at: int) -> float:
        milliseconds = 0.0
        async for event in fill_gap(local, document, find_gap(document, at), settings):
            if isinstance(event, Outcome):
                milliseconds = event.fill.milliseconds
        return milliseconds

    loop = asyncio.new_event_loop()
    for number, (document, line, column) in enumerate(files):
        at = document.line_starts[line] + column
        uri = f"file:///w/{number}.py"
        opened(wire, document.text, uri=uri)
        for place in (False, True) if number % 2 else (True, False):
            before = time.perf_counter()
            if place:
                model_here.append(loop.run_until_complete(alone(document, at)))
                here.append((time.perf_counter() - before) * 1000)
            else:
                wire.ask(number, "textDocument/inlineCompletion", inline(line, column, uri=uri), 60)
                there.append((time.perf_counter() - before) * 1000)
                model_there.append(status(wire)["milliseconds"])
    spread("in this process", here)
    spread("through the server", there)
    spread("difference, request by request", [t - h for h, t in zip(here, there, strict=True)])
    beside_here = [whole - model for whole, model in zip(here, model_here, strict=True)]
    beside_there = [whole - model for whole, model in zip(there, model_there, strict=True)]
    spread(
        "difference beside the model's own time",
        [t - h for h, t in zip(beside_here, beside_there, strict=True)],
    )
    loop.run_until_complete(local.close())
    wire.__exit__()


def share() -> None:
    """Invoked requests at line ends of held-out files, and bodies of their functions made stubs."""
    wire = server("embedded")
    filled = several = bodies = functions = 0
    places = [place for _, place in zip(range(60), heldout(), strict=False)]
    for number, (document, line, column) in enumerate(places):
        uri = f"file:///w/{number}.py"
        opened(wire, document.text, uri=uri)
        items = wire.ask(number, "textDocument/inlineCompletion", inline(line, column, 1, uri), 60)["result"][
            "items"
        ]
        filled += bool(items)
        several += len({item["insertText"] for item in items}) >= 2
        target = {"uri": uri, "name": next((g.name for g in find_gaps(document, 0, len(document.data))), "")}
        if target["name"]:
            functions += 1
            params = {"command": "dg-lsp.fill", "arguments": [target]}
            reply = wire.ask(f"b{number}", "workspace/executeCommand", params, 60)
            bodies += bool(reply.get("result", {}).get("edit"))
    print(f"invoked at line ends: {filled} of {len(places)} got a fill, {several} at least two distinct ones")
    print(f"bodies by command: {bodies} of {functions} got a fill")
    wire.__exit__()


def heldout() -> Any:
    """Documents of held-out files, each with a line whose assigned value is cut off, and that place."""
    for found_file in find_heldout().documents:
        data = found_file.data
        lines = data.decode("utf-8").split("\n")
        for number in range(len(lines) // 2, len(lines)):
            head, found, rest = lines[number].partition(" = ")
            if found and rest and "(" not in head and len(data) < 40_000:
                lines[number] = head + found
                text = "\n".join(lines)
                yield (
                    Document(found_file.uri, "python", 1, text.encode()),
                    number,
                    len(lines[number].encode()),
                )
                break


def stop_all() -> None:
    subprocess.run(
        [sys.executable, "-m", "dg_lsp", "engine", "stop", "--all"], capture_output=True, check=False
    )


PARTS = {f.__name__: f for f in (start, cancel, together, kill, overhead, share)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    asked = parser.parse_args().parts
    os.environ["DG_LSP_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="dg-")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        for name in asked or PARTS:
            PARTS[name]()
    finally:
        stop_all()
        shutil.rmtree(os.environ["DG_LSP_RUNTIME_DIR"], ignore_errors=True)
