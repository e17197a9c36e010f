"""Gap: the span of a document that a fill replaces, and the text inserted around the fill. Edit: that replacement.

A gap is made from a body, a region, what is open at a cursor, or a bare cursor. Chooses no kind.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dg_lsp.text.documents.document import BOM, Document
from dg_lsp.text.documents.history import Changes, begun
from dg_lsp.text.gaps.context import (
    CursorContext,
    Region,
    bare,
    is_at,
    state_of,
)
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.messages import LISTS, STRINGS, Kind
from dg_lsp.text.syntax.bodies import KIND_OF, MARKER, Body
from dg_lsp.text.syntax.brackets import PAIRS, State, lacks_end, next_line, state_at, unclosed, unopened
from dg_lsp.text.syntax.directives import directive_start
from dg_lsp.text.syntax.lexer import (
    Span,
    indentation,
    leading,
    line_end,
    line_start,
    newline_at,
    quotes_at,
    tokens,
    width,
)

# How far round a body its file's step of indentation is looked for, in bytes.
NEAR = 100_000
# A rest of a line that begins so belongs to no list.
_BEHIND = (b")", b"]", b"}", b"{", b";")
_BLANK = ("space", "newline", "joined")
_STEP = rb"[ \t]*(?:\r\n|\n|\r)\1([ \t]+)[^\s]"
_OPENED = {
    "indent": re.compile(rb"(?:^|(?<=[\r\n]))([ \t]*)[^\r\n#]*:" + _STEP),
    "brace": re.compile(rb"(?:^|(?<=[\r\n]))([ \t]*)[^\r\n]*\{" + _STEP),
}
# What a repair has put behind a placeholder: of it a fill needs the brackets and what ends a header or statement.
_CLOSERS = re.compile(rb"(?:\s*[)\]}>\"'`])*[:;]?")
_TODO = re.compile(rb"\b(?:TODO|FIXME|XXX)\b")


@dataclass(frozen=True, slots=True)
class Gap:
    """The half-open byte span [start, end) that a fill replaces, equal at a bare cursor.

    indent: the white space that the lines of the fill begin with. insert_before, insert_after: text that the edit puts
    before and after the fill, so that the fill need not. name: the function's, with its owners. stub: what stands in
    the gap says that it is not written yet. hollow: it is the body of a stub, or one without code on purpose.
    further: the gaps behind this one that are filled together with it, in the order of the text. asked: a kind, a name
    or a range was asked for, so that typed text in the gap may go. endings: where the gap begins in the middle of a
    word, the texts that may complete it. owed: the end of insert_after that closes what earlier lines have opened; a
    fill is made and checked in front of it, and the document does not get it.
    """

    start: int
    end: int
    kind: Kind
    indent: str
    insert_before: str = ""
    insert_after: str = ""
    name: str = ""
    stub: bool = False
    hollow: bool = False
    further: tuple["Gap", ...] = ()
    asked: bool = False
    endings: tuple[str, ...] = ()
    owed: str = ""

    @property
    def parts(self) -> tuple["Gap", ...]:
        """This gap and its `further` ones."""
        return self, *self.further

    @property
    def span(self) -> Span:
        """From where it begins to where the last of its `further` gaps ends."""
        return self.start, self.parts[-1].end


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes [start, end) by `text`."""

    start: int
    end: int
    text: str


def body_gap(document: Document, context: CursorContext, body: Body, cursor: int | None = None) -> Gap:
    """The gap of a `body` in the document; a `cursor` of the context says on which blank line to write."""
    return _mapped(document, context, body, _gap(document, context.data, body, cursor))


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


def open_gap(document: Document, context: CursorContext, offset: int, kind: Kind) -> Gap | None:
    """The gap of something that is only open at the cursor, for text that no repair mends."""
    state = state_of(document, context, offset)
    eol = line_end(document.data, offset)
    if kind in STRINGS and state.string:
        start = state.begins + len(quotes_at(context.language, document.data, state.begins).open)
        gap = line_gap(document, context, offset, kind)
        return replace(gap, start=min(start, offset), end=eol, insert_after=state.string.decode())
    if (kind == "comment" and state.comment) or (kind == "string" and state.text):
        gap = line_gap(document, context, offset, kind)
        return replace(gap, end=eol) if state.comment else gap
    if kind in LISTS and state.brackets:
        wanted = b"[{(" if kind == "collection" else b"("
        held = [at for at in state.opened if document.data[at] in wanted]
        return replace(line_gap(document, context, offset, kind), start=(held or state.opened)[-1] + 1)
    if kind == "statement" and is_todo(document.data, state, offset):
        # The comment stays, and what it asks for comes below it.
        lead = newline_at(document.data, offset) + leading(document.data, offset).decode()
        return replace(line_gap(document, context, offset, kind), insert_before=lead)
    if kind not in ("statement", "expression"):
        return None
    gap = line_gap(document, context, offset, kind)
    # A value that nothing follows on its line wants what ends its statement; `#if A` is none.
    ended = kind == "expression" and gap.end == eol and state.brackets[-1:] in (b"", b"{")
    ended = ended and directive_start(context.language, document.data, offset) < 0
    ended = ended and not _begins_body(context) and not _is_body_value(context)
    ends = context.language.words.ends[:1] if ended else ()
    return replace(gap, insert_after=b"".join(ends).decode())


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


