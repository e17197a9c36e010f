"""Compare: what a fill does to the text around it, read in two texts that differ in their fill alone (law 5).

The errors that it adds, code that only the grammar takes, what is read otherwise after it, and what it leaves or ends.
"""

from functools import lru_cache

import tree_sitter
from tree_sitter import Node

from dg_lsp.budget import check
from dg_lsp.guard.baseline import Text, container_of, is_sound_but_for_its_gap
from dg_lsp.guard.site import Fault, fault_at
from dg_lsp.messages import LISTS
from dg_lsp.source.bodies import bodies_of
from dg_lsp.source.language import Language, check_shape, query_cursor
from dg_lsp.source.lexer import line_end
from dg_lsp.source.misplaced import new_misplaced, repeated
from dg_lsp.source.names import declared_again

# How many bytes after a gap strings and brackets are compared; a quote too many shows at the next one.
REACH = 20_000
_BARE = "jsx_text"
_BRACKETS = '["(" ")" "[" "]" "{" "}"] @bracket'
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
    return _misread(old, new) or (_displaced(old, new) if old.clean else ())


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
        following = size - stop
        if is_span or following >= rest:
            is_left = stop < last or not (is_span or name == site.kind.removesuffix("_body"))
            following = -1 if is_left else rest
        holders[name, start, following] = stop
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
