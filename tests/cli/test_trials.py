"""A few of the random kills, full disks and saves of `tests/cli/trials.py`."""

from pathlib import Path

import pytest

from tests.cli import trials

# Each starts an engine and several bots.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("scenario", "times"),
    [(trials.killed, 8), (trials.full, 6), (trials.saved, 6)],
    ids=["killed", "full", "saved"],
)
def test_no_text_is_lost_and_no_fill_is_left_without_a_word(
    scenario: trials.Scenario, times: int, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    assert not trials.repeat(scenario, times, tmp_path)


def test_a_full_disk_loses_no_text(tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    try:
        with trials.small_disk(tmp_path / "disk") as disk:
            assert not trials.repeat(trials.crowded, 6, disk)
    except OSError as error:
        pytest.skip(f"no disk can be mounted here: {error}")
