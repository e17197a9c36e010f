"""Parts: gaps that are a part of a line, by the tree, by open brackets and quotes, or from the cursor on."""

import re
from dataclasses import dataclass, replace

from tree_sitter import Node

from dg_lsp.text.analysis import Analysis
from dg_lsp.text.documents.document import BOM
from dg_lsp.text.gaps.body import BLANK
from dg_lsp.text.gaps.gap import Gap
from dg_lsp.text.languages.language import Language
from dg_lsp.text.messages import LISTS, STRINGS, Kind
from dg_lsp.text.syntax.bodies import code_end
from dg_lsp.text.syntax.brackets import (
    PAIRS,
    depth,
    lacks_end,
    next_line,
    state_at,
    template_at,
    unclosed,
    unpaired,
)
from dg_lsp.text.syntax.directives import directive_start
from dg_lsp.text.syntax.lexer import (
    Span,
    block_end,
    first_token,
    is_closed_comment,
    leading,
    newline_at,
    quotes_at,
    tokens,
)
from dg_lsp.text.syntax.lines import needs_body
from dg_lsp.text.syntax.repair import FILLER

_HOLDERS: tuple[Kind, ...] = ("statement", "string")
_CLOSES = re.compile(rb"[)\]}>;]")
_QUOTES = re.compile(rb"[A-Za-z@$]*(#*)(?:\"\"\"|'''|[\"'`]|<)(?:(?<=R\")[^()\s]*\()?")
_COMMENT_BEGINS = re.compile(rb"(?:/\*+(?!/)|//+!?|#+|--|<!--)[ \t]?")
_COMMENT_ENDS = re.compile(rb"(?:[ \t]*\*+/|[\r\n]+)$")

# A rest of a line that begins so belongs to no list.
_BEHIND = (b")", b"]", b"}", b"{", b";")
# What a repair has put behind a placeholder: of it a fill needs the brackets and what ends a header or statement.
_CLOSERS = re.compile(rb"(?:\s*[)\]}>\"'`])*(?:[:;](?!%b))?" % FILLER)
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
    return _gap(analysis, kind, (offset, offset if analysis.line.behind.strip() else analysis.line.end))


def region_gap(analysis: Analysis, region: Region) -> Gap:
    """The gap of a region; the text that a repair has put round the placeholder is inserted with the fill."""
    data, (first, last) = analysis.data, analysis.inserted
    start, end = (analysis.back(at) for at in _text_of(analysis, region))
    lead, tail = data[first : region.start] if first < region.start <= last else b"", b""
    if first <= region.end < last and region.kind != "statement":
        tail = _closers(data, region.end, last)
    gap = _gap(analysis, region.kind, (start, max(start, end)))
    return replace(gap, insert_before=lead.decode(), insert_after=tail.decode())


