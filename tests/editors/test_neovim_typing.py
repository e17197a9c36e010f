"""500 characters typed at human speed into a real Neovim, with an engine of 0.6 seconds: no stale ghost text."""

import random
import time

import pytest

from tests.editors.nvim import Editor, Sight
from tests.editors.sandbox import NVIM, Sandbox, skip_without

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

CHARACTERS, EVERY, ALLOWED = 500, 20, 0.2
# The scripted engine says None. Some lines agree with that for a while, and some do not.
LINES = (
    "total = None",
    "count = Nothing",
    "x = 1",
    "return first",
    "name = Nonsense",
    "print(first)",
    "value = -1",
)


# Keep each answer of the server: the line's text before the cursor when it was asked for, and the texts offered.
RECORD = """
_G.answers = {}
local server = require("dg_lsp.server")
local request = server.request
server.request = function(client, method, params, handler, buf)
  local before = vim.api.nvim_get_current_line():sub(1, params.position and params.position.character or 0)
  return request(client, method, params, function(err, result, ...)
    for _, item in ipairs(method == "textDocument/inlineCompletion" and result and result.items or {}) do
      table.insert(_G.answers, before .. item.insertText)
    end
    return handler(err, result, ...)
  end, buf)
end
"""


def agrees(sight: Sight, answers: set[str]) -> bool:
    """Return whether the screen shows the buffer, and at the cursor nothing or the rest of an offer."""
    if not sight.fresh:
        return True  # the screen is about to be drawn
    if sight.ghost is None:
        return False
    return not sight.ghost or (sight.before + sight.ghost).rstrip() in answers


@pytest.mark.parametrize("sandbox", ["scripted:6:100"], indirect=True)
def test_no_stale_ghost_text_while_one_types(sandbox: Sandbox) -> None:
    chance = random.Random(7)
    with Editor(sandbox, before=["set noautoindent indentexpr="]) as editor:
        editor.open("ghost.py")
        editor.rpc.exec_lua(RECORD)
        editor.keys("GA" + "total = ")
        editor.wait(lambda: editor.screen_line() == "    total = None", "no ghost text")
        editor.rpc.command("setlocal indentexpr= indentkeys=")
        typed = 0
        with editor.sampled(EVERY) as seen:
            while typed < CHARACTERS:
                editor.keys("<Esc>cc")
                for character in chance.choice(LINES):
                    editor.keys(character)
                    typed += 1
                    thinks = character in "=( " and chance.random() < 0.15
                    time.sleep(chance.uniform(0.7, 1.0) if thinks else chance.gauss(0.08, 0.02))
        answers = {answer.rstrip() for answer in editor.rpc.exec_lua("return _G.answers")}
    wrong = [sight for sight in seen if not agrees(sight, answers)]
    shown = [sight for sight in seen if sight.ghost]
    print(f"{typed} characters, {len(seen)} sights, ghost text in {len(shown)}, {len(wrong)} wrong")
    assert len(shown) > 50, "ghost text was hardly ever there"
    assert len(wrong) * EVERY / 1000 <= ALLOWED, [(s.before, s.ghost, s.rows[s.row]) for s in wrong[:10]]
