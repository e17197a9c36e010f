"""What an engine and its clients say to each other: one JSON object a line. Knows the records; knows no HTTP.

An answer is any number of lines `{"state": ...}`, `{"draft": ...}` and `{"beat": ...}`, and then exactly one
`{"fill": ...}` or `{"error": ...}`. A stream that ends without that last line means that the engine died.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar, get_args

from dg_lsp.text.messages import Draft, Effort, Fill, Infill, Kind, Run, State, Status

WIRE = 2  # the version of this page; it is part of the socket's name
BEAT = 1.0  # seconds after which a silent engine sends a line

Plain = TypeVar("Plain", Infill, Status)
_CHOICES = {"kind": get_args(Kind), "effort": get_args(Effort), "state": get_args(State)}
_TYPES: dict[Any, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}


class WireError(ValueError):
    """A message that does not follow this page; says which field, never its text."""


def line(name: str, value: Any) -> bytes:
    """One line of an answer. Pure ASCII: no reader can see a line end inside of a text."""
    return json.dumps({name: value}, separators=(",", ":")).encode("ascii") + b"\n"


def pack(record: Infill | Draft | Fill | Status) -> dict[str, Any]:
    """A record as plain values."""
    return asdict(record)


def unpack_infill(values: Any) -> Infill:
    """The request that a client sent. Raises WireError."""
    return _plain(Infill, values)


def unpack_status(values: Any) -> Status:
    """What an engine says of itself. Raises WireError."""
    return _plain(Status, values)


def unpack_draft(values: Mapping[str, Any]) -> Draft:
    """A Draft as an engine of the same wire version packed it."""
    return Draft(values["step"], tuple(Run(**run) for run in values["runs"]), values["milliseconds"])


def unpack_fill(values: Mapping[str, Any]) -> Fill:
    """A Fill as an engine of the same wire version packed it."""
    texts = {name: tuple(values[name]) for name in ("others", "further")}
    return Fill(**{**values, **texts})


def _plain(kind: type[Plain], values: Any) -> Plain:
    if not isinstance(values, dict):
        raise WireError(f"a {kind.__name__} is a JSON object")
    known = {f.name: f.type for f in fields(kind)}
    unknown = sorted(values.keys() - known)
    if unknown:
        raise WireError(f"{kind.__name__} has no field {unknown[0]!r}")
    for name, value in values.items():
        if not _suits(name, known[name], value):
            raise WireError(f"the field {name!r} of {kind.__name__} has a wrong value")
    try:
        # JSON has no tuples.
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return kind(**given)
    except TypeError as error:
        raise WireError(f"{kind.__name__} lacks a field: {error}") from error


def _suits(name: str, kind: Any, value: Any) -> bool:
    if name in _CHOICES:
        return value in _CHOICES[name]
    if kind in _TYPES:
        return isinstance(value, _TYPES[kind]) and not isinstance(value, bool)
    if name == "between":
        return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    # The others may be left open.
    wanted: tuple[type, ...] = (str,) if name == "like" else (int, float)
    return value is None or (isinstance(value, wanted) and not isinstance(value, bool))