def closed_gap(document: Document, context: CursorContext, offset: int, kind: Kind) -> Gap | None:
    """Return the text of the comment or string at the cursor as a gap, by tokens; None if there is none that ends."""
    data, state = document.data, state_of(document, context, offset)
    if not (state.comment if kind == "comment" else state.string):
        return None
    whole = next(tokens(context.language, data, state.begins, len(data)))
    text = data[whole.start : whole.end]
    if kind == "comment":
        pairs = [(begin.encode(), end.encode()) for begin, end in context.language.block_comments]
        if not any(text.startswith(begin) and text.endswith(end, len(begin)) for begin, end in pairs):
            return None
        start, end = bare(data, whole.start, whole.end)
    elif whole.kind == "string":
        start = whole.start + len(quotes_at(context.language, data, whole.start).open)
        end = whole.end - len(state.string)
    else:
        return None
    return replace(line_gap(document, context, offset, kind), start=min(start, offset), end=max(end, offset))


def typed(document: Document, context: CursorContext, gap: Gap, offset: int) -> Gap:
    """`gap` without what is typed: it begins at the cursor, and ends there unless only white space follows.

    For the arguments of `f(a, |b)` the gap `a, b` becomes the empty one at the cursor.
    """
    eol = line_end(document.data, offset)
    end = max(gap.end, offset if document.data[offset:eol].strip() else eol)
    first, last = context.inserted
    if first < last and (first == context.cursor or b"_g_" in context.data[first:last]):
        # What is open within the region wants to be closed as well.
        behind = _behind_operand(context, state_of(document, context, offset).string)
        closing = _CLOSERS.match(context.data, behind, last)
        assert closing is not None, "it matches nothing, too"
        gap = replace(gap, insert_after=_needed(context, behind, closing[0]).decode())
    elif context.cost and gap.kind in LISTS and not _goes_on(context, document.data, offset):
        state = state_of(document, context, offset)
        gap = replace(gap, insert_after=_left_open(document.data, context, state, offset))
    return replace(gap, start=offset, end=offset if document.data[offset:end].strip() else end)


def _behind_operand(context: CursorContext, quote: bytes) -> int:
    """Return where the closers begin in what a repair has put at the cursor, in a string that `quote` ends if it does.

    Of `0);` behind `(byte) 0x` that is the bracket, and of `_g_());` behind `g(new ` the second closing one.
    """
    first, last = context.inserted
    data = context.data
    if quote and (at := data.find(quote, first, last)) >= 0:
        return at
    at = data.find(b"_g_", first, last)
    start = at + 3 if at >= 0 else first
    shut = next((start + n for n in unopened(context.language, data[start:last])), -1)
    if shut < 0:
        shut = last - 1 if data[start:last].endswith((b";", b":")) else start
    return shut if data[start:shut].strip(b" \t\r\n)]}>\"'`") else start


