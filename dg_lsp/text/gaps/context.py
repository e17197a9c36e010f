"""CursorContext: the part of a document around a cursor, readable however broken the file is.

Its bodies, the regions of its lines, and older texts of the document, which show what else has been broken since.
Knows trees, repairs and lines; chooses no gap.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from tree_sitter import Node, Tree

from dg_lsp.text.budget import attempt, tried
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Change, Changes, History, Past
from dg_lsp.text.languages.language import Language
from dg_lsp.text.languages.shape import left_open
from dg_lsp.text.messages import LISTS, STRINGS, Kind
from dg_lsp.text.reasons import Unreadable
from dg_lsp.text.syntax.bodies import Body, bodies_by_lines, bodies_of, code_end, item_at
from dg_lsp.text.syntax.brackets import State, dangles, lacks_end, state_at, state_from
from dg_lsp.text.syntax.items import focus, window
from dg_lsp.text.syntax.lexer import Span, indentation, leading, line_end, line_start, width
from dg_lsp.text.syntax.near import surroundings
from dg_lsp.text.syntax.repair import Repaired, cost_of, repair

# A file of at most so many bytes is read whole; of a longer one first the top-level item round the cursor.
WHOLE = 60_000
# A longer file is never parsed whole for a gap.
PARSED = 200_000
# How many blank lines and comments may lie between a body and the cursor, and what comments begin with.
_LINES_BETWEEN = 40
_COMMENTS = (b"#", b"//", b"/*", b"*")
_HOLDERS: tuple[Kind, ...] = ("statement", "string")
_CLOSES = re.compile(rb"[)\]}>]")
_QUOTES = re.compile(rb"[A-Za-z@$]*(#*)(?:\"\"\"|'''|[\"'`]|<)(?:(?<=R\")[^()\s]*\()?")


@dataclass(frozen=True, slots=True)
class Undone:
    """A document with all undone that has changed since its last good text, except at the cursor.

    changes: those that lead from `data` back to the document.
    """

    data: bytes
    cursor: int
    changes: Changes

    def back(self, start: int, end: int) -> Span | None:
        """A span of `data` as one of the document; None where one of its ends was replaced itself."""
        if self.changes.cuts(start) or self.changes.cuts(end):
            return None
        first = self.changes.behind(start)
        return first, max(first, self.changes.before(end))


@dataclass(frozen=True, slots=True)
class CursorContext:
    """data[base:] of a document with at most one repair, its tree, and the bodies in it.

    `cursor` and the bodies count in bytes of `data`. cost: how broken it still is; 0 is not at all.
    """

    language: Language
    data: bytes
    tree: Tree
    bodies: tuple[Body, ...]
    cursor: int
    base: int = 0
    repaired: Repaired | None = None
    cost: int = 0

    def back(self, offset: int) -> int:
        """An offset of the context as one of the document."""
        return self.base + (self.repaired.back(offset) if self.repaired else offset)

    @property
    def inserted(self) -> Span:
        """The span that the repair has put in at the cursor; empty without one."""
        made = self.repaired
        return (made.at, made.at + made.inserted) if made else (self.cursor, self.cursor)

    @property
    def made(self) -> tuple[Span, ...]:
        """All spans that the repair has put in: at the cursor, and at the end of its line."""
        return self.repaired.made if self.repaired else ()


@dataclass(frozen=True, slots=True)
class Region:
    """[start, end) of a context's data, without the delimiters; [outer_start, outer_end) with them."""

    kind: Kind
    start: int
    end: int
    outer_start: int
    outer_end: int


