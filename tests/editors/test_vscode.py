"""A real VS Code with the standard language client: ghost text, the code action and undo, in one start of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.editors.sandbox import (
    CHROMIUM,
    FILL_AFTER,
    FILL_BEFORE,
    FILL_LINE,
    FILL_TITLE,
    GHOST_AFTER,
    NODE,
    open_sandbox,
    skip_without,
)
from tests.editors.vscode import drive

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM)]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What VS Code saved after each step; its start is by far the longest of them."""
    with open_sandbox(tmp_path_factory.mktemp("vscode")) as sandbox:
        yield drive(sandbox, "smoke", line=FILL_LINE, title=FILL_TITLE)


def test_ghost_text_appears_and_the_accepted_text_is_saved(result: dict[str, Any]) -> None:
    assert result["accepted"] == GHOST_AFTER


def test_the_code_action_fills_the_body(result: dict[str, Any]) -> None:
    assert result["filled"] == FILL_AFTER


def test_one_undo_takes_the_fill_back(result: dict[str, Any]) -> None:
    assert result["undone"] == FILL_BEFORE
