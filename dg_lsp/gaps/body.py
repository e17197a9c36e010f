"""The gap of a body: its text, or the blank line on which it is to be written. Chooses no kind."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from dg_lsp.budget import check
from dg_lsp.gaps.gap import Gap
from dg_lsp.source.analysis import Analysis
from dg_lsp.source.bodies import KIND_OF, MARKER, Body
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import indentation, leading, line_end, line_start, newline_at, tokens, width

# How far round a body its file's step of indentation is looked for, in bytes.
NEAR = 100_000
BLANK = ("space", "newline", "joined")
_STEP = rb"[ \t]*(?:\r\n|\n|\r)(?:[ \t]*+(?:\r\n|\n|\r))*+\1([ \t]+)[^\s]"
_OPENED = {
    "indent": re.compile(rb"(?:^|(?<=[\r\n]))([ \t]*+)[^\r\n#]*:" + _STEP),
    "brace": re.compile(rb"(?:^|(?<=[\r\n]))([ \t]*+)[^\r\n]*\{" + _STEP),
}
# A line that is indented, and no further line of a comment.
_INDENTED = re.compile(rb"(?:^|(?<=[\r\n]))([ \t]++)[^\s*]")
_SPACE = re.compile(rb"[ \t\f]*")
_LINE_END = re.compile(rb"\r\n|\n|\r")
# The span of a gap in an analysis's data, the indentation of its lines, and the text inserted before the fill.
_Place = tuple[int, int, str, str]


def body_gap(analysis: Analysis, body: Body) -> Gap:
    """The gap of a `body` in the document; of an empty one the blank line at the cursor, if it is on one."""
    data = analysis.data
    base, newline = leading(data, body.header.define).decode(), newline_at(data, body.header.define)
    if body.indent is None:
        indent = base + step_near(analysis.language, analysis.document.data, body.header.define)
    else:
        indent = body.indent.decode()
    # A brace that closes it on the same line goes to a line of its own.
    shut = body.stop > body.closes and body.closes <= line_end(data, body.end)
    # Leave out the comments of a stub.
    whole, body = body, without_comments(analysis.language, data, body)
    commented = body.end < whole.end
    tail = newline + (indent if commented else base) if shut else ""
    # Find the text, or the line to write on.
    lead = newline + indent
    if body.inline:
        first, last, lead = _inline(data, body, lead)
        last = body.closes if shut and not commented else last
    elif body.first is None:
        first, last, indent, lead = _blank_line(analysis, body, (indent, lead))
    elif body.first <= line_end(data, body.opens):
        first, last = body.opens, body.end
    else:
        first, last, lead = body.first, body.end, ""
        begins, space = line_start(data, first), leading(data, first)
        if space.decode() != indent and begins + len(space) == first:
            # A directive, a label or a comment is at any depth; the text in its place is as deep as the rest.
            first, lead = begins, indent
    # Add the text that the repair has put before it and the closing of the body.
    start = analysis.back(first)
    return Gap(
        start,
        max(start, analysis.back(last)),
        KIND_OF[body.header.owner],
        indent,
        insert_before=_repaired(analysis, body, first, lead),
        insert_after=_closing(analysis, body, start) or tail,
        name=body.header.name,
        stub=body.stub,
        is_placeholder=body.is_placeholder,
    )


def without_comments(language: Language, data: bytes, body: Body) -> Body:
    """A stub without the comments before and after its placeholder; any other body as it is.

    They describe the body. A bare marker says nothing and is part of the stub:

        # reads a file                     # reads a file
        # TODO                  is left    <# TODO
        pass  # line by line    with       pass>  # line by line
    """
    if not body.is_placeholder or body.first is None:
        return body
    found = [t for t in tokens(language, data, body.opens, body.end) if t.kind not in BLANK]
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


def _inline(data: bytes, body: Body, lead: str) -> tuple[int, int, str]:
    """The span of a body on its header's line, and the text before it: a docstring there moves to its own line."""
    if body.docstring is None:
        return body.opens, body.end, lead
    return body.header.opens, body.end, lead + data[slice(*body.docstring)].decode() + lead


def _blank_line(analysis: Analysis, body: Body, begun: tuple[str, str]) -> _Place:
    """The place of a body without text: a blank line, or the end of the text above; begun: usual indent, line end."""
    data, cursor, (indent, lead) = analysis.data, analysis.cursor, begun
    here = line_start(data, cursor) if cursor > line_end(data, body.opens) else None
    header = indentation(data, body.header.define)
    for start in _blank_lines(data, body.opens):
        if start > body.closes and body.stop > body.closes:
            break
        space = leading(data, start)
        end = start + len(space)
        if body.docstring is None and width(space) > header and here in (None, start):
            return end, end, space.decode(), ""
        if space.decode() == indent and here in (None, start):
            return end, end, indent, ""
        if start == here:
            return start, end, indent, indent
    space_end = _SPACE.match(data, body.opens)
    assert space_end is not None
    return body.opens, space_end.end(), indent, lead


def _blank_lines(data: bytes, offset: int) -> Iterator[int]:
    """The starts of the blank lines that follow the line of `offset`."""
    found = _LINE_END.match(data, line_end(data, offset))
    while found:
        start = found.end()
        if data[start : line_end(data, start)].strip():
            return
        yield start
        found = _LINE_END.match(data, line_end(data, start))


def _repaired(analysis: Analysis, body: Body, start: int, lead: str) -> str:
    """`lead` after the text that a repair has put before `start`, or after the colon that the header still needs."""
    data = analysis.data
    put = next((first for first, last in analysis.made if first < start <= last), -1)
    if put >= 0:
        return data[put:start].decode() + lead
    colon = lead and analysis.language.style == "indent" and not data.endswith(b":", 0, body.header.opens)
    return ":" + lead if colon else lead


def _closing(analysis: Analysis, body: Body, start: int) -> str:
    """The closing of the body, whose gap begins at `start`, on a line of its own; empty where the file has one."""
    last = next((last for first, last in analysis.made if first <= body.closes < last), -1)
    if body.stop <= body.closes or last < 0:
        return ""
    base = leading(analysis.data, body.header.define).decode()
    # Where the braces of the blocks around it are missing too, it includes them all.
    stop = last if analysis.language.style == "brace" else body.stop
    return newline_at(analysis.document.data, start) + base + analysis.data[body.closes : stop].decode()


def step_near(language: Language, data: bytes, at: int) -> str:
    """Return one step of the file's indentation: the commonest one near `at` after a line that opens a body.

    Where none has a line, the smallest indentation of all; in a file without any that of the language.
    """
    check()
    near = slice(max(at - NEAR, 0), at + NEAR)
    opened = _OPENED.get(language.style, _OPENED["brace"]).finditer(data, near.start, near.stop)
    if steps := Counter(match[2] for match in opened):
        return steps.most_common(1)[0][0].decode()
    spaces = (match[1] for match in _INDENTED.finditer(data, near.start, near.stop))
    return min(spaces, key=len, default=language.indent.encode()).decode()
