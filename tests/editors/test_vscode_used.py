"""The counts of a real VS Code equal what was done with ghost text there."""

import json
import time

import pytest

from tests.editors.sandbox import CHROMIUM, NODE, skip_without
from tests.editors.vscode import VSIX, VSCode

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

SAID = "return sum(first, second)"


def offered(code: VSCode, name: str) -> None:
    """Open a file in which SAID is offered, and wait until it is."""
    code.open(name, f"def known(first, second):\n    # says: {SAID}\n    print(first)\n   \n", 4, 4)
    code.type(" ")
    code.ghost(SAID)


def counted(code: VSCode) -> dict[str, int]:
    file = code.sandbox.root / "home/state/dg-lsp/use.json"
    kinds: dict[str, int] = {}
    for models in json.loads(file.read_text())["counts"].values() if file.exists() else []:
        for found in models.values():
            kinds |= {kind: kinds.get(kind, 0) + n for kind, n in found.items()}
    return kinds


def test_the_counts_are_what_was_done(code: VSCode) -> None:
    offered(code, "tab.py")
    code.press("Tab")
    code.until(f"s.before === {('    ' + SAID)!r} || s.rows[3] === {('    ' + SAID)!r}")
    offered(code, "typed.py")
    code.type(SAID)
    code.until(f"s.rows[3] === {('    ' + SAID)!r}")
    offered(code, "words.py")
    # The second press takes a blank, which an extension cannot tell from a typed one.
    for rest in (" sum(first, second)", "sum(first, second)", "(first, second)"):
        code.press("Control+ArrowRight")
        code.ghost(rest)
    code.press("Escape")
    code.until("s.ghost === ''")
    expected = {"shown": 3, "tab": 1, "typed": 1, "word": 2, "dismissed": 1, "taken": 2}
    until = time.monotonic() + 60
    while not expected.items() <= counted(code).items() and time.monotonic() < until:
        time.sleep(0.2)
    found = counted(code)
    assert {kind: found.get(kind) for kind in expected} == expected
    assert found["characters"] == len(SAID) + len("returnsum")
    assert "sum(first" not in (code.sandbox.root / "home/state/dg-lsp/use.json").read_text()


def test_a_text_that_is_dismissed_while_an_answer_is_on_its_way_is_not_shown_again(code: VSCode) -> None:
    before = counted(code)
    waits = range(0, 120, 10)
    for wait in waits:
        offered(code, f"dismissed{wait}.py")
        code.press("Control+ArrowRight", wait)
        code.press("Escape")
        code.until("s.ghost === ''")
    kinds = ("shown", "word", "dismissed")
    until = time.monotonic() + 60
    while (
        counted(code).get("dismissed", 0) < before.get("dismissed", 0) + len(waits)
        and time.monotonic() < until
    ):
        time.sleep(0.2)
    found = counted(code)
    assert {kind: found.get(kind, 0) - before.get(kind, 0) for kind in kinds} == dict.fromkeys(
        kinds, len(waits)
    )
