"""Analysis: one document around one cursor, readable however broken the file is; each part is computed once."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from tree_sitter import Node, Tree

from dg_lsp.budget import attempt, tried
from dg_lsp.reasons import Unreadable
from dg_lsp.source.bodies import Body, bodies_of, item_at
from dg_lsp.source.brackets import State, dangles, lacks_end, state_at, state_from
from dg_lsp.source.directives import directive_start
from dg_lsp.source.document import Document
from dg_lsp.source.history import UNCHANGED, Changes, History
from dg_lsp.source.items import focus, member_around, top_level_item
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.lexer import Line, Span, indentation, line_at, line_end, line_start
from dg_lsp.source.lines import bodies_by_lines
from dg_lsp.source.repair import FILLER, cost_of, repair

# A file of at most so many bytes is read whole; of a longer one first the top-level item around the cursor.
WHOLE = 60_000
# A longer file is never parsed whole for a gap.
PARSED = 200_000
# How many blank lines and comments may lie between a body and the cursor, and how comments begin.
_LINES_BETWEEN = 40
_COMMENTS = (b"#", b"//", b"/*", b"*")


@dataclass(frozen=True, slots=True)
class Undamaged:
    """A `document` without its changes elsewhere, its cursor, and the changes that lead from it to the present one."""

    document: Document
    cursor: int
    changes: Changes


@dataclass(frozen=True, eq=False)
class Analysis:
    """A `document` around the cursor `offset`.

    `data` is document.data[base:] with at most one repair; the tree, the bodies and `cursor`, the same place as
    `offset`, are those of `data`. whole: `data` is the file as it is. cost: how broken `data` is; 0 is clean. changes:
    they lead from `data` back to the document. made: the spans that the repair has inserted, at the cursor and at the
    end of its line; inserted: the one at the cursor, empty without one. masks: the statement at the cursor gave way for
    the repair. line, own_line: those of the document and of `data` at the cursor.
    """

    document: Document
    offset: int
    language: Language
    data: bytes
    tree: Tree
    bodies: tuple[Body, ...]
    cursor: int
    base: int = 0
    whole: bool = True
    cost: int = 0
    changes: Changes = UNCHANGED
    made: tuple[Span, ...] = field(init=False)
    inserted: Span = field(init=False)
    masks: bool = field(init=False)
    line: Line = field(init=False)
    own_line: Line = field(init=False)
    _captured: dict[Span, dict[str, list[Node]]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        made = tuple((change.start, change.end) for change in self.changes.spans)
        nothing = self.cursor, self.cursor
        fixed = {
            "made": made,
            "inserted": next((span for span in made if span[0] == self.cursor), nothing),
            "masks": any(change.now < change.stop for change in self.changes.spans),
            "line": line_at(self.document.data, self.offset),
            "own_line": line_at(self.data, self.cursor),
        }
        for name, value in fixed.items():
            object.__setattr__(self, name, value)

    @cached_property
    def state(self) -> State:
        """The state of the document at the cursor."""
        return self.state_before(self.offset)

    def back(self, offset: int) -> int:
        """An offset of `data` as one of the document; inside the repair the end of the text that it replaced."""
        spans = self.changes.spans
        after = spans and offset >= spans[0].start
        return self.base + (self.changes.after(offset) if after else offset)

    def state_before(self, offset: int) -> State:
        """Return the state at `offset` of the document, by the tree where that is the clean tree of the file."""
        if self.whole and not self.cost:
            return state_in(self.language, self.tree.root_node, self.document.data, offset)
        return state_at(self.language, self.document.data, offset)

    def captures(self, span: Span) -> dict[str, list[Node]]:
        """The captures that meet `span` of `data`; nobody changes them."""
        if span not in self._captured:
            self._captured[span] = self.language.captures(self.tree.root_node, span)
        return self._captured[span]

    def has_filler(self, start: int, stop: int) -> bool:
        """Return whether the repair has put FILLER between two offsets of `data`, for a missing name or value."""
        return any(FILLER in self.data[max(begin, start) : min(end, stop)] for begin, end in self.made)

    def holds(self, body: Body) -> bool:
        """Return whether the cursor is on a line of `body` or its header, or on a blank line that belongs to it."""
        data, cursor, line = self.data, self.cursor, self.own_line
        if body.header.start > line.end:
            return False
        if body.closes != body.end or body.stop > body.closes:
            # After the brace that closes it only the very end still counts.
            return cursor <= body.stop
        if body.end >= line.start:
            return True
        if data[body.end : line.end].strip():
            return False
        return body.first is None or indentation(data, cursor) > indentation(data, body.header.define)

    @cached_property
    def around(self) -> tuple[Body, ...]:
        """The bodies that hold the cursor."""
        return tuple(body for body in self.bodies if self.holds(body))

    @cached_property
    def body(self) -> Body | None:
        """The innermost body that holds the cursor."""
        return max(self.around, key=lambda b: (b.header.define, -b.end), default=None)


def analyze(document: Document, offset: int) -> Analysis:
    """The first clean one of: the file as it is, the top-level item around the cursor, this repaired; else the last.

    Raises:
        UnknownLanguage: the document's language has no grammar.
        OutOfTime: not even the member around the cursor can be read in time.
    """
    language = load_language(document.language, document.macros)
    data = document.data
    with suppress(Unreadable):
        if len(data) <= WHOLE and (whole := _clean(language, document, offset)):
            return whole
    # Damage elsewhere in the file is none of the cursor's business.
    start, stop = top_level_item(language, data, offset)
    if language.words.directive and len(data) <= WHOLE and directive_start(language, data, offset) >= 0:
        # The item of an `#if` has no `#endif`.
        start, stop = 0, len(data)
    item = data[start:stop]
    found = tried(partial(repair, language, item, offset - start))
    repaired = found or repair(language, member_around(language, item, offset - start), offset - start)
    if found and (found.cost or found.changes.spans) and WHOLE < len(data) <= PARSED:
        # A string can look like the head of an item.
        with suppress(Unreadable):
            if whole := _clean(language, document, offset):
                return whole
    read, tree, cursor, changes = repaired.data, repaired.tree, repaired.at, repaired.changes
    near = _near(read, cursor, changes.spans[-1].end if changes.spans else cursor)
    bodies = bodies_of(language, tree.root_node, read, near)
    return Analysis(
        document, offset, language, read, tree, bodies, cursor, start, False, repaired.cost, changes
    )


def by_lines(analysis: Analysis) -> Analysis:
    """Return the same place read by lines alone, for bodies in text that no repair fixes."""
    data, language, offset = analysis.document.data, analysis.language, analysis.offset
    start, stop = top_level_item(language, data, offset)
    # A string that was never closed would hide every body below it.
    state = state_at(language, data, offset, start)
    text = state.string if lacks_end(language, data, offset, state) else b""
    read, at = focus(language, data[start:stop], offset - start), offset - start
    closed = read[:at] + text + read[at:]
    return replace(
        analysis,
        data=closed,
        bodies=bodies_by_lines(language, closed, (0, len(closed))),
        cursor=at,
        base=start,
        whole=False,
        changes=UNCHANGED.then(at, at, at + len(text)).turned(),
    )


def analyze_whole(document: Document) -> Analysis:
    """All of the file, by its tree or, where that is broken, by its lines; without a cursor."""
    language, data = load_language(document.language, document.macros), document.data
    tree = tree_of(language, document)
    if tree.root_node.has_error and language.style == "indent":
        bodies = bodies_by_lines(language, data, (0, len(data)))
    else:
        bodies = bodies_of(language, tree.root_node, data)
    return Analysis(document, -1, language, data, tree, bodies, -1)


def without_damage(document: Document, offset: int) -> tuple[Undamaged, ...]:
    """The document as it would be had only the line of `offset` been changed, and had only the place itself.

    Text changed elsewhere is as it was in the history's base. Nothing is parsed; a copy that is the document, or the
    same as the one before, is left out.
    """
    base = document.history.base if document.history else None
    if base is None:
        return ()
    data, changes, found = document.data, base.changes.spans, list[Undamaged]()
    places = (line_start(data, offset), line_end(data, offset)), (offset, offset)
    kept = [tuple(c for c in changes if c.stop >= first and c.now <= last) for first, last in places]
    for only in dict.fromkeys(kept):
        if len(only) < len(changes):
            text, others = base.with_only(only, data)
            older = replace(document, data=text, history=None)
            found.append(Undamaged(older, others.turned().before(offset), others))
    return tuple(found)


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


def state_in(language: Language, root: Node, data: bytes, offset: int) -> State:
    """Return the state at `offset` of `data`, whose tree `root` has no error."""
    # Begin at the top-level item of the offset.
    item = item_at(root, offset)
    start = item.start_byte if item != root else 0
    # Two heads of one body would open two braces.
    data = language.readable(data)
    # Where classes are around it, begin at the member of the innermost one; their braces are open.
    bodies = [record["class.body"] for record in language.records(item, (offset, offset + 1))["class"]]
    holding = [body for body in bodies if body.start_byte < offset < body.end_byte]
    around = sorted(holding, key=lambda body: body.start_byte)
    if around:
        body = around[-1]
        members = [child for child in body.named_children if child.start_byte <= offset]
        start = (
            members[-1].start_byte if members else body.start_byte + data.startswith(b"{", body.start_byte)
        )
    # Read tokens from there.
    inner = state_from(language, data, offset, start)
    braces = tuple(b.start_byte for b in around if data[b.start_byte : b.start_byte + 1] == b"{")
    return replace(inner, brackets=b"{" * len(braces) + inner.brackets, opened=(*braces, *inner.opened))


def _clean(language: Language, document: Document, offset: int) -> Analysis | None:
    """The whole file, where it has no error; Unreadable is raised where the parser cannot read it in time."""
    data = document.data
    try:
        with attempt():
            tree = _sound_tree(language, document)
            if tree is None or dangles(
                language, data, offset, state_in(language, tree.root_node, data, offset)
            ):
                return None
            # A query over all of a long file would cost more than its parse.
            bodies = bodies_of(language, tree.root_node, data, _near(data, offset, offset))
    except Unreadable:
        if document.history is not None:
            document.history.now.broken = True
        raise
    return Analysis(document, offset, language, data, tree, bodies, offset)


def _near(data: bytes, start: int, stop: int) -> Span:
    """The lines of data[start:stop] with the blank lines and comments around: each body at the cursor meets them."""
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


def _sound_tree(language: Language, document: Document) -> Tree | None:
    """The tree of `document` as `tree_of` gives it; None if it has an error, which takes less time to find."""
    history = document.history
    if history and history.now.read is None:
        now, edit = history.now, _edit(history)
        if edit and not now.broken:
            found = language.reparse_until_broken(*edit)
            now.read, now.broken = (found, cost_of(found)) if found else None, found is None
        if now.broken:
            return None
    whole = tree_of(language, document)
    return None if whole.root_node.has_error else whole


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
