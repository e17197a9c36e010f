"""Region: a part of a line or list that can be filled as one, such as the arguments of a call; at a cursor.

Knows trees and captures; knows no bodies and no edits.
"""

import re
from dataclasses import dataclass

from tree_sitter import Node

from dg_lsp.text.documents.lines import indentation, line_end, line_start
from dg_lsp.text.gaps.context import CursorContext
from dg_lsp.text.messages import LISTS, STRINGS, Kind
from dg_lsp.text.syntax.indented_bodies import code_end, logical_lines
from dg_lsp.text.syntax.items import window
from dg_lsp.text.syntax.lexer import Span

_HOLDERS: tuple[Kind, ...] = ("statement", "string")
# A placeholder behind one of these is not what stands at the cursor.
_CLOSES = re.compile(rb"[)\]}>]")
_BEFORE = (b"(", b"[", b"{", b",", b":")
_TEXT = re.compile(rb"\S")
_QUOTES = re.compile(rb"[A-Za-z@$]*(#*)(?:\"\"\"|'''|[\"'`]|<)(?:(?<=R\")[^()\s]*\()?")


@dataclass(frozen=True, slots=True)
class Region:
    """[start, end) of a context's data, without the delimiters; [outer_start, outer_end) with them."""

    kind: Kind
    start: int
    end: int
    outer_start: int
    outer_end: int


def region_at(context: CursorContext, kind: Kind) -> Region | None:
    """The innermost region of `kind` at the context's cursor; of expressions the outermost in its statement."""
    if kind == "statement" and context.cost and context.language.style == "indent":
        return _by_lines(context)
    found = regions_at(context, kind)
    if kind == "statement":
        found = _not_round(context, found)
    if kind == "expression":
        found = _in_header(context, found)
    if kind == "expression" and not _is_whole(context, found):
        # A string may hold expressions of its own.
        holders = {k: regions_at(context, k)[:1] for k in _HOLDERS}
        inside = [
            s
            for s in found
            if all(h.start <= s.start and s.end <= h.end for k in holders for h in holders[k])
        ]
        # Most hold none, and then the string itself is part of one.
        outer = [s for s in found if all(h.start <= s.start for h in holders["statement"])]
        return next(iter((inside or outer)[-1:]), None)
    return found[0] if found else None


def _not_round(context: CursorContext, found: list[Region]) -> list[Region]:
    """Those of the statements that hold no body round a blank line: in such a body a new one belongs."""
    data, cursor = context.data, context.cursor
    if data[line_start(data, cursor) : line_end(data, cursor)].strip():
        return found
    opens = [b.header.opens for b in context.bodies if b.header.opens <= cursor <= b.closes]
    return [s for s in found if all(at <= s.start for at in opens)]


def _in_header(context: CursorContext, found: list[Region]) -> list[Region]:
    """Those of the regions that are part of the header at the cursor, if it is in one: a value may hold its body."""
    low, high = _near(context)
    headers = [b.header for b in context.bodies if b.header.owner == "block"]
    inside = [h for h in headers if h.define <= low and high <= h.opens]
    return [s for s in found if all(h.define <= s.start and s.end <= h.opens for h in inside[-1:])] or found


def _by_lines(context: CursorContext) -> Region | None:
    """The logical line at the cursor, for what no repair mends."""
    data, here, eol = (
        context.data,
        line_start(context.data, context.cursor),
        line_end(context.data, context.cursor),
    )
    for line in logical_lines(context.language, data, *window(context.language, data, context.cursor)):
        if not line_start(data, line.start) <= context.cursor <= line_end(data, line.end):
            continue
        start, end = line.start, line.end
        # A bracket that was lost joins lines: what goes on with a statement stands deeper than it.
        first = _TEXT.search(data, here, eol)
        if first and line.start < here and not _deeper(data, first.start(), line.width):
            start = first.start()
        below = _TEXT.search(data, eol)
        if below and below.start() < end and not _deeper(data, below.start(), line.width):
            end = max(context.cursor, start)
        return Region("statement", start, end, start, end)
    return None


def _deeper(data: bytes, at: int, columns: int) -> bool:
    """Whether the text at `at` begins its line deeper than `columns`, or closes a bracket."""
    return indentation(data, at) > columns or data[at : at + 1] in (b")", b"]", b"}")


def _is_whole(context: CursorContext, found: list[Region]) -> bool:
    """Whether the innermost region is a placeholder that alone stands in its place of a list that is closed."""
    first, last = context.inserted
    alone = context.data[first:last].strip() == b"_g_" and context.data[:first].rstrip().endswith(_BEFORE)
    return bool(found) and alone and (found[0].start, found[0].end) == _near(context)


