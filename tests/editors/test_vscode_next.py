"""The next edit in a real VS Code: it is marked, Tab goes there and makes it, Escape leaves it; in nobody's way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.sandbox import CHROMIUM, NODE, open_sandbox, skip_without
from tests.editors.vscode import VSIX, VSCode, open_vscode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

MEMBERS = Path(__file__).parent / "members"
SNIPPET = {
    "key": "ctrl+alt+s",
    "command": "editor.action.insertSnippet",
    "args": {"snippet": "max($1, $2)"},
}
# No ghost text and no menu but on request.
QUIET = {"automatic": False, "editor.quickSuggestions": "off", "editor.suggestOnTriggerCharacters": False}
TEXT = "def area(width, height):\n    size = width * height\n    {}print(size)\n    return size\n"
SHORT, LONG = TEXT.format(""), TEXT.format("".join(f"width += {n}\n    " for n in range(100)))


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    """The session, without ghost text but where a test wants it, beside a language server's menu."""
    with (
        open_sandbox(tmp_path_factory.mktemp("vscode")) as sandbox,
        open_vscode(sandbox, keys=[SNIPPET], extensions=[MEMBERS]) as editor,
    ):
        editor.status("ready")
        yield editor


def renamed(code: VSCode, name: str, text: str = SHORT, **settings: object) -> None:
    """Open a file and give the variable of its second line another name."""
    code.settings(**{**QUIET, **settings})
    code.open(name, text, 2, 9)
    code.press("Control+Shift+ArrowLeft")
    code.type("total", delay=40)


def lines(code: VSCode, name: str) -> list[str]:
    return code.saved(name).decode().split("\n")


def test_tab_goes_to_each_place_and_makes_the_edit_and_one_undo_takes_back_one(code: VSCode) -> None:
    renamed(code, "tab.py")
    code.drawn("total", row=2)
    code.press("Tab")
    code.at(3, 11)
    code.shot("next-edit")
    code.press("Tab")
    code.until("s.rows[2] === '    print(total)'")
    code.at(3, 16)
    code.drawn("total", row=3)
    code.press("Tab")
    code.at(4, 12)
    code.press("Tab")
    code.until("s.rows[3] === '    return total'")
    code.ask("drawn", text="total", gone=True)
    assert lines(code, "tab.py") == SHORT.replace("size", "total").split("\n")
    code.press("Control+z")
    code.until("s.rows[3] === '    return size' && s.rows[2] === '    print(total)'")


def test_escape_leaves_a_place_for_good_and_where_it_was_looked_at_the_next_one_comes(code: VSCode) -> None:
    renamed(code, "escape.py")
    code.drawn("total", row=2)
    code.press("Tab")
    code.at(3, 11)
    code.press("Escape")
    code.drawn("total", row=3)
    code.press("Tab")
    code.at(4, 12)
    code.press("Escape")
    code.ask("drawn", text="total", gone=True)
    assert lines(code, "escape.py") == SHORT.replace("size", "total", 1).split("\n")


def test_a_place_out_of_sight_is_named_at_the_edge_of_the_window(code: VSCode) -> None:
    renamed(code, "edge.py", LONG)
    code.drawn("line\u00a0103")
    code.shot("next-edit-below")
    code.press("Tab")
    code.at(103, 11)
    code.ask("drawn", text="line\u00a0103", gone=True)
    code.drawn("total")
    code.ask("line", line=30, column=10)
    code.drawn("line\u00a0103")


def test_a_place_in_another_open_file_is_named_and_tab_opens_it(code: VSCode) -> None:
    other = "from shapes import area\n\nprint(area(1, 2))\n"
    code.settings(**QUIET)
    code.open("uses.py", other)
    code.open("shapes.py", SHORT, 1, 9)
    code.press("Control+Shift+ArrowLeft")
    code.type("surface", delay=40)
    code.drawn("uses.py")
    # With the whole word: the place is marked for a part of it, too, until the next key.
    code.drawn("surface")
    code.press("Tab")
    code.ask("text", selector=".tab.active", wanted="uses.py")
    code.drawn("surface")
    code.press("Tab")
    code.until("s.rows.some((row) => row.includes('surface'))")


def test_it_is_off_by_its_setting(code: VSCode) -> None:
    renamed(code, "off.py", nextEdit=False)
    code.press("Tab", wait=600)
    code.until("/^    total\\s{3,} = /.test(s.rows[1])")
    code.ask("drawn", text="total", gone=True)


def test_the_menu_of_completions_keeps_tab_and_escape(code: VSCode) -> None:
    renamed(code, "menu.py")
    code.drawn("total")
    code.press("Control+Space")
    code.until("s.menu.length")
    code.press("Escape")
    code.until("!s.menu.length")
    code.drawn("total")
    code.press("Control+Space")
    entry = code.until("s.entry")["entry"]
    code.press("Tab")
    code.until(f"s.rows[1].startsWith({f'    {entry} = '!r})")


def test_ghost_text_keeps_tab(code: VSCode) -> None:
    renamed(code, "keeps.py", SHORT + "\n\ndef other():\n    other =\n")
    code.drawn("total")
    code.ask("line", line=8, column=12)
    code.command("Offer Several Fills Here")
    ghost = code.until("s.ghost")["ghost"]
    code.press("Tab")
    code.until(f"s.rows[7] === {('    other =' + ghost)!r}")


def test_tab_indents_before_a_line_and_goes_on_in_a_snippet(code: VSCode) -> None:
    renamed(code, "indents.py", SHORT + "\n\n")
    code.drawn("total")
    code.ask("line", line=6)
    code.press("Tab")
    code.until("s.rows[5] === '    '")
    renamed(code, "snippet.py")
    code.drawn("total")
    code.press("Control+Alt+s")
    code.press("Tab")
    code.type("1")
    code.until("s.rows[1].includes('max(, 1)')")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_saved_file_is_right_to_the_byte(code: VSCode, ending: str) -> None:
    name = f"bytes{len(ending)}.py"
    renamed(code, name, SHORT.replace("\n", ending))
    for line, column in ((3, 11), (4, 12)):
        code.drawn("total", row=line - 1)
        code.press("Tab")
        code.at(line, column)
        code.press("Tab")
        code.until(f"s.rows[{line - 1}].includes('total')")
    assert code.saved(name).decode() == SHORT.replace("size", "total").replace("\n", ending)
