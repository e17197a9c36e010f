"""Words: what language.toml says under [repair] about a language with braces, for text that no parser can read.

The noun and how it is read; `braces`, `brace_bodies` and `brace_repair` know what it means.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A text that is tried where the text before the cursor matches.
Form = tuple[re.Pattern[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Words:
    """functions, classes, blocks: words of the headers of such bodies. alone: words that are the whole header of a
    block. lambdas: what the header of a function without
    a name looks like at its end. operators: words that want an operand. starts: words that only begin a statement.

    items: what a line at column 0 that begins an item of the file looks like. above: what a line that belongs to the
    item below it begins with. directive: what begins a line of its own at any depth, such as a preprocessor's.

    ends: what a statement ends with, the commonest first. mask: a header that stands for any. member: what may stand
    for any member or statement. lines: what may stand on a blank line. tags: there is markup in the code.

    The others are forms: operands: what may lack at the cursor; lists: what an item lacks where a brace with such a
    header holds items; behind: what a block with such a header lacks behind its brace.
    """

    functions: frozenset[bytes]
    classes: frozenset[bytes]
    blocks: frozenset[bytes]
    alone: frozenset[bytes]
    lambdas: re.Pattern[bytes]
    operators: frozenset[bytes]
    starts: frozenset[bytes]
    items: re.Pattern[bytes]
    above: re.Pattern[bytes]
    directive: bytes
    ends: tuple[bytes, ...]
    mask: bytes
    operands: tuple[Form, ...]
    lists: tuple[Form, ...]
    behind: tuple[Form, ...]
    lines: tuple[bytes, ...]
    member: bytes
    tags: bool


def read_words(facts: Mapping[str, Any]) -> Words:
    """The words of the table [repair]; what it leaves out is empty."""
    return Words(
        functions=_words(facts, "functions"),
        classes=_words(facts, "classes"),
        blocks=_words(facts, "blocks"),
        alone=_words(facts, "alone"),
        lambdas=_pattern(facts.get("lambdas", r"(?!)")),
        operators=_words(facts, "operators"),
        starts=_words(facts, "starts"),
        items=_pattern(facts.get("items", r"[\w$@#(\[\"'~!]")),
        above=_pattern(facts.get("above", "@")),
        directive=facts.get("directive", "").encode(),
        ends=tuple(text.encode() for text in facts.get("ends", ("",))),
        mask=facts.get("mask", "if (_g_) {").encode(),
        operands=_forms(facts, "operands"),
        lists=_forms(facts, "lists"),
        behind=_forms(facts, "behind"),
        lines=tuple(text.encode() for text in facts.get("lines", ())),
        tags=facts.get("tags", False),
        member=facts.get("member", "_g_;").encode(),
    )


def _words(facts: Mapping[str, Any], name: str) -> frozenset[bytes]:
    return frozenset(word.encode() for word in facts.get(name, ()))


def _forms(facts: Mapping[str, Any], name: str) -> tuple[Form, ...]:
    return tuple((_pattern(pattern), text.encode()) for pattern, text in facts.get(name, ()))


def _pattern(text: str) -> re.Pattern[bytes]:
    return re.compile(text.encode(), re.DOTALL)
