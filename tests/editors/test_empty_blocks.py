"""An empty block in both editors: the cursor goes into it once it is accepted, and ghost text continues there."""

from collections.abc import Iterator

import pytest

from tests.editors.nvim import Editor
from tests.editors.sandbox import CHROMIUM, NODE, NVIM, open_sandbox, skip_without
from tests.editors.vscode import VSIX, VSCode

pytestmark = pytest.mark.slow
in_neovim, in_vscode = skip_without(NVIM), skip_without(NODE, CHROMIUM, VSIX)

HEAD = ["function known(first: number) {", "  // says: if (first) {⏎}"]
TAIL = ["  return first;", "}"]
BLOCK = ["  if (first) {", "    ", "  }"]
ROW = len(HEAD)  # where the block begins
INSIDE = ROW + 1  # the row of the line for the cursor
# Text that is taken whole, by lines, and by words.
NEOVIM = {"<Tab>": 1, "<C-Down>": 3, "<C-Right>": 12}
VSCODE = {"Tab": 1, "Control+ArrowDown": 3, "Control+ArrowRight": 12}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with open_sandbox(tmp_path_factory.mktemp("neovim")) as sandbox, Editor(sandbox) as editor:
        editor.open("blocks.ts")
        editor.rpc.command("set undolevels=1000")
        yield editor


@pytest.fixture
def editor(shared: Editor) -> Editor:
    """The editor with the block as ghost text."""
    shared.keys("<Esc>")
    shared.rpc.command("setlocal expandtab autoindent indentexpr= indentkeys=")
    shared.rpc.current.buffer[:] = [*HEAD, " ", *TAIL]
    shared.keys(f"{ROW + 1}GA ")
    shared.wait(lambda: shared.sight().ghost == "if (first) {\n\n  }", "no ghost text")
    return shared


def holds(editor: Editor, *block: str) -> None:
    wanted = [*HEAD, *block, *TAIL]
    editor.wait(lambda: editor.lines() == wanted, f"the buffer holds {editor.lines()}", 20)


def is_inside(editor: Editor) -> None:
    place = (INSIDE, len(BLOCK[1]))
    editor.wait(lambda: (editor.sight().row, editor.sight().col) == place, f"{editor.sight()}", 20)


def take(editor: Editor, key: str) -> None:
    """Press a key until all is taken."""
    for _ in range(NEOVIM[key]):
        before = editor.lines(), editor.rpc.eval("getpos('.')")
        editor.keys(key)
        editor.wait(
            lambda: (editor.lines(), editor.rpc.eval("getpos('.')")) != before,  # noqa: B023
            "nothing was taken",
            20,
        )
        if editor.lines() == [*HEAD, *BLOCK, *TAIL]:
            break


@in_neovim
@pytest.mark.parametrize("key", NEOVIM)
def test_the_cursor_of_neovim_goes_into_an_empty_block(editor: Editor, key: str) -> None:
    take(editor, key)
    holds(editor, *BLOCK)
    is_inside(editor)
    # There is ghost text there: what the comment says, once more.
    editor.wait(lambda: (editor.sight().ghost or "").startswith("if (first) {"), "no ghost text inside", 20)
    editor.keys("first();")
    holds(editor, BLOCK[0], "    first();", BLOCK[2])


@in_neovim
def test_undo_takes_back_what_was_written_in_the_block_and_then_the_block(editor: Editor) -> None:
    take(editor, "<Tab>")
    is_inside(editor)
    editor.keys("first();<Esc>")
    holds(editor, BLOCK[0], "    first();", BLOCK[2])
    editor.keys("u")
    holds(editor, *BLOCK)
    editor.keys("u")
    holds(editor, "  ")
    editor.keys("<C-r><C-r>")
    holds(editor, BLOCK[0], "    first();", BLOCK[2])


@in_neovim
def test_the_dot_repeats_what_was_written_in_the_block(editor: Editor) -> None:
    take(editor, "<Tab>")
    is_inside(editor)
    editor.keys("first();<Esc>.")
    holds(editor, BLOCK[0], "    first()first();;", BLOCK[2])


@in_neovim
def test_the_dot_repeats_a_block_in_which_nothing_was_written(editor: Editor) -> None:
    take(editor, "<Tab>")
    is_inside(editor)
    editor.keys(f"<Esc>{INSIDE + 2}Go<Esc>")
    editor.keys("u")
    holds(editor, *BLOCK)


def show(code: VSCode, name: str) -> None:
    """Open a file in which the block is shown as ghost text."""
    code.open(name, "\n".join([*HEAD, " ", *TAIL, ""]), ROW + 1, 2)
    code.type(" ")
    code.until("s.ghost === 'if (first) {' && s.more.includes('}')")


def saved(code: VSCode, name: str) -> list[str]:
    """The lines of the gap in the saved file."""
    lines = code.saved(name).decode().split("\n")
    return lines[ROW : lines.index(TAIL[0])]


@in_vscode
@pytest.mark.parametrize("key", VSCODE)
def test_the_cursor_of_vs_code_goes_into_an_empty_block(code: VSCode, key: str) -> None:
    name = f"{key.removeprefix('Control+Arrow')}.ts"
    show(code, name)
    for _ in range(VSCODE[key]):
        rows = code.press(key, wait=100)["now"]["rows"]
        if "  }" in rows[ROW + 1 :]:
            break
    code.at(INSIDE + 1, len(BLOCK[1]) + 1)
    # There is ghost text there: what the comment says, once more.
    code.until(f"s.row === {INSIDE} && s.ghost.startsWith('if (first) {{')")
    assert saved(code, name) == BLOCK
    code.type("first();")
    assert saved(code, name) == [BLOCK[0], "    first();", BLOCK[2]]


@in_vscode
def test_one_undo_takes_back_the_block(code: VSCode) -> None:
    show(code, "undone.ts")
    code.press("Tab")
    code.at(INSIDE + 1, len(BLOCK[1]) + 1)
    code.press("Control+z")
    code.until(f"!s.rows.includes({BLOCK[2]!r})")
    assert saved(code, "undone.ts") == ["  "]