def context_at(document: Document, language: Language, offset: int) -> CursorContext:
    """The first clean one of: the file as it is, the top-level item round the cursor, this repaired; else the last.

    What the parser cannot read in time is left out; of an item it may be all but the surroundings of the cursor.
    """
    data, readable = document.data, True
    try:
        if len(data) <= WHOLE and (whole := _clean(language, document, offset)):
            return whole
    except Unreadable:
        readable = False
    # Damage elsewhere in the file is none of the cursor's business.
    start, stop = window(language, data, offset)
    item = data[start:stop]
    found = tried(partial(repair, language, item, offset - start)) if readable or item != data else None
    repaired = found or repair(language, surroundings(item, offset - start), offset - start)
    if found and not found.sound and WHOLE < len(data) <= PARSED:
        # A string can look like the head of an item.
        with suppress(Unreadable):
            if whole := _clean(language, document, offset):
                return whole
    cursor, root = repaired.forth(offset - start), repaired.tree.root_node
    bodies = bodies_of(language, root, repaired.data, _near(repaired.data, cursor, repaired))
    return CursorContext(
        language, repaired.data, repaired.tree, bodies, cursor, start, repaired, repaired.cost
    )


def from_lines(document: Document, context: CursorContext, offset: int) -> CursorContext:
    """Return the same place read by lines alone, for bodies in text that no repair fixes."""
    data, language = document.data, context.language
    start, stop = window(language, data, offset)
    # A string that was never closed would hide every body below it.
    state = state_at(language, data, offset, start)
    text = state.string if lacks_end(language, data, offset, state) else b""
    read, at = focus(language, data[start:stop], offset - start), offset - start
    closed = read[:at] + text + read[at:]
    repaired = Repaired(closed, context.tree, at, 0, len(text), context.cost)
    bodies = bodies_by_lines(language, closed, (0, len(closed)))
    return CursorContext(language, closed, context.tree, bodies, at, start, repaired, context.cost)


def whole_context(document: Document, language: Language) -> CursorContext:
    """All of the file, by its tree or, where that is broken, by its lines."""
    data = document.data
    tree = tree_of(language, document)
    if tree.root_node.has_error and language.style == "indent":
        bodies = bodies_by_lines(language, data, (0, len(data)))
    else:
        bodies = bodies_of(language, tree.root_node, data)
    return CursorContext(language, data, tree, bodies, -1)


def tree_of(language: Language, document: Document) -> Tree:
    """The tree of `document`, parsed at most once, and from the tree of an older text where there is one."""
    history = document.history
    if history is None:
        return language.parse(document.data)
    if history.now.read is None:
        edit = _edit(history)
        tree = language.reparse(*edit) if edit else language.parse(document.data)
        history.now.read = tree, cost_of(tree)
    return history.now.read[0]


def _sound_tree(language: Language, document: Document) -> Tree | None:
    """The tree of `document` as `tree_of` gives it; None if it has an error, and then it need not be kept.

    While something is being typed most texts are broken, and recovery takes longer than all the rest.
    """
    history = document.history
    edit = _edit(history) if history else None
    if history and history.now.broken and history.now.read is None:
        return None
    if history and edit and history.now.read is None:
        now, (tree, old, span, text) = history.now, edit
        if not tree.root_node.has_error:
            found = language.reparse_until_broken(*edit)
            now.read, now.broken = (found, cost_of(found)) if found else None, found is None
        elif _is_still_broken(tree, span, (old[slice(*span)], text)):
            now.broken = True
        if now.broken:
            return None
    whole = tree_of(language, document)
    return None if whole.root_node.has_error else whole


def _is_still_broken(tree: Tree, span: Span, texts: tuple[bytes, bytes]) -> bool:
    """Return whether `tree` has an error beside the edit that replaces the first of `texts`, at `span`, by the second,
    and the edit cannot have removed it.

    What an edit opens concerns only what is below it, what it closes only what is above.
    """
    left = [new - old for old, new in zip(*map(left_open, texts), strict=True)]
    (start, end), around = span, [tree.root_node]
    while around:
        broken = [node for node in around[0].children if node.has_error]
        if min(left) >= 0 and any(node.end_byte < start for node in broken):
            return True
        if max(left) <= 0 and any(node.start_byte > end for node in broken):
            return True
        around = [n for n in broken if n.start_byte < start and end < n.end_byte and not n.is_error]
    return False


