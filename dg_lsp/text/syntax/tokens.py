"""What can be read of a text that no parser can read yet: tokens, logical lines, and what is open at a place.

The nouns only; `offside` and `braces` read them, each for its style of language.
"""

from dataclasses import dataclass

Span = tuple[int, int]
# A template that holds code counts as a bracket of that code.
PAIRS = {b"(": b")", b"[": b"]", b"{": b"}", b"`": b"`", b'"': b'"'}


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its half-open span. `kind` is open_string for a string that nothing closes."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """One statement's header, one simple statement or one comment line: [start, end) without indentation.

    `width` is its indentation in columns, tabs to the next multiple of 8; `comment` says it is only one.
    """

    start: int
    end: int
    width: int
    comment: bool


@dataclass(frozen=True, slots=True)
class State:
    """What is open at an offset.

    brackets: those that nothing has closed, outermost first; opened: their offsets. string: the quotes of an open
    string, else empty. comment: the offset is in one. begins: where the open string or comment begins, else -1.
    line: where the logical line begins. start: where reading began, a place in no string and no comment.
    """

    brackets: bytes
    opened: tuple[int, ...]
    string: bytes
    comment: bool
    begins: int
    line: int
    start: int = 0


def closers(brackets: bytes) -> bytes:
    """What closes the open `brackets`, innermost first."""
    return b"".join(PAIRS[brackets[i : i + 1]] for i in reversed(range(len(brackets))))
