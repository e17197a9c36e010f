"""Places: random cursors in files, whole or damaged on purpose, and what is taken away there to be filled in again.

Knows files and trees; knows nothing of how gaps are found.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from benchmarks.gaps.place import is_whole, line_of
from benchmarks.gaps.scenarios import stubs_of
from benchmarks.gaps.truth import truth_of, unquoted
from benchmarks.gaps.valid import is_valid
from benchmarks.guarantee.judge import Span, marks, read
from dg_lsp.messages import KINDS, Kind
from dg_lsp.source.language import Language

# The share of places in docstrings, comments and strings; of those, and of the others, that ask for a kind.
SPECIAL, ASKED_SPECIAL, ASKED_CODE = 1 / 3, 1 / 2, 1 / 4
_DOCSTRING = re.compile(rb"(?:^|:)[ \t]*\n?[ \t]*\Z")
_OPENING = re.compile(rb"[A-Za-z]*#*(?:\"\"\"|'''|[\"'`])|//+!?|#+!?|/\*+!?")
_FRAGMENTS = (
    b"(",
    b")",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"'",
    b'"""',
    b"`",
    b"/*",
    b"*/",
    b"\\",
    b",",
    b"=",
    b":",
    b" ",
)


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor in a file, and the kind of gap that is asked for there.

    Of `data` the bytes [at, stop) are taken away and `stub` put in their place; the cursor is after it. where: what
    the cursor is in, or how the file was damaged. kind: the kind asked for by name. room: where that may lie.
    """

    language: Language
    data: bytes
    at: int
    stop: int
    where: str
    kind: Kind | None = None
    room: Span | None = None
    stub: bytes = b""

    @property
    def cut(self) -> bytes:
        """The file as the user has it."""
        return self.data[: self.at] + self.stub + self.data[self.stop :]

    @property
    def cursor(self) -> int:
        """The offset of the cursor in `cut`."""
        return self.at + len(self.stub)


@dataclass(frozen=True, slots=True)
class _Spot:
    """A docstring, comment or string: all of it, and what is between its delimiters."""

    kind: Kind
    outer: Span
    inner: Span


def valid_places(language: Language, data: bytes, rng: random.Random) -> Iterator[tuple[Place, Place | None]]:
    """Without end: a random cursor in the file as it is, and the same with something taken away that was right."""
    data = _formed(language, data, rng)
    spots = _spots(language, data)
    while True:
        spot = None
        if spots and rng.random() < SPECIAL:
            kind = rng.choice(sorted({s.kind for s in spots}))
            spot = rng.choice([s for s in spots if s.kind == kind])
            at = rng.randrange(spot.outer[0], spot.outer[1] + 1)
        else:
            at = rng.randrange(len(data) + 1)
            spot = next((s for s in spots if s.outer[0] < at < s.outer[1]), None)
        if is_whole(data, at):
            yield (_in_spot(language, data, at, spot, rng) if spot else _in_code(language, data, at, rng))


def damaged_places(
    language: Language, data: bytes, rng: random.Random
) -> Iterator[tuple[Place, Place | None]]:
    """The same in a file damaged at one to three places, some of them near the cursor."""
    data = _formed(language, data, rng)
    for place, cut in valid_places(language, data, rng):
        name = rng.choice(list(DAMAGES))
        lines = _changed_near(data, place.at, name, rng)
        at = lines.index(_CURSOR)
        text = lines.replace(_CURSOR, b"")
        try:
            text.decode()
        except UnicodeDecodeError:
            continue
        asked = place.kind if rng.random() < ASKED_CODE else None
        where = Place(language, text, at, at, name, asked)
        stop = len(text[: line_of(text, at)[1]].rstrip())
        yield where, replace(where, stop=stop, kind=None) if cut and stop > at else None


_CURSOR = b"\xff"


def _changed_near(data: bytes, at: int, name: str, rng: random.Random) -> bytes:
    """`data` with a mark at the cursor and damage of the kind `name`; the mark is no text in UTF-8."""
    text = data[:at] + _CURSOR + data[at:]
    for _ in range(rng.randrange(1, 4)):
        near = rng.random() < 0.5
        low, high = (max(at - 300, 0), min(at + 300, len(text))) if near else (0, len(text))
        spot = rng.randrange(low, max(high, low + 1))
        text = DAMAGES[name](text, spot, rng)
        if name in ("truncated", "conflict"):
            break
    return text


def _deleted(text: bytes, spot: int, rng: random.Random) -> bytes:
    stop = spot + rng.choice((1, 1, 1, 2, 5))
    return text[:spot] + (_CURSOR if _CURSOR in text[spot:stop] else b"") + text[stop:]


def _inserted(text: bytes, spot: int, rng: random.Random) -> bytes:
    return text[:spot] + rng.choice((*_FRAGMENTS, b"x", b"\n", b"\t")) + text[spot:]


def _truncated(text: bytes, _: int, rng: random.Random) -> bytes:
    """The file ends at the cursor or soon after it."""
    return text[: text.index(_CURSOR) + 1 + rng.choice((0, 0, 1, 5, 40, 400))]


def _unclosed(text: bytes, spot: int, rng: random.Random) -> bytes:
    """A bracket or a quote without its other half."""
    found = [m.start() for m in re.finditer(rb"[()\[\]{}\"'`]", text[spot : spot + 500])]
    if not found or rng.random() < 0.3:
        return text[:spot] + rng.choice((b"(", b"[", b"{", b'"', b"'", b'"""', b"`")) + text[spot:]
    at = spot + rng.choice(found)
    return text[:at] + text[at + 1 :]


