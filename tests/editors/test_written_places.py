"""Random places of written code in both editors: whatever asks for a fill there, no written text goes without a diff.

Every question is left as it is, or not answered at all. DG_LSP_WRITTEN says how many places there are in each editor,
and DG_LSP_SOURCES names a folder with a folder of files for each language; without it the files are the
interpreter's own and those of the extension.
"""

import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.editors.nvim import Editor
from tests.editors.sandbox import CHROMIUM, NODE, NVIM, open_sandbox, skip_without
from tests.editors.vscode import LEAVE, MESSAGES, VSIX, VSCode, answer
from tests.editors.written import Place, gone, written_places

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("DG_LSP_WRITTEN", "8"))
SEED = 1
ROOT = Path(__file__).parents[2]
KINDS = (
    "",
    "function_body",
    "class_body",
    "block",
    "arguments",
    "expression",
    "statement",
    "string",
    "comment",
)
PATIENCE = 60  # seconds in which a fill, a question or a message must come


def sources() -> dict[str, Path]:
    """The folder of each language; an unnamed one for the interpreter's own files."""
    given = os.environ.get("DG_LSP_SOURCES")
    if given:
        return {"python": Path(), **{folder.name: folder for folder in Path(given).iterdir()}}
    return {"python": Path(), "typescript": ROOT / "editors/vscode/src"}


@pytest.fixture(scope="module")
def places() -> list[Place]:
    """The places, the same ones for both editors."""
    return written_places(sources(), COUNT, SEED)


def loss(place: Place, way: str, data: bytes) -> str:
    return f"{place.name} line {place.line} behind {place.before!r}, {way}: lost {gone(place, data)!r}"


# VS Code


# Each way says whether something must come of it: a question, a message or a changed file.


def keys_of(letter: str) -> Callable[[VSCode], bool]:
    """Return what presses the keys of a fill."""

    def press(code: VSCode) -> bool:
        code.press("Control+Alt+g")
        code.press(letter)
        return True

    return press


def command(code: VSCode) -> bool:
    code.command("dg-lsp: Fill This Function Body")
    return True


def light_bulb(code: VSCode, wanted: str = "this function") -> bool:
    titles = [title for title in code.ask("actions") if wanted in title]
    if titles:
        code.ask("act", title=titles[0])
    return bool(titles)


def selection(code: VSCode) -> bool:
    code.press("Home")
    code.press("Shift+End")
    return light_bulb(code, "selection")


def preferred(code: VSCode) -> bool:
    code.press("Shift+Alt+.", wait=500)
    return False


def ghost_text(code: VSCode) -> bool:
    code.command("dg-lsp: Offer Several Fills Here")
    code.press("Shift", wait=1000)
    for key in ("Tab", "Control+ArrowRight"):
        code.press(key, wait=200)
    return False


VSCODE: dict[str, Callable[[VSCode], bool]] = {
    "body key": keys_of("b"),
    "light bulb": light_bulb,
    "command": command,
    "selection": selection,
    "ghost text": ghost_text,
    "preferred": preferred,
    "holes key": keys_of("h"),
    "stubs key": keys_of("a"),
}


@skip_without(NODE, CHROMIUM, VSIX)
def test_no_written_text_goes_unasked_in_vscode(code: VSCode, places: list[Place]) -> None:
    came = Counter[str]()
    ways = list(zip(places, cycle(VSCODE.items()), strict=False))
    for place, (name, way) in ways:
        shown = len(place.before.expandtabs(4)) + 1
        column = len(place.before.encode("utf-16-le")) // 2 + 1
        code.open(place.name, place.data, place.line, column, shown=shown)
        # A message that is there already, such as that nothing was filled, is not shown a second time.
        code.command("Notifications: Clear All Notifications")
        code.ask("gone", selector=MESSAGES, text="")
        found = outcome(code, PATIENCE if way(code) else 1)
        came[f"{name}: {found}"] += 1
        if found == "question":
            answer(code, LEAVE)
    code.command("File: Save All")
    code.ask("gone", selector=".tab.dirty", text="")
    wrong = []
    for place, (name, _) in ways:
        data = (code.sandbox.project / place.name).read_bytes()
        wrong += [loss(place, name, data)] if gone(place, data) else []
    print(f"VS Code, {len(places)} places: {dict(sorted(came.items()))}")
    assert not wrong, "\n".join(wrong)
    assert sum(count for what, count in came.items() if not what.endswith("none")) > 0, "nothing was asked"


