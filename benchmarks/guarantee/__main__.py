"""Put texts that may harm, and true ones, into gaps at random places, and count what is broken or lost."""

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.gaps.sources import parse_sources
from benchmarks.guarantee.answers import TEXTS
from benchmarks.guarantee.measure import Counts, Key, Portion, measure
from dg_lsp.bench.score import table
from dg_lsp.settings import UsageError
from dg_lsp.source.language import known_languages

FORMS = ("valid", "damaged", "odd")
HARMS = ("broken", "outside", "characters lost", "comments lost", "pairs behind", "errors added", "crashes")
_AT_ONCE = 25


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as `argv` says; 0 where nothing was harmed, 1 where something was, 2 where the options are wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guarantee", description=__doc__)
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
            found = f"{report(counts)}\n\n{_failures(counts)}"
            Path(options.failures).write_text(found, encoding="utf-8")
    print(report(counts))
    print(f"\nThe slowest answer took {counts.slowest:.0f} ms.")
    return int(any(counts.numbers[k] for k in counts.numbers if k[3] in HARMS))


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
    parser.add_argument(
        "--written",
        metavar="FILE",
        help="put in the texts of a model, from a file of `python -m benchmarks.judge collect`",
    )
    for name, default, sentence in (
        ("places", 200, "places for each language and form"),
        ("texts", len(TEXTS), "how many of the texts are put in at each place"),
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
    texts = _written(Path(options.written)) if options.written else TEXTS
    count = min(max(options.texts, 0), len(texts))
    # All languages take turns, so that the reports of a run cover all of them.
    for number, first in enumerate(range(0, options.places, _AT_ONCE)):
        places = min(_AT_ONCE, options.places - first)
        for name in names:
            for form in forms:
                yield Portion(name, form, number, places, texts, count, options.seed, given)


def _written(path: Path) -> tuple[str, ...]:
    """The different texts in a file of records.

    Raises:
        UsageError: it cannot be read, or is none.
    """
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return tuple(dict.fromkeys(text for record in records for text in record["texts"]))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{path} is no file of `python -m benchmarks.judge collect` ({error!r})") from error


def _measured(portions: Sequence[Portion], jobs: int) -> Iterator[Counts]:
    if jobs < 2:
        yield from map(measure, portions)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(measure, portions)


def report(counts: Counts) -> str:
    """Tables of the counts of each form, by language and by place."""
    forms = [form for form in FORMS if any(key[1] == form for key in counts.numbers)]
    return "\n\n".join(
        f"{form}, {title}\n{table(_rows(counts, form, column))}"
        for form in forms
        for title, column in (("by language", 0), ("by place", 2))
    )


def _rows(counts: Counts, form: str, column: int) -> Iterator[tuple[str, ...]]:
    """The head of a table, a row for each name in `column` of the keys of a form, and one for all."""
    keys = [key for key in counts.numbers if key[1] == form]
    yield (
        "",
        "",
        "places",
        "requests",
        "edits",
        *HARMS,
        "out of time",
        "truths",
        "offered",
        "right",
        "nothing to fill",
    )
    for name in sorted({key[column] for key in keys}):
        yield _row(counts, [key for key in keys if key[column] == name], name)
    yield _row(counts, keys, "all")


def _row(counts: Counts, keys: Sequence[Key], name: str) -> tuple[str, ...]:
    def total(count: str) -> int:
        return sum(counts.numbers[key] for key in keys if key[3] == count)

    requests, truths = total("requests"), total("truths")
    harms = (str(total(harm)) for harm in (*HARMS, "out of time"))
    shares = (_share(total(count), truths) for count in ("truths offered", "truths right"))
    edits = _share(total("edits"), requests)
    return (
        name,
        "",
        str(total("places")),
        str(requests),
        edits,
        *harms,
        str(truths),
        *shares,
        str(total("truths closed")),
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _failures(counts: Counts) -> str:
    """All causes, the commonest first, each with its smallest cases."""
    parts = []
    for cause, count in counts.causes.most_common():
        parts.append(f"## {count} × {' / '.join(cause)}\n")
        parts += [
            f"{text}\n" for text in sorted((f.text for f in counts.failures if f.cause == cause), key=len)
        ]
    return "\n".join(parts)


if __name__ == "__main__":
    raise SystemExit(main())
