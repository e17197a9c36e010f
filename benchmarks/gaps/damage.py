"""Scenarios with more damage than typing leaves at the cursor: elsewhere in the file, or above in the function.

Also the same file with other line ends and other indentation.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from benchmarks.gaps.case import Case, Change
from benchmarks.gaps.cuts import within_statement, without_tail
from benchmarks.gaps.place import Place, Span, Truth, line_of
from benchmarks.gaps.valid import is_valid
from dg_lsp.messages import Kind

_OFFSIDE = (b"(", b")", b"]", b"}", b"def (", b"x = = 1", b"if :", b"'", b"foo(", b"[1, 2")
_BRACED = (b"(", b")", b"]", b"}", b"{", b"= = 1;", b"if (", b'"', b"foo(", b"[1, 2")
_DELICATE = re.compile(rb"[()\[\]{}:\"']")


def elsewhere(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """h1: one to three errors at the ends of lines outside of the function."""

    def errors(_: Case, function: Place) -> Iterator[Change]:
        ends = [m.start() for m in re.finditer(rb"\n", truth.data)]
        outside = [e for e in ends if e < function.outer[0] or e > function.outer[1]]
        texts = _OFFSIDE if truth.language.style == "indent" else _BRACED
        for at in rng.sample(outside, min(len(outside), rng.randrange(1, 4))):
            yield Change(at, at, b" " + rng.choice(texts))

    return _damaged(truth, kind, rng, errors)


def blanked_character(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """h5: a bracket, a quote or a colon of the function above the cursor is a blank."""

    def blank(case: Case, function: Place) -> Iterator[Change]:
        comments = [p.outer for p in truth.of("comment")]
        spots = [m.start() for m in _DELICATE.finditer(truth.data, function.opens, case.at)]
        # What is looked for must still be there.
        header = line_of(truth.data, case.place.opens)
        spots = [s for s in spots if not any(a <= s < b for a, b in (*comments, header))]
        if spots:
            at = rng.choice(spots)
            yield Change(at, at + 1, b" ")

    return _damaged(truth, kind, rng, blank)


def blanked_line(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """h6: a whole line of the function above the cursor is blank; not one that opens what is looked for."""

    def blank(case: Case, function: Place) -> Iterator[Change]:
        kept = line_of(truth.data, case.place.opens if kind != "statement" else case.place.start)
        lines = []
        for match in re.finditer(rb"[^\n]+", truth.data[function.opens : case.at]):
            line = line_of(truth.data, function.opens + match.start())
            if line[0] > function.opens and line[1] < min(case.at, _first_of(case)) and line != kept:
                lines.append(line)
        lines = [line for line in lines if truth.data[slice(*line)].strip()]
        if lines:
            yield Change(*rng.choice(lines))

    return _damaged(truth, kind, rng, blank)


def crlf(truth: Truth) -> bytes | None:
    """The file with another line end."""
    return truth.data.replace(b"\n", b"\r\n")


def tabs(truth: Truth) -> bytes | None:
    """The file indented by tabs; None where it is so already."""
    unit = truth.language.indent.encode()
    if unit == b"\t":
        return None

    def tabbed(match: re.Match[bytes]) -> bytes:
        return match[0].replace(unit, b"\t")

    data = re.sub(rb"^ +", tabbed, truth.data, flags=re.MULTILINE)
    return data if is_valid(truth.language, data) else None


def _first_of(case: Case) -> int:
    """The start of the first line of the cut statement, which must not be blanked."""
    return line_of(case.truth.data, case.place.start if case.kind == "statement" else case.at)[0]


def _damaged(
    truth: Truth, kind: Kind, rng: Random, more: Callable[[Case, Place], Iterator[Change]]
) -> Case | None:
    """A case of a1 or a2 with further changes, which were made first; None where there are none to make."""
    make = within_statement if kind == "statement" or rng.random() < 0.5 else without_tail
    case = make(truth, kind, rng)
    function = truth.inner("function_body", case.at) if case else None
    if case is None or function is None:
        return None
    spans: list[Span] = [(c.start, c.end) for c in case.changes]
    changes = [c for c in more(case, function) if all(c.end <= a or c.start >= b for a, b in spans)]
    return replace(case, changes=(*changes, *case.changes), damaged=True) if changes else None
