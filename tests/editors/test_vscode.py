"""A real VS Code with the extension from its package: what is shown, what is accepted, what lands in the file.

One session does most of it, since a start of VS Code takes seconds. Each check has a file of its own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.configuration import camel
from tests.editors.places import (
    CASES,
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
    CHROMIUM,
    EDITORS,
    FILL_BEFORE,
    FILL_LINE,
    FILL_TITLE,
    NODE,
    REWRITE_TITLE,
    Sandbox,
    engines,
    servers,
    skip_without,
)
from tests.editors.vscode import STATUS, VSIX, VSCode, answer, open_vscode, press_button, write_program
from tests.serving.team import server_process

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]


@pytest.fixture(autouse=True)
def calm(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave no menu and no fill behind for the next test."""
    yield
    if "code" in request.fixturenames:
        request.getfixturevalue("code").press("Escape")


PYTHON = "def add(first, second):\n    total =\n"
TYPESCRIPT = "function add(first: number, second: number) {\n  const total =\n}\n"
RUST = "fn add(first: i32, second: i32) -> i32 {\n    let total =\n}\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.py", PYTHON), ("a.ts", TYPESCRIPT), ("a.rs", RUST)],
    ids=["python", "typescript", "rust"],
)
def test_ghost_text_is_accepted_and_one_undo_takes_back_no_more(code: VSCode, name: str, text: str) -> None:
    code.open(name, text, 2, len(text.split("\n")[1]) + 1)
    code.type(" ")
    ghost = code.until("s.ghost.startsWith('None') && !s.misplaced")["ghost"]
    code.press("Tab")
    assert code.saved(name).decode() == text.replace("=\n", f"= {ghost}\n")
    code.press("Control+z")
    code.until("!s.rows.some((row) => row.includes('None'))")
    assert code.saved(name).decode() == text.replace("=\n", "= \n")


def test_nothing_is_offered_at_several_cursors(code: VSCode) -> None:
    # The editor puts what is accepted at each cursor, and only the text at the first one was looked at.
    text = "def add(first, second):\n    total =\n    whole =()\n"
    code.open("several.py", text, 2, 12)
    code.command("Add Cursor Below")
    code.type(" ")
    time.sleep(3)
    assert code.until("s.rows.some((row) => row.includes('whole ='))")["ghost"] == ""
    code.press("Escape")


def test_an_unsure_fill_is_not_shown_by_itself_and_the_status_says_why(code: VSCode) -> None:
    code.open("unsure.py", "def add(unsure):\n    unsure =\n", 2, 13)
    code.type(" ")
    code.why("right with a probability of 12 %, less than confidence (25 %)")
    assert code.ask("screen")["ghost"] == ""
    code.command("Offer Several Fills Here")
    code.until("s.ghost.startsWith('None')")
    code.why("right with 12 %, denoised from noise")


def begin(code: VSCode, name: str, language: str) -> str:
    """Open a file with a value to write and wait for ghost text; the line before it."""
    known = LANGUAGES[language]
    line = f"    {known.name}"
    code.open(f"{name}.{known.suffix}", f"{known.head}\n{line}\n{known.tail}", 2, len(line) + 1)
    code.type(" ")
    code.until("s.ghost.startsWith('None') && !s.misplaced")
    return f"{line} "


