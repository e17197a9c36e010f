"""Ran: the result of a test command, with the numbers of passed and failed tests in its output. Knows no process."""

import re
from dataclasses import dataclass

_SHOWN = 200  # characters of the command's last line
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# For each test runner what its lines of counts look like, and in them how many tests failed, passed and ran. A
# pattern without a group counts its matches.
_RUNNERS = tuple(
    tuple(re.compile(pattern, re.MULTILINE) for pattern in row)
    for row in (
        # pytest
        (
            r"^(?:=+ )?(?:\d+ [a-z]+,? )+in [\d.]+s.*$",
            r"(\d+) (?:failed|errors?)\b",
            r"(\d+) passed",
            r"(?!)",
        ),
        # unittest
        (r"^Ran \d+ tests? in .*$|^FAILED \(.*$", r"(?:failures|errors)=(\d+)", r"(?!)", r"Ran (\d+)"),
        # cargo test
        (r"^test result: .*$", r"(\d+) failed", r"(\d+) passed", r"(?!)"),
        # go test
        (r"^ *--- (?:FAIL|PASS): .*$", r"--- FAIL", r"--- PASS", r"(?!)"),
        # jest, vitest
        (r"^ *Tests:? .*\d.*$", r"(\d+) failed", r"(\d+) passed", r"(?!)"),
        # mocha
        (r"^ +\d+ (?:passing|failing)\b.*$", r"(\d+) failing", r"(\d+) passing", r"(?!)"),
        # node --test
        (r"^(?:#|ℹ) (?:pass|fail) \d+$", r"fail (\d+)", r"pass (\d+)", r"(?!)"),
        # dotnet test
        (r"^.*Failed: +\d+, Passed: +\d+.*$", r"Failed: +(\d+)", r"Passed: +(\d+)", r"(?!)"),
        # Maven
        (
            r"^Tests run: .*$|^\[.*\] Tests run: \d+, [^T]*$",
            r"(?:Failures|Errors): (\d+)",
            r"(?!)",
            r"run: (\d+)",
        ),
    )
)
# How runners name a test that failed.
_FAILED = re.compile(
    r"^(?:FAILED|ERROR) (\S+::\S+)|^ *--- FAIL: (\S+)|^test (\S+) \.\.\. FAILED|^(?:FAIL|ERROR): (.+)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a run.

    status: the exit status, None if it took too long. words: what it said last. failed, passed: how many tests it
    counts; None where it counts none that we know of. named: the first test that failed.
    """

    status: int | None
    words: str
    failed: int | None = None
    passed: int | None = None
    named: str = ""

    @property
    def told(self) -> str:
        """The run as a sentence."""
        if self.status is None:
            return self.words
        return f"the command ended with {self.status}: {self.words}" + (
            f" ({self.named})" if self.named else ""
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


def read_run(status: int | None, output: str) -> Ran:
    """Return how a run with this exit status ended, in the words at the end of its output."""
    output = _COLOURS.sub("", output).replace("\r\n", "\n")
    last = next((line.strip() for line in reversed(output.split("\n")) if line.strip()), "it said nothing")
    failed, passed = _counted(output) or (None, None)
    named = _FAILED.search(output)
    name = next(filter(None, named.groups()), "") if named else ""
    return Ran(status, last[:_SHOWN], failed, passed, name[:_SHOWN])


def _counted(output: str) -> tuple[int, int] | None:
    """Return how many tests failed and passed; None where no runner that is known counts them."""
    for line, failed, passed, ran in _RUNNERS:
        found = "\n".join(match[0] for match in line.finditer(output))
        if found:
            fails = _sum(failed, found)
            return fails, max(_sum(passed, found), _sum(ran, found) - fails)
    return None


def _sum(pattern: re.Pattern[str], text: str) -> int:
    """The sum of the numbers that `pattern` finds, or how often it matches where it has no group."""
    found = pattern.findall(text)
    return sum(map(int, found)) if pattern.groups else len(found)
