"""The gap at a cursor, in a range, or by a function's name: where a fill begins and ends, however broken the file is.

The kind of gap is chosen here, too. Knows contexts, bodies and regions; knows no model and no editor.
"""

import difflib
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial

from dg_lsp.text.budget import bounded, tried
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.context import (
    CursorContext,
    body_at,
    context_at,
    from_lines,
    hole_at,
    holes_in,
    region_at,
    regions_at,
    state_of,
    undone,
    whole_context,
)
from dg_lsp.text.gaps.gap import (
    Gap,
    body_gap,
    closed_gap,
    is_todo,
    line_gap,
    open_gap,
    owing,
    region_gap,
    typed,
    untouched,
)
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import BODIES, Kind, Wanted
from dg_lsp.text.reasons import NoGap
from dg_lsp.text.syntax.bodies import KIND_OF, OWNER_OF, Body
from dg_lsp.text.syntax.brackets import State, lacks_end
from dg_lsp.text.syntax.items import FARTHEST, window
from dg_lsp.text.syntax.lexer import Span, indentation, leading, line_end, line_start

__all__ = [
    "Gap",
    "NoGap",
    "find_function",
    "find_gap",
    "find_gaps",
    "find_named",
    "find_selected",
    "find_span",
]
_VALUE = re.compile(
    rb"(?:^|[^=!<>:+\-*/%&|^])(?:=|:=|[+\-*/%&|^]=|=>|->)(?![=>])|<-"
    rb"|\b(?:return|if|elif|while|for|match|switch|throw|raise|yield|await|assert|in|of|case|when)\b"
)
# A key whose value is to come.
_KEY = re.compile(rb"[\w\"'\])]\??[ \t]*:[ \t]*\Z")
_CALLED = re.compile(rb"[\w\x80-\xff)\]>!?][ \t]*$")
# These take a bracket without being called.
_WORDS = re.compile(
    rb"\b(?:if|elif|while|for|switch|match|return|in|and|or|not|yield|await|assert|raise|throw|catch|with|case)[ \t]*$"
)

# Nobody writes a longer line by hand, nor so many brackets open at once.
LONGEST_LINE = 20_000
MOST_OPEN = 250
# What is read of a stranger text: so many bytes on either side of the cursor.
NEAR = 300


@bounded
def find_gap(document: Document, offset: int, kind: Wanted | None = None) -> Gap:
    """The gap at the byte `offset`; without a kind, the one that a cursor there means. "holes" are several gaps in one.

    A text of strange shape is read only near the cursor (see `reach`).

    1. Make the text round the cursor readable.  2. Where it is broken, older texts of the document may tell what else
    has been broken since: what is easiest to read counts.  3. Find the gap there.

    Raises:
        NoGap: what is asked for is not at the cursor, or the text takes too long to read (OutOfTime).
        UnknownLanguage: the document's language has no grammar.
    """
    start, stop = reach(document.data, offset)
    if (start, stop) != (0, len(document.data)):
        near = replace(document, data=document.data[start:stop], history=None)
        return _moved(find_gap(near, offset - start, kind), start)
    # 1. A broken tree is never asked what is at the cursor.
    context = context_at(document, load_language(document.language, document.macros), offset)
    if kind == "holes":
        return _holes(document, context)
    gap = _found(document, context, offset, kind)
    # A body that was asked for is closed; any other fill ends with its line.
    gap = gap if kind in BODIES else owing(document, gap, offset)
    return replace(gap, asked=kind is not None)


@bounded
def find_gaps(document: Document, start: int, end: int) -> list[Gap]:
    """The bodies of all functions that overlap [start, end), in the order of the text.

    Raises:
        OutOfTime: the text takes too long to read, and so does the top-level item that the span is in.
    """
    language = load_language(document.language, document.macros)
    context = tried(partial(whole_context, document, language))
    if context is None:
        first, stop = window(language, document.data, start)
        if end <= stop and (first, stop) != (0, len(document.data)):
            item = replace(document, data=document.data[first:stop], history=None)
            return [_moved(gap, first) for gap in find_gaps(item, start - first, end - first)]
        context = whole_context(document, language)
    functions = [b for b in context.bodies if b.header.owner == "function"]
    found = [f for f in functions if f.header.start < max(end, start + 1) and f.end >= start]
    return [replace(body_gap(document, context, f), asked=True) for f in found]


