"""Next edits in a real Neovim with the real server: the mark, the keys, undo, ghost text and menus before them."""

import time
from collections.abc import Iterator

import pytest

from tests.editors.nvim import Editor
from tests.editors.sandbox import NVIM, Sandbox, open_sandbox, skip_without

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

TEXT = "def area(width, height):\n    whole = width * height\n    return whole or width\n"
FAR = TEXT.replace("    return", "    print()\n" * 60 + "    return")
RENAMED = TEXT.replace("width", "breadth")
USES = "from store import area\n\nprint(area(1, 2))\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One editor for all tests of this file."""
    with open_sandbox(tmp_path_factory.mktemp("next")) as sandbox, made(sandbox) as editor:
        yield editor


@pytest.fixture
def editor(shared: Editor) -> Editor:
    """The shared editor in Normal mode, in a file with TEXT."""
    shared.keys("<Esc><Esc>")
    shared.rpc.command("%bwipeout!")
    shared.rpc.exec_lua(
        "vim.g.dg_lsp = vim.tbl_extend('force', vim.g.dg_lsp, { settings = vim.empty_dict() })"
    )
    begin(shared, TEXT)
    return shared


def made(sandbox: Sandbox) -> Editor:
    return Editor(sandbox, {"automatic": False})


def begin(editor: Editor, text: str, name: str = "store.py") -> None:
    (editor.project / name).write_text(text, encoding="utf-8")
    editor.open(name)
    editor.rpc.command("set undolevels=1000")


def shows(editor: Editor, *texts: str) -> None:
    """Wait until each of `texts` is on the screen."""

    def met() -> bool:
        rows = editor.sight().rows
        return all(any(text in row for row in rows) for text in texts)

    editor.wait(met, f"{texts} is not on the screen")


def holds(editor: Editor, text: str) -> None:
    editor.wait(lambda: "\n".join(editor.lines()) + "\n" == text, f"the buffer holds {editor.lines()}")


def rename(editor: Editor, leave: str = "<Esc>") -> None:
    """Write `breadth` for the parameter `width`."""
    editor.keys("gg0fwcwbreadth" + leave)


def take_first(editor: Editor) -> None:
    """Go to the first place and take it; the second one is shown then."""
    shows(editor, "whole = widthbreadth * height")
    editor.keys("<Tab>")
    editor.wait(lambda: editor.sight().row == 1, "the cursor is not there")
    editor.keys("<Tab>")
    holds(editor, RENAMED.replace("or breadth", "or width"))
    shows(editor, "or widthbreadth")


def test_the_key_goes_there_and_then_takes_it_and_undo_takes_each_back(editor: Editor) -> None:
    rename(editor)
    take_first(editor)
    editor.keys("<Tab><Tab>")
    holds(editor, RENAMED)
    editor.keys("u")
    holds(editor, RENAMED.replace("or breadth", "or width"))
    editor.keys("u")
    holds(editor, TEXT.replace("area(width", "area(breadth"))


def test_insert_mode_has_the_same_keys(editor: Editor) -> None:
    rename(editor, leave="")
    take_first(editor)
    assert editor.sight().mode == "i"
    editor.keys("<C-]>")
    editor.wait(lambda: "widthbreadth" not in "".join(editor.sight().rows), "the place was not left")
    # The key does again what it did before.
    editor.keys("<Esc>o<Tab>x")
    holds(editor, RENAMED.replace("or breadth", "or width").replace("height\n", "height\n        x\n"))


def test_escape_leaves_the_place_for_good(editor: Editor) -> None:
    rename(editor)
    shows(editor, "whole = widthbreadth")
    editor.keys("<Esc>")
    shows(editor, "or widthbreadth")
    editor.keys("<Esc>")
    editor.wait(lambda: "widthbreadth" not in "".join(editor.sight().rows), "a mark is left")
    assert editor.rpc.exec_lua("return vim.fn.maparg('<Esc>', 'n') .. vim.fn.maparg('<Tab>', 'n')") == ""


def test_a_place_out_of_sight_is_named_at_the_edge(editor: Editor) -> None:
    begin(editor, FAR.replace("    whole = width * height\n", ""), "far.py")
    rename(editor)
    shows(editor, "line 62: width → breadth")
    editor.keys("<Tab>")
    shows(editor, "or widthbreadth")
    assert "line 62" not in "".join(editor.sight().rows)


def test_a_place_in_another_buffer_is_gone_to(editor: Editor) -> None:
    begin(editor, USES, "uses.py")
    editor.rpc.command("buffer store.py")
    editor.keys("gg0facwsurface<Esc>")
    shows(editor, "uses.py line 1: area → surface")
    editor.keys("<Tab><Tab>")
    holds(editor, USES.replace("import area", "import surface"))
    shows(editor, "print(areasurface(1, 2))")
    editor.keys("<Tab><Tab>")
    holds(editor, USES.replace("area", "surface"))


