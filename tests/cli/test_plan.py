"""`dg-lsp plan`: from times to a number of engines."""

import json
from pathlib import Path

import pytest

from dg_lsp.cli.main import main


@pytest.fixture
def times(tmp_path: Path) -> str:
    path = tmp_path / "times.json"
    path.write_text("[0.1, 0.3, 0.5]")
    return str(path)


def test_the_least_number_of_engines_is_found(
    times: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    options = ["plan", "--times", times, "--editors", "40", "--every", "5", "--json", str(out)]
    assert main(options) == 0
    told, said = json.loads(out.read_text()), capsys.readouterr().out
    rows = told["plan"]
    assert [row["engines"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0]["busy"] == pytest.approx(2.4) and rows[-1]["p95"] <= 1 < rows[-2]["p95"]
    assert f"{len(rows)} keep the p95 below 1 s" in said and "80 editors" in said and "#" in said
    assert "3 fills of 0.30 s" in said and "GB" not in said


def test_where_no_number_is_enough_the_plan_says_so(times: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--times", times, "--editors", "4", "--target", "0.2"]) == 1
    assert "a fill alone takes longer" in capsys.readouterr().out


def test_the_released_checkpoint_is_reckoned_and_refused_where_it_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plan", "--gpu", "h100", "--passes", "10"]) == 0
    said = capsys.readouterr().out
    assert "reckoned: 10 passes of 15 ms" in said and "An engine takes 62.1 GB" in said
    assert main(["plan", "--gpu", "rtx-4090"]) == 2
    assert "needs 62 GB and rtx-4090 has 24" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{}", "[]", "[0]", "[-1]", "[1e999]", '["x"]', "5"])
def test_times_that_are_none_are_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "times.json"
    path.write_text(text)
    assert main(["plan", "--times", str(path)]) == 2
    assert "--write-times" in capsys.readouterr().err


@pytest.mark.slow
def test_times_are_measured_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "times.json"
    options = [
        "plan",
        "--checkpoint",
        "embedded",
        "--cases",
        "3",
        "--target",
        "60",
        "--write-times",
        str(path),
    ]
    assert main(options) == 0
    seconds = json.loads(path.read_text())
    assert len(seconds) == 3 and min(seconds) > 0 and "embedded, measured here" in capsys.readouterr().out
