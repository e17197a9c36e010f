"""Misplaced statements: what the grammar takes anywhere, and the language only in certain rooms, by gaps.scm.

`@misplaced` is wrong by its pattern alone, `@misplaced.NAME` unless a `@room.NAME` is around it without a `@wall`
between them, `@misplaced.after` below the first wall of the file. `@once` is wrong where a node has two of one name.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from dg_lsp.source.language import ROOMS, Language
from dg_lsp.source.lexer import Span

# The root of a text, and where the fill is in it.
Part = tuple[Node, Span]


def new_misplaced(language: Language, new: Part, old: Part) -> list[Node]:
    """Return the misplaced statements that begin in the fill of `new`; none where `old` holds such ones itself.

    new: the text with the fill. old: the text with a neutral one, or with none. What holds such a statement already
    is a part of a file, or in another dialect, and so may be what has no wall.
    """
    root, (start, end) = new
    found = _misplaced(language.captures(root, (start, max(end, start + 1))))
    found = [(node, name) for node, name in found if start <= node.start_byte < end]
    if not found:
        return []
    (first, last), nodes = old[1], language.captures(old[0])
    nodes = {k: [n for n in v if n.start_byte < first or n.end_byte > last] for k, v in nodes.items()}
    walls = nodes.get("wall", ())
    known = {name for _, name in _misplaced(nodes)}
    if not any(wall.end_byte <= first for wall in walls):
        known.add("after")
    is_file = walls or _has_only_comments(*old)
    return [node for node, name in found if name not in known] if is_file else []


def repeated(language: Language, root: Node, span: Span) -> list[Node]:
    """Return the nodes in `span` that `@once` captures where the node around them has another one of their name."""
    own = [n for n in language.captures(root, span).get("once", ()) if span[0] <= n.start_byte < span[1]]
    holders = {n.parent.id: n.parent for n in own if n.parent is not None}
    counts = {
        id: Counter(_name(n) for n in language.captures(holder).get("once", ()) if n.parent == holder)
        for id, holder in holders.items()
    }
    return [n for n in own if n.parent is not None and counts[n.parent.id][_name(n)] > 1]


def _name(node: Node) -> bytes | None:
    """Return the name that `node` gives: its field of that name, its first part, such as a key, or all of it."""
    return (node.child_by_field_name("name") or next(iter(node.named_children), node)).text


def _has_only_comments(root: Node, fill: Span) -> bool:
    """Return whether the text below `root` has comments beside the one at `fill`, and no code."""
    others = [n for n in root.children if n.end_byte <= fill[0] or n.start_byte >= fill[1]]
    return bool(others) and all(n.is_extra for n in others) and len(root.children) - len(others) <= 1


def _misplaced(captured: Mapping[str, Sequence[Node]]) -> list[tuple[Node, str]]:
    """Return the misplaced nodes of `captured`, each with the name of the room that it is not in."""
    found = [(node, "") for node in captured.get("misplaced", ())]
    found += [(node, "after") for node in captured.get("misplaced.after", ())]
    wanted = [name for name in ROOMS if captured.get(f"misplaced.{name}")]
    return found + list(_outside(captured, wanted)) if wanted else found


def _outside(captured: Mapping[str, Sequence[Node]], names: Sequence[str]) -> Iterator[tuple[Node, str]]:
    """Yield those of `misplaced.NAME`, for each of `names`, that are in no room of that name."""
    # Of nodes with one span a statement is outside of what it consists of, and a function in the room that it makes.
    kinds = (*(f"misplaced.{name}" for name in names), "wall", *(f"room.{name}" for name in names))
    nodes = [
        (n.start_byte, -n.end_byte, rank, n) for rank, k in enumerate(kinds) for n in captured.get(k, ())
    ]
    around: list[tuple[int, str]] = []
    for start, end, rank, node in sorted(nodes, key=lambda one: one[:3]):
        while around and around[-1][0] <= start:
            around.pop()
        kind, _, name = kinds[rank].partition(".")
        if kind != "misplaced":
            around.append((-end, kinds[rank]))
        elif next((k for _, k in reversed(around) if k in ("wall", f"room.{name}")), "wall") == "wall":
            yield node, name
