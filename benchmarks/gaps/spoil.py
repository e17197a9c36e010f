"""Ways in which a model's fill goes wrong, done to true texts: brackets, tokens, lines, ends.

Knows text only.
"""

import re
from collections.abc import Callable
from random import Random

Spoil = Callable[[str, str, Random], str | None]
_TOKEN = re.compile(r"\w+|[^\w\s]+|\s+")
_BRACKET = re.compile(r"[()\[\]{}]")
_STRANGE = ("(", ")", "]", "}", ",", "=", "if", "return", "def", "else", "0", "x", '"', ".", ":", "{", ";")


def spoiled(text: str, behind: str, rng: Random) -> tuple[str, str]:
    """`text` spoiled in one of the ways by chance, and the name of it; `behind` is what follows it in the file."""
    names = list(SPOILS)
    rng.shuffle(names)
    for name in names:
        wrong = SPOILS[name](text, behind, rng)
        if wrong is not None and wrong != text:
            return wrong, name
    return text + ")", "a closer appended"


def _bracket_deleted(text: str, _: str, rng: Random) -> str | None:
    spots = [m.start() for m in _BRACKET.finditer(text)]
    at = rng.choice(spots) if spots else -1
    return text[:at] + text[at + 1 :] if spots else None


def _bracket_doubled(text: str, _: str, rng: Random) -> str | None:
    spots = [m.start() for m in _BRACKET.finditer(text)]
    at = rng.choice(spots) if spots else -1
    return text[:at] + text[at] + text[at:] if spots else None


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """The tokens, and which of them are no white space."""
    parts = _TOKEN.findall(text)
    return parts, [n for n, part in enumerate(parts) if not part.isspace()]


def _token_deleted(text: str, _: str, rng: Random) -> str | None:
    parts, spots = _tokens(text)
    if len(spots) < 2:
        return None
    del parts[rng.choice(spots)]
    return "".join(parts)


def _tokens_swapped(text: str, _: str, rng: Random) -> str | None:
    parts, spots = _tokens(text)
    if len(spots) < 2:
        return None
    number = rng.randrange(len(spots) - 1)
    here, there = spots[number], spots[number + 1]
    parts[here], parts[there] = parts[there], parts[here]
    return "".join(parts)


def _token_replaced(text: str, _: str, rng: Random) -> str | None:
    parts, spots = _tokens(text)
    if not spots:
        return None
    parts[rng.choice(spots)] = rng.choice(_STRANGE)
    return "".join(parts)


def _cut_short(text: str, _: str, rng: Random) -> str | None:
    return text[: rng.randrange(1, len(text))] if len(text) > 2 else None


def _line_shifted(text: str, _: str, rng: Random) -> str | None:
    starts = [m.end() for m in re.finditer("\n", text)]
    if not starts:
        return None
    at, by = rng.choice(starts), rng.choice((-4, -1, 1, 4))
    if by > 0:
        return text[:at] + " " * by + text[at:]
    return text[:at] + text[at:].removeprefix(" " * -by)


def _suffix_appended(text: str, behind: str, rng: Random) -> str | None:
    return text + behind[: rng.choice((40, 120, 300))] if behind.strip() else None


def _closer_appended(text: str, behind: str, rng: Random) -> str | None:
    closers = re.match(r"\s*([)\]}\"';,:]+)", behind)
    return text + (closers[0] if closers and rng.random() < 0.7 else rng.choice(")]};"))


def _line_repeated(text: str, behind: str, _: Random) -> str | None:
    following = next((line for line in behind.split("\n")[1:] if line.strip()), "")
    return f"{text}\n{following}" if following else None


SPOILS: dict[str, Spoil] = {
    "a bracket deleted": _bracket_deleted,
    "a bracket doubled": _bracket_doubled,
    "a token deleted": _token_deleted,
    "two tokens swapped": _tokens_swapped,
    "a token replaced": _token_replaced,
    "cut short": _cut_short,
    "a line shifted": _line_shifted,
    "what follows appended": _suffix_appended,
    "a closer appended": _closer_appended,
    "the next line repeated": _line_repeated,
}
