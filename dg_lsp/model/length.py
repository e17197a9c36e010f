"""The search for a gap's length: each candidate length is a row of a batch, scored after a few denoising steps.

A canvas has no delete token, so the length must be right to the token. Knows canvases and steps; knows no text.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.canvas import Seam, anchors_from, lay_out, stack
from dg_lsp.model.networks.base import Denoiser
from dg_lsp.model.sampler import AnchoredSampler, SeededNoise
from dg_lsp.model.step import Schedule, Step

WATCHED = 12  # anchors directly after the gap whose likelihood is scored
# Anchors after the watched ones; their mean likelihood is taken for a row without watched anchors.
_REFERENCE = 24


@dataclass(frozen=True, slots=True)
class Search:
    """The settings of a search.

    lengths: those scored in the first round, in tokens. draws: rows of each length, which differ by their noise. steps:
    denoising steps of a round. refined: lengths scored in the second round at most. prior: mean and standard deviation
    of the logarithm of the lengths of such gaps; None means that every length is equally likely.
    """

    lengths: tuple[int, ...]
    draws: int = 2
    steps: int = 2
    refined: int = 8
    prior: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class ScoredLength:
    """A gap length in tokens and its score in nats; lower is better."""

    length: int
    score: float


def search_length(
    network: Denoiser, cache: PrefixCache, layout: tuple[Seam, int], search: Search, seed: int
) -> Iterator[tuple[ScoredLength, ...]]:
    """Score gap lengths for `layout` = (seam, canvas length); yield all scores so far, best first, after each round.

    1. Score a coarse grid of lengths.  2. Score the lengths between the best ones and their neighbours on the grid.

    The score of a length is the mean over its rows of two terms, plus the negative log of its prior:
    - the mean entropy of the free slots;
    - the mean leave-one-out -log p of the WATCHED anchors after the gap under the raw logits. A network that tells
      noise from text takes anchors at a wrong distance for noise. The correction is from arXiv:2605.22765, with half
      of the tokens kept.
    A length that fills the canvas means a gap that continues beyond it. Such a row has no anchors after the gap, so
    its second term is the mean over the _REFERENCE anchors of the other rows, which lie so far after the gap that
    they fit wherever it ends. It needs another length beside it.
    """
    # 1. The grid is dense at the lengths that are common for gaps of this kind.
    scores = _score(network, cache, layout, search, seed)
    yield _ranked(scores)
    # 2. The grid leaves lengths out, and the length must be right to the token.
    seam, size = layout
    between = neighbours([s for s in _ranked(scores) if s.length < seam.room(size, 0)], search)
    if between:
        scores |= _score(network, cache, layout, replace(search, lengths=between), seed + 1)
        yield _ranked(scores)


def leave_one_out(neg_log_likelihood: Tensor, vocabulary: int) -> Tensor:
    """-log p of tokens as if they were not in their own slots: [W] nats -> [W] nats (float64).

    Noise that keeps a share a of the tokens, and replaces the others uniformly from K tokens, multiplies the odds of
    the token seen by 1 + K a / (1 - a). With a = 1/2 the odds are divided by 1 + K.
    """
    seen = neg_log_likelihood.double()
    chance = (-seen).exp()
    return seen + ((1 - chance).clamp(min=0) * (1 + vocabulary) + chance).log()


def _score(
    network: Denoiser, cache: PrefixCache, layout: tuple[Seam, int], search: Search, seed: int
) -> dict[int, float]:
    """The scores of `search.lengths` from one batch; lower is better."""
    seam, size = layout
    lengths = [n for n in search.lengths for _ in range(search.draws)]
    device = network.device
    canvas = stack([lay_out(seam, n, size) for n in lengths]).to(device)
    ends = [len(seam.head) + n for n in lengths]
    watched = anchors_from(canvas, ends, WATCHED)
    has_watched = torch.bincount(watched // size, minlength=canvas.rows) > 0
    reference = watched[:0]
    if not bool(has_watched.all()):
        reference = anchors_from(canvas, [end + WATCHED for end in ends], _REFERENCE)
    vocabulary = network.text_config.vocab_size
    sampler = AnchoredSampler(canvas, Schedule().entropy_bound, SeededNoise(seed, vocabulary, device))
    ahead = Schedule(steps=search.steps)
    last: Step | None = None
    for step in network.denoise(cache, sampler, ahead, torch.cat([watched, reference])):
        last = step
    assert last is not None
    likelihoods = leave_one_out(last.neg_log_likelihood, vocabulary)
    stand_in = likelihoods[len(watched) :].mean() if len(reference) else likelihoods.new_zeros(())
    anchors = _row_mean(likelihoods[: len(watched)], watched // size, canvas.rows)
    entropies = [last.entropy[row, len(seam.head) : end].mean() for row, end in enumerate(ends)]
    rows = torch.stack(entropies) + torch.where(has_watched, anchors, stand_in)
    means = rows.view(len(search.lengths), search.draws).mean(1).tolist()
    return {n: mean + neg_log_prior(n, search.prior) for n, mean in zip(search.lengths, means, strict=True)}


def neg_log_prior(length: int, prior: tuple[float, float] | None) -> float:
    """-log p of `length` in nats, up to a constant, for log-normal lengths; 0 without a prior.

    prior: mean and standard deviation of the logarithm of the length.
    """
    if prior is None:
        return 0.0
    mean, deviation = prior
    return math.log(length) + ((math.log(length) - mean) / deviation) ** 2 / 2


def _row_mean(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """The mean of the `values` [N] that belong to each of `count` rows: [count]; 0 for a row without any."""
    total = torch.zeros(count, dtype=values.dtype, device=values.device).index_add(0, rows, values)
    return total / torch.bincount(rows, minlength=count).clamp(min=1)


def _ranked(scores: dict[int, float]) -> tuple[ScoredLength, ...]:
    return tuple(sorted((ScoredLength(n, s) for n, s in scores.items()), key=lambda c: (c.score, c.length)))


def neighbours(ranked: Sequence[ScoredLength], search: Search) -> tuple[int, ...]:
    """Up to `search.refined` lengths not scored yet, those next to the two best ones, ascending."""
    known = sorted(c.length for c in ranked)
    found: dict[int, None] = {}
    for best in ranked[:2]:
        at = known.index(best.length)
        low, high = known[max(at - 1, 0)], known[min(at + 1, len(known) - 1)]
        inside = [n for n in range(low, high + 1) if n not in known]
        found |= dict.fromkeys(sorted(inside, key=lambda n: abs(n - best.length)))
    return tuple(sorted(list(found)[: search.refined]))


def lengths_that_fit(lengths: Iterable[int], room: int) -> tuple[int, ...]:
    """The lengths, of `lengths`, that `room` free slots can hold; `room` itself if none fits."""
    return tuple(n for n in lengths if n <= room) or (max(room, 1),)
