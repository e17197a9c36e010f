"""A real Neovim with the plug-in and the real server: what is written changes only once its diff is taken."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.nvim import PATIENCE, Editor
from tests.editors.sandbox import NVIM, open_sandbox, skip_without

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

WEBLOG = '''import re

LINE = re.compile(r"(.*) (.*)")


def parse_line(line):
    """Read one line."""
    match = LINE.match(line)
    # größe: two parts
    if match is None:
        return None
    method, path = match.groups()
\treport = "ä", 1
    return report.first(method, path)


def doubtful(x):
    pass
'''.replace("\treport", "    report")
BODY = '    match = LINE.match(line)\n    # größe: two parts\n    if match is None:\n        return None\n    method, path = match.groups()\n    report = "ä", 1\n    return report.first(method, path)\n'  # noqa: E501
# A place, as the text before it, and what is said of a fill there.
FINISHED = {
    "match = ": "this line is finished",
    "match = LI": "the cursor is in the middle of a word",
    "method, ": "this line is finished",
    "report.": "this line is finished",
    "report.first(": "this line is finished",
    '"ä", ': "this line is finished",
}
ACTION = """
local title = ...
vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title == title end })
"""
WINDOWS = "return #vim.api.nvim_list_wins()"
# Neovim is busy as soon as a window is open: it writes the file `began`, waits for `typed`, and then for a while.
STALL = """
local began, typed, pause = ...
vim.api.nvim_create_autocmd("WinNew", { once = true, callback = vim.schedule_wrap(function()
  vim.fn.writefile({}, began)
  for _ = 1, 6000 do
    if vim.uv.fs_stat(typed) then break end
    vim.uv.sleep(10)
  end
  vim.uv.sleep(pause)
end) })
"""
# Neovim and its terminal are stopped for so many milliseconds once a window is open; `y` comes a moment after that.
STOPPED = """
local pause = ...
vim.api.nvim_create_autocmd("WinNew", { once = true, callback = vim.schedule_wrap(function()
  vim.uv.sleep(pause)
  vim.defer_fn(function() vim.api.nvim_input("y") end, 60)
end) })
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An editor for all tests."""
    with (
        open_sandbox(tmp_path_factory.mktemp("shared")) as sandbox,
        Editor(sandbox, before=["set hidden"]) as editor,
    ):
        yield editor


@pytest.fixture
def editor(shared: Editor) -> Iterator[Editor]:
    """The editor in Normal mode, with weblog.py open as it was."""
    shared.keys("<Esc>")
    shared.rpc.command("%bwipeout!")
    (shared.project / "weblog.py").write_text(WEBLOG)
    shared.open("weblog.py")
    yield shared


def put(editor: Editor, before: str) -> None:
    """Put the cursor after the first `before` of the file."""
    text = WEBLOG[: WEBLOG.index(before) + len(before)]
    editor.rpc.api.win_set_cursor(0, (text.count("\n") + 1, len(text.rpartition("\n")[2].encode())))


def asked(editor: Editor, why: str) -> None:
    """Wait for the window that shows a change, which must say why."""
    editor.wait(lambda: editor.rpc.exec_lua(WINDOWS) == 2, "nothing is shown")
    config = editor.rpc.api.win_get_config(0)
    assert "".join(chunk[0] for chunk in config["title"]) == f" dg-lsp: {why} "
    assert text_of(editor) == WEBLOG, "nothing changes before it is taken"


def text_of(editor: Editor) -> str:
    """The text of weblog.py in the editor."""
    buf = editor.rpc.call("bufnr", str(editor.project / "weblog.py"))
    return "\n".join(editor.rpc.api.buf_get_lines(buf, 0, -1, False)) + "\n"


def ready(editor: Editor) -> None:
    """Wait until the window says which keys it takes."""
    editor.wait(lambda: "footer" in editor.rpc.api.win_get_config(0), "no key counts")


def answer(editor: Editor, key: str) -> str:
    """Press `key` in the window once its keys count; the text after it is closed."""
    ready(editor)
    editor.keys(key)
    editor.wait(lambda: editor.rpc.exec_lua(WINDOWS) == 1, f"{key} does not close the window")
    return text_of(editor)


WAYS = {
    "command": lambda editor: editor.rpc.command("DgLsp fill function_body"),
    "key": lambda editor: editor.keys("<C-G>b"),
    "action": lambda editor: editor.rpc.exec_lua(ACTION, "Rewrite this function body"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_written_body_changes_only_once_its_diff_is_taken(editor: Editor, way: str) -> None:
    editor.rpc.command("nnoremap <C-G>b <Cmd>DgLsp fill function_body<CR>")
    for key in ("n", "q", "<Esc>", "<CR>", "<C-W>w", "y"):
        put(editor, "method")
        WAYS[way](editor)
        asked(editor, "this replaces 7 written lines")
        assert [line for line in editor.lines() if line.startswith("-")] == [
            f"-{line}" for line in BODY.splitlines()
        ]
        assert [line for line in editor.lines() if line.startswith("+")] == ["+    return None"]
        after = answer(editor, key)
        assert after == (WEBLOG if key != "y" else WEBLOG.replace(BODY, "    return None\n"))
    editor.keys("u")
    editor.wait(lambda: text_of(editor) == WEBLOG, "one undo is not enough")


@pytest.mark.parametrize("before", FINISHED)
def test_a_fill_in_a_finished_line_asks_first(editor: Editor, before: str) -> None:
    put(editor, before)
    editor.rpc.command("DgLsp fill")
    asked(editor, FINISHED[before])
    assert answer(editor, "n") == WEBLOG
    assert not editor.rpc.current.buffer.options["modified"]


def test_selected_code_is_shown_before_it_changes(editor: Editor) -> None:
    put(editor, "    match")
    editor.keys("^vg_")
    editor.wait(lambda: editor.rpc.api.get_mode()["mode"] == "v", "nothing is selected")
    editor.rpc.exec_lua(ACTION, "Rewrite the selection")
    asked(editor, "this replaces 1 written line")
    assert answer(editor, "q") == WEBLOG


def test_an_unsure_fill_of_a_stub_is_shown_first_and_a_sure_one_is_not(editor: Editor) -> None:
    put(editor, "def doubtful")
    editor.rpc.exec_lua(ACTION, "Fill this function body")
    asked(editor, "unsure: right with 4 %")
    assert answer(editor, "y") == WEBLOG.replace("pass", "return None")
    editor.keys("u")
    editor.rpc.command("%s/doubtful/certain/")
    for way in ("DgLsp fill", f"lua (function(...) {ACTION.strip()} end)('Fill this function body')"):
        editor.keys("G")
        editor.rpc.command(way.replace("\n", " "))
        editor.wait(lambda: "    return None" in editor.lines()[-1], "nothing was filled")
        editor.keys("u")
        editor.wait(lambda: editor.lines()[-1] == "    pass", "one undo is not enough")


# The text changes when the answer to the fill is there; what the plug-in asks for besides, such as the next edit
# after a change, goes on as it is.
CHANGED_MEANWHILE = """
local server = require("dg_lsp.server")
local request, buf = server.request, vim.api.nvim_get_current_buf()
server.request = function(client, method, params, handler, about)
  if method ~= "workspace/executeCommand" then
    return request(client, method, params, handler, about)
  end
  server.request = request
  return request(client, method, params, function(...)
    vim.api.nvim_buf_set_lines(buf, 0, 0, false, { "# another line" })
    handler(...)
  end, about)
