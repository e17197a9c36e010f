"""The first fills of a document from the text near the gap, where all of the prompt would take too long to read."""

from collections.abc import Generator
from dataclasses import replace
from itertools import takewhile

from dg_lsp.model.cache import CHUNK, PrefixCache, extend_to
from dg_lsp.model.checkpoint import Checkpoint
from dg_lsp.model.prompts.fim import near_suffix
from dg_lsp.model.tokens import shorten_to, tokenise
from dg_lsp.text.messages import Infill

_SHARE = 0.5  # of the deadline, in which all of the prompt may be read
# Characters of the suffix, and tokens of the prefix and the suffix: with the tokens around them one chunk.
_SUFFIX, _READS = 300, CHUNK - 24


def near(model: Checkpoint, cache: PrefixCache, request: Infill) -> Infill:
    """Return `request`; with the text near the gap only where reading all that `cache` does not hold takes too long.

    The deadline then counts from the moment when that text is read: a late text is better than none.
    """
    costs, seconds = model.costs, request.deadline
    if costs is None or seconds is None or not model.ends:
        return request
    wanted, _ = tokenise(model, request)
    held = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(cache.tokens, wanted, strict=False)))
    if costs.seconds(len(wanted) - held) <= _SHARE * seconds:
        return request
    suffix = near_suffix(request.suffix, _SUFFIX)
    least = replace(request, suffix=suffix, context=(), deadline=seconds + costs.seconds(CHUNK))
    return shorten_to(model, least, _READS - len(model.encode(suffix)))


def read_on(model: Checkpoint, cache: PrefixCache, request: Infill) -> Generator[int, None, None]:
    """Make `cache` hold the whole prompt of `request`, which gets no fill; yield after each chunk."""
    if model.ends and request.deadline is not None:
        yield from extend_to(model.network, cache, tokenise(model, request)[0], exact=False)
