"""`dg-lsp trace`: show the steps of one fill, in the terminal and as a page."""

import argparse
from contextlib import closing
from pathlib import Path

from dg_lsp.cli.fill import add_engine, add_target, diff_of, fill, place_of, report, why_look
from dg_lsp.cli.options import FILLING_CODES, check_output, explain
from dg_lsp.cli.screen import page, screen_of
from dg_lsp.cli.shown import show
from dg_lsp.files.writing import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp trace`."""
    explain(
        parser,
        "Show the steps of one fill, and then the change as a diff. The file is not changed.",
        "dg-lsp trace shop.py::Cart.total --html trace.html",
        FILLING_CODES,
    )
    add_target(parser)
    parser.add_argument("--html", metavar="FILE", help="also write the steps to one HTML page")
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fill and show; return the exit code."""
    check_output(arguments.html)
    path, place = place_of(arguments)
    with closing(screen_of(*place)) as screen:
        outcome = fill(place, arguments, screen.show)
    show(diff_of(path, place, outcome), end="")
    if arguments.html:
        title = f"How {arguments.target} was filled in {outcome.fill.milliseconds / 1000:.2f} s"
        text = page(screen.drafts, screen.context, title)
        write_whole(Path(arguments.html), text.encode("utf-8", "replace"))
    return report(outcome, why_look(place, outcome, arguments))
