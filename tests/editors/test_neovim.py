"""A real Neovim with the plug-in and the real server: ghost text, fills, saved files, undo, what is said in trouble."""

import ast
import os
import re
import signal
import subprocess
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.editors.nvim import Editor
from tests.editors.places import (
    CASES_BY_LANGUAGE,
    LANGUAGES,
    MARK,
    holes,
    is_filled,
    place,
    statement,
    stub,
    stub_of,
)
from tests.editors.sandbox import (
    FILL_AFTER,
    FILL_BEFORE,
    FILL_LINE,
    FILL_TITLE,
    GHOST_AFTER,
    GHOST_BEFORE,
    NVIM,
    REWRITE_TITLE,
    Sandbox,
    engines,
    open_sandbox,
    skip_without,
)
from tests.serving.team import server_process

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

SHOWN = "    total = None"
SHOP = """class Cart:
    def __init__(self, items):
        self.items = items

    def count(self):
        pass

    def add(self, item):
        self.items.append(item)

    def remove(self, item):
        """
STUB = "def one(x):\n    pass\n\n\ndef two(x):\n    pass\n"
HOLES = "def hole(first):\n    total = 1\n    ...\n    print(total)\n    ...\n    return total\n"
FILES = {
    "ghost.py": GHOST_BEFORE.encode(),
    "fill.py": FILL_BEFORE.encode(),
    "holes.py": HOLES.encode(),
    "stubs.py": STUB.encode(),
    "unsure.py": GHOST_BEFORE.encode(),
}

# What a user's `gra` and a choice from its menu does, without the menu.
ACTION = """
local title = ...
vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title == title end })
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An editor with a server and an engine for all tests that end neither."""
    with open_sandbox(tmp_path_factory.mktemp("shared")) as sandbox:
        for name, data in FILES.items():
            (sandbox.project / name).write_bytes(data)
        with Editor(sandbox, before=["set nofixendofline hidden"]) as editor:
            yield editor


@pytest.fixture
def editor(shared: Editor) -> Iterator[Editor]:
    """The shared editor, in Normal mode and with files as they were."""
    shared.keys("<Esc>")
    for name, data in FILES.items():
        (shared.project / name).write_bytes(data)
    shared.rpc.command("%bwipeout!")
    yield shared


def ghost(editor: Editor) -> None:
    """Type the beginning of a statement in ghost.py and wait for the rest of it."""
    editor.keys("GA" + "total = ")
    editor.wait(lambda: editor.screen_line() == SHOWN, "no ghost text")


def on_screen(editor: Editor, text: str) -> bool:
    """Return whether `text` is anywhere on the screen, over the ends of its rows."""
    rows = editor.rpc.exec_lua("return _G.sight(true).rows")
    return text in "".join(row.ljust(100) for row in rows)


def test_ghost_text_appears_and_the_accepted_text_is_saved(editor: Editor) -> None:
    editor.open("ghost.py")
    ghost(editor)
    assert editor.lines()[1] == "    total = ", "ghost text is not in the buffer before it is accepted"
    editor.keys("<Tab>")
    editor.wait(lambda: editor.lines()[1] == SHOWN, "the ghost text was not accepted")
    editor.keys("<Esc>:write<CR>")
    editor.wait(lambda: not editor.rpc.current.buffer.options["modified"], "the file was not saved")
    assert (editor.project / "ghost.py").read_bytes() == GHOST_AFTER.encode()


def test_an_unsure_fill_is_not_shown_by_itself_and_the_status_says_why(editor: Editor) -> None:
    editor.open("unsure.py")
    editor.keys("2GAunsure = ")
    # Before the first answer it is null, which Lua sees as a userdata.
    asked = (
        "local last = require('dg_lsp.status').get().last; return type(last) == 'table' and last.why or ''"
    )
    reason = "the best fill is right with a probability of 12 %, less than confidence (25 %)"
    editor.wait(lambda: editor.rpc.exec_lua(asked) == reason, "no reason is told")
    assert editor.screen_line() == "    unsure ="
    editor.keys("<M-]>")
    editor.wait(lambda: editor.screen_line() == "    unsure = None (1/3)", "it is not shown when asked for")
    editor.keys("<Esc>")
    editor.rpc.command("DgLsp status")
    editor.wait(
        lambda: "right with 12 %, denoised" in "".join(editor.sight().rows), "nothing says how sure it is"
    )
    editor.keys("l")
    editor.rpc.command("bwipeout!")