def hole_at(context: CursorContext) -> Region | None:
    """The statement at the context's cursor that says "not written yet" between others that are written."""
    data, cursor = context.data, context.cursor
    return next(iter(holes_in(context, (line_start(data, cursor), line_end(data, cursor)))), None)


def holes_in(context: CursorContext, span: Span) -> list[Region]:
    """The statements within `span` of the context's data that say "not written yet" between others that are written."""
    start, end = span
    nodes = context.language.captures(context.tree.root_node, (start, end + 1)).get("stub", [])
    inside = [n for n in nodes if start <= n.start_byte and n.end_byte <= end and _has_written(n)]
    return [_trimmed(context.data, "statement", node) for node in sorted(inside, key=lambda n: n.start_byte)]


def _has_written(stub: Node) -> bool:
    """Whether code stands beside `stub` in its block."""
    block = stub.parent
    beside = block.named_children if block else []
    return any(node != stub and not node.type.endswith("comment") for node in beside)


def regions_at(context: CursorContext, kind: Kind) -> list[Region]:
    """All regions of `kind` that hold the context's cursor, the innermost first."""
    low, high = _near(context)
    nodes = context.language.captures(context.tree.root_node, (max(low - 1, 0), high + 1)).get(kind, [])
    regions = [_trimmed(context.data, kind, node) for node in nodes if not node.is_missing]
    holding = [s for s in regions if _holds(s, kind, low, high)]
    return sorted(holding, key=lambda s: (s.outer_end - s.outer_start, s.start))


def _near(context: CursorContext) -> Span:
    """What the region must hold: the placeholder that a repair has put at the cursor, or the cursor."""
    start, stop = context.inserted
    at = context.data.find(b"_g_", start, stop)
    if at >= 0 and not _CLOSES.search(context.data, start, at):
        return at, at + 3
    # No node reaches over the blanks at the end of a line or list.
    data, cursor = context.data, context.cursor
    here, rest = data[line_start(data, cursor) : cursor], data[cursor : line_end(data, cursor)]
    blank = here.strip() and rest.lstrip()[:1] in (b"", b")", b"]", b"}", b",", b";", b":", b"{")
    at = cursor - (len(here) - len(here.rstrip())) * bool(blank)
    return at, at


def _holds(region: Region, kind: Kind, low: int, high: int) -> bool:
    if kind in LISTS or kind in STRINGS:
        return region.start <= low and high <= region.end
    return region.outer_start <= low and high <= region.outer_end


def _trimmed(data: bytes, kind: Kind, node: Node) -> Region:
    """The region of a captured node: without brackets, quotes or what begins and ends a comment."""
    outer = node.start_byte, code_end(node) if kind == "statement" else node.end_byte
    start, end = outer
    if kind in LISTS:
        start, end = _inside(node)
    elif kind in STRINGS:
        start, end = _unquoted(data, node)
    elif kind == "comment":
        start, end = _bare(data, start, end)
    return Region(kind, start, max(start, end), *outer)


def _inside(node: Node) -> Span:
    """The span between the brackets of a list; a bracket that is missing takes nothing away."""
    children = [c for c in node.children if not (c.is_extra and c.type == "comment")]
    start, end = node.start_byte, node.end_byte
    if children and not children[0].is_named:
        start = children[0].end_byte
    if len(children) > 1 and not children[-1].is_named and not children[-1].is_missing:
        end = children[-1].start_byte
    return start, max(start, end)


def _unquoted(data: bytes, node: Node) -> Span:
    """The span between the quotes of a string, or of the one string that a docstring's statement is."""
    while node.type not in ("string", "concatenated_string") and len(node.named_children) == 1:
        inner = node.named_children[0]
        if (inner.start_byte, inner.end_byte) != (node.start_byte, node.end_byte):
            break
        node = inner
    start, end = node.start_byte, node.end_byte
    quotes = _QUOTES.match(data, start, end)
    if quotes is None:
        return start, end
    closing = quotes[0].lstrip(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz@$#")
    # What stands between angle brackets is the name of a system's header.
    shut = b">" if closing == b"<" else closing + quotes[1]
    if b"(" in closing:
        shut = b")" + closing[1:-1] + b'"'
    start = quotes.end()
    return (start, end - len(shut)) if data.endswith(shut, start, end) else (start, end)


def _bare(data: bytes, start: int, end: int) -> Span:
    """The span of a comment's text."""
    begins = re.compile(rb"(?:/\*+|//+!?|#+|--|<!--)[ \t]?").match(data, start, end)
    ends = re.compile(rb"(?:[ \t]*\*+/|[\r\n]+)$").search(data, start, end)
    start = begins.end() if begins else start
    return start, max(ends.start() if ends else end, start)
