"""The menu of models in a real VS Code: what there is, a switch without a restart, a fetch that is cancelled."""

import socket
import sys
from collections.abc import Iterator

import pytest

from tests.editors.sandbox import CHROMIUM, NODE, open_sandbox, servers, skip_without
from tests.editors.vscode import MESSAGES, STATUS, VSIX, VSCode, open_vscode, press_button, write_program

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

CHOOSE = "dg-lsp: Choose the Model"
# The package index is an address at which nobody listens, and the hub one that never answers.
SERVER = """export HF_ENDPOINT=http://127.0.0.1:{port} HF_HUB_OFFLINE=0 PIP_INDEX_URL=http://127.0.0.1:9 PIP_RETRIES=0
exec {python} -m dg_lsp "$@"
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    """The session, with the scripted engine, and the embedded checkpoint beside it."""
    with (
        socket.create_server(("127.0.0.1", 0)) as hub,
        open_sandbox(tmp_path_factory.mktemp("vscode")) as box,
    ):
        write_program(
            box.root / "bin/dg-lsp", SERVER.format(port=hub.getsockname()[1], python=sys.executable)
        )
        with open_vscode(box) as editor:
            editor.status("ready")
            yield editor


def test_a_fetch_that_is_cancelled_leaves_the_model_as_it_was(code: VSCode) -> None:
    code.command(CHOOSE)
    code.ask("choose", text="coder-0.5b")
    code.message("fetching coder-0.5b")
    code.shot("fetching")
    press_button(code, "Cancel")
    code.ask("gone", selector=MESSAGES, text="fetching coder-0.5b")
    code.why("model scripted")
    assert "not fetched" not in "".join(code.ask("texts", selector=MESSAGES)), "a cancelled fetch is no error"


def test_a_model_is_chosen_without_a_restart(code: VSCode) -> None:
    running = servers(code.sandbox)
    code.command(CHOOSE)
    rows = code.rows("coder-0.5b")
    assert any("scripted" in row and "in use" in row for row in rows), rows
    assert any("coder-0.5b" in row and "491 MB to download" in row for row in rows), rows
    code.shot("models")
    code.ask("choose", text="embedded")
    code.why("model embedded")
    code.status("ready")
    assert servers(code.sandbox) == running
    code.ask("click", selector=STATUS)
    assert sum("Better on this machine: " in row for row in code.rows("Model ...")) == 1
    code.ask("choose", text="Model ...")
    code.ask("text", selector=".quick-input-titlebar", wanted="better on this machine")
    code.press("Escape")
