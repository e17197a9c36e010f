"""The judge of a bot's fills: which tests belong to a function, and which fills stay.

A test belongs to a function if it ends in another way when the function raises, or is named after it. While the bot
works, the best fill of every function is in the files, so that tests get through all of them; each run tells for all
fills that are in the files which tests pass with them. At the end only those stay of whose own tests nearly all have
passed with them, and the others end in functions that are not written.
"""

import asyncio
import hashlib
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Literal

from dg_lsp.cli.marks import marked_in, raises, raising, reaching
from dg_lsp.cli.partial import Partials
from dg_lsp.cli.reports import Results
from dg_lsp.cli.target import check_writable, replace_file
from dg_lsp.cli.trial import Change, Ran, Test, trial
from dg_lsp.cli.trial import run as run_test
from dg_lsp.cli.verdict import NONE, Body, Function, Verdict, compare, green_in, is_gain, why_of
from dg_lsp.files.writing import FileError, kept_of, lines_apart, read_now
from dg_lsp.filling.stubs import StubStarted
from dg_lsp.settings import UsageError
from dg_lsp.source.document import Document
from dg_lsp.source.undo import undo

# The share of a fill's own tests that have to pass with it at some time (docs/research/bodies.md).
_PROVEN = 6 / 7
# How many runs are spent on fills of several functions at once: of two functions with four fills each, on all.
_TOGETHER = 16
_WITH_OTHERS = "its own tests pass with the fills of other stubs"
_FALLEN = "its tests have passed, and fail with the fills that are in the files at the end"
Outcome = Literal["kept", "partial", "unproven", "taken back", "left"]


