"""A real Neovim with its own language client: ghost text, the code action, undo, and no stale text."""

import time

import pytest

from tests.editors.nvim import Editor
from tests.editors.sandbox import (
    FILL_AFTER,
    FILL_BEFORE,
    FILL_LINE,
    FILL_TITLE,
    GHOST_AFTER,
    NVIM,
    Sandbox,
    skip_without,
)

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

SHOWN = "    total = None"

# What a user's `gra` and a choice from its menu does, without the menu.
FILL = """
local title = ...
vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title == title end })
"""


def fill(editor: Editor) -> None:
    """Fill the body under the cursor by the code action and wait for the text."""
    editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
    editor.rpc.exec_lua(FILL, FILL_TITLE)
    editor.wait(lambda: editor.lines() != FILL_BEFORE.splitlines(), "the body was not filled")


def test_ghost_text_appears_and_the_accepted_text_is_saved(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("ghost.py")
        editor.keys("GA" + "total = ")
        editor.wait(lambda: editor.screen_line() == SHOWN, "no ghost text")
        assert editor.lines()[1] == "    total = ", "ghost text is not in the buffer before it is accepted"
        editor.keys("<Tab>")
        editor.wait(lambda: editor.lines()[1] == SHOWN, "the ghost text was not accepted")
        editor.keys("<Esc>:write<CR>")
        editor.wait(lambda: not editor.rpc.current.buffer.options["modified"], "the file was not saved")
    assert (sandbox.project / "ghost.py").read_bytes() == GHOST_AFTER.encode()


def test_the_code_action_fills_the_body(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("fill.py")
        fill(editor)
        editor.rpc.command("write")
    assert (sandbox.project / "fill.py").read_bytes() == FILL_AFTER.encode()


def test_one_undo_takes_the_fill_back(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("fill.py")
        fill(editor)
        editor.keys("u")
        editor.wait(lambda: editor.lines() != FILL_AFTER.splitlines(), "undo changed nothing")
        assert editor.lines() == FILL_BEFORE.splitlines(), "one undo is not enough"
        editor.rpc.command("write")
    assert (sandbox.project / "fill.py").read_bytes() == FILL_BEFORE.encode()


@pytest.mark.parametrize("sandbox", ["scripted:10:50"], indirect=True)
def test_an_overtaken_answer_is_never_shown(sandbox: Sandbox) -> None:
    # Neovim draws whatever answer comes, cut at the cursor: an answer to `count = ` would end up as `count = -one`.
    with Editor(sandbox) as editor:
        editor.open("ghost.py")
        editor.keys("GA" + "total = ")
        editor.wait(lambda: editor.screen_line() == SHOWN, "no ghost text")  # the engine runs from now on
        with editor.watched() as seen:
            editor.keys("<Esc>cc" + "count = ")
            time.sleep(0.35)  # Neovim asks after 0.2 s, and the engine is then at work for 0.5 s
            editor.keys("-")
            editor.wait(lambda: editor.screen_line() == "    count = -None", "no ghost text after typing on")
    assert ("    count = ", "None") not in seen, (
        "the answer came before it was overtaken, so nothing was tested"
    )
    assert ("    count = -", "one") not in seen
