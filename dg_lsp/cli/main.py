"""The command line: one short function for each subcommand. Each imports what it needs, so `--help` is quick.

Exit codes: 0 filled, 1 nothing offered (the reason is printed), 2 usage or bad input, 130 interrupted.
"""

import argparse
import functools
import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import dg_lsp
from dg_lsp.cli.options import add_settings
from dg_lsp.settings import UsageError
from dg_lsp.text.messages import WANTED

if TYPE_CHECKING:
    from dg_lsp.host.base import Outcome
    from dg_lsp.text.documents.document import Document
    from dg_lsp.text.gaps.find import Gap
    from dg_lsp.text.messages import Draft

_TARGET = (
    "where the gap is: FILE:LINE or FILE:LINE:COLUMN, counted from 1 and in characters; without a column, the end of "
    "the line. FILE::name means a function, as in shop.py::Cart.total"
)
_EXIT = "Exit codes: 0 filled, 1 nothing offered (the reason is told), 2 usage or bad input, 130 interrupted."
# These bring their own options; their modules are imported only when they run.
_OWN_OPTIONS = {
    "serve": (
        "dg_lsp.cli.serve",
        "be a language server on stdin and stdout; the same as --stdio or no command",
    ),
    "train": ("dg_lsp.cli.train", "train a checkpoint, or adapt one to a repository"),
    "bench": ("dg_lsp.cli.bench", "make holes in real files, fill them, and report how well and how fast"),
    "engine": ("dg_lsp.cli.engine", "start, stop or show the engine process that all windows share"),
    "doctor": ("dg_lsp.cli.doctor", "check this installation and say what mends it"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `dg-lsp` with `argv` (else with the process's arguments) and return the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # Editors start a server by an option, as is the custom; its other options may stand before that one.
    if not argv or (argv[0].startswith("--") and "--stdio" in argv):
        argv.insert(0, "serve")
    _speak_utf8()
    arguments, rest = _parser().parse_known_args(argv)
    try:
        code = _run(arguments, rest)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has gone; without this the interpreter would complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ImportError as error:
        if (error.name or "").startswith("dg_lsp"):
            raise
        return _error(f"{error}; run dg-lsp doctor, which says what mends it")
    except Exception as error:
        if not isinstance(error, _faults_of_the_world()):
            raise
        return _error(str(error))


def _run(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if arguments.command in _OWN_OPTIONS:
        module, sentence = _OWN_OPTIONS[arguments.command]
        work = importlib.import_module(module)
        description = f"{sentence[0].upper()}{sentence[1:]}."
        parser = argparse.ArgumentParser(prog=f"dg-lsp {arguments.command}", description=description)
        work.add_arguments(parser)
        return int(work.run(parser.parse_args(rest)))
    if rest:
        return _error(f"unknown argument {rest[0]!r}; see dg-lsp {arguments.command} --help")
    return int(arguments.run(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dg-lsp",
        description="Fill gaps in code with a diffusion language model. Without a command, and with --stdio, a "
        "language server. To see what it does: dg-lsp demo",
        epilog=_EXIT,
    )
    parser.add_argument("--version", action="version", version=f"dg-lsp {dg_lsp.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    fill = _add(
        commands, _fill, "fill one gap of a file and print the change as a diff", " shop.py:42 --write"
    )
    fill.add_argument("--write", action="store_true", help="change the file, unless it has changed meanwhile")
    fill.add_argument("--json", action="store_true", help="print one JSON object instead of the diff")
    shown = "show step by step how one gap settles"
    trace = _add(commands, _trace, shown, " shop.py::Cart.total --html trace.html")
    trace.add_argument("--html", metavar="FILE", help="also write the steps to one HTML page")
    for command in (fill, trace):
        command.add_argument("target", metavar="TARGET", help=_TARGET)
        command.add_argument(
            "--kind",
            choices=WANTED,
            metavar="KIND",
            help=f"{', '.join(WANTED)} (default: what the place asks for; holes: all of a function's)",
        )
    _add(commands, _demo, "fill an unwritten function of a small file and show how it settles", "")
    for name, (_, sentence) in _OWN_OPTIONS.items():
        commands.add_parser(name, help=sentence, add_help=False)
    return parser


def _add(
    commands: Any, run: Callable[[argparse.Namespace], int], sentence: str, example: str
) -> argparse.ArgumentParser:
    """A subcommand with the options of all that fill."""
    name = run.__name__.strip("_")
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=sentence,
        description=f"{sentence[0].upper()}{sentence[1:]}. Example: dg-lsp {name}{example}",
        epilog=_EXIT,
    )
    add_settings(parser)
    parser.set_defaults(run=run)
    return parser


def _fill(arguments: argparse.Namespace) -> int:
    from dg_lsp.cli.target import locate, parse_target, replace_file
    from dg_lsp.text.fills.edit import apply_edit

    target = parse_target(arguments.target)
    document, gap = locate(target, arguments.kind)
    outcome, _ = _settle(document, gap, arguments, lambda _: None)
    diff = _diff(document, outcome, str(target.path))
    if arguments.write and outcome.edit is not None:
        replace_file(target.path, document.data, apply_edit(document, outcome.edit).data)
    print(_as_json(str(target.path), outcome, diff) if arguments.json else diff, end="")
    return _report(outcome)


def _trace(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from dg_lsp.cli.page import page
    from dg_lsp.cli.target import locate, parse_target

    target = parse_target(arguments.target)
    document, gap = locate(target, arguments.kind)
    screen = _screen(document, gap)
    outcome, _ = _settle(document, gap, arguments, screen.show)
    screen.close()
    print(_diff(document, outcome, str(target.path)), end="")
    if arguments.html:
        title = f"How {arguments.target} settled in {outcome.fill.milliseconds / 1000:.2f} s"
        Path(arguments.html).write_text(page(screen.drafts, screen.context, title), encoding="utf-8")
    return _report(outcome)


def _demo(arguments: argparse.Namespace) -> int:
    import tempfile
    from importlib import resources
    from pathlib import Path

    from dg_lsp.cli.target import Target, locate

    source = (resources.files("dg_lsp.cli") / "demo" / "word_statistics.py").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "word_statistics.py").write_bytes(source)
        document, gap = locate(Target(path, name="longest_word"))
    print("The body of longest_word() is missing; the model settles it from both sides:\n", flush=True)
    screen = _screen(document, gap)
    outcome, loaded = _settle(document, gap, arguments, screen.show)
    screen.close()
    print("\n" + _diff(document, outcome, path.name), end="")
    code = _report(outcome)
    done = "answered" if code else "filled"
    print(f"\nmodel loaded in {loaded:.1f} s, gap {done} in {outcome.fill.milliseconds / 1000:.2f} s")
    print("Next, with a file of your own: dg-lsp fill FILE::function")
    return code


def _settle(
    document: "Document", gap: "Gap", arguments: argparse.Namespace, show: Callable[["Draft"], None]
) -> tuple["Outcome", float]:
    from dg_lsp.cli.filling import fill_alone
    from dg_lsp.cli.options import settings_of

    tell = functools.partial(print, "dg-lsp:", file=sys.stderr, flush=True)
    return fill_alone(document, gap, settings_of(arguments), show, tell)


def _screen(document: "Document", gap: "Gap") -> Any:
    from dg_lsp.cli.screen import Screen

    before = document.data[: gap.start].decode("utf-8") + gap.lead
    tail = gap.parts[-1].tail
    return Screen(sys.stdout, (before, tail + document.data[gap.span[1] :].decode("utf-8")))


def _diff(document: "Document", outcome: "Outcome", path: str) -> str:
    from dg_lsp.text.fills.edit import apply_edit, unified_diff

    return unified_diff(document, apply_edit(document, outcome.edit), path) if outcome.edit else ""


def _as_json(path: str, outcome: "Outcome", diff: str) -> str:
    from dataclasses import asdict

    edit = asdict(outcome.edit) if outcome.edit else None
    told = {"path": path, "edit": edit, "why": outcome.why, "fill": asdict(outcome.fill), "diff": diff}
    return json.dumps(told, ensure_ascii=False) + "\n"


def _report(outcome: "Outcome") -> int:
    """The status line to stderr, and the exit code."""
    fill, seconds = outcome.fill, outcome.fill.milliseconds / 1000
    if outcome.edit is None:
        print(f"dg-lsp: nothing offered after {seconds:.2f} s: {outcome.why}", file=sys.stderr)
        return 1
    ends = {"stable": "it had settled", "steps": "the steps were used up", "deadline": "the deadline passed"}
    work = f"{fill.steps} steps after {fill.searched} of length search; stopped because {ends[fill.reason]}"
    cut = "what did not parse at its end was cut off" if fill.shortened else ""
    told = (f"dg-lsp: filled in {seconds:.2f} s, {work}", outcome.why, cut)
    print(*filter(None, told), sep="; ", file=sys.stderr)
    return 0


def _faults_of_the_world() -> tuple[type[BaseException], ...]:
    from dg_lsp.host.base import EngineError
    from dg_lsp.settings import SettingsError
    from dg_lsp.text.documents.document import DocumentError
    from dg_lsp.text.gaps.find import NoGap
    from dg_lsp.text.languages.language import UnknownLanguage

    return (EngineError, SettingsError, UsageError, DocumentError, NoGap, UnknownLanguage, OSError)


def _error(message: str) -> int:
    sys.stdout.flush()
    print(f"dg-lsp: error: {message}", file=sys.stderr)
    return 2


def _speak_utf8() -> None:
    """Let no character of a file end the program where a terminal cannot show it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="replace")
