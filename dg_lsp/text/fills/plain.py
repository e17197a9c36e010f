"""The harm of a fill in a plain language: by its brackets and marks, and by its grammar where it has one."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice

from tree_sitter import Node, Tree

from dg_lsp.text.budget import attempt
from dg_lsp.text.fills.baseline import errors_of
from dg_lsp.text.gaps.plain import REACH, open_at
from dg_lsp.text.languages.language import Language
from dg_lsp.text.reasons import Unreadable
from dg_lsp.text.syntax.brackets import PAIRS
from dg_lsp.text.syntax.lexer import leading, line_end, line_start, marks
from dg_lsp.text.syntax.misplaced import new_misplaced

# A longer text is not parsed: tokens must do.
PARSED = 200_000
# Neutral texts that are tried at most.
_TRIES = 500
# Names behind a gap that may be the one of its line.
_NAMES = 8
_LINE = re.compile(rb"[^\r\n]*\s*")
_OPENERS = {closer: opener for opener, closer in PAIRS.items()}
# Strings, comments and brackets behind a gap, counted from there.
Marks = tuple[tuple[str, int, int], ...]
Parts = tuple[bytes, bytes, bytes]


def harm_between(language: Language, parts: Parts) -> str:
    """Return why the fill of `parts` = (before, fill, after) does harm, as words; empty where it does none.

    1. The text behind it is read as before, or as with the string closed that its line has opened.  2. It closes no
    bracket but its own and those of its line, and leaves none open that was closed.  3. By the grammar there are no
    more errors than without it, or with a neutral text in its place.
    """
    before, fill, after = parts
    if b"\0" in fill:
        return "a null byte"
    # 1.
    near, below = before[line_start(before, max(len(before) - REACH, 0)) :], after[:REACH]
    if _behind(language, near, fill, below) not in _as_before(language, near, below):
        return "a string or comment that takes in what follows"
    # 2.
    if reason := _unbalanced(language, (near, fill, below)):
        return reason
    # 3.
    if language.tree is None or len(before) + len(after) > PARSED:
        return ""
    tree, first = _filled(language, before, fill, after), line_start(before, len(before))
    last = len(before + fill) + _LINE.match(after).end()  # type: ignore[union-attr]  # it matches nothing, too
    faults = _faults(language, tree)
    # One in the line itself is none of damage elsewhere, unless brackets above are not closed yet.
    own = any(first <= node.start_byte < node.end_byte <= last for node in faults)
    own = own and not _count(language, near[: line_start(near, len(near))] + below[line_end(below, 0) :])[1]
    if own or len(faults) > _errors_without(language, before, after):
        return "a syntax error"
    new = tree.root_node, (len(before), len(before + fill))
    old = _tree(language, before, after).root_node, (len(before), len(before))
    return "a statement that cannot be here" if new_misplaced(language, new, old) else ""


@lru_cache(maxsize=4)
def _as_before(language: Language, before: bytes, after: bytes) -> tuple[Marks, ...]:
    """The marks behind a gap, as with nothing in it, or with what closes the string that its line has opened."""
    state = open_at(language, before, len(before))
    own = state.string if state.begins >= line_start(before, len(before)) else b""
    # A string in quotes of one character ends with its line.
    ends = len(own) == 1 and own not in after[: line_end(after, 0)]
    texts = (own,) if ends else (b"", own)
    return tuple(_behind(language, before, text, after) for text in dict.fromkeys(texts))


def _behind(language: Language, before: bytes, text: bytes, after: bytes) -> Marks:
    """The marks of `after`; one that begins before it, and continues in it, begins at -1."""
    data, end = before + text + after, len(before + text)
    # A line end takes in the empty lines below it, and those above.
    found = (mark for mark in marks(language, data, 0, len(data)) if mark[0] != "newline")
    return tuple((kind, max(at - end, -1), stop - end) for kind, at, stop in found if stop > end)


def _unbalanced(language: Language, parts: Parts) -> str:
    """Step 2 of `harm_between`; brackets are the tags of elements, too."""
    before, fill, after = parts
    line = before[line_start(before, len(before)) :]
    for start, rest in ((line, b""), (before, after)):
        old, new = (_count(language, start + text + rest) for text in (b"", fill))
        if len(new[0]) > len(old[0]):
            return "an unmatched closing bracket"
    # An element of one line ends on it, unless the next line is deeper.
    rest, below = after[: line_end(after, 0)], after[line_end(after, 0) :]
    inside = leading(below, len(below) - len(below.lstrip())) > leading(line, 0)
    open_here = () if inside else _count(language, line + fill + rest)[1]
    elements = tuple(name for name in open_here if name not in PAIRS)
    left = elements or (new[1] if len(new[1]) > len(old[1]) else ())
    return f"a missing end of `{left[-1].decode()}`" if left else ""


@lru_cache(maxsize=8)
def _count(language: Language, data: bytes) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the brackets that `data` closes without opening them, and those that it opens and does not close."""
    lacking, opened = list[bytes](), list[bytes]()
    for opens, name in _brackets(language, data):
        if opens:
            opened.append(name)
        elif opened and opened[-1] == name:
            opened.pop()
        else:
            lacking.append(name)
    return tuple(lacking), tuple(opened)


