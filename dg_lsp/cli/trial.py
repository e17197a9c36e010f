"""Trials of a bot's fills: a change is written, tested by a command, and kept or taken back byte for byte.

Knows files and processes; knows no engine and prints nothing.
"""

import asyncio
import os
import re
import shlex
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dg_lsp.cli.target import replace_file
from dg_lsp.filling.stubs import StubStarted
from dg_lsp.processes import start_users_command
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.files import (
    FileError,
    Held,
    drop,
    hold,
    kept_of,
    let_go,
    lines_apart,
    put,
    put_back,
    read_now,
)
from dg_lsp.text.documents.undo import undo

_READ = 64 << 10  # bytes of the end of a command's output
_LOOKS, _LOOK = 20, 0.05  # times that a file that somebody writes to is read again, and seconds between two
_SHOWN = 200  # characters of the command's last line
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NONE = r"(?!)"
# For each test runner what its lines of counts look like, and in them how many tests failed, passed and ran. A
# pattern without a group counts its matches.
_RUNNERS = {
    "pytest": (
        r"^(?:=+ )?(?:\d+ [a-z]+,? )+in [\d.]+s.*$",
        r"(\d+) (?:failed|errors?)\b",
        r"(\d+) passed",
        _NONE,
    ),
    "unittest": (r"^Ran \d+ tests? in .*$|^FAILED \(.*$", r"(?:failures|errors)=(\d+)", _NONE, r"Ran (\d+)"),
    "cargo test": (r"^test result: .*$", r"(\d+) failed", r"(\d+) passed", _NONE),
    "go test": (r"^ *--- (?:FAIL|PASS): .*$", r"--- FAIL", r"--- PASS", _NONE),
    "jest, vitest": (r"^ *Tests:? .*\d.*$", r"(\d+) failed", r"(\d+) passed", _NONE),
    "mocha": (r"^ +\d+ (?:passing|failing)\b.*$", r"(\d+) failing", r"(\d+) passing", _NONE),
    "node --test": (r"^(?:#|ℹ) (?:pass|fail) \d+$", r"fail (\d+)", r"pass (\d+)", _NONE),
    "dotnet test": (r"^.*Failed: +\d+, Passed: +\d+.*$", r"Failed: +(\d+)", r"Passed: +(\d+)", _NONE),
    "Maven": (
        r"^Tests run: .*$|^\[.*\] Tests run: \d+, [^T]*$",
        r"(?:Failures|Errors): (\d+)",
        _NONE,
        r"run: (\d+)",
    ),
}
# How runners name a test that failed.
_FAILED = re.compile(
    r"^(?:FAILED|ERROR) (\S+::\S+)|^ *--- FAIL: (\S+)|^test (\S+) \.\.\. FAILED|^(?:FAIL|ERROR): (.+)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A fill of the function `name` that is tried: the text of its file before and after."""

    name: str
    before: bytes
    after: bytes


class Saved(FileError):
    """A file was saved by somebody else while a fill in it was tried, or the fill could not be taken back.

    outcome: "taken back", or "left" if the fill may still be in the file.
    """

    def __init__(self, words: str, outcome: Literal["taken back", "left"]) -> None:
        super().__init__(words)
        self.outcome = outcome


class Interrupted(asyncio.CancelledError):
    """An interrupt has ended a trial, and `saved` says what is in the file."""

    def __init__(self, saved: Saved) -> None:
        super().__init__(str(saved))
        self.saved = saved


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a run.

    status: the exit status, None if it took too long. words: the last line of its output. failed, passed: how many
    tests it counts, None if none. named: the first test that failed.
    """

    status: int | None
    words: str
    failed: int | None = None
    passed: int | None = None
    named: str = ""

    @property
    def sentence(self) -> str:
        """The end of the run as a sentence."""
        named = f" ({self.named})" if self.named else ""
        return (
            self.words
            if self.status is None
            else f"the command exited with {self.status}: {self.words}{named}"
        )

    @property
    def counts(self) -> bool:
        """Return whether it counts tests."""
        return self.failed is not None

    def is_better(self, before: "Ran") -> bool:
        """Return whether this run passed, or more of its tests do than `before` and no more fail."""
        if self.status == 0:
            return True
        if self.failed is None or self.passed is None or before.failed is None or before.passed is None:
            return False
        no_worse = self.failed <= before.failed and self.passed >= before.passed
        return no_worse and (self.failed, self.passed) != (before.failed, before.passed)


@dataclass(frozen=True, slots=True)
class Partial:
    """A fill in the file at `path` with which more tests pass, and the command still fails."""

    path: Path
    change: Change
    command: str


@dataclass(slots=True)
class Judge:
    """A test command, the seconds that a run of it may take, and how it ran on the files as they are now.

    partial: the fills that are in files though the command fails. passed: the commands that passed with a fill. tries:
    how many fills of the last stub were tried. red: the first test that failed with a stub's fills, by path and name.
    """

    command: str
    seconds: float
    runs: dict[str, Ran] = field(default_factory=dict)
    partial: list[Partial] = field(default_factory=list)
    passed: dict[str, None] = field(default_factory=dict)
    red: dict[tuple[Path, str], Ran] = field(default_factory=dict)
    tries: int = 0

    async def before(self, path: Path, name: str) -> Ran:
        """Return the run of the command for the function `name` of `path` before any fill; it is run once."""
        return await self.now(self._command_for(path, name))

    async def now(self, command: str) -> Ran:
        """Return the run of `command` on the files as they are; it is run once until a fill is kept."""
        if command not in self.runs:
            self.runs[command] = await run(command, self.seconds)
        return self.runs[command]

    async def may_change(self, path: Path, name: str) -> bool:
        """Return whether a fill of a stub, which was tried, may pass now that others are in the files.

        It may not where the command stops at its first red test, as `pytest -x` does, and this is the one it was.
        """
        before, now = self.red.get((path, name)), await self.before(path, name)
        if before is None or not now.named or now.status == 0:
            return True
        return (before.named, before.failed, now.failed) != (now.named, 1, 1)

    async def choose(
        self, path: Path, stub: StubStarted, filled: Sequence[Document]
    ) -> tuple[int | None, str]:
        """Return the number of the text of `filled` that stays in `path` for the stub, and why; None if none does.

        1. The first with which the command passes.  2. Else the one with which most tests pass, if these are more than
        before, and no more fail. That one is noted as partial: fills of other stubs may make the command pass.
        """
        # 1.
        self.tries = 0
        name, old = stub.gap.name, stub.document.data
        command, tried = self._command_for(path, name), list[Ran]()
        for number, new in enumerate(filled):
            self.tries += 1
            tried.append(await trial(path, Change(name, old, new.data), command, self.seconds))
            if tried[-1].status == 0:
                self.passed[command] = None
                self._kept(command, tried[-1])
                return number, ""
        # 2.
        before = await self.before(path, name)
        better = [number for number, ran in enumerate(tried) if ran.is_better(before)]
        if not better:
            first = self.red[path, name] = tried[0]
            same = (before.status, before.failed, before.passed) == (first.status, first.failed, first.passed)
            return None, first.sentence + (", as before the fill" if same else "")
        best = min(better, key=lambda number: (tried[number].failed or 0, -(tried[number].passed or 0)))
        replace_file(path, old, filled[best].data)
        self.partial.append(Partial(path, Change(name, old, filled[best].data), command))
        self._kept(command, tried[best])
        return best, f"{tried[best].sentence}; before the fill: {before.words}"

    def _kept(self, command: str, ran: Ran) -> None:
        """Forget how commands ran before a fill that is kept; with it `command` ran as `ran`."""
        self.runs.clear()
        self.runs[command] = ran

    def _command_for(self, path: Path, name: str) -> str:
        """Return the command for the function `name` of `path`; `name` includes its owners."""
        command = self.command
        last = name.rpartition(".")[2]
        # Not str.format: a command may hold other braces.
        for mark, word in (("{path}", str(path)), ("{name}", last), ("{qualname}", name)):
            command = command.replace(mark, shlex.quote(word))
        return command


def take_partial_back(partial: Partial) -> None:
    """Take a partial fill out of its file, where it is as it was written.

    Raises:
        FileError: the file was changed there, or it cannot be written.
    """
    path, change = partial.path, partial.change
    now = read_now(kept_of(path).path)
    undone = None if now is None else undo(change.before, change.after, now)
    if now is None or undone is None:
        line, _ = lines_apart(change.before, now or b"")
        raise FileError(f"{path} was changed at it, so it may still be there, in line {line}")
    replace_file(path, now, undone)


async def trial(path: Path, change: Change, command: str, seconds: float) -> Ran:
    """Write a change to `path` and run `command`; return how it ran. The change stays only if the command passed.

    The command passes if its exit status is 0 within `seconds`. Whatever else happens, an interrupt included, the
    change is taken back; if this process is killed, the text before is in the file's copy.

    Raises:
        FileError: the file cannot be written.
        Saved: it was saved by somebody else meanwhile, and the command failed.
        Interrupted: the same, and an interrupt ended the command.
    """
    held = hold(kept_of(path), change.before)
    put(held, change.before, change.after)
    try:
        ran = await run(command, seconds)
    except BaseException as end:
        try:
            take_back(held, change)
        except Saved as saved:
            raise Interrupted(saved) from end
        raise
    if ran.status == 0:
        keep(held, change)
    else:
        take_back(held, change)
    return ran


def keep(held: Held, change: Change) -> None:
    """Keep a change that is in a file, and remove the copy.

    Raises:
        Saved: somebody has saved the file meanwhile, and the change is not in it any more.
    """
    now = read_now(held.kept.path)
    if now == change.after or (now is not None and undo(change.before, change.after, now) is not None):
        drop(held)
    else:
        take_back(held, change)


def take_back(held: Held, change: Change) -> None:
    """Take a change that is in a file back, and remove the copy; what somebody has saved there meanwhile stays.

    1. Nobody has saved the file.  2. It was saved elsewhere, or from an editor that had the text from before.  3. It
    was saved where the change is, or it is not there.

    Raises:
        Saved: the file is not as it was before; it says what is in it.
    """
    path, name = held.kept.path, change.name
    now = _settled(path, change.after)
    try:
        # 1.
        if now == change.before:
            return drop(held)
        if now == change.after:
            return put_back(held, change.after)
        # 2.
        undone = _without(change, now)
        if now is not None and undone is not None:
            if undone != now:
                put(held, now, undone)
            drop(held)
    except FileError as error:
        line, _ = lines_apart(change.before, now or b"")
        raise Saved(
            f"the untested fill of {name} is still in {path} at line {line}, because it could not be taken back "
            f"({error}); the text from before is in {held.kept.copy}",
            "left",
        ) from error
    if undone is not None:
        raise Saved(
            f"{path} was saved while the fill of {name} was tested: the fill was taken back, and what was saved is in "
            "the file; run the command again for its other stubs",
            "taken back",
        )
    # 3.
    let_go(held)
    raise Saved(_why_left(held, change, now), "left")


def _without(change: Change, now: bytes | None) -> bytes | None:
    """Return the text `now` of a file without `change`, which may be gone from it; None if nothing is certain."""
    if now is None:
        return None
    undone = undo(change.before, change.after, now)
    gone = undone is None and undo(change.after, change.before, now) is not None
    return now if gone else undone


def _why_left(held: Held, change: Change, now: bytes | None) -> str:
    path, copy = held.kept.path, held.kept.copy
    if now is None:
        return (
            f"{path} was removed or replaced while the fill of {change.name} was tested, so it was left alone; the "
            f"text from before is in {copy}: put it back, or delete it"
        )
    line, _ = lines_apart(change.before, now)
    return (
        f"{path} was changed at the fill of {change.name} while it was tested, so it was left alone, and from line "
        f"{line} on it may hold text of the untested fill; the text from before is in {copy}: compare both, and then "
        "delete it"
    )


def _settled(path: Path, expected: bytes) -> bytes | None:
    """Return the text of the file at `path`; where it is not `expected`, once nobody writes to it any more."""
    now = read_now(path)
    for _ in range(_LOOKS):
        if now == expected:
            return now
        time.sleep(_LOOK)
        before, now = now, read_now(path)
        if before == now:
            break
    return now


async def run(command: str, seconds: float) -> Ran:
    """Run `command` in a shell for at most so many seconds; return how it ended.

    It runs in a process group of its own, so that its children end with it.
    """
    # Two changes in one second may have one size, which Python's cache of compiled files would take for one text.
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile() as output:
        starting = asyncio.ensure_future(start_users_command(command, output, environment))
        try:
            process = await asyncio.shield(starting)
            async with asyncio.timeout(seconds):
                status = await process.wait()
        except TimeoutError:
            return Ran(None, f"the command took longer than {seconds:g} s")
        finally:
            # An interrupt may come before the start is done, and the command runs by then.
            process = await asyncio.shield(starting)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        output.seek(max(output.seek(0, os.SEEK_END) - _READ, 0))
        return read_run(status, output.read().decode("utf-8", "replace"))


def read_run(status: int | None, output: str) -> Ran:
    """Return how a run with this exit status ended, in the words at the end of its output."""
    output = _COLOURS.sub("", output).replace("\r\n", "\n")
    last = next((line.strip() for line in reversed(output.split("\n")) if line.strip()), "no output")
    failed, passed = _counted(output) or (None, None)
    named = _FAILED.search(output)
    name = next(filter(None, named.groups()), "") if named else ""
    return Ran(status, last[:_SHOWN], failed, passed, name[:_SHOWN])


def _counted(output: str) -> tuple[int, int] | None:
    """Return how many tests failed and passed; None where no runner that is known counts them."""
    for line, failed, passed, ran in _RUNNERS.values():
        found = "\n".join(match[0] for match in re.finditer(line, output, re.MULTILINE))
        if found:
            fails = _sum(failed, found)
            return fails, max(_sum(passed, found), _sum(ran, found) - fails)
    return None


def _sum(pattern: str, text: str) -> int:
    """Return the sum of the numbers that `pattern` finds, or the count of its matches if it has no group."""
    found = re.compile(pattern, re.MULTILINE)
    numbers = found.findall(text)
    return sum(map(int, numbers)) if found.groups else len(numbers)
