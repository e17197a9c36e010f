"""Undoing one change of a text that has been changed elsewhere since."""

from dataclasses import dataclass

_AROUND = 50  # lines above and below a change that make it unique


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines that a change has replaced. above, below: those that stayed; old, new: those between."""

    above: list[bytes]
    old: list[bytes]
    new: list[bytes]
    below: list[bytes]

    def widened(self) -> "_Lines":
        """Return the change with the line above it and the one below."""
        top, end = self.above[-1:], self.below[:1]
        return _Lines(self.above[:-1], [*top, *self.old, *end], [*top, *end], self.below[1:])


def undo(before: bytes, after: bytes, now: bytes) -> bytes | None:
    """Undo the change from `before` to `after` in the text `now`, which was `after` and has been changed elsewhere.

    1. The lines of the change are where they were: nothing above or nothing below them differs.  2. They are found
    once, with as many lines around them as make them unique in `after`. Of lines that only
    went, the two around them are such lines.

    Example: `f, todo, g` became `f, fill, g` and then `f, fill, g, h`; the result is `f, todo, g, h`. None if the lines
    are not there, or not at one certain place.
    """
    end = b"\r\n" if b"\r\n" in after else b"\n"
    if after.endswith(end) or before.endswith(end):
        return _undo(before, after, now)
    # Editors end the last line when they save.
    undone = _undo(before + end, after + end, now if now.endswith(end) else now + end)
    return undone if undone is None or now.endswith(end) else undone.removesuffix(end)


def _undo(before: bytes, after: bytes, now: bytes) -> bytes | None:
    change = _between(before.splitlines(keepends=True), after.splitlines(keepends=True))
    if not change.new:
        # Lines that only went were between these.
        change = change.widened()
        if not change.new:
            return before if now == after else None
    lines, above, new, below = now.splitlines(keepends=True), change.above, change.new, change.below
    # 1.
    if lines[: len(above) + len(new)] == [*above, *new]:
        return b"".join([*above, *change.old, *lines[len(above) + len(new) :]])
    rest = [*new, *below]
    if lines[-len(rest) :] == rest:
        return b"".join([*lines[: -len(rest)], *change.old, *below])
    # 2.
    filled = b"".join(new)
    for around in range(1, min(max(len(above), len(below)), _AROUND) + 1):
        top, end = b"".join(above[-around:]) if above else b"", b"".join(below[:around])
        for head, tail in ((top, end), (top, b""), (b"", end)):
            piece = head + filled + tail
            place = _only_place(now, piece)
            if place is not None and _only_place(after, piece) is not None:
                return now[:place] + head + b"".join(change.old) + tail + now[place + len(piece) :]
    return None


def _between(before: list[bytes], after: list[bytes]) -> _Lines:
    short = min(len(before), len(after))
    same = next((n for n in range(short) if before[n] != after[n]), short)
    end = next((n for n in range(short - same) if before[-1 - n] != after[-1 - n]), short - same)
    return _Lines(
        after[:same],
        before[same : len(before) - end],
        after[same : len(after) - end],
        after[len(after) - end :],
    )


def _only_place(text: bytes, lines: bytes) -> int | None:
    """Return where the whole `lines` begin in `text`; None unless it is one place."""
    text, lines = b"\n" + text, b"\n" + lines
    place = text.find(lines)
    return place if place >= 0 and place == text.rfind(lines) else None
