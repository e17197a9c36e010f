"""History: older texts of one buffer that are worth remembering, and what has changed since.

Two at most: the one that parses best, and the one whose tree the next parse can begin with. Knows no document.
"""

from dataclasses import dataclass, field

from tree_sitter import Tree

from dg_lsp.text.documents.changes import MOST, Changes, trimmed


@dataclass(slots=True, eq=False)
class Reading:
    """One text of a buffer and, once somebody has asked for it, its tree and how broken that is (0: not at all).

    Parsing gives the same tree each time, so filling it in changes nothing that anybody could have seen.
    """

    data: bytes
    tree: Tree | None = field(default=None, repr=False)
    cost: int = 0


@dataclass(frozen=True, slots=True)
class Past:
    """An older text and what has changed from it to the present one."""

    reading: Reading
    changes: Changes


@dataclass(frozen=True, slots=True)
class History:
    """What is known of a buffer at one moment.

    now: the present text. base: the newest older text without errors; until one is found, the oldest that nobody has
    parsed, which is the one that was opened; else the one with the fewest errors. last: the newest older text with a
    tree.
    """

    now: Reading
    base: Past | None = None
    last: Past | None = None

    def after(self, data: bytes, changes: Changes | None) -> "History":
        """The history when the text has become `data` by `changes`; None where those were too many to be kept."""
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
    """The history of a buffer of which nothing older is known."""
    return History(Reading(data))


def _moved(past: Past, changes: Changes, data: bytes) -> Past:
    """`past` when the present text has become `data` by `changes`."""
    return Past(past.reading, trimmed(past.changes.followed_by(changes), past.reading.data, data))


def _base(pasts: list[Past]) -> Past | None:
    """The one of `pasts`, the newest first, that is most worth remembering."""
    unread = [past for past in pasts if past.reading.tree is None]
    parsed = [past for past in pasts if past.reading.tree is not None]
    best = min(parsed, key=lambda past: past.reading.cost, default=None)
    if best is not None and best.reading.cost == 0:
        return best
    # A text that was opened is likelier to be whole than one that is being typed in.
    return unread[-1] if unread else best
