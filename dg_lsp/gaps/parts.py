"""Parts: gaps that are a part of a line, by the tree, by open brackets and quotes, or from the cursor on."""

import re
from dataclasses import dataclass, replace

from tree_sitter import Node

from dg_lsp.gaps.gap import Gap
from dg_lsp.messages import LISTS, PARTS, STRINGS, Kind
from dg_lsp.source.analysis import Analysis
from dg_lsp.source.bodies import code_end
from dg_lsp.source.brackets import is_left_open, lacks_end, template_at, unpaired
from dg_lsp.source.document import BOM
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import (
    Span,
    block_end,
    first_token,
    is_closed_comment,
    leading,
    newline_at,
    quotes_at,
)
from dg_lsp.source.repair import FILLER

_HOLDERS: tuple[Kind, ...] = ("statement", "string")
_CLOSES = re.compile(rb"[)\]}>;]")
_QUOTES = re.compile(rb"[A-Za-z@$]*(#*)(?:\"\"\"|'''|[\"'`]|<)(?:(?<=R\")[^()\s]*\()?")
_COMMENT_BEGINS = re.compile(rb"(?:/\*+(?!/)|//+!?|#+|--|<!--)[ \t]?")
_COMMENT_ENDS = re.compile(rb"(?:[ \t]*\*+/|[\r\n]+)$")

_TODO = re.compile(rb"\b(?:TODO|FIXME|XXX)\b")


@dataclass(frozen=True, slots=True)
class Region:
    """[start, end) of an analysis's data, without the delimiters; [outer_start, outer_end) with them."""

    kind: Kind
    start: int
    end: int
    outer_start: int
    outer_end: int


def region_at(analysis: Analysis, kind: Kind) -> Region | None:
    """The innermost region of `kind` at the cursor; of expressions the outermost in its statement.

    In `x = f(a|) + 1` that is the list `a` of arguments, and the expression `f(a) + 1`.
    """
    found = regions_at(analysis, kind)
    if kind == "statement":
        found = _without_blocks_around(analysis, found)
    if kind == "expression":
        # A string may hold expressions of its own.
        holders = {k: regions_at(analysis, k)[:1] for k in _HOLDERS}
        held = [h for k in holders for h in holders[k]]
        inside = [s for s in found if all(h.start <= s.start and s.end <= h.end for h in held)]
        # Most hold none, and then the string itself is part of one.
        outer = [s for s in found if all(h.start <= s.start for h in holders["statement"])]
        return next(iter((inside or outer)[-1:]), None)
    return found[0] if found else None


def regions_at(analysis: Analysis, kind: Kind) -> list[Region]:
    """All regions of `kind` that hold the cursor, the innermost first."""
    low, high = _place_of(analysis)
    nodes = analysis.captures((max(low - 1, 0), high + 1)).get(kind, [])
    regions = [_trimmed(analysis.data, kind, node) for node in nodes if not node.is_missing]
    holding = [s for s in regions if _holds(s, kind, low, high)]
    return sorted(holding, key=lambda s: (s.outer_end - s.outer_start, s.start))


def hole_at(analysis: Analysis) -> Region | None:
    """The placeholder between written statements at the cursor."""
    line = analysis.own_line
    return next(iter(holes_in(analysis, (line.start, line.end))), None)


def holes_in(analysis: Analysis, span: Span) -> list[Region]:
    """The placeholders between written statements within `span` of the analysis's data, such as `pass  # TODO`."""
    start, end = span
    nodes = analysis.captures((start, end + 1)).get("stub", [])
    within = [n for n in nodes if start <= n.start_byte and n.end_byte <= end]
    inside = [n for n in within if _has_written(analysis.language, n)]
    return [_trimmed(analysis.data, "statement", node) for node in sorted(inside, key=lambda n: n.start_byte)]


def comment_text(data: bytes, start: int, end: int) -> Span:
    """Return the span of the text of the comment data[start:end]."""
    begins, ends = _COMMENT_BEGINS.match(data, start, end), _COMMENT_ENDS.search(data, start, end)
    start = begins.end() if begins else start
    return start, max(ends.start() if ends else end, start)


def line_gap(analysis: Analysis, kind: Kind) -> Gap:
    """The gap from the cursor to the end of the line, or at the cursor where text follows."""
    offset = analysis.offset
    return _gap(analysis, kind, (offset, offset if analysis.line.after.strip() else analysis.line.end))


def region_gap(analysis: Analysis, region: Region) -> Gap:
    """Return the gap of a region; the text that a repair has put before the placeholder is inserted with the fill."""
    data, (first, last) = analysis.data, analysis.inserted
    start, end = (analysis.back(at) for at in _text_of(analysis, region))
    lead = data[first : region.start] if first < region.start <= last else b""
    return replace(_gap(analysis, region.kind, (start, max(start, end))), insert_before=lead.decode())


