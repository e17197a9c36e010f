"""Keys in a real VS Code, at random and at human speed: no wrong text, no stale ghost text.

DG_LSP_KEY_SCRIPTS says how many random scripts run, DG_LSP_TYPED how many characters are typed; `make editors-long`
runs more.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.editors.sandbox import CHROMIUM, NODE, open_sandbox, skip_without
from tests.editors.vscode import VSIX, VSCode, open_vscode
from tests.editors.vscode_keys import ROW, TEXT, completes, judge, script
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, skip_without(NODE, CHROMIUM, VSIX)]

SCRIPTS = int(os.environ.get("DG_LSP_KEY_SCRIPTS", "20"))  # random scripts of keys
ROUNDS = 3  # of so many scripts each, until one meets enough ghost text and few accidents
TYPED = int(os.environ.get("DG_LSP_TYPED", "120"))  # typed characters while the screen is sampled
EVERY = 20  # ms between two samples
COUNTED = ("shown", "accepts", "unseen", "old")

# The menu would take some of the keys; it has its own test.
NO_MENU = {"editor.quickSuggestions": "off", "editor.suggestOnTriggerCharacters": False}


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    """The session, with the scripted engine and without menus."""
    with open_sandbox(tmp_path_factory.mktemp("vscode")) as sandbox, open_vscode(sandbox) as editor:
        editor.settings(**NO_MENU)
        editor.status("ready")
        yield editor


def latency(code: VSCode) -> int:
    """The most milliseconds of five from a key to ghost text, now and on this machine."""
    code.open("latency.py", TEXT.replace("    \n", "    total =\n"), 2, 12)
    taken = []
    for _ in range(5):
        began = time.monotonic()
        code.press(" ")
        code.until("s.ghost")
        taken.append((time.monotonic() - began) * 1000)
        code.press("Backspace", wait=200)
    return round(max(taken))


def play(code: VSCode, seeds: range) -> dict[str, int]:
    """Play the scripts of `seeds`, none of which may do wrong; count what they met."""
    answer, counts = latency(code), Counter[str]()
    code.open("script.py", TEXT)
    for seed in seeds:
        code.ask("rewrite", text=TEXT, line=ROW + 1)
        events = code.ask("play", keys=script(seed, answer))
        verdict = judge(events)
        assert not verdict.wrong, f"script {seed}:\n" + "\n".join(verdict.wrong)
        # The editor empties the file before it writes.
        shown = "\n".join(events[-1]["rows"]).encode()
        wait_until(lambda: code.saved("script.py") == shown)  # noqa: B023 - it is called here only
        counts.update({name: getattr(verdict, name) for name in COUNTED})
    print(f"{len(seeds)} scripts, {answer} ms for ghost text: {dict(counts)}")
    return counts


def test_random_keys_never_write_what_was_not_shown(code: VSCode) -> None:
    # A busy machine shows less ghost text, and later; it does not do so each time.
    for number in range(ROUNDS):
        counts = play(code, range(number * SCRIPTS, (number + 1) * SCRIPTS))
        enough = counts["shown"] >= SCRIPTS and counts["accepts"] >= SCRIPTS / 5
        if enough and counts["unseen"] + counts["old"] <= 3 + SCRIPTS / 10:
            return
    pytest.fail(f"hardly anything is shown, or VS Code's own accidents are too many: {dict(counts)}")


def test_ghost_text_that_crosses_with_a_move_of_the_cursor_goes(code: VSCode) -> None:
    # The host is as far away as one over a slow line: what it sends is under way when the cursor moves. On a busy
    # machine it may have come before, or may not have been asked for; then the keys are played again.
    for attempt in range(5):
        code.open(f"crossing-{attempt}.py", "def add(first, second):\n    total = f\n", 2, 14)
        code.ask("lag", milliseconds=300)
        events = code.ask("play", keys=[("i", 150), ("ArrowLeft", 2000)])
        code.ask("lag", milliseconds=0)
        arrow = next(number for number, event in enumerate(events) if event.get("key") == "ArrowLeft")
        came = [event["time"] for event in events[arrow:] if event["misplaced"]]
        if came and not events[arrow]["ghost"]:
            break
    else:
        pytest.fail("it was never under way when the cursor moved, so nothing was tested")
    # It goes, on a busy machine after the keys were watched.
    code.until("!s.misplaced", 20_000)


def test_ghost_text_that_crosses_with_a_key_is_never_shown(code: VSCode) -> None:
    code.open("overtaken.py", "def add(first, second):\n    total = f\n", 2, 14)
    code.ask("lag", milliseconds=300)
    events = code.ask("play", keys=[("i", 150), ("x", 900)])
    code.ask("lag", milliseconds=0)
    assert not [event["ghost"] for event in events if event["ghost"]]


def disagrees(sample: dict[str, Any]) -> bool:
    """Return whether the ghost text of a sample does not continue the text before it, or is away from the cursor."""
    ghost = sample["ghost"]
    return bool(ghost) and (bool(sample["misplaced"]) or not completes(sample["before"], ghost))


def test_no_frame_shows_stale_ghost_text_while_one_types_on_a_slow_engine(code: VSCode) -> None:
    code.settings(checkpoint="scripted:6:100", **NO_MENU)
    code.command("File: Save All")  # what is not saved would be asked about
    code.command("View: Close All Editors")  # their words would be in sight
    code.open("stale.py", "def add(first, second):\n    \n", 2, 5)
    code.status("ready")
    statement = "total = ~No<<first = Tr<<~second = N<~< "
    text = (statement * (TYPED // len(statement) + 1))[:TYPED]
    samples = code.ask("sample", text=text, delay=100, pause=900, every=EVERY, patience=TYPED * 400)
    wrong = [sample for sample in samples if disagrees(sample)]
    print(f"{TYPED} keys, {len(samples)} looks, {sum(bool(s['ghost']) for s in samples)} with ghost text")
    assert len(samples) > TYPED
    assert any(sample["ghost"] for sample in samples), "nothing was ever shown"
    assert not wrong, f"{len(wrong)} of {len(samples)}: {wrong[:3]}"
