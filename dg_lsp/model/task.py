"""A task, the argument of every source: a request, and the model, cache and clock that it is filled with."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dg_lsp.messages import Draft, Fill, Infill
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.candidates import Candidate
from dg_lsp.model.canvas import Seam
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.clock import Clock
from dg_lsp.model.plan import Plan, plan_for
from dg_lsp.model.tokens import Join, join_of, tokenise
from dg_lsp.reasons import OutOfTime


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
    def plan(self) -> Plan:
        """The plan for the request on this machine."""
        return plan_for(self.request, self.model)

    @cached_property
    def join(self) -> Join:
        """The text that candidates are tokenised together with."""
        return join_of(self.model, self.request, *self.tokens)

    def encode(self, prefix: Sequence[int]) -> Generator[Draft, None, None]:
        """Make the cache hold `prefix`, as `read_in_time` does."""
        return read_in_time(self.model, self.cache, prefix, self.clock)

    def wanting(self, alternatives: int) -> "Task":
        """The same task for another number of texts."""
        return replace(self, request=replace(self.request, alternatives=alternatives))


def read_in_time(
    model: Checkpoint, cache: PrefixCache, prefix: Sequence[int], clock: Clock
) -> Generator[Draft, None, None]:
    """Make `cache` hold `prefix`; a Draft after each chunk, or part of one, lets the caller cancel.

    Raises:
        OutOfTime: the deadline passed long ago; the cache holds the tokens read so far.
    """
    held = cache.shared(prefix)
    # A request with a deadline need not be reproducible.
    for count in extend_to(model.network, cache, prefix, exact=clock.left() is None):
        yield Draft(0, (), clock.milliseconds(), pause=cache.is_paused)
        if held < count < len(prefix) and clock.is_hopeless():
            raise OutOfTime(
                f"the deadline passed when {count} of {len(prefix)} "
                "tokens before the gap had been read, which are kept; "
                "ask again, or set ghostDeadline or deadline higher, or prefixBytes lower"
            )
        held = count


# Yields Drafts, and returns candidates, the best first; one that was checked holds its Fill.
Source = Callable[[Task], Generator[Draft, None, list[Candidate]]]
