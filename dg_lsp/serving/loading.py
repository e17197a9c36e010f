"""Loading: how far the loading of a checkpoint is, as a share of its time, by the stages of the last start."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dg_lsp.checkpoints import cache_folder
from dg_lsp.files.records import note_in_record, read_record

# The beginnings of the words that loading reports, in order, and the seconds of each stage where no start is known:
# those of `coder`, mapped from the disk, on two idle cores.
_STAGES = {
    "importing torch": 1.2,
    "importing transformers": 2.4,
    "waiting": 0.0,
    "checking": 0.4,
    "loading": 3.0,
}
_KEPT = 32  # checkpoints whose starts are kept
_ALMOST = 0.99  # of the time, until the engine is ready


class Loading:
    """The loading of the checkpoint with this digest, from now on. clock: returns the time in seconds."""

    def __init__(self, digest: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._digest, self._clock = digest, clock
        self._known = _known(digest)
        self._began = [clock()]

    def say(self, words: str) -> None:
        """Note that a stage begins of which the loading says these `words`; others are of the stage that runs."""
        stage = next((i for i, start in enumerate(_STAGES) if words.startswith(start)), 0)
        now = self._clock()
        # Stages that were left out took no time.
        self._began += [now] * (stage + 1 - len(self._began))

    @property
    def share(self) -> float:
        """The share of the time that has passed, 0 to 1, if this start is as much slower as its first stages were.

        In a stage that takes longer than the last time, it waits at the end of that.
        """
        stage, now = len(self._began) - 1, self._clock()
        past, taken = sum(self._known[:stage]), self._began[stage] - self._began[0]
        pace = past / taken if past and taken else 1.0
        here = min((now - self._began[stage]) * pace, self._known[stage])
        return min((past + here) / (sum(self._known) or 1.0), _ALMOST)

    def keep(self) -> None:
        """Keep the seconds of the stages for the next start: the engine is ready."""
        ends = [*self._began[1:], *[self._clock()] * (len(_STAGES) + 1 - len(self._began))]
        begins = [*self._began, *[ends[-1]] * (len(_STAGES) - len(self._began))]
        took = [round(end - begin, 2) for begin, end in zip(begins, ends, strict=True)]
        # How long it waited for another engine that loads says nothing of the next time.
        took[[*_STAGES].index("waiting")] = 0.0
        note_in_record(_file(), self._digest, took, _KEPT)


def _known(digest: str) -> Sequence[float]:
    """Return the seconds of each stage of the last start of the checkpoint with this digest, or usual ones."""
    try:
        found = [float(seconds) for seconds in read_record(_file())[digest]]
    except (LookupError, TypeError, ValueError):
        found = []
    is_good = len(found) == len(_STAGES) and all(0 <= seconds < 1e4 for seconds in found)
    return found if is_good else [*_STAGES.values()]


def _file() -> Path:
    return cache_folder() / "starts.json"