def open_gap(analysis: Analysis, kind: Kind) -> Gap | None:
    """The gap of something that is only open at the cursor, for text that no repair fixes."""
    data, offset, state, eol = analysis.document.data, analysis.offset, analysis.state, analysis.line.end
    gap = line_gap(analysis, kind)
    if kind in STRINGS and state.string:
        start = state.begins + len(quotes_at(analysis.language, data, state.begins).open)
        return replace(gap, start=min(start, offset), end=eol, insert_after=state.string.decode())
    if (kind == "comment" and state.comment) or (kind == "string" and state.text):
        close = block_end(analysis.language, data[state.begins : offset])
        lost = close and close not in data[offset:]
        end = eol if state.comment else gap.end
        return replace(gap, end=end, insert_after=f" {close.decode()}" if lost else "")
    if kind in LISTS and state.brackets:
        wanted = b"[{(" if kind == "collection" else b"("
        held = [at for at in state.opened if data[at] in wanted]
        # The tree shows no list in `#if defined(A || B`, but the repair shows the end of one.
        known = not analysis.cost and directive_start(analysis.language, data, offset) >= 0
        tail = _closers(analysis.data, _behind_operand(analysis), analysis.inserted[1]) if known else b""
        return replace(gap, start=(held or state.opened)[-1] + 1, insert_after=tail.decode())
    if kind == "statement" and is_todo(analysis):
        # The comment stays, and the code that it asks for comes below it.
        return replace(gap, insert_before=newline_at(data, offset) + leading(data, offset).decode())
    if kind not in ("statement", "expression"):
        return None
    # A value that nothing follows on its line wants what ends its statement; `#if A` is none.
    ended = kind == "expression" and gap.end == eol and state.brackets[-1:] in (b"", b"{")
    ended = ended and not _begins_body(analysis) and not _is_body_value(analysis)
    ended = ended and directive_start(analysis.language, data, offset) < 0
    return replace(gap, insert_after=analysis.language.words.ends[0].decode() if ended else "")


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
    offset, line, (first, last) = analysis.offset, analysis.line, analysis.inserted
    end = max(gap.end, offset if line.behind.strip() else line.end)
    # A statement that gave way for the repair took what it had opened along, and the rest of its line.
    taken = analysis.masks and (gap.kind in LISTS or _goes_on(analysis))
    tail = "" if taken else gap.insert_after
    if first < last and not taken and (first == analysis.cursor or FILLER in analysis.data[first:last]):
        # What is open within the region wants to be closed as well.
        behind = _behind_operand(analysis)
        tail = _needed(analysis, behind, _closers(analysis.data, behind, last)).decode()
    elif (analysis.cost or taken) and gap.kind in LISTS and not _goes_on(analysis):
        tail = _left_open(analysis)
    # White space is replaced up to the line's end, behind which nothing is.
    end = offset if analysis.document.data[offset:end].strip() else min(end, line.end)
    return replace(gap, start=offset, end=end, insert_after=tail)


def start_open_gap_at_cursor(analysis: Analysis, gap: Gap) -> Gap:
    """The same for an unclosed string or bracket; also adds the missing closers after the fill.

    They close those brackets of the statement that neither the rest of the line nor the next one closes: `x = f(<sys>`
    becomes `x = f(sys<>)`.
    """
    data, offset, state = analysis.document.data, analysis.offset, analysis.state
    rest, goes_on, quoted = analysis.line.behind.strip(), _goes_on(analysis), state.string or state.comment
    # A list ends before such a rest of its line.
    listed = (
        goes_on and gap.kind in LISTS and rest.startswith(_BEHIND) and not quoted and not gap.insert_after
    )
    if not listed and gap.start == offset and not data[offset : gap.end].strip():
        # Behind `const [a, ` more than a bracket may be missing.
        called = gap.kind == "expression" and state.brackets.endswith(b"(")
        called = called or (state.text and data.startswith(b"/", state.begins))
        if gap.insert_after or not (gap.kind in LISTS or called) or quoted or goes_on:
            return gap
    if (goes_on and not listed) or (rest and quoted):
        tail = gap.insert_after if gap.kind in LISTS else ""
    elif state.string:
        tail = "" if _is_closed_below(analysis) else state.string.decode()
    else:
        # A header has its body below it, which does not show what is open in it.
        first, last = analysis.inserted
        headed = not rest and analysis.data.endswith(analysis.language.words.headers, first, last)
        closers = _closers(analysis.data, first, last) if headed else b""
        tail = closers.decode() or _left_open(analysis)
    end = offset if rest else analysis.line.end
    return replace(gap, start=offset, end=end, insert_before="", insert_after=tail)


def up_to_statement(analysis: Analysis, gap: Gap) -> Gap:
    """Return `gap`, which closes only brackets that the cursor's own line or statement has opened.

    At the end of a file, where `f(x: T) {` is above `g(h(|`, `))` is inserted, without a line with `}`.
    """
    text = gap.insert_after.encode()
    if not text.strip():
        return gap
    data, offset, language = analysis.document.data, analysis.offset, analysis.language
    line = min(analysis.state.line, analysis.line.start)
    state = state_at(language, data, gap.end) if gap.end > offset else analysis.state
    lead = gap.insert_before.encode()
    depth = sum(at >= line for at in state.opened)
    put = tokens(language, lead, 0, len(lead)) if lead else ()
    depth += sum((token.kind == "open") - (token.kind == "close") for token in put)
    kept = text.find(state.string) + len(state.string) if state.string in text else 0
    for token in tokens(language, text, kept, len(text)):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth < 0:
            return replace(gap, insert_after=text[:kept].decode())
        kept = kept if token.kind in BLANK else token.end
    return gap


