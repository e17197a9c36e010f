"""Trials of a bot's fills: a change is written, tested by a command, and kept or taken back byte for byte.

Knows files and processes; knows no engine and prints nothing.
"""

import asyncio
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dg_lsp.cli.reports import Results, ask, read, with_names_of
from dg_lsp.files.writing import (
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
from dg_lsp.processes import start_users_command
from dg_lsp.source.undo import undo

_READ = 32 << 20  # bytes of the end of a command's output
_LOOKS, _LOOK = 20, 0.05  # times that a file that somebody writes to is read again, and seconds between two
_SHOWN = 200  # characters of the command's last line
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


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

    status: the exit status, None if it took too long. words: the last line of its output. results: of its tests.
    """

    status: int | None
    words: str
    results: Results = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The end of the run as a sentence, with the first test that failed."""
        red = next((name for name, how in self.results.items() if how), "")
        named = f" ({red[:_SHOWN]})" if red else ""
        return (
            self.words
            if self.status is None
            else f"the command exited with {self.status}: {self.words}{named}"
        )


@dataclass(frozen=True, slots=True)
class Test:
    """A command that tests a fill, the seconds that it may take, and the junit XML that it writes, if it is named.

    names: those of the tests that have run.
    """

    command: str
    seconds: float
    report: Path | None = None
    names: set[str] = field(default_factory=set, compare=False)
    __test__ = False


async def trial(path: Path, change: Change, test: Test, good: Callable[[Ran], bool]) -> Ran:
    """Write a change to `path` and run `test`; return how it ran. The change stays only if that is `good`.

    Whatever else happens, an interrupt included, the change is taken back; if this process is killed, the text before
    is in the file's copy.

    Raises:
        FileError: the file cannot be written.
        Saved: it was saved by somebody else meanwhile, and the change was to be taken back.
        Interrupted: the same, and an interrupt ended the command.
    """
    held = hold(kept_of(path), change.before)
    put(held, change.before, change.after)
    try:
        ran = await run(test)
    except BaseException as end:
        try:
            take_back(held, change)
        except Saved as saved:
            raise Interrupted(saved) from end
        raise
    if good(ran):
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


async def run(test: Test) -> Ran:
    """Run the command of `test` in a shell; return how it ended.

    It runs in a process group of its own, so that its children end with it.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        asked = ask(test.command, Path(folder), test.report)
        # Two changes in one second may have one size, which Python's cache of compiled files would take for one text.
        environment = {"PYTHONDONTWRITEBYTECODE": "1", **asked.environment}
        starting = asyncio.ensure_future(start_users_command(asked.command, output, environment))
        try:
            process = await asyncio.shield(starting)
            async with asyncio.timeout(test.seconds):
                status = await process.wait()
        except TimeoutError:
            return Ran(None, f"the command took longer than {test.seconds:g} s")
        finally:
            # An interrupt may come before the start is done, and the command runs by then.
            process = await asyncio.shield(starting)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        output.seek(max(output.seek(0, os.SEEK_END) - _READ, 0))
        plain = _COLOURS.sub("", output.read().decode("utf-8", "replace")).replace("\r\n", "\n")
        results, text = read(asked, plain)
        results = with_names_of(test.names, results)
        test.names.update(results)
    last = next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "no output")
    return Ran(status, last[:_SHOWN], results)