def _edit(history: History) -> tuple[Tree, bytes, Span, bytes] | None:
    """An older text of a buffer that was read: its tree, its bytes, and the edit of it that makes the present text."""
    last = history.last
    if last is None or last.reading.tree is None:
        return None
    old, data = last.reading, history.now.data
    if not last.changes.spans:
        return last.reading.tree, old.data, (0, 0), b""
    start, end, now, stop = last.changes.around()
    return last.reading.tree, old.data, (start, end), data[now:stop]


def undone(document: Document, offset: int) -> tuple[Undone, ...]:
    """The document as it would be had only the line of `offset` been changed, and had only the place itself.

    Damage elsewhere is gone from them, while they contain what is being typed, so that a gap can be looked for as in
    a file with one broken place. Nothing is parsed: which of them is any better is for the caller to see. One that
    would be the document, or the same as the one before, is left out.
    """
    base = document.history.base if document.history else None
    if base is None:
        return ()
    data, changes = document.data, base.changes.spans
    places = (line_start(data, offset), line_end(data, offset)), (offset, offset)
    kept = [tuple(c for c in changes if c.stop >= first and c.now <= last) for first, last in places]
    unlike = [k for k in dict.fromkeys(kept) if len(k) < len(changes)]
    return tuple(_with_only(document, base, k, offset) for k in unlike)


def state_of(document: Document, context: CursorContext, offset: int) -> State:
    """Return the state at `offset` of the document, by the context's tree where that is the clean tree of the file."""
    if context.repaired is None and not context.cost:
        return state_in(context.language, context.tree.root_node, document.data, offset)
    return state_at(context.language, document.data, offset)


def state_in(language: Language, root: Node, data: bytes, offset: int) -> State:
    """Return the state at `offset` of `data`, whose tree `root` has no error.

    1. Begin at the top-level item that the offset is in or behind.  2. Where classes are round the offset, begin at
    the member of the innermost one; their braces are open.  3. Read tokens from there.
    """
    # 1.
    item = item_at(root, offset)
    start = item.start_byte if item != root else 0
    # Two heads of one body would open two braces.
    data = language.readable(data)
    # 2.
    around = _classes(language, item, offset)
    if around:
        start = _member(data, around[-1], offset)
    # 3.
    inner = state_from(language, data, offset, start)
    braces = tuple(b.start_byte for b in around if data[b.start_byte : b.start_byte + 1] == b"{")
    return replace(inner, brackets=b"{" * len(braces) + inner.brackets, opened=(*braces, *inner.opened))


def body_at(context: CursorContext) -> Body | None:
    """The innermost body that the context's cursor is in, or on the header of."""
    inside = [b for b in context.bodies if is_at(context.data, b, context.cursor)]
    return max(inside, key=lambda b: (b.header.define, -b.end), default=None)


def is_at(data: bytes, body: Body, cursor: int) -> bool:
    """Return whether `cursor` is on a line of `body` or its header, or on a blank line that still belongs to it."""
    if cursor < line_start(data, body.header.start):
        return False
    if body.closes != body.end or body.stop > body.closes:
        # Behind the brace that closes it only the very end still counts.
        return cursor <= body.stop
    if cursor <= line_end(data, body.end):
        return True
    if data[body.end : line_end(data, cursor)].strip():
        return False
    return body.first is None or width(leading(data, cursor)) > indentation(data, body.header.define)


