"""Which kind of gap is meant where nobody says it: from what is open at the cursor and what stands on its line.

Knows contexts and lexical state; knows no spans of gaps.
"""

import re

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.lines import indentation, leading, line_end, line_start, width
from dg_lsp.text.gaps.context import CursorContext, state_of
from dg_lsp.text.gaps.regions import hole_at, regions_at
from dg_lsp.text.messages import Kind
from dg_lsp.text.syntax.body import KIND_OF, Body
from dg_lsp.text.syntax.brackets import State

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
