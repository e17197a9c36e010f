"""The benchmark of the released shape: its own command, on a tiny shape; and what it refuses."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch

from benchmarks import released


@pytest.fixture(autouse=True)
def numbers_near_zero_count_again() -> Iterator[None]:
    """Undo for later tests what the benchmark does in its thread, which is theirs."""
    yield
    torch.set_flush_denormal(False)


def test_parts_leave_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.json"
    monkeypatch.setattr(released, "measure_machine", lambda _: iter(()))
    parts = ["step", "reading", "fill"]
    released.main(["--tiny", "--bits", "4", "--budget", "0.1", "--only", *parts, "--json", str(report)])
    found = json.loads(report.read_text())["4 bits, 30 layers"]
    assert {*found} == {"build", "peak GB", *parts}
    records = [record for part in parts for record in found[part]]
    numbers = [v for record in records for v in record.values() if isinstance(v, float)]
    assert numbers and not any(math.isnan(value) for value in numbers)
    assert not capsys.readouterr().err


def test_a_network_that_does_not_fit_is_refused_with_the_fix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = psutil.virtual_memory()._replace(available=5 << 30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: left)
    monkeypatch.setattr(released, "measure_machine", lambda _: iter(()))
    report = tmp_path / "report.json"
    released.main(
        ["--device", "cpu", "--bits", "4", "--layers", "12", "--only", "step", "--json", str(report)]
    )
    assert "take fewer layers" in capsys.readouterr().err
    assert [*json.loads(report.read_text())["4 bits, 12 layers"]] == ["build"]
