"""A smaller file in which the same goes wrong, by leaving out lines.

Knows places and answers; prints nothing.
"""

import re
from dataclasses import replace

from benchmarks.gaps.valid import is_valid
from benchmarks.guarantee.answers import TRUTH, Answer, ask, opened
from benchmarks.guarantee.places import Place
from dg_lsp.reasons import OutOfTime

TRIES = 60


def shrunk(answer: Answer, harm: str) -> Answer:
    """An answer with the same harm in as few lines as some tries find."""
    best, tries = answer, 0
    size = max(answer.opened.place.data.count(b"\n") // 2, 1)
    while size and tries < TRIES:
        first = 0
        while first < best.opened.place.data.count(b"\n") + 1 and tries < TRIES:
            place = _without(best.opened.place, first, size)
            tried = _tried(place, answer.text) if place else None
            tries += place is not None
            if tried and _has(tried, harm):
                best = tried
            else:
                first += size
        size //= 2
    return best


def _tried(place: Place, text: str) -> Answer | None:
    """Ask at a place; None where the judge cannot read the file in time."""
    try:
        return ask(opened(place), text)
    except OutOfTime:
        return None


def _has(answer: Answer, harm: str) -> bool:
    if harm in ("truth refused", "truth spoiled"):
        wrong = (
            answer.text == TRUTH and not answer.right and (answer.edit is None) == (harm == "truth refused")
        )
        return wrong and is_valid(answer.opened.place.language, answer.opened.place.data)
    if harm == "out of time":
        return answer.stopped
    return harm in answer.harms


def _without(place: Place, first: int, size: int) -> Place | None:
    """The place in a file without the `size` lines from `first` on; None where the cursor or the cut is in those."""
    starts = [0, *(m.end() for m in re.finditer(rb"\n", place.data)), len(place.data)]
    start, end = starts[min(first, len(starts) - 1)], starts[min(first + size, len(starts) - 1)]
    less, data = end - start, place.data[:start] + place.data[end:]
    if not less:
        return None
    if place.stop < start:
        return replace(place, data=data) if place.room is None or place.room[1] <= start else None
    if end > place.at or (place.room and place.room[0] < end):
        return None
    room = place.room and (place.room[0] - less, place.room[1] - less)
    return replace(place, data=data, at=place.at - less, stop=place.stop - less, room=room)