def ended(analysis: Analysis, gap: Gap) -> Gap:
    """Return `gap` with the text that must follow it, which depends on the header where it is in one."""
    return _without_end_of_header(analysis, _up_to_end_of_header(analysis, up_to_statement(analysis, gap)))


def _up_to_end_of_header(analysis: Analysis, gap: Gap) -> Gap:
    """Return `gap`, up to the end of a function's header where others of the file name the types they return.

    In Python only `:` is inserted behind `def f(|` then, and not `):`, so that the fill may be `x) -> int`; so it is
    behind `def f(x)|`.
    """
    line, words = analysis.line, analysis.language.words
    end = words.headers[0].decode()
    in_brackets = gap.kind == "parameters" and gap.insert_after == f"){end}"
    opened = any(at >= line.start for at in analysis.state.opened)
    behind = gap.kind == "rest_of_line" and line.before.rstrip().endswith(b")") and not opened
    if line.behind.strip() or not (in_brackets or behind):
        return gap
    if words.functions.isdisjoint(line.before.partition(b"(")[0].split()):
        return gap
    # Last, since it reads the whole file.
    returned = words.returns.search(analysis.document.data)
    return replace(gap, kind="rest_of_line", insert_after=end) if returned else gap


def _without_end_of_header(analysis: Analysis, gap: Gap) -> Gap:
    """Return `gap` without the `;` after the parameters of a function that has to have a body.

    In a class of Java `)` is inserted after `int f(|`, and in an interface `);`.
    """
    data, at = analysis.document.data, analysis.offset
    if gap.kind != "parameters" or not needs_body(analysis.language, data, analysis.state.start, at):
        return gap
    return replace(gap, insert_after=gap.insert_after.removesuffix(";"))


def is_todo(analysis: Analysis) -> bool:
    """Return whether the comment that is open at the cursor ends there and asks for code below it."""
    state, data, offset = analysis.state, analysis.document.data, analysis.offset
    ends = not analysis.line.behind.strip()
    return state.comment and ends and _TODO.search(data, state.begins, offset) is not None


def _without_blocks_around(analysis: Analysis, found: list[Region]) -> list[Region]:
    """The statements of `found` without those that have the blank line of the cursor in one of their bodies."""
    line, cursor = analysis.own_line, analysis.cursor
    if (line.before + line.behind).strip():
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
    here, rest = analysis.own_line.before, analysis.own_line.behind
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


def _closers(data: bytes, start: int, stop: int) -> bytes:
    """The brackets, and the end of a header or statement, that data[start:stop] begins with."""
    found = _CLOSERS.match(data, start, stop)
    assert found is not None, "it matches nothing, too"
    return found[0]


def _behind_operand(analysis: Analysis) -> int:
    """Return where the closers begin in the text that a repair has inserted at the cursor; in a string, its quotes.

    Of `0);` behind `(byte) 0x` that is the bracket, and of `_g_());` behind `g(new ` the second closing one.
    """
    data, quote, (first, last) = analysis.data, analysis.state.string, analysis.inserted
    if quote and (at := data.find(quote, first, last)) >= 0:
        return at
    at = data.find(FILLER, first, last)
    start = at + len(FILLER) if at >= 0 else first
    closer = next((start + n for n in unpaired(analysis.language, data[start:last]).closers), -1)
    if closer < 0:
        closer = last - 1 if data[start:last].endswith((b";", b":")) else start
    return closer if data[start:closer].strip(b" \t\r\n)]}>\"'`") else start


def _goes_on(analysis: Analysis) -> bool:
    """Return whether code follows on the line; in front of comments brackets are closed as at the end of a line."""
    rest = tokens(analysis.language, analysis.document.data, analysis.offset, analysis.line.end)
    return any(token.kind not in (*BLANK, "comment") for token in rest)


