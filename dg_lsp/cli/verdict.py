"""Verdicts on the fills of a function: which tests belong to it, and what a run of them says of a fill."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from dg_lsp.cli.reports import Results
from dg_lsp.cli.trial import Ran, Test
from dg_lsp.source.undo import undo

# What a failure says that comes from a body that is not written yet.
_UNWRITTEN = re.compile(r"not(?: yet)? implemented|NotImplemented|\bTODO\b", re.IGNORECASE)
_SAID = 3  # names of tests in a sentence


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of a run for a fill.

    passed: the command ended with 0. own: the tests that belong to the function. green, red: the tests that turned from
    red to green, and from green to red. failing: its own tests that fail with the fill. waiting: how many of these end
    in another function that is not written.
    """

    passed: bool
    own: frozenset[str] = frozenset()
    green: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    waiting: int = 0

    @property
    def good(self) -> bool:
        """Return whether the command passes, or all tests of the function do and no other test fails instead."""
        return self.passed or (bool(self.green) and not self.red and not self.failing)

    @property
    def stays(self) -> bool:
        """Return whether the fill may stay for now: a test reaches it, and it makes none fail that passed."""
        return self.good or (bool(self.own) and not self.red)

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """The better of two fills has the higher rank."""
        return self.good, self.stays, len(self.green), self.waiting - len(self.failing)


# Of no fill.
NONE = Verdict(passed=False)


@dataclass(slots=True, eq=False)
class Body:
    """One fill of a function.

    text: of the file, as it was when the function was filled, with this fill. ran, verdict: how its test ended then, if
    it was tried. passed: the tests that have passed with it in the file.
    """

    text: bytes
    ran: Ran | None = None
    verdict: Verdict = NONE
    passed: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Function:
    """A function that was not written, its fills, and what is known of them.

    empty, raising: the text of the file, as it was when the function was filled, with the stub, and with a body that
    raises; `raising` is empty if none can be written. before: how the test ended with the stub. own: the tests that
    belong to it. now: the fill that is in the file. seen: the functions of its file with a fill when it was filled.
    left: why a fill of it could not be taken out of its file.
    """

    path: Path
    name: str
    test: Test
    empty: bytes
    raising: bytes
    before: Ran
    seen: frozenset[str]
    bodies: list[Body] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    now: Body | None = None
    left: str = ""

    @property
    def best(self) -> Body | None:
        """The best fill by the runs in which the fills were tried; None if each made a test fail that passed."""
        tried = [one for one in self.bodies if one.verdict.stays or (one.ran and one.ran.results)]
        return max(
            (one for one in tried if not one.verdict.red), key=lambda one: one.verdict.rank, default=None
        )

    def learn(self, earlier: "Function") -> None:
        """Take the fills of an `earlier` time at which the same function was filled, and its tests."""
        self.own |= earlier.own
        for body in earlier.bodies:
            text = undo(body.text, earlier.empty, self.empty)
            if text is not None:
                self.bodies.append(replace(body, text=text))

    def share(self, body: Body) -> float:
        """Return the share of the function's own tests that have passed with `body`; 0 if it made none pass."""
        if not self.own:
            return float(body.verdict.passed)
        passed = body.passed & self.own
        return len(passed) / len(self.own) if passed - green_in(self.before) else 0.0


def compare(before: Results, raised: Results, ran: Ran, name: str) -> Verdict:
    """Return the verdict of a run with a fill of the function `name`.

    before: the results with the stub. raised: those if the function raises. If that stops whole files of tests from
    being loaded, all their tests are new, and one that reaches another stub tells nothing of this function.
    """
    now = ran.results
    loads = any(how and test not in now for test, how in raised.items())

    def is_own(test: str, how: str) -> bool:
        if test not in raised and loads and _UNWRITTEN.search(how):
            return False
        return raised.get(test) != how or _is_named(test, name)

    own = frozenset(test for test, how in now.items() if is_own(test, how))
    failing = tuple(test for test in now if test in own and now[test])
    return Verdict(
        ran.status == 0,
        own,
        tuple(test for test, how in now.items() if not how and before.get(test) != ""),
        tuple(test for test, how in before.items() if not how and now.get(test) != ""),
        failing,
        sum(bool(_UNWRITTEN.search(now[test])) for test in failing),
    )


def _is_named(test: str, name: str) -> bool:
    """Return whether a test is called after the function, as `test_add[1-2]` or `TestAdd` after `Cart.add`."""
    words = re.split(r"[^\w]+", test.partition("[")[0].lower().replace("_", ""))
    return f"test{name.rpartition('.')[2].lower().replace('_', '')}" in words


def is_gain(before: Ran, ran: Ran) -> bool:
    """Return whether the command passes, or a test does that did not before, and none fails that passed."""
    green = any(not how and before.results.get(test) != "" for test, how in ran.results.items())
    return ran.status == 0 or (
        green and all(how or ran.results.get(one) == "" for one, how in before.results.items())
    )


def green_in(ran: Ran) -> set[str]:
    """Return the tests that pass in a run."""
    return {test for test, how in ran.results.items() if not how}


def why_of(before: Ran, body: Body) -> str:
    ran, verdict = body.ran or before, body.verdict
    if verdict.passed:
        return "no test fails without it, so read it" if ran.results and not verdict.own else ""
    if verdict.good:
        return f"its own tests pass ({len(verdict.own)}); {ran.sentence}"
    more = "" if len(verdict.failing) <= _SAID else f" and {len(verdict.failing) - _SAID} more"
    own = f"its own tests fail: {', '.join(verdict.failing[:_SAID])}{more}; " if verdict.failing else ""
    same = ", as before the fill" if (before.status, before.words) == (ran.status, ran.words) else ""
    return own + ran.sentence + same
