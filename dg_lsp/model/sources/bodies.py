"""Bodies and docstrings, written from left to right after the prefix until the function or class ends."""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import torch
from torch import Tensor

from dg_lsp.guard import ended as end_of
from dg_lsp.guard import first_sentence, flaws_of, goes_round, shorten, without_round
from dg_lsp.messages import BODIES, Draft, Fill, Infill
from dg_lsp.model.beam import Row, only, search, start_after, text_logits, tokens_from
from dg_lsp.model.candidates import Candidate, candidates_of, fitted, none_of, why_refused
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import draft_of
from dg_lsp.model.task import Task
from dg_lsp.model.tokens import Join, join_of, tokenise, with_similar
from dg_lsp.source.language import load_language

# A search stops when texts without a flaw have ended for this share of its rows, where one body is wanted or where
# several are, or twice as many texts as rows: by the times and the bodies in docs/research/bodies.md.
_ONE, _SEVERAL, _FLAWED = 1 / 2, 3 / 4, 2
# A text that the network ends is kept unless it is so many nats after the likeliest unfinished one.
_AFTER = 6.0
# How likely a docstring written from left to right is exactly right; none of 60 was (docs/research/bodies.md).
DOCSTRINGS = 0.01


def bodies(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write bodies; return those that can be shown, the best first, or else one with the reason.

    The judge was fitted on lines only: by likelihood the shortest text wins, by likelihood a token the one that
    repeats itself most (docs/research/bodies.md).
    """
    return _bodies(task, task.request)


def bodies_beside_similar(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write bodies as `bodies` does, with the file's similar functions before them.

    For a reader that sees nothing of the suffix, where they may be.
    """
    return _bodies(task, with_similar(task.model, task.request))


def docstrings(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write docstrings as `bodies` does; one that nobody has asked for is not written if it would not be shown."""
    if task.request.confidence > DOCSTRINGS:
        why = "a docstring written from left to right is exactly right too seldom to be shown unasked; ask for it"
        return candidates_of("drafted", [Fill("", parses=False, refusal=why)])
    found = yield from _bodies(task, task.request)
    return [replace(one, fill=one.fill and replace(one.fill, chance=DOCSTRINGS)) for one in found]


def _bodies(task: Task, before: Infill) -> Generator[Draft, None, list[Candidate]]:
    """Write bodies after the prefix of `before`."""
    prefix, seam = tokenise(task.model, before)
    yield from task.encode(prefix)
    written = yield from draft_bodies(task, join_of(task.model, task.request, prefix, seam))
    shown = dict[str, Fill]()
    for fill in written:
        if not fill.refusal:
            shown.setdefault(fill.text, fill)
    return candidates_of("drafted", [*shown.values()] or [none_of(written, task.clock.why_nothing())])


@torch.inference_mode()
def draft_bodies(task: Task, join: Join) -> Generator[Draft, None, list[Fill]]:
    """Write bodies or docstrings after the prefix, which the cache holds; yield a Draft before each token.

    Returns the texts, the best first. Those of a body are found by a beam search; where more are wanted than it found,
    others are written greedily, which are less alike. Docstrings are written greedily. Bodies with fewer flaws come
    before others.
    """
    request, clock = task.request, task.clock
    flaws, found = flaws_of(request), list[Fill]()
    if request.kind in BODIES:
        start = start_after(task.model, task.cache, join)
        found = yield from search(start, _UpToEnd(task, start.again, flaws), clock)
    shown = [fill for fill in found if not fill.refusal]
    if len(shown) < request.alternatives and not (shown and clock.is_over()):
        start = start_after(task.model, task.cache, join)
        found += yield from search(start, _Greedy(task, start.again, shown), clock)
    return sorted(found, key=lambda fill: (bool(fill.refusal), flaws(fill.text)))


@dataclass(slots=True)
class _UpToEnd:
    """A body ends where the container does; one that repeats itself is dropped.

    The result is the bodies that have ended, those that can be shown and are the likeliest a token in front: by the
    mean over the tokens, since the likelihood of a whole text prefers short ones (Wu et al. 2016, arXiv:1609.08144,
    section 7). If none that can be shown has ended, the likeliest beginning follows. ended: the bodies that have ended,
    each with its mean log likelihood a token.
    """

    task: Task
    again: str
    flaws: Callable[[str], int]
    ended: dict[str, tuple[float, Fill]] = field(default_factory=dict)

    @property
    def limit(self) -> int:
        """The tokens that a text has at most."""
        return self.task.plan.drafts.tokens

    def first(self, states: Tensor) -> list[Row]:
        """Return the likeliest first tokens."""
        chances = text_logits(self.task.model, states)[0].log_softmax(-1)
        count = self.task.plan.drafts.rows
        tokens = _first_tokens(self.task.model, self.task.request, chances, self.again, count)
        return [Row(0, (token,), float(chances[token])) for token in tokens]

    def longer(self, rows: Sequence[Row], states: Tensor) -> list[Row]:
        """Keep those of the likeliest longer texts that have ended; return the others that do not repeat themselves."""
        count, left = self.task.plan.drafts.rows, list[Row]()
        for row in _longer(rows, text_logits(self.task.model, states), 3 * count):
            text = self.task.model.tokenizer.decode(list(row.tokens))[len(self.again) :]
            kept = _kept(self.task.request, text)
            if row.tokens[-1] in self.task.model.ends:
                if row.score > rows[0].score - _AFTER:
                    self.ended.setdefault(
                        kept, (row.score / len(row.tokens), _fill_of(self.task.request, kept))
                    )
            elif kept != text and kept not in self.ended and end_of(self.task.request, text).ended:
                self.ended[kept] = row.score / len(row.tokens), _fill_of(self.task.request, kept)
            elif kept == text and not goes_round(text):
                left.append(replace(row, text=text))
            if len(left) == count:
                break
        return left

    def is_enough(self, rows: Sequence[Row]) -> bool:  # noqa: ARG002
        """Return whether enough bodies have ended, counted in those without a flaw."""
        share = _ONE if self.task.request.alternatives == 1 else _SEVERAL
        count = self.task.plan.drafts.rows
        flaws = [
            self.flaws(text) for text in {fill.text for _, fill in self.ended.values() if not fill.refusal}
        ]
        return flaws.count(0) >= min(max(share * count, 2), count) or len(flaws) >= _FLAWED * count

    def has_text(self, rows: Sequence[Row]) -> bool:
        """Return whether a body that can be shown has ended, or the likeliest one has a whole statement."""
        ended = any(not fill.refusal for _, fill in self.ended.values())
        return ended or beginning_of(self.task.request, rows[0].text).shortened

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:
        """Return the likeliest text so far."""
        return draft_of(count, rows[0].text, self.task.clock)

    def result(self, rows: Sequence[Row]) -> list[Fill]:
        """Return the bodies that have ended, the best first."""
        best = sorted(self.ended.values(), key=lambda pair: (bool(pair[1].refusal), -pair[0]))
        found = [fill for _, fill in best]
        if rows and all(fill.refusal for fill in found):
            found.append(beginning_of(self.task.request, rows[0].text))
        return found


@dataclass(slots=True)
class _Greedy:
    """Each text begins with one of the likeliest tokens and continues with the likeliest one each time.

    It ends where the container does, or where it would repeat itself; the rows stay in their places.
    A body that repeats itself within a line is refused. Nothing more is written once as many as are wanted beside those
    that are `known` have ended and can be shown, and so have all likelier ones. done: the ended texts, by row.
    """

    task: Task
    again: str
    known: Sequence[Fill]
    done: dict[int, Fill] = field(default_factory=dict)

    @property
    def limit(self) -> int:
        """The tokens that a text has at most."""
        return self.task.plan.drafts.tokens

    def first(self, states: Tensor) -> list[Row]:
        """Return the likeliest first tokens."""
        logits, count = text_logits(self.task.model, states)[0], self.task.plan.drafts.rows
        tokens = _first_tokens(self.task.model, self.task.request, logits, self.again, count)
        return [Row(0, (token,)) for token in tokens]

    def longer(self, rows: Sequence[Row], states: Tensor) -> list[Row]:
        """Return each text with its likeliest next token; note which have ended."""
        best = text_logits(self.task.model, states).argmax(-1).tolist()
        pairs = enumerate(zip(rows, best, strict=True))
        return [self._longer(number, row, token) for number, (row, token) in pairs]

    def _longer(self, number: int, row: Row, token: int) -> Row:
        tokens = (*row.tokens, token)
        if number in self.done:
            return Row(number, tokens, text=row.text)
        text = self.task.model.tokenizer.decode(list(tokens))[len(self.again) :]
        kept = _kept(self.task.request, text)
        if token in self.task.model.ends:
            self.done[number] = _fill_of(self.task.request, kept)
        elif self.task.request.kind != "docstring" and goes_round(text):
            self.done[number] = Fill(text, parses=False, refusal="it repeats itself", source="drafted")
        elif kept != text:
            self.done[number] = _fill_of(self.task.request, kept)
        return Row(number, tokens, text=kept)

    def is_enough(self, rows: Sequence[Row]) -> bool:
        """Return whether enough texts have ended, and all likelier ones with them."""
        ended = [self.done[number] for number in takewhile(self.done.__contains__, range(len(rows)))]
        texts = {fill.text for fill in (*self.known, *ended) if not fill.refusal}
        return len(texts) >= self.task.request.alternatives or len(self.done) == len(rows)

    def has_text(self, rows: Sequence[Row]) -> bool:  # noqa: ARG002
        """Return whether a text that can be shown has ended."""
        return bool(self.known) or any(not fill.refusal for fill in self.done.values())

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:
        """Return the best text of another search, or else the first one so far."""
        return draft_of(count, self.known[0].text if self.known else rows[0].text, self.task.clock)

    def result(self, rows: Sequence[Row]) -> list[Fill]:
        """Return all texts; one that has not ended is a beginning, of a docstring its first sentence."""
        for number, row in enumerate(rows):
            if number in self.done:
                continue
            if self.task.request.kind == "docstring":
                self.done[number] = _fill_of(self.task.request, first_sentence(row.text))
            else:
                self.done[number] = beginning_of(self.task.request, row.text)
        return [self.done[number] for number in range(len(rows))]


def _longer(rows: Sequence[Row], logits: Tensor, count: int) -> list[Row]:
    """The `count` likeliest texts that are a token longer than those of `rows`; `logits` [rows, vocabulary]."""
    scores = torch.tensor([row.score for row in rows], device=logits.device)
    found = (scores[:, None] + logits.log_softmax(-1)).flatten().topk(min(count, logits.numel()))
    places = zip(found.values.tolist(), found.indices.tolist(), strict=True)
    split = ((score, *divmod(place, logits.shape[1])) for score, place in places)
    return [Row(parent, (*rows[parent].tokens, token), score) for score, parent, token in split]


def body_of(request: Infill, text: str) -> Fill:
    """The part of a written text that belongs to the gap, as a Fill."""
    return _fill_of(request, _kept(request, text))


def beginning_of(request: Infill, text: str) -> Fill:
    """The same of an unfinished text, without the statement that it ends in: that may parse, but is cut."""
    kept = _kept(request, text)
    return (_shortened(request, fitted(request, text)) if kept == text else None) or _fill_of(request, kept)


def _fill_of(request: Infill, text: str) -> Fill:
    """A written text as a Fill: all of it, or the longest beginning that can be shown."""
    whole = fitted(request, text)
    return (_shortened(request, whole) if whole.refusal else None) or whole


def _shortened(request: Infill, whole: Fill) -> Fill | None:
    """The longest beginning of `whole` in whole statements, without all of it; None where none can be shown."""
    short = shorten(request, whole.text)
    if not short or why_refused(request, short):
        return None
    return Fill(short, reason="stable", source="drafted", shortened=True)


def _first_tokens(model: Checkpoint, request: Infill, logits: Tensor, again: str, count: int) -> list[int]:
    """At most `count` of the likeliest tokens that begin the text.

    A body begins with no comment, and with no string, which may be a docstring. again: the text that the tokens begin
    with, which is not a part of the body.
    """
    language = load_language(request.language, request.macros)
    marks = (language.comment, *(quotes.open for quotes in language.strings))
    others = tuple(mark.decode() for mark in marks if request.kind in BODIES)
    likeliest = only(logits, tokens_from(model, again)).topk(min(4 * count, len(logits)))
    tokens = [t for s, t in zip(*(x.tolist() for x in likeliest), strict=True) if s > -math.inf]
    return [t for t in tokens if not model.texts[t][len(again) :].strip().startswith(others)][:count]


def _kept(request: Infill, text: str) -> str:
    """The part of a begun fill that is kept: all of `text`, unless the fill ends in it or it repeats itself."""
    if request.kind == "docstring" and goes_round(" ".join(text.split())):
        return first_sentence(text)
    if request.kind != "docstring" and "\n" not in text:
        return text
    found = end_of(request, text)
    return found.text if found.ended else without_round(text)
