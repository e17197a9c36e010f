"""Are gaps chosen right in broken files of many languages, and do fills fit: `python -m benchmarks.gaps --help`."""

import argparse
from collections.abc import Sequence

from benchmarks.gaps.run import add_arguments, run
from dg_lsp.cli.options import settings_of


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as `argv` says; 0 when there was something to measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps", description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    return run(arguments, settings_of(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
