"""The engine's process, whose model hangs in a thread that nobody can end."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from dg_lsp.engine.client import RemoteEngine
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Infill
from dg_lsp.serving.process import STUCK
from tests.waiting import PATIENCE, until

# An engine of one step, in a thread, which takes ten minutes.
HANGS = """
import sys, threading, time
from pathlib import Path
from dg_lsp.engine.scripted import ScriptedEngine
from dg_lsp.serving import process
from dg_lsp.settings import Settings
from dg_lsp.messages import Draft, Fill

async def open_engine(settings, done):
    engine = ScriptedEngine(Fill("x"), [Draft(1, (), 0.0)], 600.0)
    engine.patience, engine.first_step = 0.2, 0.2
    threading.Thread(target=time.sleep, args=(600,)).start()
    return engine

process.open_engine, process._LOOK = open_engine, 0.05
sys.exit(process.run_engine(Settings(checkpoint="scripted"), Path(sys.argv[1])))
"""


def test_a_process_whose_model_hangs_says_so_and_ends(tmp_path: Path) -> None:
    socket = tmp_path / "engine.sock"
    process = subprocess.Popen([sys.executable, "-c", HANGS, str(socket)], stderr=subprocess.PIPE, text=True)

    async def ask() -> None:
        await until(socket.exists)
        engine = RemoteEngine(socket)
        try:
            async for _ in engine.infill(Infill("x = ", "\n", "python", "rest_of_line")):
                pass
        finally:
            await engine.close()

    try:
        with pytest.raises(EngineError, match="hung"):
            asyncio.run(ask())
        assert process.wait(PATIENCE) == STUCK
        assert process.stderr is not None and "Bad file descriptor" not in process.stderr.read()
        assert not socket.exists()
    finally:
        process.kill()
        process.communicate()
