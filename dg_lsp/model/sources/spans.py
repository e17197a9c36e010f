"""The text of a span, such as the lines between `if a:` and `else:`, written from left to right up to its end."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dg_lsp.model.beam import Row, only, search, start_behind, text_logits, tokens_from
from dg_lsp.model.candidates import Candidate, candidates_of, fitted
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock, draft_of
from dg_lsp.model.plan import plan_for
from dg_lsp.model.sources.bodies import beginning_of
from dg_lsp.model.task import Task
from dg_lsp.text.documents.document import LINE_END
from dg_lsp.text.fills.stitch import goes_round
from dg_lsp.text.messages import Draft, Fill, Infill


def spans(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write the likeliest text up to where the network ends it; return it, or the reason against it.

    For lines between two others, such as `if a:` up to the `else:` behind the gap: no syntax shows their end. A text
    that the deadline ends is cut as that of a body is.
    """
    prefix, _ = task.tokens
    yield from task.encode(prefix)
    tokens = plan_for(task.request, task.model).drafts.tokens
    written = yield from _written(task, _UpToEnd(task.model, task.request, task.clock, tokens))
    if written.ended:
        fill = fitted(task.request, written.text)
    elif task.clock.is_over():
        fill = beginning_of(task.request, written.text)
    else:
        fill = Fill("", parses=False, refusal="the model does not end the text")
    return candidates_of("drafted", [fill])


@torch.inference_mode()
def _written(task: Task, policy: "_UpToEnd") -> Generator[Draft, None, "_UpToEnd"]:
    """Write a text behind the prefix, which the cache holds; yield a Draft before each token; return `policy`."""
    start = start_behind(task.model, task.cache, task.join)
    policy.again = start.again
    yield from search(start, policy, task.clock)
    return policy


@dataclass(slots=True)
class _UpToEnd:
    """The likeliest token each time, until the network ends the text, or the text repeats itself.

    again: the text that the tokens begin with and that is no part of the gap.
    """

    model: Checkpoint
    request: Infill
    clock: Clock
    limit: int
    again: str = ""
    text: str = ""
    done: bool = False
    ended: bool = False

    def first(self, states: Tensor) -> list[Row]:
        """Return the likeliest text of one token."""
        allowed = only(text_logits(self.model, states)[0], tokens_from(self.model, self.again))
        return [self._row((), int(allowed.argmax()))]

    def longer(self, rows: Sequence[Row], states: Tensor) -> list[Row]:
        """Return the text with its likeliest next token; [] where it ends."""
        row = self._row(rows[0].tokens, int(text_logits(self.model, states)[0].argmax()))
        return [] if self.done else [row]

    def _row(self, before: tuple[int, ...], token: int) -> Row:
        tokens = (*before, token)
        if token in self.model.ends:
            self.done = self.ended = True
            return Row(0, tokens, text=self.text)
        self.text = self.model.tokenizer.decode(list(tokens))[len(self.again) :]
        *whole, last = LINE_END.split(self.text)
        # The text of the last line may be longer yet: whether a text is whole is known where the next line begins.
        if whole and last.strip():
            self.done = goes_round(self.text)
        if self.done:
            self.text = "\n".join(whole)
        return Row(0, tokens, text=self.text)

    def is_enough(self, rows: Sequence[Row]) -> bool:  # noqa: ARG002
        """Return whether the text has ended."""
        return self.done

    def has_text(self, rows: Sequence[Row]) -> bool:
        """Return whether the unfinished text has a whole statement."""
        return beginning_of(self.request, rows[0].text).shortened

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:
        """Return the text so far."""
        return draft_of(count, rows[0].text, self.clock)

    def result(self, rows: Sequence[Row]) -> str:  # noqa: ARG002
        """Return the text."""
        return self.text
