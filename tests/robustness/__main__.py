"""The suite at full length: prints its table, a row as soon as it is known.

    python -m tests.robustness [--only NAME,...] [--share 0.1] [--soak 20m] [--depths COUNT]

--share makes all but the soak shorter; --depths 100000 reads so many texts of each grammar, which takes an hour and
more. Bars of time hold on an idle machine only.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable

from tests.robustness.bad_files import bad_files
from tests.robustness.depths import depths
from tests.robustness.edits import edits
from tests.robustness.endings import endings
from tests.robustness.faults import faults
from tests.robustness.fuzz import fuzz
from tests.robustness.grammars import grammars
from tests.robustness.growth import growth
from tests.robustness.row import HEAD, Row
from tests.robustness.slow_files import slow_files
from tests.robustness.soak import soak
from tests.robustness.storm import storm
from tests.robustness.together import together

# How often each is done at full length.
FULL: dict[Callable[[int], Row], int] = {
    storm: 20_000,
    edits: 100_000,
    fuzz: 100_000,
    faults: 200,
    together: 50,
    endings: 10,
    bad_files: 5,
    slow_files: 3,
    grammars: 2_000,
    depths: 1_500,
    growth: 20_000,
}
UNITS = {"s": 1, "m": 60, "h": 3600}


def main() -> int:
    """Run what is asked for; 1 if a bar is missed, those of time left out."""
    names = [*(measure.__name__ for measure in FULL), "soak"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(names), help=", ".join(names))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--soak", default="20m", metavar="TIME", help="such as 90s, 20m or 2h")
    parser.add_argument("--depths", type=int, metavar="COUNT", help="texts of each grammar for depths")
    arguments = parser.parse_args()
    if arguments.depths:
        FULL[depths] = arguments.depths
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen, bad = arguments.only.split(","), 0
    print(HEAD)
    for measure, count in FULL.items():
        if measure.__name__ in chosen:
            row = measure(max(int(count * arguments.share), min(count, 5)))
            bad += bool(row.wrong)
            print(row.line, flush=True)
    if "soak" in chosen:
        seconds = float(arguments.soak[:-1]) * UNITS[arguments.soak[-1]]
        row = soak(seconds, every=60)
        bad += bool(row.wrong)
        print(row.line, flush=True)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {load}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
