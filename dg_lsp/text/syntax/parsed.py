"""What is open at a place of a text that parses: the tree tells where reading begins, and lines tell nothing.

A string may hold lines at column 0 that look like the head of an item, and only the tree knows that they are none.
Knows trees and tokens; knows no document, no gaps and no edits.
"""

from dataclasses import replace

from tree_sitter import Node

from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.bodies import item_at
from dg_lsp.text.syntax.brackets import State, state_from


def state_in(language: Language, root: Node, data: bytes, offset: int) -> State:
    """What is open at `offset` of `data`, whose tree `root` has no error.

    1. Begin at the top-level item that the offset is in or behind.  2. Where classes are round the offset, begin at
    the member of the innermost one; their braces are open.  3. Read tokens from there.
    """
    # 1.
    item = item_at(root, offset)
    start = item.start_byte if item != root else 0
    # 2.
    around = _classes(language, item, offset)
    if around:
        start = _member(data, around[-1], offset)
    # 3.
    inner = state_from(language, data, offset, start)
    braces = tuple(b.start_byte for b in around if data[b.start_byte : b.start_byte + 1] == b"{")
    return replace(inner, brackets=b"{" * len(braces) + inner.brackets, opened=(*braces, *inner.opened))


def _classes(language: Language, item: Node, offset: int) -> list[Node]:
    """The bodies of classes and their like in `item` that hold `offset`, the outermost first."""
    bodies = [record["class.body"] for record in language.records(item, (offset, offset + 1))["class"]]
    holding = [body for body in bodies if body.start_byte < offset < body.end_byte]
    return sorted(holding, key=lambda body: body.start_byte)


def _member(data: bytes, body: Node, offset: int) -> int:
    """Where the last member of `body` begins at or before `offset`; behind a brace where there is none."""
    members = [child for child in body.named_children if child.start_byte <= offset]
    return members[-1].start_byte if members else body.start_byte + data.startswith(b"{", body.start_byte)
