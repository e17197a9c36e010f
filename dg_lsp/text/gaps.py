"""Gap: the span of a document that a fill replaces; at a cursor, in a range, or by a function's name.

Knows trees and, where they are broken, repairs and indentation; knows no model and no editor.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dg_lsp.text.document import BOM, Document
from dg_lsp.text.functions import Function, functions_by_lines, functions_of, item_at
from dg_lsp.text.language import Language, load_language
from dg_lsp.text.lexical import indentation, leading, line_end, line_start, unclosed, width, window
from dg_lsp.text.messages import Kind
from dg_lsp.text.neutral import WHOLE
from dg_lsp.text.repair import Repaired, repair


class NoGap(ValueError):
    """There is nothing to fill here; the message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The half-open byte span [start, end) that a fill replaces, equal at a bare cursor.

    indent: the white space that the lines of the fill begin with. lead, tail: text that the edit puts before
    and after the fill, so that the fill need not. name: the function's, with its owners. scope: the span of
    the enclosing function, or of the file. stub: what stands in the gap says that it is not written yet.
    """

    start: int
    end: int
    kind: Kind
    indent: str
    lead: str = ""
    tail: str = ""
    name: str = ""
    scope: tuple[int, int] = (0, 0)
    stub: bool = False


@dataclass(frozen=True, slots=True)
class _View:
    """A readable form of the part of a document round the cursor: data[base:] with at most one repair."""

    data: bytes
    functions: tuple[Function, ...]
    cursor: int
    base: int = 0
    repaired: Repaired | None = None

    def back(self, offset: int) -> int:
        """An offset of the view as one of the document."""
        return self.base + (self.repaired.back(offset) if self.repaired else offset)


def find_gap(document: Document, offset: int, kind: Kind | None = None) -> Gap:
    """The gap at the byte `offset`; without a kind, a stub round the cursor or else the rest of the line.

    1. Make the text round the cursor readable.  2. Find the innermost function.
    3. Choose the kind.  4. Trim the span.  5. Map it back to the document.

    Raises:
        NoGap: a function body is asked for and the cursor is in no function.
        UnknownLanguage: the document's language has no grammar.
    """
    # 1. A broken tree is never asked what is at the cursor.
    view = _view(load_language(document.language), document, offset)
    # 2. A nested function wins over the one round it.
    inside = [f for f in view.functions if _is_at(view.data, f, view.cursor)]
    function = max(inside, key=lambda f: f.header.define, default=None)
    # 3. A stub or an empty body comes before everything that could be at the cursor.
    if kind is None:
        kind = "function_body" if function and _offers(view.data, function, view.cursor) else "rest_of_line"
    if kind == "rest_of_line":
        return _rest_of_line(document, offset, view, function)
    if function is None:
        raise NoGap("the cursor is in no function; put it on a function's first line or in its body")
    # 4. and 5.
    return _mapped(document, view, function, _body(document, view.data, function, view.cursor))


def find_gaps(document: Document, start: int, end: int) -> list[Gap]:
    """The bodies of all functions that overlap [start, end), in the order of the text."""
    view = _whole(load_language(document.language), document)
    found = [f for f in view.functions if f.header.start < max(end, start + 1) and f.end >= start]
    return [_mapped(document, view, f, _body(document, view.data, f, None)) for f in found]


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


def _view(language: Language, document: Document, offset: int) -> _View:
    """The first readable of: the file as it is, the repaired top-level item round the cursor, its lines."""
    data = document.data
    if len(data) <= WHOLE:
        tree = language.parse(data)
        if not tree.root_node.has_error:
            # A query over all of a long file would cost more than its parse.
            return _View(data, functions_of(language, item_at(tree.root_node, offset), data), offset)
    # Damage elsewhere in the file is none of the cursor's business.
    start, stop = window(data, offset)
    mended = repair(language, data[start:stop], offset - start)
    if mended.cost == 0:
        functions = functions_of(language, mended.tree.root_node, mended.data)
        return _View(mended.data, functions, mended.forth(offset - start), start, mended)
    # A string that was never closed would hide every function below it.
    text = unclosed(data, offset, start)
    mended = Repaired(data[:offset] + text + data[offset:], mended.tree, offset, 0, len(text), mended.cost)
    return _View(mended.data, functions_by_lines(mended.data, start, stop + len(text)), offset, 0, mended)


def _whole(language: Language, document: Document) -> _View:
    """All of the file, by its tree or, where that is broken, by its lines."""
    tree = language.parse(document.data)
    if tree.root_node.has_error:
        return _View(document.data, functions_by_lines(document.data, 0, len(document.data)), -1)
    return _View(document.data, functions_of(language, tree.root_node, document.data), -1)


def _is_at(data: bytes, function: Function, cursor: int) -> bool:
    """Whether `cursor` is on a line of `function`, or on blank lines below that are still part of it."""
    if cursor < line_start(data, function.header.start):
        return False
    if cursor <= line_end(data, function.end):
        return True
    if data[function.end : line_end(data, cursor)].strip():
        return False
    return function.first is None or width(leading(data, cursor)) > indentation(data, function.header.define)


def _offers(data: bytes, function: Function, cursor: int) -> bool:
    """Whether a cursor without a wish means the body: in a stub, but not while its header is being typed."""
    header = function.header
    if not function.stub or cursor < line_start(data, header.define):
        return False
    opening = data.find(b"(", header.define, header.colon)
    typing = header.define < cursor < header.colon and cursor > opening
    return not typing and (function.first is None or cursor <= line_end(data, function.end))


def _body(document: Document, data: bytes, function: Function, cursor: int | None) -> Gap:
    """The gap of a function's body in the offsets of `data`."""
    newline = document.newline
    base = leading(data, function.header.define).decode()
    indent = function.indent.decode() if function.indent is not None else base + _unit(document)
    gap = Gap(
        function.opens, function.end, "function_body", indent, newline + indent, name=function.header.name
    )
    gap = replace(gap, stub=function.stub)
    if function.inline:
        # A docstring on the header's line moves to its own, or the body below it could not stand.
        start, end = function.docstring or (0, 0)
        kept = newline + indent + data[start:end].decode() if function.docstring else ""
        return replace(gap, start=function.header.colon, lead=kept + gap.lead)
    if function.first is not None:
        if function.first <= line_end(data, function.opens):
            return gap
        return replace(gap, start=function.first, lead="")
    return _empty(data, function, gap, cursor)


