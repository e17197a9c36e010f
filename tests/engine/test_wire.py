"""What crosses to the engine and back: nothing is lost, and nothing wrong is taken."""

import json
from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.context import retrieve
from dg_lsp.context.prompt import build
from dg_lsp.engine import wire
from dg_lsp.gaps import words
from dg_lsp.gaps.find import find_gap
from dg_lsp.messages import Draft, Fill, Hunk, Infill, Piece, Retrieved, Run, State, Status
from dg_lsp.settings import RANGES, Settings, override
from dg_lsp.source.document import Document

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
    tuple[float, ...]: st.lists(NUMBERS, max_size=3).map(tuple),
}


COUNTS, SHARES = st.integers(0, 10**6), st.floats(0, 1)
# Fields of what a client asks, which are bounded.
BOUNDED: dict[type, dict[str, st.SearchStrategy[Any]]] = {
    Retrieved: {"before": COUNTS, "behind": COUNTS, "count": COUNTS, "near": SHARES},
    Hunk: {"line": COUNTS},
    Infill: {
        "language": st.sampled_from(["python", "typescriptreact"]),
        "indent": st.text(" \t"),
        "seed": st.integers(-(2**53), 2**53),
        "alternatives": st.integers(1, 10),
        "deadline": st.none() | st.floats(0, 86_400),
        **dict.fromkeys(("noised", "confidence", "chance"), SHARES),
    },
}


def records(kind: type) -> st.SearchStrategy[Any]:
    """Any record of a kind, with any value in each of its fields."""
    hints = get_type_hints(kind)
    chosen = {f.name: RECORDS.get(hints[f.name], st.from_type(hints[f.name])) for f in fields(kind)}
    chosen |= BOUNDED.get(kind, {})
    return st.builds(kind, **chosen)


for part in (Run, Hunk, Piece, Retrieved):
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
    17: {
        "Infill": "prefix suffix language kind indent seed effort deadline session like alternatives between "
        "priority window endings context retrieved start noised "
        "confidence macros edits unimported shown chance soon",
        "Hunk": "path line scope above removed added below",
        "Piece": "path text",
        "Retrieved": "text before behind count near",
        "Run": "text anchored accepted entropy",
        "Draft": "step runs milliseconds pause",
        "Fill": "text score steps searched reason parses repairs milliseconds refusal others further shortened "
        "source chance partial grows",
        "Status": "state done why checkpoint digest device memory milliseconds steps queue passes fills hits wire "
        "package python torch process seconds",
        "State": "starting loading ready busy slow failed",
    }
}


@pytest.mark.parametrize("kind", [Infill, Hunk, Piece, Retrieved, Run, Draft, Fill, Status])
def test_the_records_have_the_shape_of_their_wire_version(kind: type) -> None:
    assert wire.WIRE in SHAPES, "write down the shape of the records in the new version"
    shape = " ".join(field.name for field in fields(kind))
    reported = f"raise wire.WIRE and write down the shape of {kind.__name__} in that version"
    assert shape == SHAPES[wire.WIRE][kind.__name__], reported


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


ASKED = {"prefix": "", "suffix": "", "language": "python", "kind": "statement"}
LONG, MANY = "secret" * 1_000_000, ["secret"] * 101


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, LONG) for name in ("prefix", "suffix", "language", "session", "window", "like", "start")),
        ("indent", " " * 10_001),
        ("indent", "secret"),
        ("language", "secret"),
        ("language", "../../secret"),
        *((name, value) for name in ("between", "endings") for value in ([LONG], MANY)),
        *(("context", [{"path": "p", "text": text} for text in texts]) for texts in ([LONG], MANY)),
        ("context", [{"path": LONG, "text": ""}]),
        *(("retrieved", [{"text": text} for text in texts]) for texts in ([LONG], MANY)),
        *(
            ("retrieved", [{"text": "", name: value}])
            for name in ("before", "behind", "count", "near")
            for value in (-1, 10**12)
        ),
        *(("alternatives", value) for value in (-1, 0, 11, 10**9, 10**30)),
        *(("seed", value) for value in (-(10**30), 10**30)),
        *(("deadline", value) for value in (-1, 10**9, float("nan"), float("inf"))),
        *(
            (name, value)
            for name in ("noised", "confidence", "chance")
            for value in (-0.1, 1.1, float("nan"))
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else type(value).__name__,
)
def test_what_is_out_of_bounds_is_refused_with_the_field_and_without_its_text(
    name: str, value: object
) -> None:
    sent = json.loads(json.dumps({**ASKED, name: value}))
    with pytest.raises(wire.WireError, match=f"field '{name}'") as caught:
        wire.unpack(Infill, sent)
    assert "secret" not in str(caught.value) and len(str(caught.value)) < 300


def test_every_field_of_a_request_is_bounded() -> None:
    """A new field needs a bound: each text, list and number is refused where it is as large as it can be."""
    hints = get_type_hints(Infill)
    huge: dict[Any, Any] = {str: LONG, int: 10**30, float: 10**30, tuple: MANY, bool: LONG}
    for field in fields(Infill):
        kind = hints[field.name]
        if type(None) in get_args(kind):
            (kind,) = (one for one in get_args(kind) if one is not type(None))
        kind = get_origin(kind) or kind
        if kind is Literal:
            continue
        with pytest.raises(wire.WireError, match=f"'{field.name}'"):
            wire.unpack(Infill, {**ASKED, field.name: huge[kind]})


def test_the_longest_request_of_an_editor_is_within_the_bounds() -> None:
    text = "x = 1  # é\n" * 90_000
    document = Document("file:///a.py", "python", 1, text.encode())
    values = {name: int(RANGES[name][1]) for name in ("prefix_bytes", "suffix_bytes", "deadline")}
    most = override(Settings(), values)
    request = replace(
        build(document, find_gap(document, len(document.data)), most),
        alternatives=10,
        endings=tuple("w" * 500 for _ in range(words.MOST)),
        retrieved=tuple(Retrieved("t" * 200, 16, 8, 50_000, 1.0) for _ in range(retrieve.MOST)),
        context=(Piece("p" * 4_000, "t" * int(RANGES["definition_bytes"][1])),),
    )
    assert wire.unpack(Infill, there_and_back("infill", wire.pack(request))) == request
