"""How long a gap takes to be found in long files: valid files joined, one character changed at a random place.

Knows `find_gap` and documents; what the gap is does not matter here.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.gaps.cells import at_rank
from benchmarks.gaps.sources import Corpus
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.find import NoGap, find_gap
from dg_lsp.text.gaps.gap import Edit, apply_edit

_TYPED = ("(", ")", '"', "'", "{", "}", "[", ":", ";", ",", ".", "x", " ", "=", "")


@dataclass(frozen=True, slots=True)
class Size:
    """Milliseconds of `count` gaps in a file of `lines` lines; `known`: the editor had the file before the change."""

    language: str
    lines: int
    known: bool
    count: int
    p50: float
    p95: float
    most: float
    missed: int


def measure_sizes(corpus: Corpus, lines: Sequence[int], count: int, seed: int) -> list[Size]:
    """One row for each length, for a file from the disk and for a buffer whose older text is known."""
    found = []
    for length in lines:
        data = joined(corpus.valid, length, seed)
        for known in (False, True):
            found.append(_measure(corpus.language.name, data, count, known=known))
    return found


def joined(files: Sequence[bytes], lines: int, seed: int) -> bytes:
    """At least `lines` lines of files in random order, some of them more than once where there are too few."""
    rng = random.Random(f"{lines} {seed}")
    parts: list[bytes] = []
    number = 0
    while number < lines:
        data = rng.choice(files)
        parts.append(data if data.endswith(b"\n") else data + b"\n")
        number += parts[-1].count(b"\n")
    return b"".join(parts)


def _measure(language: str, data: bytes, count: int, *, known: bool) -> Size:
    rng = random.Random(f"{language} {len(data)}")
    opened = Document(f"file:///long.{language}", language, 0, data)
    if known:
        # An edit that changes nothing begins the history, and the first gap has the text parsed, as in an editor.
        opened = apply_edit(opened, Edit(0, 0, ""))
        _milliseconds(opened, 0)
    times: list[float] = []
    while len(times) < count:
        at = rng.randrange(len(data))
        if data[at] >= 128:
            continue
        text = rng.choice(_TYPED)
        changed = apply_edit(opened, Edit(at, at if text else at + 1, text))
        document = changed if known else Document(changed.uri, language, 0, changed.data)
        times.append(_milliseconds(document, at + len(text)))
    took = sorted(abs(t) for t in times)
    missed = sum(t < 0 for t in times)
    return Size(
        language, data.count(b"\n"), known, count, at_rank(took, 0.5), at_rank(took, 0.95), took[-1], missed
    )


def _milliseconds(document: Document, cursor: int) -> float:
    """What finding a gap took; negative where there is none."""
    begun = time.perf_counter()
    sign = 1
    try:
        find_gap(document, cursor)
    except NoGap:
        sign = -1
    return sign * (time.perf_counter() - begun) * 1000
