"""From a Body to its Gap: which text of it gives way, what stays, and what the edit must bring along.

Knows bodies and indentation; knows no cursor's wishes and no trees.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.lines import indentation, leading, line_end, line_start, width
from dg_lsp.text.gaps.context import CursorContext
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.syntax.body import KIND_OF, MARKER, Body
from dg_lsp.text.syntax.lexer import tokens

# How far round a body its file's step of indentation is looked for, in bytes.
NEAR = 100_000
_BLANK = ("space", "newline", "joined")
_STEP = rb"[ \t]*(?:\r\n|\n|\r)\1([ \t]+)[^\s]"
_OPENED = {
    "indent": re.compile(rb"(?:^|(?<=[\r\n]))([ \t]*)[^\r\n#]*:" + _STEP),
    "brace": re.compile(rb"(?:^|(?<=[\r\n]))([ \t]*)[^\r\n]*\{" + _STEP),
}


def body_gap(document: Document, context: CursorContext, body: Body, cursor: int | None = None) -> Gap:
    """The gap of a `body` in the document; a `cursor` of the context says on which blank line to write."""
    first, last = context.inserted
    made = body.first is not None and first <= body.first and body.end <= last and body.opens <= first
    if made and not (context.repaired and context.repaired.removed):
        # What a repair has put there is no text of the body's, which is empty in the text without it.
        data = context.data[:first] + context.data[last:]
        closes = body.opens if first <= body.closes < last else body.closes - (last - first)
        empty = replace(body, first=None, end=body.opens, indent=None, closes=closes)
        empty = replace(empty, hollow=True, meant=False)
        empty = replace(empty, stop=closes + body.stop - body.closes if closes > body.opens else closes)
        gap = _gap(document, data, empty, min(first, len(data)))
        return _closed(
            document, context, body, replace(gap, start=gap.start + context.base, end=gap.end + context.base)
        )
    return _mapped(document, context, body, _gap(document, context.data, body, cursor))


def _gap(document: Document, data: bytes, body: Body, cursor: int | None) -> Gap:
    """The gap of a body in the offsets of `data`."""
    newline = document.newline
    base = leading(data, body.header.define).decode()
    indent = body.indent.decode() if body.indent is not None else base + _unit(document, body.header.define)
    kind = KIND_OF[body.header.owner]
    # What closes it on the same line goes to a line of its own.
    shut = body.stop > body.closes and body.closes <= line_end(data, body.end)
    whole, body = body, without_comments(load_language(document.language), data, body)
    commented = body.end < whole.end
    tail = newline + (indent if commented else base) if shut else ""
    gap = Gap(body.opens, body.end, kind, indent, newline + indent, tail, body.header.name, stub=body.stub)
    if body.inline:
        # A docstring on the header's line moves to its own, or the body below it could not stand.
        start, end = body.docstring or (0, 0)
        kept = newline + indent + data[start:end].decode() if body.docstring else ""
        stop = body.closes if shut and not commented else body.end
        start = body.header.opens if kept else body.opens
        return replace(gap, start=start, end=stop, insert_before=kept + gap.insert_before)
    if body.first is not None:
        if body.first <= line_end(data, body.opens):
            return gap
        return replace(gap, start=body.first, insert_before="")
    return _empty(data, body, gap, cursor)


def without_comments(language: Language, data: bytes, body: Body) -> Body:
    """A stub without the comments before and behind what says that it is not written; any other body as it is.

    They say what the body is to do. A bare marker says nothing and is part of the stub:

        # reads a file                     # reads a file
        # TODO                  is left    <# TODO
        pass  # line by line    with       pass>  # line by line
    """
    if not body.hollow or body.first is None:
        return body
    found = [t for t in tokens(language, data, body.opens, body.end) if t.kind not in _BLANK]
    said = [t.kind == "comment" and not MARKER.fullmatch(data, t.start, t.end) for t in found]
    code = [n for n, token in enumerate(found) if token.kind != "comment"]
    first, last = (code[0], code[-1]) if code else (len(found), len(found))
    above = max((n for n in range(first) if said[n]), default=-1)
    below = min((n for n in range(last + 1, len(found)) if said[n]), default=len(found))
    left = found[above + 1 : below]
    opens = found[above].end if above >= 0 else body.opens
    begins = left[0].start if left else None
    end = left[-1].end if left else opens
    inline = begins is not None and begins <= line_end(data, opens)
    return replace(body, opens=opens, first=begins, end=end, inline=inline and (body.inline or above >= 0))


def _empty(data: bytes, body: Body, gap: Gap, cursor: int | None) -> Gap:
    """The gap of a body without text: a blank line that is there for it, or the end of what is above."""
    here = line_start(data, cursor) if cursor is not None and cursor > line_end(data, body.opens) else None
    header = indentation(data, body.header.define)
    for start in _blank_lines(data, body.opens):
        if start > body.closes and body.stop > body.closes:
            break
        space = leading(data, start)
        end = start + len(space)
        if body.docstring is None and width(space) > header and here in (None, start):
            return replace(gap, start=end, end=end, indent=space.decode(), insert_before="")
        if space.decode() == gap.indent and here in (None, start):
            return replace(gap, start=end, end=end, insert_before="")
        if start == here:
            return replace(gap, start=start, end=end, insert_before=gap.indent)
    space_end = re.compile(rb"[ \t\f]*").match(data, body.opens)
    assert space_end is not None
    return replace(gap, start=body.opens, end=space_end.end())


def _blank_lines(data: bytes, offset: int) -> Iterable[int]:
    """The starts of the blank lines that follow the line of `offset`."""
    step = re.compile(rb"\r\n|\n|\r")
    found = step.match(data, line_end(data, offset))
    while found:
        start = found.end()
        if data[start : line_end(data, start)].strip():
            return
        yield start
        found = step.match(data, line_end(data, start))


def _mapped(document: Document, context: CursorContext, body: Body, gap: Gap) -> Gap:
    """`gap` in the offsets of the document; what a repair put before its start is inserted with the fill."""
    first, last = context.inserted
    start, end = context.back(gap.start), context.back(gap.end)
    lead = gap.insert_before
    if first < gap.start <= last:
        lead = context.data[first : gap.start].decode() + lead
    elif (
        lead and context.language.style == "indent" and not context.data.endswith(b":", 0, body.header.opens)
    ):
        lead = ":" + lead
    return _closed(
        document, context, body, replace(gap, start=start, end=max(start, end), insert_before=lead)
    )


def _closed(document: Document, context: CursorContext, body: Body, gap: Gap) -> Gap:
    """`gap` with what closes the body where the file lacks it: the edit brings it along."""
    first, last = context.inserted
    if not (body.stop > body.closes and first <= body.closes < last):
        return gap
    base = leading(context.data, body.header.define).decode()
    # Where the braces of what is round it are gone too, they all come along.
    stop = last if context.language.style == "brace" else body.stop
    tail = document.newline + base + context.data[body.closes : stop].decode()
    return replace(gap, insert_after=tail)


def _unit(document: Document, at: int) -> str:
    """One step of the file's indentation: the commonest one near `at` after a line that opens a body."""
    language = load_language(document.language)
    steps = Counter(
        match[2].decode()
        for match in _OPENED[language.style].finditer(document.data, max(at - NEAR, 0), at + NEAR)
    )
    return steps.most_common(1)[0][0] if steps else language.indent
