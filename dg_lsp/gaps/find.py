"""The gap at a cursor, in a range, or by a function's name, and its kind, however broken the file is."""

import difflib
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from dg_lsp.budget import bounded, tried
from dg_lsp.gaps import parts
from dg_lsp.gaps.body import body_gap
from dg_lsp.gaps.gap import Gap
from dg_lsp.gaps.plain import plain_gap
from dg_lsp.messages import BODIES, Kind, Wanted
from dg_lsp.reasons import NoGap
from dg_lsp.source.analysis import Analysis, analyze, analyze_whole, by_lines, without_damage
from dg_lsp.source.bodies import KIND_OF, OWNER_OF, Body
from dg_lsp.source.brackets import lacks_end
from dg_lsp.source.document import Document
from dg_lsp.source.history import splits_character
from dg_lsp.source.injections import codes_of
from dg_lsp.source.items import FARTHEST, top_level_item
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import Span, indentation, leading, line_end, line_start
from dg_lsp.source.repair import FILLER

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
    rb"|\b(?:return|throw|raise|yield|await|assert)\b|\b(?:if|elif|while|for|match|switch|in|of|case|when)\b(?!\Z)"
)
_NAME = re.compile(rb"[\w\x80-\xff]+")
# A key whose value is to come.
_KEY = re.compile(rb"[\w\"'\])]\??[ \t]*:[ \t]*\Z")
_CALLED = re.compile(rb"(?:[\w\x80-\xff)\]][ \t]*|[\w)\]]!|>)$")
# These take a bracket without being called.
_WORDS = re.compile(
    rb"\b(?:if|elif|while|for|switch|match|return|in|and|or|not|yield|await|assert|raise|throw|catch|with|case"
    rb"|constexpr)[ \t]*$"
)

# Nobody writes a longer line by hand, nor so many brackets open at once.
LONGEST_LINE = 20_000
MOST_OPEN = 250
# What is read of a stranger text: so many bytes on either side of the cursor.
NEAR = 300


@bounded
def find_gap(document: Document, offset: int, kind: Wanted | None = None) -> Gap:
    """The gap at the byte `offset`; without a kind, the one that a cursor there means. "holes" are several gaps in one.

    1. Make the text around the cursor readable; a text of strange shape is read only near it (see `reach`).  2. Where
    it is broken, older texts of the document may show what else has been broken since: the easiest to read counts.  3.
    Find the gap there.

    Raises:
        NoGap: the kind asked for is not at the cursor, or the text takes too long to read (OutOfTime).
        UnknownLanguage: the document's language has no grammar.
    """
    start, stop = reach(document.data, offset)
    if (start, stop) != (0, len(document.data)):
        near = replace(document, data=document.data[start:stop], history=None)
        return find_gap(near, offset - start, kind).moved(start)
    language = load_language(document.language, document.macros)
    if language.is_plain:
        return plain_gap(language, document, offset, kind)
    # 1. A broken tree is never asked what is at the cursor.
    analysis = analyze(document, offset)
    if kind == "holes":
        return _holes(analysis)
    # 2. and 3.
    gap = _recalled(analysis, kind) if not analysis.whole else None
    gap = gap or _gap_in(analysis, kind)
    if kind is not None:
        return replace(gap, asked=True)
    return parts.up_to_statement(analysis, gap) if gap.kind in BODIES else gap


@bounded
def find_gaps(document: Document, start: int, end: int) -> list[Gap]:
    """The bodies of all functions that overlap [start, end), in order; OutOfTime where they cannot be read."""
    language = load_language(document.language, document.macros)
    if language.is_plain:
        return []
    analysis = tried(partial(analyze_whole, document))
    if analysis is None:
        first, stop = top_level_item(language, document.data, start)
        if end <= stop and (first, stop) != (0, len(document.data)):
            item = replace(document, data=document.data[first:stop], history=None)
            return [gap.moved(first) for gap in find_gaps(item, start - first, end - first)]
        analysis = analyze_whole(document)
    functions = [b for b in analysis.bodies if b.header.owner == "function"]
    overridden = _overridden(analysis, functions)
    found = [
        replace(f, is_intentionally_empty=True) if f.header.name in overridden else f
        for f in functions
        if f.header.start < max(end, start + 1) and f.end >= start
    ]
    return [replace(body_gap(analysis, f), asked=True) for f in found]


