"""Text typed at human speed into a real Neovim, with an engine of 0.6 seconds: no stale ghost text."""

import itertools
import os
import random
import time

import pytest

from tests.editors.nvim import Editor, Sight
from tests.editors.sandbox import NVIM, Sandbox, skip_without

pytestmark = [pytest.mark.slow, skip_without(NVIM)]

TYPED, EVERY, ALLOWED = 32, 20, 0.2  # lines, milliseconds, seconds
# The scripted engine says None. Some lines agree with that for a while, and some do not.
LINES = (
    "total = None",
    "count = Nothing",
    "x = 1",
    "return first",
    "name = Nonsense",
    "print(first)",
    "value = -1",
)


# Keep each answer of the server: the line's text before the cursor when it was asked for, and the texts offered.
RECORD = """
_G.answers = {}
local server = require("dg_lsp.server")
local request = server.request
server.request = function(client, method, params, handler, buf)
  local before = vim.api.nvim_get_current_line():sub(1, params.position and params.position.character or 0)
  return request(client, method, params, function(err, result, ...)
    for _, item in ipairs(method == "textDocument/inlineCompletion" and result and result.items or {}) do
      table.insert(_G.answers, before .. item.insertText)
    end
    return handler(err, result, ...)
  end, buf)
end
"""


def agrees(sight: Sight, answers: set[str]) -> bool:
    """Return whether the screen shows the buffer, and at the cursor nothing or the rest of an offer."""
    if not sight.fresh:
        return True  # the screen is about to be drawn
    if sight.ghost is None:
        return False
    return not sight.ghost or (sight.before + sight.ghost).rstrip() in answers


def last(editor: Editor) -> Sight:
    """The newest sight of those that are collected."""
    return Sight(**editor.rpc.exec_lua("return _G.samples[#_G.samples] or _G.sight()"))


@pytest.mark.parametrize("sandbox", ["scripted:6:100"], indirect=True)
def test_no_stale_ghost_text_while_one_types(sandbox: Sandbox) -> None:
    chance = random.Random(7)
    with Editor(sandbox, before=["set noautoindent indentexpr="]) as editor:
        editor.open("ghost.py")
        editor.rpc.exec_lua(RECORD)
        editor.keys("GA" + "total = ")
        editor.wait(lambda: editor.screen_line() == "    total = None", "no ghost text")
        editor.rpc.command("setlocal indentexpr= indentkeys=")
        with editor.sampled(EVERY) as seen:
            for number in range(TYPED):
                # At every fourth line somebody thinks until there is ghost text, and goes on through it.
                line, thinks = (chance.choice(LINES), False) if number % 4 else (LINES[0], True)
                editor.keys("<Esc>cc")
                for at, character in enumerate(line):
                    if thinks and at == len("total = "):
                        editor.wait(lambda: last(editor).ghost == "None", "no ghost text")
                    editor.keys(character)
                    time.sleep(chance.gauss(0.08, 0.02))
        answers = {answer.rstrip() for answer in editor.rpc.exec_lua("return _G.answers")}
    wrong = [sight for sight in seen if not agrees(sight, answers)]
    shown = [sight for sight in seen if sight.ghost]
    print(f"{TYPED} lines, {len(seen)} sights, ghost text in {len(shown)}, {len(wrong)} wrong")
    assert len(wrong) * EVERY / 1000 <= ALLOWED, [(s.before, s.ghost, s.rows[s.row]) for s in wrong[:10]]


HEAD = ("def known(first, second):",)
GROWN = ["share = first", "    hits = second", "    return share, hits"]


@pytest.mark.parametrize("sandbox", ["scripted:4:40"], indirect=True)
def test_shown_text_grows_and_stays_on_the_screen(sandbox: Sandbox) -> None:
    says, then = "# says: share = first", "# then: hits = second⏎return share, hits"
    with Editor(sandbox, before=["set noautoindent indentexpr="]) as editor:
        editor.open("grows.py")
        editor.rpc.command("%d | setlocal indentexpr= indentkeys=")
        editor.rpc.exec_lua(
            "vim.api.nvim_buf_set_lines(0, 0, -1, false, { ... })", *HEAD, f"    {says}", f"    {then}", ""
        )
        with editor.sampled(EVERY) as seen:
            editor.keys("GA    ")
            editor.wait(lambda: last(editor).ghost == "\n".join(GROWN), "it does not grow")
        shown = [sight.ghost for sight in seen if sight.fresh]
        begun = [ghost or "" for ghost in shown[next(at for at, ghost in enumerate(shown) if ghost) :]]
        wrong = [
            (before, after) for before, after in itertools.pairwise(begun) if not after.startswith(before)
        ]
        assert not wrong, wrong
        assert GROWN[0] in begun
        # The line, and then all.
        editor.keys("<C-Down>")
        editor.wait(lambda: editor.lines()[-1] == "    " + GROWN[0], "the line was not taken")
        editor.keys("<Tab>")
        editor.wait(lambda: editor.lines()[3:] == ["    " + GROWN[0], *GROWN[1:]], "not all was taken")


