"""The settings as options of a command line, for every subcommand that works with a checkpoint.

Knows argparse and the settings.
"""

import argparse
from collections.abc import Sequence

from dg_lsp.settings import Settings, from_environment, help_of, override

FILLING = ("checkpoint", "device", "effort", "seed", "deadline", "threads")
SERVING = (*FILLING, "idle_minutes", "cache_megabytes", "log_level")


def add_settings(parser: argparse.ArgumentParser, names: Sequence[str] = FILLING) -> None:
    """Give `parser` an option for each of the settings `names`; what is not given is None."""
    for name in names:
        default, variable = getattr(Settings(), name), f"DG_LSP_{name.upper()}"
        sentence = f"{help_of(name)} (default: {default}, or what {variable} says)"
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help=sentence)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The settings: defaults, changed by the environment, changed by the options.

    Raises:
        SettingsError: a value cannot be used.
    """
    return override(from_environment(), {n: getattr(arguments, n) for n in SERVING if hasattr(arguments, n)})
