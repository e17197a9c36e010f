"""How long is the gap? Several lengths as the rows of one canvas batch, scored by how well the anchors sit.

Knows canvases and steps; knows no text. There is no delete token, so a length must be right to the token.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dg_lsp.engine.cache import PrefixCache
from dg_lsp.engine.canvas import Seam, anchors_from, lay_out, stack
from dg_lsp.engine.denoise import Schedule, Step, denoise
from dg_lsp.engine.sampler import AnchoredSampler, SeededNoise

WATCHED = 12  # anchors behind the gap whose surprise is scored
_FAR = 24  # anchors behind those that tell what text in its right place surprises


@dataclass(frozen=True, slots=True)
class Search:
    """How a length is searched: the first lengths, noise draws of each, denoising steps a round looks ahead.

    usual: mean and standard deviation of the logarithm of such gaps' lengths; None where no length is likelier.
    """

    lengths: tuple[int, ...]
    draws: int = 2
    steps: int = 2
    refined: int = 8
    usual: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A length and its score in nats; lower is better."""

    length: int
    score: float


def search_length(
    network: Any, cache: PrefixCache, layout: tuple[Seam, int], search: Search, seed: int
) -> Iterator[tuple[Scored, ...]]:
    """Score gap lengths for `layout` = (seam, canvas length); yield all scores so far, best first, after each round.

    1. Score a coarse grid of lengths.  2. Score the lengths between the best and its neighbours on the grid.

    A length that fills the canvas stands for a gap that goes on beyond it; it needs another length beside it.

    The score is the mean entropy of the free slots plus the leave-one-out surprise of the first anchors behind
    the gap under the raw logits: a network that tells noise from text takes misplaced anchors for noise. An open
    layout has no such anchors; in their stead it takes the surprise of anchors further behind in the other rows,
    those that are right wherever the gap ends. All are means over draws; to that comes how rare a length is. The
    leave-one-out correction is that of arXiv:2605.22765 at a kept share of one half.
    """
    # 1. The grid is the prior: it is dense where gaps of this kind are common.
    scores = _score(network, cache, layout, search, seed)
    yield _ranked(scores)
    # 2. A length must be right to the token, and the grid is not.
    seam, size = layout
    between = _neighbours([s for s in _ranked(scores) if s.length < seam.room(size, 0)], search)
    if between:
        scores |= _score(network, cache, layout, replace(search, lengths=between), seed + 1)
        yield _ranked(scores)


def leave_one_out(surprise: Tensor, vocabulary: int) -> Tensor:
    """-log p of a token, without what the token's own presence in its slot says: [W] nats -> [W] nats.

    Uniform noise that keeps a share a of the tokens multiplies the odds of the token seen by 1 + K a / (1 - a)
    for a vocabulary of K; a = 1/2 is taken, so the odds are divided by 1 + K.
    """
    seen = surprise.double()
    chance = (-seen).exp()
    return seen + ((1 - chance).clamp(min=0) * (1 + vocabulary) + chance).log()


def _score(
    network: Any, cache: PrefixCache, layout: tuple[Seam, int], search: Search, seed: int
) -> dict[int, float]:
    seam, size = layout
    lengths = [n for n in search.lengths for _ in range(search.draws)]
    device = network.model.decoder.embed_tokens.weight.device
    canvas = stack([lay_out(seam, n, size) for n in lengths]).to(device)
    ends = [len(seam.head) + n for n in lengths]
    near = anchors_from(canvas, ends, WATCHED)
    placed = torch.bincount(near // size, minlength=canvas.rows) > 0
    far = near[:0] if bool(placed.all()) else anchors_from(canvas, [end + WATCHED for end in ends], _FAR)
    vocabulary = network.config.text_config.vocab_size
    sampler = AnchoredSampler(canvas, Schedule().entropy_bound, SeededNoise(seed, vocabulary, device))
    ahead = Schedule(steps=search.steps)
    last: Step | None = None
    for step in denoise(network, cache, sampler, ahead, torch.cat([near, far])):
        last = step
    assert last is not None
    surprise = leave_one_out(last.surprise, vocabulary)
    usual = surprise[len(near) :].mean() if len(far) else surprise.new_zeros(())
    doubts = [last.entropy[row, len(seam.head) : end].mean() for row, end in enumerate(ends)]
    rows = torch.stack(doubts) + torch.where(
        placed, _row_mean(surprise[: len(near)], near // size, canvas.rows), usual
    )
    per_length = rows.view(len(search.lengths), search.draws).mean(1).tolist()
    return {n: score + rarity(n, search.usual) for n, score in zip(search.lengths, per_length, strict=True)}


def rarity(length: int, usual: tuple[float, float] | None) -> float:
    """-log of the chance of `length` in nats, up to a constant, where lengths are log-normal; 0 without `usual`."""
    if usual is None:
        return 0.0
    mean, deviation = usual
    return math.log(length) + ((math.log(length) - mean) / deviation) ** 2 / 2


def _row_mean(values: Tensor, rows: Tensor, count: int) -> Tensor:
    total = torch.zeros(count, dtype=values.dtype, device=values.device).index_add(0, rows, values)
    return total / torch.bincount(rows, minlength=count).clamp(min=1)


def _ranked(scores: dict[int, float]) -> tuple[Scored, ...]:
    return tuple(sorted((Scored(n, s) for n, s in scores.items()), key=lambda c: (c.score, c.length)))


def _neighbours(ranked: Sequence[Scored], search: Search) -> tuple[int, ...]:
    """Up to `search.refined` unscored lengths nearest to the best ones."""
    known = sorted(c.length for c in ranked)
    found: dict[int, None] = {}
    for best in ranked[:2]:
        place = known.index(best.length)
        low, high = known[max(place - 1, 0)], known[min(place + 1, len(known) - 1)]
        inside = [n for n in range(low, high + 1) if n not in known]
        found |= dict.fromkeys(sorted(inside, key=lambda n: abs(n - best.length)))
    return tuple(sorted(list(found)[: search.refined]))


def fitting(lengths: Iterable[int], room: int) -> tuple[int, ...]:
    """The lengths that fit into `room` free slots; at least one."""
    return tuple(n for n in lengths if n <= room) or (max(room, 1),)
