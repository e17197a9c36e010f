"""A real VS Code with the extension from its package: what is shown, what is accepted, what lands in the file.

One session does most of it, since a start of VS Code takes seconds. Each check has a file of its own.
"""

import builtins
import keyword
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editors.sandbox import (
    CHROMIUM,
    FILL_AFTER,
    FILL_BEFORE,
    FILL_LINE,
    FILL_TITLE,
    NODE,
    REWRITE_AFTER,
    REWRITE_BEFORE,
    REWRITE_TITLE,
    Sandbox,
    open_sandbox,
    skip_without,
)
from tests.editors.vscode import STATUS, VSIX, VSCode, open_vscode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

SCRIPTS = int(os.environ.get("DG_LSP_KEY_SCRIPTS", "8"))  # random scripts of keys
KEYS = int(os.environ.get("DG_LSP_TYPED", "150"))  # typed characters while the screen is sampled
SIGN = 1000  # ms until something is seen of a cold start; 300 are wanted of an idle machine


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    """The session, with the scripted engine: `None` for an expression, `return None` for a body."""
    with open_sandbox(tmp_path_factory.mktemp("vscode")) as sandbox, open_vscode(sandbox) as editor:
        editor.status("ready", patience=60_000)
        yield editor


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


def test_a_word_is_accepted_and_the_rest_stays(code: VSCode) -> None:
    # The second place is behind the accepted word.
    code.open("word.py", "def known(first, second):\n    return\n", 2, 11)
    code.type(" ")
    code.ghost("None")
    seen = code.press("Control+ArrowRight", wait=200)["now"]
    assert seen["rows"][1] == "    return None"
    assert code.saved("word.py") == b"def known(first, second):\n    return None\n"


def test_the_next_and_the_previous_one_are_shown(code: VSCode) -> None:
    code.open("next.py", PYTHON, 2, 12)
    code.type(" ")
    code.ghost("None")
    code.press("Alt+]")
    seen = code.until("s.ghost && s.ghost !== 'None'")
    assert seen["ghost"] in ("True", "False")
    code.press("Alt+[")
    code.ghost("None")


def test_an_unsure_fill_is_not_shown_by_itself_and_the_status_says_why(code: VSCode) -> None:
    code.open("unsure.py", "def add(unsure):\n    unsure =\n", 2, 13)
    code.type(" ")
    code.status("right with a probability of 12 %, less than confidence (40 %)")
    assert code.ask("screen")["ghost"] == ""
    code.command("Offer Several Fills Here")
    code.until("s.ghost.startsWith('None')")
    code.status("right with 12 %, denoised from noise")


def test_what_was_dismissed_is_not_offered_again_there(code: VSCode) -> None:
    code.open("dismissed.py", PYTHON, 2, 12)
    code.type(" ")
    code.ghost("None")
    code.press("Escape")
    code.until("!s.ghost")
    code.type("0")
    code.press("Backspace", wait=900)
    assert code.ask("screen")["ghost"] == ""
    code.command("Offer Several Fills Here")
    code.until("s.ghost")


EMOJI = "🙂"
BYTES = {
    "LF": b"def add(first):\n    total =@\n",
    "CRLF": b"def add(first):\r\n    total =@\r\n    return total\r\n",
    "BOM": b"\xef\xbb\xbfdef add(first):\n    total =@\n",
    "emoji": f'def add(first):\n    name, total = "{EMOJI}{EMOJI}",@\n'.encode(),
    "tabs": b"def add(first):\n\tif first:\n\t\ttotal =@\n\treturn first\n",
    "no newline at the end": b"def add(first):\n    total =@",
    "text behind": b"def add(first):\n    return max(first,@)\n",
}


