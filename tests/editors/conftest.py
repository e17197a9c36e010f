"""The sandbox, and a session of VS Code, as fixtures."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.sandbox import Sandbox, open_sandbox
from tests.editors.vscode import VSCode, open_vscode


@pytest.fixture
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox with the scripted engine, or with the one that the test names by indirect parametrisation."""
    with open_sandbox(tmp_path, getattr(request, "param", "scripted")) as opened:
        yield opened


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    """A session with the scripted engine: `None` for an expression, `return None` for a body."""
    with open_sandbox(tmp_path_factory.mktemp("vscode")) as sandbox, open_vscode(sandbox) as editor:
        editor.status("ready")
        yield editor
