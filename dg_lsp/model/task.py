"""A task: a request beside all that it is worked on with, which is what every source is given."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.candidates import Candidate
from dg_lsp.model.canvas import Seam
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.steps import Clock
from dg_lsp.model.tokens import Join, join_of, tokenise
from dg_lsp.text.messages import Draft, Fill, Infill


@dataclass(frozen=True)
class Task:
    """A request, the model and the cache that it is filled with, and its clock.

    fill: fills a gap that a source has made of this one, as `dg_lsp.model.fill.fill` does.
    """

    model: Checkpoint
    cache: PrefixCache
    request: Infill
    clock: Clock
    fill: Callable[[Infill], Iterator[Draft | Fill]]

    @cached_property
    def tokens(self) -> tuple[tuple[int, ...], Seam]:
        """The tokens to encode, and those on both sides of the gap."""
        return tokenise(self.model, self.request)

    @cached_property
    def join(self) -> Join:
        """The text that candidates are tokenised together with."""
        return join_of(self.model, self.request, *self.tokens)

    def encode(self, prefix: Sequence[int]) -> Generator[Draft, None, None]:
        """Make the cache hold `prefix`; a Draft after each chunk lets the caller cancel."""
        # A request with a deadline need not be reproducible.
        exact = self.request.deadline is None
        for _ in extend_to(self.model.network, self.cache, prefix, exact=exact):
            yield Draft(0, (), self.clock.milliseconds())

    def wanting(self, alternatives: int) -> "Task":
        """The same task for another number of texts."""
        return replace(self, request=replace(self.request, alternatives=alternatives))


# Yields Drafts, and returns what it has found, the best first; a candidate that was checked holds its Fill.
Source = Callable[[Task], Generator[Draft, None, list[Candidate]]]
