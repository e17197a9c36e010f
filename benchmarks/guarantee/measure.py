"""Count harm over many places of one language, in portions that processes can share.

Knows places and answers; prints nothing.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path

from benchmarks.gaps.sources import Corpus, find_corpus
from benchmarks.gaps.valid import is_python
from benchmarks.guarantee.answers import TRUTH, Answer, ask, opened
from benchmarks.guarantee.places import Place, damaged_places, valid_places
from benchmarks.guarantee.shrink import shrunk
from dg_lsp.reasons import OutOfTime

# Larger files make each request slower and no number better.
FILES, LARGEST = 150, 30_000
# Places in one file; a file's tree is read once.
EACH = 5
KEPT = 3
Key = tuple[str, str, str, str]  # language, form, place, count


@dataclass(frozen=True, slots=True)
class Portion:
    """Some places of one language: `number` is the portion's own, so that each has places of its own.

    count: how many of `texts` are put in at each place, besides the truth.
    """

    language: str
    form: str
    number: int
    places: int
    texts: tuple[str, ...]
    count: int
    seed: int
    given: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Failure:
    """One answer that did harm, or a truth that was not offered: `cause` sorts it, `text` shows it."""

    cause: tuple[str, ...]
    text: str


@dataclass(slots=True)
class Counts:
    """The counts by their keys; `failures` are the first of each cause."""

    numbers: Counter[Key] = field(default_factory=Counter)
    causes: Counter[tuple[str, ...]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, other: "Counts") -> None:
        """Count what `other` counted, too."""
        self.numbers += other.numbers
        self.causes += other.causes
        self.slowest = max(self.slowest, other.slowest)
        known = Counter(f.cause for f in self.failures)
        for failure in other.failures:
            if known[failure.cause] < KEPT:
                known[failure.cause] += 1
                self.failures.append(failure)


def measure(portion: Portion) -> Counts:
    """The counts of one portion; the same portion gives the same ones."""
    counts = Counts()
    for answer in _answers(portion, counts):
        _note(portion, answer, counts)
    return counts


@lru_cache
def corpus_of(language: str, given: tuple[tuple[str, Path], ...], seed: int) -> Corpus:
    """Find the files of a language that are of moderate size."""
    corpus = find_corpus(language, dict(given), FILES, seed)
    valid, broken = (tuple(d for d in f if len(d) < LARGEST) for f in (corpus.valid, corpus.broken))
    if language == "python":
        # What the interpreter refuses is no Python.
        broken = tuple(filter(is_python, broken))
    return Corpus(corpus.language, valid, broken, corpus.missing)


def _answers(portion: Portion, counts: Counts) -> Iterator[Answer]:
    corpus = corpus_of(portion.language, tuple(portion.given.items()), portion.seed)
    files = corpus.broken if portion.form == "odd" else corpus.valid
    rng = random.Random(f"{portion.language} {portion.form} {portion.number} {portion.seed}")
    choose = damaged_places if portion.form == "damaged" else valid_places
    left = portion.places if files else 0
    while left:
        for place, cut in islice(choose(corpus.language, rng.choice(files), rng), min(EACH, left)):
            left -= 1
            counts.numbers[portion.language, portion.form, place.where, "places"] += 1
            texts = rng.sample(portion.texts, portion.count)
            try:
                yield from _asked(place, texts)
                if cut is not None:
                    yield from _asked(cut, [TRUTH])
            except OutOfTime:
                # The judge cannot read the file; nothing was asked there.
                counts.numbers[portion.language, portion.form, place.where, "out of time"] += 1


def _asked(place: Place, texts: Sequence[str]) -> Iterator[Answer]:
    found = opened(place)
    for text in texts:
        yield ask(found, text)


def _note(portion: Portion, answer: Answer, counts: Counts) -> None:
    where = answer.opened.place.where
    counts.slowest = max(counts.slowest, answer.milliseconds)

    def count(what: str, by: int = 1) -> None:
        counts.numbers[portion.language, portion.form, where, what] += by

    verdict, true = answer.verdict, answer.text == TRUTH
    count("truths" if true else "requests")
    if answer.edit is not None:
        count("truths offered" if true else "edits")
    count("truths right", answer.right)
    count("truths closed", answer.closed)
    count("broken", verdict.broken)
    count("outside", verdict.outside)
    count("characters lost", len(b"".join(verdict.lost.split())))
    count("comments lost", len(verdict.comments))
    count("pairs behind", verdict.pairs)
    count("errors added", answer.added)
    count("crashes", answer.crash)
    count("out of time", answer.stopped)
    harms = answer.harms or (("truth refused" if answer.edit is None else "truth spoiled"),) * (
        true and not answer.right and portion.form == "valid"
    )
    harms = (*harms, *(("out of time",) if answer.stopped else ()))
    for harm in harms:
        _keep(portion, answer, harm, counts)


def _keep(portion: Portion, answer: Answer, harm: str, counts: Counts) -> None:
    gap, place = answer.opened.gap, answer.opened.place
    asked = f"asked {place.kind}" if place.kind else "not asked"
    got = gap.kind if gap else "no gap"
    cause = (portion.form, harm, portion.language, place.where, got, asked)
    counts.causes[cause] += 1
    # To find the smallest file takes many tries; one of each cause is enough in a portion.
    if counts.causes[cause] == 1:
        counts.failures.append(Failure(cause, describe(shrunk(answer, harm))))


def describe(answer: Answer) -> str:
    """One failure for people: the file with its cursor and gap, the text, and the result."""
    found, verdict, edit, gap = answer.opened, answer.verdict, answer.edit, answer.opened.gap
    place, data = found.place, found.document.data
    fill = repr(answer.text)
    if answer.text == TRUTH:
        fill = f"the truth, {_text(place.data[place.at : place.stop])!r}"
    about = f"no gap: {found.why}"
    if gap is not None:
        inside = _text(data[gap.start : gap.end])
        about = (
            f"gap {inside!r} {gap.kind} lead {gap.insert_before!r} tail {gap.insert_after!r} stub {gap.stub}"
        )
    came = f"edit [{edit.start},{edit.end}) {edit.text!r}" if edit else f"refused: {answer.why}"
    if verdict.lost or verdict.comments:
        came += f"; lost {verdict.lost!r} {verdict.comments!r}"
    shown = _text(data[: place.cursor] + b"<|>" + data[place.cursor :])
    return f"text {fill} asked {place.kind}; {about}; {came}\n```{place.language.name}\n{shown}\n```"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