def _empty(data: bytes, function: Function, gap: Gap, cursor: int | None) -> Gap:
    """The gap of a body without text: a blank line that is there for it, or the end of what is above."""
    here = (
        line_start(data, cursor) if cursor is not None and cursor > line_end(data, function.opens) else None
    )
    header = indentation(data, function.header.define)
    for start in _blank_lines(data, function.opens):
        space = leading(data, start)
        end = start + len(space)
        if function.docstring is None and width(space) > header and here in (None, start):
            return replace(gap, start=end, end=end, indent=space.decode(), lead="")
        if space.decode() == gap.indent and here in (None, start):
            return replace(gap, start=end, end=end, lead="")
        if start == here:
            return replace(gap, start=start, end=end, lead=gap.indent)
    space_end = re.compile(rb"[ \t\f]*").match(data, function.opens)
    assert space_end is not None
    return replace(gap, start=function.opens, end=space_end.end())


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


def _mapped(document: Document, view: _View, function: Function, gap: Gap) -> Gap:
    """`gap` in the offsets of the document; what a repair put before its start becomes part of its lead."""
    start, end = view.back(gap.start), view.back(gap.end)
    lead = gap.lead
    if view.repaired and view.repaired.at < gap.start <= view.repaired.at + view.repaired.inserted:
        lead = view.data[view.repaired.at : gap.start].decode() + lead
    elif lead and not view.data.endswith(b":", 0, function.header.colon):
        lead = ":" + lead
    scope = (view.back(function.header.start), max(view.back(function.end), end))
    return replace(gap, start=start, end=max(start, end), lead=lead, scope=scope)


def _rest_of_line(document: Document, offset: int, view: _View, function: Function | None) -> Gap:
    data = document.data
    eol = line_end(data, offset)
    end = offset if data[offset:eol].strip() else eol
    scope = (view.back(function.header.start), view.back(function.end)) if function else (0, len(data))
    indent = leading(data, offset).removeprefix(BOM).decode()
    name = function.header.name if function else ""
    return Gap(offset, end, "rest_of_line", indent, name=name, scope=scope)


def _unit(document: Document) -> str:
    """One step of the file's indentation: the commonest one after a line that ends with a colon."""
    steps: Counter[str] = Counter()
    opened = re.compile(rb"(?:^|(?<=[\r\n]))([ \t]*)[^\r\n#]*:[ \t]*(?:\r\n|\n|\r)\1([ \t]+)[^\s]")
    for match in opened.finditer(document.data):
        steps[match[2].decode()] += 1
    return steps.most_common(1)[0][0] if steps else load_language(document.language).indent