@pytest.mark.parametrize(("typed", "text"), [("No", SHOWN), ("x", "    total = x   ")])
def test_an_accept_directly_after_a_key_corrupts_nothing(editor: Editor, typed: str, text: str) -> None:
    # Neovim's own inline completion makes `total = NoneNo` and `total = Nonex` of these.
    editor.open("ghost.py")
    ghost(editor)
    editor.keys(f"{typed}<Tab>")
    editor.wait(lambda: editor.lines()[1] == text, "the text is wrong")


def behind(editor: Editor, name: str, data: bytes) -> None:
    """Open a file of the project and begin to insert at its mark, which is left out."""
    (editor.project / name).write_bytes(data.replace(MARK, b""))
    editor.open(name)
    before = data.removeprefix(BOM_UTF8).split(b"\n")[1].partition(MARK)[0]
    editor.rpc.command("setlocal noexpandtab noautoindent indentexpr= tabstop=8")
    editor.rpc.api.win_set_cursor(0, (2, max(len(before) - 1, 0)))
    editor.keys("a")


def save(editor: Editor) -> None:
    editor.keys("<Esc>:write<CR>")
    editor.wait(lambda: not editor.rpc.current.buffer.options["modified"], "the file was not saved")


@pytest.mark.parametrize(("language", "case"), CASES_BY_LANGUAGE)
def test_the_saved_file_is_right_byte_for_byte(editor: Editor, language: str, case: str) -> None:
    name, data = f"bytes.{LANGUAGES[language].suffix}", place(LANGUAGES[language], case)
    behind(editor, name, data)
    editor.keys(" ")
    head, tail = (part.decode() for part in data.removeprefix(BOM_UTF8).split(b"\n")[1].split(MARK))
    head, tail = head.expandtabs(8) + " ", tail.rstrip()

    def ghost() -> str:
        shown = editor.screen_line()
        whole = shown.startswith(head) and shown.endswith(tail)
        return shown[len(head) : len(shown) - len(tail)] if whole else ""

    editor.wait(lambda: ghost().startswith("None"), "no ghost text")
    text = ghost()
    editor.keys("<Tab>")
    save(editor)
    assert (editor.project / name).read_bytes() == data.replace(MARK, f" {text}".encode())
    editor.keys("u")
    save(editor)
    assert (editor.project / name).read_bytes() == data.replace(MARK, b" "), (
        "undo takes the accept and no typing"
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_word_and_the_rest_are_accepted_and_another_shown_in_each_language(
    editor: Editor, language: str
) -> None:
    behind(editor, f"several.{LANGUAGES[language].suffix}", place(LANGUAGES[language], "LF"))
    line = f"    {LANGUAGES[language].name} "
    editor.keys(" ")
    editor.wait(lambda: editor.screen_line().startswith(f"{line}None"), "no ghost text")
    editor.keys("<M-]>")
    editor.wait(lambda: re.match(r"(True|False).*\(\d/\d\)", editor.screen_line()[len(line) :]), "no other")
    editor.keys("<C-]>")
    editor.wait(lambda: editor.screen_line() == line.rstrip(), "it was not dismissed")
    editor.keys("<M-]>")
    editor.wait(lambda: "(" in editor.screen_line()[len(line) :], "it does not come when it is asked for")
    shown = re.match(r"\w+", editor.screen_line()[len(line) :])
    assert shown is not None
    editor.keys("<C-Right>")
    editor.wait(lambda: editor.lines()[1] == line + shown[0], "the word was not accepted")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_line_is_accepted_in_each_language(editor: Editor, language: str) -> None:
    behind(editor, f"line.{LANGUAGES[language].suffix}", place(LANGUAGES[language], "LF"))
    line = f"    {LANGUAGES[language].name} "
    editor.keys(" ")
    editor.wait(lambda: editor.screen_line().startswith(f"{line}None"), "no ghost text")
    shown = editor.screen_line()
    editor.keys("<C-Down>")
    editor.wait(lambda: editor.lines()[1] == shown, "the line was not accepted")


@pytest.mark.parametrize(("language", "case"), CASES_BY_LANGUAGE)
def test_a_body_that_was_filled_is_right_byte_for_byte(editor: Editor, case: str, language: str) -> None:
    known = LANGUAGES[language]
    name, before = f"body.{known.suffix}", stub_of(known, case)
    (editor.project / name).write_bytes(before)
    editor.open(name)
    editor.rpc.api.win_set_cursor(0, (2, 1))
    editor.rpc.command("DgLsp fill function_body")
    editor.wait(lambda: known.hole not in "".join(editor.lines()), "the body was not filled")
    save(editor)
    assert is_filled(known, before, (editor.project / name).read_bytes())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_body_and_holes_are_filled_in_each_language(editor: Editor, language: str) -> None:
    known = LANGUAGES[language]
    for command, before in (("DgLsp fill function_body", stub(known)), ("DgLsp holes", holes(known))):
        name = f"filled.{known.suffix}"
        (editor.project / name).write_text(before)
        editor.rpc.command(f"edit! {name}")
        editor.wait(editor.attached, "no server")
        editor.rpc.api.win_set_cursor(0, (2, 4))
        editor.rpc.command(command)
        editor.wait(lambda: known.hole not in "".join(editor.lines()), f"{command} did nothing")
        save(editor)
        saved = (editor.project / name).read_text().split("\n")
        kept = [line for line in before.split("\n") if known.hole not in line]
        assert [line for line in saved if line in kept] == kept, "another line has changed"
        editor.keys("u")
        editor.wait(lambda: editor.lines() == before.removesuffix("\n").split("\n"), "one undo is not enough")  # noqa: B023
        editor.rpc.command("bwipeout!")


def acted(editor: Editor, name: str, title: str) -> bytes:
    """Have a code action done at the cursor, or on the selection; the saved text."""
    before = editor.lines()
    editor.rpc.exec_lua(ACTION, title)
    editor.wait(lambda: editor.lines() != before, f"{title} did nothing")
    save(editor)
    return (editor.project / name).read_bytes()


def undone(editor: Editor, name: str) -> bytes:
    """Undo once; the saved text."""
    after = editor.lines()
    editor.keys("u")
    editor.wait(lambda: editor.lines() != after, "undo changed nothing")
    save(editor)
    return (editor.project / name).read_bytes()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_code_action_fills_the_body_and_one_undo_takes_it_back(editor: Editor, language: str) -> None:
    known = LANGUAGES[language]
    name, before = f"action.{known.suffix}", stub(known).encode()
    (editor.project / name).write_bytes(before)
    editor.open(name)
    editor.rpc.api.win_set_cursor(0, (2, 4))
    assert is_filled(known, before, acted(editor, name, FILL_TITLE))
    assert undone(editor, name) == before


@pytest.mark.parametrize("language", LANGUAGES)
def test_selected_code_is_written_again_and_one_undo_takes_it_back(editor: Editor, language: str) -> None:
    known = LANGUAGES[language]
    name, before = f"rewrite.{known.suffix}", statement(known)
    (editor.project / name).write_text(before)
    editor.open(name)
    editor.keys("3G^vg_")
    editor.wait(lambda: editor.rpc.api.get_mode()["mode"] == "v", "nothing is selected")
    editor.rpc.exec_lua(ACTION, REWRITE_TITLE)
    editor.wait(lambda: editor.rpc.exec_lua("return #vim.api.nvim_list_wins()") == 2, "no diff is shown")
    time.sleep(0.3)  # a key that comes before the diff can be read does not count
    editor.keys("y")
    editor.wait(lambda: "\n".join(editor.lines()) != before.removesuffix("\n"), "the change was not made")
    save(editor)
    saved = (editor.project / name).read_text()
    old, new = before.split("\n")[2], saved.split("\n")[2]
    assert new.startswith("    return None") and saved == before.replace(old, new)
    assert undone(editor, name).decode() == before


def test_the_commands_fill_a_body_holes_and_all_stubs(editor: Editor) -> None:
    editor.open("fill.py")
    editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
    editor.rpc.command("DgLsp fill")
    editor.wait(lambda: editor.lines() == FILL_AFTER.splitlines(), "the body was not filled")
    editor.open("holes.py")
    editor.rpc.api.win_set_cursor(0, (2, 4))
    editor.rpc.command("DgLsp holes")
    editor.wait(lambda: "..." not in "".join(editor.lines()), "the holes were not filled")
    editor.open("stubs.py")
    editor.rpc.command("DgLsp fill_all")
    editor.wait(lambda: editor.lines().count("    return None") == 2, "the stubs were not filled")
    editor.wait(lambda: on_screen(editor, "2 functions filled"), "nothing was reported")
    editor.keys("u")
    editor.wait(lambda: editor.lines() == STUB.splitlines(), "one undo is not enough")


def test_a_fill_may_begin_as_soon_as_the_text_of_the_one_before_stands_there(editor: Editor) -> None:
    editor.open("fill.py")
    editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
    # The server's answer to the first command comes only after the editor has told it that the edit is applied.
    again = "vim.schedule(function() vim.cmd('DgLsp holes') end) return true"
    editor.rpc.exec_lua(f"vim.api.nvim_buf_attach(0, false, {{ on_lines = function() {again} end }})", ())
    editor.rpc.command("DgLsp fill")
    editor.wait(lambda: editor.lines() == FILL_AFTER.splitlines(), "the body was not filled")
    editor.wait(lambda: on_screen(editor, "nothing filled"), "the second fill did not begin")


@pytest.mark.parametrize("pause", [0, 0.05, 0.15, 0.25])
def test_an_accept_is_right_at_any_time_after_a_key(editor: Editor, pause: float) -> None:
    editor.open("ghost.py")
    ghost(editor)
    for keys, expected in (
        ("N", "    total = None"),
        ("No<BS>", "    total = None"),
        ("N<Left>", "    total =     N"),
    ):
        editor.keys("<Esc>cc" + "total = ")
        editor.wait(lambda: editor.screen_line() == SHOWN, "no ghost text")
        for key in re.findall("<.*?>|.", keys):
            editor.keys(key)
            time.sleep(pause and 0.02)
        time.sleep(pause)
        editor.keys("<Tab>")
        editor.wait(lambda: editor.lines()[1] == expected, f"{keys!r}, {pause} s, Tab: {editor.lines()[1]!r}")  # noqa: B023


def test_a_dismissed_text_is_not_offered_again(editor: Editor) -> None:
    editor.open("ghost.py")
    ghost(editor)
    editor.keys("<C-]>")
    editor.wait(lambda: editor.screen_line() == "    total =", "it was not hidden")
    editor.keys("x<BS>")
    time.sleep(0.4)
    assert editor.screen_line() == "    total ="
    editor.keys("<Esc>ccother = ")
    editor.wait(lambda: editor.screen_line() == "    other = None", "nothing is offered elsewhere")


@pytest.mark.parametrize("sandbox", ["scripted:40:100"], indirect=True)
def test_a_fill_is_drawn_while_it_runs_and_can_be_cancelled(sandbox: Sandbox) -> None:
    expected = FILL_BEFORE.splitlines()
    with Editor(sandbox) as editor:
        editor.open("fill.py")
        editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
        for by in ("<C-c>", ":DgLsp cancel<CR>"):
            editor.rpc.command("DgLsp fill")
            editor.wait(lambda: "<C-c> cancels" in editor.screen_line(), "no sign of the fill")
            editor.wait(lambda: editor.sight().rows[FILL_LINE] == "    ?", "the draft is not on the screen")
            editor.keys(by)
            editor.wait(lambda: editor.sight().rows[: len(expected)] == expected, f"{by}: the draft stayed")
            time.sleep(0.3)
            assert editor.lines() == expected and editor.sight().rows[: len(expected)] == expected
            assert not editor.rpc.call("maparg", "<C-c>", "n"), "<C-c> was not given back"


# Count what is drawn of a draft when the edit of its fill has just been applied.
COUNT = """
local apply = vim.lsp.handlers["workspace/applyEdit"]
vim.lsp.handlers["workspace/applyEdit"] = function(...)
  local answer = apply(...)
  _G.left = #vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_get_namespaces()["dg_lsp.fill"], 0, -1, {})
  return answer
end
"""


@pytest.mark.parametrize("sandbox", ["scripted:25:100"], indirect=True)
def test_a_draft_never_stands_beside_its_fill(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("fill.py")
        editor.rpc.exec_lua(COUNT)
        editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: editor.sight().rows[FILL_LINE] == "    ?", "the draft is not on the screen")
        editor.wait(lambda: editor.lines() == FILL_AFTER.splitlines(), "the body was not filled")
        assert editor.rpc.exec_lua("return _G.left") == 0


@pytest.mark.parametrize("sandbox", ["embedded"], indirect=True)
def test_the_embedded_model_writes_python_that_is_accepted_and_saved(sandbox: Sandbox) -> None:
    (sandbox.project / "shop.py").write_text(SHOP)
    with Editor(sandbox) as editor:
        editor.open("shop.py")
        editor.keys("GA" + "self.items.rem")
        editor.wait(lambda: editor.sight().ghost, "no ghost text")
        shown = editor.screen_line()
        editor.keys("<Tab>")
        editor.wait(lambda: editor.lines()[-1] == shown, "something else than shown was accepted")
        editor.keys("<Esc>")
        editor.rpc.api.win_set_cursor(0, (6, 8))
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: "pass" not in "".join(editor.lines()), "the body was not filled")
        editor.rpc.command("write")
    saved = (sandbox.project / "shop.py").read_text()
    ast.parse(saved)
    assert saved.endswith(shown + "\n")


