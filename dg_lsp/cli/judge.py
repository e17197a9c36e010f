"""Judge: choose among several fills of a stub by a test command. Knows trials and runs; knows no engine."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dg_lsp.cli.ran import Ran
from dg_lsp.cli.target import replace_file
from dg_lsp.cli.trial import run, trial


@dataclass(frozen=True, slots=True)
class Judge:
    """A test command, the seconds that a run of it may take, and how it ran on the files as they are now."""

    command: str
    seconds: float
    runs: dict[str, Ran] = field(default_factory=dict)

    async def before(self, path: Path, name: str) -> Ran:
        """Return the run of the command for the function `name` of `path` before any fill; it is run once."""
        command = self._command_for(path, name)
        if command not in self.runs:
            self.runs[command] = await run(command, self.seconds)
        return self.runs[command]

    async def choose(
        self, path: Path, name: str, old: bytes, texts: Sequence[bytes]
    ) -> tuple[int | None, str]:
        """Return which of `texts` is kept in the place of `old`, the text of `path`, and why; None if none is.

        1. The first with which the command passes.  2. Else the one with which most tests pass, if these are more than
        before, and no more fail. A command that other stubs fail, too, so keeps what passes.

        Raises:
            UsageError: somebody else has changed the file.
        """
        # 1.
        command, tried = self._command_for(path, name), list[Ran]()
        for number, new in enumerate(texts):
            tried.append(await trial(path, (old, new), command, self.seconds))
            if tried[-1].status == 0:
                self._kept(command, tried[-1])
                return number, ""
        # 2.
        before = await self.before(path, name)
        better = [number for number, ran in enumerate(tried) if ran.is_better(before)]
        if not better:
            same = (before.status, before.failed, before.passed) == (
                tried[0].status,
                tried[0].failed,
                tried[0].passed,
            )
            return None, tried[0].told + (", as before the fill" if same else "")
        best = min(better, key=lambda number: (tried[number].failed or 0, -(tried[number].passed or 0)))
        replace_file(path, old, texts[best])
        self._kept(command, tried[best])
        return best, f"{tried[best].told}; before the fill: {before.words}"

    def _kept(self, command: str, ran: Ran) -> None:
        """Forget how commands ran before a fill that is kept; with it `command` ran as `ran`."""
        self.runs.clear()
        self.runs[command] = ran

    def _command_for(self, path: Path, name: str) -> str:
        """The command for the function called `name`, with its owners, of `path`."""
        command = self.command
        last = name.rpartition(".")[2]
        # Not str.format: a command may hold other braces.
        for mark, word in (("{path}", str(path)), ("{name}", last), ("{qualname}", name)):
            command = command.replace(mark, shlex.quote(word))
        return command