@bounded
def find_function(document: Document, offset: int) -> list[Gap]:
    """Return the gaps of the function around the byte `offset`: its holes, if it has any, and its body.

    Raises:
        NoGap: the cursor is in no function.
        UnknownLanguage: the document's language has no grammar.
    """
    body = find_gap(document, offset, "function_body")
    with suppress(NoGap):
        return [find_gap(document, offset, "holes"), body]
    return [body]


@bounded
def find_selected(document: Document, start: int, end: int) -> list[Gap]:
    """Return the gaps of the selection [start, end): the bodies that it overlaps, and the selected text itself."""
    gaps = find_gaps(document, start, end)
    with suppress(NoGap):
        return [*gaps, _span_in(document, gaps, start, end)]
    return gaps


@bounded
def find_span(document: Document, start: int, end: int) -> Gap:
    """The text [start, end) as a gap of its own, without the white space at its ends.

    Raises:
        NoGap: there is no text, or it is not written code within one function's body.
    """
    return _span_in(document, find_gaps(document, start, end), start, end)


@bounded
def find_named(document: Document, qualname: str, kind: Wanted | None = None) -> Gap:
    """The body of the function `qualname`, such as `area`, `Shape.area` or `outer.inner`, or its "holes".

    `Shape::area`, as C++ and Rust write it, is the same as `Shape.area`.
    Among several of one name a stub comes first, then the last one, which is the one that Python keeps.

    Raises:
        NoGap: there is none, and the message lists names that are close; or it has no holes.
    """
    gaps = find_gaps(document, 0, len(document.data))
    qualname = qualname.replace("::", ".")
    named = [g for g in gaps if g.name == qualname]
    if named:
        body = max(named, key=lambda g: (g.stub, g.start))
        return find_gap(document, body.start, "holes") if kind == "holes" else body
    known = sorted({g.name for g in gaps})
    last = qualname.rpartition(".")[2]
    near = [n for n in known if n.rpartition(".")[2] == last] + difflib.get_close_matches(qualname, known, 5)
    near = list(dict.fromkeys(near))[:5] or known[:5]
    hint = f"close to it are {', '.join(near)}" if near else "it has none at all"
    raise NoGap(f"the file has no function {qualname}; {hint}")


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
    if state.string or state.text:
        return "docstring" if state.string and _is_docstring(context, data, state) else "string"
    if state.comment:
        return "statement" if is_todo(data, state, offset) else "comment"
    if state.brackets and (kind := _in_bracket(context, data, state, offset)):
        return kind
    # 3. and 4.
    return _on_line(data, offset)


def reach(data: bytes, offset: int) -> Span:
    """The span round `offset` that may be read for a gap: all of it, or what is near where its shape is strange.

    Strange are a line that is too long and too many open brackets. Example: `x = ((((...` with 200,000 brackets is
    read from 300 bytes before it on.
    """
    low, high = max(offset - FARTHEST, 0), min(offset + FARTHEST, len(data))
    line = data[max(offset - LONGEST_LINE, 0) : offset + LONGEST_LINE]
    before, behind = line[: min(offset, LONGEST_LINE)], line[min(offset, LONGEST_LINE) :]
    length = len(before) - line_start(before, len(before)) + line_end(behind, 0)
    if length < LONGEST_LINE and _most_open(data, low, offset) < MOST_OPEN:
        return 0, len(data)
    return _whole(data, max(offset - NEAR, 0)), _whole(data, min(offset + NEAR, high))


