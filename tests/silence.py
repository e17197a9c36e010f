"""How long a command is silent in a terminal: `python -m tests.silence` runs each command and prints a table."""

import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from dg_lsp.checkpoints import data_folder
from tests.processes import own_runtime

# The weights of a model that is here, which `import` reads.
_FETCHED = data_folder() / "coder-0.5b/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
LONGEST = 2.0  # seconds that an idle machine allows
_STUB = 'def add(first, second):\n    """Return the sum of two numbers."""\n    raise NotImplementedError\n'


@dataclass(frozen=True, slots=True)
class Silence:
    """The longest silence of a command: its seconds, the processor time that the command took in it, what it ends at.

    Beside other programs a silence is longer than on an idle machine, and its processor time is not.
    """

    seconds: float = 0.0
    busy: float = 0.0
    at: bytes = b""


def silence_of(
    command: Sequence[str], environment: Mapping[str, str], ended: Callable[[bytes], bool] = lambda _: False
) -> tuple[Silence, bytes]:
    """Run `dg-lsp` with the words `command` in a terminal; return its longest silence, and all it wrote.

    ended: gets what was written so far, and returns whether the command is to be ended.
    """
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "dg_lsp", *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    )
    os.close(theirs)
    process = psutil.Process(child.pid)
    said, longest, last, worked, ending = bytearray(), Silence(), time.monotonic(), 0.0, False

    def measured(new: bytes) -> Silence:
        nonlocal last, worked
        now, work = time.monotonic(), sum(process.cpu_times()[:2])
        one = Silence(now - last, work - worked, new[-60:])
        last, worked = now, work
        return max(longest, one, key=lambda silence: silence.seconds)

    try:
        # Its entry stays after its end until it is waited for.
        while process.status() != psutil.STATUS_ZOMBIE or select.select([ours], [], [], 0)[0]:
            if select.select([ours], [], [], 0.05)[0]:
                try:
                    new = os.read(ours, 65536)
                except OSError:
                    break
                said += new
                longest = measured(new)
            if not ending and ended(bytes(said)):
                ending = True
                process.terminate()
        longest = measured(b"")
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    return longest, bytes(said)


def commands(folder: Path, checkpoint: str) -> dict[str, list[str]]:
    """Return the commands of the table, by name, with their files in `folder`."""
    (folder / "a.py").write_text(_STUB)
    (folder / "code").mkdir(exist_ok=True)
    for number in range(20):
        (folder / f"code/m{number}.py").write_text(
            _STUB.replace("raise NotImplementedError", "return first + second")
        )
    source, out = str(folder / "a.py::add"), str(folder / "out")
    tokens, model = str(folder / "tokens"), ["--checkpoint", checkpoint]
    learn = ["train", "--from", "embedded", "--repo", str(folder / "code"), "--out", out]
    return {
        "engine start": ["engine", "start", *model],
        "engine status": ["engine", "status", *model],
        "fill": ["fill", source, *model],
        "trace": ["trace", source, *model],
        "fill --alone": ["fill", source, "--alone", *model],
        "bot": ["bot", str(folder / "a.py"), "--dry-run", *model],
        "bot --keep-if": ["bot", str(folder / "a.py"), "--keep-if", "sleep 5; false", *model],
        "engine stop": ["engine", "stop", "--all"],
        "demo": ["demo", *model],
        "doctor": ["doctor", *model],
        "bench": ["bench", "--cases", "2", *model],
        "train": [*learn, "--steps", "3", "--cases", "2"],
        "train --minutes": [*learn, "--minutes", "1", "--cases", "2"],
        # Of a model that is here; the folder of models is the user's.
        "fetch": ["fetch", "coder-0.5b"],
        "import": ["import", str(_FETCHED), "--out", str(folder / "imported")],
        "pack": ["pack", out],
        "stats": ["stats"],
        "editor list": ["editor", "list"],
        "editor install": ["editor", "install", "nvim"],
        "editor remove": ["editor", "remove", "nvim"],
        "token": ["serve-engine", "token", "alice", "--tokens", tokens],
        "serve-engine": ["serve-engine", "--tokens", tokens, "--port", "0", *model],
        "uninstall": ["uninstall"],
    }


def main(names: Sequence[str]) -> int:
    """Print the longest silence of the commands `names`, else of all; return 1 if one is longer than LONGEST."""
    checkpoint, worst = os.environ.get("CHECKPOINT", "embedded"), 0.0
    with tempfile.TemporaryDirectory() as home, own_runtime():
        for name, command in commands(Path(home), checkpoint).items():
            if names and name not in names:
                continue
            ready = (lambda said: b"ready on" in said) if name == "serve-engine" else (lambda _: False)
            began = time.monotonic()
            longest, said = silence_of(command, {"XDG_STATE_HOME": home, "NVIM_APPNAME": "tried"}, ready)
            worst = max(worst, longest.seconds)
            print(
                f"{name:<16} {time.monotonic() - began:6.1f} s, silent for {longest.seconds:5.2f} s, "
                f"{longest.busy:5.2f} s of processor time, until {longest.at!r}",
                flush=True,
            )
            if os.environ.get("SHOW"):
                print(said[-2000:].decode("utf-8", "replace"))
    return int(worst > LONGEST)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
