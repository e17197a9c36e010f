"""What older texts of a document still tell of it: its tree without a full parse, and the cursor's place undamaged.

For text that is broken where no change at the cursor mends it. Knows documents and trees; chooses no gap.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node, Tree

from dg_lsp.text.documents.changes import Change, Changes
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Past, Reading
from dg_lsp.text.documents.lines import indentation, line_end, line_start, width
from dg_lsp.text.languages.language import Language
from dg_lsp.text.messages import Kind
from dg_lsp.text.syntax.baseline import WHOLE
from dg_lsp.text.syntax.body import OWNER_OF
from dg_lsp.text.syntax.lexical import state_at
from dg_lsp.text.syntax.repair import cost_of
from dg_lsp.text.syntax.tokens import Span, closers

# Where more places than this were changed above the cursor, it is not looked into each of them.
MOST_TYPED = 16


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
class Remembered:
    """A node of the last good text, as spans of the document now.

    outer: the whole (of a function with its header); body: the part with its delimiters; inner: without them. A
    node that has no header is its own outer.
    """

    outer: Span
    body: Span
    inner: Span


def tree_of(language: Language, document: Document) -> Tree:
    """The tree of `document`, parsed at most once, and from the tree of an older text where there is one."""
    history = document.history
    if history is None:
        return language.parse(document.data)
    past = history.last
    return _read(language, history.now, past.reading if past else None, past.changes if past else Changes())


def undone(document: Document, offset: int) -> tuple[Undone, ...]:
    """The document as it would be had only the line of `offset` been changed, and had only the place itself.

    Damage elsewhere is gone from them, while what is being typed stands in them, so that a gap can be looked for as in
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


def remembered(language: Language, document: Document, offset: int, kind: Kind) -> tuple[Remembered, ...]:
    """The nodes of `kind` that held the cursor in the last good text, as they are now, innermost first.

    1. Read the older tree at the cursor's old place.  2. Keep nodes free of errors.  3. Map them to now.
    4. Where a function, class or block that the answer would have to name has been begun between a node's start and
    the cursor, the cursor may be in that one, of which the older text knows nothing: then there is no answer at all.

    Neither is there one for a text that is too long to be parsed whole.
    """
    history = document.history
    if history is None or history.base is None or len(document.data) > WHOLE:
        return ()
    # 1.
    base, changes = history.base, history.base.changes
    root = _read(language, base.reading, history.now, changes.turned()).root_node
    at = changes.turned().before(offset)
    # 2. and 3.
    nodes = [pair for pair in _nodes(language, root, kind, at) if not _broken(pair[0])]
    found = [_mapped(document, base, outer, body) for outer, body in nodes]
    # Several patterns of a query may match one node.
    unlike = {node for node in found if node is not None and node.outer[0] <= offset <= node.outer[1]}
    kept = sorted(unlike, key=lambda node: node.outer[1] - node.outer[0])
    # 4.
    span = (kept[-1].outer[0], offset) if kept else (offset, offset)
    return () if _has_begun(language, document, span, kind) else tuple(kept)


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


def _read(language: Language, reading: Reading, other: Reading | None, changes: Changes) -> Tree:
    """The tree of `reading`, with `changes` from that of `other` where it has one."""
    if reading.tree is None:
        if other is None or other.tree is None:
            tree = language.parse(reading.data)
        elif changes.spans:
            start, end, now, stop = changes.around()
            tree = language.reparse(other.tree, other.data, (start, end), reading.data[now:stop])
        else:
            tree = other.tree
        reading.tree, reading.cost = tree, cost_of(tree)
    return reading.tree


def _nodes(language: Language, root: Node, kind: Kind, at: int) -> Iterator[tuple[Node, Node]]:
    """Each node of `kind` that holds the offset `at`, and its body; one without a header is its own body."""
    near = (max(at - 1, 0), at + 1)
    if kind in OWNER_OF:
        owner = OWNER_OF[kind]
        for record in language.records(root, near)[owner]:
            outer = record[f"{owner}.outer"]
            if f"{owner}.body" in record and outer.start_byte <= at <= outer.end_byte:
                yield outer, record[f"{owner}.body"]
    else:
        for node in language.captures(root, near).get(kind, ()):
            if node.start_byte <= at <= node.end_byte:
                yield node, node