def region_at(context: CursorContext, kind: Kind) -> Region | None:
    """The innermost region of `kind` at the context's cursor; of expressions the outermost in its statement.

    In `x = f(a|) + 1` that is the list `a` of arguments, and the expression `f(a) + 1`.
    """
    found = regions_at(context, kind)
    if kind == "statement":
        found = _not_round(context, found)
    if kind == "expression":
        # A string may hold expressions of its own.
        holders = {k: regions_at(context, k)[:1] for k in _HOLDERS}
        inside = [
            s
            for s in found
            if all(h.start <= s.start and s.end <= h.end for k in holders for h in holders[k])
        ]
        # Most hold none, and then the string itself is part of one.
        outer = [s for s in found if all(h.start <= s.start for h in holders["statement"])]
        return next(iter((inside or outer)[-1:]), None)
    return found[0] if found else None


def regions_at(context: CursorContext, kind: Kind) -> list[Region]:
    """All regions of `kind` that hold the context's cursor, the innermost first."""
    low, high = _place_of(context)
    nodes = _captured(context.language, context.tree, (max(low - 1, 0), high + 1)).get(kind, [])
    regions = [_trimmed(context.data, kind, node) for node in nodes if not node.is_missing]
    holding = [s for s in regions if _holds(s, kind, low, high)]
    return sorted(holding, key=lambda s: (s.outer_end - s.outer_start, s.start))


def hole_at(context: CursorContext) -> Region | None:
    """The statement at the context's cursor that says "not written yet" between others that are written."""
    data, cursor = context.data, context.cursor
    return next(iter(holes_in(context, (line_start(data, cursor), line_end(data, cursor)))), None)


def holes_in(context: CursorContext, span: Span) -> list[Region]:
    """The statements within `span` of the context's data that say "not written yet" between others that are written."""
    start, end = span
    nodes = _captured(context.language, context.tree, (start, end + 1)).get("stub", [])
    within = [n for n in nodes if start <= n.start_byte and n.end_byte <= end]
    inside = [n for n in within if _has_written(context.language, n)]
    return [_trimmed(context.data, "statement", node) for node in sorted(inside, key=lambda n: n.start_byte)]


@lru_cache(maxsize=4)
def _captured(language: Language, tree: Tree, span: Span) -> dict[str, list[Node]]:
    """The captures that meet `span`; kept, since one cursor asks for several kinds of them. Nobody changes them."""
    return language.captures(tree.root_node, span)


def _with_only(document: Document, base: Past, kept: tuple[Change, ...], offset: int) -> Undone:
    """The older text with the changes `kept`, and how the others lead from there to the document."""
    old, parts = base.reading.data, []
    far: list[Change] = []
    at = shift = 0
    for change in base.changes.spans:
        if change not in kept:
            far.append(Change(change.start + shift, change.end + shift, change.now, change.stop))
            continue
        parts += [old[at : change.start], document.data[change.now : change.stop]]
        at = change.end
        shift += change.stop - change.now - (change.end - change.start)
    changes = Changes(tuple(far))
    return Undone(b"".join((*parts, old[at:])), changes.turned().before(offset), changes)


def _classes(language: Language, item: Node, offset: int) -> list[Node]:
    """The bodies of classes and their like in `item` that hold `offset`, the outermost first."""
    bodies = [record["class.body"] for record in language.records(item, (offset, offset + 1))["class"]]
    holding = [body for body in bodies if body.start_byte < offset < body.end_byte]
    return sorted(holding, key=lambda body: body.start_byte)


def _member(data: bytes, body: Node, offset: int) -> int:
    """Return where the last member of `body` begins at or before `offset`; behind a brace where there is none."""
    members = [child for child in body.named_children if child.start_byte <= offset]
    return members[-1].start_byte if members else body.start_byte + data.startswith(b"{", body.start_byte)


def _clean(language: Language, document: Document, offset: int) -> CursorContext | None:
    """The whole file, where it has no error.

    Raises:
        Unreadable: the parser cannot read it in time.
    """
    try:
        with attempt():
            return _whole(language, document, offset)
    except Unreadable:
        if document.history is not None:
            document.history.now.broken = True
        raise


