"""Body: what a header holds, of a function, a class or a block, as byte offsets. Nouns only; `bodies` finds them."""

import re
from dataclasses import dataclass
from typing import Literal

from dg_lsp.text.messages import Kind
from dg_lsp.text.syntax.lexer import Span

Owner = Literal["function", "class", "block"]
OWNERS: tuple[Owner, ...] = ("function", "class", "block")
# The kind of gap that the body of an owner is, and the other way round.
KIND_OF: dict[Owner, Kind] = {"function": "function_body", "class": "class_body", "block": "block"}
# A comment that says only that something is to be done.
MARKER = re.compile(rb"\W*(?:TODO|FIXME|XXX)\W*")
OWNER_OF: dict[Kind, Owner] = {kind: owner for owner, kind in KIND_OF.items()}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a body itself, not of what is nested in it."""

    start: int
    end: int
    kind: Literal["docstring", "stub", "code"]


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before a body: [start, opens) with decorators or attributes.

    owner: of what the body is. define: where the owner itself begins, such as its `def`. opens: the end of the colon
    or brace that the body stands behind. name: the owner's with its owners', where it has one.
    """

    owner: Owner
    start: int
    define: int
    opens: int
    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """A body.

    opens: where its text may begin, behind the header or the docstring. first: the first text there, None without.
    end: the end of its text. closes: where what closes it begins (a brace; where there is none, equal to `end`).
    stop: behind what closes it. inline: its text is on the header's line. indent: the white space of its lines, where
    one shows it. hollow: nothing but comments or what says that it is not written yet. meant: so on purpose.
    """

    header: Header
    opens: int
    docstring: Span | None
    first: int | None
    end: int
    closes: int
    stop: int
    inline: bool
    indent: bytes | None
    hollow: bool
    meant: bool

    @property
    def stub(self) -> bool:
        """Whether it is not written yet, and is to be."""
        return self.hollow and not self.meant
