"""One statement that may go on over several lines, written from left to right: a call, a header with its first line."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dg_lsp.model.beam import Row, only, search, start_behind, text_logits, tokens_from
from dg_lsp.model.candidates import Candidate, candidates_of, fitted, none_of
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.task import Task
from dg_lsp.text.documents.document import LINE_END
from dg_lsp.text.fills.stitch import goes_round
from dg_lsp.text.messages import Draft, Infill

# A statement has so many lines and tokens at most.
LINES, TOKENS = 8, 128


def statements(task: Task) -> Generator[Draft, None, list[Candidate]]:
    """Write the likeliest statement up to its end, which may be lines below; return it, or the reason against it.

    Texts of one line are those of `lines_in_sight`: this is for places where none of them is a statement by itself,
    such as `log(` with an argument a line.
    """
    prefix, _ = task.tokens
    yield from task.encode(prefix)
    text = yield from _written(task)
    fill = fitted(task.request, text)
    return candidates_of("drafted", [none_of([fill], task.clock.why_nothing()) if fill.refusal else fill])


@torch.inference_mode()
def _written(task: Task) -> Generator[Draft, None, str]:
    """Write a statement behind the prefix, which the cache holds; yield a Draft before each token."""
    start = start_behind(task.model, task.cache, task.join)
    policy = _UpToWhole(task.model, task.request, start.again, task.clock)
    text = yield from search(start, policy, task.clock)
    return text


@dataclass(slots=True)
class _UpToWhole:
    """The likeliest token each time, until the statement is whole, the network ends it, or it has too many lines.

    again: the text that the tokens begin with and that is no part of the gap.
    """

    model: Checkpoint
    request: Infill
    again: str
    clock: Clock
    text: str = ""
    done: bool = False
    limit: int = TOKENS

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
            self.done = True
            return Row(0, tokens, text=self.text)
        self.text = self.model.tokenizer.decode(list(tokens))[len(self.again) :]
        *whole, last = LINE_END.split(self.text)
        # The text of the last line may be longer yet: whether a statement ends is known where the next line begins.
        if whole and last.strip():
            is_whole = not fitted(self.request, "\n".join(whole)).refusal
            self.done = is_whole or len(whole) >= LINES or goes_round(self.text)
        if self.done:
            self.text = "\n".join(whole)
        return Row(0, tokens, text=self.text)

    def is_enough(self, rows: Sequence[Row]) -> bool:  # noqa: ARG002
        """Return whether the statement has ended."""
        return self.done

    def draft(self, count: int, rows: Sequence[Row]) -> Draft:  # noqa: ARG002
        """Return a Draft without text: the judge has not chosen yet."""
        return Draft(0, (), self.clock.milliseconds())

    def result(self, rows: Sequence[Row]) -> str:  # noqa: ARG002
        """Return the text."""
        return self.text