def open_gap(analysis: Analysis, kind: Kind) -> Gap | None:
    """Return the gap of something that is only open at the cursor, for text that no repair fixes."""
    data, offset, state, eol = analysis.document.data, analysis.offset, analysis.state, analysis.line.end
    gap = line_gap(analysis, kind)
    if kind in STRINGS and state.string:
        start = state.begins + len(quotes_at(analysis.language, data, state.begins).open)
        return replace(gap, start=min(start, offset), end=eol)
    if kind == "comment" and state.comment:
        return replace(gap, end=eol)
    if kind in LISTS and state.brackets:
        wanted = b"[{(" if kind == "collection" else b"("
        held = [at for at in state.opened if data[at] in wanted]
        return replace(gap, start=(held or state.opened)[-1] + 1)
    if kind == "statement" and is_todo(analysis):
        # The comment stays, and the code that it asks for comes below it.
        return replace(gap, insert_before=newline_at(data, offset) + leading(data, offset).decode())
    return gap if kind in ("statement", "expression") or (kind == "string" and state.text) else None


def closed(analysis: Analysis, gap: Gap) -> Gap:
    """Return `gap` with the end of its docstring or comment, if nothing else ends that.

    Both have lines of their own, like a body, and no text for them says where they end.
    """
    data, state = analysis.document.data, analysis.state
    if gap.kind == "docstring" and state.string and _is_unclosed(analysis):
        return replace(gap, insert_after=state.string.decode())
    if gap.kind == "comment" and state.comment:
        end = block_end(analysis.language, data[state.begins : analysis.offset])
        lost = end and end not in data[analysis.offset :]
        return replace(gap, insert_after=f" {end.decode()}" if lost else "")
    return gap


def closed_gap(analysis: Analysis, kind: Kind) -> Gap | None:
    """Return the text of the comment or string at the cursor as a gap, by tokens; None if there is none that ends."""
    data, offset, state = analysis.document.data, analysis.offset, analysis.state
    language = analysis.language
    if not (state.comment if kind == "comment" else state.string):
        return None
    whole = first_token(language, data, state.begins)
    if kind == "comment":
        if not is_closed_comment(language, data[whole.start : whole.end]):
            return None
        start, end = comment_text(data, whole.start, whole.end)
    elif whole.kind == "string":
        start = whole.start + len(quotes_at(language, data, whole.start).open)
        end = whole.end - len(state.string)
    else:
        return None
    return replace(line_gap(analysis, kind), start=min(start, offset), end=max(end, offset))


def start_at_cursor(analysis: Analysis, gap: Gap) -> Gap:
    """Move the gap's start to the cursor, so that text already typed is kept; its end too, if code follows on the line.

    For the arguments of `f(a, |b)` the gap `a, b` becomes the empty one at the cursor.
    """
    offset, line = analysis.offset, analysis.line
    end = max(gap.end, offset if line.after.strip() else line.end)
    # White space is replaced up to the line's end, after which nothing is.
    end = offset if analysis.document.data[offset:end].strip() else min(end, line.end)
    return _up_to_line_end(analysis, replace(gap, start=offset, end=end))


def _up_to_line_end(analysis: Analysis, gap: Gap) -> Gap:
    """Return `gap`; as the rest of its line if that may continue after what the line has left open.

    After `f(` the text may be `x);`, and after `with f(` `x) as y:`. A list that lines below close ends with it.
    """
    if gap.kind not in PARTS or gap.kind in ("statement", "comment"):
        return gap
    ends_line = not analysis.line.after.strip()
    is_rest = _is_unclosed(analysis) or (ends_line and gap.kind == "expression")
    return replace(gap, kind="rest_of_line") if is_rest else gap


def up_to_statement(analysis: Analysis, gap: Gap) -> Gap:
    """Return `gap`; of the closing of a body only what the cursor's own line or statement has opened.

    At the end of a file, in `class A {` with `int f() {|` below it, the line with `}` of the method is inserted, and
    that of the class is not.
    """
    text, language = gap.insert_after.encode(), analysis.language
    if not text.strip():
        return gap
    first, lead = min(analysis.state.line, analysis.line.start), gap.insert_before.encode()
    opened = sum(at >= first for at in analysis.state.opened) + len(unpaired(language, lead).openers)
    closers = unpaired(language, text).closers
    if len(closers) <= opened:
        return gap
    return replace(gap, insert_after=text[: closers[opened]].rstrip().decode())


def is_todo(analysis: Analysis) -> bool:
    """Return whether the comment that is open at the cursor ends there and asks for code below it."""
    state, data, offset = analysis.state, analysis.document.data, analysis.offset
    ends = not analysis.line.after.strip()
    return state.comment and ends and _TODO.search(data, state.begins, offset) is not None