@pytest.mark.parametrize("language", LANGUAGES)
def test_others_are_shown_and_a_word_is_accepted_in_each_language(code: VSCode, language: str) -> None:
    line = begin(code, "word", language)
    code.press("Alt+]")
    seen = code.until("s.ghost && !s.ghost.startsWith('None')")
    assert seen["ghost"].startswith(("True", "False"))
    code.press("Alt+[")
    code.until("s.ghost.startsWith('None')")
    code.press("Control+ArrowRight")
    code.until(f"s.rows[1] === {f'{line}None'!r}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_line_is_accepted_in_each_language(code: VSCode, language: str) -> None:
    line = begin(code, "line", language)
    ghost = code.ask("screen")["ghost"]
    code.press("Control+ArrowDown")
    code.until(f"s.rows[1] === {json.dumps(line + ghost)} && !s.ghost")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_dismissed_is_not_offered_again_there(code: VSCode, language: str) -> None:
    begin(code, "dismissed", language)
    code.press("Escape")
    code.until("!s.ghost")
    code.type("0")
    code.press("Backspace", wait=900)
    assert code.ask("screen")["ghost"] == ""
    assert "last offer" not in code.why("nothing offered: ")
    code.command("Offer Several Fills Here")
    code.until("s.ghost")


@pytest.mark.parametrize(("language", "case"), CASES_BY_LANGUAGE)
def test_the_saved_file_is_right_to_the_byte(code: VSCode, case: str, language: str) -> None:
    data = place(LANGUAGES[language], case)
    name = f"bytes-{CASES.index(case)}.{LANGUAGES[language].suffix}"
    before = data.removeprefix(BOM_UTF8).split(b"\n")[1].partition(MARK)[0].decode()
    # The editor is asked for a column in UTF-16 units, and shows the one on the screen.
    shown = len(before.replace("\t", "    ")) + 1
    code.open(name, data.replace(MARK, b""), 2, len(before.encode("utf-16-le")) // 2 + 1, shown=shown)
    code.type(" ")
    seen = code.until("s.ghost.startsWith('None') && !s.misplaced")
    code.press("Tab")
    assert code.saved(name) == data.replace(MARK, f" {seen['ghost']}".encode())


def act(code: VSCode, title: str) -> None:
    """Choose a code action at the cursor and wait until the file has changed."""
    code.ask("act", title=title)
    code.ask("dirty")


def undone(code: VSCode, name: str) -> bytes:
    """Undo once, and save; the file on the disk."""
    code.press("Control+z")
    code.ask("dirty")
    return code.saved(name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_code_action_fills_a_body_and_one_undo_takes_it_back(code: VSCode, language: str) -> None:
    known = LANGUAGES[language]
    name, before = f"action.{known.suffix}", stub(known).encode()
    code.open(name, before, 2, 5)
    act(code, FILL_TITLE)
    assert is_filled(known, before, code.saved(name))
    assert undone(code, name) == before


@pytest.mark.parametrize("language", LANGUAGES)
def test_selected_code_is_written_again_and_one_undo_takes_it_back(code: VSCode, language: str) -> None:
    known = LANGUAGES[language]
    name, before = f"rewrite.{known.suffix}", statement(known)
    code.open(name, before, 3, 5)
    code.press("Shift+End")
    code.ask("act", title=REWRITE_TITLE)
    answer(code, "Take the change")
    code.ask("dirty")
    saved = code.saved(name).decode()
    old, new = before.split("\n")[2], saved.split("\n")[2]
    assert new.startswith("    return None") and saved == before.replace(old, new)
    assert undone(code, name).decode() == before


def fill(code: VSCode, letter: str) -> None:
    """Press the keys of a fill and wait until the file has changed."""
    code.press("Control+Alt+g")
    code.press(letter)
    code.ask("dirty")


@pytest.mark.parametrize(("language", "case"), CASES_BY_LANGUAGE)
def test_a_body_that_the_keys_fill_is_right_to_the_byte(code: VSCode, case: str, language: str) -> None:
    known = LANGUAGES[language]
    name, before = f"body-{CASES.index(case)}.{known.suffix}", stub_of(known, case)
    code.open(name, before, 2, 2 if case == "tabs" else 5, shown=5)
    fill(code, "b")
    assert is_filled(known, before, code.saved(name))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_keys_fill_holes_in_each_language_with_one_undo(code: VSCode, language: str) -> None:
    name, before = f"holes.{LANGUAGES[language].suffix}", holes(LANGUAGES[language])
    code.open(name, before, 3, 5)
    fill(code, "h")
    filled = code.saved(name).decode()
    assert LANGUAGES[language].hole not in filled
    assert [line for line in filled.split("\n") if line in before] == [
        line for line in before.split("\n") if LANGUAGES[language].hole not in line
    ]
    assert undone(code, name).decode() == before


STUBS = (
    "def one():\n    pass\n\n\ndef two():\n    return 2\n\n\ndef three():\n    raise NotImplementedError\n"
)


def test_all_stubs_are_filled_with_one_undo(code: VSCode) -> None:
    code.open("stubs.py", STUBS, 6, 5)
    fill(code, "a")
    code.message("2 of 2 bodies filled")
    filled = STUBS.replace("pass", "return None").replace("raise NotImplementedError", "return None")
    assert code.saved("stubs.py").decode() == filled
    assert undone(code, "stubs.py").decode() == STUBS


# Half a word each, in a place where the editor's own menu has it.
NAMES = (
    *("maximum", "difference", "threshold", "capacity", "separator"),
    *("position", "collected", "remaining", "previous", "weights"),
)
PLACES = [f"total = {name[: 2 + n % 3]}" for n, name in enumerate(NAMES)] + [
    *("print(max", "if thr", "[coll", "rest = first + di", "return pre", "x = {sep", "self.pos", "while rem"),
    *("y = (weig", "call(first, cap"),
]
SOURCE = "def known({}):\n    first = 1\n    \n    return first\n\n\n".format(", ".join(NAMES))


def menus(code: VSCode, name: str, places: list[str]) -> list[str]:
    """The first that comes by itself in each place, menu or ghost text, each in a function of its own of one file."""
    came = []
    code.open(name, SOURCE * len(places))
    for number, words in enumerate(places):
        code.ask("line", line=6 * number + 3, column=5)
        code.type(words, delay=40)
        seen = code.until("s.menu.length || s.ghost")
        came.append("menu" if seen["menu"] else "ghost text")
        if not seen["menu"]:
            code.press("Control+Space")
            code.until("s.menu.length")
        code.press("Escape")
        code.press("Escape")
    return came


def test_the_menu_opens_within_half_a_word_unless_ghost_text_is_there_and_at_its_key(code: VSCode) -> None:
    code.settings(automatic=False)
    assert menus(code, "without.py", PLACES[::2]) == ["menu"] * len(PLACES[::2])
    code.settings()
    menus(code, "with.py", PLACES)


def test_a_fill_shows_its_draft_and_escape_cancels_it(code: VSCode) -> None:
    code.settings(checkpoint="scripted:100:100")
    code.open("cancel.py", FILL_BEFORE, FILL_LINE, 5)
    code.status("ready")
    code.press("Control+Alt+g")
    code.press("b")
    code.drawn("?")
    code.shot("draft")
    code.press("Escape")
    code.ask("drawn", text="?", gone=True)
    assert code.ask("screen")["rows"] == FILL_BEFORE.split("\n")
    code.why("last fill asked for: cancelled, nothing was changed")
    code.settings()
    code.status("ready")


def test_a_fill_that_a_restart_ends_says_so(code: VSCode) -> None:
    code.settings(checkpoint="scripted:100:100")
    code.open("ended.py", FILL_BEFORE, FILL_LINE, 5)
    code.status("ready")
    code.press("Control+Alt+g")
    code.press("b")
    code.drawn("?")
    code.command("dg-lsp: Restart the Server")
    code.message("the server ended, so nothing was filled")
    code.ask("drawn", text="?", gone=True)
    code.status("ready")
    code.why("last fill asked for: the server ended, so nothing was filled")
    assert code.ask("screen")["rows"] == FILL_BEFORE.split("\n")
    code.settings()
    works(code, "newer.py")
    assert "last fill asked for" not in code.why("last fill: "), "that is over"


def test_the_menu_of_the_status_item_says_why_and_switches(code: VSCode) -> None:
    code.open("menu.py", PYTHON, 2, 12)
    code.ask("click", selector=STATUS)
    rows = code.rows("Turn dg-lsp off for python")
    assert any("Snooze" in row for row in rows)
    above = rows[: next(n for n, row in enumerate(rows) if "Turn ghost text off" in row)]
    assert len(above) <= 3 and "model scripted" not in "".join(above), "one can act without reading"
    code.type("model scripted")
    code.rows("model scripted")
    code.press("Escape")
    code.ask("click", selector=STATUS)
    code.ask("choose", text="Turn dg-lsp off for python")
    code.status("off")
    code.press("Control+1")
    code.press(" ", wait=500)
    assert code.ask("screen")["ghost"] == ""
    code.ask("click", selector=STATUS)
    rows = code.rows("Turn dg-lsp on for python")
    assert any("switched off by the setting disabledLanguages" in row for row in rows)
    code.ask("choose", text="Turn dg-lsp on for python")
    code.status("ready")
    code.press("Control+1")
    code.press("Backspace")
    code.press(" ")
    code.ghost("None")


@pytest.fixture
def own_settings(code: VSCode) -> Iterator[Path]:
    """The settings of the workspace in a file, which later tests of the session do not find, whatever a test does."""
    path = code.sandbox.project / ".vscode/settings.json"
    yield path
    path.unlink(missing_ok=True)


def test_ghost_text_is_switched_off_and_on_without_a_trace_in_the_workspace(
    code: VSCode, own_settings: Path
) -> None:
    code.open("switch.py", PYTHON, 2, 12)
    code.ask("click", selector=STATUS)
    code.ask("choose", text="Turn ghost text off in this workspace")
    until(lambda: own_settings.exists() and "automatic" in own_settings.read_text())
    code.status("off")
    code.press("Control+1")
    code.press(" ", wait=500)
    assert code.ask("screen")["ghost"] == ""
    code.ask("click", selector=STATUS)
    code.ask("choose", text="Turn ghost text on in this workspace")
    until(lambda: "automatic" not in own_settings.read_text())
    code.status("ready")
    code.press("Control+1")
    code.press("Backspace")
    code.press(" ")
    code.ghost("None")


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds, a minute at most."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_killed_engine_is_started_again_with_a_visible_sign(code: VSCode) -> None:
    code.open("engine.py", PYTHON, 2, 12)
    stop_engine(code.sandbox)
    milliseconds = code.ask("sign", key=" ", selector=STATUS, wanted=["starting", "loading"])
    print(f"a sign of the start after {milliseconds:.0f} ms; 300 are wanted of an idle machine")
    code.ghost("None")
    code.status("ready")


def test_the_status_is_there_for_another_file_while_the_engine_hangs(code: VSCode) -> None:
    works(code, "before.py")
    (engine,) = engines(code.sandbox)
    os.kill(engine, signal.SIGSTOP)
    try:
        code.open("hangs.py", PYTHON)
        assert "dg-lsp" in code.status("dg-lsp", patience=10_000)
    finally:
        os.kill(engine, signal.SIGCONT)
    code.status("ready")


def test_a_killed_server_is_started_again(code: VSCode) -> None:
    code.open("killed.py", PYTHON, 2, 12)
    kill_server(code.sandbox)
    code.status("restarting")
    code.status("ready")
    code.type(" ")
    code.ghost("None")


def test_after_five_crashes_there_is_a_way_back(code: VSCode) -> None:
    code.command("dg-lsp: Restart the Server")
    code.status("starting")
    code.status("ready")
    for _ in range(5):
        kill_server(code.sandbox)
        code.ask("text", selector=f"{STATUS} a", wanted="ing") if _ < 4 else None
        if _ < 4:
            code.status("ready")
    code.message("ended 5 times")
    code.status("stopped")
    press_button(code, "Restart")
    code.status("ready")


def works(code: VSCode, name: str) -> None:
    """Assert that the server runs and offers something."""
    code.status("ready")
    code.open(name, PYTHON, 2, 12)
    code.type(" ")
    code.ghost("None")


def test_a_missing_server_is_told_with_the_command_that_installs_it(code: VSCode) -> None:
    code.settings(path=None)
    code.status("not installed")
    assert "pip" in code.message("Install it from its wheel or a clone")
    code.shot("missing")
    code.settings()
    code.status("ready")


@pytest.mark.parametrize("by", ["message", "menu"])
def test_the_path_of_a_missing_server_is_set(code: VSCode, by: str) -> None:
    program = write_program(code.sandbox.root / f"elsewhere-{by}/dg-lsp")
    code.settings(path=None)
    code.status("not installed")
    if by == "message":
        press_button(code, "Set its path")
    else:
        code.ask("click", selector=STATUS)
        code.ask("choose", text="Set the path of the server")
    code.ask("text", selector=".quick-input-widget", wanted="The path of the program dg-lsp")
    code.type("/nowhere/dg-lsp")
    code.ask("text", selector=".quick-input-widget", wanted="/nowhere/dg-lsp is no program")
    code.press("Control+a")
    code.type(str(program))
    code.press("Enter")
    works(code, f"elsewhere-{by}.py")
    code.why(f"server: {program}")
    code.settings()
    code.status("ready")


@pytest.mark.parametrize("by", ["message", "menu"])
def test_a_server_that_was_installed_meanwhile_is_started_by_restart(code: VSCode, by: str) -> None:
    program = code.sandbox.root / by / "dg-lsp"
    code.settings(path=str(program))
    code.status("not installed")
    code.message(f"{program}, which is no program")
    write_program(program)
    if by == "message":
        press_button(code, "Restart")
    else:
        code.ask("click", selector=STATUS)
        rows = code.rows("Restart the server")
        assert f"{program}, which is no program" in rows[0], "the reason can be read"
        assert "Restart the server" in rows[1]
        code.ask("choose", text="Restart the server")
    works(code, f"installed-{by}.py")
    code.settings()
    code.status("ready")


def test_a_server_that_ends_at_once_says_why_and_restart_starts_a_fixed_one(code: VSCode) -> None:
    program = write_program(code.sandbox.root / "broken/dg-lsp", "echo 'no module named dg_lsp' >&2; exit 1")
    code.settings(path=str(program))
    why = "the server does not start: no module named dg_lsp"
    code.message(why)
    code.status("stopped")
    code.why(why)
    write_program(program)
    press_button(code, "Restart")
    works(code, "fixed.py")
    code.settings()
    code.status("ready")


def test_a_program_that_never_answers_does_not_hold_up_a_restart(code: VSCode) -> None:
    program = write_program(code.sandbox.root / "silent/dg-lsp", "exec sleep 1000")
    code.settings(path=str(program))
    code.status("starting")
    write_program(program)
    code.command("dg-lsp: Restart the Server")
    works(code, "silent.py")
    code.settings()
    code.status("ready")


@pytest.fixture
def put_back(code: VSCode) -> Iterator[None]:
    """Put the session's settings back, whatever a test makes of them."""
    yield
    code.settings()
    works(code, "own.py")


@pytest.mark.usefixtures("put_back")
def test_a_teams_server_fills_and_its_absence_is_said(code: VSCode, tmp_path: Path) -> None:
    with server_process(tmp_path) as (team, process):
        code.settings(**{camel(name): value for name, value in team.own.items()})
        code.status("ready")
        stop_engine(code.sandbox)  # which the server before had started
        code.open("team.py", PYTHON, 2, 12)
        code.type(" ")
        code.ghost("None")
        process.kill()
        process.wait()
        code.open("away.py", PYTHON, 2, 12)
        code.type(" ")
        code.why("no engine answers at https")
        assert not engines(code.sandbox), "no engine was started on this machine"


def test_the_extension_that_the_command_line_installs_works(sandbox: Sandbox) -> None:
    home, entry = sandbox.root / "home", EDITORS / "vscode/node_modules/code-server/out/node/entry.js"
    folders = f"--user-data-dir {home / 'user'} --extensions-dir {home / 'extensions'}"
    program = write_program(sandbox.root / "own/code-server", f'exec {NODE} {entry} {folders} "$@"')
    command = [sys.executable, "-m", "dg_lsp", "editor", "install", "vscode"]
    paths = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    subprocess.run(command, env=sandbox.environment | paths, cwd=sandbox.project, check=True)
    # As an editor that is started from a menu: no setting names the program, and it is not on the PATH.
    with open_vscode(sandbox, settings={}, extensions=None) as editor:
        works(editor, "installed.py")
        editor.why(f"server: {Path(sys.executable).with_name('dg-lsp')}")


@pytest.mark.parametrize("trust", [False, True])
def test_no_program_of_a_workspace_is_run(sandbox: Sandbox, trust: bool) -> None:
    write_program(sandbox.project / ".venv/bin/dg-lsp")
    # With `trust` the editor asks whether the workspace is trusted, which nobody answers; without it all are.
    user = {"security.workspace.trust.startupPrompt": "never"}
    with open_vscode(sandbox, settings={}, user=user, trust=trust) as editor:
        editor.status("not installed")
        editor.message("the server dg-lsp is not installed")
        assert not servers(sandbox)


def test_a_window_works_on_when_the_server_of_another_dies(code: VSCode) -> None:
    code.open("first.py", PYTHON, 2, 12)
    code.status("ready")
    (first,) = servers(code.sandbox)
    code.ask("window", file="ghost.py")
    code.open("second.py", PYTHON, 2, 12)
    code.status("ready")
    (second,) = set(servers(code.sandbox)) - {first}
    os.kill(second, signal.SIGKILL)
    code.status("restarting")
    code.ask("turn", to=0)
    code.type(" ")
    code.ghost("None")
    assert first in servers(code.sandbox) and len(engines(code.sandbox)) == 1
    code.ask("turn", to=1)
    code.status("ready")
    code.type(" ")
    code.ghost("None")
    assert len(engines(code.sandbox)) == 1
    code.ask("close")


def stop_engine(sandbox: Sandbox) -> None:
    """End the engine of the sandbox."""
    command = [sys.executable, "-m", "dg_lsp", "engine", "stop", "--all"]
    subprocess.run(command, env=sandbox.environment, cwd=sandbox.project, check=True, capture_output=True)


def kill_server(sandbox: Sandbox) -> None:
    """Kill the server of the sandbox."""
    found = servers(sandbox)
    assert found, "no server runs"
    for process in found:
        os.kill(process, signal.SIGKILL)
