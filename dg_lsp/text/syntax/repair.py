"""Repair search: the smallest change at the cursor that makes a broken file parse again.

Each candidate is parsed incrementally, the cheapest tree is kept. Knows trees and lexical state, but no gaps; what
may be missing is known to `offside_repair` and `brace_repair`.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Tree

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax import braced_repair as brace_repair
from dg_lsp.text.syntax import indented_repair as offside_repair
from dg_lsp.text.syntax.lexical import focus, state_at
from dg_lsp.text.syntax.tokens import Span, State

# Seconds of work after which no further candidate is tried.
PATIENCE = 0.016
ERROR_COST, MISSING_COST, ERROR_BYTES = 20, 25, 4_000


@dataclass(frozen=True, slots=True)
class Repaired:
    """`data` is the text with `inserted` bytes in the place of `removed` ones at `at`; `cost` 0 is clean.

    put: before that, members of a long class were cut out: at these offsets of the text, so many bytes (below 0).
    """

    data: bytes
    tree: Tree
    at: int
    removed: int
    inserted: int
    cost: int
    put: tuple[Span, ...] = ()

    def forth(self, offset: int) -> int:
        """An offset of the text before the repair as one after it; inside what gave way it is its beginning."""
        offset = moved(offset, self.put)
        if offset <= self.at + self.removed and (self.removed or offset <= self.at):
            return min(offset, self.at)
        return offset - self.removed + self.inserted

    def back(self, offset: int) -> int:
        """An offset of the repaired text as one of the text before; inside the repair it is what gave way for it."""
        if offset > self.at:
            offset = max(offset - self.inserted, self.at) + self.removed
        shift = 0
        for place, length in self.put:
            if offset <= place + shift:
                break
            shift += min(length, offset - place - shift)
        return offset - shift


def moved(offset: int, put: Iterable[Span]) -> int:
    """`offset` of a text as one of the text that has so many bytes more (or fewer) at the places `put`."""
    return offset + sum(max(length, place - offset) for place, length in put if place < offset)


def repair(language: Language, data: bytes, offset: int) -> Repaired:
    """The cheapest repair of `data` at `offset`.

    1. Parse as it is; a clean tree needs no repair.  2. Search for what the cursor lacks.
    """
    # 1. Most calls end here.
    data, cuts = focus(language, data, offset)
    offset = moved(offset, cuts)
    tree = language.parse(data)
    best = Repaired(data, tree, offset, 0, 0, cost_of(tree), cuts)
    if best.cost == 0:
        dangling = dangles(language, data, offset, state_at(language, data, offset))
        return _searched(language, replace(best, cost=1), best) if dangling else best
    if language.style == "indent" and out_of_reach(language, tree, data, offset):
        return best
    # 2.
    return _searched(language, best, best)


def _searched(language: Language, first: Repaired, otherwise: Repaired) -> Repaired:
    """The cheapest of `first` and its repairs at its place; `otherwise` where no repair is cheaper.

    1. The lexical state survives damage that no tree does.  2. Parse each candidate.  3. Stop at the first that
    parses cleanly, or when too much time has gone; the earlier of two equal ones wins.
    """
    begun = time.thread_time()
    # 1.
    data, tree, best = first.data, first.tree, first
    state = state_at(language, data, first.at)
    for start, end, text in candidates(language, data, first.at, state):
        # 2. Only the neighbourhood of the cursor is parsed again.
        new = language.reparse(tree, data, (start, end), text)
        cost = cost_of(new)
        if cost < best.cost:
            changed = data[:start] + text + data[end:]
            best = Repaired(changed, new, start, end - start, len(text), cost, first.put)
        # 3. Cheapest first, so the first clean one is the smallest change. Others wait for this thread's parses.
        if cost == 0 or time.thread_time() - begun > PATIENCE:
            break
    return otherwise if best is first else best


def dangles(language: Language, data: bytes, offset: int, state: State) -> bool:
    """Whether a clean text is only so because the statement at `offset` takes in the one on the next line."""
    if language.style == "indent":
        return offside_repair.dangles(data, offset, state)
    return brace_repair.dangles(language, data, offset, state)


def out_of_reach(language: Language, tree: Tree, data: bytes, offset: int) -> bool:
    """Whether an error ends above the cursor's logical line, where no change at the cursor reaches it."""
    line = state_at(language, data, offset).line
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
    # What a hidden rule of the grammar misses is no node that can be seen.
    return cost or MISSING_COST * tree.root_node.has_error


def candidates(
    language: Language, data: bytes, offset: int, state: State
) -> Iterator[tuple[int, int, bytes]]:
    """Replacements (start, end, text) at or near the cursor, where `state` is open, cheapest first."""
    if language.style == "indent":
        return offside_repair.candidates(data, offset, state)
    return brace_repair.candidates(language, data, offset, state)


def insertions(language: Language, data: bytes, offset: int, state: State) -> Iterator[bytes]:
    """What may be inserted at `offset`, where `state` is open, without touching any other byte."""
    if language.style == "indent":
        return offside_repair.insertions(data, offset, state)
    return brace_repair.insertions(language, data, offset, state)
