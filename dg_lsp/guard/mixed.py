"""Mixed: a fill that makes one statement with the line below or above, which no count of errors shows (law 5)."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from tree_sitter import Node

from dg_lsp.guard.baseline import Text
from dg_lsp.guard.site import Fault, fault_at
from dg_lsp.source.directives import directive_start
from dg_lsp.source.lexer import indentation, leading, line_start
from dg_lsp.source.names import around

# Signs after which a statement continues in the line below.
_GO_ON = frozenset(bytes([sign]) for sign in rb"=+-*/%&|<>^!?,.([~\\")
# Signs that may continue a statement of the line above.
_JOINS = frozenset(bytes([sign]) for sign in b"([`+-*/%&|^<=?")


def mixed(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return the fault that the fill of `new` makes one statement with the line below or above, which `old` shows.

    In a plain language a line may continue what is above it, such as a list of YAML.
    """
    if not (old.clean and new.clean):
        return ()
    return _taken(old, new) or (() if new.language.is_plain else _joined(old, new))


def _taken(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return the fault that the fill of `new` takes in the statement on the next line, as `x =` does in JavaScript.

    A line that is deeper than that of the gap continues it, and so may any after a comma, as in CSS, and a block below
    its header. old: a sound text.
    """
    holders, statement = _held(old, new)
    if statement is None or (new.language.is_plain and _is_added(new, holders, (old, statement))):
        return ()
    if _may_hold(new, holders, (old, statement)):
        return ()
    return (fault_at(new.fill, len(new.fill), len(new.fill), "a beginning that takes in the next line"),)


def holds_next(old: Text, new: Text) -> bool:
    """Return whether the fill of `new` begins what the statement on the next line, which `old` shows, is a part of.

    `@property` does so above a method, and `if (a)` above a call.
    """
    return old.clean and new.clean and _held(old, new)[1] is not None


def _held(old: Text, new: Text) -> tuple[list[Node], Node | None]:
    """Return the nodes that the fill of `new` begins and that hold the statement on the next line, and that statement.

    None if they hold none that is no deeper than the line of the gap. old: a sound text.
    """
    leaf = _next_leaf(old) if _begins_statement(new) else None
    if leaf is None or indentation(old.data, leaf.start_byte) > indentation(old.data, old.site.line):
        return [], None
    begin = old.site.line + len(leading(old.data, old.site.line))
    at = leaf.start_byte + len(new.data) - len(old.data)
    own = new.tree.root_node.descendant_for_byte_range(at, at + 1)
    statement, holders = _statement_at(old, leaf), _begun_by(own, begin) if own else []
    if not new.language.is_plain and not any(node in holders for node in _statements(new, at)):
        return [], None
    if leaf.type == "{" or not statement.is_named or not holders or _begun_by(leaf, begin):
        return [], None
    return holders, statement


def _joined(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return the fault that the fill of `new` continues the statement above it, as `(a)` and `[a]` do in JavaScript.

    A line that is deeper than the statement may. old: a sound text.
    """
    site, begun = old.site, new.fill.lstrip()
    if site.before[site.line :].strip() or begun[:1] not in _JOINS or not _begins_statement(new):
        return ()
    leaf = _last_leaf(old)
    above = _outermost(leaf, "end_byte") if leaf is not None else None
    if above is None or not above.is_named:
        return ()
    if indentation(old.data, above.start_byte) < indentation(old.data, site.line):
        return ()
    at = new.end - len(begun)
    own = new.tree.root_node.descendant_for_byte_range(at, at + 1)
    places = {(node.type, node.start_byte) for node in (around(own.parent) if own else ())}
    if (above.type, above.start_byte) not in places:
        return ()
    return (fault_at(new.fill, 0, len(new.fill), "a text that continues the line above"),)


def _statement_at(text: Text, leaf: Node) -> Node:
    """Return the statement of `text` that begins with `leaf`; in a plain language, the outermost node that does."""
    if text.language.is_plain:
        return _outermost(leaf, "start_byte")
    begun = [node for node in _statements(text, leaf.start_byte) if node.start_byte == leaf.start_byte]
    return max(begun, key=lambda node: node.end_byte, default=leaf)


def _statements(text: Text, at: int) -> list[Node]:
    """Return the statements of `text` that hold the offset `at`."""
    return text.language.captures(text.tree.root_node, (at, at + 1)).get("statement", [])


def _begins_statement(text: Text) -> bool:
    """Return whether the fill of `text` is the last of its line, which begins a statement and ends it, if it can."""
    site, fill = text.site, text.fill.rstrip()
    if site.kind not in ("statement", "rest_of_line") or site.rest.strip():
        return False
    if text.language.is_plain and fill.endswith(b","):
        return False
    is_within = site.before[: site.line].rstrip()[-1:] in _GO_ON
    return not is_within and directive_start(text.language, text.data, text.end) < 0


def _is_added(new: Text, holders: Sequence[Node], after: tuple[Text, Node]) -> bool:
    """Return whether `after`, a node of the old text, is a block, to which the fill of `new` adds a statement.

    What it begins with has a line of its own, and is the same part of one of `holders` below the fill.
    """
    old, block = after
    first = block.children[0] if block.children else block
    other = first.next_sibling
    if other is not None and other.text != b";" and b"\n" not in old.data[first.end_byte : other.start_byte]:
        return False
    at = first.start_byte + len(new.data) - len(old.data)
    places = [(_ending(new, one), one.children) for one in holders]
    return any(
        key == _ending(old, block)
        and any(one.start_byte == at and _ending(new, one) == _ending(old, first) for one in parts)
        for key, parts in places
    )


def _may_hold(new: Text, holders: Sequence[Node], after: tuple[Text, Node]) -> bool:
    """Return whether `holders`, which the fill of `new` begins, may hold the statement of the old text `after` it.

    A whole part may precede it, such as an annotation, the header `if (a)`, or that of a table in TOML. It may be in
    another block, as below `else:`.
    """
    (old, statement), end = after, new.start + len(new.fill.rstrip())
    outer, key = holders[-1], _ending(old, statement)
    inner_parts, parts = ({_ending(new, node) for node in one.named_children} for one in (holders[0], outer))
    if key in inner_parts and statement.parent is not None and statement.parent.type == holders[0].type:
        return True
    if key in parts and new.fill.rstrip().endswith(b")"):
        return True
    last = new.tree.root_node.descendant_for_byte_range(end - 1, end)
    part = _outermost(last, "end_byte") if last is not None else None
    # A word or a sign ends no part; a backslash joins lines.
    if part is None or not part.is_named or new.fill.rstrip().endswith(b"\\"):
        return False
    if key in parts and part.parent == outer:
        return True
    known = {_ending(old, node) for node in (statement, *_begun_with(statement))}
    line = new.fill[line_start(new.fill, len(new.fill.rstrip())) :].lstrip()
    is_above = new.language.words.above.match(line) is not None
    return is_above and {_ending(new, node) for node in holders} <= known


def _begun_with(node: Node) -> Iterator[Node]:
    """Yield the nodes below `node` that begin where it does."""
    while node.children and node.children[0].start_byte == node.start_byte:
        node = node.children[0]
        yield node


def _next_leaf(text: Text) -> Node | None:
    """Return the first leaf of `text` after its fill that is no comment; None at the end of the text."""
    at = text.end
    while True:
        at += len(text.data[at:]) - len(text.data[at:].lstrip())
        leaf = text.tree.root_node.descendant_for_byte_range(at, at + 1)
        if at >= len(text.data) or leaf is None or leaf.start_byte != at:
            return None
        if not leaf.is_extra:
            return leaf
        at = leaf.end_byte


def _last_leaf(text: Text) -> Node | None:
    """Return the last leaf of `text` before its fill that is no comment; None at the beginning of the text."""
    at = text.start
    while at := len(text.data[:at].rstrip()):
        leaf = text.tree.root_node.descendant_for_byte_range(at - 1, at)
        if leaf is None or not leaf.is_extra:
            return leaf
        at = leaf.start_byte
    return None


def _outermost(node: Node, edge: str) -> Node:
    """Return the outermost node that begins, or ends, where `node` does."""
    *_, found = node, *takewhile(lambda one: getattr(one, edge) == getattr(node, edge), around(node.parent))
    return found


def _begun_by(leaf: Node, begin: int) -> list[Node]:
    """Return the nodes that hold `leaf` and begin before it, from `begin` on."""
    return [node for node in around(leaf.parent) if begin <= node.start_byte < leaf.start_byte]


def _ending(text: Text, node: Node) -> tuple[str, int]:
    """Return the type of a node of `text`, and where it ends, from the text's end."""
    return node.type, len(text.data) - node.end_byte
