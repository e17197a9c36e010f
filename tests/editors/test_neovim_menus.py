"""Ghost text beside the menus of blink.cmp, nvim-cmp and a Python language server in a real Neovim: who has Tab.

CI has stubs of the two plug-ins' interfaces (neovim/completion.lua). DG_LSP_PLUGINS names a folder with their
repositories, `blink.cmp` and `nvim-cmp`, to run the same with the plug-ins themselves.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.nvim import Editor
from tests.editors.sandbox import HERE, NVIM, Sandbox, open_sandbox, skip_without

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

LINES = ["def add(first, second):", "    ", "entry = 1"]
PLUGINS = Path(os.environ.get("DG_LSP_PLUGINS", "/nowhere"))

# As docs/editors/neovim.md has them; the menu opens only on request, at a moment that the test chooses. It has an entry
# for each text that a test types.
BLINK = """
package.loaded.words = {
  new = function() return package.loaded.words end,
  get_completions = function(_, _, done) done({ items = { { label = "entry" }, { label = "totals" } } }) end,
}
require("blink.cmp").setup({
  keymap = { preset = "super-tab" },
  fuzzy = { implementation = "lua" },
  sources = { default = { "words" }, providers = { words = { name = "words", module = "words" } } },
  completion = { menu = { auto_show = false } },
})
_G.menu = function(on) if on then require("blink.cmp").show() else require("blink.cmp").hide() end end
"""
CMP = """
local cmp = require("cmp")
local source = { complete = function(_, _, done) done({ { label = "entry" }, { label = "totals" } }) end }
cmp.register_source("words", source)
cmp.setup({
  sources = { { name = "words" } },
  completion = { autocomplete = false },
  mapping = {
    ["<Tab>"] = cmp.mapping(function(fallback)
      if cmp.visible() then cmp.confirm({ select = true }) else fallback() end
    end, { "i" }),
  },
})
_G.menu = function(on) if on then cmp.complete() else cmp.close() end end
"""


def _stub(kind: str) -> list[str]:
    return [f"let g:completion_kind = '{kind}'", f"luafile {HERE / 'neovim/completion.lua'}"]


def _real(name: str, setup: str) -> list[str]:
    # Its own `plugin/` files come after the commands that run first.
    start = f"autocmd VimEnter * lua {' '.join(setup.split())}"
    return [f"set runtimepath^={PLUGINS / name}", start]


KINDS = {
    "a stub of blink.cmp": _stub("blink"),
    "a stub of nvim-cmp": _stub("cmp"),
    "blink.cmp": _real("blink.cmp", BLINK),
    "nvim-cmp": _real("nvim-cmp", CMP),
}


@pytest.fixture(scope="module", params=KINDS)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    kind = request.param
    if "stub" not in kind and not (PLUGINS / kind).is_dir():
        pytest.skip(f"no {kind} in DG_LSP_PLUGINS")
    with (
        open_sandbox(tmp_path_factory.mktemp("menus")) as sandbox,
        Editor(sandbox, {"debounce": 0}, KINDS[kind], fake=True) as editor,
    ):
        yield editor


@pytest.fixture
def editor(shared: Editor) -> Editor:
    """The editor in Insert mode, after the blanks of the second line."""
    shared.keys("<Esc>")
    shared.rpc.command("%bwipeout!")
    shared.open("ghost.py")
    shared.rpc.exec_lua("_G.fake.targets = { 'total = first + second' }")
    shared.rpc.current.buffer[:] = LINES
    shared.rpc.command("set expandtab autoindent indentexpr=")
    shared.keys("<Esc>2GA")
    return shared


def shows(editor: Editor, line: str) -> None:
    editor.wait(lambda: editor.screen_line() == line, f"not {line!r}")


def holds(editor: Editor, line: str) -> None:
    editor.wait(lambda: editor.lines()[1] == line, f"not {line!r} but {editor.lines()}")


def menu(editor: Editor, on: bool) -> None:
    editor.rpc.exec_lua("_G.menu(...)", on)
    is_open = "return require('dg_lsp.menus').open()"
    editor.wait(lambda: editor.rpc.exec_lua(is_open) is on, "the menu does not open or close")


def test_without_a_menu_tab_takes_ghost_text_and_indents_where_there_is_none(editor: Editor) -> None:
    editor.keys("tot")
    shows(editor, "    total = first + second")
    editor.keys("<Tab>")
    holds(editor, "    total = first + second")
    editor.keys("#<Tab>")  # blink.cmp has the key done once no more keys wait
    holds(editor, "    total = first + second# ")


def test_a_menu_hides_ghost_text_and_has_tab_until_it_closes(editor: Editor) -> None:
    editor.keys("tot")
    shows(editor, "    total = first + second")
    menu(editor, on=True)
    shows(editor, "    tot")
    menu(editor, on=False)
    shows(editor, "    total = first + second")
    editor.keys("<Tab>")
    holds(editor, "    total = first + second")


def test_tab_takes_the_entry_also_after_it_has_indented(editor: Editor) -> None:
    editor.keys("x<Tab>")
    holds(editor, "    x   ")
    editor.keys("= ")
    menu(editor, on=True)
    editor.keys("<Tab>")
    holds(editor, "    x   = entry")


SERVED = """
vim.lsp.config("jedi", {
  cmd = { "PYTHON", "-c", "from jedi_language_server.cli import cli; cli()" },
  filetypes = { "python" },
  init_options = { completion = { disableSnippets = true } },
})
vim.lsp.enable("jedi")
vim.api.nvim_create_autocmd("LspAttach", { callback = function(event)
  if vim.lsp.get_client_by_id(event.data.client_id).name == "jedi" then
    vim.lsp.completion.enable(true, event.data.client_id, event.buf, { autotrigger = true })
    _G.jedi = true
  end
end })
"""
SAYS = "def known(first: list):\n    # says: first.append(1)\n    print(first)\n    \n"


def test_beside_a_python_language_server_the_menu_has_the_keys_and_then_ghost_text(sandbox: Sandbox) -> None:
    setup = f"lua {' '.join(SERVED.replace('PYTHON', sys.executable).split())}"
    with Editor(sandbox, before=["set completeopt=menuone,noselect", setup]) as editor:
        (sandbox.project / "known.py").write_text(SAYS)
        editor.open("known.py")
        editor.wait(lambda: editor.rpc.exec_lua("return _G.jedi"), "jedi does not come")
        editor.keys("GA" + "first")
        editor.wait(lambda: editor.screen_line() == "    first.append(1)", "no ghost text")
        editor.keys(".")
        is_open = "return vim.fn.pumvisible() == 1"
        editor.wait(lambda: editor.rpc.exec_lua(is_open), "no menu")
        shows(editor, "    first.")
        editor.keys("<C-E>")
        shows(editor, "    first.append(1)")
        editor.keys("<Tab>")
        editor.wait(lambda: editor.lines()[3] == "    first.append(1)", "Tab does not take ghost text")
        editor.keys("<Esc>ccfirst.")
        editor.wait(lambda: editor.rpc.exec_lua(is_open), "no menu")
        editor.keys("<C-N>")
        word = "return vim.fn.complete_info({ 'selected', 'items' }).items[1].word"
        first = editor.rpc.exec_lua(word)
        editor.keys("<C-Y>")
        editor.wait(lambda: editor.lines()[3] == f"    first.{first}", "the entry is not taken")