def _is_closed_below(analysis: Analysis) -> bool:
    """Return whether quotes below end the open string; they do not behind a line that begins a definition."""
    data, state, language = analysis.document.data, analysis.state, analysis.language
    lines = any(quotes.lines for quotes in language.strings if quotes.close == state.string)
    closed = lines and state.string in data[analysis.line.end :]
    return closed and not lacks_end(language, data, analysis.offset, state)


def _left_open(analysis: Analysis) -> str:
    """Return the closers of those brackets of the line or statement at the cursor that nothing behind closes."""
    data, state, end = analysis.document.data, analysis.state, analysis.line.end
    first = min(state.line, analysis.line.start, template_at(data, state.opened))
    skipped, left, begins = _closed_by_rest(analysis)
    opened = [(at, depth(data, at, state.opened)) for at in reversed(left) if at >= first]
    below = next_line(analysis.language, data, end)
    # A line that begins a body closes all brackets before it.
    missing = [at for at, _ in opened] if begins else unclosed(analysis.language, data, opened, below)
    return state.closing((*missing, *(at for at in skipped if at >= first))).decode()


def _closed_by_rest(analysis: Analysis) -> tuple[list[int], list[int], bool]:
    """Return the open brackets that the rest of the line skips, those it leaves open, and if it begins a body."""
    data, state = analysis.document.data, analysis.state
    skipped, left, own = list[int](), list(state.opened), list[bytes]()
    for token in tokens(analysis.language, data, analysis.offset, analysis.line.end):
        bracket = data[token.start : token.end]
        if token.kind == "open":
            own.append(bracket)
        elif token.kind == "close" and own:
            own.pop()
        elif token.kind == "close":
            pairs = [PAIRS.get(data[at : at + 1]) for at in left]
            if bracket in pairs:
                at = len(pairs) - 1 - pairs[::-1].index(bracket)
                skipped += left[at + 1 :]
                left = left[:at]
    return skipped, left, own == [b"{"]


def _text_of(analysis: Analysis, region: Region) -> Span:
    """The span of a region; of a list without the white space inside its brackets, but with the cursor."""
    text, cursor = analysis.data[region.start : region.end], analysis.cursor
    if region.kind not in LISTS or not text.strip():
        return region.start, region.end
    start, end = region.end - len(text.lstrip()), region.start + len(text.rstrip())
    return min(start, max(cursor, region.start)), max(end, min(cursor, region.end))


def _begins_body(analysis: Analysis) -> bool:
    """Return whether the line at the cursor is a header that still needs its body; in a Rust trait it may have none."""
    if not analysis.data.endswith(analysis.language.words.headers[-1], *analysis.inserted):
        return False
    return b"trait " not in _owner(analysis)


def _owner(analysis: Analysis) -> bytes:
    """The header of the innermost class around the cursor; empty outside of all classes."""
    around = [body.header for body in analysis.bodies if body.header.opens <= analysis.cursor <= body.stop]
    classes = [header for header in around if header.owner == "class"]
    innermost = max(classes, key=lambda header: header.opens, default=None)
    return b"" if innermost is None else analysis.data[innermost.define : innermost.opens]


def _is_body_value(analysis: Analysis) -> bool:
    """Return whether a value at the cursor may be its block's value (Rust): a closing brace follows."""
    data, at = analysis.data, analysis.cursor
    if not data[at:].lstrip().startswith(b"}"):
        return False
    return not analysis.language.reparse(analysis.tree, data, (at, at), FILLER).root_node.has_error


def _needed(analysis: Analysis, at: int, closing: bytes) -> bytes:
    """`closing`, which is at `at` of the repaired text, without a semicolon that the brace behind it does not want."""
    data, end = analysis.data, at + len(closing)
    if not closing.endswith(b";") or not data[end:].lstrip().startswith(b"}"):
        return closing
    tree = analysis.language.reparse(analysis.tree, data, (end - 1, end), b"")
    return closing if tree.root_node.has_error else closing[:-1]
