"""`dg-lsp bot`: fill the unwritten functions of files and folders, and keep the fills that pass a test command."""

import argparse
import asyncio
import functools
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from dg_lsp.budget import BOT, within
from dg_lsp.cli.fill import add_engine, engine_of, index_for, say_unlearned
from dg_lsp.cli.judge import Judge
from dg_lsp.cli.options import check_output, explain, say, settings_of
from dg_lsp.cli.partial import Partials
from dg_lsp.cli.target import check_writable, replace_file, why_excluded
from dg_lsp.cli.trial import Interrupted, Ran, Saved, Test
from dg_lsp.cli.tried import Outcome, Report, Tried, tell
from dg_lsp.cli.verdict import NONE, Function
from dg_lsp.cli.waiting import Waiting
from dg_lsp.files.writing import ENDING, FileError, check_free, kept_of, read_now
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
_NAMED = 5  # functions that are left alone, of a file
_CODES = (
    "0 every stub was filled, or there was none, and the command passes; 1 some were left, partial or unproven, or the "
    "command fails at the end; 2 usage or bad input, or the engine failed; 130 interrupted"
)


@dataclass(slots=True)
class _Work:
    """A run of the bot.

    changes: the text of each file before the first fill and now. line: says what runs now. failed: why the engine has
    given no answer; no further one is asked for then. confirmed: every fill that is in the files is to stay there.
    """

    engine: Engine
    arguments: argparse.Namespace
    report: Report
    judge: Judge | None = None
    changes: dict[Path, tuple[Document, Document]] = field(default_factory=dict)
    line: Waiting = field(default_factory=lambda: Waiting("looking for stubs"))
    failed: EngineError | None = None
    confirmed: bool = False


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
        tell(report, arguments.json, dry_run=arguments.dry_run)
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

    With a test command, the model is asked again for functions that have no fill which may be right, as long as further
    ones in their files have one: it reads these.
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
                for path in left:
                    await _try_file(work, path)
                left = await _settle(work)
            await _confirm(work)
        if work.failed:
            raise work.failed
    finally:
        _restore(work)
        report.diff = "".join(
            unified_diff(first, _as_now(now, path) if work.judge else now, str(path))
            for path, (first, now) in work.changes.items()
        )
        await engine.close()


async def _settle(work: _Work) -> list[Path]:
    """Leave in the files what may be right; return the files of which the model is asked again."""
    judge = work.judge
    if judge is None:
        return []
    judge.tell = work.line.say
    work.line.begin("comparing the fills")
    await judge.settle()
    again = {path: found for path in work.changes if (found := judge.again(path))}
    if work.failed or not again:
        return []
    count = sum(map(len, again.values()))
    say(f"{sum(one.now is not None for one in judge.functions)} may stay; asking for the other {count} again")
    return [*again]


async def _confirm(work: _Work) -> None:
    """Take back what is not proven, unless it is wanted, give every function its outcome, and run the tests."""
    judge, report = work.judge, work.report
    if judge is None:
        return
    work.line.begin("testing at the end")
    ends = [(one, one.now or one.best, await judge.outcome(one)) for one in judge.functions]
    for one, _, (outcome, _) in ends:
        if outcome == "unproven":
            judge.put(one, None)
    for one, body, end in ends:
        outcome, why = await judge.outcome(one) if end[0] == "kept" or one.left else end
        changed = report.settle(one, outcome, why)
        if outcome in ("partial", "unproven") and work.arguments.keep_partial:
            judge.put(one, body)
            _mark(work, one, outcome)
        elif outcome in ("partial", "unproven"):
            say(f"{one.path} {one.name}: {outcome}, so it was taken back")
        elif changed:
            say(f"{one.path} {one.name}: {outcome}{f' ({why})' if why else ''}")
    work.confirmed = True
    report.failing, report.exchanges = await judge.failing(), judge.exchanges
    if report.failing:
        say(report.failing)


def _restore(work: _Work) -> None:
    """Take back what nobody has confirmed, because of an interrupt, and the copies of the texts before it."""
    judge, report = work.judge, work.report
    if judge is None:
        return
    for one in judge.functions if not work.confirmed else ():
        judge.put(one, one.best if one.best and one.best.verdict.good else None)
        if one.left:
            report.settle(one, "left", one.left)
    for held in judge.partials.end([Path(one.path) for one in report.stubs if one.outcome == "left"]):
        say(
            f"the text of {held.kept.path} from before its partial fills is in {held.kept.copy}: compare, and delete it"
        )


def _as_now(document: Document, path: Path) -> Document:
    """Return a `document` with the text that its file has now, if it is there, which no edit of it has led to."""
    now = read_now(path)
    return document if now is None else replace(document, data=now, history=None, state=None)


def _mark(work: _Work, one: Function, outcome: Outcome) -> None:
    """Mark a fill that is kept as partial or unproven, so that a reader sees what it is and the next run finds it."""
    path, name = one.path, one.name
    marked = mark_partial(_as_now(work.changes[path][1], path), name)
    try:
        replace_file(path, path.read_bytes(), marked.data)
    except (FileError, UsageError) as error:
        say(f"{path} {name}: {outcome}, and could not be marked ({error})")
        return
    say(f"{path} {name}: {outcome}, and kept as --keep-partial says")


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
    known = {tried.name for tried in work.report.stubs if tried.path == str(path)}
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
    if judge is not None:
        judge.documents.setdefault(path, first)
    # Without a command nothing could choose between several fills.
    options = FillOptions(arguments.tries if judge else 1, index=index_for(first, settings, "function_body"))
    choose = choose_first if arguments.dry_run else functools.partial(judge.choose if judge else _write, path)
    began, earlier, started = 0.0, [one for one in report.stubs if one.path == str(path)], None
    try:
        async with aclosing(fill_stubs(work.engine, first, settings, choose, options)) as events:
            async for event in events:
                if isinstance(event, StubStarted):
                    began, started = time.monotonic(), event
                    await _begin(work, path, event)
                    continue
                now = event.document
                good: Outcome = "filled" if arguments.dry_run else "kept"
                if judge is not None and not judge.verdict.good:
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
    judge.tries, judge.verdict = 0, NONE
    if not judge.runs and not work.report.stubs:
        _tell_before(await judge.before(path, started.gap.name))
        work.line.begin(f"{what}: the model writes")


def _tried(work: _Work, path: Path, started: StubStarted, end: tuple[Outcome, str]) -> Tried:
    """Return the result of a stub from its `end`, which is the outcome and why."""
    tried = Tried(str(path), started.gap.name, _line(started), *end, 0)
    if work.judge is None:
        return tried
    verdict, tried = work.judge.verdict, replace(tried, tries=work.judge.tries)
    return replace(tried, green=verdict.green, red=verdict.red, failing=verdict.failing)


def _line(started: StubStarted) -> int:
    return started.document.line_at(started.gap.start) + 1


def _tell(tried: Tried, began: float) -> Tried:
    """Say the result of a stub that was begun at `began`; return it with its seconds."""
    say(tried.words)
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


def _tell_skipped(path: str, why: str) -> None:
    """Say why a file is left alone; most reasons name it themselves."""
    say(why if path in why else f"{path}: {why}")
