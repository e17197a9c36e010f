"""The messages between an engine and its clients: one JSON object a line. Knows the records; knows no HTTP.

An answer is any number of lines `{"state": ...}`, `{"draft": ...}` and `{"beat": ...}`, and then exactly one
`{"fill": ...}` or `{"error": ...}`. If the stream ends without that last line, the engine has died.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar, get_args

from dg_lsp.text.messages import Draft, Effort, Fill, Infill, Kind, Priority, Run, State, Status

WIRE = 4  # version of this format; part of the socket's name
BEAT = 1.0  # seconds after which a silent engine sends a line

Plain = TypeVar("Plain", Infill, Status)
_CHOICES = {
    "kind": get_args(Kind),
    "effort": get_args(Effort),
    "state": get_args(State),
    "priority": get_args(Priority),
}
_TYPES: dict[Any, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}


class WireError(ValueError):
    """A message does not follow this format; the error names the field, and never its content."""


def line(name: str, value: Any) -> bytes:
    """One line of an answer, in ASCII, so that no character in a text is taken for a line end."""
    return json.dumps({name: value}, separators=(",", ":")).encode("ascii") + b"\n"


def pack(record: Infill | Draft | Fill | Status) -> dict[str, Any]:
    """A record as a JSON object."""
    return asdict(record)


def unpack_infill(values: Any) -> Infill:
    """The Infill that a client sent.

    Raises:
        WireError: `values` is none.
    """
    return _plain(Infill, values)


def unpack_status(values: Any) -> Status:
    """The Status that an engine sent.

    Raises:
        WireError: `values` is none.
    """
    return _plain(Status, values)


def unpack_draft(values: Mapping[str, Any]) -> Draft:
    """The Draft that an engine of the same wire version sent; not checked, unknown fields ignored."""
    runs = tuple(Run(**_known(Run, run)) for run in values["runs"])
    return Draft(**{**_known(Draft, values), "runs": runs})


def unpack_fill(values: Mapping[str, Any]) -> Fill:
    """The Fill that an engine of the same wire version sent; not checked, unknown fields ignored."""
    texts = {name: tuple(values[name]) for name in ("others", "further")}
    return Fill(**{**_known(Fill, values), **texts})


def _plain(kind: type[Plain], values: Any) -> Plain:
    """A record of the class `kind` whose fields are checked against their types."""
    if not isinstance(values, dict):
        raise WireError(f"a {kind.__name__} is a JSON object")
    known = {f.name: f.type for f in fields(kind)}
    values = _known(kind, values)
    for name, value in values.items():
        if not _suits(name, known[name], value):
            raise WireError(f"the field {name!r} of {kind.__name__} has a wrong value")
    try:
        # JSON has no tuples.
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return kind(**given)
    except TypeError as error:
        raise WireError(f"{kind.__name__} lacks a field: {error}") from error


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The `values` that are fields of the record `kind`; a newer installation may send more."""
    names = {f.name for f in fields(kind)}
    return {name: value for name, value in values.items() if name in names}


def _suits(name: str, kind: Any, value: Any) -> bool:
    """Whether `value` has the type `kind` of the field `name`."""
    if name in _CHOICES:
        return value in _CHOICES[name]
    if kind in _TYPES:
        return isinstance(value, _TYPES[kind]) and not isinstance(value, bool)
    if name in ("between", "endings"):
        return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    # The other fields, `like` and `deadline`, may be null.
    wanted: tuple[type, ...] = (str,) if name == "like" else (int, float)
    return value is None or (isinstance(value, wanted) and not isinstance(value, bool))
