"""`dg-lsp fill` with the engine that all windows share: started, found, cancelled, missed; and the same as alone."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.cli.main import main
from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.messages import Status
from dg_lsp.settings import Settings
from tests.scripts import install
from tests.waiting import wait_until

SHOP = '''\
def add(first, second):
    """Return the sum of two numbers."""
    raise NotImplementedError


class Cart:
    """Things to buy."""

    def __init__(self, items):
        self.items = items

    def is_empty(self):
        """Return whether there is nothing in the cart."""
        ...

    def total(self):
        """Return the sum of the prices of all items."""
        pass
'''
LIST = """\
function last(items) {
  throw new Error("not implemented");
}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    (tmp_path / "list.js").write_text(LIST)
    return path


def command(*words: str, checkpoint: str) -> list[str]:
    return [sys.executable, "-m", "dg_lsp", *words, "--checkpoint", checkpoint]


def status_of(settings: Settings) -> Status | None:
    async def ask() -> Status | None:
        engine = ResidentEngine(settings)
        try:
            return await engine.status()
        finally:
            await engine.close()

    return asyncio.run(ask())


def test_the_first_fill_starts_the_engine_and_says_so_and_the_next_finds_it(
    shop: Path, runtime: Path
) -> None:
    words = command("fill", f"{shop}::add", checkpoint="scripted")
    first = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    second = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert first.stderr.startswith("dg-lsp: starting the engine ...\n")
    assert "starting" not in second.stderr
    assert "+    return None" in first.stdout and second.stdout == first.stdout
    status = status_of(Settings(checkpoint="scripted"))
    assert status is not None and status.fills == 2


def test_trace_shows_the_drafts_of_the_shared_engine(shop: Path, runtime: Path) -> None:
    words = command("trace", f"{shop}::add", checkpoint="scripted:3:20")
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert "step 3 " in done.stdout and "+    return None" in done.stdout


@pytest.mark.slow
def test_the_shared_engine_fills_as_one_alone_does(
    shop: Path, runtime: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 4: the same Infill and seed give the same Fill, wherever the engine lives and whatever it filled before."""
    # By default their number follows the load of the machine, and sums of several threads have other last digits.
    monkeypatch.setenv("DG_LSP_THREADS", "1")

    def fills(*options: str) -> list[dict[str, Any]]:
        found = []
        for place in ("shop.py::add", "shop.py::Cart.is_empty", "shop.py::Cart.total", "list.js::last"):
            main(["fill", str(shop.parent / place), "--json", "--effort", "low", "--seed", "3", *options])
            found.append(json.loads(capsys.readouterr().out))
            del found[-1]["fill"]["milliseconds"]
        return found

    shared, alone = fills(), fills("--alone")
    assert shared == alone
    assert fills() == alone
    assert sum(reported["edit"] is not None for reported in alone) >= 2


def test_an_interrupt_closes_the_stream_and_is_exit_130(shop: Path, runtime: Path) -> None:
    settings = Settings(checkpoint="scripted:2000:20")
    process = subprocess.Popen(
        command("fill", f"{shop}::add", checkpoint=settings.checkpoint), stderr=subprocess.PIPE, text=True
    )

    def now() -> Status:
        return status_of(settings) or Status("starting")

    wait_until(lambda: now().passes or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr is not None and "Traceback" not in process.stderr.read()
    wait_until(lambda: now().state == "ready")
    passes = now().passes
    time.sleep(0.2)
    assert now().passes == passes < 2_000


def test_without_a_folder_for_the_engine_the_fix_is_named(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(shop))
    assert main(["fill", f"{shop}::add"]) == 2
    (reported,) = capsys.readouterr().err.splitlines()
    assert "set DG_LSP_RUNTIME_DIR" in reported and "--alone" in reported
    install(monkeypatch, "return first + second")
    assert main(["fill", f"{shop}::add", "--alone"]) == 0
