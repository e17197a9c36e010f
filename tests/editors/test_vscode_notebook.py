"""Ghost text in a cell of a notebook in a real VS Code, with the cells above it in the prompt."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.editors.sandbox import CHROMIUM, NODE, open_sandbox, skip_without
from tests.editors.vscode import VSIX, open_vscode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]


def test_ghost_text_in_a_cell_knows_the_cells_above(tmp_path: Path) -> None:
    texts = ("%matplotlib inline\n# says: y = rate * 2", "rate = 3", "y")
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": str(n),
            "metadata": {},
            "outputs": [],
            "source": text,
        }
        for n, text in enumerate(texts)
    ]
    about = {
        "language_info": {"name": "python"},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
    }
    book = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    with open_sandbox(tmp_path, "scripted") as sandbox, open_vscode(sandbox) as code:
        code.status("ready")
        (sandbox.project / "sums.ipynb").write_text(json.dumps(book))
        code.ask("pick", key="Control+P", text=str(sandbox.project / "sums.ipynb"), row="sums.ipynb")
        code.press("Enter")
        code.ask("text", selector=".tab.active", wanted="sums.ipynb")
        code.ask("click", selector=".notebookOverlay .cell-editor-container .view-lines >> nth=2")
        code.press("End")
        code.type(" ")
        # Each token is an element of its own; the name is in no cell but those above.
        code.ask("text", selector=".notebookOverlay [class*=ghost-text]", wanted="rate")
