"""Measures the server by hand: start, memory, cancelled requests, pauses of the event loop.

    python -m benchmarks.server [start] [cancel] [pauses]

Each part prints one line for each number. Run it on an idle machine; a fresh runtime directory is used. A pause is the
processor time of one callback of the event loop, so it is the same on a busy machine.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import parser_of, spread
from tests.server.test_loop import LINE, SENT, Message, changed, files, inserted, longest
from tests.server.test_loop import opened as opening
from tests.server.wire import HERE, Wire, notification, request

URI = "file:///w/a.py"
LINES = "".join(f"value_{n} = compute({n}, other={n})\n" for n in range(10_000))


def server(engine: str, **params: Any) -> Wire:
    os.environ["DG_LSP_CHECKPOINT"] = engine
    wire = Wire([sys.executable, "-m", "dg_lsp", "--stdio", "--log-level", "error"])
    wire.initialize(**params)
    return wire


def opened(wire: Wire, text: str, version: int = 1, uri: str = URI, language: str = "python") -> None:
    document = {"uri": uri, "languageId": language, "version": version, "text": text}
    wire.send(notification("textDocument/didOpen", {"textDocument": document}))


def typed(wire: Wire, uri: str, version: int, place: tuple[int, int], text: str) -> None:
    """Put `text` in at a line and column of the document `uri`, which is at `version` then."""
    at = {"line": place[0], "character": place[1]}
    change = {"range": {"start": at, "end": at}, "text": text}
    params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}
    wire.send(notification("textDocument/didChange", params))


def inline(line: int, character: int, kind: int = 2, uri: str = URI) -> dict[str, Any]:
    at = {"line": line, "character": character}
    return {"textDocument": {"uri": uri}, "position": at, "context": {"triggerKind": kind}}


def status(wire: Wire) -> dict[str, Any]:
    return wire.ask(f"s{time.monotonic()}", "dg-lsp/status", {}, 20)["result"]  # type: ignore[no-any-return]


def start() -> None:
    times = []
    for _ in range(6):
        before = time.perf_counter()
        wire = server("scripted")
        times.append((time.perf_counter() - before) * 1000)
        wire.__exit__()
    print(f"start to initialize answered (first run left out): {spread(times[1:])}")
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
        print(f"{engine}: reply to a cancel: {spread(replies)}")
        print(f"{engine}: passes after a close: most {max(beyond)}, n = {len(beyond)}")
        wire.__exit__()


def pauses() -> None:
    """Print the longest pause while a client deletes files, changes a text in many places and opens documents."""
    folder = Path(tempfile.mkdtemp(prefix="dg-pauses-"))
    deleted = files(8_000, 3)
    for change in deleted["params"]["changes"][:3_000]:
        path = folder / Path(change["uri"]).name
        path.write_text(LINE * 20)
        change["uri"] = path.as_uri()
    measured: dict[str, list[Message]] = {
        "8,000 deletions, 3,000 of indexed files": [deleted],
        "20,000 changes": SENT["20,000 changes"],
        "a key in each of 150 documents, opened while the engine loads": [
            *(opening(LINE * 300, f"file:///w/{n}.py") for n in range(150)),
            *(changed(2, inserted(9, 0, "y"), uri=f"file:///w/{n}.py") for n in range(150)),
        ],
    }
    for number, (what, messages) in enumerate(measured.items()):
        found = []
        for _ in range(5):
            with Wire(
                [sys.executable, str(HERE / "paced.py"), "embedded" if number == 2 else "scripted"]
            ) as wire:
                wire.initialize(
                    workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}] if number == 0 else []
                )
                if number == 0:
                    # The folder is read once a request was answered.
                    own = (folder / "own.py").as_uri()
                    opened(wire, "x = \n", uri=own)
                    assert wire.ask("first", "textDocument/inlineCompletion", inline(0, 4, 1, own))["result"]
                    rested(wire)
                wire.ask("reset", "test/longest")
                pause = longest(wire, *messages)
                while number == 2 and status(wire)["state"] in ("starting", "loading"):
                    pause = max(pause, longest(wire))
                found.append(1000 * pause)
            stop_all()
        print(f"{what}: longest pause of the event loop in each of 5 servers: {spread(found)}", flush=True)
    shutil.rmtree(folder)


def rested(wire: Wire) -> None:
    """Wait until the server has done nothing for three seconds."""
    before, quiet = 0, 0
    while quiet < 3:
        time.sleep(1)
        words = Path(f"/proc/{wire.process.pid}/stat").read_text().rpartition(")")[2].split()
        spent = int(words[11]) + int(words[12])
        quiet, before = quiet + 1 if spent - before <= 1 else 0, spent


def stop_all() -> None:
    subprocess.run(
        [sys.executable, "-m", "dg_lsp", "engine", "stop", "--all"], capture_output=True, check=False
    )


PARTS = {f.__name__: f for f in (start, cancel, pauses)}

if __name__ == "__main__":
    parser = parser_of(__doc__)
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
