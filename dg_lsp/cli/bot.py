"""`dg-lsp bot`: fill the unwritten functions of files and folders, and keep the fills that pass a test command."""

import argparse
import asyncio
import functools
import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from dg_lsp.budget import BOT, within
from dg_lsp.cli.fill import add_engine, engine_of, index_for, say_unlearned
from dg_lsp.cli.judge import WITH_OTHERS, Judge, Stayed, Verdict
from dg_lsp.cli.options import check_output, explain, say, settings_of
from dg_lsp.cli.partial import Partials
from dg_lsp.cli.shown import show
from dg_lsp.cli.target import check_writable, replace_file, why_excluded
from dg_lsp.cli.trial import Interrupted, Ran, Saved, Test
from dg_lsp.cli.waiting import Waiting
from dg_lsp.files.writing import ENDING, FileError, check_free, kept_of, write_whole
from dg_lsp.filling.engine import Engine, EngineError
from dg_lsp.filling.fill import FillOptions
from dg_lsp.filling.project import project_files
from dg_lsp.filling.stubs import StubStarted, choose_first, fill_stubs, mark_partial, meant_of, stubs_of
from dg_lsp.gaps import unified_diff
from dg_lsp.reasons import OutOfTime
from dg_lsp.settings import RANGES, Settings, UsageError
from dg_lsp.source.document import Document, DocumentError, read_document, why_unread
from dg_lsp.source.language import UnknownLanguage, has_language, language_of

_TESTED = (
    "a shell command that is run after each fill, with {path}, {name} and {qualname} replaced by the file, the "
    "function and the function with its owners. A fill is kept if the command exits with 0, or if all tests that "
    "belong to the function pass and no other test fails instead; other fills are taken back. The tests are read from "
    "the reports of pytest, jest, vitest, node --test, go test, cargo test and cargo nextest, which are asked for "
    "them; of another command, see --report. Let it run all tests: one that stops at the first red test, as pytest -x, "
    "hides the others"
)
Outcome = Literal["kept", "partial", "unproven", "taken back", "left", "no fill", "filled"]
_FALLEN = "its tests have passed, and fail with the fills that are in the files at the end"
_NAMED = 5  # functions that are left alone, of a file
_STAYS: tuple[Outcome, ...] = ("kept", "partial", "unproven")
_CODES = (
    "0 every stub was filled, or there was none, and the command passes; 1 some were left, partial or unproven, or the "
    "command fails at the end; 2 usage or bad input, or the engine failed; 130 interrupted"
)


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


@dataclass(slots=True)
class Report:
    """The results of all stubs.

    skipped: files with the reasons. meant: files, lines and names of functions without code that are to stay so.
    failing: how the command fails at the end.
    """

    stubs: list[Tried] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    meant: list[tuple[str, int, str]] = field(default_factory=list)
    diff: str = ""
    interrupted: bool = False
    failing: str = ""

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

    def outcome(self, stayed: Stayed) -> Outcome:
        """Return the outcome of the stub of a fill that stayed; "no fill" if there is none yet."""
        found = (tried.outcome for tried in self.stubs if (Path(tried.path), tried.name) == stayed.key)
        return next(found, "no fill")

    def settle(self, stayed: Stayed, outcome: Outcome, why: str) -> None:
        """Give the stub of a fill that stayed its last outcome."""
        for number, tried in enumerate(self.stubs):
            known = tried.outcome in (*_STAYS, "taken back")
            if known and (Path(tried.path), tried.name) == stayed.key:
                self.stubs[number] = replace(tried, outcome=outcome, why=why or tried.why)

    def add(self, tried: Tried, earlier: list[Tried]) -> None:
        """Add a result; it replaces that of the same stub among the `earlier` ones, which is removed from them."""
        old = next((one for one in earlier if one.name == tried.name), None)
        if old is None:
            self.stubs.append(tried)
        else:
            earlier.remove(old)
            self.stubs[self.stubs.index(old)] = tried

    def of(self, path: Path) -> list[Tried]:
        """Return the stubs of `path`."""
        return [tried for tried in self.stubs if tried.path == str(path)]

    def taken_back(self, path: Path) -> list[Tried]:
        """Return the stubs of `path` whose fills were taken back."""
        return [tried for tried in self.of(path) if tried.outcome == "taken back"]


