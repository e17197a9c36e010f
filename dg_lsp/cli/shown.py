"""Texts for a terminal, and lines of the log: what could control the terminal is made visible."""

import logging
import sys

from dg_lsp.source.shown import shown

__all__ = ["Formatter", "show", "shown"]


def show(text: str, end: str = "\n") -> None:
    """Print a text on stdout: as it is for another program, and with its control characters visible in a terminal."""
    print(shown(text, "\n\t") if sys.stdout.isatty() else text, end=end, flush=True)


class Formatter(logging.Formatter):
    """Format a line of the log, which may hold the name of a file."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the lines of an exception below it."""
        return shown(super().format(record), "\n\t")