def _without_blocks_around(analysis: Analysis, found: list[Region]) -> list[Region]:
    """The statements of `found` without those that have the blank line of the cursor in one of their bodies."""
    line, cursor = analysis.own_line, analysis.cursor
    if (line.before + line.after).strip():
        return found
    opens = [b.header.opens for b in analysis.bodies if b.header.opens <= cursor <= b.closes]
    return [s for s in found if all(at <= s.start for at in opens)]


def _has_written(language: Language, stub: Node) -> bool:
    """Return whether the block of `stub` contains other code; a docstring is none."""
    block = stub.parent
    if block is None:
        return False
    code = [node for node in block.named_children if not node.type.endswith("comment")]
    beside = [node for node in code if node != stub]
    if len(beside) != 1 or beside[0] != code[0]:
        return bool(beside)
    first = beside[0].start_byte, beside[0].end_byte
    docstrings = language.captures(block, first).get("docstring", [])
    return first not in [node.byte_range for node in docstrings]


def _place_of(analysis: Analysis) -> Span:
    """Return the span that the region must hold: the placeholder that a repair has inserted, or the cursor."""
    start, stop = analysis.inserted
    at = analysis.data.find(FILLER, start, stop)
    if at >= 0 and not _CLOSES.search(analysis.data, start, at):
        return at, at + len(FILLER)
    # No node reaches over the blanks at the end of a line or list.
    here, rest = analysis.own_line.before, analysis.own_line.after
    blank = here.strip() and rest.lstrip()[:1] in (b"", b")", b"]", b"}", b",", b";", b":", b"{")
    at = analysis.cursor - (len(here) - len(here.rstrip())) * bool(blank)
    return at, at


def _holds(region: Region, kind: Kind, low: int, high: int) -> bool:
    if kind in LISTS or kind in STRINGS:
        return region.start <= low and high <= region.end
    return region.outer_start <= low and high <= region.outer_end


def _trimmed(data: bytes, kind: Kind, node: Node) -> Region:
    """The region of a captured node: without brackets, quotes or the marks of a comment."""
    outer = node.start_byte, code_end(node) if kind == "statement" else node.end_byte
    start, end = outer
    if kind in LISTS:
        start, end = _inside(node)
    elif kind in STRINGS:
        start, end = _unquoted(data, node)
    elif kind == "comment":
        start, end = comment_text(data, start, end)
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
        if inner.byte_range != node.byte_range:
            break
        node = inner
    start, end = node.start_byte, node.end_byte
    # The text between tags has no quotes.
    quotes = _QUOTES.match(data, start, end) if node.type != "jsx_text" else None
    if quotes is None:
        return start, end
    closing = quotes[0].lstrip(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz@$#")
    # The text between angle brackets is the name of a system's header.
    shut = b">" if closing == b"<" else closing + quotes[1]
    if b"(" in closing:
        shut = b")" + closing[1:-1] + b'"'
    start = quotes.end()
    return (start, end - len(shut)) if data.endswith(shut, start, end) else (start, end)


def _gap(analysis: Analysis, kind: Kind, span: Span) -> Gap:
    """The gap `span` of the document, with the indentation of its line and the name of the function around it."""
    functions = [body.header for body in analysis.around if body.header.owner == "function"]
    function = max(functions, key=lambda header: header.define, default=None)
    indent = leading(analysis.document.data, span[0]).removeprefix(BOM).decode()
    return Gap(*span, kind, indent, name=function.name if function else "")


def _is_unclosed(analysis: Analysis) -> bool:
    """Return whether the line at the cursor has opened a string or bracket that nothing closes after it.

    So says what a repair has inserted at the cursor; the tokens below, if the repair had to guess.
    """
    data, state, language = analysis.document.data, analysis.state, analysis.language
    put, guessed = analysis.data[slice(*analysis.inserted)], analysis.masks or analysis.cost > 0
    if state.string:
        known = state.string in put or lacks_end(language, data, analysis.offset, state)
        # An escape that ends at the cursor is half of one.
        text = data[: analysis.offset] + FILLER + data[analysis.offset :]
        return known or (guessed and first_token(language, text, state.begins).kind != "string")
    if state.text or state.comment:
        return False
    # A repair that takes nothing away and leaves no error has inserted all that is missing.
    if (closers := unpaired(language, put).closers) or not guessed:
        return bool(closers)
    first = min(state.line, analysis.line.start, template_at(data, state.opened))
    return is_left_open(language, data, analysis.offset, state, first)


def _text_of(analysis: Analysis, region: Region) -> Span:
    """The span of a region; of a list without the white space inside its brackets, but with the cursor."""
    text, cursor = analysis.data[region.start : region.end], analysis.cursor
    if region.kind not in LISTS or not text.strip():
        return region.start, region.end
    start, end = region.end - len(text.lstrip()), region.start + len(text.rstrip())
    return min(start, max(cursor, region.start)), max(end, min(cursor, region.end))
