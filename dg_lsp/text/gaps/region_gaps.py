"""From a region, an open bracket or a bare cursor to its Gap: what is filled of a line, and what the edit brings along.

Knows regions, lexical state and repairs; chooses no kind.
"""

import re
from dataclasses import replace

from dg_lsp.text.documents.document import BOM, Document
from dg_lsp.text.documents.lines import indentation, leading, line_end
from dg_lsp.text.gaps.context import CursorContext, state_of
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.gaps.kinds import is_at, is_todo
from dg_lsp.text.gaps.regions import Region
from dg_lsp.text.messages import LISTS, STRINGS, Kind
from dg_lsp.text.syntax.brackets import closers, lacks_end, next_line, unclosed
from dg_lsp.text.syntax.lexer import Span

# What a repair has put behind a placeholder: of it a fill needs the brackets and what ends a header or statement.
_CLOSERS = re.compile(rb"(?:\s*[)\]}>\"'`])*[:;]?")


def region_gap(document: Document, context: CursorContext, region: Region) -> Gap:
    """The gap of a region; what a repair has put round the placeholder is inserted with the fill."""
    first, last = context.inserted
    start, end = (context.back(at) for at in _text_of(context, region))
    lead = context.data[first : region.start].decode() if first < region.start <= last else ""
    tail = ""
    if first <= region.end < last and region.kind != "statement":
        closing = _CLOSERS.match(context.data, region.end, last)
        assert closing is not None
        tail = closing[0].decode()
    gap = line_gap(document, context, start, region.kind)
    return replace(gap, start=start, end=max(start, end), insert_before=lead, insert_after=tail)


def _text_of(context: CursorContext, region: Region) -> Span:
    """The span of a region; of a list without the white space inside its brackets, but with the cursor."""
    text = context.data[region.start : region.end]
    if region.kind not in LISTS or not text.strip():
        return region.start, region.end
    start, end = region.end - len(text.lstrip()), region.start + len(text.rstrip())
    return min(start, max(context.cursor, region.start)), max(end, min(context.cursor, region.end))


def open_gap(document: Document, context: CursorContext, offset: int, kind: Kind) -> Gap | None:
    """The gap of something that is only open at the cursor, for text that no repair mends."""
    state = state_of(document, context, offset)
    eol = line_end(document.data, offset)
    if kind in STRINGS and state.string:
        start = state.begins + len(state.string)
        gap = line_gap(document, context, offset, kind)
        return replace(gap, start=min(start, offset), end=eol, insert_after=state.string.decode())
    if kind == "comment" and state.comment:
        return replace(line_gap(document, context, offset, kind), end=eol)
    if kind in LISTS and state.brackets:
        wanted = b"[{(" if kind == "collection" else b"("
        held = [at for at in state.opened if document.data[at] in wanted]
        return replace(line_gap(document, context, offset, kind), start=(held or state.opened)[-1] + 1)
    if kind == "statement" and is_todo(document.data, state, offset):
        # The comment stays, and what it asks for comes below it.
        lead = document.newline + leading(document.data, offset).decode()
        return replace(line_gap(document, context, offset, kind), insert_before=lead)
    if kind not in ("statement", "expression"):
        return None
    gap = line_gap(document, context, offset, kind)
    # A value that nothing follows on its line wants what ends its statement.
    ended = kind == "expression" and gap.end == eol and state.brackets[-1:] in (b"", b"{")
    ends = context.language.words.ends[:1] if ended and not _is_body_value(context) else ()
    return replace(gap, insert_after=b"".join(ends).decode())


def _is_body_value(context: CursorContext) -> bool:
    """Whether a value at the cursor may be what its block is worth (Rust): a brace follows and takes it as it is."""
    at = context.cursor
    if not context.data[at:].lstrip().startswith(b"}"):
        return False
    return not context.language.reparse(context.tree, context.data, (at, at), b"_g_").root_node.has_error


def _needed(context: CursorContext, at: int, closing: bytes) -> bytes:
    """`closing`, which stands at `at` of the context, without a semicolon that the brace behind it does not want."""
    end = at + len(closing)
    if not closing.endswith(b";") or not context.data[end:].lstrip().startswith(b"}"):
        return closing
    tree = context.language.reparse(context.tree, context.data, (end - 1, end), b"")
    return closing if tree.root_node.has_error else closing[:-1]


def typed(document: Document, context: CursorContext, gap: Gap, offset: int) -> Gap:
    """The part of `gap` that begins at the cursor, behind which nothing but white space goes."""
    eol = line_end(document.data, offset)
    end = max(gap.end, offset if document.data[offset:eol].strip() else eol)
    first, last = context.inserted
    at = context.data.find(b"_g_", first, last)
    behind = at + 3 if at >= 0 else first
    if (at >= 0 or first == context.cursor < last) and (
        closing := _CLOSERS.match(context.data, behind, last)
    ):
        # What is open within the region wants to be closed as well.
        gap = replace(gap, insert_after=_needed(context, behind, closing[0]).decode())
    return replace(gap, start=offset, end=offset if document.data[offset:end].strip() else end)


def untouched(document: Document, context: CursorContext, gap: Gap, offset: int) -> Gap:
    """`gap`, of something that is only open at the cursor, without what is typed: it begins at the cursor.

    What is inserted after it closes those brackets of the statement that neither the rest of the line nor the next one
    closes: `x = f(<sys>` becomes `x = f(sys<>)`.
    """
    data = document.data
    if gap.start == offset and not data[offset : gap.end].strip():
        return gap
    eol = line_end(data, offset)
    if data[offset:eol].strip():
        return replace(gap, start=offset, end=offset, insert_before="", insert_after="")
    state = state_of(document, context, offset)
    if state.string:
        # Quotes that stand below end the string, unless a line before them looks like the head of a definition.
        lines = any(quotes.lines for quotes in context.language.strings if quotes.close == state.string)
        shut = lines and state.string in data[eol:] and not lacks_end(context.language, data, offset, state)
        return replace(
            gap, start=offset, end=eol, insert_before="", insert_after="" if shut else state.string.decode()
        )
    opened = [(at, indentation(data, at)) for at in reversed(state.opened) if at >= state.line]
    missing = unclosed(data, opened, *next_line(context.language, data, eol))
    tail = closers(bytes(data[at] for at in reversed(missing)))
    return replace(gap, start=offset, end=eol, insert_before="", insert_after=tail.decode())


def line_gap(document: Document, context: CursorContext, offset: int, kind: Kind) -> Gap:
    """The gap from the cursor to the end of the line, or at the cursor where text follows."""
    data = document.data
    eol = line_end(data, offset)
    end = offset if data[offset:eol].strip() else eol
    functions = tuple(
        b for b in context.bodies if b.header.owner == "function" and is_at(context.data, b, context.cursor)
    )
    function = max(functions, key=lambda f: f.header.define, default=None)
    indent = leading(data, offset).removeprefix(BOM).decode()
    return Gap(offset, end, kind, indent, name=function.header.name if function else "")