def _overridden(analysis: Analysis, functions: Sequence[Body]) -> set[str]:
    """Return the names of unwritten methods that a class of the file overrides, whose header names their class.

    In `class Base: def area(self): raise NotImplementedError`, with `class Square(Base): def area(self): ...` below,
    the first one is abstract, although nothing in it says so.
    """
    unwritten = [f.header for f in functions if f.stub and "." in f.header.name]
    if not unwritten:
        return set()
    methods = defaultdict[str, list[str]](list)
    for function in functions:
        methods[function.header.name.rpartition(".")[0]].append(function.header.last_name)
    overridden = {
        (word.decode("utf-8", "replace"), method)
        for one in (b.header for b in analysis.bodies if b.header.owner == "class")
        for word in _NAME.findall(analysis.data, one.define, one.opens)
        if word.decode("utf-8", "replace") != one.last_name
        for method in methods[one.name]
    }
    return {
        method.name for method in unwritten if (method.name.split(".")[-2], method.last_name) in overridden
    }


@bounded
def find_function(document: Document, offset: int) -> list[Gap]:
    """Return the gaps of the function around `offset`: its holes, if it has any, and its body; NoGap if in none."""
    body = find_gap(document, offset, "function_body")
    with suppress(NoGap):
        return [find_gap(document, offset, "holes"), body]
    return [body]


@bounded
def find_selected(document: Document, start: int, end: int) -> list[Gap]:
    """Return the gaps of the selection [start, end): the selected text itself, and the bodies that it overlaps."""
    gaps = find_gaps(document, start, end)
    with suppress(NoGap):
        return [_span_in(document, gaps, start, end), *gaps]
    return gaps


@bounded
def find_span(document: Document, start: int, end: int) -> Gap:
    """The text [start, end) as a gap of its own, without the white space at its ends; NoGap if not within one body."""
    return _span_in(document, find_gaps(document, start, end), start, end)


