"""Texts for a gap within a line, written from left to right up to what is behind the gap.

The reader has not seen the suffix while it writes; the judge reads it behind each text.
"""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from dg_lsp.model.beam import LINE_BREAKS, Row, only, search, start_behind, tokens_from
from dg_lsp.model.candidates import Candidate
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.plan import Writing, plan_for
from dg_lsp.model.steps import Clock
from dg_lsp.model.task import Task
from dg_lsp.model.tokens import Join
from dg_lsp.text.messages import Draft

# The likeliest tokens that begin in a gap and end behind it that are looked at.
_CROSSING = 4
# Nothing more is written once what goes on has this share of the probability of what has ended, and no text that is so
# many nats behind the likeliest one goes on: fewer tokens, and as many right texts of 372
# (docs/research/candidates-and-judge.md).
_LEFT = 0.4
_BEHIND = 4.0


@dataclass(frozen=True, slots=True)
class _Ends:
    """The tokens that begin what is behind a gap.

    whole: those that lie behind it. crossing: those that begin in it, each with its part in the gap.
    """

    whole: tuple[int, ...]
    crossing: tuple[tuple[int, str], ...]


def lines(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write texts for the gap; return them, the likeliest first."""
    prefix, _ = task.tokens
    yield from task.encode(prefix)
    texts = yield from draft_line(task)
    return [Candidate(text, {"drafted": rank}) for rank, text in enumerate(texts)]


@torch.inference_mode()
def draft_line(task: Task) -> Generator[Draft, None, list[str]]:
    """Write texts behind the prefix, which the cache holds; yield a Draft of step 0 before each token.

    Returns the texts, the likeliest first. A text ends where the suffix begins: its likelihood is that of its tokens
    and of a token that begins what is behind the gap. The last token before the gap is written again, as one of those
    that begin with its text: behind `x = ` the blank and the `f` of `f()` are one token.
    """
    start = start_behind(task.model, task.cache, task.join)
    writing = plan_for(task.request).drafts
    ends = _ends(task.model, task.join)
    policy = _UpToSuffix(task.model, ends, start.again, writing, task.clock)
    yield from search(start, policy, task.clock)
    return policy.likeliest()


@dataclass(slots=True)
class _UpToSuffix:
    """A text ends before each token that begins the suffix; all likely ones are kept.

    again: the text that the tokens begin with and that is no part of the gap. found: the log likelihood of each text
    that has ended.
    """

    model: Checkpoint
    ends: _Ends
    again: str
    writing: Writing
    clock: Clock
    found: dict[str, float] = field(default_factory=dict)

    @property
    def limit(self) -> int:
        """The tokens that a text has at most."""
        return self.writing.tokens

    def first(self, states: Tensor) -> list[Row]:
        """Return the likeliest texts of one token."""
        return self.longer([Row(0, ())], states)

    def longer(self, rows: Sequence[Row], states: Tensor) -> list[Row]:
        """Note how likely each text ends here; return the likeliest texts that are a token longer.

        Texts far behind the best one are dropped.
        """
        never = sorted(self.model.special | _line_ends(self.model.texts))
        before = torch.tensor([row.score for row in rows], device=states.device)
        totals = before[:, None] + self.model.network.logits(states).log_softmax(-1)
        for number, row in enumerate(rows):
            if not row.tokens and self.again:
                totals[number] = only(totals[number], tokens_from(self.model, self.again))
                continue
            written = self.model.tokenizer.decode(list(row.tokens), skip_special_tokens=False)
            for text, score in _ended(totals[number], self.ends, written[len(self.again) :]):
                known = self.found.get(text, -math.inf)
                most = max(known, score)
                self.found[text] = most + math.log(math.exp(known - most) + math.exp(score - most))
            totals[number, never] = -torch.inf
        scores, places = totals.flatten().topk(self.writing.rows)
        best = max([float(scores[0]), *self.found.values()])
        possible = int((scores > best - _BEHIND).sum())
        found = zip(scores[:possible].tolist(), places[:possible].tolist(), strict=True)
        split = ((score, *divmod(place, totals.shape[1])) for score, place in found)
        return [Row(parent, (*rows[parent].tokens, token), score) for score, parent, token in split]

    def is_enough(self, rows: Sequence[Row]) -> bool:
        """Return whether what goes on is unlikely beside what has ended."""
        ended = float(torch.tensor(list(self.found.values())).logsumexp(0))
        going_on = torch.tensor([row.score for row in rows]).logsumexp(0)
        return float(going_on) < ended + math.log(_LEFT)

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:  # noqa: ARG002
        """Return a Draft without text: a beginning says little of the text that will be chosen."""
        return Draft(0, (), self.clock.milliseconds())

    def likeliest(self) -> list[str]:
        """Return the likeliest texts that have ended, the best first."""
        texts = sorted(self.found, key=lambda text: -self.found[text])[: self.writing.rows]
        return [text for text in texts if self.found[text] > self.found[texts[0]] - _BEHIND]


def _ends(model: Checkpoint, join: Join) -> _Ends:
    """The tokens that begin what is behind the gap.

    Those whose text the suffix begins with, alone or behind a part of the gap: `)` and `))` in front of `)`. Where a
    line ends behind the gap, all that begin with a line end: it may be one token with the indentation.
    """
    suffix = join.behind or "\n"
    whole, crossing = list(join.end if not join.behind else ()), list[tuple[int, str]]()
    for token, text in enumerate(model.texts):
        at = text.find(suffix[0])
        while at >= 0 and token not in model.special:
            if suffix[0] in LINE_BREAKS or suffix.startswith(text[at:]):
                if at:
                    crossing.append((token, text[:at]))
                else:
                    whole.append(token)
            at = -1 if suffix[0] in LINE_BREAKS else text.find(suffix[0], at + 1)
    first = model.encode(suffix)[0]
    return _Ends(tuple(whole or [first]), tuple((t, part) for t, part in crossing if part.strip()))


def _ended(totals: Tensor, ends: _Ends, text: str) -> Iterator[tuple[str, float]]:
    """The texts that end behind `text`, with their scores; `totals` [vocabulary] are those with one token more."""
    if text:
        yield text, float(totals[list(ends.whole)].logsumexp(0))
    if ends.crossing:
        scores, places = totals[[token for token, _ in ends.crossing]].topk(
            min(_CROSSING, len(ends.crossing))
        )
        for score, place in zip(scores.tolist(), places.tolist(), strict=True):
            yield text + ends.crossing[place][1], score


@lru_cache(maxsize=4)
def _line_ends(texts: tuple[str, ...]) -> frozenset[int]:
    """The tokens that hold a line end."""
    return frozenset(token for token, text in enumerate(texts) if any(b in text for b in LINE_BREAKS))
