"""The patterns of a .gitignore file: which of the paths below its folder they ignore, as git reads them.

Names are compared byte by byte, as git does; a text here has one character for each byte (Latin-1).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dg_lsp.budget import check

_ANY = "**"  # as a part of a pattern: any folders, or none
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t-\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
# A part of a pattern that is compared as it is, and one item of a set such as `[!a-z[:digit:]]`.
_LITERAL = re.compile(r"[^*?\[\\]*")
_ITEM = re.compile(r"\[:(?P<name>\w*):\]|\\?(?P<low>(?s:.))(?:-(?!\])\\?(?P<high>(?s:.)))?")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of a line. parts: of its path, each a name, an expression for names, or `**` for any folders or none.

    negative: what it fits is not ignored. folders: it fits folders only.
    """

    parts: tuple[str | re.Pattern[str], ...]
    negative: bool
    folders: bool


@lru_cache(maxsize=128)
def read_patterns(data: bytes) -> tuple[Pattern, ...]:
    """Return the patterns of a .gitignore file with the content `data`, in their order."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    return tuple(_pattern(line) for line in lines if line and not line.startswith("#"))


def verdict(patterns: Sequence[Pattern], path: str, *, is_folder: bool) -> bool | None:
    """Return whether the last of `patterns` that fits `path` ignores it; None if none fits.

    path: relative to the folder of the patterns' file, with slashes.
    """
    names = path.split("/")
    for pattern in reversed(patterns):
        check()
        if (is_folder or not pattern.folders) and _fits(pattern.parts, names):
            return not pattern.negative
    return None


def _pattern(line: str) -> Pattern:
    """Return the pattern of a line that is no comment: `!/docs/*.md` fits `*.md` in the folder `docs`, and no other."""
    check()
    text = _trimmed(line.removesuffix("\r"))
    negative = text.startswith("!")
    text = text.removeprefix("!")
    folders = text.endswith("/")
    text = text.removesuffix("/")
    anchored = "/" in text
    parts = [_part(part) for part in _split(text.removeprefix("/"))]
    return Pattern(tuple(parts if anchored else (_ANY, *parts)), negative, folders)


def _split(text: str) -> list[str]:
    """Return the parts of a pattern between its slashes; a slash in a set such as `[a/]` is one of the set."""
    parts, begin, at = list[str](), 0, 0
    while at < len(text):
        if text[at] == "/":
            parts.append(text[begin:at])
            begin = at = at + 1
        elif text[at] == "[":
            _, at = _set(text, at)
        else:
            at += 2 if text[at] == "\\" and text[at + 1 : at + 2] != "/" else 1
    return [*parts, text[begin:]]


def _part(text: str) -> str | re.Pattern[str]:
    """Return what is compared for one part of a pattern."""
    if len(text) > 1 and not text.strip("*"):
        return _ANY
    return text if _LITERAL.fullmatch(text) else _compiled(text)


def _trimmed(text: str) -> str:
    """Return `text` without the spaces at its end that no backslash escapes."""
    kept = text.rstrip(" ")
    escaped = (len(kept) - len(kept.rstrip("\\"))) % 2
    return kept + " " if escaped and len(kept) < len(text) else kept


def _fits(parts: Sequence[str | re.Pattern[str]], names: Sequence[str]) -> bool:
    """Return whether the `parts` of a pattern fit all `names` of a path.

    Only the last `**` before a mismatch has to take more names, so no path takes longer than parts times names.
    """
    at = here = 0
    last, taken = -1, 0
    while here < len(names):
        if at < len(parts) and parts[at] == _ANY:
            if at == len(parts) - 1:
                return True
            last, taken, at = at, here, at + 1
        elif at < len(parts) and _is(parts[at], names[here]):
            at, here = at + 1, here + 1
        elif last >= 0:
            taken += 1
            at, here = last + 1, taken
        else:
            return False
    return at == len(parts)


def _is(part: str | re.Pattern[str], name: str) -> bool:
    """Return whether one part of a pattern, which is not `**`, fits a name."""
    return part == name if isinstance(part, str) else part.fullmatch(name) is not None


def _compiled(part: str) -> re.Pattern[str]:
    """Return the regular expression of a part: each star takes as little as it can and gives nothing back."""
    done = piece = ""
    at = 0
    while at < len(part):
        character = part[at]
        if character == "*":
            done, piece = f"{done}(?>{piece})", ".*?"
            at += len(part[at:]) - len(part[at:].lstrip("*"))
            continue
        if character == "[":
            text, at = _set(part, at)
        elif character == "\\":
            # One at the end of a pattern fits nothing.
            text, at = re.escape(part[at + 1 : at + 2]) or "(?!)", at + 2
        else:
            text, at = "." if character == "?" else re.escape(character), at + 1
        piece += text
    return re.compile(rf"(?s:{done}(?>{piece}\Z))")


def _set(part: str, at: int) -> tuple[str, int]:
    """Return the regular expression of the set that begins at `at`, and where it ends; an open one fits no name."""
    begin = at + 1
    negated = part[begin : begin + 1] in ("!", "^")
    begin += negated
    items, here = list[str](), begin
    while here < len(part) and (part[here] != "]" or here == begin):
        item = _ITEM.match(part, here)
        if item is None:
            break
        here = item.end()
        if item["name"] is not None:
            if item["name"] not in _CLASSES:
                return "(?!)", len(part)
            items.append(_CLASSES[item["name"]])
        elif (high := item["high"] or item["low"]) >= item["low"]:
            items.append(f"{re.escape(item['low'])}-{re.escape(high)}")
    if part[here : here + 1] != "]":
        return "(?!)", len(part)
    inside = "".join(items)
    if not inside:
        return "." if negated else "(?!)", here + 1
    return f"[{'^' if negated else ''}{inside}]", here + 1
