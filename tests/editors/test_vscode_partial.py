"""Parts of ghost text that are accepted in VS Code: no bracket and no string of them is left without its end."""

import os
from itertools import count

import pytest

from dg_lsp.engine.scripted import END, SAYS
from tests.editors.partial import SUFFIXES, TEXTS, left_open, script
from tests.editors.sandbox import CHROMIUM, NODE, skip_without
from tests.editors.vscode import VSIX, VSCode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

KEYS = {"word": "Control+ArrowRight", "line": "Control+ArrowDown"}
LANGUAGES = ("python", "javascript")
SCRIPTS = int(os.environ.get("DG_LSP_PARTIAL_SCRIPTS", "20"))
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
    code.type(text[0])
    first = text.split("\n", maxsplit=1)[0][1:]
    code.until(f"s.ghost.replaceAll(String.fromCharCode(160), ' ').startsWith({first!r})")
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
            before = code.ask("screen")
            if not before["ghost"]:
                break
            code.press(KEYS[part], wait=150)
            now = written(code, name)
            assert left_open(language, now) == "", (seed, language, parts, now)


def test_all_languages_have_texts() -> None:
    assert set(LANGUAGES) <= set(TEXTS)