def _most_open(data: bytes, start: int, stop: int) -> int:
    """At most so many brackets of one kind are open at `stop`, counted from `start`, strings not looked at."""
    pairs = (b"()", b"[]", b"{}")
    return max(data.count(p[:1], start, stop) - data.count(p[1:], start, stop) for p in pairs)


def _whole(data: bytes, at: int) -> int:
    """`at`, moved up to where it cuts neither a character nor a line end in two."""
    while at > 0 and ((data[at : at + 1] and data[at] & 0xC0 == 0x80) or data[at - 1 : at + 1] == b"\r\n"):
        at -= 1
    return at


def _span_in(document: Document, bodies: list[Gap], start: int, end: int) -> Gap:
    """`find_span`, with the bodies that overlap the text."""
    text = document.data[start:end]
    start, end = end - len(text.lstrip()), start + len(text.rstrip())
    around = [b for b in bodies if b.start <= start < end <= b.end and not b.stub]
    if not around:
        raise NoGap("select code within the body of one function")
    innermost = max(around, key=lambda b: b.start)
    indent = leading(document.data, start).decode("utf-8")
    return Gap(start, end, "span", indent, name=innermost.name, asked=True)


def _moved(gap: Gap, by: int) -> Gap:
    """`gap` with all its places `by` bytes further on."""
    further = tuple(_moved(part, by) for part in gap.further)
    return replace(gap, start=gap.start + by, end=gap.end + by, further=further)


def _found(document: Document, context: CursorContext, offset: int, kind: Kind | None) -> Gap:
    """Steps 2 and 3 of `find_gap`."""
    # 2.
    if context.repaired is not None and (gap := _recalled(document, context, offset, kind)):
        return gap
    # 3.
    return _gap_in(document, context, offset, kind)


def _recalled(document: Document, context: CursorContext, offset: int, kind: Kind | None) -> Gap | None:
    """The gap as older texts of the document tell it, where they are no harder to read than `context`."""
    readable = []
    for older in undone(document, offset):
        text = replace(document, data=older.data, history=None)
        found = context_at(text, context.language, older.cursor)
        readable += [(found, older, text)] if found.cost <= context.cost else []
    for found, older, text in sorted(readable, key=lambda r: r[0].cost):
        with suppress(NoGap):
            gap = _gap_in(text, found, older.cursor, kind)
            span = older.back(gap.start, gap.end)
            # What was typed into a stub since then stays, unless the stub is asked for by its kind.
            if span and (kind or document.data[slice(*span)] == text.data[gap.start : gap.end]):
                return replace(gap, start=span[0], end=span[1])
    return None


def _gap_in(document: Document, context: CursorContext, offset: int, kind: Kind | None) -> Gap:
    """The gap in what can be read of the document.

    1. Choose the kind.  2. A body is found by its header, a part of a line by the tree.  3. What nobody asked for
    by name leaves what is typed as it stands.
    """
    # 1.
    chosen = kind or choose_kind(document, context, offset)
    # 2.
    if chosen in OWNER_OF:
        return _body_gap(document, context, offset, chosen)
    if chosen == "rest_of_line":
        return line_gap(document, context, offset, chosen)
    if kind is None and chosen == "statement" and (hole := hole_at(context)) is not None:
        return replace(region_gap(document, context, hole), stub=True)
    masked = context.repaired is not None and context.repaired.removed > 0
    # The end of a comment may have given way for the repair, and then the tree's comment goes on to the next end.
    if masked and kind in ("comment", "string") and (closed := closed_gap(document, context, offset, kind)):
        return closed
    region = region_at(context, chosen)
    if (
        masked
        and chosen != "statement"
        and region
        and region.end <= context.inserted[1]
        and region.end > context.inserted[0]
    ):
        # What gave way for the repair is no part of it.
        region = None
    if region and chosen == "docstring" and _runs_on(document, context, region.start):
        region = None
    if region is None or (kind is None and chosen == "statement"):
        found = open_gap(document, context, offset, chosen)
        if found is None and kind is not None:
            raise NoGap(f"the cursor is in no {chosen.replace('_', ' ')}; put it where one stands or begins")
        found = found or line_gap(document, context, offset, "rest_of_line")
        return found if kind is not None else untouched(document, context, found, offset)
    gap = region_gap(document, context, region)
    # 3.
    return gap if kind is not None else typed(document, context, gap, offset)


