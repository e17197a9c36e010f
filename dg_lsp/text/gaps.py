"""The gap at a cursor, in a range, or by a function's name: where a fill begins and ends, however broken the file is.

Knows views, bodies and slots; knows no model and no editor.
"""

import difflib
import re
from contextlib import suppress
from dataclasses import replace

from dg_lsp.text.body import Body
from dg_lsp.text.body_gaps import body_gap
from dg_lsp.text.document import BOM, Document
from dg_lsp.text.gap import Gap, NoGap
from dg_lsp.text.kinds import BODIES, body_at, choose_kind, is_at, is_todo
from dg_lsp.text.language import load_language
from dg_lsp.text.lexical import state_at
from dg_lsp.text.lines import leading, line_end, line_start
from dg_lsp.text.messages import Kind
from dg_lsp.text.recall import remembered, undone
from dg_lsp.text.slots import LISTS, STRINGS, Slot, hole_at, slot_at
from dg_lsp.text.tokens import Span
from dg_lsp.text.view import View, by_lines, view_at, whole_view

__all__ = ["Gap", "NoGap", "find_gap", "find_gaps", "find_named"]

_OWNERS = {kind: owner for owner, kind in BODIES.items()}
# What a repair has put behind a placeholder: of it a fill needs the brackets and what ends a header or statement.
_CLOSERS = re.compile(rb"(?:\s*[)\]}>\"'`])*[:;]?")


def find_gap(document: Document, offset: int, kind: Kind | None = None) -> Gap:
    """The gap at the byte `offset`; without a kind, the one that a cursor there means.

    1. Make the text round the cursor readable.  2. Where it is broken, older texts of the document may tell what else
    has been broken since: what is easiest to read counts.  3. Find the gap there.

    Raises:
        NoGap: what is asked for is not at the cursor.
        UnknownLanguage: the document's language has no grammar.
    """
    # 1. A broken tree is never asked what is at the cursor.
    language = load_language(document.language)
    view = view_at(document, language, offset)
    # 2.
    if view.repaired is not None and (gap := _recalled(document, view, offset, kind)):
        return gap
    # 3.
    return _gap_in(document, view, offset, kind)


def _recalled(document: Document, view: View, offset: int, kind: Kind | None) -> Gap | None:
    """The gap as older texts of the document tell it, where they are no harder to read than `view`."""
    if kind == "statement" and (gap := _remembered(document, view, offset)):
        return gap
    readable = []
    for older in undone(document, offset):
        text = Document(document.uri, document.language, document.version, older.data)
        found = view_at(text, view.language, older.cursor)
        readable += [(found, older, text)] if found.cost <= view.cost else []
    for found, older, text in sorted(readable, key=lambda r: r[0].cost):
        with suppress(NoGap):
            gap = _gap_in(text, found, older.cursor, kind)
            span, scope = older.back(gap.start, gap.end), older.back(*gap.scope)
            if span is not None:
                return replace(gap, start=span[0], end=span[1], scope=scope or (0, len(document.data)))
    return None


def _remembered(document: Document, view: View, offset: int) -> Gap | None:
    """The statement that the cursor was in before a part of it was taken away."""
    base = document.history.base if document.history else None
    line = line_start(document.data, offset), line_end(document.data, offset)
    here = [c for c in base.changes.spans if c.now <= line[1] and c.stop >= line[0]] if base else []
    if not here or any(c.now < c.stop for c in here):
        return None
    for node in remembered(view.language, document, offset, "statement")[:1]:
        start, end = node.body
        return replace(_line_gap(document, view, start, "statement"), start=start, end=end)
    return None


def _gap_in(document: Document, view: View, offset: int, kind: Kind | None) -> Gap:
    """The gap in what can be read of the document.

    1. Choose the kind.  2. A body is found by its header, a part of a line by the tree.  3. What nobody asked for
    by name leaves what is typed as it stands.
    """
    # 1.
    chosen = kind or choose_kind(document, view, offset)
    # 2.
    if chosen in _OWNERS:
        return _body_gap(document, view, offset, chosen)
    if chosen == "rest_of_line":
        return _line_gap(document, view, offset, chosen)
    if kind is None and (hole := hole_at(view)) is not None:
        return replace(_slot_gap(document, view, hole), stub=True)
    slot = slot_at(view, chosen)
    masked = view.repaired is not None and view.repaired.removed > 0
    if (
        masked
        and chosen != "statement"
        and slot
        and slot.end <= view.inserted[1]
        and slot.end > view.inserted[0]
    ):
        # What gave way for the repair is no part of it.
        slot = None
    if slot is None or (kind is None and chosen == "statement"):
        found = _open_gap(document, view, offset, chosen)
        if found is None and kind is not None:
            raise NoGap(f"the cursor is in no {chosen.replace('_', ' ')}; put it where one stands or begins")
        return found or _line_gap(document, view, offset, "rest_of_line")
    gap = _slot_gap(document, view, slot)
    # 3.
    return gap if kind is not None else _typed(document, gap, offset)


def find_gaps(document: Document, start: int, end: int) -> list[Gap]:
    """The bodies of all functions that overlap [start, end), in the order of the text."""
    view = whole_view(document, load_language(document.language))
    functions = [b for b in view.bodies if b.header.owner == "function"]
    found = [f for f in functions if f.header.start < max(end, start + 1) and f.end >= start]
    return [body_gap(document, view, f) for f in found]