def test_ghost_text_comes_soon_after_the_last_key(editor: Editor) -> None:
    # Least debounce, an engine that takes no time. Beside it, the time that Neovim takes to draw a key.
    editor.rpc.exec_lua("vim.b.dg_lsp = nil; require('dg_lsp.options').set('g', { debounce = 0 })")
    editor.open("ghost.py")
    ghost(editor)
    own, ours = [], []
    for number in range(20):
        editor.keys("<Esc>cc#")
        time.sleep(0.05)
        own.append(_drawn_after(editor, "Z", "Z"))
        editor.keys("<Esc>cc")
        time.sleep(0.05)
        ours.append(_drawn_after(editor, f"value{number} = ", "None"))
    editor.rpc.exec_lua("require('dg_lsp.options').set('g', { debounce = 50 })")
    own.sort()
    ours.sort()
    print(
        f"own p50 {own[10]:.0f} ms, p95 {own[18]:.0f}; ghost text p50 {ours[10]:.0f} ms, p95 {ours[18]:.0f}"
    )
    # On a busy machine the others are late; p95 is within 60 on an idle one.
    assert ours[0] - own[0] <= 60, "milliseconds"


def _drawn_after(editor: Editor, keys: str, text: str) -> float:
    editor.mark()
    began = time.perf_counter()
    editor.keys(keys)
    editor.wait_drawn(text)
    return (time.perf_counter() - began) * 1000