SCRIPTS = int(os.environ.get("DG_LSP_SCRIPTS", "12"))
ALL = "\n".join(GROWN)
ACCEPTS = {"word": "<C-Right>", "line": "<C-Down>", "all": "<Tab>"}
PRESSED = ("agree", "agree", "agree", "word", "line", "all", "other", "look", "look", "look")
ABOVE = 3  # lines above the gap


def written(sight: Sight) -> str:
    """The text from the beginning of the gap to the cursor."""
    return "\n".join([*sight.lines[ABOVE : sight.row], sight.before]).removeprefix("    ")


def breaks(before: Sight, after: Sight) -> bool:
    """Return whether text that `before` shows has changed, or has gone though what was written since agrees with it."""
    whole, now = written(before) + (before.ghost or ""), written(after) + (after.ghost or "")
    agrees = whole.startswith(written(after)) and len(written(after)) >= len(written(before))
    return bool(before.ghost) and agrees and not now.startswith(whole)


def pressed(editor: Editor, key: str, chance: random.Random) -> str:
    """Press a key; return the text that it certainly writes, "" where it takes ghost text."""
    rest = ALL[len(written(last(editor))) :].lstrip("\n ") if key == "agree" else ""
    if key in ACCEPTS and last(editor).ghost:
        editor.keys(ACCEPTS[key])
        return ""
    if key == "look":
        time.sleep(chance.choice((0.1, 0.3, 0.6)))
        return ""
    letter = rest[:1] if rest[:1].strip() else chance.choice("xyz")
    editor.keys(letter)
    return letter


@pytest.mark.parametrize("sandbox", ["scripted:3:20"], indirect=True)
def test_whatever_the_keys_shown_text_only_grows_or_goes_and_no_key_is_lost(sandbox: Sandbox) -> None:
    says, then = "# says: share = first", "# then: hits = second⏎return share, hits"
    wrong, lost, grown = list[str](), list[str](), 0
    with Editor(sandbox, before=["set noautoindent indentexpr="]) as editor:
        editor.open("keys.py")
        editor.rpc.command("%d | setlocal indentexpr= indentkeys=")
        for seed in range(SCRIPTS):
            chance, took = random.Random(seed), list[tuple[str, str]]()
            editor.keys("<Esc>")
            editor.rpc.exec_lua(
                "vim.api.nvim_buf_set_lines(0, 0, -1, false, { ... })",
                *(f"def known_{seed}(first, second):", f"    {says}", f"    {then}", ""),
            )
            with editor.sampled(EVERY) as seen:
                editor.keys("GA    ")
                editor.wait(lambda: last(editor).ghost, "no ghost text")
                for key in chance.choices(PRESSED, k=10):
                    before = "\n".join(editor.lines()[ABOVE:]).removeprefix("    ")
                    letters = pressed(editor, key, chance)
                    time.sleep(chance.choice((0.02, 0.05, 0.1)))
                    after = "\n".join(editor.lines()[ABOVE:]).removeprefix("    ")
                    if key in ACCEPTS and not letters and after.startswith(before):
                        took.append((before, after))
                    elif after != before + letters:
                        lost.append(f"script {seed}, {key}: {before!r} became {after!r}")
            # Text that has just grown may be taken before it is seen.
            read = [ALL, *(written(sight) + (sight.ghost or "") for sight in seen)]
            lost += [
                f"script {seed}: {before!r} became {after!r}"
                for before, after in took
                if not any(text.startswith(after) for text in read)
            ]
            drawn = [sight for sight in seen if sight.fresh and sight.ghost is not None]
            pairs = list(itertools.pairwise(drawn))
            wrong += [f"script {seed}: {b.ghost!r} became {a.ghost!r}" for b, a in pairs if breaks(b, a)]
            grown += sum(
                bool(b.ghost) and len(written(a) + (a.ghost or "")) > len(written(b) + (b.ghost or ""))
                for b, a in pairs
            )
    print(
        f"{SCRIPTS} scripts, {grown} times longer, {len(wrong)} changes of shown text, {len(lost)} keys lost"
    )
    assert not wrong and not lost, "\n".join([*wrong, *lost])
    assert grown >= SCRIPTS // 3, "nothing was tested"