def outcome(code: VSCode, patience: float) -> str:
    """Wait for a question, another message, or a change: which of them came, or "none" where nothing need come.

    Raises:
        AssertionError: nothing came in `patience` seconds, and they are PATIENCE.
    """
    until = time.monotonic() + patience
    while time.monotonic() < until:
        said = [text for text in code.ask("texts", selector=MESSAGES) if text.startswith("dg-lsp: ")]
        if any("this replaces" in text or "unsure" in text for text in said):
            return "question"
        if said:
            return "message"
        if code.ask("texts", selector=".tab.dirty.active"):
            return "filled"
        time.sleep(0.1)
    assert patience < PATIENCE, f"nothing came of it; pictures: {code.shot('nothing')}"
    return "none"


# Neovim

EACH = 3  # ways at one place
WINDOWS = "return #vim.api.nvim_list_wins()"
ACTIONS = """
local titles = {}
local client = vim.lsp.get_clients({ bufnr = 0 })[1]
local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
params.context = { diagnostics = {}, triggerKind = 1 }
for _, action in ipairs((client:request_sync("textDocument/codeAction", params, 60000, 0) or {}).result or {}) do
  table.insert(titles, action.title)
end
return titles
"""
ACT = """
local title = ...
vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title == title end })
"""


@skip_without(NVIM)
def test_no_written_text_goes_unasked_in_neovim(tmp_path: Path, places: list[Place]) -> None:
    came: Counter[str] = Counter()
    wrong: list[str] = []
    with open_sandbox(tmp_path) as sandbox, Editor(sandbox, before=["set hidden"]) as editor:
        for number, place in enumerate(places):
            (sandbox.project / place.name).write_bytes(place.data)
            editor.open(place.name)
            for name, way in islice(cycle(NEOVIM.items()), number * EACH, (number + 1) * EACH):
                editor.rpc.api.win_set_cursor(0, (place.line, len(place.before.encode())))
                way(editor)
                wait_for_end(editor)
                asked = editor.rpc.exec_lua(WINDOWS) == 2
                if asked:
                    time.sleep(0.3)
                    editor.keys("n")
                    editor.wait(lambda: editor.rpc.exec_lua(WINDOWS) == 1, "the question stays")
                editor.keys("<Esc>")
                data = ("\n".join(editor.lines()) + "\n").encode()
                data = data if place.data.endswith(b"\n") else data[:-1]
                came[f"{name}: {'question' if asked else 'filled' if data != place.data else 'none'}"] += 1
                wrong += [loss(place, name, data)] if gone(place, data) else []
                if data != place.data:
                    editor.rpc.command("edit!")
                    editor.wait(editor.attached, "no server")
            editor.rpc.command("bwipeout!")
    print(f"Neovim, {len(places)} places: {dict(sorted(came.items()))}")
    assert not wrong, "\n".join(wrong)
    assert sum(count for what, count in came.items() if not what.endswith("none")) > 0, "nothing was asked"


def command_of(words: str) -> Callable[[Editor], None]:
    """Return what runs `:DgLsp` with `words`."""
    return lambda editor: editor.rpc.command(f"DgLsp {words}")


def actions(editor: Editor) -> None:
    for title in editor.rpc.exec_lua(ACTIONS)[:1]:
        editor.rpc.exec_lua(ACT, title)


def selected(editor: Editor) -> None:
    editor.keys("^vg_")
    editor.wait(lambda: editor.rpc.api.get_mode()["mode"] == "v", "nothing is selected")
    editor.rpc.exec_lua(ACT, "Rewrite the selection")


def ghost_keys(editor: Editor) -> None:
    editor.keys("i<M-]>")
    wait_for_end(editor)
    editor.keys("<Tab><C-Right><C-Down>")


NEOVIM: dict[str, Callable[[Editor], None]] = {
    **{f"fill {kind}".strip(): command_of(f"fill {kind}") for kind in KINDS},
    "holes": command_of("holes"),
    "fill_all": command_of("fill_all"),
    "action": actions,
    "selection": selected,
    "ghost text": ghost_keys,
}


def wait_for_end(editor: Editor) -> None:
    """Wait until no request runs."""
    running = "for _, c in ipairs(vim.lsp.get_clients()) do if next(c.requests) then return true end end return false"
    editor.wait(lambda: not editor.rpc.exec_lua(running), "a request hangs")
    time.sleep(0.05)
