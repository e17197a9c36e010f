"""Laws 6, 9 and 11: a document that its parser never ends with stops neither the server nor another document."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.wire import ROOT, Wire, notification, request

HANGING = "const a = <div style={{ color:>red: x("
FUNCTION = "function g(x = (, y}"
BROKEN = "export function f(a: number) {\n  let b = \n  switch (a) {\n" + "".join(
    f"    case {n}:\n" for n in range(8_000)
)
SOUND = "def f(a):\n    return \n"
# Seconds for what takes milliseconds on an idle machine.
SOON = 60


@pytest.fixture
def wire(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    with Wire([sys.executable, "-m", "dg_lsp", "--stdio"]) as server:
        server.initialize()
        yield server


def opened(uri: str, language: str, text: str) -> dict[str, Any]:
    document = {"uri": uri, "languageId": language, "version": 1, "text": text}
    return notification("textDocument/didOpen", {"textDocument": document})


def ghost(number: int, uri: str, line: int, character: int, kind: int) -> dict[str, Any]:
    place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
    return request(number, "textDocument/inlineCompletion", {**place, "context": {"triggerKind": kind}})


def test_ghost_text_and_code_actions_in_a_hanging_document_are_answered(wire: Wire) -> None:
    text = f"function h() {{\n  return 1;\n}}\n{HANGING}"
    wire.send(opened("file:///w/a.tsx", "typescriptreact", text), opened("file:///w/b.py", "python", SOUND))
    place = {"start": {"line": 1, "character": 3}, "end": {"line": 1, "character": 3}}
    action = {"textDocument": {"uri": "file:///w/a.tsx"}, "range": place, "context": {"diagnostics": []}}
    wire.send(*(ghost(kind, "file:///w/a.tsx", 3, len(HANGING), kind) for kind in (1, 2)))
    wire.send(request(3, "textDocument/codeAction", action), ghost(4, "file:///w/b.py", 1, 11, 1))
    wire.send(request(5, "dg-lsp/status"))
    # They come in any order.
    left = {1, 2, 3, 4, 5}
    while left:
        message = wire.read(SOON)
        if "method" not in message:
            assert "result" in message
            left.discard(message["id"])
    wire.send(ghost(6, "file:///w/a.tsx", 3, len(HANGING), 1))
    assert wire.answer(6, SOON)["result"] == {"items": []}
    assert wire.logged("a.tsx: nothing offered: ")
    # On a busy machine the cursor's surroundings may be read before the file is given up, and the fill is refused then.
    why = wire.ask(7, "dg-lsp/status", {}, SOON)["result"]["last"]["why"]
    assert "takes too long" in why or "would add a syntax error" in why


@pytest.mark.parametrize("text, language", [(FUNCTION, "typescriptreact"), (BROKEN, "typescript")])
def test_exit_ends_a_server_that_reads_such_a_document(wire: Wire, text: str, language: str) -> None:
    wire.send(opened("file:///w/a", language, text), ghost(1, "file:///w/a", 1, 10, 1))
    time.sleep(0.1)
    wire.send(request(2, "shutdown"), notification("exit"))
    assert wire.wait(SOON) == 0


WATCHED = """
import asyncio, re, sys
from dg_lsp.server.rpc.watchdog import watch

async def main():
    task = asyncio.create_task(watch(float(sys.argv[1])))
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    {work}
    task.cancel()
    print("alive", flush=True)

asyncio.run(main())
"""


def watched(work: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WATCHED.replace("{work}", work), "0.5"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def test_a_server_whose_library_never_gives_the_lock_back_is_ended_and_says_where() -> None:
    process = watched('re.match(r"(a+)+$", "a" * 60 + "b")')
    _, log = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGVTALRM
    assert "in main" in log and "aaaa" not in log


def test_a_server_that_was_stopped_for_long_goes_on() -> None:
    process = watched("await asyncio.sleep(0.5)")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=60)[0] == "alive\n"
    assert process.returncode == 0
