"""A word that is typed while its fill is made, in each editor: one fill is made, whose text comes before the word ends.

Once it is there it stays.
"""

import asyncio
import time
from collections.abc import Sequence

import pytest

from dg_lsp.engine.resident import ResidentEngine
from dg_lsp.messages import Status
from dg_lsp.settings import Settings
from tests.editors.nvim import Editor
from tests.editors.sandbox import CHROMIUM, NODE, NVIM, Sandbox, skip_without
from tests.editors.vscode import VSIX, open_vscode
from tests.waiting import wait_until

SLOW = "scripted:20:20"  # 0.4 s a fill, in which some letters are typed
PACE = 120  # ms from one key to the next
WORD, REST = "total_of_the_two_of_them", " = sum(first, second)"
ROW = 2
SOURCE = f"def known(first, second):\n    # says: {WORD}{REST}\n   \n"

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("sandbox", [SLOW], indirect=True)]


def status(sandbox: Sandbox) -> Status:
    """The status of the sandbox's engine."""

    async def ask() -> Status | None:
        engine = ResidentEngine(Settings(checkpoint=SLOW))
        try:
            return await engine.status()
        finally:
            await engine.close()

    with pytest.MonkeyPatch.context() as patch:
        for name, value in sandbox.environment.items():
            patch.setenv(name, value)
        return asyncio.run(ask()) or Status("starting")


def is_ready(sandbox: Sandbox) -> bool:
    return status(sandbox).state == "ready"


def check(sandbox: Sandbox, before: int, shown: Sequence[tuple[str, str]]) -> None:
    """Check the rows that were seen, each as on the screen and in the buffer, and the fills made since `before`."""
    whole = "    " + WORD + REST
    first = next((n for n, (row, _) in enumerate(shown) if row == whole), len(shown))
    assert not [row for row, _ in shown[first:] if row != whole]
    assert shown[first][1] < f"    {WORD}"
    assert status(sandbox).fills - before == 1


@skip_without(NVIM)
def test_a_word_typed_in_neovim_takes_one_fill(sandbox: Sandbox) -> None:
    (sandbox.project / "word.py").write_text(SOURCE)
    with Editor(sandbox, before=["set noautoindent indentexpr="]) as editor:
        editor.open("word.py")
        wait_until(lambda: is_ready(sandbox))
        before = status(sandbox).fills
        editor.keys("GA")
        with editor.sampled() as seen:
            for key in f" {WORD}":
                editor.keys(key)
                time.sleep(PACE / 1000)
            editor.wait(lambda: editor.screen_line() == f"    {WORD}{REST}", "no ghost text")
    check(sandbox, before, [(sight.rows[ROW], sight.lines[ROW]) for sight in seen if sight.fresh])


@skip_without(NODE, CHROMIUM, VSIX)
def test_a_word_typed_in_vscode_takes_one_fill(sandbox: Sandbox) -> None:
    with open_vscode(sandbox, user={"editor.quickSuggestions": False}) as code:
        code.status("ready")
        code.open("word.py", SOURCE, ROW + 1, 4)
        before = status(sandbox).fills
        events = code.ask("play", keys=[(key, PACE) for key in f" {WORD}"], done=f"    {WORD}")
        code.ghost(REST)
        check(sandbox, before, [(event["whole"], event["before"]) for event in events])
