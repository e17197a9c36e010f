"""Scenarios of typing: a body, a statement, a list, an expression or a string of which only the beginning stands.

Each function makes one case from a valid file by chance, or None; all damage is at the cursor.
"""

import re
from random import Random

from dg_lsp.boundaries.case import Case, Change
from dg_lsp.boundaries.place import (
    Place,
    Span,
    Truth,
    indent_of,
    innermost,
    is_whole,
    line_of,
    outermost,
)
from dg_lsp.text.messages import Kind


def without_tail(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """a1: the innermost block cut at a random character; what follows the block stays."""
    cut = _cut_in_body(truth, kind, rng)
    if cut is None:
        return None
    place, at = cut
    inner = innermost(truth.bodies, at)
    if inner is None or at == inner.opens:
        return None
    return Case(truth, place, (Change(at, max(inner.end, at)),), at)


def without_end(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """a1x: the function cut at a random character, with all the braces that close it."""
    cut = _cut_in_body(truth, kind, rng)
    function = truth.inner("function_body", cut[1]) if cut else None
    if cut is None or function is None:
        return None
    stop = function.end
    if truth.language.style == "brace":
        behind = behind_brace(truth.data, function)
        if behind is None:
            return None
        stop = behind
    return Case(truth, cut[0], (Change(cut[1], stop),), cut[1])


def within_statement(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """a2: one statement cut to the end of its line at a random character; later ones stay."""
    statement = _choose([s for s in truth.of("statement") if s.leaf], rng)
    if statement is None or statement.end - statement.start < 2:
        return None
    at = rng.randrange(statement.start + 1, statement.end)
    stop = _line_behind(truth.data, statement)
    body, function = innermost(truth.bodies, at), truth.inner("function_body", at)
    if stop is None or body is None or function is None or statement.end >= body.end:
        return None
    place = statement if kind == "statement" else truth.inner(kind, at)
    if not _is_typed(truth, at) or place is None or not place.clear or place.start > statement.start:
        return None
    return Case(truth, place, (Change(at, stop),), at)


def within_header(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """a2h: the header of a compound statement cut at a random character; what it holds stays."""
    block = _choose(truth.of("block"), rng)
    if block is None or block.opens - block.outer[0] < 4:
        return None
    at = rng.randrange(block.outer[0] + 1, block.opens - 1)
    place = truth.inner(kind, block.outer[0])
    # An `else` has the header of its `if` far above.
    if place is None or not place.clear or b"\n" in truth.data[at : block.opens] or not _is_typed(truth, at):
        return None
    return Case(truth, place, (Change(at, block.opens),), at)


def empty_list(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """d2: a list is empty and closed."""
    place = _choose(truth.of(kind), rng)
    return Case(truth, place, (Change(place.opens, place.closes),), place.opens) if place else None


def opened_list(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """d1: the rest of the statement is gone behind the opening bracket."""
    place = _choose(truth.of(kind), rng)
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
    statement = _choose([s for s in truth.of("statement") if s.leaf], rng)
    if statement is None:
        return None
    inside = [p for p in truth.of(kind) if statement.start <= p.start and p.end <= statement.end]
    place = _choose([p for p in inside if p.end - p.start > 1], rng)
    case = _expression(truth, inside, place, statement.end, rng)
    # An assignment that is cut on its left is a statement of another form.
    last = case and not truth.data[case.place.end : statement.end].strip(b" \t\n)]},:;")
    return case if last else None


def expression_in_header(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """e2: an expression in a compound statement's header cut at a random character; what follows it stays."""
    block = _choose(truth.of("block"), rng)
    if block is None:
        return None
    inside = [p for p in truth.of(kind) if block.outer[0] <= p.start and p.end < block.opens]
    # The header is the last one before the block: an else has none of its own.
    inside = [
        p for p in inside if innermost(truth.bodies, p.start) == innermost(truth.bodies, block.outer[0])
    ]
    place = _choose([p for p in inside if p.end - p.start > 1], rng)
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
    if place is None or b"\n" in truth.data[place.outer[0] : place.outer[1]] or _is_documented(truth, place):
        return None
    return Case(truth, place, (Change(at, line_of(truth.data, at)[1]),), at)


def string_to_quotes(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """A string cut at a random character and closed."""
    place, at = _cut_in(truth, kind, rng)
    if place is None or (kind == "string" and _is_documented(truth, place)):
        return None
    return Case(truth, place, (Change(at, place.end),), at)


def docstring_to_end(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """A docstring cut at a random character, without the quotes that close it."""
    place, at = _cut_in(truth, kind, rng)
    return Case(truth, place, (Change(at, place.outer[1]),), at) if place else None


def _choose(places: list[Place] | tuple[Place, ...], rng: Random) -> Place | None:
    return rng.choice(places) if places else None


def _cut_in_body(truth: Truth, kind: Kind, rng: Random) -> tuple[Place, int] | None:
    """A body, and a random character in it that lies in no nested one of its kind."""
    place = _choose(truth.of(kind), rng)
    if place is None or place.end - place.start < 2:
        return None
    at = rng.randrange(place.start + 1, place.end)
    if truth.inner(kind, at) != place or not _is_typed(truth, at):
        return None
    return None if _in_header(truth, kind, at) or truth.inner("function_body", at) is None else (place, at)


def _in_header(truth: Truth, kind: Kind, at: int) -> bool:
    """Whether `at` is in or right behind the header of a body of `kind`: which of two is meant is a matter of taste."""
    if truth.data[:at].rstrip().endswith((b":", b"{")):
        return True
    if kind != "block":
        return any(p.outer[0] < at <= p.opens for p in truth.places[kind])
    # The header of an `else` lies far below the beginning of its statement.
    statement = truth.inner("statement", at)
    return statement is not None and not statement.leaf


def _cut_in(truth: Truth, kind: Kind, rng: Random) -> tuple[Place | None, int]:
    """The innermost place of `kind` round a random character, which lies in no body inside it."""
    place = _choose(truth.of(kind), rng)
    if place is None or place.end - place.start < 2:
        return None, 0
    at = rng.randrange(place.start + 1, place.end)
    place = truth.inner(kind, at)
    body = innermost(truth.bodies, at)
    if place is None or not place.clear or at <= place.start or not is_whole(truth.data, at):
        return None, 0
    return (None, 0) if body and body.opens >= place.opens else (place, at)


def _is_typed(truth: Truth, at: int) -> bool:
    """Whether a cursor may be at `at` without a doubt about its block: on a line of text, or in front of one."""
    if not is_whole(truth.data, at):
        return False
    line = truth.data[line_of(truth.data, at)[0] : at]
    return bool(line.strip()) or not truth.data[at : at + 1].isspace()


def _statement_end(truth: Truth, place: Place | None) -> int | None:
    """Where the statement round `place` ends, if it holds no body."""
    inside = [
        s
        for s in truth.of("statement")
        if s.leaf and place and s.start <= place.outer[0] and place.outer[1] <= s.end
    ]
    return min(inside, key=lambda s: s.end - s.start).end if inside else None


def _line_behind(data: bytes, place: Place) -> int | None:
    """The end of the line that `place` ends on, if nothing but a comment follows."""
    stop = line_of(data, place.end)[1]
    rest = data[place.end : stop].strip()
    return stop if not rest or re.match(rb"#|//|;$", rest) else None


def behind_brace(data: bytes, function: Place) -> int | None:
    """Where a function ends with its brace, if that begins its line and nothing more follows than a semicolon."""
    line, stop = line_of(data, function.closes)
    rest = data[function.closes + 1 : stop].strip()
    alone = not data[line : function.closes].strip() and indent_of(data, function.closes) == indent_of(
        data, function.outer[0]
    )
    return stop if alone and rest in (b"", b";") else None


def _is_documented(truth: Truth, place: Place) -> bool:
    span: Span = place.outer
    return any(p.outer == span for p in truth.of("docstring"))