def untouched(document: Document, context: CursorContext, gap: Gap, offset: int) -> Gap:
    """`gap`, of something that is only open at the cursor, without what is typed: it begins at the cursor.

    What is inserted after it closes those brackets of the statement that neither the rest of the line nor the next one
    closes: `x = f(<sys>` becomes `x = f(sys<>)`.
    """
    data = document.data
    state, eol = state_of(document, context, offset), line_end(data, offset)
    rest, goes_on = data[offset:eol].strip(), _goes_on(context, data, offset)
    # A list ends before such a rest of its line.
    is_open = (
        goes_on and gap.kind in LISTS and rest.startswith(_BEHIND) and not (state.string or state.comment)
    )
    if is_open and not gap.insert_after:
        tail = _left_open(data, context, state, offset)
        return replace(gap, start=offset, end=offset, insert_before="", insert_after=tail)
    if gap.start == offset and not data[offset : gap.end].strip():
        # Behind `const [a, ` more than a bracket may be missing.
        held = gap.kind in LISTS or (gap.kind == "expression" and state.brackets.endswith(b"("))
        if gap.insert_after or not held or state.string or state.comment or goes_on:
            return gap
        return replace(
            gap, end=offset if rest else eol, insert_after=_left_open(data, context, state, offset)
        )
    if goes_on or (rest and (state.string or state.comment)):
        return replace(gap, start=offset, end=offset, insert_before="", insert_after="")
    if state.string:
        # Quotes that stand below end the string, unless a line before them looks like the head of a definition.
        lines = any(quotes.lines for quotes in context.language.strings if quotes.close == state.string)
        shut = lines and state.string in data[eol:] and not lacks_end(context.language, data, offset, state)
        return replace(
            gap, start=offset, end=eol, insert_before="", insert_after="" if shut else state.string.decode()
        )
    tail = _left_open(data, context, state, offset)
    return replace(gap, start=offset, end=offset if rest else eol, insert_before="", insert_after=tail)


def _goes_on(context: CursorContext, data: bytes, offset: int) -> bool:
    """Return whether code follows on the line; in front of comments brackets are closed as at the end of a line."""
    rest = tokens(context.language, data, offset, line_end(data, offset))
    return any(token.kind not in (*_BLANK, "comment") for token in rest)


def _left_open(data: bytes, context: CursorContext, state: State, offset: int) -> str:
    """Return what closes those brackets of the line or the statement at `offset` that nothing behind it closes.

    For `if (!(a || |) {` it is `)`.
    """
    first, end = min(state.line, line_start(data, offset)), line_end(data, offset)
    skipped, left, begins = _closed_by(context.language, data, state, (offset, end))
    opened = [(at, indentation(data, at)) for at in reversed(left) if at >= first]
    below = next_line(context.language, data, end)
    # A line that begins a body closes all brackets before it.
    missing = [at for at, _ in opened] if begins else unclosed(data, opened, *below)
    return state.closing((*missing, *(at for at in skipped if at >= first))).decode()


def _closed_by(
    language: Language, data: bytes, state: State, rest: Span
) -> tuple[list[int], list[int], bool]:
    """Return the brackets open in `state` that `rest` passes over to close an outer one, and those it leaves open.

    The third is whether `rest` begins a body.
    """
    skipped, left, own = list[int](), list(state.opened), list[bytes]()
    for token in tokens(language, data, *rest):
        bracket = data[token.start : token.end]
        if token.kind == "open":
            own.append(bracket)
        elif token.kind == "close" and own:
            own.pop()
        elif token.kind == "close":
            same = (
                n for n in reversed(range(len(left))) if PAIRS.get(data[left[n] : left[n] + 1]) == bracket
            )
            if (at := next(same, None)) is not None:
                skipped += left[at + 1 :]
                left = left[:at]
    return skipped, left, own == [b"{"]


def apply_edit(document: Document, edit: Edit) -> Document:
    """The document after `edit`, one version on, which remembers it; every byte outside [start, end) is as it was."""
    text = edit.text.encode("utf-8")
    data = document.data[: edit.start] + text + document.data[edit.end :]
    changes = Changes().then(edit.start, edit.end, edit.start + len(text))
    history = (document.history or begun(document.data)).after(data, changes)
    return replace(document, version=document.version + 1, data=data, history=history)


def owing(document: Document, gap: Gap, offset: int) -> Gap:
    """`gap` with what it owes, for a cursor at `offset`: an offer closes what the cursor's own line has opened.

    At the end of a file, where `f(x: T) {` is above `g(h(|`, `)` and `)` are inserted and a line with `}` is owed.
    """
    text = gap.insert_after.encode()
    if not text.strip():
        return gap
    language = load_language(document.language, document.macros)
    line = min(state_at(language, document.data, offset).line, line_start(document.data, offset))
    state = state_at(language, document.data, max(offset, gap.end))
    lead = tokens(language, gap.insert_before.encode(), 0, len(gap.insert_before.encode()))
    depth = sum(at >= line for at in state.opened)
    depth += sum((token.kind == "open") - (token.kind == "close") for token in lead)
    kept = text.find(state.string) + len(state.string) if state.string in text else 0
    for token in tokens(language, text, kept, len(text)):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth < 0:
            return replace(gap, owed=text[kept:].decode())
        kept = kept if token.kind in _BLANK else token.end
    return gap


