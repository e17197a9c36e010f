"""Similar functions: those of the same file that are most like the one whose body is to be written.

For `def parse_rule_update(self, data):` the body of `parse_rule_create`, below the gap or above the visible text: a
small model copies near code of a kind best (RepoCoder, arXiv:2303.12570, shows the same of a repository's pieces).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dg_lsp.budget import bounded
from dg_lsp.source.bodies import Body, unwritten
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import leading, line_below, line_start

# At most so many functions, in so many bytes, each at least so like the one to be written: less like ones make its
# truth less likely (docs/research/bodies.md).
_MOST, ROOM, _LEAST = 3, 1_000, 0.4
# What the names in the headers count beside the words of the function's own name.
_HEADER = 0.5
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True, slots=True)
class Function:
    """A function's text: the lines of its header, and those of its body without a docstring."""

    header: str
    body: str


@dataclass(frozen=True, slots=True)
class Similar:
    """`functions`, the most similar first. at: where the function to be written begins in the prefix, in bytes."""

    at: int
    functions: tuple[Function, ...]


@bounded
def similar(language: Language, prefix: bytes, suffix: bytes) -> Similar | None:
    """The functions of `prefix` and `suffix` most like the missing one, as deep as it and of several lines; or None."""
    found = unwritten(language, prefix, suffix)
    if found is None:
        return None
    data, own = found.data, found.own
    others = [
        (likeness, body)
        for body in found.functions
        if body.header.name
        and (body.stop <= own.header.start or body.header.start >= own.stop)
        and not (body.is_placeholder or body.inline)
        and leading(data, body.header.start) == leading(data, own.header.start)
        and (likeness := _likeness(data, own, body)) >= _LEAST
    ]
    others.sort(key=lambda one: (-one[0], abs(one[1].header.start - len(prefix))))
    fitting = tuple(_fitting(data, [body for _, body in others]))
    return Similar(line_start(data, own.header.start), fitting) if fitting else None


def _fitting(data: bytes, bodies: list[Body]) -> Iterator[Function]:
    """The first of `bodies` that fit into the room, as text."""
    count, room = 0, ROOM
    for body in bodies:
        function = _function(data, body)
        size = len((function.header + function.body).encode())
        if count < _MOST and size <= room:
            count, room = count + 1, room - size
            yield function


def _function(data: bytes, body: Body) -> Function:
    """The whole lines of a function, without a docstring below its header."""
    start, below = line_start(data, body.header.start), line_below(data, body.header.opens)
    inside = body.docstring and body.first and body.docstring[0] >= below
    first = line_start(data, body.first) if inside and body.first else below
    header, text = data[start:below], data[first : line_below(data, body.stop)]
    return Function(header.decode("utf-8", "replace"), text.decode("utf-8", "replace"))


def _likeness(data: bytes, one: Body, other: Body) -> float:
    """Return the share of words that two functions' names share, plus half of that for their headers' rest."""
    names, headers = zip(*(_words(data, body) for body in (one, other)), strict=True)
    return _overlap(*names) + _HEADER * _overlap(*headers)


def _words(data: bytes, body: Body) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a function's name, and those of the rest of its header: `parse_rule` has `parse` and `rule`."""
    name = body.header.last_name
    header = data[body.header.define : body.header.opens].decode("utf-8", "replace").replace(name, " ", 1)
    parts = [frozenset(word.lower() for word in _PART.findall(text)) for text in (name, header)]
    return parts[0], parts[1] - {"self", "def", "async"}


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the words of both that both have (Jaccard's index)."""
    return len(one & other) / max(len(one | other), 1)