@dataclass(slots=True)
class Judge:
    """A test command, how it ran on the files, and the functions with their fills.

    runs: by the command and the text of each file. documents: the files that may hold unwritten functions. tries: how
    many fills of the last function were tried. verdict: of the one of these that counts. exchanges: runs in which fills
    of several functions were exchanged at once. tell: called with what runs now.
    """

    test: Test
    runs: dict[tuple[str, ...], Ran] = field(default_factory=dict)
    documents: dict[Path, Document] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    tries: int = 0
    verdict: Verdict = NONE
    exchanges: int = 0
    partials: Partials = field(default_factory=Partials)
    tell: Callable[[str], None] = field(default=lambda _: None)

    # Runs.

    async def before(self, path: Path, name: str) -> Ran:
        """Return the run of the command for the function `name` of `path` on the files as they are."""
        return await self._now(self._test_for(path, name))

    async def _now(self, test: Test) -> Ran:
        """Return the run of `test` on the files as they are."""
        key = self._key(test)
        if key not in self.runs:
            self.tell("the tests run on the files as they are")
            self.runs[key] = self._noted(await run_test(test))
        return self.runs[key]

    async def _try(
        self, path: Path, change: Change, test: Test, text: bytes, filled: Function | None = None
    ) -> Ran:
        """Return the run of `test` with a change of `path`, which is taken back.

        text: names the change of its function among others. filled: that function, if its fill is taken out for it.
        """
        key = self._key(test, {(path, change.name): text})
        if key not in self.runs:
            self.runs[key] = self._noted(await trial(path, change, test, lambda _: False), filled)
        return self.runs[key]

    async def _with(self, function: Function, text: bytes) -> Ran | None:
        """Return the run of a function's test with `text` instead of its fill; None if the file cannot be changed."""
        change = self._change(function, text)
        return await self._try(function.path, change, function.test, text, function) if change else None

    def _noted(self, ran: Ran, changed: Function | None = None) -> Ran:
        """Note the tests that have passed for the fills that are in the files; not for a function that is `changed`."""
        for function in self.functions:
            if function.now is not None and function is not changed:
                function.now.passed |= green_in(ran)
        return ran

    def _key(self, test: Test, changed: Mapping[tuple[Path, str], bytes] = {}) -> tuple[str, ...]:
        """Return what a run of `test` depends on: its command, and the texts of the functions that have a fill."""
        texts = {(one.path, one.name): one.now.text for one in self.functions if one.now is not None} | {
            **changed
        }
        return test.command, *sorted(
            f"{path} {name} {hashlib.sha256(text).hexdigest()}" for (path, name), text in texts.items()
        )

    # Changes.

    def _change(self, function: Function, text: bytes) -> Change | None:
        """Return the change of a function's file that puts `text` where its fill is; None if that cannot be done."""
        try:
            check_writable(function.path)
        except UsageError:
            return None
        now = read_now(kept_of(function.path).path)
        new = None if now is None else undo(text, function.now.text if function.now else function.empty, now)
        return None if now is None or new is None else Change(function.name, now, new)

    def put(self, function: Function, body: Body | None) -> None:
        """Put a fill into the file instead of the one that is there; None puts the stub there.

        If a fill that is there cannot be taken out, the function is `left`.
        """
        if function.now is body or function.left:
            return
        change = self._change(function, body.text if body else function.empty)
        try:
            if change is None:
                now = read_now(kept_of(function.path).path) or b""
                line, _ = lines_apart(function.empty, now)
                raise FileError(
                    f"{function.path} was changed at it, so it may still be there, in line {line}"
                )
            self.partials.begin(function.path, change.before)
            replace_file(function.path, change.before, change.after)
            function.now = body
        except UsageError as error:
            function.left = f"this fill could not be taken back: {error}" if function.now else ""

    # Filling.

    async def choose(
        self, path: Path, stub: StubStarted, filled: Sequence[Document]
    ) -> tuple[int | None, str]:
        """Return the number of the text of `filled` that stays in `path` for now, and how it did; None if none does.

        1. The first one that is good stays.  2. Else the best one, if it may: tests of other functions get through.
        """
        self.tries, self.verdict, texts = 0, NONE, [document.data for document in filled]
        name, old, test = stub.gap.name, stub.document.data, self._test_for(path, stub.gap.name)
        before = await self._now(test)
        raised = await self._raised(path, stub, before)
        function = Function(path, name, test, old, raising(stub), before, self.filled(path))
        for one in [one for one in self.functions if (one.path, one.name) == (path, name)]:
            function.learn(one)
            self.functions.remove(one)
        function.bodies += [
            Body(text) for text in texts if all(body.text != text for body in function.bodies)
        ]
        # 1.
        for body in function.bodies:
            if body.text not in texts or body.ran is not None:
                continue
            self.tries += 1
            self.tell(f"the tests run, fill {self.tries} of {len(filled)}")
            change, key = Change(name, old, body.text), self._key(test, {(path, name): body.text})
            ran = await trial(path, change, test, lambda ran: compare(before.results, raised, ran, name).good)
            body.ran = self.runs[key] = self._noted(ran)
            body.verdict, body.passed = compare(before.results, raised, ran, name), green_in(ran)
            if body.verdict.good:
                function.now = body
                break
        # 2.
        best = max(
            (body for body in function.bodies if body.text in texts), key=lambda body: body.verdict.rank
        )
        self.verdict = best.verdict
        function.own |= best.verdict.own
        self.functions.append(function)
        if best.verdict.stays:
            self.put(function, best)
        return texts.index(function.now.text) if function.now else None, why_of(before, best)

    async def _raised(self, path: Path, stub: StubStarted, before: Ran) -> Results:
        """Return the results of the tests if the function of `stub` raises; of the stub itself if it does."""
        text = raising(stub)
        if not text or raises(stub.document, stub.gap) or not before.results:
            return before.results
        self.tell("the tests run, to find those of the function")
        name = stub.gap.name
        change = Change(name, stub.document.data, text)
        ran = await self._try(path, change, self._test_for(path, name), text)
        return ran.results or before.results

    def filled(self, path: Path) -> frozenset[str]:
        """Return the names of the functions of `path` that have a fill in the file."""
        return frozenset(one.name for one in self.functions if one.path == path and one.now is not None)

    # Settling.

    async def settle(self) -> None:
        """Leave in the files what may be right: the fills that are kept, and those of which nothing is proven.

        1. Find the tests of each function, and better fills, with the best fill of every function in the files.
        2. Put fills in again, those of whose own tests most have passed first, as long as none of these fails.
        """
        for function in self.functions:
            if function.now is None:
                self.put(function, function.best)
        if await self._passes():
            return
        # 1.
        for _ in self.functions:
            if not (await self._improve() or await self._combine()):
                break
        if await self._passes():
            return
        # 2.
        pairs, sound = [(one, body) for one in self.functions for body in one.bodies], set[Function]()
        for function in self.functions:
            self.put(function, None)
        while left := [
            (one, body) for one, body in pairs if one.now is None and one.share(body) and not one.left
        ]:
            share = max(one.share(body) for one, body in left)
            # Of several such fills of a function the likeliest one, which is the last here.
            added = {one: body for one, body in reversed(left) if one.share(body) == share}
            pairs = [(one, body) for one, body in left if added.get(one) is not body]
            if share < _PROVEN:
                sound |= {
                    one for one in self.functions if one.now is not None and one.share(one.now) >= _PROVEN
                }
            for function, body in added.items():
                self.put(function, body)
            while wrong := await self._wrong(added, sound):
                for function in wrong:
                    self.put(function, None)

    async def _passes(self) -> bool:
        """Return whether every command passes on the files as they are."""
        return all([(await self._now(one.test)).status == 0 for one in self.functions])

    async def _improve(self) -> bool:
        """Find the tests that belong to each function now, and replace fills by better ones; return whether any was.

        Each fill that is tried is noted to have passed tests, and so are those of the other functions meanwhile.
        """
        found = False
        for function in self.functions:
            self.tell(f"the tests run, to find those of {function.name}")
            ran = await self._with(function, function.raising) if function.raising else None
            function.own |= reaching(ran.results) if ran else set()
        for function in self.functions:
            now = await self._now(function.test)
            if now.status == 0 or (
                function.own and all(now.results.get(test) == "" for test in function.own)
            ):
                continue
            for body in function.bodies:
                self.tell(f"the tests run, with another fill of {function.name}")
                if body is function.now or (ran := await self._with(function, body.text)) is None:
                    continue
                body.passed |= green_in(ran)
                if is_gain(now, ran):
                    self.put(function, body)
                    found = True
                    break
        return found

    async def _combine(self) -> bool:
        """Exchange the fills of several functions at once, of which none is proven and which a failing test reaches.

        The likeliest fills come first, and only so many together are tried. Return whether a test passes with some.
        """
        for test in sorted({test for one in self.functions for test in one.own}):
            reached = [one for one in self.functions if test in one.own and one.now is not None]
            doubted = [one for one in reached if one.now and one.share(one.now) < _PROVEN]
            if len(doubted) < 2 or (before := await self._now(doubted[0].test)).results.get(test) == "":
                continue
            earlier = [one.now for one in doubted]
            for fills in sorted(product(*(enumerate(one.bodies) for one in doubted)), key=_unlikely):
                if self.exchanges == _TOGETHER:
                    break
                for one, (_, body) in zip(doubted, fills, strict=True):
                    self.put(one, body)
                self.exchanges += self._key(doubted[0].test) not in self.runs
                if is_gain(before, await self._now(doubted[0].test)):
                    return True
            for one, was in zip(doubted, earlier, strict=True):
                self.put(one, was)
        return False

    async def _wrong(self, added: Collection[Function], sound: Set[Function]) -> set[Function]:
        """Return the functions whose fills are to be taken out because tests of them fail, none that is `sound`.

        First those that are wrong for certain: a test fails that reaches no other fill. Else those that reach a test
        together, and with which it has never passed; of fills with which it has, those that were `added`.
        """
        filled = [one for one in self.functions if one.now is not None and not one.left]
        certain, together = set[Function](), set[Function]()
        for one in filled:
            if not one.own and (await self._now(one.test)).status != 0:
                certain.add(one)
            for test in await self._failing(one):
                reached = {other for other in filled if test in other.own}
                doubted = {other for other in reached if other.now and test not in other.now.passed}
                if len(reached) == 1:
                    certain |= doubted
                else:
                    together |= doubted - sound or reached & {*added}
        return certain - sound or together

    async def _failing(self, function: Function) -> set[str]:
        """Return the tests of a function that fail, and end in no function that is not written."""
        ran = await self._now(function.test)
        failing = {test for test in function.own if ran.status != 0 and ran.results.get(test) != ""}
        for path, document in self.documents.items() if failing else ():
            now = replace(document, data=read_now(kept_of(path).path) or b"", history=None, state=None)
            if change := await asyncio.to_thread(marked_in, now):
                self.tell("the tests run, to find those of functions that are not written")
                marked = await self._try(path, change, function.test, change.after)
                failing -= reaching(marked.results)
        return failing

    async def outcome(self, function: Function) -> tuple[Outcome, str]:
        """Return the end of a function's fills, with the files as they are, and why; empty if it was said before."""
        if function.left:
            return "left", function.left
        body, ran = function.now, await self._now(function.test)
        if body is None:
            body = function.best
            fell = _FALLEN if body and body.verdict.good else ""
            return ("partial", fell) if body and function.share(body) else ("taken back", fell)
        passed, failing = (
            len(function.own & body.passed),
            [one for one in function.own if ran.results.get(one) != ""],
        )
        if ran.status != 0 and passed < len(function.own):
            why = (
                f"of its own tests, {passed} passed with it and {len(function.own) - passed} ended in functions that "
                "are not written"
            )
            return ("kept" if function.share(body) >= _PROVEN else "unproven"), why
        if ran.status != 0 and failing:
            earlier = f"{len(failing)} of them before fills of other stubs were taken back"
            return "kept", f"its own tests have passed with it, {earlier}"
        return "kept", "" if body.verdict.good else _WITH_OTHERS

    def again(self, path: Path) -> list[Function]:
        """Return the functions of `path` without a fill that were filled before others had one; each time others do."""
        filled = self.filled(path)
        found = [
            one for one in self.functions if one.path == path and one.now is None and not filled <= one.seen
        ]
        for one in found:
            one.seen |= filled
        return found

    async def failing(self) -> str:
        """Return how the command fails on the files as they are; empty if it passes.

        A command that names a function is run for the functions that have a fill.
        """
        tests = [one.test for one in self.functions if one.now is not None]
        if self._test_for(Path(), "") == self.test:
            tests.append(self.test)
        for test in dict.fromkeys(tests):
            ran = await self._now(test)
            if ran.status != 0:
                return f"at the end {ran.sentence} ({test.command})"
        return ""

    def _test_for(self, path: Path, name: str) -> Test:
        """Return the test for the function `name` of `path`; `name` includes its owners."""
        command = self.test.command
        last = name.rpartition(".")[2]
        # Not str.format: a command may hold other braces.
        for mark, word in (("{path}", str(path)), ("{name}", last), ("{qualname}", name)):
            command = command.replace(mark, shlex.quote(word))
        return replace(self.test, command=command)


def _unlikely(bodies: Sequence[tuple[int, Body]]) -> int:
    """Return how far down the lists of the fills of their functions `bodies` are."""
    return sum(number for number, _ in bodies)
