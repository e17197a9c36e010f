"""Texts for a gap within a line, written from left to right up to the text after the gap.

A reader that has not seen the suffix writes many, and the judge reads the suffix after each. One that sees both sides
writes few, each with the likelihood of its tokens and of its end.
"""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate

import torch
from torch import Tensor

from dg_lsp.guard import Site, is_in_header, left_open, missing_name, site_of, to_bytes
from dg_lsp.messages import Draft, Infill, Source
from dg_lsp.model.beam import LINE_BREAKS, Row, Start, only, search, start_after, start_in_word, tokens_from
from dg_lsp.model.candidates import Candidate
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.sources.imports import Wanted
from dg_lsp.model.task import Task
from dg_lsp.model.tiles import few_logits
from dg_lsp.model.tokens import Join

# The number of likeliest tokens examined that begin in a gap and end after it.
_CROSSING = 4
# Drafting stops once unfinished texts have this share of the probability of finished ones, and no text that is so
# many nats after the likeliest one continues: fewer tokens, and as many right texts of 372
# (docs/research/candidates-and-judge.md). Where both sides are in sight drafting stops once no unfinished text can
# become likelier than the likeliest finished one.
_LEFT = 0.4
_AFTER = 4.0
# The probability, at least, that a statement begins with a name that the lines after it use and nothing defines: 41 of
# 44 such statements do (docs/research/candidates-and-judge.md), but another line may be the one to define it.
_MISSING = 0.8
# Characters of the suffix that a token which begins it may have.
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class _Ends:
    """The tokens that end a gap's text.

    whole: those that lie after it, int64 [tokens]. crossing: those that begin in it; parts: their parts in the gap.
    """

    whole: Tensor
    crossing: Tensor
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndedText:
    """A text that has ended.

    score: its log likelihood, its end included. alone: that of its likeliest tokens; tokens: their number.
    """

    text: str
    score: float
    alone: float = 0.0
    tokens: int = 1


