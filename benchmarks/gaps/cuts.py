"""Scenarios of typing: a body, a statement or a header of which only the beginning is left.

Each function makes one case from a valid file by chance, or None; all damage is at the cursor.
"""

import re
from random import Random

from benchmarks.gaps.case import Case, Change
from benchmarks.gaps.place import Place, Truth, choose, indent_of, innermost, is_whole, line_of
from dg_lsp.messages import Kind


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
        after = behind_brace(truth.data, function)
        if after is None:
            return None
        stop = after
    return Case(truth, cut[0], (Change(cut[1], stop),), cut[1])


def within_statement(truth: Truth, kind: Kind, rng: Random) -> Case | None:
    """a2: one statement cut to the end of its line at a random character; later ones stay."""
    statement = choose([s for s in truth.of("statement") if s.leaf], rng)
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
    block = choose(truth.of("block"), rng)
    if block is None or block.opens - block.outer[0] < 4:
        return None
    at = rng.randrange(block.outer[0] + 1, block.opens - 1)
    place = truth.inner(kind, block.outer[0])
    # An `else` has the header of its `if` far above.
    if place is None or not place.clear or b"\n" in truth.data[at : block.opens] or not _is_typed(truth, at):
        return None
    return Case(truth, place, (Change(at, block.opens),), at)


def _cut_in_body(truth: Truth, kind: Kind, rng: Random) -> tuple[Place, int] | None:
    """A body, and a random character in it that lies in no nested one of its kind."""
    place = choose(truth.of(kind), rng)
    if place is None or place.end - place.start < 2:
        return None
    at = rng.randrange(place.start + 1, place.end)
    if truth.inner(kind, at) != place or not _is_typed(truth, at):
        return None
    return None if _in_header(truth, kind, at) or truth.inner("function_body", at) is None else (place, at)


def _in_header(truth: Truth, kind: Kind, at: int) -> bool:
    """Return whether `at` is in or right after the header of a body of `kind`, where two kinds are equally right."""
    if truth.data[:at].rstrip().endswith((b":", b"{")):
        return True
    if kind != "block":
        return any(p.outer[0] < at <= p.opens for p in truth.places[kind])
    # The header of an `else` lies far below the beginning of its statement.
    statement = truth.inner("statement", at)
    return statement is not None and not statement.leaf


def _is_typed(truth: Truth, at: int) -> bool:
    """Return whether the block of a cursor at `at` is clear: on a line of text, or in front of one."""
    if not is_whole(truth.data, at):
        return False
    line = truth.data[line_of(truth.data, at)[0] : at]
    return bool(line.strip()) or not truth.data[at : at + 1].isspace()


def _line_behind(data: bytes, place: Place) -> int | None:
    """The end of the line that `place` ends on, if nothing but a comment follows."""
    stop = line_of(data, place.end)[1]
    rest = data[place.end : stop].strip()
    return stop if not rest or re.match(rb"#|//|;$", rest) else None


def behind_brace(data: bytes, function: Place) -> int | None:
    """The end of a function with its brace, if the brace begins its line and at most a semicolon follows."""
    line, stop = line_of(data, function.closes)
    rest = data[function.closes + 1 : stop].strip()
    alone = not data[line : function.closes].strip() and indent_of(data, function.closes) == indent_of(
        data, function.outer[0]
    )
    return stop if alone and rest in (b"", b";") else None
