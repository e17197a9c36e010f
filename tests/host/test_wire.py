"""What crosses to the engine and back: nothing is lost, and nothing wrong is taken."""

import json
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.host import wire
from dg_lsp.text.messages import Draft, Fill, Infill, Piece, Retrieved, Run, State, Status

ODD = 'a\u2028b\x85c\x0c\r\n"\\ \U0001f600 \ud83d'


def there_and_back(name: str, value: object) -> Any:
    line = wire.line(name, value)
    # The reader may split at anything that Unicode calls a line end.
    assert line.decode("ascii").splitlines() == [line.decode("ascii").rstrip("\n")]
    return json.loads(line)[name]


TEXTS = st.text() | st.sampled_from([ODD, "\n\u2028", "\ude42"])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
RECORDS: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    float: NUMBERS,
    float | None: st.none() | NUMBERS,
    str | None: st.none() | TEXTS,
    tuple[str, ...]: st.lists(TEXTS, max_size=3).map(tuple),
}


def records(kind: type) -> st.SearchStrategy[Any]:
    """Any record of a kind, with any value in each of its fields."""
    hints = get_type_hints(kind)
    chosen = {f.name: RECORDS.get(hints[f.name], st.from_type(hints[f.name])) for f in fields(kind)}
    return st.builds(kind, **chosen)


for part in (Run, Piece, Retrieved):
    RECORDS[tuple[part, ...]] = st.lists(records(part), max_size=3).map(tuple)  # type: ignore[valid-type]


@given(records(Infill))
def test_a_request_arrives_as_it_was_sent(request: Infill) -> None:
    assert wire.unpack(Infill, there_and_back("infill", wire.pack(request))) == request


@given(records(Draft), records(Fill))
def test_a_draft_and_a_fill_arrive_as_they_were_sent(draft: Draft, fill: Fill) -> None:
    assert wire.unpack(Draft, there_and_back("draft", wire.pack(draft))) == draft
    assert wire.unpack(Fill, there_and_back("fill", wire.pack(fill))) == fill


@given(records(Status))
def test_a_status_arrives_as_it_was_sent(status: Status) -> None:
    assert wire.unpack(Status, there_and_back("status", wire.pack(status))) == status


# What crosses in each version of the wire. A window and an engine of one version may come from two installations, so
# a field may only be added, renamed or removed together with a new version.
SHAPES = {
    8: {
        "Infill": "prefix suffix language kind indent seed effort deadline session like alternatives between "
        "priority window endings context retrieved start noised "
        "confidence",
        "Piece": "path text",
        "Retrieved": "text before behind count near",
        "Run": "text anchored accepted entropy",
        "Draft": "step runs milliseconds",
        "Fill": "text score steps searched reason parses repairs milliseconds refusal others further shortened "
        "source chance partial",
        "Status": "state done mend checkpoint digest device memory milliseconds steps queue passes fills hits wire "
        "package python torch process seconds",
        "State": "starting loading ready busy slow failed",
    }
}


@pytest.mark.parametrize("kind", [Infill, Piece, Retrieved, Run, Draft, Fill, Status])
def test_the_records_have_the_shape_of_their_wire_version(kind: type) -> None:
    assert wire.WIRE in SHAPES, "write down the shape of the records in the new version"
    shape = " ".join(field.name for field in fields(kind))
    told = f"raise wire.WIRE and write down the shape of {kind.__name__} in that version"
    assert shape == SHAPES[wire.WIRE][kind.__name__], told


def test_the_states_are_those_of_their_wire_version() -> None:
    assert " ".join(get_args(State)) == SHAPES[wire.WIRE]["State"]


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {},
        {"prefix": "a"},
        {"prefix": 1, "suffix": "", "language": "python", "kind": "function_body"},
        {"prefix": "", "suffix": "", "language": "python", "kind": "everything"},
        {"prefix": "", "suffix": "", "language": "python", "kind": "function_body", "seed": True},
        {"prefix": "", "suffix": "", "language": "python", "kind": "function_body", "deadline": "soon"},
        {"prefix": "", "suffix": "", "language": "python", "kind": "function_body", "effort": "most"},
        {"prefix": "", "suffix": "", "language": "python", "kind": "function_body", "priority": "first"},
        {"prefix": "", "suffix": "", "language": "python", "kind": "statement", "between": "ab"},
        {"prefix": "", "suffix": "", "language": "python", "kind": "statement", "between": ["a", 1]},
        {"prefix": "", "suffix": "", "language": "python", "kind": "statement", "endings": "ab"},
        {"prefix": "", "suffix": "", "language": "python", "kind": "statement", "context": ["a"]},
        {"prefix": "", "suffix": "", "language": "python", "kind": "statement", "retrieved": [{"text": 1}]},
    ],
)
def test_what_does_not_follow_the_page_is_refused(values: object) -> None:
    with pytest.raises(wire.WireError):
        wire.unpack(Infill, values)


@pytest.mark.parametrize("kind", [Infill, Draft, Fill, Status])
def test_fields_of_a_newer_installation_are_ignored(kind: type) -> None:
    known: Any = {
        Infill: Infill("a", "b", "python", "function_body"),
        Draft: Draft(1, (Run("a", anchored=True, accepted=True, entropy=0.0),), 2.0),
        Fill: Fill("x"),
        Status: Status("ready"),
    }[kind]
    sent = {**json.loads(json.dumps(wire.pack(known))), "from_tomorrow": [1]}
    for run in sent.get("runs", ()):
        run["from_tomorrow"] = True
    assert wire.unpack(kind, sent) == known


def test_a_refusal_does_not_quote_the_text() -> None:
    with pytest.raises(wire.WireError) as caught:
        wire.unpack(
            Infill, {"prefix": ["secret"], "suffix": "", "language": "python", "kind": "function_body"}
        )
    assert "secret" not in str(caught.value)
