"""Requests: what is put into the gap at a place, through the product's own last path, and what the judge says of it.

Knows `find_gap`, `finish` and `apply_edit` as their callers do; knows no engine and prints nothing.
"""

import time
from dataclasses import dataclass, field, replace

from benchmarks.guarantee.judge import (
    SECONDS,
    Claim,
    Reading,
    Verdict,
    code_of,
    count_errors,
    is_unbalanced,
    judge,
    read,
)
from benchmarks.guarantee.places import Place
from dg_lsp.budget import within
from dg_lsp.filling.fill import finish
from dg_lsp.gaps.find import Gap, NoGap, find_gap
from dg_lsp.gaps.gap import Edit, apply_edit
from dg_lsp.messages import STRINGS, Fill
from dg_lsp.reasons import SLOW, OutOfTime
from dg_lsp.source.document import Document

TEXTS = ('"""', ")", "}", "*/", "\\", "#", "\nx", "else:", "\N{GRINNING FACE}")
TRUTH = "the truth"
_FILLERS = ("", "x", "x;", "pass", "0")


@dataclass(frozen=True, slots=True)
class Opened:
    """A place with the gap that is found there; `why` says why there is none. crash: an exception."""

    place: Place
    document: Document
    before: Reading
    gap: Gap | None
    why: str = ""
    crash: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request. `edit` is None where it was refused, and `why` says why.

    right: the true text was put in and the file is as it was. added: errors that a damaged file has more. closed: of
    the true text nothing is left to be put in, since the gap itself inserts all of it. stopped: the text took too
    long to read, for the product, which then refuses, or for the judge, who then says nothing of the edit.
    """

    opened: Opened
    text: str
    edit: Edit | None = None
    why: str = ""
    verdict: Verdict = field(default_factory=Verdict)
    right: bool = False
    added: int = 0
    crash: bool = False
    milliseconds: float = 0.0
    closed: bool = False
    stopped: bool = False

    @property
    def harms(self) -> tuple[str, ...]:
        """The names of all that is wrong."""
        crash = ("crash",) if self.crash else ()
        return (*crash, *self.verdict.harms, *(("errors added",) if self.added else ()))


def opened(place: Place) -> Opened:
    """Find the gap at a place.

    Raises:
        OutOfTime: the judge cannot read the file.
    """
    data = place.cut
    document = Document(f"file:///case.{place.language.name}", place.language.name, 0, data)
    before = read(place.language, data)
    try:
        return Opened(place, document, before, find_gap(document, place.cursor, place.kind))
    except NoGap as error:
        return Opened(place, document, before, None, str(error))
    except Exception as error:
        return Opened(place, document, before, None, f"{type(error).__name__}: {error}", crash=True)


def ask(found: Opened, text: str) -> Answer:
    """Put `text` into the gap and judge the outcome; the text TRUTH is replaced by what the file had there."""
    gap = found.gap
    if gap is None:
        return Answer(found, text, why=found.why, crash=found.crash, stopped=found.why == SLOW)
    fill = true_text(found.place, gap) if text == TRUTH else text
    begun = time.perf_counter()
    try:
        outcome = finish(found.document, gap, Fill(fill))
    except Exception as error:
        return Answer(found, text, why=f"{type(error).__name__}: {error}", crash=True)
    took = (time.perf_counter() - begun) * 1000
    if outcome.edit is None:
        closed, stopped = text == TRUTH and not fill.strip(), outcome.why == SLOW
        return Answer(found, text, why=outcome.why, milliseconds=took, closed=closed, stopped=stopped)
    try:
        answer = _judged(found, gap, text, outcome.edit)
    except OutOfTime as error:
        answer = Answer(found, text, outcome.edit, str(error), stopped=True)
    return replace(answer, milliseconds=took)


def _judged(found: Opened, gap: Gap, text: str, edit: Edit) -> Answer:
    """Judge an edit of a place.

    Raises:
        OutOfTime: the judge cannot read the file.
    """
    place, before = found.place, found.before
    after = read(place.language, apply_edit(found.document, edit).data)
    verdict = judge(before, after, Claim((gap.start, gap.end), place.kind, place.room))
    if text == TRUTH:
        right = is_same(place, after.data)
    else:
        right = False
        # Where the grammar cannot tell, an edit of sound code still has to be balanced in itself.
        odd = not before.whole and place.where in ("code", "body") and gap.kind not in (*STRINGS, "comment")
        code = code_of(before, gap.start, edit.text.encode())
        verdict = replace(verdict, broken=verdict.broken or (odd and is_unbalanced(code)))
    # What brings back the file that was cut adds nothing to it.
    added = 0 if before.whole or right else _added(found, gap, after)
    return Answer(found, text, edit, "", verdict, right, added)


def true_text(place: Place, gap: Gap) -> str:
    """The text that the file had in the gap, without the text that the gap inserts."""
    more = len(place.data) - len(place.cut)
    text = (
        place.data[gap.start : max(gap.end + more, gap.start)]
        .decode("utf-8", "replace")
        .replace("\r\n", "\n")
    )
    lead, tail = (
        gap.insert_before.replace("\r\n", "\n"),
        gap.insert_after.replace("\r\n", "\n"),
    )
    if text.startswith(lead):
        text = text.removeprefix(lead)
    elif text.lstrip().startswith(lead.strip()):
        text = text.lstrip().removeprefix(lead.strip())
    if text.endswith(tail):
        return text.removesuffix(tail)
    return text.rstrip().removesuffix(tail.strip()) if text.rstrip().endswith(tail.strip()) else text


def is_same(place: Place, data: bytes) -> bool:
    """Return whether `data` is the file that `place` was made of, but for white space without a meaning."""
    if place.where in ("docstring", "comment"):
        return data.split() == place.data.split()
    strip = bytes.rstrip if place.language.style == "indent" else bytes.strip
    one, other = ([strip(line) for line in text.splitlines() if line.strip()] for text in (data, place.data))
    return one == other


def _added(found: Opened, gap: Gap, after: Reading) -> int:
    """The errors that `after` has more than the damaged file with a neutral text in its gap, or with none."""
    if not after.errors:
        return 0
    neutral = _neutral_errors(found, gap)
    # What a neutral text repairs must have no error; elsewhere a parser may count one more or less as it recovers.
    return after.errors if not neutral else max(after.errors - max(neutral, found.before.errors), 0)


def _neutral_errors(found: Opened, gap: Gap) -> int:
    """The fewest errors that the file has with something neutral between what the gap inserts."""
    data = found.document.data
    fillers = dict.fromkeys((*_FILLERS, found.place.language.placeholders[gap.kind]))
    tail = gap.insert_after
    texts = (data[: gap.start] + f"{gap.insert_before}{f}{tail}".encode() + data[gap.end :] for f in fillers)
    language = found.place.language
    with within(SECONDS):
        return min(count_errors(language, language.parse(text)) for text in texts)
