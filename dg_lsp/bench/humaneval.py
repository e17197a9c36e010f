"""Tasks of HumanEval-Infilling (arXiv:2207.14255) as cases, and their tests, run in a subprocess.

The subprocess is limited against accidents; it is no sandbox against malice. Knows no engine.
"""

import gzip
import json
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dg_lsp.bench.holes import Case
from dg_lsp.gaps import Gap
from dg_lsp.messages import Kind
from dg_lsp.processes import start_untrusted, wait
from dg_lsp.settings import UsageError
from dg_lsp.source.document import Document

# A task of one line is the rest of its line, one of several a span.
KINDS: tuple[Kind, ...] = ("rest_of_line", "span")
_FIELDS = ("task_id", "prompt", "suffix", "canonical_solution", "test", "entry_point")
# Runs in the child: it sets limits that cannot be raised again, silences the program, and writes a secret word when the
# program has run to its end, which a program that exits early does not do.
_LAUNCHER = """
import os, resource, runpy, sys
path, word, seconds, memory = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
limits = {"CPU": seconds, "AS": memory, "FSIZE": 1 << 20, "NOFILE": 64, "CORE": 0}
for name, most in limits.items():
    resource.setrlimit(getattr(resource, "RLIMIT_" + name), (most, most))
sys.argv[1:] = []
out, sys.stdout = sys.stdout, open(os.devnull, "w")
runpy.run_path(path, run_name="__main__")
out.write(word)
out.flush()
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one program: seconds of wall clock and of CPU, and bytes of address space."""

    seconds: float = 10.0
    memory: int = 2 << 30


@dataclass(frozen=True, slots=True)
class Task:
    """A task: the case to fill, and the code that checks the filled program."""

    case: Case
    check: str

    def program(self, filled: str) -> str:
        """The program that raises nothing if `filled`, the document with its gap filled, is right."""
        return f"{filled}\n{self.check}"


def read_tasks(path: Path) -> list[Task]:
    """The tasks in a `.jsonl` or `.jsonl.gz` file of the benchmark.

    Raises:
        UsageError: the file cannot be read, or a line is no task.
    """
    tasks = []
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as stream
        ):
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    tasks.append(_task(line, f"{path}, line {number}"))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read ({error}); fetch it from openai/human-eval-infilling"
        ) from error
    if not tasks:
        raise UsageError(f"{path} holds no tasks; fetch it from openai/human-eval-infilling")
    return tasks


def execute(program: str, limits: Limits) -> str:
    """Run a Python program in an empty folder; return "passed", "timeout" or "failed (exit CODE)".

    1. Start a child in a session of its own, without environment, input and site packages.  2. Wait for it; its time is
    limited from outside, everything else from inside.  3. Kill whatever it has started.
    """
    word = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="dg-lsp-run-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "program.py"
        path.write_text(program, encoding="utf-8")
        # 1. `-S` leaves installed packages out; the tests need the standard library only.
        command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(path), word]
        command += [str(max(int(limits.seconds), 1) + 1), str(limits.memory)]
        # Output goes to a file: a pipe would have to be read to its end, which a grandchild could keep open.
        with tempfile.TemporaryFile() as out:
            code = _run(command, folder, out, limits.seconds)
            out.seek(0)
            said = out.read(64)
    if code is None or code == -signal.SIGXCPU:
        return "timeout"
    return "passed" if said == word.encode() else f"failed (exit {code})"


def _run(command: list[str], folder: str, out: IO[bytes], seconds: float) -> int | None:
    """The exit code; None after `seconds`."""
    child = start_untrusted(command, folder, out)
    try:
        # 2.
        return wait(child, seconds)
    finally:
        # 3. Processes of the group may outlive its leader.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _task(line: str, where: str) -> Task:
    """The task in a line; `where` names the line in errors."""
    try:
        record: Any = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: no JSON ({error}); fetch the file again") from error
    if not isinstance(record, dict):
        raise UsageError(f"{where}: a task is a JSON object; fetch the file again")
    for name in _FIELDS:
        if not isinstance(record.get(name), str):
            raise UsageError(f"{where}: the field {name!r} is missing or no text; fetch the file again")
    return Task(_case(record), f"{record['test']}\ncheck({record['entry_point']})\n")


def _indent(prompt: str) -> str:
    """The indentation of the line after `prompt`: the one of its last line, and four blanks more after a colon."""
    last = next((line for line in reversed(prompt.splitlines()) if line.strip()), "")
    depth = last[: len(last) - len(last.lstrip())]
    return depth + "    " if last.rstrip().endswith(":") else depth


def _case(record: Mapping[str, str]) -> Case:
    """The task as a gap between prompt and suffix.

    A line end at the end of the solution stays in the document, because a fill ends before it.
    """
    prompt, suffix, truth = record["prompt"], record["suffix"], record["canonical_solution"]
    if truth.endswith("\n"):
        truth, suffix = truth[:-1], "\n" + suffix
    kind: Kind = "span" if "\n" in truth else "rest_of_line"
    data, start = (prompt + suffix).encode("utf-8"), len(prompt.encode("utf-8"))
    gap = Gap(start, start, kind, _indent(prompt), name=record["entry_point"], asked=True)
    return Case(record["task_id"], gap.kind, Document(record["task_id"], "python", 0, data), gap, truth)