def _runs_on(document: Document, context: CursorContext, start: int) -> bool:
    """Return whether the docstring with its text at `start` of the context is not closed, though the file parses.

    Two that lack it make one string, from the quotes in the first function to those in the second.
    """
    at = context.back(start)
    state = state_of(document, context, at)
    return indentation(document.data, at) > 0 and lacks_end(context.language, document.data, at, state)


def _holes(document: Document, context: CursorContext) -> Gap:
    """The placeholders between written lines of the function round the cursor: the first, with the `further`."""
    body = _innermost(context, "function_body")
    if body is None:
        raise NoGap("the cursor is in no function; put it on a function's first line or in its body")
    # What a repair has put there is nobody's placeholder.
    found = holes_in(context, (body.opens, body.end))
    holes = [s for s in found if all(s.end <= first or last <= s.start for first, last in context.made)]
    if not holes:
        raise NoGap(f"{body.header.name} has no holes: no placeholder stands between written lines")
    gap, *further = (replace(region_gap(document, context, hole), stub=True, asked=True) for hole in holes)
    return replace(gap, further=tuple(further))


def _body_gap(document: Document, context: CursorContext, offset: int, kind: Kind) -> Gap:
    """The gap of the innermost body of `kind` round the cursor."""
    body = _innermost(context, kind)
    if context.cost:
        # Lines tell bodies apart where no tree does, but for one whose brace only a repair has put there.
        lines = from_lines(document, context, offset)
        by_lines = _innermost(lines, kind)
        is_whole = by_lines is not None and (
            by_lines.stop > by_lines.closes or lines.language.style == "indent"
        )
        if is_whole or body is None:
            context, body = lines, by_lines
    if body is None:
        what = kind.removesuffix("_body")
        raise NoGap(f"the cursor is in no {what}; put it on a {what}'s first line or in its body")
    return body_gap(document, context, body, context.cursor)


def _innermost(context: CursorContext, kind: Kind) -> Body | None:
    bodies = [b for b in context.bodies if b.header.owner == OWNER_OF[kind]]
    if context.language.style == "brace":
        # One whose braces only the repair has put there is none.
        for first, last in context.made:
            bodies = [b for b in bodies if not (first < b.header.opens and b.stop <= last)]
    return body_at(replace(context, bodies=tuple(bodies)))


def _on_line(data: bytes, offset: int) -> Kind:
    """Return the kind of gap at a place on a line where nothing is open."""
    before, behind = data[line_start(data, offset) : offset], data[offset : line_end(data, offset)]
    if not before.strip():
        return "rest_of_line" if behind.strip() else "statement"
    return "expression" if _VALUE.search(before) else "rest_of_line"


def offers(context: CursorContext, body: Body) -> bool:
    """Return whether a cursor without a wish means `body`: it is a stub, and its header is not being typed."""
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
    """Return the kind of gap in the innermost open bracket; None where its lines are like any others."""
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
    """Return the kind of gap in the brace at `at` of the document, with `inside` up to the cursor."""
    body = next((b for b in context.bodies if context.back(b.header.opens) == at + 1), None)
    if body is not None:
        return None if body.first is not None else "statement"
    if any(context.back(region.start) == at + 1 for region in regions_at(context, "collection")):
        return None if b"\n" in inside or b"\r" in inside else "collection"
    return None if context.cost else "expression"


def _is_docstring(context: CursorContext, data: bytes, state: State) -> bool:
    """Return whether the open string is a docstring: by the tree or, where that is broken, by its quotes."""
    if regions_at(context, "docstring"):
        return True
    if context.repaired is None:
        return False
    return len(state.string) > 1 and not data[line_start(data, state.begins) : state.begins].strip(b" \trRuU")
