"""Words: what language.toml says under [repair], for text that no parser can read.

The noun and how it is read; `dg_lsp/text/syntax` knows what it means.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Words:
    """functions, classes, blocks: words of the headers of such bodies. alone: the whole header of a block.

    lambdas: what the header of a function without a name looks like at its end. lists: what a header looks like whose
    brace holds a list and not statements. operators: words that want an operand. starts: words that only begin a
    statement.

    items: what a line at column 0 that begins an item of the file looks like; members: one that begins a part of an
    item. above: what a line that belongs to the item below it begins with. directive: what begins a line of its own at
    any depth, such as a preprocessor's.

    operands: pairs of what the text before a cursor looks like and what may lack there. ends: what a statement ends
    with, the commonest first. headers: what a header ends with, before a body and without one. mask: a header that
    stands for any. member: what may stand for any member or statement.
    """

    functions: frozenset[bytes]
    classes: frozenset[bytes]
    blocks: frozenset[bytes]
    alone: frozenset[bytes]
    operators: frozenset[bytes]
    starts: frozenset[bytes]
    lambdas: re.Pattern[bytes]
    lists: tuple[re.Pattern[bytes], ...]
    items: re.Pattern[bytes]
    members: re.Pattern[bytes]
    above: re.Pattern[bytes]
    directive: bytes
    operands: tuple[tuple[re.Pattern[bytes], bytes], ...]
    ends: tuple[bytes, ...]
    headers: tuple[bytes, ...]
    mask: bytes
    member: bytes


def read_words(facts: Mapping[str, Any]) -> Words:
    """The words of the table [repair]; what it leaves out is empty or what most languages have."""
    sets = ("functions", "classes", "blocks", "alone", "operators", "starts")
    return Words(
        **{name: frozenset(word.encode() for word in facts.get(name, ())) for name in sets},
        lambdas=_pattern(facts.get("lambdas", r"(?!)")),
        lists=tuple(_pattern(pattern) for pattern, _ in facts.get("lists", ())),
        items=_pattern(facts.get("items", r"[\w$@#(\[\"'~!]")),
        members=_pattern(facts.get("members", r"[\w$@#~*&<\[\"'\x80-\xff]")),
        above=_pattern(facts.get("above", "@")),
        directive=facts.get("directive", "").encode(),
        operands=tuple((_pattern(pattern), text.encode()) for pattern, text in facts.get("operands", ())),
        ends=tuple(text.encode() for text in facts.get("ends", ("",))),
        headers=tuple(text.encode() for text in facts.get("headers", (" {", " {}"))),
        mask=facts.get("mask", "if (_g_) {").encode(),
        member=facts.get("member", "_g_;").encode(),
    )


def _pattern(text: str) -> re.Pattern[bytes]:
    return re.compile(text.encode(), re.DOTALL)