@dataclass(slots=True)
class _Work:
    """A run of the bot.

    changes: the text of each file before the first fill and now. line: says what runs now. failed: why the engine has
    given no answer; no further one is asked for then.
    """

    engine: Engine
    arguments: argparse.Namespace
    report: Report
    judge: Judge | None = None
    changes: dict[Path, tuple[Document, Document]] = field(default_factory=dict)
    line: Waiting = field(default_factory=lambda: Waiting("looking for stubs"))
    failed: EngineError | None = None

    @property
    def documents(self) -> list[tuple[Path, Document]]:
        """The files as they are."""
        return [(path, now) for path, (_, now) in self.changes.items()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp bot`."""
    explain(
        parser,
        "Fill every unwritten function (a body of pass, ..., NotImplementedError, todo!() and the like) of files and "
        "folders, one after another. Abstract methods, overloads, members of interfaces and protocols, and methods "
        "that a class of the same file overrides are left alone, and so is a file that changes meanwhile.",
        'dg-lsp bot src/ --keep-if "pytest -q" --json report.json',
        _CODES,
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder with files")
    parser.add_argument("--keep-if", metavar="COMMAND", help=_TESTED)
    parser.add_argument(
        "--tries",
        type=int,
        default=4,
        metavar="COUNT",
        help="different fills of each stub that the command may see, the likeliest first (4)",
    )
    parser.add_argument(
        "--timeout", type=float, default=600, metavar="SECONDS", help="for one run of the command (600)"
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="a junit XML that the command writes at each run; of a runner that cannot be asked for a report, the exit "
        "status alone counts without this",
    )
    parser.add_argument(
        "--keep-partial",
        action="store_true",
        help="keep also fills with which more tests pass and some of the function's own fail at the end or have never "
        "passed, under a comment that says so and by which the next run finds them; they are taken back without this",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="change no file; print the changes as a diff on stdout"
    )
    parser.add_argument("--json", metavar="FILE", help="write a report as JSON; - is stdout")
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fill, report, and return the exit code."""
    if arguments.dry_run and arguments.keep_if:
        raise UsageError("--dry-run changes no file, so --keep-if would test nothing; leave one of them out")
    least, most, _ = RANGES["alternatives"]
    if not least <= arguments.tries <= most:
        raise UsageError(f"--tries takes a number from {least:.0f} to {most:.0f}")
    if arguments.report and not arguments.keep_if:
        raise UsageError("--report names what a command writes; add --keep-if COMMAND")
    if not arguments.timeout > 0:
        raise UsageError("--timeout takes seconds, more than 0")
    check_output(arguments.json)
    settings, report = settings_of(arguments), Report()
    paths = list(find_files(arguments.paths, settings, report))
    for path, why in report.skipped:
        _tell_skipped(path, why)
    say_unlearned(settings, sorted({language_of(path) for path in paths}))
    try:
        asyncio.run(_fill_files(engine_of(arguments), paths, arguments, report))
    except (KeyboardInterrupt, asyncio.CancelledError):
        report.interrupted = True
    finally:
        _print(report, arguments)
    if report.interrupted:
        return 130
    return 0 if report.complete else 1


def find_files(paths: Sequence[Path], settings: Settings, report: Report) -> Iterator[Path]:
    """Yield the files of `paths` in known languages, sorted, each once; add those that may not be read to the report.

    Of a folder in a git repository these are the files that git does not ignore; of any other folder all but hidden
    files and those of packages and builds, such as node_modules.
    """
    named = [path for path in paths if path.is_file()]
    for path in paths:
        try:
            path.stat()
        except FileNotFoundError as error:
            raise UsageError(f"there is no {path}; name files and folders") from error
        except OSError as error:
            raise UsageError(why_unread(path, error)) from error
    inside = sorted({file for folder in paths if folder.is_dir() for file in project_files(folder)})
    for path in dict.fromkeys([*named, *inside]):
        if why := why_excluded(path, settings):
            report.skipped += [(str(path), why)] if path in named else []
            continue
        if path not in named and not has_language(path.name):
            continue
        try:
            if language_of(path) not in settings.disabled_languages:
                yield path
        except UnknownLanguage as error:
            report.skipped += [(str(path), str(error))] if path in named else []


async def _fill_files(
    engine: Engine, paths: Sequence[Path], arguments: argparse.Namespace, report: Report
) -> None:
    """Fill the files of `paths` one after another and close the engine; a signal that can be caught is an interrupt.

    With a test command, stubs whose fills were taken back are tried again as long as others stayed meanwhile: these may
    have been what the command failed for.
    """
    test = Test(arguments.keep_if, arguments.timeout, arguments.report)
    work, left = _Work(engine, arguments, report, Judge(test) if arguments.keep_if else None), list(paths)
    task = asyncio.current_task()
    assert task is not None
    # As for Ctrl+C, so that a file whose fill is being tested gets its text back. What nohup ignores stays ignored.
    for one in ENDING:
        if signal.getsignal(one) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(one, task.cancel)
    try:
        with work.line:
            while left:
                stayed = report.count(*_STAYS)
                for path in left:
                    await _try_file(work, path)
                if work.failed:
                    break
                new = report.count(*_STAYS) - stayed
                left = [path for path in left if await _may_change(work, path)] if new else []
                if left:
                    count = sum(len(report.taken_back(path)) for path in left)
                    say(f"{new} stay for now; trying the other {count} again")
            await _confirm(work)
        if work.failed:
            raise work.failed
    finally:
        _settle(work)
        report.diff = "".join(unified_diff(*change, str(path)) for path, change in work.changes.items())
        await engine.close()


async def _may_change(work: _Work, path: Path) -> bool:
    """Return whether a stub of `path` whose fills were taken back may be filled now."""
    judge, stubs = work.judge, work.report.taken_back(path)
    return judge is not None and any([await judge.may_change(path, stub.name) for stub in stubs])


async def _confirm(work: _Work) -> None:
    """Keep the fills that are good with all others in the files, take back those that are not, and run the tests.

    A fill that goes may have been what another one failed for, or needed, so first those go that are the worst.
    """
    judge, report = work.judge, work.report
    if judge is None:
        return
    judge.tell = work.line.say
    work.line.begin("testing at the end")
    for one, error in await judge.look():
        _tell_left(report, one, error)
    for one in await judge.improve(work.documents):
        report.settle(one, "kept", WITH_OTHERS)
        first, now = work.changes[one.path]
        work.changes[one.path] = first, _as_now(now, one.path)
    gone, wrong = await _fall(work)
    for one in await judge.revive(gone, work.documents) if wrong else ():
        report.settle(one, "kept", WITH_OTHERS)
        say(f"{one.path} {one.change.name}: kept ({WITH_OTHERS})")
        first, now = work.changes[one.path]
        work.changes[one.path] = first, _as_now(now, one.path)
    await judge.prove([*gone, *wrong])
    unproven = [one for one in judge.stayed if one not in gone and not await judge.is_proven(one)]
    for one in unproven:
        report.settle(one, "unproven", await judge.why(one))
    if not work.arguments.keep_partial:
        _take_back(work, unproven, "unproven")
        # The tests of others may fail without them.
        await _fall(work)
    for one in judge.stayed:
        if one not in gone and one not in unproven and (why := await judge.why(one)):
            report.settle(one, "kept", why)
    report.failing = await judge.failing()
    if report.failing:
        say(report.failing)


async def _fall(work: _Work) -> tuple[list[Stayed], list[Stayed]]:
    """Take back the fills whose own tests fail, the worst first; return those that may be right, and the wrong ones.

    With --keep-partial they stay in the files.
    """
    judge, maybe, wrong = work.judge, list[Stayed](), list[Stayed]()
    assert judge is not None
    while fallen := await judge.fallen(work.documents):
        least = fallen[0][0]
        worst = [one for share, one in fallen if work.arguments.keep_partial or share == least]
        for one in worst:
            work.report.settle(one, "partial", _FALLEN if one.verdict.good else "")
        if work.arguments.keep_partial:
            return worst, []
        _take_back(work, worst, "partial")
        (wrong if least < 0 else maybe).extend(worst)
    return maybe, wrong


def _settle(work: _Work) -> None:
    """Take back what nobody has confirmed, because of an interrupt; say which partial fills stay as it is wanted."""
    for one in reversed(work.judge.stayed if work.judge else ()):
        outcome = work.report.outcome(one)
        if outcome not in ("partial", "unproven", "taken back"):
            continue
        if work.arguments.keep_partial:
            _mark(work, one, outcome)
        else:
            _take_back(work, [one], outcome)
    left = [Path(one.path) for one in work.report.stubs if one.outcome == "left"]
    for held in work.judge.partials.end(left) if work.judge else ():
        say(
            f"the text of {held.kept.path} from before its partial fills is in {held.kept.copy}: compare, and delete it"
        )


def _as_now(document: Document, path: Path) -> Document:
    """Return a `document` with the text that its file has now, which no edit of it has led to."""
    return replace(document, data=path.read_bytes(), history=None, state=None)


def _mark(work: _Work, one: Stayed, outcome: Outcome) -> None:
    """Mark a fill that is kept as partial or unproven, so that a reader sees what it is and the next run finds it."""
    path, name = one.path, one.change.name
    first, now = work.changes[path]
    marked = mark_partial(_as_now(now, path), name)
    try:
        replace_file(path, path.read_bytes(), marked.data)
    except (FileError, UsageError) as error:
        say(f"{path} {name}: {outcome}, and could not be marked ({error})")
        return
    work.changes[path] = first, marked
    say(f"{path} {name}: {outcome}, and kept as --keep-partial says")


def _tell_left(report: Report, one: Stayed, error: FileError) -> None:
    report.settle(one, "left", f"this fill could not be taken back: {error}")
    say(f"{one.path} {one.change.name}: left ({error})")


def _take_back(work: _Work, fallen: Sequence[Stayed], outcome: Outcome) -> None:
    """Take fills with this outcome out of their files again."""
    assert work.judge is not None
    for one in fallen:
        path, name = one.path, one.change.name
        try:
            work.judge.take_back(one)
        except FileError as error:
            _tell_left(work.report, one, error)
            continue
        say(f"{path} {name}: {outcome}, so it was taken back")
        first, now = work.changes[path]
        work.changes[path] = first, _as_now(now, path)


async def _try_file(work: _Work, path: Path) -> None:
    """Fill the stubs of one file; a file that cannot be filled is reported as skipped.

    Once the engine has failed, the stubs that are left are reported with the reason, and nothing is tried.
    """
    try:
        try:
            if not work.failed:
                await _fill_file(work, path)
        except EngineError as error:
            work.failed = error
        if work.failed:
            await _leave(work, path, str(work.failed))
    except (DocumentError, UsageError, OutOfTime) as error:
        work.report.skipped.append((str(path), str(error)))
        _tell_skipped(str(path), str(error))


async def _leave(work: _Work, path: Path, why: str) -> None:
    """Report the stubs of a file that nothing is reported of yet as left without a fill."""
    _, now = work.changes.get(path) or (None, read_document(path, settings_of(work.arguments).macros))
    with within(BOT):
        stubs = await asyncio.to_thread(stubs_of, now)
    known = {tried.name for tried in work.report.of(path)}
    for stub in stubs:
        if stub.name not in known:
            line = now.line_at(stub.start) + 1
            work.report.stubs.append(Tried(str(path), stub.name, line, "no fill", why, 0))


async def _leave_meant(report: Report, path: Path, document: Document) -> None:
    """Report and say which functions without code are left alone, because they are to stay so."""
    with within(BOT):
        meant = await asyncio.to_thread(meant_of, document)
    report.meant += [(str(path), document.line_at(gap.start) + 1, gap.name) for gap in meant]
    if meant:
        names = ", ".join(gap.name or "a function without a name" for gap in meant[:_NAMED])
        more = f" and {len(meant) - _NAMED} more" if len(meant) > _NAMED else ""
        say(f"{path}: left alone, as abstract, overloads or empty on purpose: {names}{more}")


async def _fill_file(work: _Work, path: Path) -> None:
    """Fill the stubs of one file."""
    arguments, judge, report = work.arguments, work.judge, work.report
    check_free(kept_of(path)) if arguments.dry_run else check_writable(path)
    (judge.partials if judge else Partials()).check(path)
    settings = settings_of(arguments)
    first = now = read_document(path, settings.macros)
    if path not in work.changes:
        await _leave_meant(report, path, first)
    # Without a command nothing could choose between several fills.
    options = FillOptions(arguments.tries if judge else 1, index=index_for(first, settings, "function_body"))
    choose = choose_first if arguments.dry_run else functools.partial(judge.choose if judge else _write, path)
    began, earlier, started = 0.0, report.taken_back(path), None
    try:
        async with aclosing(fill_stubs(work.engine, first, settings, choose, options)) as events:
            async for event in events:
                if isinstance(event, StubStarted):
                    began, started = time.monotonic(), event
                    await _begin(work, path, event)
                    continue
                now = event.document
                good: Outcome = "filled" if arguments.dry_run else "kept"
                if judge is not None and judge.verdict is not None and not judge.verdict.good:
                    good = "partial"
                outcome: Outcome = good if event.edit else "taken back" if event.filled else "no fill"
                report.add(_tell(_tried(work, path, event.started, (outcome, event.why)), began), earlier)
    except (Saved, Interrupted) as error:
        saved = error.saved if isinstance(error, Interrupted) else error
        assert started is not None
        report.add(_tell(_tried(work, path, started, (saved.outcome, str(saved))), began), earlier)
        raise
    finally:
        # Also of the fills before an interrupt.
        work.changes[path] = work.changes.get(path, (first,))[0], now


async def _begin(work: _Work, path: Path, started: StubStarted) -> None:
    """Show in a terminal which stub is filled; before the first one, run the command and say how that ends."""
    judge, what = work.judge, f"{path.name}:{_line(started)} {started.gap.name}"
    work.line.begin(f"{what}: the model writes")
    if judge is None:
        return
    judge.tell = lambda doing: work.line.say(f"{what}: {doing}")
    judge.tries, judge.verdict = 0, None
    if not judge.runs and not work.report.stubs:
        _tell_before(await judge.before(path, started.gap.name))
        work.line.begin(f"{what}: the model writes")


def _tried(work: _Work, path: Path, started: StubStarted, end: tuple[Outcome, str]) -> Tried:
    """Return the result of a stub from its `end`, which is the outcome and why."""
    tried = Tried(str(path), started.gap.name, _line(started), *end, 0)
    if work.judge is None:
        return tried
    verdict = work.judge.verdict or Verdict(passed=False)
    tried = replace(tried, tries=work.judge.tries)
    return replace(tried, green=verdict.green, red=verdict.red, failing=verdict.failing)


def _line(started: StubStarted) -> int:
    return started.document.line_at(started.gap.start) + 1


def _tell(tried: Tried, began: float) -> Tried:
    """Say the result of a stub that was begun at `began`; return it with its seconds."""
    say(_words(tried))
    return replace(tried, seconds=round(time.monotonic() - began, 3))


async def _write(path: Path, stub: StubStarted, filled: Sequence[Document]) -> tuple[int, str]:
    """Choose the likeliest fill of a stub, and write it to the file at `path`."""
    replace_file(path, stub.document.data, filled[0].data)
    return 0, ""


def _tell_before(ran: Ran) -> None:
    """Say how the test command runs before the first fill if it fails, and if it reports no test."""
    if ran.status != 0:
        say(f"before the first fill {ran.sentence}")
    if not ran.results:
        say(
            "no report of its tests can be read, so a fill is kept only if the command exits with 0; if it can write a "
            "junit XML, name that with --report"
        )


def _print(report: Report, arguments: argparse.Namespace) -> None:
    """Print the diff of a dry run, the sum, and the report where it is wanted."""
    summary = report.summary()
    stubs = f"{summary['tried']} stub{'s' if summary['tried'] != 1 else ''}"
    if arguments.dry_run and arguments.json != "-":
        show(report.diff, end="")
    if arguments.dry_run:
        say(f"{stubs}, {summary['filled']} filled; a dry run tests and writes nothing")
    else:
        others = "".join(f", {summary[one]} {one}" for one in ("partial", "unproven") if summary[one])
        say(f"{stubs}, {summary['filled']} filled, {summary['kept']} kept{others}")
    if arguments.json:
        plain = json.dumps({"summary": summary, **asdict(report)}, indent=1) + "\n"
        if arguments.json == "-":
            show(plain, end="")
        else:
            write_whole(Path(arguments.json), plain.encode("utf-8"))


def _words(tried: Tried) -> str:
    return f"{tried.path}:{tried.line} {tried.name}: {tried.outcome}" + (
        f" ({tried.why})" if tried.why else ""
    )


def _tell_skipped(path: str, why: str) -> None:
    """Say why a file is left alone; most reasons name it themselves."""
    say(why if path in why else f"{path}: {why}")
