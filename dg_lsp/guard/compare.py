"""Compare: what a fill does to the text around it, read in two texts that differ in their fill alone (law 5).

The errors that it adds, code that only the grammar takes, what is read otherwise after it, and what it leaves or ends.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

import tree_sitter
from tree_sitter import Node

from dg_lsp.budget import check
from dg_lsp.guard.baseline import Text, container_of, is_sound_but_for_its_gap
from dg_lsp.guard.site import Fault, fault_at
from dg_lsp.messages import LISTS
from dg_lsp.source.bodies import bodies_of
from dg_lsp.source.directives import directive_start
from dg_lsp.source.language import Language, check_shape, query_cursor
from dg_lsp.source.lexer import leading, line_end, width
from dg_lsp.source.misplaced import new_misplaced, repeated
from dg_lsp.source.names import declared_again

# How many bytes after a gap strings and brackets are compared; a quote too many shows at the next one.
REACH = 20_000
_BARE = "jsx_text"
# Signs after which a statement continues in the line below.
_GO_ON = frozenset(bytes([sign]) for sign in rb"=+-*/%&|<>^!?,.([~\\")
_BRACKETS = '["(" ")" "[" "]" "{" "}"] @bracket'
# Signs that may continue a statement of the line above.
_JOINS = frozenset(bytes([sign]) for sign in b"([`+-*/%&|^<=?")
# What holds a gap: a function, a class, a block or brackets; where it begins; where it ends, from the text's end, or
# -1 if that is before the end of the fill.
_Holder = tuple[str, int, int]


def added(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return the errors of `new` that are not those of `old`; if that has any, only from the fill on."""
    # What has to complete its line, unless a bracket of that is open: then it may continue below.
    whole = old.site.kind in ("rest_of_line", "span") and not old.site.closers
    blamed = whole and is_sound_but_for_its_gap(old)
    before = [] if blamed else errors_of(old.tree.root_node)
    errors = errors_of(new.tree.root_node)
    # In a text that stays broken the ends of errors move with every byte; then only their number tells.
    if before and len(errors) <= len(before):
        return ()
    if before:
        known = {_key(old, node) for node in before}
        errors = [n for n in errors if n.end_byte >= new.start and _key(new, n) not in known]
    if all(awaits_operand(node, new) for node in errors):
        return ()
    return tuple(_fault_of(new, node) for node in sorted(errors, key=lambda n: n.byte_range))


def errors_of(root: Node) -> list[Node]:
    """ERROR and MISSING nodes; where a missing token is no node, the innermost node without it."""
    found, stack = [], [root]
    while stack:
        check()
        node = stack.pop()
        below = [child for child in node.children if child.has_error or child.is_error or child.is_missing]
        if node.is_error or node.is_missing or (node.has_error and not below):
            found.append(node)
        stack.extend(below)
    return found


def awaits_operand(node: Node, filled: Text) -> bool:
    """Return whether `node` is the missing operand of a cast that the fill completes, as in `x = (byte)`."""
    holder, after = node.parent, filled.data[filled.end : node.start_byte]
    # A name without text is the operand in some grammars; what follows may be an error in place of it.
    holder = holder.parent if holder and holder.type == "identifier" else holder
    is_cast = holder is not None and holder.type == "cast_expression"
    return is_cast and node.start_byte > filled.end and not after.strip(b") \t\r\n")


