"""Texts for a terminal, such as names of files: what could control the terminal is made visible."""

import logging
import re
import sys

# Characters that control a terminal, end a line, change the direction of text, or are half a character.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str, kept: str = "") -> str:
    r"""Return `text` with an escape such as `\x1b` for each character that controls a terminal, except those `kept`."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in kept else ascii(found[0])[1:-1], text)


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