def _broken(node: Node) -> bool:
    """Whether an error is in `node` or round it."""
    above: Node | None = node
    while above is not None and not above.is_error:
        above = above.parent
    return node.has_error or above is not None


def _mapped(document: Document, base: Past, outer: Node, body: Node) -> Remembered | None:
    """A node and its body as they are now; None where one of their ends was replaced itself."""
    changes, opener, closer = base.changes, _opener(body), _closer(body)
    places = (outer.start_byte, outer.end_byte, body.start_byte, body.end_byte)
    if any(changes.cuts(place) for place in places):
        return None
    # What is typed at a delimiter is on the cursor's side of it, and what is typed before a header is not its own.
    start = changes.behind(outer.start_byte)
    first = changes.behind(body.start_byte) if opener else changes.before(body.start_byte)
    end = changes.before(body.end_byte) if closer else _grown(document, base, outer, body.end_byte)
    inner = (
        changes.before(opener.end_byte) if opener else first,
        changes.behind(closer.start_byte) if closer else end,
    )
    stop = max(changes.before(outer.end_byte), end)
    return Remembered((min(start, first), stop), (first, max(first, end)), (inner[0], max(inner)))


def _opener(node: Node) -> Node | None:
    """The bracket or quote that `node` begins with."""
    first = node.child(0)
    return first if first and not first.child_count and (first.text or b" ")[-1:] in b"([{\"'`" else None


def _closer(node: Node) -> Node | None:
    """The bracket or quote that `node` ends with."""
    last = node.child(node.child_count - 1) if node.child_count else None
    return last if last and not last.child_count and (last.text or b" ")[:1] in b")]}\"'`" else None


def _grown(document: Document, base: Past, outer: Node, end: int) -> int:
    """The end of a node that nothing closes, with what was typed behind it: the rest of its line and deeper lines."""
    begin, stop = base.changes.before(end), base.changes.behind(end)
    header = indentation(base.reading.data, outer.start_byte)
    reached = at = begin
    for number, line in enumerate(document.data[begin:stop].splitlines(keepends=True)):
        text = line.rstrip(b"\r\n")
        at += len(line)
        deeper = width(text[: len(text) - len(text.lstrip(b" \t\f"))]) > header
        if number and not deeper and text.strip():
            break
        if not number or deeper:
            reached = at - len(line) + len(text)
    return reached


def _has_begun(language: Language, document: Document, span: Span, kind: Kind) -> bool:
    """Whether what was typed in `span` of the document, which ends at the cursor, begins what could hold a `kind`.

    Each change is put alone into the older text, for together they may not parse.
    """
    assert document.history is not None
    assert document.history.base is not None
    base, (low, offset) = document.history.base, span
    typed = [c for c in base.changes.spans if c.stop > low and c.now < offset and c.now < c.stop]
    if len(typed) > MOST_TYPED:
        return True
    # The line of the cursor may hold a header, or break one above it.
    ends = sorted({line_start(document.data, offset), offset})
    texts = [(c, document.data[c.now : min(c.stop, end)]) for c in typed for end in ends if end > c.now]
    owners = (OWNER_OF[kind],) if kind in ("function_body", "class_body") else tuple(OWNER_OF.values())
    return any(_begins(language, base.reading, change, text, owners) for change, text in texts)


def _begins(language: Language, old: Reading, change: Change, text: bytes, owners: tuple[str, ...]) -> bool:
    """Whether `text` in the place of `change` makes functions, classes or blocks that the old text has not."""
    assert old.tree is not None
    if language.style == "brace":
        text += closers(state_at(language, text, len(text), 0).brackets)
    start, end = change.start, change.end
    tree = language.reparse(old.tree, old.data, (start, end), text)
    data = old.data[:start] + text + old.data[end:]
    before = _count(language, old.tree, owners, _lines(old.data, start, end))
    return _count(language, tree, owners, _lines(data, start, start + len(text))) > before


def _count(language: Language, tree: Tree, owners: tuple[str, ...], span: Span) -> int:
    records = language.records(tree.root_node, span)
    return sum(len(records[owner]) for owner in owners)


def _lines(data: bytes, start: int, end: int) -> Span:
    return line_start(data, start), line_end(data, end)
