"""What older texts of a document still tell of it: its tree without a full parse, and the cursor's place undamaged.

For text that is broken where no change at the cursor mends it. Knows documents and trees; chooses no gap.
"""

from dataclasses import dataclass

from tree_sitter import Tree

from dg_lsp.text.documents.changes import Change, Changes
from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.history import Past, Reading
from dg_lsp.text.documents.lines import line_end, line_start
from dg_lsp.text.languages.language import Language
from dg_lsp.text.syntax.lexer import Span
from dg_lsp.text.syntax.repair import cost_of


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
