"""`dg-lsp fill`: fill one gap of a file and print the change as a diff. The other commands fill with its parts.

The model is that of the engine process which all windows share, started if it does not run; with `--alone` it is
loaded in this process. Importing this module loads no model.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path

from dg_lsp.budget import BOT, within
from dg_lsp.checkpoints import definitions_for
from dg_lsp.cli.engine import check_there, opened, teller
from dg_lsp.cli.options import FILLING_CODES, add_settings, explain, say, settings_of
from dg_lsp.cli.shown import show
from dg_lsp.cli.target import (
    check_wanted,
    check_writable,
    cursor_of,
    in_file,
    locate,
    parse_target,
    replace_file,
)
from dg_lsp.cli.waiting import Waiting
from dg_lsp.context import Index
from dg_lsp.engine.local import LocalEngine
from dg_lsp.engine.runtime import address_of
from dg_lsp.engine.team import load, open_engine
from dg_lsp.files.excluded import path_of
from dg_lsp.filling.engine import Engine, EngineError
from dg_lsp.filling.fill import FillOptions, Outcome, fill_gap
from dg_lsp.filling.project import index_near
from dg_lsp.gaps import Gap, apply_edit, find_named, unified_diff
from dg_lsp.guard import note_of, unsure, why_confirm, written_lines
from dg_lsp.messages import PARTS, WANTED, Draft, Kind, Status
from dg_lsp.server.settings import unlearned
from dg_lsp.settings import Settings
from dg_lsp.source.document import Document

Place = tuple[Document, Gap]

_TARGET = (
    "where the gap is: FILE:LINE or FILE:LINE:COLUMN, counted from 1 and in characters; without a column, the end of "
    "the line. FILE::name means a function, as in shop.py::Cart.total or errors.go::Parse.Error"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp fill`."""
    explain(
        parser,
        "Fill one gap of a file and print the change as a diff; the file stays as it is without --write. Where nothing "
        "is open at the place, or the fill is most likely wrong, --write changes the file only if TARGET is a function "
        "or --kind is given. The engine that fills is the one that all windows share. It is started if it does not "
        "run, and stays for the next fill.",
        "dg-lsp fill shop.py:42 --write",
        FILLING_CODES,
    )
    add_target(parser)
    parser.add_argument(
        "--write",
        action="store_true",
        help="change the file, unless it has changed meanwhile, or a text that was cut off would replace written lines",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the diff")
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fill, print, and with --write change the file; return the exit code."""
    path, place = place_of(arguments)
    if arguments.write:
        check_writable(path)
    outcome = fill(place, arguments)
    diff, confirm = diff_of(path, place, outcome), why_look(place, outcome, arguments)
    cut = is_cut(place, outcome)
    left = bool(arguments.write and (cut or (confirm and not _is_named(arguments))))
    if arguments.write and outcome.edit is not None and not left:
        document, edit = in_file(path, place[0], outcome.edit)
        replace_file(path, document.data, apply_edit(document, edit).data)
    show(_as_json(str(path), outcome, diff, confirm) if arguments.json else diff, end="")
    code = report(outcome, confirm)
    if left and cut:
        say(
            f"{path} was left as it is, because the text was cut off and would replace written lines; raise --deadline"
        )
    elif left:
        say(f"{path} was left as it is; apply the diff to make the change")
    return 1 if left else code


def place_of(arguments: argparse.Namespace) -> tuple[Path, Place]:
    """Return the path of the file that the argument TARGET names, its document and the gap there."""
    target, settings = parse_target(arguments.target), settings_of(arguments)
    check_wanted(target.path, settings)
    with within(BOT):
        return target.path, locate(target, arguments.kind, settings.macros)


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the argument TARGET and the option --kind to `parser`."""
    parser.add_argument("target", metavar="TARGET", help=_TARGET)
    parser.add_argument(
        "--kind",
        choices=WANTED,
        metavar="KIND",
        help=f"{', '.join(WANTED)} (default: what the place asks for; holes: all of a function's)",
    )


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add to `parser` the settings of whatever fills, and --alone."""
    parser.add_argument(
        "--alone",
        action="store_true",
        help="load the model in this process and leave the shared engine alone; for machines where no socket can be "
        "made. The fill is the same",
    )
    add_settings(parser)


def fill(place: Place, arguments: argparse.Namespace, show: Callable[[Draft], None] | None = None) -> Outcome:
    """Fill the gap of `place` with the engine that `arguments` ask for, and return the outcome.

    show: gets each Draft. Until it gets the first, and throughout if there is none, a terminal shows how long it takes.
    """
    settings = settings_of(arguments)
    say_unlearned(settings, [place[0].language])
    what = f"filling {arguments.target}"
    with Waiting(what) as line:

        def shown(draft: Draft) -> None:
            if show is None:
                line.say(f"{what}: {draft.progress}")
            elif draft.runs:
                line.stop()
                show(draft)

        outcome = asyncio.run(fill_and_close(engine_of(arguments), place, settings, shown))
    reason = why_look(place, outcome, arguments)
    if reason and unsure(outcome.fill) not in ("", reason) and not _is_named(arguments):
        return replace(outcome, edit=None, why=f"{reason}, and the best text is {note_of(outcome.fill)}")
    return outcome


def why_look(place: Place, outcome: Outcome, arguments: argparse.Namespace) -> str:
    """Return why a person should see the edit of `outcome` before it is made, as a sentence; empty if nobody need."""
    document, gap = place
    if outcome.edit is None:
        return ""
    with within(BOT):
        cursor = None if _is_named(arguments) else cursor_of(parse_target(arguments.target), document)
        return why_confirm(document, gap, outcome.edit, outcome.fill, cursor)


def is_cut(place: Place, outcome: Outcome) -> bool:
    """Return whether the edit of `outcome` would replace written lines by a text that is not whole."""
    document, gap = place
    unwhole = outcome.fill.shortened or outcome.fill.reason == "deadline"
    return outcome.edit is not None and unwhole and written_lines(document, gap, outcome.edit) > 0


def _is_named(arguments: argparse.Namespace) -> bool:
    """Return whether the gap was asked for by name, and not found at a place."""
    return bool(arguments.kind or parse_target(arguments.target).name)


def say_unlearned(settings: Settings, languages: Iterable[str]) -> None:
    """Say of each of `languages` that the checkpoint has not learned it, whose fills are mostly worthless."""
    for language in languages:
        if reason := unlearned(settings, language):
            say(
                f"{reason.partition(';')[0]}, so expect little in {language}; dg-lsp doctor names a better one"
            )


def engine_of(arguments: argparse.Namespace) -> Engine:
    """Return the engine that `arguments` ask for: the shared one, or with --alone one that is loaded here."""
    settings = settings_of(arguments)
    if arguments.alone:
        return LocalEngine.open(settings, say)
    check_there(settings)
    try:
        if not settings.engine_url:
            address_of(settings)
    except EngineError as error:
        raise EngineError(f"{error}, or add --alone to load the model in this process") from error
    return open_engine(settings, teller())


async def fill_and_close(
    engine: Engine, place: Place, settings: Settings, show: Callable[[Draft], None] = lambda _: None
) -> Outcome:
    """Fill the gap of `place` and close `engine`; an interrupt closes the stream, which cancels."""
    document, gap = place
    options = FillOptions(index=index_for(document, settings, gap.kind), show=show)
    try:
        return await fill_gap(engine, document, gap, settings, options)
    finally:
        await engine.close()


async def round_trip(document: Document, name: str, settings: Settings) -> tuple[Status, float]:
    """Have the resident engine fill the function `name`; return its status then, and the seconds of the request."""
    async with opened(settings) as engine:
        await load(engine, teller())
        start = time.perf_counter()
        await fill_gap(engine, document, find_named(document, name), settings)
        seconds = time.perf_counter() - start
        if (status := await engine.status()) is None:
            raise EngineError("the engine ended by itself; its log is in the runtime directory")
        return status, seconds


def diff_of(path: Path, place: Place, outcome: Outcome) -> str:
    """Return the change of `outcome` as a unified diff of `path`; empty if nothing is offered."""
    if outcome.edit is None:
        return ""
    document, edit = in_file(path, place[0], outcome.edit)
    return unified_diff(document, apply_edit(document, edit), str(path))


def report(outcome: Outcome, confirm: str = "") -> int:
    """Print a status line on stderr and return the exit code. confirm: why a person should look at the edit."""
    fill, seconds = outcome.fill, outcome.fill.milliseconds / 1000
    if outcome.edit is None:
        say(f"nothing offered after {seconds:.2f} s: {outcome.why}")
        return 1
    ends = {
        "stable": "the text no longer changed",
        "steps": "all steps were used",
        "deadline": "the deadline passed",
    }
    work = f", {fill.steps} steps after {fill.searched} of length search" if fill.steps else ""
    # A text drafted from left to right has no denoising steps, so there is no reason why they stopped.
    end = f"stopped because {ends[fill.reason]}" if fill.steps or fill.reason != "stable" else ""
    cut = "what did not parse at its end was cut off" if fill.shortened else ""
    doubt = unsure(fill)
    note, look = ("unsure: " if doubt else "") + note_of(fill), "" if confirm == doubt else confirm
    say("; ".join(filter(None, (f"filled in {seconds:.2f} s{work}", end, note, look, outcome.why, cut))))
    return 0


def index_for(document: Document, settings: Settings, kind: Kind) -> Index | None:
    """Return an index of the files near `document`; None if it is useless for a gap of `kind`.

    It is useful for a part of a line, which other files may contain, and for a model that reads definitions.
    """
    path, useful = path_of(document.uri), kind in PARTS or definitions_for(settings) > 0
    return index_near(Path(path), settings) if settings.related and path and useful else None


def _as_json(path: str, outcome: Outcome, diff: str, confirm: str) -> str:
    answer = {
        "path": path,
        "edit": asdict(outcome.edit) if outcome.edit else None,
        "why": outcome.why,
        "fill": asdict(outcome.fill),
        "diff": diff,
        "confirm": confirm,
    }
    return json.dumps(answer, ensure_ascii=False) + "\n"
