"""The sandbox as a fixture."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.sandbox import Sandbox, open_sandbox


@pytest.fixture
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox with the scripted engine, or with the one that the test names by indirect parametrisation."""
    with open_sandbox(tmp_path, getattr(request, "param", "scripted")) as opened:
        yield opened
