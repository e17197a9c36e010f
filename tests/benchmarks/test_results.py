"""The tables of README and docs/results.md are those that the stored reports give."""

import json

import pytest

from benchmarks import results


@pytest.mark.parametrize("page", results.PAGES, ids=lambda page: page.name)
def test_a_page_has_the_tables_that_the_reports_give(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- results:" in text
    assert text == results.filled(text), "write them again: python -m benchmarks.results"


def test_the_page_of_results_has_few_rows() -> None:
    lines = results.PAGES[0].read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line.startswith(("|---", "| ---"))]
    rows = [line for line in lines if line.startswith("|")]
    assert 20 < len(rows) - 2 * len(rules) <= 30  # a table has a head and a rule


def test_each_report_says_how_it_was_made_and_each_share_of_how_many() -> None:
    paths = [path for path in results.REPORTS.glob("*.json") if path.name != "claims.json"]
    assert len(paths) > 10
    for path in paths:
        report = json.loads(path.read_text(encoding="utf-8"))
        assert report["model"] in results.MODELS, path.name
        assert report["command"] and report["machine"] and report["date"].startswith("20"), path.name
        for name, number in report["numbers"].items():
            assert results.MEASURES[name][1] != "%" or number["n"] > 0, f"{path.name}: {name}"


@pytest.mark.parametrize(
    ("percent", "n", "low", "high"), [(50, 100, 40.4, 59.6), (0, 10, 0, 27.8), (100, 10, 72.2, 100)]
)
def test_an_interval_is_wilsons(percent: float, n: int, low: float, high: float) -> None:
    assert results.interval(percent, n) == pytest.approx((low, high), abs=0.05)


def test_a_number_that_was_not_measured_is_a_dash() -> None:
    assert results.cell(None, "s") == "-"
