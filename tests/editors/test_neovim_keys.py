"""Random scripts of keys in a real Neovim: an accept puts in what the screen showed, and no other key changes.

DG_LSP_KEY_SCRIPTS says how many scripts run; `make editors-long` runs 1,000.
"""

import os
import time
from itertools import pairwise

import pytest

from tests.editors import neovim_keys
from tests.editors.neovim_keys import COL, ROW, TARGETS, Script, joined, justified, script, wrong
from tests.editors.nvim import Editor, Sight
from tests.editors.sandbox import NVIM, Sandbox, skip_without

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

SCRIPTS = int(os.environ.get("DG_LSP_KEY_SCRIPTS", "30"))

# At each typed key, before it does anything: the key and what the editor shows.
WATCH = """
_G.presses, _G.ended = {}, 0
vim.keymap.set({ "n", "i" }, "<F12>", function() _G.ended = _G.ended + 1 end)
vim.on_key(function(_, typed)
  if not typed or typed == "" then return end
  local key = vim.fn.keytrans(typed)
  if key == "<F12>" then return end
  table.insert(_G.presses, { key, _G.sight() })
  -- These take ghost text away, which is on the screen until that is drawn again.
  if ("<C-]><Left><Right><Up><Down><Home><End>"):find(key, 1, true) then _G.drawn = nil end
end)
"""
SERVER = """
local targets, seed = ...
math.randomseed(seed)
_G.fake.targets = targets
local delays = { 0, 0, 30, 60, 150 }
_G.fake.delay = function() return delays[math.random(#delays)] end
vim.o.expandtab, vim.o.tabstop, vim.o.softtabstop, vim.o.autoindent = true, 4, 0, true
vim.bo.expandtab, vim.bo.tabstop, vim.bo.softtabstop, vim.bo.indentexpr = true, 4, 0, ""
"""
RESET = """
local lines, row, col = ...
vim.cmd.stopinsert()
vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
vim.api.nvim_win_set_cursor(0, { row + 1, 0 })
_G.presses = {}
return _G.ended
"""


def play(editor: Editor, played: Script) -> list[tuple[str, Sight]]:
    """Type the script; return each key with the sight before it, and at last what was there in the end."""
    editor.keys("<Esc>")
    ended = editor.rpc.exec_lua(RESET, played.text, ROW, COL)
    first = f"0{COL - 1}la" if len(played.text[ROW]) > COL else "A"
    together = first
    for key, pause in played.keys:
        together += key
        if pause:
            editor.keys(together)
            together = ""
            time.sleep(pause)
    editor.keys(together + "<F12>")
    editor.wait(lambda: editor.rpc.exec_lua("return _G.ended") > ended, "the keys are not done")
    presses = [(key, Sight(**found)) for key, found in editor.rpc.exec_lua("return _G.presses")]
    return joined([*presses[len(first) :], ("<End>", editor.sight())])


def test_random_keys_never_corrupt_the_text(sandbox: Sandbox) -> None:
    shown = accepted = unseen = 0
    with Editor(sandbox, {"debounce": 20}, fake=True) as editor:
        editor.open("ghost.py")
        editor.rpc.exec_lua(SERVER, TARGETS, 1)
        editor.rpc.exec_lua(WATCH)
        # A busy machine draws less, so that more keys meet an older screen; then more scripts are played.
        for seed in range(3 * SCRIPTS):
            if seed >= SCRIPTS <= shown and accepted >= SCRIPTS / 2:
                break
            sights = play(editor, script(seed))
            for (key, before), (_, after) in pairwise(sights):
                unseen += before.ghost is None
                shown += bool(before.ghost)
                where = f"script {seed}, {''.join(k for k, _ in sights)}: at {before}"
                if before.ghost and before.mode == "i" and not before.menu:
                    assert justified(before), f"ghost text that nothing justifies; {where}"
                    accepted += key in neovim_keys.ACCEPTS
                assert not (complaint := wrong(key, before, after)), f"{complaint}; {where}"
    print(f"{seed} scripts: ghost text at {shown} keys, {accepted} accepts, {unseen} keys on an older screen")
    assert shown >= SCRIPTS, f"ghost text was on the screen at only {shown} keys"
    assert accepted >= SCRIPTS / 2, f"only {accepted} accepts met ghost text"