def _conflict(text: bytes, spot: int, rng: random.Random) -> bytes:
    """Two versions of some lines between the marks of a merge."""
    start, stop = line_of(text, spot)[0], line_of(text, min(spot + rng.randrange(1, 200), len(text)))[1]
    ours = text[start:stop]
    theirs = ours.replace(_CURSOR, b"").replace(b"a", b"b")
    return (
        text[:start] + b"<<<<<<< HEAD\n" + ours + b"\n=======\n" + theirs + b"\n>>>>>>> theirs" + text[stop:]
    )


DAMAGES = {
    "deleted": _deleted,
    "inserted": _inserted,
    "truncated": _truncated,
    "unclosed": _unclosed,
    "conflict": _conflict,
}


def _formed(language: Language, data: bytes, rng: random.Random) -> bytes:
    """The file, or the same with other line ends or a byte order mark."""
    chance = rng.random()
    if chance < 0.05:
        other = data.replace(b"\n", b"\r\n")
        return other if is_valid(language, other) else data
    if chance < 0.07:
        other = b"\xef\xbb\xbf" + data
        return other if is_valid(language, other) else data
    return data


@lru_cache(maxsize=8)
def _spots(language: Language, data: bytes) -> tuple[_Spot, ...]:
    """The docstrings, comments and strings of a valid file."""
    found = []
    for start, stop, name in marks(read(language, data)):
        if name == "bracket":
            continue
        end = start + len(data[start:stop].rstrip())
        opening = _OPENING.match(data, start, end)
        if opening is None:
            continue
        kind: Kind = "comment" if name == "comment" else "string"
        if kind == "comment":
            inner = opening.end(), end - 2 if data[start:end].startswith(b"/*") else end
        else:
            quoted = unquoted(data[start:end])
            if quoted is None:
                continue
            inner = start + quoted[0], start + quoted[1]
            if language.name == "python" and len(opening[0].lstrip(b"rRbBfFuU")) == 3:
                kind = "docstring" if _is_docstring(data, start) else kind
        if inner[0] <= inner[1]:
            found.append(_Spot(kind, (start, end), inner))
    return tuple(found)


