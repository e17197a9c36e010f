"""The messages between an engine and its clients: one JSON object a line. Knows the records; knows no HTTP.

An answer is any number of lines `{"state": ...}`, `{"draft": ...}` and `{"beat": ...}`, and then exactly one
`{"fill": ...}` or `{"error": ...}`. If the stream ends without that last line, the engine has died.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple, dataclass, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from dg_lsp.messages import Draft, Fill, Infill, State, Status
from dg_lsp.settings import RANGES
from dg_lsp.source.language import knows

WIRE = 17  # version of this format; part of the socket's name
BEAT = 1.0  # seconds after which a silent engine sends a line

# The bounds of an Infill that comes from a client. An editor stays far below them: they keep one client from taking the
# memory and the time of all others.
# Characters of the fields that are texts. A prefix and a suffix are at most as long as the settings allow, and hold
# what a gap inserts.
_TEXTS = {
    "prefix": 2 << 20,
    "suffix": 2 << 20,
    "language": 100,
    "indent": 10_000,
    "session": 10_000,
    "window": 1_000,
    "like": 256 << 10,
    "start": 256 << 10,
    "shown": 256 << 10,
}
# Items of the fields that are lists, and characters of all texts of one: gaps of a function, half words, files,
# candidates, lines.
_LISTS = {
    "between": (100, 2 << 20),
    "endings": (100, 100_000),
    "context": (100, 1 << 20),
    "retrieved": (100, 100_000),
    "macros": (100, 10_000),
    "edits": (20, 100_000),
    "unimported": (100, 10_000),
}
_COUNT = 10**6  # words that agree, places where a candidate was found

Record = TypeVar("Record")


class WireError(ValueError):
    """A message does not follow this format; the error names the field, and never its content."""


@dataclass(frozen=True, slots=True)
class Loading:
    """The engine loads its checkpoint; `done` is the share of it that is done, 0 to 1."""

    state: State
    done: float


@dataclass(frozen=True, slots=True)
class Failure:
    """There is no fill, and `message` says why and what to do. failed: because the checkpoint cannot be loaded."""

    message: str
    failed: bool = False


_EVENTS = {"draft": Draft, "fill": Fill, "state": Loading, "error": Failure}


def line(name: str, value: Any) -> bytes:
    """Return a line of an answer, in ASCII, so that no character of a text is taken for a line end."""
    return json.dumps({name: value}, separators=(",", ":")).encode("ascii") + b"\n"


def event(line: str) -> Draft | Fill | Loading | Failure | None:
    """Return the record in a line of an answer; None for a beat, and for a record of a newer installation."""
    values = parsed(line)
    if not isinstance(values, dict) or len(values) != 1:
        raise WireError("a line is a JSON object with one name")
    ((name, value),) = values.items()
    return unpack(_EVENTS[name], value) if name in _EVENTS else None


def parsed(text: str | bytes) -> Any:
    """Return the record in the JSON `text`; raise WireError if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError("it is no JSON") from error


def pack(record: Infill | Draft | Fill | Status | Failure) -> dict[str, Any]:
    """Return a record as a JSON object."""
    return asdict(record)


def unpack(kind: type[Record], values: Any) -> Record:
    """Return the record of the class `kind` made of `values`, read from JSON; raise WireError if they are none.

    Fields that `kind` does not know are ignored, as a newer installation may send more.
    """
    if not isinstance(values, dict):
        raise WireError(f"a {kind.__name__} is a JSON object")
    types = _types(cast("type", kind))
    given: dict[str, Any] = {}
    for name, value in values.items():
        try:
            if name in types:
                given[name] = _value(types[name], value)
        except WireError:
            raise WireError(f"the field {name!r} of {kind.__name__} has a wrong value") from None
    try:
        record = kind(**given)
    except TypeError as error:
        raise WireError(f"a field of {kind.__name__} is missing: {error}") from error
    if isinstance(record, Infill) and (fault := next(_faults(record), "")):
        raise WireError(fault)
    return record


@cache
def _types(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a record, by name."""
    return get_type_hints(kind)


def _value(kind: Any, value: Any) -> Any:
    """Return `value`, which comes from JSON, as the type `kind` of a field; raise WireError if it is another."""
    if isinstance(kind, type) and is_dataclass(kind):
        return unpack(kind, value)
    within = get_args(kind)
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_value(within[0], one) for one in value)
    if get_origin(kind) is Literal and value in within:
        return value
    if get_origin(kind) is UnionType:
        return None if value is None else _value(within[0], value)
    # In JSON a number without a fraction may be a float, but a bool is not a number.
    if (kind is float and type(value) is int) or type(value) is kind:
        return value
    raise WireError


def _faults(request: Infill) -> Iterator[str]:
    """Yield a sentence for each field of `request` that is out of bounds; it holds none of its text."""
    for name, most in _TEXTS.items():
        if len(getattr(request, name) or "") > most:
            yield f"the field {name!r} is a text of at most {most:,} characters"
    for name, (most, room) in _LISTS.items():
        items = getattr(request, name) or ()
        if len(items) > most or sum(map(len, _texts_of(items))) > room:
            yield f"the field {name!r} is a list of at most {most:,} items and {room:,} characters"
    for name, value, (least, greatest) in _numbers(request):
        # NaN is in no range.
        if not least <= value <= greatest:
            yield f"the field {name!r} has a number that is not between {least:,.0f} and {greatest:,.0f}"
    if request.indent.strip(" \t\f\v"):
        yield "the field 'indent' is white space"
    if not knows(request.language):
        yield "the field 'language' names no language that this engine has a grammar for"


def _numbers(request: Infill) -> Iterator[tuple[str, float, tuple[float, float]]]:
    """Yield the numbers of `request`: the field that each is in, its value, and between which two it must be."""
    for name in ("seed", "alternatives", "confidence"):
        yield name, getattr(request, name), RANGES[name][:2]
    yield "deadline", request.deadline or 0, RANGES["deadline"][:2]
    yield "noised", request.noised, (0, 1)
    yield "chance", request.chance, (0, 1)
    for hunk in request.edits:
        yield "edits", hunk.line, (0, _COUNT)
    for one in request.retrieved:
        for value in (one.before, one.behind, one.count):
            yield "retrieved", value, (0, _COUNT)
        yield "retrieved", one.near, (0, 1)


def _texts_of(items: Iterable[object]) -> list[str]:
    """Return all texts in `items`, which are texts or records of texts."""
    found: list[str] = []
    for item in items:
        values: tuple[object, ...] = (item,) if isinstance(item, str) else astuple(cast("Any", item))
        found += [value for value in values if isinstance(value, str)]
    return found
