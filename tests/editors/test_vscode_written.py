"""Written code in a real VS Code is replaced, and an unsure fill taken, only once a person has seen the change."""

from collections.abc import Callable

import pytest

from tests.editors.sandbox import CHROMIUM, NODE, skip_without
from tests.editors.vscode import LEAVE, QUESTION, TAKE, VSIX, VSCode, answer, press_button

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]


# A function and the line of its body at which the fill is asked for.
WRITTEN = {
    "lines.py": ("def add(first, second):\n    total = first\n    total += second\n    return total\n", 3),
    "comment.py": ("def add(first, second):\n    # add them\n    return first + second\n", 3),
    "method.py": (
        "class Cart:\n    def add(self, item):\n        self.items.append(item)\n        return self\n",
        3,
    ),
    "crlf.py": ("def add(first, second):\r\n    return first + second\r\n", 2),
    "body.ts": ("function add(first: number, second: number) {\n  return first + second;\n}\n", 2),
    "body.rs": ("fn add(first: i32, second: i32) -> i32 {\n    let sum = first + second;\n    sum\n}\n", 2),
}
UNSURE = ("def doubtful(first, second):\n    raise NotImplementedError\n", 2)


def key(code: VSCode) -> None:
    code.press("Control+Alt+g")
    code.press("b")


def command(code: VSCode) -> None:
    code.command("dg-lsp: Fill This Function Body")


def light_bulb(code: VSCode) -> None:
    code.ask("act", title="this function body")


WAYS: tuple[Callable[[VSCode], None], ...] = (key, command, light_bulb)


def begin(code: VSCode, way: Callable[[VSCode], None], name: str, place: tuple[str, int]) -> bytes:
    """Ask for a fill and wait for the question; the file on the disk."""
    text, line = place
    code.open(name, text, line, 5)
    way(code)
    code.ask("text", selector=".tab.active", wanted=QUESTION)
    code.message("dg-lsp: ")
    return text.encode()


PLACES = [(key, name) for name in WRITTEN] + [
    (way, name) for way in WAYS[1:] for name in ("lines.py", "body.ts")
]


@pytest.mark.parametrize(("way", "name"), PLACES)
def test_what_is_written_is_left_byte_for_byte_and_no_enter_takes_it(
    code: VSCode, way: Callable[[VSCode], None], name: str
) -> None:
    before = begin(code, way, f"{way.__name__}-{name}", WRITTEN[name])
    assert "written line" in code.message("dg-lsp: this replaces")
    for stray in ("Enter", "Tab", "Space"):
        code.press(stray)
    code.status("ready")  # the two texts are no document that dg-lsp is off for
    answer(code, LEAVE)
    code.ask("gone", selector=".tab.dirty", text="")
    assert (code.sandbox.project / f"{way.__name__}-{name}").read_bytes() == before
    code.type("7")
    assert code.saved(f"{way.__name__}-{name}").replace(b"7", b"") == before, (
        "the editor's text is the old one"
    )
    code.why("last fill asked for: left as it was")


@pytest.mark.parametrize("way", WAYS)
def test_an_unsure_fill_says_so_and_is_left_or_taken(code: VSCode, way: Callable[[VSCode], None]) -> None:
    name = f"unsure-{way.__name__}.py"
    before = begin(code, way, name, UNSURE)
    assert "unsure: right with 4 %" in code.message("dg-lsp: unsure")
    answer(code, LEAVE)
    assert code.saved(name) == before
    way(code)
    answer(code, TAKE)
    code.ask("dirty")
    assert code.saved(name) == before.replace(b"raise NotImplementedError", b"return None")
    code.press("Control+z")
    code.ask("dirty")
    assert code.saved(name) == before


@pytest.mark.parametrize("name", ["lines.py", "crlf.py", "body.rs"])
def test_what_is_taken_is_one_undo(code: VSCode, name: str) -> None:
    before = begin(code, key, f"taken-{name}", WRITTEN[name])
    code.shot(f"asked-{name}")
    code.press("Control+Enter")
    code.ask("gone", selector=".tab", text=QUESTION)
    code.ask("dirty")
    assert b"return None" in code.saved(f"taken-{name}")
    code.press("Control+z")
    code.ask("dirty")
    assert code.saved(f"taken-{name}") == before


@pytest.mark.parametrize("by", ["Escape", "closing"])
def test_escape_and_closing_the_two_sides_leave_it(code: VSCode, by: str) -> None:
    name = f"closed-{by}.py"
    before = begin(code, key, name, WRITTEN["lines.py"])
    if by == "closing":
        code.ask("click", selector=".tab.active .tab-actions .action-label")
    else:
        code.press(by)
    code.ask("gone", selector=".tab", text=QUESTION)
    code.why("last fill asked for: left as it was")
    assert code.saved(name) == before


def test_the_preferred_action_does_not_touch_what_is_written(code: VSCode) -> None:
    text, line = WRITTEN["lines.py"]
    code.open("preferred.py", text, line, 5)
    code.press("Shift+Alt+.", wait=2000)
    assert code.saved("preferred.py") == text.encode()


def test_a_change_meanwhile_takes_nothing(code: VSCode) -> None:
    before = begin(code, key, "meanwhile.py", WRITTEN["lines.py"])
    code.ask("click", selector=".tab:not(:has-text('↔'))", text="meanwhile.py")
    code.press("Control+Home")
    code.type("7")
    code.ask("dirty")
    press_button(code, TAKE)
    code.message("the document changed meanwhile, so nothing was filled")
    assert code.saved("meanwhile.py") == b"7" + before
