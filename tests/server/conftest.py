"""A server with the scripted engine, as a client sees it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.wire import Wire


@pytest.fixture
def wire(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """A client of a new server."""
    monkeypatch.setenv("DG_LSP_CHECKPOINT", "scripted")
    one = Wire([sys.executable, "-m", "dg_lsp", "--stdio"])
    yield one
    one.__exit__()