@bounded
def find_named(document: Document, qualname: str, kind: Wanted | None = None) -> Gap:
    """The body of the function `qualname`, such as `area`, `Shape.area`, `Shape::area` or `outer.inner`, or its
    "holes".

    Among several of one name a stub comes first, then the last one, which is the one that Python keeps. NoGap lists
    names that are close, or says that it has no holes.
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


def code_with(document: Document, qualname: str, kind: Wanted | None = None) -> tuple[Document, Gap]:
    """Return the text that has the function `qualname`, `document` or code in it, and what `find_named` finds there."""
    codes, why = [*codes_of(document)] or [document], list[NoGap]()
    for code in codes:
        try:
            return code, find_named(code, qualname, kind)
        except NoGap as error:
            why.append(error)
    raise why[0]


def choose_kind(analysis: Analysis) -> Kind:
    """The kind of gap that a cursor means where no kind is asked for.

    1. A body or a statement that is not written yet.  2. What is open: a string, a comment, a list of arguments,
    another bracket.  3. A blank line wants a statement; a line that wants a value an expression.  4. Else the rest
    of the line.
    """
    # 1. It comes first, for a stub may hold strings and brackets itself.
    body, state = analysis.body, analysis.state
    if body is not None and offers(analysis, body):
        return KIND_OF[body.header.owner]
    if parts.hole_at(analysis) is not None:
        return "statement"
    # 2.
    if state.string or state.text:
        return "docstring" if state.string and _is_docstring(analysis) else "string"
    if state.comment:
        return "statement" if parts.is_todo(analysis) else "comment"
    if state.brackets and (kind := _in_bracket(analysis)):
        return kind
    # 3. and 4.
    before, rest = analysis.line.before, analysis.line.after
    value = before.strip() and _VALUE.search(before)
    return "expression" if value else "rest_of_line" if (before + rest).strip() else "statement"


def reach(data: bytes, offset: int) -> Span:
    """The span around `offset` that may be read for a gap: all, or the text near it in a strange line or nesting."""
    low, high = max(offset - FARTHEST, 0), min(offset + FARTHEST, len(data))
    line = data[max(offset - LONGEST_LINE, 0) : offset + LONGEST_LINE]
    before, after = line[: min(offset, LONGEST_LINE)], line[min(offset, LONGEST_LINE) :]
    length = len(before) - line_start(before, len(before)) + line_end(after, 0)
    if length < LONGEST_LINE and _most_open(data, low, offset) < MOST_OPEN:
        return 0, len(data)
    return _whole(data, max(offset - NEAR, 0)), _whole(data, min(offset + NEAR, high))


def _most_open(data: bytes, start: int, stop: int) -> int:
    """At most so many brackets of one kind are open at `stop`, counted from `start`, strings not looked at."""
    pairs = (b"()", b"[]", b"{}")
    return max(data.count(p[:1], start, stop) - data.count(p[1:], start, stop) for p in pairs)


def _whole(data: bytes, at: int) -> int:
    """`at`, moved up to where it cuts neither a character nor a line end in two."""
    while splits_character(data, at) or (at > 0 and data.startswith(b"\r\n", at - 1)):
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


def _recalled(analysis: Analysis, kind: Kind | None) -> Gap | None:
    """The gap as older texts of the document show it, where they are no harder to read than the present one."""
    readable = []
    for undamaged in without_damage(analysis.document, analysis.offset):
        older = analyze(undamaged.document, undamaged.cursor)
        readable += [(older, undamaged.changes)] if older.cost <= analysis.cost else []
    for older, changes in sorted(readable, key=lambda r: r[0].cost):
        with suppress(NoGap):
            gap = _gap_in(older, kind)
            span = changes.span(gap.start, gap.end)
            # Text typed into a stub since then stays, unless the stub is asked for by its kind.
            if span and (
                kind or analysis.document.data[slice(*span)] == older.document.data[gap.start : gap.end]
            ):
                return replace(gap, start=span[0], end=span[1])
    return None


def _gap_in(analysis: Analysis, asked: Kind | None) -> Gap:
    """The gap at the cursor, of the kind `asked` for or the one that the cursor means."""
    kind = asked or choose_kind(analysis)
    # A body is found by its header.
    if kind in OWNER_OF:
        return _body_gap(analysis, kind)
    if kind == "rest_of_line":
        return parts.line_gap(analysis, kind)
    new_statement = asked is None and kind == "statement"
    if new_statement and (hole := parts.hole_at(analysis)) is not None:
        return replace(parts.region_gap(analysis, hole), stub=True)
    # A part of a line is found by the tree, and where that shows none by the brackets and quotes that are open. The end
    # of a comment may have given way for the repair, and then the tree's comment continues to the next end.
    region = None if new_statement else _readable_region(analysis, kind)
    # A quoted character is no string of the tree.
    by_tokens = asked in ("comment", "string") and (analysis.masks or region is None)
    if by_tokens and (closed := parts.closed_gap(analysis, kind)):
        return closed
    gap = parts.region_gap(analysis, region) if region else parts.open_gap(analysis, kind)
    if gap is None and asked is not None:
        raise NoGap(
            f"the cursor is in no {kind.replace('_', ' ')}; put it inside one, or at a place where one may begin"
        )
    gap = parts.closed(analysis, gap or parts.line_gap(analysis, "rest_of_line"))
    # A gap that nobody asked for by name keeps the text already typed.
    return gap if asked is not None else parts.start_at_cursor(analysis, gap)


def _readable_region(analysis: Analysis, kind: Kind) -> parts.Region | None:
    """The innermost region of `kind` at the cursor, if the tree shows it as it is in the document."""
    region = parts.region_at(analysis, kind)
    if region is None:
        return None
    # Text that gave way for the repair is no part of it.
    first, last = analysis.inserted
    if analysis.masks and kind != "statement" and first < region.end <= last:
        return None
    return None if kind == "docstring" and _runs_on(analysis, region.start) else region


def _runs_on(analysis: Analysis, start: int) -> bool:
    """Return whether the docstring at `start` of the analysis's data is not closed: two of them parse as one string."""
    at, data = analysis.back(start), analysis.document.data
    return indentation(data, at) > 0 and lacks_end(analysis.language, data, at, analysis.state_before(at))


def _holes(analysis: Analysis) -> Gap:
    """The placeholders between written lines of the function around the cursor: the first, with the `further`."""
    body = _innermost(analysis, "function_body")
    if body is None:
        raise NoGap("the cursor is in no function; put it on a function's first line or in its body")
    # Placeholders that a repair has inserted do not count.
    found = parts.holes_in(analysis, (body.opens, body.end))
    holes = [s for s in found if all(s.end <= first or last <= s.start for first, last in analysis.made)]
    if not holes:
        raise NoGap(f"{body.header.name} has no holes: no placeholder is between written lines")
    gap, *further = (replace(parts.region_gap(analysis, hole), stub=True, asked=True) for hole in holes)
    return replace(gap, further=tuple(further))


