"""The numbers as tables, and the failures sorted by cause.

Knows counts; prints nothing.
"""

from collections.abc import Callable, Sequence

from benchmarks.guarantee.measure import Counts

HARMS = ("broken", "outside", "characters lost", "comments lost", "pairs behind", "errors added", "crashes")
_Key = tuple[str, str, str, str]


def table(counts: Counts, form: str, row: Callable[[_Key], str]) -> str:
    """One line for each name that `row` gives the keys of a form, and one for all."""
    keys = [key for key in counts.numbers if key[1] == form]
    names = list(dict.fromkeys(map(row, keys)))
    head = (
        "",
        "places",
        "requests",
        "got an edit",
        *HARMS,
        "out of time",
        "truths",
        "offered",
        "right",
        "nothing to fill",
    )
    lines = [_line(counts, [k for k in keys if row(k) == name], name) for name in sorted(names)]
    return _markdown(head, [*lines, _line(counts, keys, "all")])


def failures(counts: Counts) -> str:
    """All causes, the commonest first, each with its smallest cases."""
    parts = []
    for cause, count in counts.causes.most_common():
        parts.append(f"## {count} × {' / '.join(cause)}\n")
        shown = sorted((f.told for f in counts.failures if f.cause == cause), key=len)
        parts += [f"{told}\n" for told in shown]
    return "\n".join(parts)


def _line(counts: Counts, keys: Sequence[_Key], name: str) -> tuple[str, ...]:
    def total(what: str) -> int:
        return sum(counts.numbers[key] for key in keys if key[3] == what)

    requests, truths = total("requests"), total("truths")
    return (
        name,
        str(total("places")),
        str(requests),
        _share(total("edits"), requests),
        *(str(total(harm)) for harm in HARMS),
        str(total("out of time")),
        str(truths),
        _share(total("truths offered"), truths),
        _share(total("truths right"), truths),
        str(total("truths closed")),
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
