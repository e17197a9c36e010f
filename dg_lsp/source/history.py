"""History: at most two older texts of one buffer, and the changes since each; maps offsets between them.

One is the text that parses best, to find a gap in a broken file; the other has the newest tree, for the next parse.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import AnyStr, NamedTuple

from tree_sitter import Tree

# A text in which more places than this have changed is another text.
MOST = 512


class Change(NamedTuple):
    """The bytes [start, end) of the old text have become the bytes [now, stop) of the new one."""

    start: int
    end: int
    now: int
    stop: int


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes between two texts, in order: (Change(1, 1, 1, 2), Change(5, 5, 6, 7)) from `a = 1` to `ab = 12`."""

    spans: tuple[Change, ...] = ()

    def then(self, start: int, end: int, stop: int) -> "Changes":
        """Return these changes with one more edit: the bytes [start, end) of the new text became [start, stop)."""
        spans, moved = self.spans, stop - end
        first = bisect_left(spans, start, key=lambda c: c.stop)
        last = bisect_right(spans, end, key=lambda c: c.now)
        shift = spans[first - 1].end - spans[first - 1].stop if first else 0
        # Bytes between the changes are the same in both texts, so offsets there differ by the changes before.
        old_start, old_end = start + shift, end + shift
        if first < last:
            low, high = spans[first], spans[last - 1]
            old_start, old_end = min(low.start, old_start), max(high.end, end - high.stop + high.end)
            start, stop = min(low.now, start), max(high.stop + moved, stop)
        merged = () if old_start == old_end and start == stop else (Change(old_start, old_end, start, stop),)
        after = spans[last:]
        if moved:
            after = tuple(Change(c.start, c.end, c.now + moved, c.stop + moved) for c in after)
        return Changes((*spans[:first], *merged, *after))

    def followed_by(self, later: "Changes") -> "Changes":
        """Return the changes from the old text of these to the new text of `later`, which starts where these end."""
        both = self
        # From the last to the first, so that each is still where it was.
        for change in reversed(later.spans):
            both = both.then(change.start, change.end, change.start + change.stop - change.now)
        return both

    def turned(self) -> "Changes":
        """Return the changes from the new text back to the old one."""
        return Changes(tuple(Change(c.now, c.stop, c.start, c.end) for c in self.spans))

    def before(self, offset: int) -> int:
        """Map an old offset to the new text; where text was inserted at it, to the beginning of that."""
        at = bisect_left(self.spans, offset, key=lambda c: c.end)
        if at < len(self.spans) and self.spans[at].start <= offset:
            change = self.spans[at]
            return change.stop if change.start < offset == change.end else change.now
        return offset + (self.spans[at - 1].stop - self.spans[at - 1].end if at else 0)

    def after(self, offset: int) -> int:
        """Map an old offset to the new text; where text was inserted at it, to the end of that."""
        at = bisect_left(self.spans, offset, key=lambda c: c.end)
        if at < len(self.spans) and self.spans[at].start <= offset:
            change = self.spans[at]
            return change.now if change.start == offset < change.end else change.stop
        return self.before(offset)

    def cuts(self, offset: int) -> bool:
        """Return whether the old text on both sides of `offset` was replaced, so that its new place is a guess."""
        at = bisect_right(self.spans, offset, key=lambda c: c.end)
        change = self.spans[at] if at < len(self.spans) else None
        return change is not None and change.start < offset and change.now < change.stop

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Map an old span to the new text; None where one of its ends was replaced itself."""
        if self.cuts(start) or self.cuts(end):
            return None
        first = self.after(start)
        return first, max(first, self.before(end))

    def around(self) -> Change:
        """Return the one change that spans all of these; there must be at least one."""
        return Change(self.spans[0].start, self.spans[-1].end, self.spans[0].now, self.spans[-1].stop)


UNCHANGED = Changes()


def trimmed(changes: Changes, old: bytes, new: bytes) -> Changes:
    """Return `changes` with each one narrowed to what differs: "foo" replaced by "fo" becomes one "o" deleted."""
    spans = (_trimmed(change, old, new) for change in changes.spans)
    return Changes(tuple(c for c in spans if c.start < c.end or c.now < c.stop))


def common(one: AnyStr, other: AnyStr) -> int:
    """Return how many bytes or characters two texts have in common at their beginning: 2 for `abc` and `abd`."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle)
    return low


def splits_character(text: bytes, at: int) -> bool:
    """Return whether `at` is between two bytes of one character."""
    return 0 < at < len(text) and text[at] & 0xC0 == 0x80


def character_start(text: bytes, at: int) -> int:
    """`at`, moved back to the beginning of the character that it is inside of."""
    while splits_character(text, at):
        at -= 1
    return at


def _trimmed(change: Change, old: bytes, new: bytes) -> Change:
    start, end, now, stop = change
    gone, come = old[start:end], new[now:stop]
    # Compare the ends first: a line that was inserted below another one then begins at the other's end, as if typed.
    same = common(gone[::-1], come[::-1])
    while same and splits_character(gone, len(gone) - same):
        same -= 1
    gone, come = gone[: len(gone) - same], come[: len(come) - same]
    first = common(gone, come)
    while first and (splits_character(gone, first) or splits_character(come, first)):
        first -= 1
    return Change(start + first, end - same, now + first, stop - same)


@dataclass(slots=True, eq=False)
class Reading:
    """One text of a buffer. read: its tree and how broken it is, set together. broken: it has errors or is too slow."""

    data: bytes
    read: tuple[Tree, int] | None = field(default=None, repr=False)
    broken: bool = False

    @property
    def tree(self) -> Tree | None:
        """The tree; None before it was asked for."""
        return self.read[0] if self.read else None

    @property
    def cost(self) -> int:
        """Return the cost of the text's errors: 0 for a clean text, and for one that was not read."""
        return self.read[1] if self.read else 0


@dataclass(frozen=True, slots=True)
class Past:
    """An older text and the changes from it to the present one."""

    reading: Reading
    changes: Changes

    def with_only(self, kept: tuple[Change, ...], present: bytes) -> tuple[bytes, Changes]:
        """Return the older text with the changes `kept`, and the changes from there to the `present` text."""
        old, parts = self.reading.data, []
        far: list[Change] = []
        at = shift = 0
        for change in self.changes.spans:
            if change not in kept:
                far.append(Change(change.start + shift, change.end + shift, change.now, change.stop))
                continue
            parts += [old[at : change.start], present[change.now : change.stop]]
            at = change.end
            shift += change.stop - change.now - (change.end - change.start)
        return b"".join((*parts, old[at:])), Changes(tuple(far))


@dataclass(frozen=True, slots=True)
class History:
    """The present text of a buffer (`now`) and older ones. last: the newest of those that has a tree.

    base: the newest older text without syntax errors. Before one is known: the text that was opened, if it was not
    parsed yet, else the one with the fewest errors.
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
