"""The report of a bot: what became of each stub, in words and as JSON."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from dg_lsp.cli.options import say
from dg_lsp.cli.shown import show
from dg_lsp.cli.verdict import Function
from dg_lsp.files.writing import write_whole

Outcome = Literal["kept", "partial", "unproven", "taken back", "left", "no fill", "filled"]


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of one stub.

    outcome: kept; partial, if more tests passed with it and some of its own still failed at the end, and then taken
    back unless partial fills are wanted; filled but taken back, by `why`; left in the file though it did not pass, by
    `why`, because somebody else has saved the file there meanwhile; without a fill, by `why`; or filled in a dry run,
    which tests and writes nothing. tries: how many different fills the command has seen. green, red: the tests that the
    fill turned from red to green, and from green to red. failing: tests of the function that fail with the fill.
    """

    path: str
    name: str
    line: int
    outcome: Outcome
    why: str
    seconds: float
    tries: int = 0
    green: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The stub and its outcome, as a line."""
        return f"{self.path}:{self.line} {self.name}: {self.outcome}{f' ({self.why})' if self.why else ''}"


@dataclass(slots=True)
class Report:
    """The results of all stubs.

    skipped: files with the reasons. meant: files, lines and names of functions without code that are to stay so.
    failing: how the command fails at the end. exchanges: how many runs had other fills of several stubs at once.
    """

    stubs: list[Tried] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    meant: list[tuple[str, int, str]] = field(default_factory=list)
    diff: str = ""
    interrupted: bool = False
    failing: str = ""
    exchanges: int = 0

    def summary(self) -> dict[str, int]:
        """Return how many stubs were tried, filled, kept, partial and unproven."""
        filled = sum(tried.outcome != "no fill" for tried in self.stubs)
        return {
            "tried": len(self.stubs),
            "filled": filled,
            "kept": self.count("kept"),
            "partial": self.count("partial"),
            "unproven": self.count("unproven"),
        }

    def count(self, *outcomes: Outcome) -> int:
        """Return how many stubs have one of the `outcomes`."""
        return sum(tried.outcome in outcomes for tried in self.stubs)

    @property
    def complete(self) -> bool:
        """Return whether every stub was filled, no file was skipped, and the command passes."""
        return not self.skipped and not self.failing and self.count("kept", "filled") == len(self.stubs)

    def settle(self, function: Function, outcome: Outcome, why: str) -> bool:
        """Give a function its last outcome, and why if that is known; return whether it had another one."""
        key = str(function.path), function.name
        number = next(number for number, one in enumerate(self.stubs) if (one.path, one.name) == key)
        tried = self.stubs[number]
        self.stubs[number] = replace(tried, outcome=outcome, why=why or tried.why)
        return outcome != tried.outcome

    def add(self, tried: Tried, earlier: list[Tried]) -> None:
        """Add a result; it replaces that of the same stub among the `earlier` ones, which is removed from them."""
        old = next((one for one in earlier if one.name == tried.name), None)
        if old is None:
            self.stubs.append(tried)
        else:
            earlier.remove(old)
            self.stubs[self.stubs.index(old)] = tried


def tell(report: Report, file: str | None, *, dry_run: bool) -> None:
    """Print the diff of a dry run, the sum, and the report where it is wanted."""
    summary = report.summary()
    stubs = f"{summary['tried']} stub{'s' if summary['tried'] != 1 else ''}"
    if dry_run and file != "-":
        show(report.diff, end="")
    if dry_run:
        say(f"{stubs}, {summary['filled']} filled; a dry run tests and writes nothing")
    else:
        others = "".join(f", {summary[one]} {one}" for one in ("partial", "unproven") if summary[one])
        say(f"{stubs}, {summary['filled']} filled, {summary['kept']} kept{others}")
    if file:
        plain = json.dumps({"summary": summary, **asdict(report)}, indent=1) + "\n"
        if file == "-":
            show(plain, end="")
        else:
            write_whole(Path(file), plain.encode("utf-8"))
