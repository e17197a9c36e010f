"""What crosses to the engine and back: nothing is lost, and nothing wrong is taken."""

import json

import pytest

from dg_lsp.host import wire
from dg_lsp.text.messages import Draft, Fill, Infill, Run, Status

ODD = 'a\u2028b\x85c\x0c\r\n"\\ \U0001f600 \ud83d'


def there_and_back(name: str, value: object) -> object:
    line = wire.line(name, value)
    # The reader may split at anything that Unicode calls a line end.
    assert line.decode("ascii").splitlines() == [line.decode("ascii").rstrip("\n")]
    return json.loads(line)[name]


def test_a_request_arrives_as_it_was_sent() -> None:
    request = Infill(
        ODD, "x", "python", "function_body", "\t", 7, "high", 1.5, "file:///a", ODD, 3, (ODD, "")
    )
    assert wire.unpack_infill(there_and_back("infill", wire.pack(request))) == request


def test_a_draft_and_a_fill_arrive_as_they_were_sent() -> None:
    draft = Draft(3, (Run(ODD, True, False, 0.25), Run("", False, True, 1.0)), 12.5)
    assert wire.unpack_draft(there_and_back("draft", wire.pack(draft))) == draft  # type: ignore[arg-type]
    fill = Fill(ODD, 0.5, 3, 2, "stable", False, 1, 9.0, "why", ("a", ODD), ("", ODD))
    assert wire.unpack_fill(there_and_back("fill", wire.pack(fill))) == fill  # type: ignore[arg-type]


def test_a_status_arrives_as_it_was_sent() -> None:
    status = Status("loading", 0.4, memory=5, milliseconds=1.0)
    assert wire.unpack_status(there_and_back("status", wire.pack(status))) == status


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
        {"prefix": "", "suffix": "", "language": "python", "kind": "function_body", "extra": 1},
        {"prefix": "", "suffix": "", "language": "python", "kind": "statement", "between": "ab"},
        {"prefix": "", "suffix": "", "language": "python", "kind": "statement", "between": ["a", 1]},
    ],
)
def test_what_does_not_follow_the_page_is_refused(values: object) -> None:
    with pytest.raises(wire.WireError):
        wire.unpack_infill(values)


def test_a_refusal_does_not_quote_the_text() -> None:
    with pytest.raises(wire.WireError) as caught:
        wire.unpack_infill(
            {"prefix": ["secret"], "suffix": "", "language": "python", "kind": "function_body"}
        )
    assert "secret" not in str(caught.value)
