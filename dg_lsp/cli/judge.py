"""The judge of a bot's fills: which tests belong to a function, and which fill of it may stay.

A test belongs to a function if it ends in another way when the function raises, or is named after it, also if it gets
there only with the fills of other stubs. One that ends in another function that is not written yet tells nothing of
this one, neither that it is right nor that it is wrong: a fill is proven once nearly all of its tests have passed with
it, whatever else was in the files then.
"""

import asyncio
import operator
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from dg_lsp.cli.partial import Partials
from dg_lsp.cli.reports import Results
from dg_lsp.cli.target import replace_file
from dg_lsp.cli.trial import Change, Ran, Test, run, trial
from dg_lsp.files.writing import FileError, kept_of, lines_apart, read_now
from dg_lsp.filling.stubs import StubStarted, stubs_of
from dg_lsp.gaps import Edit, Gap, apply_edit
from dg_lsp.settings import UsageError
from dg_lsp.source.document import Document
from dg_lsp.source.undo import undo

# What a failure says of a test that has reached one of the bodies below.
_MARK = "not implemented: dg-lsp is looking for the tests of this function"
# A body that raises.
_RAISE: Mapping[str, str] = {
    "python": f'raise NotImplementedError("{_MARK}")',
    "ruby": f'raise NotImplementedError, "{_MARK}"',
    "php": f"throw new \\Exception('{_MARK}');",
    "lua": f'error("{_MARK}")',
    "rust": f'panic!("{_MARK}")',
    "kotlin": f'TODO("{_MARK}")',
    "go": f'panic("{_MARK}")',
    "java": f'throw new UnsupportedOperationException("{_MARK}");',
    "csharp": f'throw new System.NotImplementedException("{_MARK}");',
    **dict.fromkeys(("javascript", "jsx", "typescript", "tsx"), f'throw new Error("{_MARK}");'),
}
_RAISING = re.compile(
    rb"\b(?:raise|throw|panic|error|abort|die|fail|fatalError|todo|unimplemented|TODO)\b|\?\?\?"
)
# What a failure says that comes from a body that is not written yet.
_UNWRITTEN = re.compile(r"not(?: yet)? implemented|NotImplemented|\bTODO\b", re.IGNORECASE)
_SAID = 3  # names of tests in a sentence
# The share of a fill's own tests that may never have passed with it because they end in other functions: of five, one.
_UNTOLD = 0.2
# Why a fill is kept whose tests failed when it was tried.
WITH_OTHERS = "its own tests pass with the fills of other stubs"
# Files, as they are.
Documents = Sequence[tuple[Path, Document]]


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

    others: the text of the file with each other fill. raised: the results of the tests if the function raises. raising:
    the text of the file in which it does, empty if none can be written.
    """

    path: Path
    change: Change
    test: Test
    verdict: Verdict
    others: tuple[bytes, ...] = ()
    raised: Results = field(default_factory=dict)
    raising: bytes = b""

    @property
    def key(self) -> tuple[Path, str]:
        """The file and the name of the function."""
        return self.path, self.change.name


@dataclass(frozen=True, slots=True)
class _Refused:
    """The fills of a stub that were all taken back.

    before: the run before them. silent: how many silent stubs were filled by then. one: as if the best had stayed.
    """

    before: Ran
    silent: int
    one: Stayed


@dataclass(slots=True)
class Judge:
    """A test command, how it ran on the files as they are now, and the fills that stay in them.

    runs, ends: by command, the last run and the tests that end in functions which are not written, as long as the
    files stay as they are. needed: whether a test needs a fill, as long as they do. tries: how many fills of the last
    stub were tried. verdict: of the last one that counts. silent: how many of the stubs that are filled did not raise.
    tell: called with what runs now.
    """

    test: Test
    runs: dict[str, Ran] = field(default_factory=dict)
    ends: dict[str, frozenset[str]] = field(default_factory=dict)
    passed: dict[tuple[Path, str], set[str]] = field(default_factory=dict)
    stayed: list[Stayed] = field(default_factory=list)
    refused: dict[tuple[Path, str], _Refused] = field(default_factory=dict)
    tries: int = 0
    verdict: Verdict | None = None
    silent: int = 0
    partials: Partials = field(default_factory=Partials)
    tell: Callable[[str], None] = field(default=lambda _: None)

    async def before(self, path: Path, name: str) -> Ran:
        """Return the run of the command for the function `name` of `path` on the files as they are."""
        return await self.now(self._test_for(path, name))

    async def now(self, test: Test) -> Ran:
        """Return the run of `test` on the files as they are; it is run once until a fill stays or goes."""
        if test.command not in self.runs:
            self.tell("the tests run on the files as they are")
            self.runs[test.command] = self._noted(await run(test))
        return self.runs[test.command]

    async def _try(
        self, path: Path, change: Change, test: Test, good: Callable[[Ran], bool] = lambda _: False
    ) -> Ran:
        """Return the run of `test` with a change, which stays only if that is `good`."""
        return self._noted(await trial(path, change, test, good), (path, change.name))

    def _noted(self, ran: Ran, changed: tuple[Path, str] | None = None) -> Ran:
        """Note the tests that have passed in `ran` for the fills that were in the files; all but that of `changed`."""
        for one in self.stayed:
            if one.key != changed:
                self.passed[one.key] |= _green(ran)
        return ran

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
            ran = await self._try(path, Change(name, old, new.data), test, lambda ran: verdict_of(ran).good)
            tried.append((ran, verdict_of(ran)))
            if tried[-1][1].good:
                break
        # 2.
        number = max(range(len(tried)), key=lambda n: (tried[n][1].good, *tried[n][1].rank, -n))
        ran, self.verdict = tried[number]
        others = tuple(new.data for n, new in enumerate(filled) if n != number)
        change = Change(name, old, filled[number].data)
        one = Stayed(path, change, test, self.verdict, others, raised, _raising(stub))
        self.refused.pop((path, name), None)
        if not self.verdict.stays:
            self.refused[path, name] = _Refused(before, self.silent, one)
            same = (before.status, before.words) == (ran.status, ran.words)
            return None, ran.sentence + (", as before the fill" if same else "")
        if not self.verdict.good:
            self.partials.begin(path, old)
            replace_file(path, old, filled[number].data)
        self.silent += not _raises(stub.document, stub.gap)
        self.stayed.append(one)
        self.passed[one.key] = _green(ran)
        self._changed({test.command: ran})
        return number, _why(ran, self.verdict)

    async def improve(self, documents: Documents) -> list[Stayed]:
        """Replace fills that are not good by other fills of their stubs that are good now; return the new ones.

        Of several fills, only the tests that need other stubs, too, may tell which one is right.
        """
        improved = []
        for number, one in enumerate(self.stayed):
            if await self._share(one, documents) == 1:
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
        ran = await self._try(path, Change(name, now, new), one.test, lambda ran: verdict_of(ran).good)
        if not verdict_of(ran).good:
            return None
        self.passed[one.key] = _green(ran)
        self._changed({one.test.command: ran})
        return replace(one, change=Change(name, one.change.before, other), verdict=verdict_of(ran), others=())

    async def look(self) -> list[tuple[Stayed, FileError]]:
        """Add the tests that reach a fill to its own ones, for each fill that stays; see `fallen`.

        When it was tried, they may have ended in another function. So the best fill of every stub without one is in the
        files meanwhile, however wrong, and lets tests through that would end there. Return those that could not be
        taken out again.
        """
        if not any([(await self.now(one.test)).status != 0 for one in self.stayed]):
            return []
        bridges, left = list[Stayed](), list[tuple[Stayed, FileError]]()
        try:
            for refused in tuple(self.refused.values()):
                with suppress(FileError, UsageError):
                    bridges += self._bridged(refused.one)
            for number, one in enumerate(self.stayed):
                now = read_now(kept_of(one.path).path) or b""
                raising = undo(one.raising, one.change.after, now) if one.raising else None
                if one in bridges or raising is None:
                    continue
                self.tell(f"the tests run, to find those of {one.change.name}")
                reached = await self._reaching(one.path, Change(one.change.name, now, raising), one.test)
                own = one.verdict.own | reached
                self.stayed[number] = replace(one, verdict=replace(one.verdict, own=own))
            await self._prove_with(bridges)
        finally:
            for bridge in reversed(bridges):
                try:
                    self.take_back(bridge)
                except FileError as error:
                    left.append((bridge, error))
        return left

    def _bridged(self, one: Stayed) -> list[Stayed]:
        """Put a fill that was refused into its file for now, and return it; nothing where the file is not as it was."""
        path = one.path
        now = read_now(kept_of(path).path)
        new = None if now is None else undo(one.change.after, one.change.before, now)
        if now is None or new is None or new == now:
            return []
        self.partials.begin(path, now)
        replace_file(path, now, new)
        self.stayed.append(one)
        self.passed[one.key] = set()
        self._changed({})
        return [one]

    async def _prove_with(self, bridges: Sequence[Stayed]) -> None:
        """Run the tests with `bridges` in the files, then with each other fill of one stub, while a fill is not proven.

        Only fills that are no bridges are to be proven.
        """
        for one in tuple(self.stayed):
            await self.now(one.test)
        for other in tuple(self.stayed):
            for fill in () if other.verdict.good else other.others:
                others = [one for one in self.stayed if one is not other and one not in bridges]
                waiting = [one.change.name for one in others if not await self.is_proven(one)]
                now = read_now(kept_of(other.path).path)
                new = None if now is None else undo(fill, other.change.after, now)
                if not waiting or now is None or new is None or new == now:
                    break
                name = other.change.name
                self.tell(f"the tests of {waiting[0]} run with another fill of {name}")
                await self._try(other.path, Change(name, now, new), other.test)

    async def fallen(self, documents: Documents) -> list[tuple[float, Stayed]]:
        """Return the fills that stay without being good, with the share of their own tests that do not fail, upwards.

        A test that ends in an unwritten function of `documents`, the bot's files, counts for no fill. First come the
        fills that are wrong for certain, whatever the others are: a test fails that reaches no other fill. Their shares
        are lowered by 1.
        """
        shares = [(await self._share(one, documents), one) for one in reversed(self.stayed)]
        fallen = [pair for pair in shares if pair[0] < 1]
        certain = [await self._is_wrong(one, documents) for _, one in fallen]
        lowered = [(share - wrong, one) for (share, one), wrong in zip(fallen, certain, strict=True)]
        return sorted(lowered, key=operator.itemgetter(0))

    async def revive(self, gone: Sequence[Stayed], documents: Documents) -> list[Stayed]:
        """Put fills that are `gone`, or were refused, into the files again where they are good; return these.

        To be called once a fill that was wrong for certain is gone: what the others failed for may have been that one.
        """
        left, back = [*gone, *(refused.one for refused in self.refused.values())], list[Stayed]()
        found = True
        # One that is good again may be what another one waits for.
        while found:
            found = False
            for one in tuple(left):
                if again := await self._again(one, documents):
                    left.remove(one)
                    back.append(again)
                    found = True
        return back

    async def _again(self, one: Stayed, documents: Documents) -> Stayed | None:
        """Put the first fill of a stub into its file that is good there now; None if none is."""
        for fill in (one.change.after, *one.others):
            again = await self._put_back(one, fill)
            if again is None:
                continue
            self.stayed.append(again)
            if not await self.fallen(documents):
                return again
            self.take_back(again)
        return None

    async def _put_back(self, one: Stayed, fill: bytes) -> Stayed | None:
        """Put `fill`, the text of a file with a fill that is not in it, into the file as it is now, and find its tests.

        None if no test passes with it that failed, or one fails that passed.
        """
        path, name, test, before = one.path, one.change.name, one.test, await self.now(one.test)
        now = read_now(kept_of(path).path)
        new = None if now is None else undo(fill, one.change.before, now)
        if now is None or new is None or new == now:
            return None
        self.tell(f"the tests run, with a fill of {name} again")
        self.partials.begin(path, now)
        ran = await self._try(path, Change(name, now, new), test, lambda ran: _is_gain(before.results, ran))
        if not _is_gain(before.results, ran):
            return None
        self.passed[path, name] = _green(ran)
        self._changed({test.command: ran})
        raising = undo(one.raising, fill, new) if one.raising else None
        reached = await self._reaching(path, Change(name, new, raising), test) if raising else one.verdict.own
        raised = {**ran.results, **dict.fromkeys(reached, _MARK)}
        verdict = replace(compare(before.results, raised, ran, name), own=reached)
        return Stayed(path, Change(name, now, new), test, verdict, (), raised, raising or b"")

    async def _is_wrong(self, one: Stayed, documents: Documents) -> bool:
        """Return whether a test of a fill fails that reaches neither another fill nor an unwritten function."""
        ran, others = await self.now(one.test), (other for other in self.stayed if other is not one)
        failing = {test for test in one.verdict.own if ran.results.get(test)}
        failing = failing.difference(*(other.verdict.own for other in others))
        return bool(failing and failing - await self._ending(one.test, documents))

    async def is_proven(self, one: Stayed) -> bool:
        """Return whether nearly all own tests of a fill that stays have passed with it, or the command passes."""
        return len(await self._untold(one)) <= _UNTOLD * len(one.verdict.own)

    async def _untold(self, one: Stayed) -> frozenset[str]:
        """Return the own tests of a fill that stays which have never passed with it; none if the command passes."""
        ran = await self.now(one.test)
        return frozenset() if ran.status == 0 else one.verdict.own - self.passed[one.key]

    async def prove(self, gone: Sequence[Stayed]) -> None:
        """Run the tests with each fill that is not in the files, as long as one that is there is not proven.

        Its tests may pass with that fill, though it is wrong for others. gone: the fills that were taken back at the
        end.
        """
        staying = {one.key for one in self.stayed}
        for other in (*gone, *(refused.one for refused in self.refused.values())):
            for fill in () if other.key in staying else (other.change.after, *other.others):
                waiting = [one.change.name for one in self.stayed if not await self.is_proven(one)]
                now = read_now(kept_of(other.path).path)
                new = None if now is None else undo(fill, other.change.before, now)
                if not waiting or now is None or new is None or new == now:
                    break
                self.tell(f"the tests of {waiting[0]} run with a fill of {other.change.name}")
                await self._try(other.path, Change(other.change.name, now, new), other.test)

    async def why(self, one: Stayed) -> str:
        """Return why a fill that stays is good or unproven at the end; empty if that was said when it was tried."""
        ran, own = await self.now(one.test), one.verdict.own
        if untold := await self._untold(one):
            said = f"of its own tests, {len(own) - len(untold)} passed with it"
            return f"{said} and {len(untold)} ended in functions that are not written"
        ending = sum(ran.results.get(test) != "" for test in own)
        if ran.status != 0 and ending:
            return f"its own tests have passed with it, {ending} of them before fills of other stubs were taken back"
        return "" if one.verdict.good else WITH_OTHERS

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
        self._changed({})
        path, change = one.path, one.change
        now = read_now(kept_of(path).path)
        undone = None if now is None else undo(change.before, change.after, now)
        if now is None or undone is None:
            line, _ = lines_apart(change.before, now or b"")
            raise FileError(f"{path} was changed at it, so it may still be there, in line {line}")
        replace_file(path, now, undone)

    def _changed(self, runs: dict[str, Ran]) -> None:
        """Forget what was known of the files before a change, and take the `runs` since it."""
        self.runs = runs
        self.ends.clear()

    async def _share(self, one: Stayed, documents: Documents) -> float:
        """Return the share of the own tests of a fill that do not fail for it; 0 if it has made none pass."""
        ran, own = await self.now(one.test), one.verdict.own
        if ran.status == 0:
            return 1.0
        if all(one.raised.get(test) == "" for test in own - await self._untold(one)):
            return 0.0
        failing = {test for test in own if ran.results.get(test) != ""}
        if failing:
            failing -= await self._ending(one.test, documents)
        return 1 - len(failing) / len(own)

    async def _ending(self, test: Test, documents: Documents) -> frozenset[str]:
        """Return the tests that end in a function of `documents` that is not written, and raises."""
        if test.command not in self.ends:
            found = frozenset[str]()
            for path, document in documents:
                data = read_now(kept_of(path).path) or b""
                now = replace(document, data=data, history=None, state=None)
                if change := await asyncio.to_thread(_marked, now):
                    self.tell("the tests run, to find those of functions that are not written")
                    found |= await self._reaching(path, change, test)
            self.ends[test.command] = found
        return self.ends[test.command]

    async def _reaching(self, path: Path, change: Change, test: Test) -> frozenset[str]:
        """Return the tests that reach a body of `change` which raises the mark."""
        ran = await self._try(path, change, test)
        return frozenset(test for test, how in ran.results.items() if _MARK in how)

    async def _raised(self, path: Path, stub: StubStarted, before: Ran) -> Results:
        """Return the results of the tests if the function of `stub` raises; of the stub itself where that is so."""
        raising = _raising(stub)
        if not raising or _raises(stub.document, stub.gap) or not before.results:
            return before.results
        self.tell("the tests run, to find those of the function")
        name = stub.gap.name
        change = Change(name, stub.document.data, raising)
        ran = await self._try(path, change, self._test_for(path, name))
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


def _is_gain(before: Results, ran: Ran) -> bool:
    """Return whether a test passes in a run that did not pass before, and none fails that passed."""
    green = any(not how and before.get(test) != "" for test, how in ran.results.items())
    return green and all(how or ran.results.get(test) == "" for test, how in before.items())


def _green(ran: Ran) -> set[str]:
    """Return the tests that pass in a run."""
    return {test for test, how in ran.results.items() if not how}


def _is_named(test: str, name: str) -> bool:
    """Return whether a test is called after the function, as `test_add[1-2]` or `TestAdd` after `Cart.add`."""
    words = re.split(r"[^\w]+", test.partition("[")[0].lower().replace("_", ""))
    return f"test{name.rpartition('.')[2].lower().replace('_', '')}" in words


def _raises(document: Document, gap: Gap) -> bool:
    """Return whether the unwritten body in `gap` raises, so that a test that reaches it fails there."""
    return bool(_RAISING.search(document.data, gap.start, gap.end))


def _with_mark(document: Document, gap: Gap) -> Document:
    """Return `document` with a body that raises the mark in `gap`; unchanged where a language has none."""
    body = _RAISE.get(document.language)
    if body is None:
        return document
    return apply_edit(document, Edit(gap.start, gap.end, gap.insert_before + body + gap.insert_after))


def _raising(stub: StubStarted) -> bytes:
    """Return the text of the file in which the function of `stub` raises the mark; empty if none can be written."""
    raising = _with_mark(stub.document, stub.gap)
    return b"" if raising is stub.document else raising.data


def _marked(document: Document) -> Change | None:
    """Return the change of `document` that has the mark raised by unwritten functions that raise; None if none do."""
    marked, name = document, ""
    for gap in reversed(stubs_of(document)):
        if gap.stub and _raises(document, gap):
            marked, name = _with_mark(marked, gap), gap.name
    return None if marked is document else Change(name, document.data, marked.data)


def _why(ran: Ran, verdict: Verdict) -> str:
    if verdict.passed:
        return "no test fails without it, so read it" if ran.results and not verdict.own else ""
    if verdict.good:
        return f"its own tests pass ({len(verdict.own)}); {ran.sentence}"
    more = "" if len(verdict.failing) <= _SAID else f" and {len(verdict.failing) - _SAID} more"
    return f"its own tests fail: {', '.join(verdict.failing[:_SAID])}{more}; {ran.sentence}"