def _whole(language: Language, document: Document, offset: int) -> CursorContext | None:
    """The whole file, where it has no error."""
    data, tree = document.data, _sound_tree(language, document)
    if tree is None:
        return None
    root = tree.root_node
    if dangles(language, data, offset, state_in(language, root, data, offset)):
        return None
    # A query over all of a long file would cost more than its parse.
    return CursorContext(
        language, data, tree, bodies_of(language, tree.root_node, data, _near(data, offset)), offset
    )


def _near(data: bytes, cursor: int, repaired: Repaired | None = None) -> Span:
    """The span that any body meets which the cursor may be in.

    It is the cursor's line and what the repair has inserted, with the blank lines and comments above and below them.
    """
    start, stop = (
        (repaired.at, repaired.at + repaired.inserted) if repaired and repaired.inserted else (cursor, cursor)
    )
    start, stop = min(start, cursor), max(stop, cursor, repaired.tail[1] if repaired else 0)
    # Blank lines and comments below a body are none of its tree's.
    above = line_start(data, start)
    for _ in range(_LINES_BETWEEN):
        text = data[above:start].strip()
        if above == 0 or (text and not text.startswith(_COMMENTS)):
            break
        above = line_start(data, above - 1)
    # And the node of an empty body begins at the next text.
    for _ in range(_LINES_BETWEEN):
        text = data[line_start(data, stop) : line_end(data, stop)].strip()
        if stop >= len(data) or (text and not text.startswith(_COMMENTS)):
            break
        stop = line_end(data, stop) + 1
    return above, line_end(data, stop) + 1


def _not_round(context: CursorContext, found: list[Region]) -> list[Region]:
    """The statements of `found` without those that have a blank line at the cursor in one of their bodies.

    On a blank line in a loop a new statement belongs; it does not replace the loop.
    """
    data, cursor = context.data, context.cursor
    if data[line_start(data, cursor) : line_end(data, cursor)].strip():
        return found
    opens = [b.header.opens for b in context.bodies if b.header.opens <= cursor <= b.closes]
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
    return first not in [(node.start_byte, node.end_byte) for node in docstrings]


def _place_of(context: CursorContext) -> Span:
    """Return the span that the region must hold: the placeholder that a repair has inserted, or the cursor."""
    start, stop = context.inserted
    at = context.data.find(b"_g_", start, stop)
    if at >= 0 and not _CLOSES.search(context.data, start, at):
        return at, at + 3
    # No node reaches over the blanks at the end of a line or list.
    data, cursor = context.data, context.cursor
    here, rest = data[line_start(data, cursor) : cursor], data[cursor : line_end(data, cursor)]
    blank = here.strip() and rest.lstrip()[:1] in (b"", b")", b"]", b"}", b",", b";", b":", b"{")
    at = cursor - (len(here) - len(here.rstrip())) * bool(blank)
    return at, at


def _holds(region: Region, kind: Kind, low: int, high: int) -> bool:
    if kind in LISTS or kind in STRINGS:
        return region.start <= low and high <= region.end
    return region.outer_start <= low and high <= region.outer_end


def _trimmed(data: bytes, kind: Kind, node: Node) -> Region:
    """The region of a captured node: without brackets, quotes or what begins and ends a comment."""
    outer = node.start_byte, code_end(node) if kind == "statement" else node.end_byte
    start, end = outer
    if kind in LISTS:
        start, end = _inside(node)
    elif kind in STRINGS:
        start, end = _unquoted(data, node)
    elif kind == "comment":
        start, end = bare(data, start, end)
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
        if (inner.start_byte, inner.end_byte) != (node.start_byte, node.end_byte):
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


def bare(data: bytes, start: int, end: int) -> Span:
    """Return the span of a comment's text."""
    begins = re.compile(rb"(?:/\*+|//+!?|#+|--|<!--)[ \t]?").match(data, start, end)
    ends = re.compile(rb"(?:[ \t]*\*+/|[\r\n]+)$").search(data, start, end)
    start = begins.end() if begins else start
    return start, max(ends.start() if ends else end, start)
