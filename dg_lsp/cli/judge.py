"""The judge of a bot's fills: which tests belong to a function, and which fill of it may stay.

A test belongs to a function if it ends in another way when the function raises, or is named after it.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dg_lsp.cli.reports import Results
from dg_lsp.cli.target import replace_file
from dg_lsp.cli.trial import Change, Ran, Test, run, trial
from dg_lsp.filling.stubs import StubStarted
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.files import FileError, kept_of, lines_apart, read_now
from dg_lsp.text.documents.undo import undo
from dg_lsp.text.gaps.gap import Edit, apply_edit

# A body that raises, for languages in which an unwritten body may be silent, such as `pass`.
_RAISE: Mapping[str, str] = {
    "python": "raise NotImplementedError",
    "ruby": "raise NotImplementedError",
    "php": "throw new \\Exception('not implemented');",
    "lua": 'error("not implemented")',
    "rust": "unimplemented!()",
    "kotlin": "TODO()",
    **dict.fromkeys(("javascript", "jsx", "typescript", "tsx"), 'throw new Error("not implemented");'),
}
_RAISING = re.compile(
    rb"\b(?:raise|throw|panic|error|abort|die|fail|fatalError|todo|unimplemented|TODO)\b|\?\?\?"
)
# What a failure says that comes from a body that is not written yet.
_UNWRITTEN = re.compile(r"not(?: yet)? implemented|NotImplemented|\bTODO\b", re.IGNORECASE)
_SAID = 3  # names of tests in a sentence


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of a run for a fill.

    passed: the command ended with 0. own: the tests that belong to the function. green, red: the tests that turned from
    red to green, and from green to red. failing: its own tests that fail with the fill. waits: one of these reaches
    another function that is not written yet.
    """

    passed: bool
    own: frozenset[str] = frozenset()
    green: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    waits: bool = False

    @property
    def good(self) -> bool:
        """Return whether the command passes, or all tests of the function do and no other test fails instead."""
        return self.passed or (bool(self.green) and not self.red and not self.failing)

    @property
    def stays(self) -> bool:
        """Return whether the fill may stay for now, because fills of other stubs may make it good."""
        return self.good or (not self.red and bool(self.green or self.waits))

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The better of two fills has the higher rank."""
        return self.stays, len(self.green), -len(self.failing)


@dataclass(frozen=True, slots=True)
class Stayed:
    """A fill that is in the file at `path`, and how its test ended.

    others: the text of the file with each other fill. raised: the results of the tests if the function raises.
    """

    path: Path
    change: Change
    test: Test
    verdict: Verdict
    others: tuple[bytes, ...] = ()
    raised: Results = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Refused:
    """The run before the fills of a stub that were all taken back, and how many silent stubs were filled by then."""

    before: Ran
    silent: int


@dataclass(slots=True)
class Judge:
    """A test command, how it ran on the files as they are now, and the fills that stay in them.

    tries: how many fills of the last stub were tried. verdict: of the last one that counts. silent: how many of the
    stubs that are filled did not raise. tell: called with what runs now.
    """

    test: Test
    runs: dict[str, Ran] = field(default_factory=dict)
    stayed: list[Stayed] = field(default_factory=list)
    refused: dict[tuple[Path, str], _Refused] = field(default_factory=dict)
    tries: int = 0
    verdict: Verdict | None = None
    silent: int = 0
    tell: Callable[[str], None] = field(default=lambda _: None)

    async def before(self, path: Path, name: str) -> Ran:
        """Return the run of the command for the function `name` of `path` on the files as they are."""
        return await self.now(self._test_for(path, name))

    async def now(self, test: Test) -> Ran:
        """Return the run of `test` on the files as they are; it is run once until a fill stays or goes."""
        if test.command not in self.runs:
            self.tell("the tests run on the files as they are")
            self.runs[test.command] = await run(test)
        return self.runs[test.command]

    async def may_change(self, path: Path, name: str) -> bool:
        """Return whether a fill of a stub, which was taken back, may be good now that others are in the files.

        That is so if a test fails in another way than before it was tried, or if a stub that raised nothing, and may
        thus have been the reason unseen, is filled.
        """
        refused, now = self.refused.get((path, name)), await self.before(path, name)
        if refused is None or not now.results or self.silent > refused.silent:
            return True
        return any(how and how != refused.before.results.get(test) for test, how in now.results.items())

    async def choose(
        self, path: Path, stub: StubStarted, filled: Sequence[Document]
    ) -> tuple[int | None, str]:
        """Return the number of the text of `filled` that stays in `path` for the stub, and why; None if none does.

        1. The first one that is good.  2. Else the one with which most tests pass, if it may stay for now.
        """
        self.tries, self.verdict = 0, None
        name, old, test = stub.gap.name, stub.document.data, self._test_for(path, stub.gap.name)
        before = await self.now(test)
        raised = await self._raised(path, stub, before)

        def verdict_of(ran: Ran) -> Verdict:
            return compare(before.results, raised, ran, name)

        # 1.
        tried = list[tuple[Ran, Verdict]]()
        for new in filled:
            self.tries += 1
            self.tell(f"the tests run, fill {self.tries} of {len(filled)}")
            ran = await trial(path, Change(name, old, new.data), test, lambda ran: verdict_of(ran).good)
            tried.append((ran, verdict_of(ran)))
            if tried[-1][1].good:
                break
        # 2.
        number = max(range(len(tried)), key=lambda n: (tried[n][1].good, *tried[n][1].rank, -n))
        ran, self.verdict = tried[number]
        if not self.verdict.stays:
            self.refused[path, name] = _Refused(before, self.silent)
            same = (before.status, before.words) == (ran.status, ran.words)
            return None, ran.sentence + (", as before the fill" if same else "")
        if not self.verdict.good:
            replace_file(path, old, filled[number].data)
        self.silent += not _raises(stub)
        others = tuple(new.data for n, new in enumerate(filled) if n != number)
        change = Change(name, old, filled[number].data)
        self.stayed.append(Stayed(path, change, test, self.verdict, others, raised))
        self.runs.clear()
        self.runs[test.command] = ran
        return number, _why(ran, self.verdict)

    async def improve(self) -> list[Stayed]:
        """Replace fills that are not good by other fills of their stubs that are good now; return the new ones.

        Of several fills, only the tests that need other stubs, too, may tell which one is right.
        """
        improved = []
        for number, one in enumerate(self.stayed):
            if one.verdict.good or await self._stands(one):
                continue
            for other in one.others:
                better = await self._exchange(one, other)
                if better is not None:
                    self.stayed[number] = better
                    improved.append(better)
                    break
        return improved

    async def _exchange(self, one: Stayed, other: bytes) -> Stayed | None:
        """Try `other`, the text of the file with another fill, instead of a fill that stays; None if it is not good."""
        path, name, before = one.path, one.change.name, await self.now(one.test)
        now = read_now(kept_of(path).path)
        new = None if now is None else undo(other, one.change.after, now)
        if now is None or new is None or new == now:
            return None

        def verdict_of(ran: Ran) -> Verdict:
            return compare(before.results, one.raised, ran, name)

        self.tell(f"the tests run, with another fill of {name}")
        ran = await trial(path, Change(name, now, new), one.test, lambda ran: verdict_of(ran).good)
        if not verdict_of(ran).good:
            return None
        self.runs.clear()
        self.runs[one.test.command] = ran
        return replace(one, change=Change(name, one.change.before, other), verdict=verdict_of(ran), others=())

    async def fallen(self) -> list[Stayed]:
        """Return the fills that stay without being good on the files as they are, the last one first."""
        return [one for one in reversed(self.stayed) if not await self._stands(one)]

    async def failing(self) -> str:
        """Return how the command fails on the files as they are; empty if it passes.

        A command that names a function is run for the fills that stay.
        """
        tests = {one.test.command: one.test for one in self.stayed}
        if self._test_for(Path(), "") == self.test:
            tests[self.test.command] = self.test
        for test in tests.values():
            ran = await self.now(test)
            if ran.status != 0:
                return f"at the end {ran.sentence} ({test.command})"
        return ""

    def take_back(self, one: Stayed) -> None:
        """Take a fill that stays out of its file again.

        Raises:
            FileError: the file was changed there, or it cannot be written.
        """
        self.stayed.remove(one)
        self.runs.clear()
        path, change = one.path, one.change
        now = read_now(kept_of(path).path)
        undone = None if now is None else undo(change.before, change.after, now)
        if now is None or undone is None:
            line, _ = lines_apart(change.before, now or b"")
            raise FileError(f"{path} was changed at it, so it may still be there, in line {line}")
        replace_file(path, now, undone)

    async def _stands(self, one: Stayed) -> bool:
        ran, own = await self.now(one.test), one.verdict.own
        return ran.status == 0 or (bool(own) and all(ran.results.get(test) == "" for test in own))

    async def _raised(self, path: Path, stub: StubStarted, before: Ran) -> Results:
        """Return the results of the tests if the function of `stub` raises; of the stub itself where that is so."""
        gap, document = stub.gap, stub.document
        body = _RAISE.get(document.language)
        if body is None or _raises(stub) or not before.results:
            return before.results
        self.tell("the tests run, to find those of the function")
        new = apply_edit(document, Edit(gap.start, gap.end, gap.insert_before + body + gap.insert_after))
        change = Change(gap.name, document.data, new.data)
        ran = await trial(path, change, self._test_for(path, gap.name), lambda _: False)
        return ran.results or before.results

    def _test_for(self, path: Path, name: str) -> Test:
        """Return the test for the function `name` of `path`; `name` includes its owners."""
        command = self.test.command
        last = name.rpartition(".")[2]
        # Not str.format: a command may hold other braces.
        for mark, word in (("{path}", str(path)), ("{name}", last), ("{qualname}", name)):
            command = command.replace(mark, shlex.quote(word))
        return replace(self.test, command=command)


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
        any(_UNWRITTEN.search(now[test]) for test in failing),
    )


def _is_named(test: str, name: str) -> bool:
    """Return whether a test is called after the function, as `test_add[1-2]` or `TestAdd` after `Cart.add`."""
    words = re.split(r"[^\w]+", test.partition("[")[0].lower().replace("_", ""))
    return f"test{name.rpartition('.')[2].lower().replace('_', '')}" in words


def _raises(stub: StubStarted) -> bool:
    """Return whether the unwritten body raises, so that a test that reaches it fails there."""
    return bool(_RAISING.search(stub.document.data, stub.gap.start, stub.gap.end))


def _why(ran: Ran, verdict: Verdict) -> str:
    if verdict.passed:
        return "no test fails without it, so read it" if ran.results and not verdict.own else ""
    if verdict.good:
        return f"its own tests pass ({len(verdict.own)}); {ran.sentence}"
    more = "" if len(verdict.failing) <= _SAID else f" and {len(verdict.failing) - _SAID} more"
    return f"its own tests fail: {', '.join(verdict.failing[:_SAID])}{more}; {ran.sentence}"