def _is_docstring(data: bytes, start: int) -> bool:
    """Return whether a string at `start` is alone on its line, after a header or at the top of the file."""
    before = data[:start].removeprefix(b"\xef\xbb\xbf")
    line = before[before.rfind(b"\n") + 1 :]
    above = b"\n".join(
        part for part in before.split(b"\n")[:-1] if not part.lstrip().startswith(b"#")
    ).rstrip()
    return not line.strip() and (not above or above.endswith(b":"))


def _in_spot(
    language: Language, data: bytes, at: int, spot: _Spot, rng: random.Random
) -> tuple[Place, Place | None]:
    """A cursor in a docstring, comment or string; cut up to its end, or to that of the line."""
    asked = spot.kind if rng.random() < ASKED_SPECIAL else None
    # The blanks at the end of a comment's line are the comment's.
    begin, rest = spot.outer[0], data[spot.outer[1] : line_of(data, spot.outer[1])[1]]
    room = begin, spot.outer[1] + len(rest) - len(rest.lstrip())
    place = Place(language, data, at, at, spot.kind, asked, room if asked else None)
    start, end = spot.inner
    if not start <= at < end:
        return place, None
    whole = spot.kind != "string" and rng.random() < 0.5
    stop = end if whole else min(end, line_of(data, at)[1])
    stop = at + len(data[at:stop].rstrip()) if spot.kind == "comment" or not whole else stop
    # A backslash takes what follows it along.
    if stop <= at or not data[at:stop].strip() or data[:at].endswith(b"\\"):
        return place, None
    wanted = None if spot.kind == "string" else spot.kind
    return place, replace(place, stop=stop, kind=wanted, room=None)


def _in_code(language: Language, data: bytes, at: int, rng: random.Random) -> tuple[Place, Place | None]:
    """A cursor in code; cut up to the end of its line, or a whole body replaced by a stub."""
    asked = rng.choice(("function_body", rng.choice(KINDS))) if rng.random() < ASKED_CODE else None
    place = Place(language, data, at, at, "code", asked)
    if rng.random() < 0.15:
        bodies = truth_of(language, data).of("function_body")
        if bodies:
            body = min(bodies, key=lambda b: abs(b.start - at))
            stubs = [s for s in stubs_of(language.name) if "\n" not in s]
            stub = rng.choice([s for s in stubs if "TODO" not in s] or stubs).encode()
            cut = Place(language, data, body.start, body.end, "body", "function_body", None, stub)
            return place, cut
    stop = _end_of_cut(language, data, at)
    return place, replace(place, stop=stop, kind=None) if stop > at else None


def _end_of_cut(language: Language, data: bytes, at: int) -> int:
    """The end of the text of a line that can be cut and filled in: of a statement, or of an expression in a header.

    What opens a body or a bracket that is closed further below is nobody's to guess, nor is a comment.
    """
    truth = truth_of(language, data)
    line = line_of(data, at)
    text = data[slice(*line)]
    first = max(at, line[0] + len(text) - len(text.lstrip()))
    around = [p for p in truth.of("statement") if p.start <= first < p.end]
    inner = min(around, key=lambda p: p.end - p.start, default=None)
    if inner is None:
        return at
    stop = min(line[1], inner.end)
    if not inner.leaf:
        expressions = [p for p in truth.of("expression") if p.start < at < p.end and p.end <= line[1]]
        stop = max((p.end for p in expressions), default=at)
    comments = [s.outer[0] for s in _spots(language, data) if s.kind == "comment" and at <= s.outer[0] < stop]
    stop = at + len(data[at : min([stop, *comments])].rstrip())
    return stop if _opens_nothing(data[at:stop]) else at


def _opens_nothing(text: bytes) -> bool:
    """Return whether each bracket that `text` opens is closed in it."""
    depth = 0
    for byte in text:
        depth = max(depth - 1, 0) if byte in b")]}" else depth + (byte in b"([{")
    return not depth
