"""The comparison of two runs on made-up results."""

import json

import pytest

from benchmarks.worth import is_begun, read, shown, table


def _line(number: int, **changed) -> str:
    hole = {
        "key": f"expression f.py {number}", "kind": "expression", "text": "value", "truth": "value",
        "offered": True, "exact": True, "partial": False, "chance": 0.5, "source": "retrieved",
        "milliseconds": 10.0,
    }  # fmt: skip
    return json.dumps(hole | changed)


@pytest.fixture
def runs(tmp_path):
    """An old run with 20 of 100 right and no chances, and a new one with those and 20 more."""
    old = [_line(n, exact=n < 20, chance=None, source="") for n in range(100)]
    new = [_line(n, exact=n < 40, chance=0.75 if n < 40 else 0.25, milliseconds=5.0) for n in range(90)]
    new += [_line(n, exact=False, text="val", partial=n < 95, chance=0.1) for n in range(90, 100)]
    for name, lines in (("old", old), ("new", new)):
        (tmp_path / name).write_text("\n".join(lines))
    return read(tmp_path / "old"), read(tmp_path / "new")


def test_the_table_gives_shares_difference_and_times(runs):
    said = "\n".join(table(*runs))
    assert "before  exact 20.0%" in said
    assert "after   exact 40.0%" in said
    assert "difference +20.0% [+12" in said
    assert "p50 5 ms p95 10 ms (exact: 40 retrieved)" in said


def test_the_curve_parts_short_and_partial_offers_from_the_others(runs):
    lines = shown(list(runs[1].values()))
    long, short, partial = (
        lines.index(next(line for line in lines if name in line))
        for name in ("four characters", "under four", "partial")
    )
    assert lines[long] == "  four characters or more: 90 offers, calibration error 0.250"
    assert "    0.50: shown 40.0%, right 100.0% of 40" in lines[long:short]
    assert lines[short + 1] == "    0.00: shown 5.0%, right 0.0% of 5"
    assert lines[partial + 1] == "    0.00: shown 5.0%, right 0.0% of 5"


def test_code_that_states_no_chance_shows_all(runs):
    lines = shown(list(runs[0].values()))
    assert lines[:2] == [
        "  four characters or more: 100 offers",
        "    0.00: shown 100.0%, right 20.0% of 100",
    ]


def test_a_beginning_ends_at_a_word():
    assert is_begun("foo(a", "foo(a, b)")
    assert is_begun(" foo", "foo(a, b)")
    assert is_begun("foo", "foo")
    assert not is_begun("fo", "foo(a, b)")
    assert not is_begun("foo(b", "foo(a, b)")
    assert not is_begun("", "foo")
