"""Random scripts of keys for the Neovim plug-in, and the truth that each key is held to.

The truth: what an accepting key puts into the buffer is exactly what the screen showed, and every other key does what
it does without the plug-in.
"""

import random
import re
from dataclasses import dataclass

from tests.editors.nvim import Sight

# What tests/editors/neovim/server.lua completes. Some begin alike, so that it has alternatives.
TARGETS = (
    "total = None",
    "total = Nothing(first)",
    "return first + second",
    "if first:\n        return second\n    return first",
    'name = "zoë 😀 done"',
    "x = 1",
)
TEXTS = (
    ["def add(first, second):", "    ", "", "print(add)"],
    ["def add(first, second):", "    ", "    return total", "print(add)"],
    ["def add(first, second):", "    ) # 😀 é", "", "print(add)"],
)
ROW, COL = 1, 4  # where each script begins
ACCEPTS = {"<Tab>": "whole", "<C-Right>": "word", "<C-Down>": "line"}
_OTHERS = (
    "<BS>",
    "<Left>",
    "<Right>",
    "<Up>",
    "<Down>",
    "<Home>",
    "<End>",
    "<CR>",
    "<C-N>",
    "<Esc>A",
    "<M-]>",
    "<C-]>",
)
_WAITS = (0, 0.06, 0.1, 0.15, 0.25)  # seconds after the beginning of a target
_PAUSES = (0, 0, 0, 0.02, 0.05, 0.08, 0.12)  # and after other keys


@dataclass(frozen=True, slots=True)
class Script:
    """The lines of the file, and the keys: each with the seconds to wait after it."""

    text: list[str]
    keys: list[tuple[str, float]]


def script(seed: int) -> Script:
    """A script that twice types the beginning of a target, mostly waits for ghost text, and presses four more keys."""
    chance = random.Random(seed)
    keys: list[tuple[str, float]] = []
    for first in ("", "<Esc>o"):
        line = chance.choice(TARGETS).split("\n")[0]
        stop = chance.randint(1, len(line) - 1)
        keys += [(first, 0.0)] if first else []
        keys += [(_key(c), 0.0) for c in line[:stop]]
        keys[-1] = (keys[-1][0], chance.choice(_WAITS))
        following = line[stop:]
        for _ in range(4):
            kind = chance.random()
            if kind < 0.3 and following:
                key, following = _key(following[0]), following[1:]
            elif kind < 0.4:
                key = _key(chance.choice("xN(: 1é"))
            else:
                key = chance.choice(tuple(ACCEPTS) if kind < 0.75 else _OTHERS)
            keys.append((key, chance.choice(_PAUSES)))
    return Script(chance.choice(TEXTS), keys)


def justified(sight: Sight) -> bool:
    """Return whether the ghost text of `sight` completes a target with the text before it."""
    ghost = _squeezed(_plain(sight.ghost or ""))
    return any(head + ghost == _squeezed(target) for head in _heads(sight) for target in TARGETS)


def _heads(sight: Sight) -> list[str]:
    """The texts before the cursor from each line on, without blanks."""
    return [_squeezed("".join([*sight.lines[row : sight.row], sight.before])) for row in range(sight.row + 1)]


def wrong(key: str, before: Sight, after: Sight) -> str:
    """The complaint about `after`, the editor after the key `key` pressed at `before`; "" if nothing is."""
    if before.mode != "i" or before.menu:
        # In Normal mode, and in a menu, keys do a lot; but none of them may accept.
        inserted = _inserted(before, after).strip()
        whole = _squeezed(before.before + inserted) in map(_squeezed, TARGETS)
        accepted = before.fresh and key in ACCEPTS and inserted and whole
        return f"{key} accepted {inserted!r} in mode {before.mode}" if accepted else ""
    if key in ACCEPTS:
        return _wrong_accept(key, before, after)
    if key in ("<C-N>", "<M-]>", "<C-]>"):
        return "" if key == "<C-N>" or before.lines == after.lines else f"{key} changed the text"
    expected = _squeezed("\n".join(_typed(key, before)))
    return "" if expected == _squeezed("\n".join(after.lines)) else f"{key} gave {after.lines}"


def part(ghost: str, which: str) -> str:
    """The part of `ghost` that an accepting key takes."""
    if which == "word":
        found = re.match(r"\s*(\w+|[^\w\s]+|$)", ghost)
        assert found is not None
        return found[0]
    if which == "line":
        stop = ghost.find("\n", 1)
        return ghost if stop < 0 else ghost[:stop]
    return ghost


def _wrong_accept(key: str, before: Sight, after: Sight) -> str:
    ghost, inserted = before.ghost, _inserted(before, after)
    if ghost is None:  # the screen was not yet drawn after the key before; what it got must still be right
        begun = [head + _squeezed(inserted) for head in _heads(before)]
        fine = not inserted.strip() or any(_squeezed(t).startswith(b) for t in TARGETS for b in begun)
        return "" if fine else f"{key} put in {inserted!r} behind {before.before!r}, never shown"
    expected = part(_plain(ghost), ACCEPTS[key])
    if not expected:
        return f"{key} put in {inserted!r}; nothing was shown" if inserted.strip() else ""
    if _lines_of(inserted) != _lines_of(expected):
        return f"{key} put in {inserted!r}; shown was {ghost!r}"
    return ""


def _inserted(before: Sight, after: Sight) -> str:
    """The text in `after` between the cursor of `before` and the text that was after it."""
    if _squeezed("".join(before.lines)) == _squeezed("".join(after.lines)):
        return ""  # at most blanks, such as the indent that Vim takes from an empty line
    row = len(after.lines) - (len(before.lines) - before.row) + 1
    middle = "\n".join(after.lines[before.row : row])
    head, tail = before.before, before.after
    if not middle.startswith(head) or not middle.endswith(tail):
        return f"?{middle}"
    return middle[len(head) : len(middle) - len(tail)]


def _typed(key: str, sight: Sight) -> list[str]:
    """The lines after <BS> or plain keys; other keys change none."""
    lines, row = list(sight.lines), sight.row
    if key == "<BS>" and sight.before:
        lines[row] = sight.before[:-1] + sight.after
    elif not key.startswith("<"):
        lines[row] = sight.before + key + sight.after
    return lines


def joined(presses: list[tuple[str, Sight]]) -> list[tuple[str, Sight]]:
    """`presses` with plain keys that follow each other as one, with the sight before the first.

    Neovim reads all plain keys that wait before it puts the first one in.
    """
    found: list[tuple[str, Sight]] = []
    for key, sight in presses:
        plain = {"<Space>": " ", "<lt>": "<"}.get(key, key)
        is_plain = len(plain) == 1 and sight.mode != "n"
        if found and is_plain and found[-1][1].mode != "n" and not found[-1][0].startswith("<"):
            found[-1] = (found[-1][0] + plain, found[-1][1])
        else:
            found.append((plain if is_plain else key, sight))
    return found


def _key(character: str) -> str:
    return "<lt>" if character == "<" else character


def _plain(ghost: str) -> str:
    """`ghost` without the count of alternatives after its first line."""
    return re.sub(r" \(\d+/\d+\)", "", ghost)


def _lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n")]


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)
