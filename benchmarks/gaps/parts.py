"""Scenarios of typing: a list, an expression or a string of which only the beginning is left.

Each function makes one case from a valid file by chance, or None; all damage is at the cursor.
"""

from random import Random

from benchmarks.gaps.case import Case, Change
from benchmarks.gaps.place import Place, Truth, choose, innermost, is_escaped, is_whole, line_of, outermost
from dg_lsp.messages import Kind


def empty_list(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """d2: a list is empty and closed."""
    place = choose(truth.of(kind), rng)
    return Case(truth, place, (Change(place.opens, place.closes),), place.opens) if place else None


def opened_list(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """d1: the rest of the statement is gone behind the opening bracket."""
    place = choose(truth.of(kind), rng)
    stop = _statement_end(truth, place)
    return Case(truth, place, (Change(place.opens, stop),), place.opens) if place and stop else None


def list_to_end(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """d3: the rest of the statement is gone behind a random character of the list."""
    place, at = _cut_in(truth, kind, rng)
    stop = _statement_end(truth, place)
    return Case(truth, place, (Change(at, stop),), at) if place and stop else None


def list_to_bracket(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """d4: the list is cut at a random character and closed."""
    place, at = _cut_in(truth, kind, rng)
    return Case(truth, place, (Change(at, place.end),), at) if place else None


def expression_to_end(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """e1: an expression cut at a random character, and nothing after it in its statement."""
    statement = choose([s for s in truth.of("statement") if s.leaf], rng)
    if statement is None:
        return None
    inside = [p for p in truth.of(kind) if statement.start <= p.start and p.end <= statement.end]
    place = choose([p for p in inside if p.end - p.start > 1], rng)
    case = _expression(truth, inside, place, statement.end, rng)
    # An assignment that is cut on its left is a statement of another form.
    last = case and not truth.data[case.place.end : statement.end].strip(b" \t\n)]},:;")
    return case if case and last and truth.inner("statement", case.at) == statement else None


def expression_in_header(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """e2: an expression in a compound statement's header cut at a random character; what follows it stays."""
    block = choose(truth.of("block"), rng)
    if block is None:
        return None
    inside = [p for p in truth.of(kind) if block.outer[0] <= p.start and p.end < block.opens]
    # The header is the last one before the block: an else has none of its own.
    inside = [
        p for p in inside if innermost(truth.bodies, p.start) == innermost(truth.bodies, block.outer[0])
    ]
    place = choose([p for p in inside if p.end - p.start > 1], rng)
    return _expression(truth, inside, place, None, rng)


def _expression(
    truth: Truth, inside: list[Place], place: Place | None, stop: int | None, rng: Random
) -> Case | None:
    """The outermost expression round a random character of `place`, cut there; without `stop` to its own end."""
    if place is None:
        return None
    at = rng.randrange(place.start + 1, place.end)
    whole = outermost(inside, at)
    if whole is None or not is_whole(truth.data, at):
        return None
    return Case(truth, whole, (Change(at, stop or whole.end),), at)


def string_to_end(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """A string of one line cut at a random character, with all that follows on its line."""
    place, at = _cut_in(truth, kind, rng)
    stop = line_of(truth.data, at)[1]
    ends = _statement_end(truth, place)
    # The lines below would have lost their beginning.
    if (
        place is None
        or ends is None
        or ends > stop
        or _is_documented(truth, place)
        or is_escaped(truth.data, at)
    ):
        return None
    return Case(truth, place, (Change(at, stop),), at)


def string_to_quotes(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """A string cut at a random character and closed."""
    place, at = _cut_in(truth, kind, rng)
    if place is None or (kind == "string" and _is_documented(truth, place)) or is_escaped(truth.data, at):
        return None
    return Case(truth, place, (Change(at, place.end),), at)


def docstring_to_end(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """A docstring cut at a random character, without the quotes that close it."""
    place, at = _cut_in(truth, kind, rng)
    return (
        Case(truth, place, (Change(at, place.outer[1]),), at)
        if place and not is_escaped(truth.data, at)
        else None
    )


def _cut_in(truth: Truth, kind: Kind, rng: Random) -> tuple[Place | None, int]:
    """The innermost place of `kind` round a random character, which lies in no body inside it."""
    place = choose(truth.of(kind), rng)
    if place is None or place.end - place.start < 2:
        return None, 0
    at = rng.randrange(place.start + 1, place.end)
    place = truth.inner(kind, at)
    body = innermost(truth.bodies, at)
    if place is None or not place.clear or at <= place.start or not is_whole(truth.data, at):
        return None, 0
    return (None, 0) if body and body.opens >= place.opens else (place, at)


def _statement_end(truth: Truth, place: Place | None) -> int | None:
    """The end of the innermost statement around `place`, if it holds no body."""
    statement = truth.inner("statement", place.start) if place else None
    if place is None or statement is None or not statement.leaf:
        return None
    inside = statement.start <= place.outer[0] and place.outer[1] <= statement.end
    return statement.end if inside else None


def _is_documented(truth: Truth, place: Place) -> bool:
    return any(p.outer == place.outer for p in truth.of("docstring"))
