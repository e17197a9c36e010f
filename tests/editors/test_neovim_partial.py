"""Parts of ghost text that are accepted in Neovim: no bracket and no string of them is left without its end."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.editors.nvim import Editor
from tests.editors.partial import SUFFIXES, TEXTS, left_open, pairs, script
from tests.editors.sandbox import NVIM, open_sandbox, skip_without

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

KEYS = {"word": "<C-Right>", "line": "<C-Down>", "whole": "<Tab>"}
SCRIPTS = 200
FILES = count()


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("partial")
    with open_sandbox(folder) as sandbox, Editor(sandbox, {"debounce": 0}, fake=True) as editor:
        yield editor


def begin(editor: Editor, language: str, text: str) -> None:
    """Show the rest of `text` after its first letter is typed."""
    editor.keys("<Esc>")
    editor.rpc.command("%bwipeout!")
    editor.open(f"partial{next(FILES)}.{SUFFIXES[language]}")
    editor.rpc.exec_lua("_G.fake.targets, _G.fake.pairs = { ... }, {}", text)
    editor.rpc.exec_lua("local text, found = ...; _G.fake.pairs[text] = found", text, pairs(language, text))
    editor.rpc.command("set noautoindent nocindent nosmartindent indentexpr= expandtab< undolevels=1000")
    editor.keys("i" + text[0])
    editor.wait(
        lambda: ghost(editor) == text[1:].expandtabs(8), f"not {text[1:]!r} but {ghost(editor)!r} is shown"
    )
    # A key before the screen is drawn is not meant for the ghost text.
    editor.wait(
        lambda: editor.rpc.exec_lua("return require('dg_lsp.suggestion').visible()"), "it is not drawn"
    )


def ghost(editor: Editor) -> str:
    """Return the ghost text, as it is drawn, without what is in the buffer between its stretches."""
    return str(
        editor.rpc.exec_lua(
            """local found = {}
            local space = vim.api.nvim_get_namespaces()["dg_lsp.suggestion"]
            for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
              local lines = { mark[4].virt_text[1][1] }
              for _, line in ipairs(mark[4].virt_lines or {}) do table.insert(lines, line[1][1]) end
              table.insert(found, table.concat(lines, "\\n"))
            end
            return table.concat(found, "|")"""
        )
    )


def test_no_part_leaves_a_bracket_or_a_string_open(editor: Editor) -> None:
    for seed in range(SCRIPTS):
        language, text, parts = script(seed)
        begin(editor, language, text)
        for part in parts:
            if not ghost(editor):
                break
            editor.keys(KEYS[part])
            now = "\n".join(editor.lines())
            assert left_open(language, now) == "", (language, parts, now)
        if ghost(editor):
            editor.keys(KEYS["whole"])
        assert "\n".join(editor.lines()) == text, (language, parts)


@pytest.mark.parametrize(
    ("text", "keys", "lines", "shown"),
    [
        ('p("a", b)', "<C-Right>", ['p("")'], "a|, b"),
        ('p("a", b)', "<C-Right><C-Right>", ['p("a")'], ", b"),
        ('p("a", b)', "<C-Right>" * 3, ['p("a",)'], " b"),
        ("if f(a):\n    g(b)\nh()", "<C-Down>", ["if f(a):"], "\n    g(b)\nh()"),
        ("v = [\n    a,\n    b,\n]", "<C-Down>", ["v = [", "]"], "\n    a,\n    b,"),
        ("v = [\n    a,\n][0]", "<C-Down><C-Down>", ["v = [", "    a,", "]"], "[0]"),
    ],
)
def test_what_is_left_is_drawn_around_the_closers(
    editor: Editor, text: str, keys: str, lines: list[str], shown: str
) -> None:
    begin(editor, "python", text)
    editor.keys(keys)
    editor.wait(
        lambda: editor.lines() == lines and ghost(editor) == shown, f"{editor.lines()}, {ghost(editor)!r}"
    )


def test_a_part_with_its_closers_is_one_undo_step(editor: Editor) -> None:
    begin(editor, "python", 'p("a", b)')
    editor.keys("<C-Right><C-Right>")
    editor.wait(lambda: editor.lines() == ['p("a")'], f"{editor.lines()}")
    editor.keys("<Esc>u")
    assert editor.lines() == ['p("")']
    editor.keys("u")
    assert editor.lines() == ["p"]


def test_typing_goes_on_between_the_closers(editor: Editor) -> None:
    begin(editor, "python", 'p("a", b)')
    editor.keys("<C-Right>")
    editor.keys("a")
    editor.wait(lambda: (editor.lines(), ghost(editor)) == (['p("a")'], ", b"), f"{editor.lines()}")
    editor.keys("x")
    editor.wait(lambda: (editor.lines(), ghost(editor)) == (['p("ax")'], ""), f"{editor.lines()}")


def test_ghost_text_stays_where_a_plug_in_closes_brackets(editor: Editor) -> None:
    begin(editor, "python", 'p("a", b)')
    editor.rpc.exec_lua("vim.keymap.set('i', '(', '()<Left>')")
    editor.keys("(")
    editor.wait(
        lambda: (editor.lines(), ghost(editor)) == (["p()"], '"a", b'), f"{editor.lines()} {ghost(editor)}"
    )
    editor.rpc.exec_lua("vim.keymap.del('i', '(')")
    editor.keys("<Tab>")
    assert editor.lines() == ['p("a", b)']


def test_texts_are_balanced() -> None:
    assert not any(left_open(language, text) for language, texts in TEXTS.items() for text in texts)
    assert sum(len(pairs(language, text)) for language, texts in TEXTS.items() for text in texts) > 80
