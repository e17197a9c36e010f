"""Ghost text and the menu of jedi-language-server in a real VS Code: while the menu is open, it has Tab and Escape."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.sandbox import CHROMIUM, HERE, NODE, Sandbox, open_sandbox, skip_without
from tests.editors.vscode import VSIX, VSCode, open_vscode

MODULES = VSIX.parent / "node_modules"
ESBUILD = MODULES / ".bin/esbuild"

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX, ESBUILD)]

SERVER = [sys.executable, "-c", "from jedi_language_server.cli import cli; cli()"]
# VS Code selects the entry that agrees with the ghost text, and shows ghost text beside a menu only where one does.
TEXTS = (
    "return first.copy()",
    "first.append(second)",
    "return sum(first.copy())",
    "second.clear()",
    "assert first.count(1) == second.get(1)",
    "print(first.index(1), second.items())",
)
STRANGE = "return first.size"  # no entry agrees with it
CASES = (*TEXTS, STRANGE)


def client(sandbox: Sandbox) -> Path:
    """Return the folder of an extension that is the client of SERVER."""
    folder = sandbox.root / "jedi"
    folder.mkdir()
    shutil.copy(HERE / "jedi/package.json", folder)
    command = [
        *(str(ESBUILD), str(HERE / "jedi/client.js"), "--bundle", "--platform=node", "--external:vscode"),
        *(f"--define:JEDI={json.dumps(SERVER)}", "--log-level=warning", f"--outfile={folder}/extension.js"),
    ]
    subprocess.run(command, env={**os.environ, "NODE_PATH": str(MODULES)}, check=True)
    return folder


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    """The session, whose engine writes what a comment says, beside the language server."""
    with (
        open_sandbox(tmp_path_factory.mktemp("vscode"), "scripted:1:20") as sandbox,
        open_vscode(sandbox, extensions=[client(sandbox)]) as editor,
    ):
        editor.status("ready")
        editor.ask("text", selector=".statusbar-item", wanted="jedi is ready")
        yield editor


def begin(code: VSCode, name: str, text: str) -> str:
    """Open a file in which the engine says `text`; the blanks before it."""
    source = (
        f"def known(first: list, second: dict):\n    # says: {text}\n    print(second)\n   \n\n\nlimit = 1\n"
    )
    code.open(name, source, 4, 4)
    return "    "


@pytest.mark.parametrize("text", CASES)
def test_a_menu_that_opens_on_a_dot_has_tab_until_escape_gives_it_back(code: VSCode, text: str) -> None:
    whole = begin(code, f"dot-{CASES.index(text)}.py", text) + text
    code.type(" ")
    code.until(f"s.whole === {whole!r}")
    code.type(text[: text.index(".") + 1], delay=120)
    code.until(f"s.menu.length && {'!s.ghost' if text == STRANGE else f's.whole === {whole!r}'}")
    code.press("Escape")
    code.until(f"!s.menu.length && s.whole === {whole!r}")
    code.press("Tab")
    code.until(f"s.rows[3] === {whole!r}")


def test_a_menu_that_was_there_first_keeps_tab(code: VSCode) -> None:
    blanks = begin(code, "menu.py", "first.append(second)")
    # Faster than ghost text comes.
    code.type(" first.", delay=0)
    code.until("s.menu.length")
    assert code.press("Tab")["met"]["entry"] == "append"
    code.until(f"s.rows[3] === {(blanks + 'first.append')!r}")
    code.until(f"s.whole === {(blanks + 'first.append(second)')!r} && !s.menu.length")
    code.press("Tab")
    code.until(f"s.rows[3] === {(blanks + 'first.append(second)')!r}")


def test_the_key_of_the_menu_opens_it_beside_ghost_text_and_escape_closes_it_alone(code: VSCode) -> None:
    text = TEXTS[0]
    blanks = begin(code, "key.py", text)
    code.type(" return first.")
    code.press("Escape")
    code.press("Backspace")
    code.press(".")
    code.until("s.menu.length || s.ghost")
    code.press("Escape")
    code.press("Control+Space")
    first = code.until("s.entry")["entry"]
    code.press("ArrowDown")
    entry = code.until(f"s.entry && s.entry !== {first!r}")["entry"]
    code.press("Tab")
    code.until(f"s.rows[3] === {f'{blanks}return first.{entry}'!r}")
