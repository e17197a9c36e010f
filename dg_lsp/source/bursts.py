"""Bursts: the recent edits of one buffer, each as one change however many keys it took."""

from dataclasses import dataclass, replace

from dg_lsp.source.history import MOST, UNCHANGED, Change, Changes, trimmed

# Bursts that are kept of each buffer, and the longest text of which any are.
_KEPT = 6
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Burst:
    """An edit of neighbouring lines, not interrupted by one elsewhere. number: distinguishes it from all others.

    before: the text before it. own: its changes; later: all changes since. touched: the end of the last of its edits,
    in the text after it. lines: the first and the last line of it, in the text as it is now.
    """

    number: int
    before: bytes
    own: Changes
    later: Changes
    touched: int
    lines: tuple[int, int]

    def spans(self, present: bytes) -> tuple[Change, ...]:
        """Return its own changes, from `before` to the `present` text; none where that was changed there again."""
        moved = list[Change]()
        for change in self.own.spans:
            span = self.later.span(change.now, change.stop)
            if span is None:
                return ()
            moved.append(Change(change.start, change.end, *span))
        return trimmed(Changes(tuple(moved)), self.before, present).spans


@dataclass(frozen=True, slots=True)
class Bursts:
    """The recent bursts of a buffer, the newest last. seen: hashes of earlier texts, which an undo brings back."""

    recent: tuple[Burst, ...] = ()
    seen: tuple[int, ...] = ()
    count: int = 0

    @property
    def last(self) -> Burst | None:
        """The newest burst."""
        return self.recent[-1] if self.recent else None

    def continues(self, first: int, last: int) -> bool:
        """Return whether an edit of these lines belongs to the newest burst."""
        newest = self.last
        return (
            newest is not None
            and not newest.later.spans
            and newest.lines[0] <= first <= last <= newest.lines[1]
        )

    def begin(self, before: bytes, line: int) -> "Bursts":
        """Return the bursts with a new one, still without a change, at `line` of the text `before`."""
        number = self.count + 1
        new = Burst(number, before, UNCHANGED, UNCHANGED, 0, (line, line))
        return Bursts((*self.recent, new)[-_KEPT:], (*self.seen, hash(before))[-4 * _KEPT :], number)

    def then(self, edit: tuple[int, int, int], lines: tuple[int, int], added: int) -> "Bursts":
        """Return the bursts after an `edit` of the newest one: the bytes [start, end) became [start, stop).

        lines: those of the text before it that it changes; added: the number of lines that it adds to the text.
        """
        newest = self.recent[-1]
        first, last = newest.lines
        own = newest.own.then(*edit)
        if len(own.spans) > MOST:
            return Bursts((), self.seen, self.count)
        newest = replace(newest, own=own, touched=edit[2], lines=(first, max(last, lines[1]) + added))
        older = (_moved(burst, edit, lines[0], added) for burst in self.recent[:-1])
        return replace(self, recent=(*(b for b in older if len(b.later.spans) <= MOST), newest))

    def absorbed(self) -> "Bursts":
        """Return the bursts without the newest one, which made an edit that was offered for the one before it."""
        return replace(self, recent=self.recent[:-1])


def _moved(burst: Burst, edit: tuple[int, int, int], line: int, added: int) -> Burst:
    """Return an older `burst` after an `edit` elsewhere, whose first line is `line`."""
    first, last = burst.lines
    by = added if line < first else 0
    return replace(burst, later=burst.later.then(*edit), lines=(first + by, last + by))
