"""Parts of ghost text that are accepted in VS Code: no bracket and no string of them is left without its end."""

import os
import time
from itertools import count

import pytest

from dg_lsp.engine.scripted import END, SAYS
from tests.editors.partial import SUFFIXES, left_open, script
from tests.editors.sandbox import CHROMIUM, NODE, skip_without
from tests.editors.vscode import VSIX, VSCode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

KEYS = {"word": "Control+ArrowRight", "line": "Control+ArrowDown"}
# How ghost text ends: dismissed, left, disagreed with, taken back, taken.
ENDS = ("Escape", "ArrowLeft", "x", "Backspace", "Tab")
LANGUAGES = ("python", "javascript")
SCRIPTS = int(os.environ.get("DG_LSP_PARTIAL_SCRIPTS", "10"))
ATTEMPTS = 3
FILES = count()


@pytest.fixture(scope="module", autouse=True)
def _closing(code: VSCode) -> None:
    code.settings(
        **{"editor.autoClosingBrackets": "languageDefined", "editor.autoClosingQuotes": "languageDefined"}
    )


def begin(code: VSCode, language: str, text: str) -> str:
    """Show the rest of `text` after its first letter is typed in the last line of a file; return the file's name."""
    name = f"partial{next(FILES)}.{SUFFIXES[language]}"
    comment = "#" if language == "python" else "//"
    head = f"{comment} {SAYS}{text.replace(chr(10), END)}\n"
    code.open(name, head + "\n", 2, 1)
    first = text.split("\n", maxsplit=1)[0][1:]
    for left in reversed(range(ATTEMPTS)):
        code.type(text[0])
        try:
            code.until(f"s.ghost.replaceAll(String.fromCharCode(160), ' ').startsWith({first!r})", 10_000)
        except AssertionError:
            if not left:
                raise
            # On a busy machine a window does not always draw what it got.
            code.press("Backspace")
        else:
            break
    return name


def written(code: VSCode, name: str) -> str:
    """Return what follows the first line of the file."""
    return code.saved(name).decode().split("\n", 1)[1].removesuffix("\n")


def test_no_part_leaves_a_bracket_or_a_string_open(code: VSCode) -> None:
    played, seed = 0, 0
    while played < SCRIPTS:
        language, text, parts = script(seed)
        seed += 1
        if language not in LANGUAGES:
            continue
        played += 1
        name = begin(code, language, text)
        for part in parts:
            if not code.ask("screen")["ghost"]:
                break
            code.press(KEYS[part], wait=100)
        end = ENDS[played % len(ENDS)]
        if not code.ask("screen")["ghost"]:
            # All of it, or the lines that were shown before more could grow below them.
            assert text.startswith(written(code, name).rstrip()), (seed, language, parts)
        elif end == "x":
            code.type("x")
        else:
            code.press(end)
        until, now = time.monotonic() + 5, ""
        while time.monotonic() < until and (now == "" or left_open(language, now)):
            now = written(code, name)
        assert left_open(language, now) == "", (seed, language, parts, end, now)
        assert end != "Tab" or text.startswith(now), (seed, language, parts, now)


def test_the_closers_are_a_part_of_the_last_change_and_come_once(code: VSCode) -> None:
    text = 'total = sorted(hits, key=f("a"))[:first]'
    begin(code, "python", text)
    for _ in range(5):
        code.press(KEYS["word"], wait=100)
    code.ghost('hits, key=f("a"))[:first]')
    code.press("Escape")
    code.until("s.rows[1] === 'total = sorted()'")
    code.type("x")
    code.until("s.rows[1] === 'total = sorted(x)'")
    code.press("Control+z")
    code.press("Control+z")
    code.until("s.rows[1] === 'total = sorted'")


def test_keys_right_after_the_end_of_ghost_text_are_written_before_the_closers(code: VSCode) -> None:
    for _ in range(4):
        begin(code, "python", 'total = sorted(hits, key=f("a"))[:first]')
        for _ in range(5):
            code.press(KEYS["word"], wait=100)
        code.ghost('hits, key=f("a"))[:first]')
        code.press("Escape", wait=0)
        code.type("xyz")
        code.until(
            "s.rows[1].trimEnd().startsWith('total = sorted(xyz') && s.rows[1].trimEnd().endsWith(')')"
        )


def test_a_closer_that_is_typed_is_not_put_there_again(code: VSCode) -> None:
    begin(code, "python", 'total = sorted(hits, key=f("a"))[:first]')
    for _ in range(5):
        code.press(KEYS["word"], wait=100)
    code.type(")")
    code.type(" ")
    code.until("s.rows[1].startsWith('total = sorted() ')")
    time.sleep(0.5)
    assert code.ask("screen")["rows"][1].rstrip() == "total = sorted()"


def test_nothing_is_closed_where_the_editor_closes_nothing(code: VSCode) -> None:
    code.settings(**{"editor.autoClosingBrackets": "never"})
    name = begin(code, "python", 'total = sorted(hits, key=f("a"))[:first]')
    for _ in range(5):
        code.press(KEYS["word"], wait=100)
    code.press("Escape", wait=500)
    assert written(code, name) == "total = sorted("
