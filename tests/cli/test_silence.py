"""No command is silent in a terminal for long, whatever it does meanwhile."""

from pathlib import Path

import pytest

from tests.silence import commands, silence_of

MOST = 8.0  # seconds on a machine with many other tasks; python -m tests.silence wants 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fill --alone", "bench", "serve-engine", "engine start"])
def test_a_command_that_loads_a_model_shows_that_it_works(name: str, tmp_path: Path, runtime: Path) -> None:
    command = commands(tmp_path, "embedded")[name]
    if name == "serve-engine":
        silence_of(commands(tmp_path, "embedded")["token"], {})
    longest, said = silence_of(command, {}, lambda said: b"ready on" in said)
    assert b"Traceback" not in said and longest.seconds < MOST, said[-2000:]