def test_the_installed_plug_in_works(sandbox: Sandbox) -> None:
    command = [sys.executable, "-m", "dg_lsp", "editor", "install", "nvim"]
    subprocess.run(command, env=sandbox.environment, cwd=sandbox.project, check=True, capture_output=True)
    # As a Neovim that is started from a menu: no option names the program, and it is not on the PATH.
    with Editor(sandbox, {"cmd": []}, installed=True) as editor:
        editor.open("ghost.py")
        ghost(editor)
        editor.rpc.command("helptags ALL | help dg-lsp")
        assert editor.rpc.current.buffer.name.startswith(str(sandbox.root))


def test_a_missing_server_is_said_with_the_command_that_installs_it(sandbox: Sandbox) -> None:
    with Editor(sandbox, {"cmd": ["dg-lsp-nowhere"]}) as editor:
        editor.rpc.command("edit ghost.py")
        editor.wait(
            lambda: on_screen(editor, "dg-lsp-nowhere is not on the PATH; run: pipx install"), "silence"
        )
        editor.keys("GA" + "total = ")
        editor.rpc.command("edit! fill.py")
        messages = editor.rpc.command_output("messages")
        assert messages.count("is not on the PATH") == 1, "it is said once"


def test_a_killed_server_is_said_once_and_restarts(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("ghost.py")
        ghost(editor)
        editor.keys("<Esc>")
        os.kill(_server_of(editor), signal.SIGKILL)
        said = "the server has ended (signal 9); :DgLsp restart starts it again"
        editor.wait(lambda: on_screen(editor, said), "silence")
        messages = editor.rpc.command_output("messages")
        assert messages.count("ended") == 1 and "quit with exit code" not in messages
        assert editor.screen_line() == "    total =", "the ghost text of the dead server is gone"
        editor.rpc.command("DgLsp restart")
        editor.wait(editor.attached, "no server")
        editor.keys("cc" + "total = ")
        editor.wait(lambda: editor.screen_line() == SHOWN, "no ghost text after the restart")


def test_ghost_text_goes_with_its_server_before_the_next_key(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("ghost.py")
        ghost(editor)
        os.kill(_server_of(editor), signal.SIGKILL)
        editor.wait(lambda: editor.screen_line() == "    total =", "the ghost text of a dead server")
        editor.keys("<Tab>x")
        editor.wait(lambda: editor.screen_line().endswith("x"), "no key")
        assert "None" not in editor.screen_line()


@pytest.mark.parametrize("sandbox", ["scripted:40:100"], indirect=True)
def test_a_killed_engine_is_said_and_comes_back(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("fill.py")
        editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: editor.sight().rows[FILL_LINE] == "    ?", "the fill does not run")
        for process in engines(sandbox):
            os.kill(process, signal.SIGKILL)
        editor.wait(lambda: on_screen(editor, "dg-lsp: ") and on_screen(editor, "engine"), "silence")
        assert editor.attached(), "the server lives on"
        editor.wait(lambda: not editor.rpc.call("maparg", "<C-c>", "n"), "the fill did not end")
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: editor.lines() == FILL_AFTER.splitlines(), "the engine did not come back")


def test_what_is_said_in_insert_mode_stands_on_the_screen_once_it_is_left(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("ghost.py")
        ghost(editor)
        os.kill(_server_of(editor), signal.SIGKILL)
        editor.wait(lambda: "ended (signal 9)" in editor.rpc.command_output("messages"), "silence")
        editor.rpc.exec_lua("require('dg_lsp.say')('and so it goes')")
        editor.keys("<Esc>")
        editor.wait(lambda: on_screen(editor, "and so it goes"), "silence")
        assert editor.rpc.api.get_mode() == {"mode": "n", "blocking": False}
        messages = editor.rpc.command_output("messages")
        assert messages.count("ended") == messages.count("goes") == 1


def test_a_window_works_on_when_the_server_of_another_dies(sandbox: Sandbox) -> None:
    with Editor(sandbox) as first, Editor(sandbox) as second:
        for window in (first, second):
            window.open("ghost.py")
            ghost(window)
        assert len(engines(sandbox)) == 1, "the windows share an engine"
        os.kill(_server_of(first), signal.SIGKILL)
        first.keys("<Esc>")
        first.wait(lambda: on_screen(first, "the server has ended (signal 9)"), "silence")
        second.keys("<Esc>cc" + "other = ")
        second.wait(lambda: second.screen_line() == "    other = None", "no ghost text in the other window")
        assert second.attached() and "ended" not in second.rpc.command_output("messages")
        assert len(engines(sandbox)) == 1


@pytest.mark.parametrize("sandbox", ["scripted:40:100"], indirect=True)
def test_a_setting_changed_while_a_fill_runs_leaves_the_fill_alone(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("fill.py")
        editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: editor.sight().rows[FILL_LINE] == "    ?", "the fill does not run")
        editor.rpc.command("DgLsp effort high")
        editor.wait(lambda: editor.lines() == FILL_AFTER.splitlines(), "the body was not filled")
        editor.wait(lambda: not editor.rpc.call("maparg", "<C-c>", "n"), "<C-c> was not given back")
        assert editor.attached() and "dg-lsp: " not in editor.rpc.command_output("messages")


@pytest.mark.parametrize("sandbox", ["scripted:40:100"], indirect=True)
def test_another_file_closed_while_a_fill_runs_leaves_the_fill_alone(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("ghost.py")
        editor.open("fill.py")
        editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: editor.sight().rows[FILL_LINE] == "    ?", "the fill does not run")
        editor.rpc.command("bdelete ghost.py")
        editor.wait(lambda: editor.lines() == FILL_AFTER.splitlines(), "the body was not filled")
        assert "nothing was filled" not in editor.rpc.command_output("messages")


@pytest.mark.parametrize("sandbox", ["scripted:40:100"], indirect=True)
def test_a_file_closed_while_it_is_filled_is_closed_without_a_word(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("fill.py")
        editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: editor.sight().rows[FILL_LINE] == "    ?", "the fill does not run")
        editor.rpc.command("bdelete")
        editor.open("fill.py")
        editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: editor.lines() == FILL_AFTER.splitlines(), "the body was not filled")
        said = editor.rpc.command_output("messages")
        assert "nothing was filled" not in said and "changed meanwhile" not in said


@pytest.mark.parametrize("sandbox", ["scripted:40:100"], indirect=True)
def test_a_restart_while_a_fill_runs_says_that_nothing_was_filled(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.open("fill.py")
        editor.rpc.api.win_set_cursor(0, (FILL_LINE, 4))
        editor.rpc.command("DgLsp fill")
        editor.wait(lambda: editor.sight().rows[FILL_LINE] == "    ?", "the fill does not run")
        editor.rpc.command("DgLsp restart")
        expected = FILL_BEFORE.splitlines()
        editor.wait(lambda: editor.sight().rows[: len(expected)] == expected, "the draft stayed")
        editor.wait(lambda: on_screen(editor, "nothing was filled"), "silence")
        editor.wait(editor.attached, "no server")
        assert not editor.rpc.call("maparg", "<C-c>", "n"), "<C-c> was not given back"
        assert editor.lines() == expected


def _server_of(editor: Editor) -> int:
    """The process of the editor's language server."""
    children = editor.rpc.exec_lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())")
    assert len(children) == 1, children
    return int(children[0])


def test_a_cold_start_is_visible_at_once(sandbox: Sandbox) -> None:
    with Editor(sandbox) as editor:
        editor.rpc.command("edit ghost.py")
        editor.keys("GA" + "total = ")
        editor.wait(lambda: "dg-lsp: starting" in editor.screen_line(), "no sign of the start")
        editor.wait(lambda: editor.screen_line() == SHOWN, "no ghost text")


def test_the_users_settings_choose_the_checkpoint(tmp_path: Path) -> None:
    asked = "return vim.lsp.get_clients()[1]:request_sync('dg-lsp/status', vim.empty_dict(), 60000).result.checkpoint"
    with open_sandbox(tmp_path) as sandbox:
        (sandbox.project / "a.py").write_text("x = 1\n")
        with Editor(sandbox, {"settings": {"checkpoint": "scripted:1:1"}}) as editor:
            editor.open("a.py")
            assert editor.rpc.exec_lua(asked) == "scripted:1:1"
            assert "dg-lsp" not in editor.rpc.command_output("messages")


def test_a_teams_server_fills_and_its_absence_is_said_until_it_is_back(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    why = "return vim.lsp.get_clients()[1]:request_sync('dg-lsp/status', vim.empty_dict(), 60000).result.why"
    with server_process(tmp_path) as (team, process), Editor(sandbox, {"settings": team.own}) as editor:
        editor.open("ghost.py")
        ghost(editor)
        process.kill()
        process.wait()
        editor.keys("<Esc>S" + "other = ")
        editor.wait(lambda: "no engine answers at https" in editor.rpc.exec_lua(why), "not a word of it")
        assert editor.screen_line() == "    other ="
        with server_process(tmp_path, port=int(team.url.rpartition(":")[2])):
            # Nothing is asked of it for some seconds.
            for pause in (0.5, 0.5, 1, 1, 2, 2, 5, 5, 10, 20):
                editor.keys("<Esc>S" + "total = ")
                with suppress(AssertionError):
                    editor.wait(lambda: editor.screen_line() == SHOWN, "no ghost text", pause)
                    break
            assert editor.screen_line() == SHOWN
    assert not engines(sandbox), "no engine was started on this machine"
