"""What stands at a cursor: the regions of its line, such as the arguments of a call, and the kind of gap that is meant.

Knows contexts and captures; knows no edits.
"""

import re
from dataclasses import dataclass

from tree_sitter import Node

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.lines import indentation, leading, line_end, line_start, width
from dg_lsp.text.gaps.context import CursorContext, state_of
from dg_lsp.text.messages import LISTS, STRINGS, Kind
from dg_lsp.text.syntax.body import KIND_OF, Body
from dg_lsp.text.syntax.brackets import State
from dg_lsp.text.syntax.indented_bodies import code_end
from dg_lsp.text.syntax.lexer import Span

_HOLDERS: tuple[Kind, ...] = ("statement", "string")
_CLOSES = re.compile(rb"[)\]}>]")
_QUOTES = re.compile(rb"[A-Za-z@$]*(#*)(?:\"\"\"|'''|[\"'`]|<)(?:(?<=R\")[^()\s]*\()?")
_VALUE = re.compile(
    rb"(?:^|[^=!<>:+\-*/%&|^])(?:=|:=|[+\-*/%&|^]=|=>|->)(?![=>])|<-"
    rb"|\b(?:return|if|elif|while|for|match|switch|throw|raise|yield|await|assert|in|of|case|when)\b"
)
# A key whose value is to come.
_KEY = re.compile(rb"[\w\"'\])]\??[ \t]*:[ \t]*\Z")
_TODO = re.compile(rb"\b(?:TODO|FIXME|XXX)\b")
_CALLED = re.compile(rb"[\w\x80-\xff)\]>!?][ \t]*$")
# These take a bracket without being called.
_WORDS = re.compile(
    rb"\b(?:if|elif|while|for|switch|match|return|in|and|or|not|yield|await|assert|raise|throw|catch|with|case)[ \t]*$"
)


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
    found = regions_at(context, kind)
    if kind == "statement":
        found = _not_round(context, found)
    if kind == "expression":
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
    low, high = _place_of(context)
    nodes = context.language.captures(context.tree.root_node, (max(low - 1, 0), high + 1)).get(kind, [])
    regions = [_trimmed(context.data, kind, node) for node in nodes if not node.is_missing]
    holding = [s for s in regions if _holds(s, kind, low, high)]
    return sorted(holding, key=lambda s: (s.outer_end - s.outer_start, s.start))


def _place_of(context: CursorContext) -> Span:
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


def choose_kind(document: Document, context: CursorContext, offset: int) -> Kind:
    """The kind of gap that a cursor without a wish means.

    1. A body or a statement that is not written yet.  2. What is open: a string, a comment, a list of arguments,
    another bracket.  3. A blank line wants a statement; a line that wants a value an expression.  4. Else the rest
    of the line.
    """
    data = document.data
    # 1. It comes first, for a stub may hold strings and brackets itself.
    body = body_at(context)
    if body is not None and offers(context, body):
        return KIND_OF[body.header.owner]
    if hole_at(context) is not None:
        return "statement"
    # 2.
    state = state_of(document, context, offset)
    if state.string:
        return "docstring" if _is_docstring(context, data, state) else "string"
    if state.comment:
        return "statement" if is_todo(data, state, offset) else "comment"
    if state.brackets and (kind := _in_bracket(context, data, state, offset)):
        return kind
    # 3. and 4.
    return _on_line(data, offset)


def _on_line(data: bytes, offset: int) -> Kind:
    """What a place on a line asks for that is in nothing open."""
    before, behind = data[line_start(data, offset) : offset], data[offset : line_end(data, offset)]
    if not before.strip():
        return "rest_of_line" if behind.strip() else "statement"
    return "expression" if _VALUE.search(before) else "rest_of_line"


def is_todo(data: bytes, state: State, offset: int) -> bool:
    """Whether the comment that is open at `offset` ends there and says what is to be done below it."""
    ends = not data[offset : line_end(data, offset)].strip()
    return state.comment and ends and _TODO.search(data, state.begins, offset) is not None


def body_at(context: CursorContext) -> Body | None:
    """The innermost body that the context's cursor is in, or on the header of."""
    inside = [b for b in context.bodies if is_at(context.data, b, context.cursor)]
    return max(inside, key=lambda b: (b.header.define, -b.end), default=None)


def is_at(data: bytes, body: Body, cursor: int) -> bool:
    """Whether `cursor` is on a line of `body` or its header, or on blank lines below that are still part of it."""
    if cursor < line_start(data, body.header.start):
        return False
    if body.closes != body.end or body.stop > body.closes:
        # Behind the brace that closes it only the very end still counts.
        return cursor <= body.stop
    if cursor <= line_end(data, body.end):
        return True
    if data[body.end : line_end(data, cursor)].strip():
        return False
    return body.first is None or width(leading(data, cursor)) > indentation(data, body.header.define)


def offers(context: CursorContext, body: Body) -> bool:
    """Whether a cursor without a wish means `body`: it is a stub, and its header is not being typed."""
    data, header, cursor = context.data, body.header, context.cursor
    if not body.stub or cursor < line_start(data, header.define):
        return False
    if body.docstring is not None and body.docstring[0] < cursor < body.docstring[1]:
        return False
    if header.owner != "function" and (body.first is not None or cursor < header.opens):
        return False
    opening = data.find(b"(", header.define, header.opens)
    typing = header.define < cursor < header.opens and cursor > opening
    return not typing and (body.first is None or cursor <= line_end(data, body.end))


def _in_bracket(context: CursorContext, data: bytes, state: State, offset: int) -> Kind | None:
    """What the innermost open bracket asks for; None where its lines are like any others."""
    at = state.opened[-1]
    lists: tuple[Kind, ...] = ("arguments", "parameters")
    for kind in lists:
        if any(context.back(region.start) == at + 1 for region in regions_at(context, kind)):
            return kind
    # A broken tree may know nothing of it.
    before = data[line_start(data, at) : at]
    last = re.search(rb"[\w$]+[ \t]*$", before)
    header = last is not None and last[0].strip() in context.language.words.blocks
    if state.brackets[-1:] == b"(" and _CALLED.search(before) and not _WORDS.search(before) and not header:
        return "arguments"
    if state.brackets[-1:] != b"{" or _KEY.search(data, line_start(data, offset), offset):
        return "expression"
    return _in_braces(context, at, data[at:offset])


def _in_braces(context: CursorContext, at: int, inside: bytes) -> Kind | None:
    """What a brace at `at` of the document asks for, with `inside` up to the cursor: lines, a list, or a value."""
    body = next((b for b in context.bodies if context.back(b.header.opens) == at + 1), None)
    if body is not None:
        return None if body.first is not None else "statement"
    if any(context.back(region.start) == at + 1 for region in regions_at(context, "collection")):
        return None if b"\n" in inside or b"\r" in inside else "collection"
    return None if context.cost else "expression"


def _is_docstring(context: CursorContext, data: bytes, state: State) -> bool:
    """Whether the open string is a docstring: as the tree says, or where that is broken by its quotes and its line."""
    if regions_at(context, "docstring"):
        return True
    if context.repaired is None:
        return False
    return len(state.string) > 1 and not data[line_start(data, state.begins) : state.begins].strip(b" \trRuU")
