"""`python -m benchmarks.guarantee`: its options, its portions in processes, its output."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.gaps.sources import parse_sources
from benchmarks.guarantee import tables
from benchmarks.guarantee.answers import TEXTS
from benchmarks.guarantee.measure import Counts, Portion, measure
from dg_lsp.settings import UsageError
from dg_lsp.text.languages.language import known_languages

FORMS = ("valid", "damaged", "odd")
_AT_ONCE = 25


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as `argv` says; 0 where nothing was harmed, 1 where something was, 2 where the options are wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guarantee", description=_ABOUT)
    _add_arguments(parser)
    options = parser.parse_args(argv)
    try:
        portions = list(_portions(options))
    except UsageError as error:
        parser.error(str(error))
    counts = Counts()
    for done, part in enumerate(_measured(portions, options.jobs), 1):
        counts.add(part)
        if options.failures and (done % 10 == 0 or done == len(portions)):
            told = f"{_report(counts)}\n\n{tables.failures(counts)}"
            Path(options.failures).write_text(told, encoding="utf-8")
    print(_report(counts))
    print(f"\nThe slowest answer took {counts.slowest:.0f} ms.")
    return int(any(counts.numbers[k] for k in counts.numbers if k[3] in tables.HARMS))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    known = ",".join(known_languages())
    parser.add_argument(
        "--languages", default=known, metavar="NAMES", help="with commas (default: %(default)s)"
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="LANGUAGE=DIR",
        help="sources of a language; may be repeated",
    )
    parser.add_argument(
        "--forms",
        default=",".join(FORMS),
        help="valid files, damaged ones, and odd ones that their grammar cannot parse (default: %(default)s)",
    )
    parser.add_argument(
        "--failures", metavar="FILE", help="write each cause of failures with its smallest cases"
    )
    for name, default, sentence in (
        ("places", 200, "places for each language and form"),
        ("texts", len(TEXTS), "how many of the texts that may harm are put in at each place"),
        ("jobs", 1, "processes"),
        ("seed", 0, "of all that is random"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{sentence} (default: {default})"
        )


def _portions(options: argparse.Namespace) -> Iterator[Portion]:
    """The work in portions of places.

    Raises:
        UsageError: a source, a language or a form is unknown.
    """
    given = parse_sources(options.source)
    names, forms = options.languages.split(","), options.forms.split(",")
    if strange := [n for n in names if n not in known_languages()] + [f for f in forms if f not in FORMS]:
        raise UsageError(f"no language and no form is called {', '.join(strange)}")
    texts = min(max(options.texts, 0), len(TEXTS))
    # All languages take turns, so that what is told while it runs is of all of them.
    for number, first in enumerate(range(0, options.places, _AT_ONCE)):
        places = min(_AT_ONCE, options.places - first)
        for name in names:
            for form in forms:
                yield Portion(name, form, number, places, texts, options.seed, given)


def _measured(portions: Sequence[Portion], jobs: int) -> Iterator[Counts]:
    if jobs < 2:
        yield from map(measure, portions)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(measure, portions)


def _report(counts: Counts) -> str:
    rows: list[tuple[str, Callable[[tuple[str, str, str, str]], str]]] = [
        ("by language", lambda key: key[0]),
        ("by place", lambda key: key[2]),
    ]
    forms = [form for form in FORMS if any(key[1] == form for key in counts.numbers)]
    parts = [
        f"### {form}, {told}\n\n{tables.table(counts, form, row)}" for form in forms for told, row in rows
    ]
    return "\n\n".join(parts)


_ABOUT = (
    "Put texts that may harm, and true ones, into gaps at random places, and count what is broken or lost."
)