def _body_gap(analysis: Analysis, kind: Kind) -> Gap:
    """The gap of the innermost body of `kind` around the cursor."""
    body = _innermost(analysis, kind)
    if analysis.cost:
        # Lines tell bodies apart where no tree does, but for one whose brace only a repair has put there.
        lines = by_lines(analysis)
        found = _innermost(lines, kind)
        closed = found is not None and (found.stop > found.closes or lines.language.style == "indent")
        if closed or body is None:
            analysis, body = lines, found
    if body is None:
        name = kind.removesuffix("_body")
        raise NoGap(f"the cursor is in no {name}; put it on a {name}'s first line or in its body")
    gap = body_gap(analysis, body)
    if FILLER.decode() in gap.insert_before:
        raise NoGap("the header at the cursor is not finished; write what is missing in it first")
    return gap


def _innermost(analysis: Analysis, kind: Kind) -> Body | None:
    """The innermost body of `kind` that holds the cursor; one whose braces only the repair has inserted is none."""
    owner, made = OWNER_OF[kind], analysis.made if analysis.language.style == "brace" else ()
    bodies = [
        body
        for body in analysis.around
        if body.header.owner == owner
        and not any(first < body.header.opens and body.stop <= last for first, last in made)
    ]
    return max(bodies, key=lambda body: (body.header.define, -body.end), default=None)


def offers(analysis: Analysis, body: Body) -> bool:
    """Return whether a cursor without a wish means `body`: it is a stub, and its header is not being typed."""
    data, header, cursor = analysis.data, body.header, analysis.cursor
    if not body.stub or cursor < line_start(data, header.define):
        return False
    if body.docstring is not None and body.docstring[0] < cursor < body.docstring[1]:
        return False
    if header.owner != "function" and (body.first is not None or cursor < header.opens):
        return False
    opening = data.find(b"(", header.define, header.opens)
    typing = header.define < cursor < header.opens
    typing = typing and (cursor > opening or analysis.has_filler(header.define, header.opens))
    return not typing and (body.first is None or cursor <= line_end(data, body.end))


def _in_bracket(analysis: Analysis) -> Kind | None:
    """Return the kind of gap in the innermost open bracket; None where its lines are like any others."""
    data, state, line = analysis.document.data, analysis.state, analysis.line
    at = state.opened[-1]
    lists: tuple[Kind, ...] = ("arguments", "parameters")
    for kind in lists:
        if _begins_at(analysis, kind, at + 1):
            return kind
    # A broken tree may know nothing of it.
    before = data[line_start(data, at) : at]
    last = re.search(rb"[\w$]+[ \t]*$", before)
    header = last is not None and last[0].strip() in analysis.language.words.blocks
    if state.brackets[-1:] == b"(" and _CALLED.search(before) and not _WORDS.search(before) and not header:
        return "arguments"
    if state.brackets[-1:] != b"{" or _KEY.search(line.before):
        return "expression"
    return _in_braces(analysis, at, data[at : analysis.offset])


def _in_braces(analysis: Analysis, at: int, inside: bytes) -> Kind | None:
    """Return the kind of gap in the brace at `at` of the document, with `inside` up to the cursor."""
    body = next((b for b in analysis.bodies if analysis.back(b.header.opens) == at + 1), None)
    if body is not None:
        return None if body.first is not None else "statement"
    if _begins_at(analysis, "collection", at + 1):
        return None if b"\n" in inside or b"\r" in inside else "collection"
    return None if analysis.cost else "expression"


def _begins_at(analysis: Analysis, kind: Kind, start: int) -> bool:
    """Return whether a region of `kind` at the cursor begins at `start` of the document."""
    return any(analysis.back(region.start) == start for region in parts.regions_at(analysis, kind))


def _is_docstring(analysis: Analysis) -> bool:
    """Return whether the open string is a docstring: by the tree or, where that is broken, by its quotes."""
    if parts.regions_at(analysis, "docstring"):
        return True
    if analysis.whole:
        return False
    data, state = analysis.document.data, analysis.state
    return len(state.string) > 1 and not data[line_start(data, state.begins) : state.begins].strip(b" \trRuU")