# A line is put in front of a buffer when the answer to the next question is there; `answers` counts them.
CHANGED_MEANWHILE = """
local name = ...
local server = require("dg_lsp.server")
local request, buf = server.request, vim.fn.bufnr(name)
_G.answers = 0
server.request = function(client, method, params, handler, about)
  return request(client, method, params, function(err, result, ...)
    if method == "dg-lsp/nextEdit" then
      server.request = request
      vim.api.nvim_buf_set_lines(buf, 0, 0, false, { "# another line", "" })
      _G.answers = result.edit and result.edit.uri:find(name, 1, true) and 1 or 0
    end
    handler(err, result, ...)
  end, about)
end
"""


def test_a_place_in_another_buffer_that_changes_meanwhile_is_not_marked(editor: Editor) -> None:
    begin(editor, USES, "uses.py")
    editor.rpc.command("buffer store.py")
    editor.rpc.exec_lua(CHANGED_MEANWHILE, "uses.py")
    editor.keys("gg0facwsurface<Esc>")
    editor.wait(lambda: editor.rpc.exec_lua("return _G.answers") == 1, "no answer names the other buffer")
    assert editor.rpc.exec_lua("return require('dg_lsp.next_edit').go()") is False
    assert "uses.py line" not in "".join(editor.sight().rows)


def test_the_setting_switches_it_off(editor: Editor) -> None:
    editor.rpc.exec_lua(
        "vim.g.dg_lsp = vim.tbl_extend('force', vim.g.dg_lsp, { settings = { nextEdit = false } })"
    )
    rename(editor)
    editor.rpc.exec_lua("vim.wait(400)")
    assert "widthbreadth" not in "".join(editor.sight().rows)


def test_the_key_indents_before_the_text_of_another_line(editor: Editor) -> None:
    rename(editor, leave="")
    shows(editor, "whole = widthbreadth")
    editor.keys("<Down><Down><Home><Tab>")
    holds(editor, TEXT.replace("area(width", "area(breadth").replace("    return", "        return"))


def test_a_menu_keeps_the_key(editor: Editor) -> None:
    rename(editor, leave="")
    shows(editor, "whole = widthbreadth")
    editor.rpc.exec_lua("vim.fn.complete(vim.fn.col('.'), { 'th', 'ths' })")
    editor.wait(lambda: editor.sight().menu, "no menu")
    assert editor.rpc.exec_lua("return require('dg_lsp.next_edit').visible()") is False
    editor.keys("<C-E>")


# The milliseconds from the last change of the text to the mark.
WATCH = """
_G.waits = {}
local changed
vim.api.nvim_buf_attach(0, false, { on_lines = function() changed = vim.uv.hrtime() end })
local set, space = vim.api.nvim_buf_set_extmark, vim.api.nvim_create_namespace("dg_lsp.next_edit")
vim.api.nvim_buf_set_extmark = function(buf, id, ...)
  if id == space and changed then
    table.insert(_G.waits, (vim.uv.hrtime() - changed) / 1e6)
    changed = nil
  end
  return set(buf, id, ...)
end
"""


LONG = "".join(TEXT.replace("area", f"area{n}").replace("width", f"width{n}") + "\n\n" for n in range(400))


def test_in_a_long_file_the_mark_comes_soon_after_the_edit(editor: Editor) -> None:
    begin(editor, LONG, "long.py")
    editor.rpc.exec_lua(WATCH)
    waits: list[float] = []
    for number in range(0, 400, 50):
        editor.keys(f"<Esc>{5 * number + 1}G0f(lcw")
        for key in f"breadth{number}":
            editor.keys(key)
            time.sleep(0.12)
        shows(editor, f"whole = width{number}breadth{number} * height")
        waits = sorted(editor.rpc.exec_lua("return _G.waits"))
    assert len(waits) >= 8
    print(f"{len(waits)} marks: p50 {waits[len(waits) // 2]:.0f}, p95 {waits[-len(waits) // 20]:.0f} ms")
    assert waits[len(waits) // 2] < 500


def test_the_import_that_new_text_needs_is_marked_and_taken(editor: Editor) -> None:
    text = "import os\n\n\ndef load(path):\n    return path\n"
    begin(editor, text, "imports.py")
    editor.keys("GA, json.dumps(os.sep)<Esc>")
    shows(editor, "import json")
    editor.keys("<Tab><Tab>")
    holds(editor, "import json\n" + text.replace("return path", "return path, json.dumps(os.sep)"))
    editor.keys("u")
    editor.wait(lambda: editor.lines()[0] == "import os", "the import was not taken back")
