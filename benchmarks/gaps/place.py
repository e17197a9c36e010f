"""Place: something of a valid file that a gap may be asked for, and where its text really begins and ends.

Knows bytes; knows no grammar and nothing of how gaps are found.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from dg_lsp.messages import Kind
from dg_lsp.source.language import Language

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """[start, end) is the text without white space at its ends; it is somewhere in [opens, closes).

    Those lie between the delimiters; `outer` is the whole construct: a function with its header, a string with its
    quotes. leaf: for statements, no body lies inside. clear: it has one right answer, so that it may be asked for.
    """

    kind: Kind
    outer: Span
    opens: int
    start: int
    end: int
    closes: int
    leaf: bool = True
    clear: bool = True


@dataclass(frozen=True, slots=True)
class Truth:
    """A valid file and its places by kind, each list in the order of the text.

    `bodies` are of all three kinds; `of` gives what may be asked for, `inner` and `bodies` know the others too.
    """

    language: Language
    data: bytes
    places: dict[str, tuple[Place, ...]]
    bodies: tuple[Place, ...] = field(init=False)
    asked: dict[str, tuple[Place, ...]] = field(init=False)

    def __post_init__(self) -> None:
        kinds = ("function_body", "class_body", "block")
        found = [p for kind in kinds for p in self.places.get(kind, ())]
        object.__setattr__(self, "bodies", tuple(sorted(found, key=lambda p: p.opens)))
        asked = {k: tuple(p for p in v if p.clear and p.end > p.start) for k, v in self.places.items()}
        object.__setattr__(self, "asked", asked)

    def of(self, kind: str) -> tuple[Place, ...]:
        """The places of one kind that have one right answer and hold something."""
        return self.asked.get(kind, ())

    def inner(self, kind: str, at: int) -> Place | None:
        """The innermost place of `kind` whose inside holds the offset `at`."""
        return innermost(self.places.get(kind, ()), at)


def innermost(places: Iterable[Place], at: int) -> Place | None:
    """The shortest of `places` that holds the offset `at` between its delimiters."""
    holding = [p for p in places if p.opens <= at <= p.closes]
    return min(holding, key=lambda p: p.closes - p.opens, default=None)


def outermost(places: Iterable[Place], at: int) -> Place | None:
    """The longest of `places` that holds the offset `at`."""
    holding = [p for p in places if p.start <= at <= p.end]
    return max(holding, key=lambda p: p.end - p.start, default=None)


def choose(places: Sequence[Place], rng: Random) -> Place | None:
    """One of `places` by chance; None where there are none."""
    return rng.choice(places) if places else None


def trimmed(data: bytes, kind: Kind, outer: Span, inside: Span) -> Place:
    """The place whose delimiters leave `inside`; white space at the ends of it is not the place's."""
    opens, closes = inside
    text = data[opens:closes]
    bare = text.strip()
    start = opens + len(text) - len(text.lstrip()) if bare else opens
    return Place(kind, outer, opens, start, start + len(bare), closes)


def line_of(data: bytes, at: int) -> Span:
    """The start of the line of `at`, and the end of its text."""
    end = data.find(b"\n", at)
    return data.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(data)


def indent_of(data: bytes, at: int) -> bytes:
    """The white space that the line of `at` begins with."""
    start, end = line_of(data, at)
    line = data[start:end]
    return line[: len(line) - len(line.lstrip(b" \t"))]


def is_whole(data: bytes, at: int) -> bool:
    """Return whether `at` is between two characters, and not inside one or a line end."""
    return at >= len(data) or (data[at] & 0xC0 != 0x80 and data[at - 1 : at + 1] != b"\r\n")


def is_escaped(data: bytes, at: int) -> bool:
    """Return whether a backslash escapes the character at `at`."""
    return (at - len(data[:at].rstrip(b"\\"))) % 2 == 1
