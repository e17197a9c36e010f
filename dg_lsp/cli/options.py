"""Options that subcommands share: the settings, and the layout of help pages.

Knows argparse and the settings.
"""

import argparse
import logging
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dg_lsp.cli.shown import Formatter, shown
from dg_lsp.settings import Settings, UsageError, from_environment, help_of, override, variable_of

REMOTE = ("engine_url", "engine_token_file", "engine_ca", "engine_fallback")
_MODEL = ("checkpoint", "device", "weight_bits", "effort", "seed", "deadline", "threads")
FILLING = (*_MODEL, *REMOTE, "exclude", "include")
SERVING = (*FILLING, "idle_minutes", "cache_megabytes", "log_level")

FILLING_CODES = "0 filled, 1 nothing offered (with the reason), 2 usage or bad input, 130 interrupted"


def explain(parser: argparse.ArgumentParser, description: str, example: str, codes: str) -> None:
    """Give the help of `parser` a description, an example and the exit codes."""
    width = max(shutil.get_terminal_size().columns - 2, 20)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = textwrap.fill(description, width)
    parser.epilog = f"Example: {example}\n\n{textwrap.fill(f'Exit codes: {codes}.', width)}"


def add_settings(parser: argparse.ArgumentParser, names: Sequence[str] = FILLING) -> None:
    """Give `parser` an option for each of the settings `names`; what is not given is None."""
    for name in names:
        default = getattr(Settings(), name)
        shown = ", ".join(default) if isinstance(default, tuple) else str(default).removesuffix(".0")
        words = {"": "none", "True": "on", "False": "off"}
        sentence = f"{help_of(name)} (default: {words.get(shown, shown)}, or what {variable_of(name)} says)"
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help=sentence)


def say(sentence: str) -> None:
    """Print a sentence for the user on stderr, apart from the output; where that is closed, nobody reads it."""
    with suppress(OSError):
        print("dg-lsp:", shown(sentence), file=sys.stderr, flush=True)


def log_to_stderr(level: str, quiet: Sequence[str] = ()) -> None:
    """Write the log of this process to stderr from `level` on; of the libraries `quiet` only what stops the process.

    Their messages may quote what they were given.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    logging.basicConfig(handlers=[handler], level=level.upper())
    for name in quiet:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def check_output(path: str | Path | None) -> None:
    """Raise UsageError if no file can be written at `path`; None and `-`, which is stdout, always pass.

    Call it before the work, so that the result is not lost at the end.
    """
    if path is None or str(path) == "-":
        return
    file = Path(path)
    if file.is_dir():
        why = "it is a folder"
    elif file.is_symlink() and not file.exists():
        why = "it is a link to a file that does not exist"
    elif not file.parent.is_dir():
        why = f"there is no folder {file.parent}"
    elif not os.access(file if file.exists() else file.parent, os.W_OK):
        why = "you have no permission to write there"
    else:
        return
    raise UsageError(f"{path} cannot be written: {why}; name another file")


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings: the defaults, overridden by the environment, then by the options."""
    from dg_lsp.engine.choice import resolve

    return resolve(given_settings(arguments))


def given_settings(arguments: argparse.Namespace) -> Settings:
    """Return what `settings_of` returns, with the checkpoint `auto` as it is."""
    given = {n: getattr(arguments, n) for n in SERVING if hasattr(arguments, n)}
    return override(from_environment(), given)
