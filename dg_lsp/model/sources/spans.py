"""The text of a span, such as the lines between `if a:` and `else:`, which ends where the text below follows best."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dg_lsp.guard import ended as end_of
from dg_lsp.guard import goes_round, is_last_of_span, site_of
from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.beam import Row, only, search, start_after, text_logits, tokens_from
from dg_lsp.model.candidates import Candidate, candidates_of, fitted, none_of
from dg_lsp.model.clock import draft_of
from dg_lsp.model.likelihood import neg_log_likelihoods_of_tokens
from dg_lsp.model.sources.bodies import beginning_of
from dg_lsp.model.task import Task
from dg_lsp.model.tokens import read_together, suffix_beginning
from dg_lsp.source.document import LINE_END

# Line ends of a text at which it may end; nothing is written below the last one.
_LINES = 14
# Lines below the gap that are written again, all at once, where a text has gone past its end.
_AGAIN = 2


def spans(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write the likeliest text below the gap's first line on; return it up to its best end, or the reason against it.

    For lines between two others, such as `if a:` up to the `else:` after the gap: no syntax shows their end, and the
    network seldom ends the text there. So each line end of the text is rated by how likely the text below the gap is
    after it, and the text ends at the likeliest one that can be shown; if nothing is below, at the last one.
    """
    request, clock = task.request, task.clock
    yield from task.encode(task.tokens[0])
    policy = _PastTheEnd(task)
    written = yield from _written(task, policy)
    yield Draft(0, (), clock.milliseconds())
    refused = list[Fill]()
    for text in _likeliest_first(task, _ends(request, written)):
        fill = fitted(request, text)
        if not fill.refusal:
            return candidates_of("drafted", [replace(fill, shortened=not policy.done)])
        refused.append(fill)
    return candidates_of("drafted", [none_of(refused, clock.why_nothing())])


@torch.inference_mode()
def _written(task: Task, policy: "_PastTheEnd") -> Generator[Draft, None, str]:
    """Write a text after the prefix, which the cache holds; yield a Draft before each token."""
    start = start_after(task.model, task.cache, task.join)
    policy.again = start.again
    return (yield from search(start, policy, task.clock))


def _ends(request: Infill, text: str) -> list[str]:
    """Return the beginnings of `text` that end with a line, the shortest first, and all of it.

    They have their line end unless that is below the gap.
    """
    first = LINE_END.split(request.suffix, maxsplit=1)[0]
    inside = bool(first.strip())
    ends = [found.end() if inside else found.start() for found in LINE_END.finditer(text)]
    starts = dict.fromkeys(text[:end] for end in (*ends, len(text)))
    return [start for start in starts if start.strip()]


def _likeliest_first(task: Task, texts: Sequence[str]) -> list[str]:
    """Return `texts`, that one first after which the network is most likely to end, with the text below the gap next.

    If nothing is below the gap in its function, the longest comes first.
    """
    model, join = task.model, task.join
    if len(texts) < 2 or is_last_of_span(site_of(task.request)):
        return [*reversed(texts)]
    below = replace(join, after=suffix_beginning(model, task.request), end=())
    read = [read_together(model, one, text) for text in texts for one in (join, below)]
    tokens, starts = [row for row, _ in read], [after for _, (_, _, after) in read]
    nats = neg_log_likelihoods_of_tokens(model.network, task.cache, tokens, starts, join.kept)
    unlikely = [sum(end) + sum(suffix) for end, suffix in zip(nats[::2], nats[1::2], strict=True)]
    return [text for _, text in sorted(zip(unlikely, texts, strict=True), key=lambda pair: pair[0])]


@dataclass(slots=True)
class _PastTheEnd:
    """The likeliest token each time, until the text is certainly past its end, or repeats itself.

    again: the text that the tokens begin with and that is no part of the gap. done: nothing more need be written.
    """

    task: Task
    again: str = ""
    text: str = ""
    done: bool = False

    @property
    def limit(self) -> int:
        """The tokens that a text has at most."""
        return self.task.plan.drafts.tokens

    def first(self, states: Tensor) -> list[Row]:
        """Return the likeliest text of one token."""
        allowed = only(text_logits(self.task.model, states)[0], tokens_from(self.task.model, self.again))
        return [self._row((), int(allowed.argmax()))]

    def longer(self, rows: Sequence[Row], states: Tensor) -> list[Row]:
        """Return the text with its likeliest next token; [] where it is past its end."""
        row = self._row(rows[0].tokens, int(text_logits(self.task.model, states)[0].argmax()))
        return [] if self.done else [row]

    def _row(self, before: tuple[int, ...], token: int) -> Row:
        tokens = (*before, token)
        if token in self.task.model.ends:
            self.done = True
            return Row(0, tokens, text=self.text)
        self.text = self.task.model.tokenizer.decode(list(tokens))[len(self.again) :]
        *whole, last = LINE_END.split(self.text)
        # The text of the last line may be longer yet: whether a text is whole is known where the next line begins.
        if whole and last.strip():
            self.done = self._is_past_its_end(whole)
        if self.done:
            self.text = self.text[: len(self.text) - len(last)]
        return Row(0, tokens, text=self.text)

    def _is_past_its_end(self, whole: Sequence[str]) -> bool:
        """Return whether the text, of the `whole` lines and an unfinished one, need not be longer."""
        lines = [line.rstrip() for line in whole if line.strip()]
        below = [line.rstrip() for line in LINE_END.split(self.task.request.suffix) if line.strip()][:_AGAIN]
        again = bool(below) and lines[-len(below) :] == below
        left = end_of(self.task.request, self.text).ended
        return again or left or len(whole) >= _LINES or goes_round(self.text)

    def is_enough(self, rows: Sequence[Row]) -> bool:  # noqa: ARG002
        """Return whether the text is past its end."""
        return self.done

    def has_text(self, rows: Sequence[Row]) -> bool:
        """Return whether the unfinished text has a whole statement."""
        return beginning_of(self.task.request, rows[0].text).shortened

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:
        """Return the text so far."""
        return draft_of(count, rows[0].text, self.task.clock)

    def result(self, rows: Sequence[Row]) -> str:  # noqa: ARG002
        """Return the text."""
        return self.text
