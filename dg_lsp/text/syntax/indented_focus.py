"""Focus: a long class of an offside language (Python) without its members, except those round a place.

So damage in other members is none of the place's business, and parsing costs little. Knows lines; knows no tree.
"""

import re
from functools import lru_cache
from itertools import islice

from dg_lsp.text.documents.lines import line_end, line_start
from dg_lsp.text.syntax.indented import OUTERMOST, state_at
from dg_lsp.text.syntax.tokens import Span

# Cutting less than this saves nothing.
LONG = 6_000
_CLASS = re.compile(rb"(?:@[^\r\n]*(?:\r\n|\n|\r))*class[ \t]+\w")
_MEMBER = rb"(?<![^\r\n])(%b)(?:(@)|(?:async[ \t]+def|def|class)[ \t]+\w)"


@lru_cache(maxsize=4)
def focus(data: bytes, offset: int) -> tuple[bytes, tuple[Span, ...]]:
    """`data`, one top-level item, with only those members of a long class that are round `offset`; and what was cut.

    The cuts are pairs of an offset in `data` and the bytes taken away there, as a number below 0.

    1. Where the class ends.  2. The member that the offset is in stays, with the one above it and the one below.
    3. What is before goes, from the class's first member on; and what is behind, but for a name where the class ends.
    """
    # 1.
    head = _CLASS.match(data) if len(data) > LONG else None
    stop = _end_of(data, head.end()) if head else 0
    first = re.compile(_MEMBER % rb"[ \t]+").search(data, 0, stop)
    if first is None or offset >= stop:
        return data, ()
    # 2. What looks like a member in a docstring is none.
    members = _members(data[:stop], first[1])
    above = [at for at in members if at <= line_start(data, offset)][:-1]
    below = [at for at in members if at > line_end(data, offset)]
    begin = next((at for at in reversed(above) if not state_at(data, at, 0).string), first.start())
    end = next(islice((at for at in below if not state_at(data, at, 0).string), 1, None), stop)
    # 3.
    last = len(data[:stop].rstrip())
    name = max(line_start(data, last), end)
    length = last - name - len(first[1])
    rest = first[1] + b"_" * length + data[last:]
    if length <= 0:
        end = name = stop
        rest = data[stop:]
    cuts = ((first.start(), first.start() - begin), (end, end - name))
    return data[: first.start()] + data[begin:end] + rest, tuple(cut for cut in cuts if cut[1])


def _end_of(data: bytes, at: int) -> int:
    """Where the class whose head is before `at` ends by its indentation; 0 where that is in a string."""
    outermost = OUTERMOST.search(data, at)
    stop = outermost.end() if outermost else len(data)
    return stop if not state_at(data, stop, 0).string else 0


def _members(data: bytes, space: bytes) -> list[int]:
    """Where the members begin that stand behind `space`, with their decorators."""
    found, decorated = list[int](), False
    for member in re.compile(_MEMBER % re.escape(space)).finditer(data):
        found += [] if decorated else [member.start()]
        decorated = member[2] is not None
    return found
