"""History: at most two older texts of one buffer, and what has changed since each.

One is the text that parses best, from which a gap in a broken file can be found; the other has the newest tree, with
which the next parse starts.
"""

from dataclasses import dataclass, field

from tree_sitter import Tree

from dg_lsp.text.documents.changes import MOST, Changes, trimmed


@dataclass(slots=True, eq=False)
class Reading:
    """One text of a buffer; its tree is made when it is first asked for. cost: how broken it is, 0 for clean."""

    data: bytes
    tree: Tree | None = field(default=None, repr=False)
    cost: int = 0


@dataclass(frozen=True, slots=True)
class Past:
    """An older text and the changes from it to the present one."""

    reading: Reading
    changes: Changes


@dataclass(frozen=True, slots=True)
class History:
    """The present text of a buffer (`now`) and older ones.

    base: the newest older text without syntax errors. Before one is known: the text that was opened, if it was not
    parsed yet, else the one with the fewest errors. last: the newest older text that has a tree.
    """

    now: Reading
    base: Past | None = None
    last: Past | None = None

    def after(self, data: bytes, changes: Changes | None) -> "History":
        """Return the history after the text became `data` by `changes`; None for changes means too many to follow."""
        if changes is None:
            return begun(data)
        if data == self.now.data:
            return self
        older = [self.last, self.base] if self.last is not self.base else [self.base]
        pasts = [Past(self.now, trimmed(changes, self.now.data, data))]
        pasts += [_moved(past, changes, data) for past in older if past is not None]
        pasts = [past for past in pasts if len(past.changes.spans) <= MOST]
        return History(Reading(data), _base(pasts), next((p for p in pasts if p.reading.tree), None))


def begun(data: bytes) -> History:
    """Return the history of a buffer that was just opened."""
    return History(Reading(data))


def _moved(past: Past, changes: Changes, data: bytes) -> Past:
    """Return `past` with its changes extended by `changes`, which made the present text `data`."""
    return Past(past.reading, trimmed(past.changes.followed_by(changes), past.reading.data, data))


def _base(pasts: list[Past]) -> Past | None:
    """Choose the `base` of a history from `pasts`, which are newest first."""
    unread = [past for past in pasts if past.reading.tree is None]
    parsed = [past for past in pasts if past.reading.tree is not None]
    best = min(parsed, key=lambda past: past.reading.cost, default=None)
    if best is not None and best.reading.cost == 0:
        return best
    # A text that was opened is likelier to be whole than one that is being typed in.
    return unread[-1] if unread else best
