"""The engine beside transformers' generate and diffusers' pipeline: `python -m benchmarks.race --help`."""

import argparse
from collections.abc import Sequence

from benchmarks.race.run import run
from dg_lsp.bench import lists
from dg_lsp.bench.files import read_files
from dg_lsp.bench.holes import HOLES
from dg_lsp.cli.options import add_settings, settings_of


def main(argv: Sequence[str] | None = None) -> int:
    """Race as `argv` says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="turns that count (default: 5)")
    parser.add_argument("--cases", type=int, default=20, metavar="N", help="holes of each kind (default: 20)")
    parser.add_argument(
        "--files", nargs="+", metavar="FILE", help="make holes in these, not in the shipped list's"
    )
    parser.add_argument("--kinds", default=",".join(HOLES), help="with commas (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="also write everything to FILE")
    add_settings(parser)
    arguments = parser.parse_args(argv)
    if arguments.files:
        cases = lists.choose(
            read_files(arguments.files).documents, arguments.kinds.split(","), arguments.cases, 0
        )
    else:
        cases, _ = lists.read(lists.shipped(), arguments.kinds.split(","), arguments.cases)
    return run(arguments, cases, settings_of(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
