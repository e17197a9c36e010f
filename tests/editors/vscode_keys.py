"""Random scripts of keys for VS Code, and the truth that each is held to.

The truth: a known few things can have become of the text and the cursor with each key; each look at the screen leaves
those that it agrees with, and none left is an error. A look counts if VS Code had time to draw the key before it.
"""

import builtins
import keyword
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

TEXT = "def add(first, second):\n    \n    return first\n"
ROW = 1  # where each script types; it begins after the four blanks

# What the scripted engine answers, and the words in sight, to which half a word may be completed.
WORDS = {
    *("None", "True", "False", "0", "first", "second", "total", "add"),
    *keyword.kwlist,
    *dir(builtins),
}
_KEYS = (*"total = N", *"x = first +", " ", "Backspace", "Tab", "Tab", "Tab", "ArrowLeft", "End")
_WAITS = (0, 0, 50, 150)  # ms
# Milliseconds from an arrow key to ghost text for the place that it left, of which the extension could not know yet.
_LATE = 250
_DRAWN = 2  # frames until a key is on the screen: one in which it is handled, and the next


@dataclass(frozen=True, slots=True, order=True)
class State:
    """A possible state of the row: the text before and after the cursor.

    unseen: how many Tabs took ghost text on the way here that was not yet on the screen.
    """

    before: str
    after: str
    unseen: int = 0


@dataclass(slots=True)
class Verdict:
    """The verdict on a script.

    wrong: what must not be. shown: keys that met ghost text. accepts: Tabs among them.

    VS Code does the other two with a bare provider, too (docs/research). unseen: Tabs that took a right text in the
    milliseconds before it was painted. old: how often ghost text stood where an arrow key had moved the cursor away
    from: what had gone and came back, or what came for that place at the moment of the key.
    """

    wrong: list[str] = field(default_factory=list)
    shown: int = 0
    accepts: int = 0
    unseen: int = 0
    old: int = 0


def script(seed: int, answer: int) -> list[tuple[str, int]]:
    """25 keys, each with the milliseconds to wait after it: on every fourth for ghost text, which takes `answer`."""
    chance = random.Random(seed)
    return [
        (chance.choice(_KEYS), answer if chance.random() < 0.25 else chance.choice(_WAITS)) for _ in range(25)
    ]


def completes(before: str, ghost: str, sight: Iterable[str] = ()) -> bool:
    """Return whether ghost text makes a known word, or one in `sight`, of the letters before it.

    Example: `ne` after `total = No`; a call's brackets may stand after the word.
    """
    made = _word(before) + ghost.removesuffix("()")
    return made in WORDS or made in sight


def _is_justified(look: Mapping[str, Any], sight: Iterable[str]) -> bool:
    """Return whether the ghost text makes a word of the letters before it, or of those on both sides of it.

    Example: `Non` in `x = |e`.
    """
    after = re.match(r"\w*", look["after"])
    assert after is not None
    both = (look["ghost"], look["ghost"] + after[0])
    return any(completes(look["before"], ghost, sight) for ghost in both)


def judge(events: Sequence[Mapping[str, Any]]) -> Verdict:
    """The verdict on the events of the driver's `play`, which began at the end of the second row of `TEXT`."""
    verdict = Verdict()
    states = {State(TEXT.split("\n")[ROW], "")}
    sight: set[str] = set()
    for number, event in enumerate(events):
        where = f"{_told(events[max(0, number - 4) : number + 2])}; it may be {sorted(states)[:6]}"
        sight |= set(re.findall(r"\w+", event["rows"][ROW]))
        old = _is_old(events[: number + 1])
        verdict.old += old and not events[number - 1]["misplaced"]
        if event["misplaced"] and not old:
            verdict.wrong.append(f"ghost text away from the cursor: {where}")
        if event["ghost"] and not old and not _is_justified(event, sight):
            verdict.wrong.append(f"ghost text that nothing justifies: {where}")
        if "key" not in event:
            continue
        drawn = event["frames"] >= _DRAWN
        if drawn:
            states = {state for state in states if _agrees(event, state)}
        if not states:
            verdict.wrong.append(f"no way that the keys could go leads to this screen: {where}")
            break
        verdict.unseen = min(state.unseen for state in states)
        verdict.shown += drawn and bool(event["ghost"])
        verdict.accepts += drawn and bool(event["ghost"]) and event["key"] == "Tab"
        if event["key"] in ("Backspace", "ArrowLeft") and any(not state.before for state in states):
            break  # the cursor leaves the row
        states = {new for state in states for new in _after(event, state, WORDS | sight, drawn=drawn)}
    return verdict


def _is_old(events: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the last of `events` shows ghost text of the place that the last arrow key left."""
    *before, last = events
    moved = next((n for n in reversed(range(len(before))) if before[n].get("key") == "ArrowLeft"), None)
    if moved is None or not last["misplaced"]:
        return False
    if any(event["ghost"] == last["ghost"] for event in before[:moved]):
        return True
    arrow, first = events[moved], next(event for event in events[moved:] if event["misplaced"])
    was_there = arrow["rows"][ROW].startswith(last["before"]) and last["ghost"] == first["ghost"]
    return was_there and first["time"] - arrow["time"] <= _LATE


def _agrees(look: Mapping[str, Any], state: State) -> bool:
    """Return whether the screen shows the text of `state`, and ghost text only at its cursor or after blanks there."""
    rows = TEXT.split("\n")
    rows[ROW] = state.before + state.after
    if look["rows"] != rows:
        return False
    between = look["before"].removeprefix(state.before)
    at_cursor = look["before"].startswith(state.before) and not between.strip()
    return not look["ghost"] or look["misplaced"] or at_cursor


def _after(look: Mapping[str, Any], state: State, words: set[str], *, drawn: bool) -> Iterable[State]:
    """The states after `state` by the key that met `look`. drawn: `look` shows all that came before."""
    key, before, after = look["key"], state.before, state.after
    if len(key) == 1:
        yield replace(state, before=before + key)
    elif key == "Backspace":
        yield replace(state, before=before[:-1])
    elif key == "ArrowLeft":
        yield replace(state, before=before[:-1], after=before[-1:] + after)
    elif key == "End":
        yield replace(state, before=before + after, after="")
    elif key == "Tab" and drawn and look["ghost"]:
        yield replace(state, before=look["before"] + look["ghost"], after=look["after"])
    elif key == "Tab":
        yield replace(state, before=before + " " * (4 - len(before) % 4))
        for taken in _unseen(before, words, kept=drawn):
            yield State(taken, after, state.unseen + drawn)


def _unseen(before: str, words: set[str], *, kept: bool) -> Iterable[str]:
    """The texts that a Tab can make of `before` by a right text that is not on the screen.

    kept: all of `before` stays; else the blanks typed last may go, since VS Code takes blanks that are typed in front
    of ghost text as a part of it until it has asked for it again.
    """
    word = _word(before)
    stems = [before]
    while not kept and stems[-1].endswith(" "):
        stems.append(stems[-1][:-1])
    for stem in stems:
        for known in words:
            if known.startswith(word):
                yield from (stem + known[len(word) :], f"{stem}{known[len(word) :]}()")


def _word(before: str) -> str:
    found = re.search(r"\w*$", before)
    assert found is not None
    return found[0]


def _told(events: Iterable[Mapping[str, Any]]) -> str:
    return "; ".join(
        f"{event['time']:.0f} ms {event.get('key', 'painted')} {event['rows'][ROW : ROW + 1]} with"
        f" {event['ghost']!r} behind {event['before']!r}"
        for event in events
    )