def lines(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write texts for the gap; return them, the likeliest first."""
    prefix, _ = task.tokens
    yield from task.encode(prefix)
    found = yield from draft_line(task)
    return [Candidate(one.text, {"drafted": rank}) for rank, one in enumerate(found)]


def lines_in_sight(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write texts for the gap with both sides in sight, and continue the retrieved ones as long as they are likely.

    Returns them with their likelihoods, the likeliest first. A retrieved text that is far less likely is left out.
    """
    prefix, _ = task.tokens
    yield from task.encode(prefix)
    ranks = {one.text.strip(): rank for rank, one in reversed([*enumerate(task.request.retrieved)])}
    found = yield from draft_line(task)
    candidates = list[Candidate]()
    for rank, one in enumerate(found):
        sources: dict[Source, int] = {"drafted": rank}
        if (key := one.text.strip()) in ranks:
            sources["retrieved"] = ranks[key]
        candidates.append(
            Candidate(one.text, sources, gap=-one.alone, suffix=one.alone - one.score, tokens=one.tokens)
        )
    return candidates


@torch.inference_mode()
def draft_line(task: Task) -> Generator[Draft, None, list[EndedText]]:
    """Write texts after the prefix, which the cache holds; yield a Draft of step 0 before each token.

    Returns the texts, the likeliest first. A text ends where the suffix begins: its likelihood covers its tokens
    and a token that begins the text after the gap, or that ends a gap for a network which sees the suffix. The last
    token before the gap is written again, as one of those that begin with its text: after `x = ` the blank and the `f`
    of `f()` are one token.
    """
    begin = start_in_word if task.model.ends else start_after
    start = begin(task.model, task.cache, task.join)
    known, missing = _followed(task, start.again), missing_name(task.request)
    policy = _UpToSuffix(
        task,
        site_of(task.request),
        _ends(task.model, task.join, task.request),
        start,
        Wanted(task.model, task.request.unimported),
        known if task.model.ends else (),
        task.model.encode(start.again + missing) if missing else (),
    )
    return search(start, policy, task.clock, known)


def _followed(task: Task, again: str) -> tuple[tuple[int, ...], ...]:
    """The tokens of each retrieved text after `again`."""
    return tuple(task.model.encode(again + one.text.strip()) for one in task.request.retrieved)


@dataclass(slots=True)
class _UpToSuffix:
    """A text ends before each token that ends the gap; all likely ones are kept.

    In front of other text of its line a text ends only if it leaves no bracket open: `g(x` does not end in `f(g(x|)`,
    in `f(g(x|, y)`, nor in `g(x| + y`.

    start: its `again` is the text that the tokens begin with and that is no part of the gap. followed: the tokens of
    texts that are continued as long as they are likely. missing: those of a name that the text probably begins with.
    wanted: names of which it probably has one. found: the texts that have ended.
    """

    task: Task
    site: Site
    ends: _Ends
    start: Start
    wanted: Wanted
    followed: tuple[tuple[int, ...], ...] = ()
    missing: tuple[int, ...] = ()
    found: dict[str, EndedText] = field(default_factory=dict)

    @property
    def limit(self) -> int:
        """The tokens that a text has at most."""
        return self.task.plan.drafts.tokens

    def first(self, states: Tensor) -> list[Row]:
        """Return the likeliest texts that a token makes longer than the text before the gap.

        That token ends the start's `again`. Of a half-typed word the likelihood is that of its rest.
        """
        rows, totals = self.start.rows, self._totals(self.start.rows, states)
        for number, row in enumerate(rows):
            if rest := self.start.again[len(self._text(row)) :]:
                totals[number] = only(totals[number], tokens_from(self.task.model, rest))
                for other in rows:
                    if other.tokens[:-1] == row.tokens != other.tokens:
                        totals[number, other.tokens[-1]] = -math.inf
        if len(rows) > 1:
            totals -= totals.logsumexp((0, 1))
        return self._likeliest(rows, totals)

    def longer(self, rows: Sequence[Row], states: Tensor) -> list[Row]:
        """Note how likely each text ends here; return the likeliest texts that are a token longer.

        Texts far after the best one are dropped.
        """
        return self._likeliest(rows, self._totals(rows, states))

    def _totals(self, rows: Sequence[Row], states: Tensor) -> Tensor:
        """The log likelihoods of `rows` with each token after them [rows, vocabulary]."""
        before = torch.tensor([row.score for row in rows], device=states.device)
        return before[:, None] + few_logits(self.task.model.network, states).log_softmax(-1)

    def _likeliest(self, rows: Sequence[Row], totals: Tensor) -> list[Row]:
        """Note the texts of `rows` that end here; return the likeliest that are a token longer, by their `totals`."""
        for number, row in enumerate(rows):
            written, again = self._text(row), self.start.again
            before = 0.0 if row in self.start.rows else self.wanted.hope(written)
            if len(written) >= len(again):
                for text, score, inside in _ended(totals[number], self.ends, written[len(again) :]):
                    if self._is_open(text):
                        continue
                    gained = self.wanted.worth(again + text) - before
                    alone = (row.score if inside else score) + gained
                    self._note(EndedText(text, score + gained, alone, self._tokens(row) + (not inside)))
                never = _never(self.task.model.texts, self.task.model.special, self.task.model.vocabulary)
                totals[number] += never.to(totals)
            self.wanted.prefer(totals[number], written, before)
        self._expect(rows, totals)
        scores, places = totals.flatten().topk(self.task.plan.drafts.rows)
        least = max([float(scores[0]), *(one.score for one in self.found.values())]) - _AFTER
        possible = int((scores > least).sum())
        found = zip(scores[:possible].tolist(), places[:possible].tolist(), strict=True)
        split = ((score, *divmod(place, totals.shape[1])) for score, place in found)
        longer = [Row(parent, (*rows[parent].tokens, token), score) for score, parent, token in split]
        return longer + self._following(rows, totals, longer, least)

    def _text(self, row: Row) -> str:
        return self.task.model.tokenizer.decode(list(row.tokens), skip_special_tokens=False)

    def _tokens(self, row: Row) -> int:
        """The number of tokens of `row` that reach into the gap."""
        sizes = accumulate(len(self.task.model.texts[token]) for token in row.tokens)
        return sum(size > len(self.start.again) for size in sizes)

    def _is_open(self, text: str) -> bool:
        """Return whether the text after the gap would belong into a bracket of `text`."""
        site, fill = self.site, to_bytes(text)
        return bool(site.rest.strip()) and (bool(left_open(site, fill)) or is_in_header(site, fill))

    def _expect(self, rows: Sequence[Row], totals: Tensor) -> None:
        """Make `missing` as likely as _MISSING where `rows` begin with it so far, and other texts less likely."""
        for number, row in enumerate(rows):
            if row.tokens == self.missing[: len(row.tokens)] != self.missing:
                token = self.missing[len(row.tokens)]
                likely = max(float(totals[number, token]), math.log(_MISSING))
                totals[number] += math.log(1 - _MISSING)
                totals[number, token] = likely

    def _note(self, ended: EndedText) -> None:
        """Add a text that has ended to those found; other tokens of the same text make it likelier."""
        if known := self.found.get(ended.text):
            total = float(torch.tensor([known.score, ended.score]).logsumexp(0))
            ended = replace(max(known, ended, key=lambda one: one.score), score=total)
        self.found[ended.text] = ended

    def _following(
        self, rows: Sequence[Row], totals: Tensor, longer: Sequence[Row], least: float
    ) -> list[Row]:
        """The rows of the followed texts that are more likely than `least` and are not among `longer`."""
        known, found = {row.tokens for row in longer}, list[Row]()
        for number, row in enumerate(rows):
            count = len(row.tokens)
            for text in self.followed:
                score = (
                    float(totals[number, text[count]]) if row.tokens == text[:count] != text else -math.inf
                )
                if score > least and text[: count + 1] not in known:
                    known.add(text[: count + 1])
                    found.append(Row(number, text[: count + 1], score))
        return found

    def is_enough(self, rows: Sequence[Row]) -> bool:
        """Return whether the unfinished texts are unlikely beside the finished ones."""
        ended = torch.tensor([-math.inf, *(one.score for one in self.found.values())])
        unfinished = float(torch.tensor([row.score for row in rows]).logsumexp(0))
        if self.task.model.ends:
            return unfinished < float(ended.max())
        return unfinished < float(ended.logsumexp(0)) + math.log(_LEFT)

    def has_text(self, rows: Sequence[Row]) -> bool:
        """Return whether a finished text is at least as likely as each unfinished one."""
        likeliest = max((one.score for one in self.found.values()), default=-math.inf)
        return likeliest >= max(row.score for row in rows)

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:  # noqa: ARG002
        """Return a Draft without text: a beginning says little of the text that will be chosen."""
        return Draft(0, (), self.task.clock.milliseconds())

    def result(self, rows: Sequence[Row]) -> list[EndedText]:  # noqa: ARG002
        """Return the likeliest texts that have ended, the best first; of those that are followed all likely ones.

        With what they gain their probabilities may be more than 1 in all; then each is as much less likely.
        """
        total = float(torch.tensor([0.0, *(one.score for one in self.found.values())]).logsumexp(0))
        over = total if self.wanted.names else 0.0
        ended = (replace(one, score=one.score - over, alone=one.alone - over) for one in self.found.values())
        found = sorted(ended, key=lambda one: -one.score)
        count = self.task.plan.drafts.rows + len(self.followed)
        return [one for one in found[:count] if one.score > found[0].score - _AFTER]


def _ends(model: Checkpoint, join: Join, request: Infill) -> _Ends:
    """The tokens that end the text of the gap: those of the network, and those that begin the text after the gap.

    The latter are those whose text the suffix begins with, alone or after a part of the gap: `)` and `))` in front of
    `)`. Where a line ends after the gap, all that begin with a line end: it may be one token with the indentation.
    """
    suffix = (request.suffix[:_LONGEST] if model.ends else join.after) or "\n"
    whole = list(model.ends or (join.end if not join.after else ()))
    crossing = list[tuple[int, str]]()
    for token, at in _holding(model.texts, model.special, suffix[0]):
        text = model.texts[token]
        if suffix[0] in LINE_BREAKS or suffix.startswith(text[at:]):
            if at:
                crossing.append((token, text[:at]))
            else:
                whole.append(token)
    crossing = [(token, part) for token, part in crossing if part.strip()]
    device = model.device
    return _Ends(
        torch.tensor(whole or model.encode(suffix)[:1], device=device),
        torch.tensor([token for token, _ in crossing], dtype=torch.int64, device=device),
        tuple(part for _, part in crossing),
    )


def _ended(totals: Tensor, ends: _Ends, text: str) -> Iterator[tuple[str, float, bool]]:
    """The texts that end after `text`, each with its score, and whether its last token lies inside the gap.

    totals: the scores of `text` with one token more, [vocabulary].
    """
    if text:
        yield text, float(totals[ends.whole].logsumexp(0)), True
    scores, places = totals[ends.crossing].topk(min(_CROSSING, len(ends.parts)))
    for score, place in zip(scores.tolist(), places.tolist(), strict=True):
        yield text + ends.parts[place], score, False


# Examining each token of a large vocabulary takes tens of milliseconds.
@lru_cache(maxsize=32)
def _holding(texts: tuple[str, ...], special: frozenset[int], character: str) -> tuple[tuple[int, int], ...]:
    """The tokens whose text holds `character`, with each place of it there, but for line ends the first one only."""
    found = list[tuple[int, int]]()
    for token, text in enumerate(texts):
        at = -1 if token in special else text.find(character)
        while at >= 0:
            found.append((token, at))
            at = -1 if character in LINE_BREAKS else text.find(character, at + 1)
    return tuple(found)


@lru_cache(maxsize=4)
def _never(texts: tuple[str, ...], special: frozenset[int], vocabulary: int) -> Tensor:
    """Minus infinity for each token that is no part of a line: special, with a line end, or without a text; else 0."""
    ends = {token for token, text in enumerate(texts) if any(b in text for b in LINE_BREAKS)}
    scores = torch.zeros(vocabulary)
    scores[sorted(ends | special | {*range(len(texts), vocabulary)})] = -torch.inf
    return scores
