"""The entry point: run the subcommand, and turn its errors into messages and exit codes.

Each subcommand is a module of this package with `add_arguments` and `run`, imported only when it runs.
"""

import argparse
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import takewhile
from keyword import iskeyword
from os.path import lexists
from typing import NoReturn

import dg_lsp

# The subcommands, which are the modules of the same names (import_ for `import`, _ for -), and what each of them does.
COMMANDS = {
    "fill": "fill one gap of a file and print the change as a diff",
    "bot": "fill every unwritten function of files and folders, and keep the fills that pass a test command",
    "trace": "show the steps of one fill",
    "demo": "cut gaps of several kinds out of a small file, fill them, and show the results",
    "editor": "install or remove the plug-in for VS Code or Neovim",
    "serve": "run the language server on stdin and stdout; the same as --stdio or no command",
    "fetch": "download a larger checkpoint, by its own name or from the hub",
    "pack": "write a checkpoint of the released kind in four or eight bits, which then loads by mapping",
    "import": "convert a pretrained network of the Llama family to a checkpoint",
    "train": "train a checkpoint, or adapt one to a repository",
    "bench": "make holes in real files, fill them, and report how well and how fast",
    "engine": "start, stop or show the engine process that all windows share",
    "serve-engine": "serve one engine to a team over TLS, behind tokens",
    "stats": "show how ghost text was used on this machine, and fit a setting to it",
    "doctor": "check this installation and say how to fix it",
    "uninstall": "list what dg-lsp has written on this machine, and remove it",
}


# The commands that are given names of files, as a shell completes them.
_NAMING = ("fill", "bot", "trace", "bench")
_OPTIONS = ("--stdio", "--version", "--help")  # those that need no command
POSIX = os.name == "posix"
_NO_WINDOWS = (
    "dg-lsp does not run on Windows itself; install it in WSL (wsl --install), and start the server there"
)


INTERRUPTED = 130


def run_process() -> NoReturn:
    """Run `dg-lsp` and end its process. After an interrupt no thread is waited for: one may be loading a model."""
    try:
        code = main()
    finally:
        _wait()
    if code == INTERRUPTED:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    # The end of Python looks through all objects several times; torch's take it a second.
    gc.freeze()
    raise SystemExit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `dg-lsp` with `argv` (else with the process's arguments) and return the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # Editors start a server by an option, as is the custom; its other options may come before that one.
    if not argv or (argv[0].startswith("--") and "--stdio" in argv):
        argv.insert(0, "serve")
    _speak_utf8()
    try:
        code = _run(argv) if POSIX or "--version" in argv else _error(_NO_WINDOWS)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe; without this the interpreter would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ImportError as error:
        if (error.name or "").startswith("dg_lsp"):
            raise
        return _error(f"{error}; run dg-lsp doctor, which says how to fix it")
    except Exception as error:
        if isinstance(error, _faults_of_the_world()):
            return _error(str(error))
        from dg_lsp.files.writing import os_error_in, words_of

        if (fault := os_error_in(error)) is None:
            raise
        return _error(words_of(fault))


def _run(argv: Sequence[str]) -> int:
    """Run the subcommand that the first of `argv` names; --help, --version and a wrong name end here.

    Its arguments contain the process that has started this one, `parent`, as it was before the imports.
    """
    parent = os.getppid()
    if argv[0] not in COMMANDS and not argv[0].startswith("-"):
        near = get_close_matches(argv[0], COMMANDS, 1)
        advice = f"did you mean {near[0]}?" if near else "dg-lsp --help lists the commands"
        return _error(f"there is no command {argv[0]!r}; {advice}")
    if argv[0].startswith("--") and argv[0] not in _OPTIONS:
        near = get_close_matches(argv[0], _OPTIONS, 1)
        advice = f"did you mean {near[0]}?" if near else "options come after a command; see dg-lsp --help"
        return _error(f"there is no option {argv[0]!r}; {advice}")
    name: str = argv[0] if argv[0] in COMMANDS else _parser().parse_args(argv[:1]).command
    from dg_lsp.cli.options import say
    from dg_lsp.settings import unknown_variables
    from dg_lsp.source.python import ignore_warnings

    ignore_warnings()
    work = importlib.import_module(f"dg_lsp.cli.{name.replace('-', '_')}{'_' if iskeyword(name) else ''}")
    parser = argparse.ArgumentParser(prog=f"dg-lsp {name}")
    work.add_arguments(parser)
    if name in _NAMING and (word := _ambiguous(argv[1:])):
        return _error(
            f"{word} is also the name of a file here; write ./{word} for that, or all names after --"
        )
    arguments, unknown = parser.parse_known_args(argv[1:])
    if unknown:
        return _error(f"unknown argument {unknown[0]!r}; see dg-lsp {name} --help")
    for sentence in unknown_variables():
        say(sentence)
    arguments.parent = parent
    return int(work.run(arguments))


def _ambiguous(words: Sequence[str]) -> str:
    """Return the first of `words` that would be an option and is a file's name, too; empty if there is none."""
    options = takewhile(lambda word: word != "--", words)
    return next((word for word in options if word.startswith("-") and len(word) > 1 and lexists(word)), "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dg-lsp",
        description="Fill gaps in code with a language model on this machine, a diffusion model or another. Without a "
        "command, and with --stdio, a language server. To see what it does: dg-lsp demo",
        epilog="Exit codes: 2 usage or bad input, 130 interrupted; dg-lsp COMMAND --help lists the others.",
    )
    parser.add_argument("--version", action="version", version=f"dg-lsp {dg_lsp.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, sentence in COMMANDS.items():
        commands.add_parser(name, help=sentence)
    return parser


def _faults_of_the_world() -> tuple[type[BaseException], ...]:
    from dg_lsp.filling.engine import EngineError
    from dg_lsp.gaps import NoGap
    from dg_lsp.settings import SettingsError, UsageError
    from dg_lsp.source.document import DocumentError
    from dg_lsp.source.language import UnknownLanguage

    return (EngineError, SettingsError, UsageError, DocumentError, NoGap, UnknownLanguage)


def _error(message: str) -> int:
    from dg_lsp.cli.shown import shown

    sys.stdout.flush()
    print(f"dg-lsp: error: {shown(message)}", file=sys.stderr)
    return 2


def _wait() -> None:
    """Wait for a key where the terminal closes with this process and somebody wants to read what it says."""
    from dg_lsp.settings import WAIT

    if os.environ.get(WAIT) and sys.stdin.isatty():
        with suppress(OSError, ValueError, KeyboardInterrupt):
            sys.stdout.flush()
            print("press Enter to close this", file=sys.stderr, flush=True)
            sys.stdin.readline()


def _speak_utf8() -> None:
    """Replace the characters that a terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="replace")
