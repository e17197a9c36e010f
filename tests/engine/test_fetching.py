"""A fetch in a process of its own: its progress, its errors, and its end when it is cancelled."""

import asyncio
import json
import sys
import time
from pathlib import Path

import pytest

from dg_lsp.cli import fetch as command
from dg_lsp.engine import choice
from dg_lsp.filling.engine import EngineError
from tests.processes import resident

# Says how far it is, from where the last run ended; what it has started prints its own id into a file and sleeps.
FETCH = """
import json, os, pathlib, subprocess, sys, time
kept = pathlib.Path("kept")
begun = int(kept.read_text()) if kept.exists() else 0
if not begun:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("child").write_text(str(child.pid))
print("a line of another program", flush=True)
for done in range(begun, 4):
    kept.write_text(str(done))  # before the message: the test cancels as soon as it reads that
    print(json.dumps({"say": f"{done} of 4 MB", "percent": done * 25}), flush=True)
    if done == 1 and not begun:
        time.sleep(600)
"""


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which FETCH runs in place of `dg-lsp fetch`."""
    script = f"import os; os.chdir({str(tmp_path)!r})\n{FETCH}"
    monkeypatch.setattr(choice, "command", lambda _: [sys.executable, "-c", script])
    return tmp_path


async def cancelled(at: str) -> list[tuple[str, int | None]]:
    """Fetch, and cancel that as soon as it says `at`; the messages so far."""
    said: list[tuple[str, int | None]] = []
    reached = asyncio.Event()

    def tell(text: str, percent: int | None) -> None:
        said.append((text, percent))
        if text == at:
            reached.set()

    work = asyncio.create_task(choice.fetch("coder", tell))
    await asyncio.wait([work, asyncio.create_task(reached.wait())], return_when=asyncio.FIRST_COMPLETED)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    return said


def test_a_cancelled_fetch_ends_with_all_that_it_started_and_the_next_one_continues(scripted: Path) -> None:
    assert asyncio.run(cancelled("1 of 4 MB")) == [("0 of 4 MB", 0), ("1 of 4 MB", 25)]
    child, end = int((scripted / "child").read_text()), time.monotonic() + 20
    while resident(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not resident(child)
    said: list[str] = []
    asyncio.run(choice.fetch("coder", lambda text, _: said.append(text)))
    assert said == ["1 of 4 MB", "2 of 4 MB", "3 of 4 MB"]


def test_an_error_is_reported_in_the_words_of_the_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    real = choice.command
    monkeypatch.setattr(choice, "command", lambda name: [*real(name), "--file", str(tmp_path / "nowhere")])
    with pytest.raises(
        EngineError, match=r"coder-0.5b was not fetched: there is no file .*nowhere; check the path"
    ):
        asyncio.run(choice.fetch("coder-0.5b", lambda *_: None))
    monkeypatch.setattr(choice, "command", lambda _: [sys.executable, "-c", "import sys; sys.exit(7)"])
    with pytest.raises(EngineError, match="it ended with exit code 7"):
        asyncio.run(choice.fetch("coder", lambda *_: None))


def test_messages_are_lines_of_json_with_a_percentage_where_there_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for text in ("120 of 1117 MB, 8.1 MB/s, 2:03 left\r", "measuring a line"):
        command._tell_in_json(text)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"say": "120 of 1117 MB, 8.1 MB/s, 2:03 left", "percent": 10},
        {"say": "measuring a line", "percent": None},
    ]
