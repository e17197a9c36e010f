"""HumanEval-Infilling (Bavarian et al. 2022): its files as cases, and its tests run in a limited subprocess.

Knows JSON lines, the text layer and subprocesses; knows no engine. The limits guard against accidents, not
against malice: they are no sandbox.
"""

import gzip
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dg_lsp.bench.holes import Case
from dg_lsp.settings import UsageError
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import Gap
from dg_lsp.text.messages import Kind

# A task of one line is the rest of its line, one of several a span.
KINDS: tuple[Kind, ...] = ("rest_of_line", "span")
_FIELDS = ("task_id", "prompt", "suffix", "canonical_solution", "test", "entry_point")
# Runs in the child before the program: limits that cannot be raised again, silence, and a last word that a
# program which ends itself early does not say.
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
    """What one program may use: seconds of wall clock (and of CPU), bytes of address space."""

    seconds: float = 10.0
    memory: int = 2 << 30


@dataclass(frozen=True, slots=True)
class Task:
    """One task: the case to fill and the `check` that follows the filled program."""

    case: Case
    check: str

    def program(self, filled: str) -> str:
        """The program that raises nothing if `filled`, the whole text with its gap filled, is right."""
        return f"{filled}\n{self.check}"


def read_tasks(path: Path) -> list[Task]:
    """Read a `.jsonl` or `.jsonl.gz` file of the benchmark.

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
    """Run a Python program by itself in an empty folder; return `passed`, `timeout` or how it ended.

    1. A child of its own session, without environment, input, site packages.  2. Its time is limited from
    outside, all else from inside.  3. Whatever it started ends with it.
    """
    word = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="dg-lsp-run-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "program.py"
        path.write_text(program, encoding="utf-8")
        # 1. `-S` leaves the installed packages out; the tests need the standard library only.
        command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(path), word]
        command += [str(max(int(limits.seconds), 1) + 1), str(limits.memory)]
        # A file: a pipe would have to be read to its end, which a runaway grandchild could put off for ever.
        with tempfile.TemporaryFile() as out:
            code = _run(command, folder, out, limits.seconds)
            out.seek(0)
            said = out.read(64)
    if code is None or code == -signal.SIGXCPU:
        return "timeout"
    return "passed" if said == word.encode() else f"failed (exit {code})"


def _run(command: list[str], folder: str, out: IO[bytes], seconds: float) -> int | None:
    """The exit code, or None where the time was up."""
    silent = subprocess.DEVNULL
    child = subprocess.Popen(
        command, cwd=folder, env={}, stdin=silent, stdout=out, stderr=silent, start_new_session=True
    )
    try:
        # 2.
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # 3. The group may live on after its leader.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _task(line: str, where: str) -> Task:
    try:
        record: Any = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: no JSON ({error}); fetch the file again") from error
    if not isinstance(record, dict):
        raise UsageError(f"{where}: a task is a JSON object; fetch the file again")
    for name in _FIELDS:
        if not isinstance(record.get(name), str):
            raise UsageError(f"{where}: the field {name!r} is missing or no text; fetch the file again")
    return make_task(record)


def make_task(record: Mapping[str, str]) -> Task:
    """The task of one record of the benchmark's file, which has all of `_FIELDS`."""
    return Task(_case(record), f"{record['test']}\ncheck({record['entry_point']})\n")


def _indent(prompt: str) -> str:
    """How deep an editor begins the line after `prompt`: as the last one, one step deeper after a colon."""
    last = next((line for line in reversed(prompt.splitlines()) if line.strip()), "")
    depth = last[: len(last) - len(last.lstrip())]
    return depth + "    " if last.rstrip().endswith(":") else depth


def _case(record: Mapping[str, str]) -> Case:
    """The task as a gap between prompt and suffix.

    A line end that belongs to the solution stays in the document: a fill ends before it, as everywhere else.
    """
    prompt, suffix, truth = record["prompt"], record["suffix"], record["canonical_solution"]
    if truth.endswith("\n"):
        truth, suffix = truth[:-1], "\n" + suffix
    kind: Kind = "span" if "\n" in truth else "rest_of_line"
    data, start = (prompt + suffix).encode("utf-8"), len(prompt.encode("utf-8"))
    gap = Gap(
        start, start, kind, _indent(prompt), name=record["entry_point"], scope=(0, len(data)), asked=True
    )
    return Case(record["task_id"], gap.kind, Document(record["task_id"], "python", 0, data), gap, truth)
