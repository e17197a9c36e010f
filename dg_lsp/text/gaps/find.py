"""The gap at a cursor, in a range, or by a function's name: where a fill begins and ends, however broken the file is.

Knows contexts, bodies and regions; knows no model and no editor.
"""

import difflib
from contextlib import suppress
from dataclasses import replace

from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.context import CursorContext, context_at, from_lines, undone, whole_context
from dg_lsp.text.gaps.gap import Gap, NoGap
from dg_lsp.text.gaps.kinds import body_at, choose_kind, hole_at, holes_in, region_at
from dg_lsp.text.gaps.spans import body_gap, line_gap, open_gap, region_gap, typed, untouched
from dg_lsp.text.languages.language import load_language
from dg_lsp.text.messages import Kind, Wanted
from dg_lsp.text.syntax.body import OWNER_OF, Body
from dg_lsp.text.syntax.items import reach

__all__ = ["Gap", "NoGap", "find_function", "find_gap", "find_gaps", "find_named"]


def find_gap(document: Document, offset: int, kind: Wanted | None = None) -> Gap:
    """The gap at the byte `offset`; without a kind, the one that a cursor there means. "holes" are several gaps in one.

    A text of strange shape is read only near the cursor (see `reach`).

    1. Make the text round the cursor readable.  2. Where it is broken, older texts of the document may tell what else
    has been broken since: what is easiest to read counts.  3. Find the gap there.

    Raises:
        NoGap: what is asked for is not at the cursor.
        UnknownLanguage: the document's language has no grammar.
    """
    start, stop = reach(document.data, offset)
    if (start, stop) != (0, len(document.data)):
        near = Document(document.uri, document.language, document.version, document.data[start:stop])
        return _moved(find_gap(near, offset - start, kind), start)
    # 1. A broken tree is never asked what is at the cursor.
    context = context_at(document, load_language(document.language), offset)
    if kind == "holes":
        return _holes(document, context)
    return replace(_found(document, context, offset, kind), asked=kind is not None)


def _moved(gap: Gap, by: int) -> Gap:
    """`gap` with all its places `by` bytes further on."""
    further = tuple(_moved(part, by) for part in gap.further)
    return replace(gap, start=gap.start + by, end=gap.end + by, further=further)


def find_function(document: Document, offset: int) -> list[Gap]:
    """What can be filled of the function round the byte `offset`: its holes, if it has any, and its body.

    Raises:
        NoGap: the cursor is in no function.
        UnknownLanguage: the document's language has no grammar.
    """
    body = find_gap(document, offset, "function_body")
    with suppress(NoGap):
        return [find_gap(document, offset, "holes"), body]
    return [body]


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
        text = Document(document.uri, document.language, document.version, older.data)
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
    region = region_at(context, chosen)
    masked = context.repaired is not None and context.repaired.removed > 0
    if (
        masked
        and chosen != "statement"
        and region
        and region.end <= context.inserted[1]
        and region.end > context.inserted[0]
    ):
        # What gave way for the repair is no part of it.
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


def find_gaps(document: Document, start: int, end: int) -> list[Gap]:
    """The bodies of all functions that overlap [start, end), in the order of the text."""
    context = whole_context(document, load_language(document.language))
    functions = [b for b in context.bodies if b.header.owner == "function"]
    found = [f for f in functions if f.header.start < max(end, start + 1) and f.end >= start]
    return [replace(body_gap(document, context, f), asked=True) for f in found]


def _holes(document: Document, context: CursorContext) -> Gap:
    """The placeholders between written lines of the function round the cursor: the first, with the `further`."""
    body = _innermost(context, "function_body")
    if body is None:
        raise NoGap("the cursor is in no function; put it on a function's first line or in its body")
    first, last = context.inserted
    # What a repair has put there is nobody's placeholder.
    holes = [s for s in holes_in(context, (body.opens, body.end)) if s.end <= first or last <= s.start]
    if not holes:
        raise NoGap(f"{body.header.name} has no holes: no placeholder stands between written lines")
    gap, *further = (replace(region_gap(document, context, hole), stub=True, asked=True) for hole in holes)
    return replace(gap, further=tuple(further))


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
    hint = f"close to it are {', '.join(near)}" if near else "the file has no functions"
    raise NoGap(f"there is no function {qualname} in {document.uri}; {hint}")


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
    first, last = context.inserted
    bodies = [b for b in context.bodies if b.header.owner == OWNER_OF[kind]]
    if context.language.style == "brace":
        # One whose braces only the repair has put there is none.
        bodies = [b for b in bodies if not (first < b.header.opens and b.stop <= last)]
    return body_at(replace(context, bodies=tuple(bodies)))