def _brackets(language: Language, data: bytes) -> Iterator[tuple[bool, bytes]]:
    """Yield whether each bracket opens, and what opens such a pair."""
    for kind, start, end in marks(language, data, 0, len(data)):
        bracket = data[start:end]
        if kind in ("open", "close") and bracket in language.plain.brackets:
            yield kind == "open", bracket if kind == "open" else _OPENERS[bracket]
    for tag in language.plain.tags.finditer(data):
        if not (tag["alone"] or tag["name"].lower() in language.plain.alone):
            yield not tag["close"], tag["name"].lower()


@lru_cache(maxsize=2)
def _errors_without(language: Language, before: bytes, after: bytes) -> int:
    """The fewest errors with nothing in the gap, or, in a part of the time, with a text that may complete its line."""
    fewest = len(_faults(language, _tree(language, before, after)))
    with suppress(Unreadable), attempt():
        for text in islice(_neutral(language, before, after), _TRIES if fewest else 0):
            fewest = min(fewest, len(_faults(language, _filled(language, before, text, after))))
            if not fewest:
                break
    return fewest


@lru_cache(maxsize=2)
def _tree(language: Language, before: bytes, after: bytes) -> Tree:
    """The tree with nothing in the gap."""
    return language.parse(before + after)


def _filled(language: Language, before: bytes, text: bytes, after: bytes) -> Tree:
    """The tree with `text` in the gap."""
    tree, at = _tree(language, before, after), len(before)
    return language.reparse(tree, before + after, (at, at), text)


def _neutral(language: Language, before: bytes, after: bytes) -> Iterator[bytes]:
    """Texts that may complete the line of a gap: one of the language, what closes the line, what opens the next one."""
    state, here = open_at(language, before, len(before)), line_start(before, len(before))
    closers = state.closing(at for at in state.opened if at >= here)
    near = before[line_start(before, max(len(before) - REACH, 0)) :]
    lacking, _ = _count(language, near + after[:REACH])
    opener = b"".join(bracket for bracket in lacking[:1] if bracket in PAIRS)
    names = dict.fromkeys(found[1] for found in language.plain.names.finditer(after, 0, REACH))
    texts = (
        state.string * quoted + text.replace(b"{0}", name) + closers * closed + opener * opened + end
        for name in list(names)[:_NAMES] or [b"_g_"]
        for end in language.words.ends
        for text in (b"", *language.plain.fillers)
        for opened in (1, 0)
        for closed in (1, 0)
        for quoted in (1, 0)
    )
    return iter(dict.fromkeys(texts))


def _faults(language: Language, tree: Tree) -> list[Node]:
    """The errors of `tree`, and what its query refuses."""
    return [*errors_of(tree.root_node), *language.captures(tree.root_node).get("refuse", ())]