def unified_diff(old: Document, new: Document, path: str) -> str:
    """The change from `old` to `new` as `git apply` and `patch` take it; empty where there is none."""
    # Git ends the name by a tab where it holds a space.
    name = path + ("\t" if " " in path else "")
    lines = difflib.unified_diff(_lines_of(old.text), _lines_of(new.text), f"a/{name}", f"b/{name}")
    marked = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(marked)


def _lines_of(text: str) -> list[str]:
    """Lines as git sees them: they end at LF only."""
    parts = [part + "\n" for part in text.split("\n")]
    parts[-1] = parts[-1][:-1]
    return parts if parts[-1] else parts[:-1]


def _gap(document: Document, data: bytes, body: Body, cursor: int | None) -> Gap:
    """The gap of a body in the offsets of `data`."""
    newline = newline_at(data, body.header.define)
    base = leading(data, body.header.define).decode()
    indent = body.indent.decode() if body.indent is not None else base + _unit(document, body.header.define)
    kind = KIND_OF[body.header.owner]
    # What closes it on the same line goes to a line of its own.
    shut = body.stop > body.closes and body.closes <= line_end(data, body.end)
    whole, body = body, without_comments(load_language(document.language, document.macros), data, body)
    commented = body.end < whole.end
    tail = newline + (indent if commented else base) if shut else ""
    gap = Gap(body.opens, body.end, kind, indent, newline + indent, tail, body.header.name)
    gap = replace(gap, stub=body.stub, hollow=body.hollow)
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
    start, end = context.back(gap.start), context.back(gap.end)
    lead = gap.insert_before
    put = next((first for first, last in context.made if first < gap.start <= last), -1)
    if put >= 0:
        lead = context.data[put : gap.start].decode() + lead
    elif (
        lead and context.language.style == "indent" and not context.data.endswith(b":", 0, body.header.opens)
    ):
        lead = ":" + lead
    return _closed(
        document, context, body, replace(gap, start=start, end=max(start, end), insert_before=lead)
    )


def _closed(document: Document, context: CursorContext, body: Body, gap: Gap) -> Gap:
    """`gap` with what closes the body where the file lacks it: the edit brings it along."""
    last = next((last for first, last in context.made if first <= body.closes < last), -1)
    if body.stop <= body.closes or last < 0:
        return gap
    base = leading(context.data, body.header.define).decode()
    # Where the braces of what is round it are gone too, they all come along.
    stop = last if context.language.style == "brace" else body.stop
    tail = newline_at(document.data, gap.start) + base + context.data[body.closes : stop].decode()
    return replace(gap, insert_after=tail)


def _unit(document: Document, at: int) -> str:
    """One step of the file's indentation: the commonest one near `at` after a line that opens a body."""
    language = load_language(document.language, document.macros)
    steps = Counter(
        match[2].decode()
        for match in _OPENED[language.style].finditer(document.data, max(at - NEAR, 0), at + NEAR)
    )
    return steps.most_common(1)[0][0] if steps else language.indent


def _text_of(context: CursorContext, region: Region) -> Span:
    """The span of a region; of a list without the white space inside its brackets, but with the cursor."""
    text = context.data[region.start : region.end]
    if region.kind not in LISTS or not text.strip():
        return region.start, region.end
    start, end = region.end - len(text.lstrip()), region.start + len(text.rstrip())
    return min(start, max(context.cursor, region.start)), max(end, min(context.cursor, region.end))


def _begins_body(context: CursorContext) -> bool:
    """Return whether the line at the cursor is a header whose body is to come; in a Rust trait it may also go
    without.
    """
    first, last = context.inserted
    if not context.data.endswith(context.language.words.headers[-1], first, last):
        return False
    around = [
        b.header
        for b in context.bodies
        if b.header.owner == "class" and b.header.opens <= context.cursor <= b.stop
    ]
    innermost = max(around, key=lambda header: header.opens, default=None)
    return innermost is None or b"trait " not in context.data[innermost.define : innermost.opens]


def _is_body_value(context: CursorContext) -> bool:
    """Return whether a value at the cursor may be its block's value (Rust): a closing brace follows."""
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


def is_todo(data: bytes, state: State, offset: int) -> bool:
    """Return whether the comment that is open at `offset` ends there and says what is to be done below it."""
    ends = not data[offset : line_end(data, offset)].strip()
    return state.comment and ends and _TODO.search(data, state.begins, offset) is not None
