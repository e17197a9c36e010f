"""Texts that crashed a process are not read by its next run."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import faulthandler, os, signal, sys
from pathlib import Path
from dg_lsp.engine.fatal import FatalTexts
from dg_lsp.filling.engine import EngineError
from dg_lsp.messages import Infill

fatal = FatalTexts(Path(sys.argv[1]))
read, *end = sys.argv[2:]
with fatal.reading(Infill("done", "", "python", "statement")):
    pass
try:
    with fatal.reading(Infill(read, " = \\n", "python", "rest_of_line")):
        if end:
            os.kill(os.getpid(), int(end[0]))
except EngineError as error:
    sys.exit(str(error))
"""


def run(file: Path, *arguments: str) -> tuple[int, str]:
    """Read a text in a process with the signal that ends it, if any; return its exit status and its words."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(file), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("end", "is_fatal"), [(signal.SIGSEGV, True), (signal.SIGABRT, True), (signal.SIGKILL, False)]
)
def test_a_text_that_crashed_a_process_is_not_read_by_the_next_ones(
    end: signal.Signals, is_fatal: bool, tmp_path: Path
) -> None:
    file = tmp_path / "a.texts"
    assert run(file, "x") == (0, "")
    assert run(file, "x", str(int(end)))[0] == -end
    code, said = run(file, "y")
    assert code == 0 and ("not read again until they change: 1" in said) is is_fatal
    for _ in range(2):
        code, said = run(file, "x")
        assert code == is_fatal and ("not sent again until it changes" in said) is is_fatal
    # Another crash adds to the first one.
    assert run(file, "z", str(int(signal.SIGSEGV)))[0] == -signal.SIGSEGV
    assert [run(file, text)[0] for text in ("x", "z", "y")] == [is_fatal, 1, 0]