@pytest.mark.parametrize("case", BYTES)
def test_the_saved_file_is_right_to_the_byte(code: VSCode, case: str) -> None:
    name, data = f"bytes-{list(BYTES).index(case)}.py", BYTES[case]
    line, before = next((n, part) for n, part in enumerate(data.split(b"\n"), 1) if b"@" in part)
    text = before.partition(b"@")[0].decode("utf-8-sig")
    # The editor is asked for a column in UTF-16 units, and shows the one on the screen.
    shown = len(text.replace("\t", "    ")) + 1
    code.open(name, data.replace(b"@", b""), line, len(text.encode("utf-16-le")) // 2 + 1, shown=shown)
    code.type(" ")
    seen = code.until("s.ghost")
    assert not seen["misplaced"]
    code.press("Tab")
    assert code.saved(name) == data.replace(b"@", f" {seen['ghost']}".encode())


def test_the_code_action_fills_a_body_and_one_undo_takes_it_back(code: VSCode) -> None:
    code.open("action.py", FILL_BEFORE, FILL_LINE, 5)
    code.press("Control+.")
    code.ask("click", selector=".action-widget .monaco-list-row", text=FILL_TITLE)
    code.ask("dirty")
    assert code.saved("action.py").decode() == FILL_AFTER
    code.press("Control+z")
    code.ask("dirty")
    assert code.saved("action.py").decode() == FILL_BEFORE


def test_selected_code_is_written_again_and_one_undo_takes_it_back(code: VSCode) -> None:
    code.open("rewrite.py", REWRITE_BEFORE, 2, 5)
    code.press("Shift+End")
    code.press("Control+.")
    code.ask("click", selector=".action-widget .monaco-list-row", text=REWRITE_TITLE)
    code.ask("dirty")
    assert code.saved("rewrite.py").decode() == REWRITE_AFTER
    code.press("Control+z")
    code.ask("dirty")
    assert code.saved("rewrite.py").decode() == REWRITE_BEFORE


def fill(code: VSCode, letter: str) -> None:
    """Press the keys of a fill and wait until the file has changed."""
    code.press("Control+Alt+g")
    code.press(letter)
    code.ask("dirty")


def test_the_keys_fill_a_body(code: VSCode) -> None:
    code.open("body.py", FILL_BEFORE, FILL_LINE, 5)
    fill(code, "b")
    assert code.saved("body.py").decode() == FILL_AFTER


HOLES = "def area(side):\n    ...\n    size = side * side\n    ...\n    return size\n"


def test_the_keys_fill_all_holes_with_one_undo(code: VSCode) -> None:
    code.open("holes.py", HOLES, 3, 5)
    fill(code, "h")
    filled = code.saved("holes.py").decode()
    assert "..." not in filled
    assert "    size = side * side\n" in filled
    code.press("Control+z")
    code.ask("dirty")
    assert code.saved("holes.py").decode() == HOLES


STUBS = (
    "def one():\n    pass\n\n\ndef two():\n    return 2\n\n\ndef three():\n    raise NotImplementedError\n"
)


def test_all_stubs_are_filled_with_one_undo(code: VSCode) -> None:
    code.open("stubs.py", STUBS, 6, 5)
    fill(code, "a")
    code.message("2 of 2 bodies filled")
    filled = STUBS.replace("pass", "return None").replace("raise NotImplementedError", "return None")
    assert code.saved("stubs.py").decode() == filled
    code.press("Control+z")
    code.ask("dirty")
    assert code.saved("stubs.py").decode() == STUBS


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


def menus(code: VSCode, name: str) -> list[bool]:
    """Whether the menu opens by itself in each place, each in a function of its own of one file."""
    opened = []
    code.open(name, SOURCE * len(PLACES))
    for number, place in enumerate(PLACES):
        code.ask("line", line=6 * number + 3, column=5)
        code.type(place, delay=40)
        try:
            code.until("s.menu.length", patience=1500)
            opened.append(True)
        except AssertionError:
            opened.append(False)
        code.press("Escape")
        code.press("Escape")
    return opened


def test_the_menu_opens_within_half_a_word_as_it_does_without_us(code: VSCode) -> None:
    code.settings(**{"editor.inlineSuggest.enabled": False})
    without = menus(code, "without.py")
    code.settings()
    assert sum(without) == len(PLACES) == 20
    assert menus(code, "with.py") == without


def start_of(rows: list[str], row: int) -> str:
    return rows[row] if 0 <= row < len(rows) else ""


def run_script(code: VSCode, number: int) -> list[str]:
    """One random script of keys in a file of its own; what went wrong.

    After each key that accepts, the text must be what the screen showed when the key came: the line with the ghost
    text in it. After any other key no more than that key may have changed. The saved file must be the screen's text.
    """
    chance, name = random.Random(number), f"script{number}.py"
    code.open(name, "def add(first, second):\n    \n    return first\n", 2, 5)
    wrong: list[str] = []
    now: dict[str, Any] = code.ask("screen")
    for _ in range(25):
        key = chance.choice(
            [*"total = N", *"x = first +", " ", "Backspace", "Tab", "Tab", "Tab", "ArrowLeft", "End"]
        )
        pressed = code.press(key, wait=chance.choice([0, 0, 50, 150, 250]))
        met, now = pressed["met"], pressed["now"]
        line, new = met["rows"][1], start_of(now["rows"], 1)
        ghost = met["ghost"] if met["row"] == 1 else ""
        if key == "Tab" and ghost:
            right = new == met["before"] + ghost + met["after"]
        elif key == "Tab":
            right = new.replace(" ", "") == line.replace(" ", "")
        elif key in ("ArrowLeft", "End"):
            right = new == line
        elif key == "Backspace":
            right = len(new) == len(line) - 1 or len(now["rows"]) < len(met["rows"]) or new == line
        else:
            right = len(new) == len(line) + 1
        if not right:
            wrong.append(f"script {number}, {key}: {line!r} with {ghost!r} {met['menu']} became {new!r}")
        if now["misplaced"]:
            wrong.append(f"script {number}, {key}: ghost text away from the cursor: {now}")
        if len(now["rows"]) != 4:
            break
    code.press("Escape")
    saved = code.saved(name).decode()
    if saved.split("\n") != code.ask("screen")["rows"]:
        wrong.append(f"script {number}: saved {saved!r}")
    return wrong


def test_random_keys_never_write_what_was_not_shown(code: VSCode) -> None:
    # The menu would take some of the keys; it has its own test.
    code.settings(**{"editor.quickSuggestions": "off", "editor.suggestOnTriggerCharacters": False})
    wrong = [line for number in range(SCRIPTS) for line in run_script(code, number)]
    code.settings()
    assert not wrong


# What the scripted engine answers, and the words in sight, to which half a word may be completed.
WORDS = {"None", "True", "False", "0", "first", "second", "total", "add", *keyword.kwlist, *dir(builtins)}


def disagrees(sample: dict[str, Any]) -> bool:
    """Whether the ghost text of a sample does not go on from the text before it, or stands away from the cursor."""
    shown = sample["ghost"].removesuffix("()")
    if not shown:
        return False
    return bool(sample["misplaced"]) or sample["before"].rpartition(" ")[2] + shown not in WORDS


def test_no_frame_shows_stale_ghost_text_while_one_types_on_a_slow_engine(code: VSCode) -> None:
    code.settings(checkpoint="scripted:6:100", **{"editor.quickSuggestions": "off"})
    # Words of other open files would be in sight, too.
    code.open("unsaved.py", PYTHON, 2, 12)
    code.type(" ")
    code.command("View: Close All Editors")
    code.ask("click", selector=".monaco-dialog-box .monaco-button", text="Don't Save")
    code.open("stale.py", "def add(first, second):\n    \n", 2, 5)
    code.status("ready", patience=60_000)
    statement = "total = ~No~<<first = Tr~<<~second = N~<~ "
    text = (statement * (KEYS // len(statement) + 1))[:KEYS]
    samples = code.ask("sample", text=text, delay=120, pause=900, patience=KEYS * 400)
    code.settings()
    code.status("ready", patience=60_000)
    wrong = [sample for sample in samples if disagrees(sample)]
    assert len(samples) > KEYS * 3
    assert any(sample["ghost"] for sample in samples), "nothing was ever shown"
    assert not wrong, f"{len(wrong)} of {len(samples)}: {wrong[:3]}"


def test_a_fill_shows_its_draft_and_escape_cancels_it(code: VSCode) -> None:
    code.settings(checkpoint="scripted:100:100")
    code.open("cancel.py", FILL_BEFORE, FILL_LINE, 5)
    code.status("ready", patience=60_000)
    code.press("Control+Alt+g")
    code.press("b")
    code.ask("drawn", text="?")
    code.shot("draft")
    code.press("Escape")
    code.ask("drawn", text="?", gone=True)
    assert code.ask("screen")["rows"] == FILL_BEFORE.split("\n")
    code.settings()
    code.status("ready", patience=60_000)


def test_the_menu_of_the_status_item_says_why_and_switches(code: VSCode) -> None:
    code.open("menu.py", PYTHON, 2, 12)
    code.ask("click", selector=STATUS)
    rows = code.ask("rows")
    assert any("Turn dg-lsp off for python" in row for row in rows)
    assert any("Snooze" in row for row in rows)
    code.ask("choose", text="Turn dg-lsp off for python")
    code.status("off")
    code.press("Control+1")
    code.press(" ", wait=500)
    assert code.ask("screen")["ghost"] == ""
    code.ask("click", selector=STATUS)
    assert any("switched off by the setting disabledLanguages" in row for row in code.ask("rows"))
    code.ask("choose", text="Turn dg-lsp on for python")
    code.status("ready")
    code.press("Control+1")
    code.press("Backspace")
    code.press(" ")
    code.ghost("None")


def test_a_killed_engine_is_started_again_with_a_visible_sign(code: VSCode) -> None:
    code.open("engine.py", PYTHON, 2, 12)
    stop_engine(code.sandbox)
    milliseconds = code.ask("sign", key=" ", selector=STATUS, wanted=["starting", "loading"])
    assert milliseconds < SIGN
    code.ghost("None")
    code.status("ready")


def test_a_killed_server_is_started_again(code: VSCode) -> None:
    code.open("killed.py", PYTHON, 2, 12)
    kill_server(code.sandbox)
    code.status("restarting")
    code.status("ready", patience=60_000)
    code.type(" ")
    code.ghost("None")


def test_after_five_crashes_there_is_a_way_back(code: VSCode) -> None:
    code.command("dg-lsp: Restart the Server")
    code.status("starting")
    code.status("ready", patience=60_000)
    for _ in range(5):
        kill_server(code.sandbox)
        code.ask("text", selector=f"{STATUS} a", wanted="ing", patience=20_000) if _ < 4 else None
        if _ < 4:
            code.status("ready", patience=60_000)
    code.message("ended 5 times")
    code.status("stopped")
    code.ask("click", selector=".notifications-toasts .monaco-button", text="Restart")
    code.status("ready", patience=60_000)


def test_a_missing_server_is_told_with_the_command_that_installs_it(code: VSCode) -> None:
    code.settings(path=None)
    code.status("not installed")
    assert "pip" in code.message("Install it from its wheel or a clone")
    code.shot("missing")
    code.settings()
    code.status("ready", patience=60_000)


def stop_engine(sandbox: Sandbox) -> None:
    """End the engine of the sandbox."""
    command = [sys.executable, "-m", "dg_lsp", "engine", "stop", "--all"]
    subprocess.run(command, env=sandbox.environment, cwd=sandbox.project, check=True, capture_output=True)


def kill_server(sandbox: Sandbox) -> None:
    """Kill the server of the sandbox, found by its environment."""
    processes = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    found = [path.name for path in processes if _is_server(path, str(sandbox.sockets))]
    assert found, "no server runs"
    for process in found:
        os.kill(int(process), signal.SIGKILL)


def _is_server(process: Path, sockets: str) -> bool:
    try:
        serving = (process / "cmdline").read_bytes().rstrip(b"\0").endswith(b"--stdio")
        return serving and sockets.encode() in (process / "environ").read_bytes()
    except OSError:
        return False