end
"""
ASKED_BESIDES = """
local server, buf = require("dg_lsp.server"), vim.api.nvim_get_current_buf()
local at = { textDocument = { uri = vim.uri_from_bufnr(buf) }, position = { line = 0, character = 0 } }
server.request(server.client(buf), "dg-lsp/nextEdit", at, function() end, buf)
"""


def test_a_fill_of_a_text_that_changes_as_it_arrives_is_not_shown(editor: Editor) -> None:
    put(editor, "method")
    editor.rpc.exec_lua(CHANGED_MEANWHILE)
    editor.rpc.exec_lua(ASKED_BESIDES)
    editor.rpc.command("DgLsp fill function_body")
    editor.wait(lambda: "another one by now" in editor.rpc.command_output("messages"), "nothing is said")
    assert editor.rpc.exec_lua(WINDOWS) == 1
    assert text_of(editor) == "# another line\n" + WEBLOG


def test_keys_typed_before_the_diff_can_be_read_take_nothing(editor: Editor) -> None:
    put(editor, "method")
    editor.rpc.exec_lua("vim.schedule_wrap(function() vim.cmd('DgLsp fill function_body') end)()")

    def pressed() -> bool:
        editor.keys("y")
        return bool(editor.rpc.exec_lua(WINDOWS) == 2)

    editor.wait(pressed, "nothing is shown")
    ready(editor)

    def left() -> bool:
        editor.keys("n")  # the first may be the motion for which the last y waits
        return bool(editor.rpc.exec_lua(WINDOWS) == 1)

    editor.wait(left, "n does not close the window")
    assert text_of(editor) == WEBLOG


def test_keys_typed_while_neovim_is_busy_take_nothing(editor: Editor, tmp_path: Path) -> None:
    """A `y` pressed at once, of which Neovim hears long after the diff was drawn, was pressed unread all the same."""
    began, typed = tmp_path / "began", tmp_path / "typed"
    put(editor, "method")
    editor.rpc.exec_lua(STALL, str(began), str(typed), 400)
    editor.rpc.command("DgLsp fill function_body")
    until = time.monotonic() + PATIENCE
    while not began.exists():  # Neovim cannot be asked now
        assert time.monotonic() < until, "nothing is shown"
        time.sleep(0.01)
    editor.rpc.request("nvim_input", "jyy", async_=True)
    typed.touch()
    assert answer(editor, "n") == WEBLOG
    assert "left as it was" in editor.rpc.command_output("messages")


def test_a_key_that_comes_just_after_a_pause_takes_nothing(editor: Editor) -> None:
    """It was pressed while nothing could be drawn; the 250 milliseconds of the clock had passed in the pause."""
    put(editor, "method")
    editor.rpc.exec_lua(STOPPED, 700)
    editor.rpc.command("DgLsp fill function_body")
    assert answer(editor, "n") == WEBLOG


def test_who_writes_on_meanwhile_is_not_asked(editor: Editor) -> None:
    put(editor, "method")
    show = "require('dg_lsp.confirm').ask(0, vim.lsp.get_clients()[1], { changes = {} }, 'why')"
    editor.keys("i")
    editor.wait(lambda: editor.rpc.api.get_mode()["mode"] == "i", "no Insert mode")
    editor.rpc.exec_lua(show.replace("(0,", "(vim.api.nvim_get_current_buf(),"))
    editor.keys("<Esc>")
    editor.wait(lambda: "nothing changed: why; ask again" in editor.rpc.command_output("messages"), "silence")
    assert editor.rpc.exec_lua(WINDOWS) == 1


@pytest.mark.parametrize(
    ("encoding", "behind"), [("utf-8", "; y = 1"), ("utf-16", "; y = 1"), ("utf-32", "")]
)
def test_a_draft_after_other_characters_stands_where_it_will(
    tmp_path: Path, encoding: str, behind: str
) -> None:
    line = f's = "größe😀größegröße"; x = g(){behind}'
    with open_sandbox(tmp_path, "scripted:40:100") as sandbox:
        (sandbox.project / "draft.py").write_text(f"def f(g):\n    {line}\n")
        with Editor(sandbox) as editor:
            encodings = f"general = {{ positionEncodings = {{ '{encoding}' }} }}"
            editor.rpc.exec_lua(f"vim.lsp.config('dg_lsp', {{ capabilities = {{ {encodings} }} }})")
            editor.open("draft.py")
            assert editor.rpc.exec_lua("return vim.lsp.get_clients()[1].offset_encoding") == encoding
            editor.rpc.api.win_set_cursor(0, (2, len(f"    {line[: line.index('g()') + 2]}".encode())))
            editor.rpc.command("DgLsp fill")
            drafted = "    " + line.replace("g()", "g(?)")
            editor.wait(lambda: editor.screen_line().startswith(drafted), "no draft at its place")
            filled = "    " + line.replace("g()", "g(None)")
            editor.wait(lambda: editor.lines()[1] == filled, "not filled")
            assert editor.rpc.api.get_mode() == {"mode": "n", "blocking": False}
            assert "Error" not in editor.rpc.command_output("messages")
