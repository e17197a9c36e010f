"""`dg-lsp stats`: show how ghost text was used on this machine, from the counts that the servers of this user keep."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence

from dg_lsp.cli.options import explain
from dg_lsp.cli.shown import show
from dg_lsp.server.counts import Counts, by, fit, nested, path, read, share
from dg_lsp.settings import Settings

_HEAD = ("language", "model", "shown", "taken", "by key", "typed", "dismissed", "characters", "kept", "saved")
_OFF = "The setting statistics switches the counting off; deleting the file begins again."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `dg-lsp stats`."""
    explain(
        parser,
        "Show how ghost text was used on this machine, by language and model: how often it was shown and taken (by a "
        "key, or typed to its end), dismissed, and how many taken texts were unchanged 30 seconds later and when the "
        "file was saved. The counts are in one file of yours, without text or paths, and nothing sends them anywhere.",
        "dg-lsp stats --fit",
        "0 shown, 1 nothing was counted yet",
    )
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON object")
    parser.add_argument(
        "--fit",
        action="store_true",
        help="propose a value for the setting confidence, from which texts were taken as often as its default says",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the counts; 1 if there are none."""
    counts, since = read()
    if arguments.json:
        show(json.dumps({"file": str(path()), "since": since, "counts": nested(counts)}, indent=1))
    elif not counts:
        show(f"Nothing was counted yet in {path()}; an editor with dg-lsp counts as you type.")
    else:
        show(f"Since {since}, in {path()}:")
        show("\n".join(_table(counts)))
        show(_OFF)
    if arguments.fit:
        show(_proposal(counts))
    return 0 if counts else 1


def _table(counts: Counts) -> list[str]:
    """Return the lines of the table, the most shown first."""
    groups = by(counts, "language", "model")
    rows = [_row(names, of) for names, of in sorted(groups.items(), key=lambda group: -group[1]["shown"])]
    if len(rows) > 1:
        rows.append(_row(("all", ""), by(counts)[()]))
    table = [_HEAD, *rows]
    widths = [max(len(row[n]) for row in table) for n in range(len(_HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def _row(names: tuple[str, ...], of: Counter[str]) -> Sequence[str]:
    """Return the cells of a row of the table."""
    taken = of["taken"] + of["typed"]
    keys = [f"{of[kind]} {kind}" for kind in ("tab", "word", "line") if of[kind]]
    return (
        *names,
        str(of["shown"]),
        f"{taken} ({share(taken, of['shown'])})",
        ", ".join(keys) or "-",
        str(of["typed"]),
        str(of["dismissed"]),
        str(of["characters"]),
        share(of["kept"], of["kept"] + of["changed"]),
        share(of["saved"], of["saved"] + of["changed before saving"]),
    )


def _proposal(counts: Counts) -> str:
    """Return the sentence about the setting confidence."""
    least = Settings().confidence
    if (found := fit(counts, least)) is None:
        return "Too few texts with an estimated chance were shown for a proposal; 100 are needed."
    value, why = found
    return f"confidence {value:g} fits how you use it: {why}. Set it in the editor, or by DG_LSP_CONFIDENCE={value:g}."
