"""The suite in short; `make soak` runs it at full length and prints the table."""

from collections.abc import Callable

import pytest

from tests.robustness.bad_files import bad_files
from tests.robustness.edits import edits
from tests.robustness.endings import endings
from tests.robustness.faults import FAULTS, faults
from tests.robustness.fuzz import fuzz
from tests.robustness.row import Row
from tests.robustness.soak import soak
from tests.robustness.storm import storm
from tests.robustness.together import together

SHORT: dict[str, Callable[[], Row]] = {
    "storm": lambda: storm(200),
    "edits": lambda: edits(1_500),
    "fuzz": lambda: fuzz(300, seconds=60),
    "faults": lambda: faults(len(FAULTS), silence=3),
    "bad_files": lambda: bad_files(1),
    "together": lambda: together(1),
    "endings": lambda: endings(1),
    "soak": lambda: soak(40, every=4, checkpoint="scripted:4:20", silence=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_nothing_hangs_leaks_or_is_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    row = SHORT[name]()
    print(row.line)
    # Bars of time hold on an idle machine only.
    assert not row.wrong