def find_named(document: Document, qualname: str) -> Gap:
    """The body of the function `qualname`, such as `area`, `Shape.area` or `outer.inner`.

    Among several of one name a stub comes first, then the last one, which is the one that Python keeps.

    Raises:
        NoGap: there is none; the message lists names that are close.
    """
    gaps = find_gaps(document, 0, len(document.data))
    named = [g for g in gaps if g.name == qualname]
    if named:
        return max(named, key=lambda g: (g.stub, g.start))
    known = sorted({g.name for g in gaps})
    last = qualname.rpartition(".")[2]
    near = [n for n in known if n.rpartition(".")[2] == last] + difflib.get_close_matches(qualname, known, 5)
    near = list(dict.fromkeys(near))[:5] or known[:5]
    hint = f"close to it are {', '.join(near)}" if near else "the file has no functions"
    raise NoGap(f"there is no function {qualname} in {document.uri}; {hint}")


def _body_gap(document: Document, view: View, offset: int, kind: Kind) -> Gap:
    """The gap of the innermost body of `kind` round the cursor."""
    if view.cost and view.language.style == "indent":
        # Indentation tells bodies apart where no tree does.
        view = by_lines(document, view, offset)
    body = _innermost(view, kind)
    if body is None and view.cost and view.language.style == "brace":
        view = by_lines(document, view, offset)
        body = _innermost(view, kind)
    if body is None:
        what = kind.removesuffix("_body")
        raise NoGap(f"the cursor is in no {what}; put it on a {what}'s first line or in its body")
    return body_gap(document, view, body, view.cursor)


def _innermost(view: View, kind: Kind) -> Body | None:
    first, last = view.inserted
    bodies = [b for b in view.bodies if b.header.owner == _OWNERS[kind]]
    if view.language.style == "brace":
        # One whose braces only the repair has put there is none.
        bodies = [b for b in bodies if not (first < b.header.opens and b.stop <= last)]
    return body_at(replace(view, bodies=tuple(bodies)))


def _slot_gap(document: Document, view: View, slot: Slot) -> Gap:
    """The gap of a slot; what a repair has put round the placeholder becomes its lead and tail."""
    first, last = view.inserted
    start, end = (view.back(at) for at in _text_of(view, slot))
    lead = view.data[first : slot.start].decode() if first < slot.start <= last else ""
    tail = ""
    if first <= slot.end < last and slot.kind != "statement":
        closing = _CLOSERS.match(view.data, slot.end, last)
        assert closing is not None
        tail = closing[0].decode()
    gap = _line_gap(document, view, start, slot.kind)
    return replace(gap, start=start, end=max(start, end), lead=lead, tail=tail)


def _text_of(view: View, slot: Slot) -> Span:
    """The span of a slot without the white space inside its brackets, which is a list's layout, but with the cursor."""
    text = view.data[slot.start : slot.end]
    if slot.kind not in LISTS or not text.strip():
        return slot.start, slot.end
    start, end = slot.end - len(text.lstrip()), slot.start + len(text.rstrip())
    return min(start, max(view.cursor, slot.start)), max(end, min(view.cursor, slot.end))


def _open_gap(document: Document, view: View, offset: int, kind: Kind) -> Gap | None:
    """The gap of something that is only open at the cursor, for text that no repair mends."""
    state = state_at(view.language, document.data, offset)
    eol = line_end(document.data, offset)
    if kind in STRINGS and state.string:
        start = state.begins + len(state.string)
        gap = _line_gap(document, view, offset, kind)
        return replace(gap, start=min(start, offset), end=eol, tail=state.string.decode())
    if kind == "comment" and state.comment:
        return replace(_line_gap(document, view, offset, kind), end=eol)
    if kind in LISTS and state.brackets:
        wanted = b"[{(" if kind == "collection" else b"("
        held = [at for at in state.opened if document.data[at] in wanted]
        return replace(_line_gap(document, view, offset, kind), start=(held or state.opened)[-1] + 1)
    if kind == "statement" and is_todo(document.data, state, offset):
        # The comment stays, and what it asks for comes below it.
        lead = document.newline + leading(document.data, offset).decode()
        return replace(_line_gap(document, view, offset, kind), lead=lead)
    if kind not in ("statement", "expression"):
        return None
    gap = _line_gap(document, view, offset, kind)
    # A value that nothing follows on its line wants what ends its statement.
    ends = view.language.words.ends[:1]
    ended = kind == "expression" and gap.end == eol and state.brackets[-1:] in (b"", b"{")
    return replace(gap, tail=b"".join(ends).decode()) if ended else gap


def _typed(document: Document, gap: Gap, offset: int) -> Gap:
    """The part of `gap` that begins at the cursor, behind which nothing but white space goes."""
    eol = line_end(document.data, offset)
    end = max(gap.end, offset if document.data[offset:eol].strip() else eol)
    return replace(gap, start=offset, end=offset if document.data[offset:end].strip() else end)


def _line_gap(document: Document, view: View, offset: int, kind: Kind) -> Gap:
    """The gap from the cursor to the end of the line, or at the cursor where text follows."""
    data = document.data
    eol = line_end(data, offset)
    end = offset if data[offset:eol].strip() else eol
    functions = tuple(
        b for b in view.bodies if b.header.owner == "function" and is_at(view.data, b, view.cursor)
    )
    function = max(functions, key=lambda f: f.header.define, default=None)
    scope = (view.back(function.header.start), view.back(function.stop)) if function else (0, len(data))
    indent = leading(data, offset).removeprefix(BOM).decode()
    return Gap(offset, end, kind, indent, name=function.header.name if function else "", scope=scope)