def changed(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return what `new`, a text of the same gap as `old`, reads otherwise, as faults of its fill, errors apart.

    1. Code that only the grammar takes is where it was.  2. Strings, comments and brackets after the gap are the same.
    3. What held the gap holds the fill, and ends where it did.
    """
    if not new.clean:
        return ()
    return _misread(old, new) or (
        _displaced(old, new) or taken(old, new) or _joined(old, new) if old.clean else ()
    )


def _misread(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return what the grammar accepts and the language does not, in the fill and in what it changes after it."""
    language, gap, fill = new.language, (old.start, old.end), (new.start, new.end)
    _, stop = language.changed(old.tree, old.data, gap, new.fill, new.tree)
    known = {_key(old, n) for n in _refusals(old, stop + len(old.data) - len(new.data))}
    nodes = [n for n in _refusals(new, stop) if n.end_byte > new.start and _key(new, n) not in known]
    nodes += new_misplaced(language, (new.tree.root_node, fill), (old.tree.root_node, gap))
    root = new.tree.root_node
    twice = [*repeated(language, root, fill), *declared_again(language, root, fill)]
    return (
        *(_fault_of(new, node) for node in nodes),
        *(_fault_of(new, node, "a name that is there already") for node in twice),
    )


def _refusals(text: Text, stop: int) -> list[Node]:
    """Return the nodes from the fill of `text` up to `stop` that are code for the grammar only."""
    span = text.start, max(text.end, text.start + 1, stop)
    return text.language.captures(text.tree.root_node, span).get("refuse", [])


def _displaced(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return the text after the gap that is read otherwise in `new`, or what held the gap and the fill leaves or ends.

    A line or a span that was asked for may end a block, such as `else:`, and anything defined within the outermost
    function, but not that function. A span may also begin the text that the rest of its last line ends.
    """
    fill, site = new.fill, old.site
    line = line_end(old.data, old.end) - old.end if site.kind == "span" else -1
    if [m for m in marks(old) if m[1] >= line] != [m for m in marks(new) if m[1] >= line]:
        return (fault_at(fill, len(fill), len(fill), "text after it that would be read otherwise"),)
    before, after = _holders(old), _holders(new)
    held = {holder for holder in before if holder[2] >= 0}
    if site.may_end_blocks:
        outermost = min((at for name, at, _ in held if name == "function"), default=old.start)
        held = {holder for holder in held if holder[1] <= outermost and holder[0] != "block"}
    lost = max(held - after.keys(), key=lambda holder: holder[1], default=None)
    if lost is None:
        return ()
    at = max((end - new.start for holder, end in after.items() if holder[:2] == lost[:2]), default=None)
    if at is None:
        return (fault_at(fill, 0, len(fill), f"code that is no longer in a {lost[0]}"),)
    if at >= len(fill.rstrip()):
        return (fault_at(fill, len(fill), len(fill), "an end that takes in what follows"),)
    at = max(at, 0)
    at += len(fill[at:]) - len(fill[at:].lstrip())
    return (fault_at(fill, at, len(fill), f"text outside of the {lost[0]}"),)


def mixed(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return the fault that the fill of `new` makes one statement with the line below or above, which `old` shows."""
    return taken(old, new) or _joined(old, new) if old.clean and new.clean else ()


def taken(old: Text, new: Text) -> tuple[Fault, ...]:
    """Return the fault that the fill of `new` takes in the statement on the next line, as `x =` does in JavaScript.

    A line that is deeper than that of the gap continues it, and so may any after a comma, as in CSS, and a block below
    its header. old: a sound text.
    """
    leaf = _next_leaf(old) if _begins_statement(new) else None
    if leaf is None or width(leading(old.data, leaf.start_byte)) > width(leading(old.data, old.site.line)):
        return ()
    begin = old.site.line + len(leading(old.data, old.site.line))
    at = leaf.start_byte + len(new.data) - len(old.data)
    own = new.tree.root_node.descendant_for_byte_range(at, at + 1)
    statement, holders = _outermost(leaf, "start_byte"), _begun_by(own, begin) if own else []
    if leaf.type == "{" or not statement.is_named or not holders or _begun_by(leaf, begin):
        return ()
    if _may_hold(new, holders, (old, statement)):
        return ()
    return (fault_at(new.fill, len(new.fill), len(new.fill), "a beginning that takes in the next line"),)


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
    if width(leading(old.data, above.start_byte)) < width(leading(old.data, site.line)):
        return ()
    at = new.end - len(begun)
    own = new.tree.root_node.descendant_for_byte_range(at, at + 1)
    places = {(node.type, node.start_byte) for node in (_ancestors(own) if own else ())}
    if (above.type, above.start_byte) not in places:
        return ()
    return (fault_at(new.fill, 0, len(new.fill), "a text that continues the line above"),)


def _begins_statement(text: Text) -> bool:
    """Return whether the fill of `text` is the last of its line, which begins a statement and ends it, if it can."""
    site, fill = text.site, text.fill.rstrip()
    if site.kind not in ("statement", "rest_of_line") or site.rest.strip() or fill.endswith(b","):
        return False
    is_within = site.before[: site.line].rstrip()[-1:] in _GO_ON
    return not is_within and directive_start(text.language, text.data, text.end) < 0


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
    known = {_ending(old, node) for node in (statement, *_begun_with(statement))}
    return (key in parts and part.parent == outer) or {_ending(new, node) for node in holders} <= known


def _begun_with(node: Node) -> Iterator[Node]:
    """Yield the nodes below `node` that begin where it does."""
    while node.children and node.children[0].start_byte == node.start_byte:
        node = node.children[0]
        yield node


def _ending(text: Text, node: Node) -> tuple[str, int]:
    """Return the type of a node of `text`, and where it ends, from the text's end."""
    return node.type, len(text.data) - node.end_byte


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


def _ancestors(node: Node) -> Iterator[Node]:
    """Yield the nodes that hold `node`, the innermost first."""
    holder = node.parent
    while holder is not None:
        yield holder
        holder = holder.parent


def _outermost(node: Node, edge: str) -> Node:
    """Return the outermost node that begins, or ends, where `node` does."""
    *_, found = node, *takewhile(lambda one: getattr(one, edge) == getattr(node, edge), _ancestors(node))
    return found


def _begun_by(leaf: Node, begin: int) -> list[Node]:
    """Return the nodes that hold `leaf` and begin before it, from `begin` on."""
    return [node for node in _ancestors(leaf) if begin <= node.start_byte < leaf.start_byte]


def _holders(text: Text) -> dict[_Holder, int]:
    """Return what holds the gap, each with its end: functions, classes, blocks, and the brackets of a list."""
    site, size = text.site, len(text.data)
    # White space after the gap may belong to what ends there or not.
    first, rest = len(site.before.rstrip()), len(site.after.lstrip())
    # Half a line is read with the next one: `priv` above `Kind() {` is a type for it.
    line = size if site.rest.strip() else site.line
    holders = dict[_Holder, int]()
    near = max(text.start - 1, 0), text.end + 1
    found: list[_Holder] = [
        (body.header.owner, body.header.define, body.stop)
        for body in bodies_of(text.language, text.tree.root_node, text.data, near)
        if body.header.define < first and (body.header.define < line or body.header.opens <= text.end)
    ]
    if site.kind in LISTS and (brackets := container_of(text)):
        found.append(("list", brackets[0], brackets[1] + 1))
    # A body may not leave its owner, though that ends with the gap; a span what it is in, wherever that ends.
    is_span, last = site.kind == "span", text.start + len(text.fill.rstrip())
    for name, start, stop in found:
        behind = size - stop
        if is_span or behind >= rest:
            is_left = stop < last or not (is_span or name == site.kind.removesuffix("_body"))
            behind = -1 if is_left else rest
        holders[name, start, behind] = stop
    return holders


def marks(text: Text) -> list[tuple[str, int, int]]:
    """Return the strings, comments and brackets after the gap, counted from where the text after it begins.

    One that begins before and takes in text after the gap begins at -1: in C, `// a\\` takes in the next line.
    """
    root, end, language = text.tree.root_node, text.end, text.language
    check_shape(root)
    cursor = query_cursor(_brackets(language), (end, end + REACH))
    found = [(n.type, n) for n in cursor.captures(root).get("bracket", ())]
    captured = language.captures(root, (end, end + REACH))
    found += [(name, n) for name in ("string", "comment") for n in captured.get(name, ())]
    after = [(name, n) for name, n in found if n.end_byte > end and text.data[end : n.end_byte].strip()]
    # The text between tags has no quote where it begins, so any element may be written in it.
    places = ((name, -1 if n.type == _BARE else max(n.start_byte - end, -1), n) for name, n in after)
    counted = {(name, at, n.end_byte - end) for name, at, n in places}
    return sorted(mark for mark in counted if mark[1] < REACH)


@lru_cache
def _brackets(language: Language) -> tree_sitter.Query:
    return tree_sitter.Query(language.grammar, _BRACKETS)


def _key(text: Text, node: Node) -> tuple[str, bool, int, int]:
    """Return the key by which nodes of two texts are the same: type and ends, after the fill from the text's end."""
    start, end = (at if at < text.start else at - len(text.data) - 1 for at in node.byte_range)
    return node.type, node.is_missing, start, end


def _fault_of(text: Text, node: Node, what: str = "") -> Fault:
    """Return `node` as a fault of the fill of `text`; what: its words, else those for what is unexpected or missing."""
    length = len(text.fill)
    first = min(max(node.start_byte - text.start, 0), length)
    last = min(max(node.end_byte - text.start, first), length)
    if what:
        return fault_at(text.fill, first, last, what)
    what = unexpected(text.fill[first:last])
    if node.is_missing:
        what = f"a missing `{node.type}`"
    elif node.start_byte >= text.end:
        what = "an end that does not match what follows"
    elif node.has_error and not node.is_error:
        what = f"something missing in `{_begun(node.text or b'')}`"
    return fault_at(text.fill, first, last, what)


def unexpected(text: bytes) -> str:
    """Return the words for `text` where it is not valid."""
    begun = _begun(text)
    return f"unexpected `{begun}`" if begun else "an unexpected end"


def _begun(text: bytes) -> str:
    line = text.split(b"\n")[0].strip().decode("utf-8", "replace")
    return f"{line[:20]}…" if len(line) > 20 else line
