"""Repair search: the smallest insertion at the cursor that makes a broken Python file parse again.

Each candidate is parsed incrementally, the cheapest tree is kept. Knows trees and lexical state, but no gaps.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tree_sitter import Tree

from dg_lsp.text.language import Language
from dg_lsp.text.lexical import State, closers, line_end, line_start, state_at, tokens, width, window

_COMPOUND = re.compile(rb"(?:async|def|class|if|elif|else|for|while|with|try|except|finally|match|case)\b")
_DEF = re.compile(rb"(?:async[ \t]+)?def\b|class\b")
_JOINING = (b"in", b"is", b"as", b"and", b"or", b"if", b"else", b"for", b"import", b"from", b"not in")
_FILLER = b"_g_"
# A tree that so many insertions do not mend is damaged elsewhere too, and indentation serves better.
TRIED = 40
ERROR_COST, MISSING_COST, ERROR_BYTES = 20, 25, 4_000


@dataclass(frozen=True, slots=True)
class Repaired:
    """`data` is the text with `inserted` bytes in the place of `removed` ones at `at`; `cost` 0 is clean."""

    data: bytes
    tree: Tree
    at: int
    removed: int
    inserted: int
    cost: int

    def forth(self, offset: int) -> int:
        """An offset of the text before the repair as one after it."""
        return offset if offset <= self.at else max(offset - self.removed, self.at) + self.inserted

    def back(self, offset: int) -> int:
        """An offset of the repaired text as one of the text before; inside the repair it is its place."""
        if offset <= self.at:
            return offset
        return (
            max(offset - self.inserted, self.at) + self.removed
            if offset >= self.at + self.inserted
            else self.at
        )


def repair(language: Language, data: bytes, offset: int) -> Repaired:
    """The cheapest repair of `data` at `offset`.

    1. Parse as it is; a clean tree needs no repair.  2. Read what is open at the cursor.
    3. Parse each candidate.  4. Stop at the first that parses cleanly; the earlier of two equal ones wins.
    """
    # 1. Most calls end here.
    tree = language.parse(data)
    best = Repaired(data, tree, offset, 0, 0, cost_of(tree))
    if best.cost == 0 or out_of_reach(tree, data, offset):
        return best
    # 2. The lexical state survives damage that no tree does.
    for start, end, text in candidates(data, offset):
        # 3. Only the neighbourhood of the cursor is parsed again.
        new = language.reparse(tree, data, (start, end), text)
        cost = cost_of(new)
        if cost < best.cost:
            changed = data[:start] + text + data[end:]
            best = Repaired(changed, new, start, end - start, len(text), cost)
        # 4. Cheapest first, so the first clean one is the smallest change.
        if cost == 0:
            break
    return best


def out_of_reach(tree: Tree, data: bytes, offset: int) -> bool:
    """Whether an error ends above the cursor's logical line, where no change at the cursor reaches it."""
    line = state_at(data, offset, window(data, offset)[0]).line
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        if (node.is_error or node.is_missing) and node.end_byte < line:
            return True
        if node.has_error:
            stack.extend(node.children)
    return False


def cost_of(tree: Tree) -> int:
    """How broken a tree is: 20 and its bytes for an ERROR, 25 for a MISSING token."""
    cost, stack = 0, [tree.root_node]
    while stack:
        node = stack.pop()
        if node.is_missing:
            cost += MISSING_COST
        elif node.is_error:
            cost += ERROR_COST + min(node.end_byte - node.start_byte, ERROR_BYTES)
        elif node.has_error:
            stack.extend(node.children)
    return cost


def candidates(data: bytes, offset: int) -> Iterator[tuple[int, int, bytes]]:
    """Replacements (start, end, text) at the cursor, cheapest first."""

    start, _ = window(data, offset)
    state = state_at(data, offset, start)
    for text in islice(insertions(data, offset, state), TRIED):
        yield offset, offset, text
    eol = line_end(data, offset)
    if state.brackets:
        yield eol, eol, closers(state.brackets)
    # Last of all the whole line gives way, so that what is round it can be read.
    first = min(state.line + len(data[state.line : offset]) - len(data[state.line : offset].lstrip()), offset)
    if not _DEF.match(data[first:eol]):
        yield first, eol, b"if _g_:" if _deeper(data, first, eol) else _FILLER


def insertions(data: bytes, offset: int, state: State) -> Iterator[bytes]:
    """What may be inserted at `offset`, where `state` is open, without touching any other byte."""
    eol = line_end(data, offset)
    rest = data[offset:eol]
    closed = max(_surplus(rest), 0)
    shut = closers(state.brackets)
    close = closers(state.brackets[: max(len(state.brackets) - closed, 0)])
    header = bool(_COMPOUND.match(data[state.line : offset].lstrip() or rest.lstrip()))
    colons = ([b":", b": pass"] if _deeper(data, state.line, eol) else [b": pass", b":"]) if header else []
    # A list may go on below, after some of its brackets, with an item or an operand.
    further = [shut[:count] + joint for count in range(len(shut) + 1) for joint in (b"", b",", b" +")]
    ends = (b"", close, *(close + colon for colon in colons), *further)
    operands = _operands(data, offset, state)
    if state.string:
        operands = [state.string, b"}" + state.string, b"_g_}" + state.string]
    yield from dict.fromkeys(text for operand in operands for end in ends if (text := operand + end))


def _operands(data: bytes, offset: int, state: State) -> list[bytes]:
    """What may stand between a half-written line and what closes it."""
    # A word that is being typed may be the beginning of a keyword.
    half = re.search(rb"[a-z]+$", data[state.line : offset])
    words = [w[len(half[0]) :] for w in _JOINING if half and w.startswith(half[0]) and w != half[0]]
    # The last ones stand for a bracket or string that was opened on the rest of the line.
    opened = [prefix + bracket for bracket in (b"(", b"[", b"{") for prefix in (b"", _FILLER)]
    operands = [b"", _FILLER, b" in _g_", b" else _g_", b": _g_", b" and _g_", b" + _g_", b" as _g_"]
    if _DEF.match(data[state.line : offset].lstrip()):
        operands.append(b"_g_()" if data[:offset].endswith((b" ", b"\t")) else b"()")
    return operands + [word + b" _g_" for word in words] + opened + [b'"""', b"'''", b'""']


def _surplus(rest: bytes) -> int:
    """How many brackets `rest` closes that it does not open."""
    depth = surplus = 0
    for token in tokens(rest, 0, len(rest)):
        depth += (token.kind == "open") - (token.kind == "close")
        surplus = max(surplus, -depth)
    return surplus


def _deeper(data: bytes, line: int, eol: int) -> bool:
    """Whether the next line with text is deeper than the one at `line`."""
    below = re.compile(rb"[\r\n]+(?:[ \t\f]*[\r\n]+)*([ \t\f]*)[^\s]").match(data, eol)
    start = line_start(data, line)
    here = re.compile(rb"[ \t\f]*").match(data, start)
    assert here is not None
    return below is not None and width(below[1]) > width(here[0])
