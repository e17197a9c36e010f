"""Ghost text and the menu of a language server in a real VS Code: while the menu is open, Tab and Escape are for it.

The menu is that of `members/`, which answers as a language server does.
"""

from collections.abc import Iterator

import pytest

from tests.editors.sandbox import CHROMIUM, HERE, NODE, open_sandbox, skip_without
from tests.editors.vscode import VSIX, VSCode, open_vscode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

SERVER = HERE / "members"
TEXTS = (
    "return first.size",
    "first.values.append(second)",
    "return sum(one.size for one in second)",
    "second.clear()",
    "assert first.values == second.values",
    "print(first.size, second.size)",
)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    """The session, whose engine has in mind what a comment says, beside the other extension."""
    with (
        open_sandbox(tmp_path_factory.mktemp("vscode"), "scripted:1:20") as sandbox,
        open_vscode(sandbox, extensions=[SERVER]) as editor,
    ):
        editor.status("ready")
        yield editor


def begin(code: VSCode, name: str, text: str) -> str:
    """Open a file in which the engine says `text`; the blanks before it."""
    source = (
        f"def known(first: list, second: dict):\n    # says: {text}\n    print(second)\n   \n\n\nlimit = 1\n"
    )
    code.open(name, source, 4, 4)
    return "    "


@pytest.mark.parametrize("text", TEXTS)
def test_a_menu_that_opens_on_a_dot_has_tab_until_escape_gives_it_back(code: VSCode, text: str) -> None:
    whole = begin(code, f"dot-{TEXTS.index(text)}.py", text) + text
    code.type(" ")
    code.until(f"s.whole === {whole!r}")
    code.type(text[: text.index(".") + 1], delay=120)
    code.until(f"s.menu.length && s.whole === {whole!r}")
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
