"""The batches of a run: drawn from the corpus and given noise, by processes that run ahead of the steps where asked.

Batch n depends on the seed and on n alone, so a continued run, or one that has more processes, sees the same batches.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from dg_lsp.training.layouts import Bucket, Cutter, draw
from dg_lsp.training.objective import corrupt, draw_times

_AHEAD = 8  # batches that a process prepares before they are asked for


@dataclass(frozen=True, slots=True)
class Draws(Dataset[tuple[Tensor, ...]]):
    """The batches by their numbers, each the tensors of a Batch and then the noisy canvases.

    buckets: the shapes of batches. infill: the share of canvases with a gap. vocabulary: the tokens that noise draws
    from. seed: of everything random.
    """

    cutter: Cutter
    buckets: Sequence[Bucket]
    infill: float
    vocabulary: int
    seed: int

    def __getitem__(self, number: int) -> tuple[Tensor, ...]:
        chance = random.Random(f"{self.seed} {number}")
        bucket = chance.choices(self.buckets, [b.share for b in self.buckets])[0]
        batch = draw(self.cutter, bucket, chance, self.infill)
        noise = torch.Generator().manual_seed(chance.getrandbits(60))
        noisy = corrupt(batch, draw_times(batch, noise), self.vocabulary, noise)
        return batch.tokens, batch.canvas, batch.free, batch.starts, noisy


def batches(draws: Draws, first: int, processes: int) -> Iterator[tuple[Tensor, ...]]:
    """The batches from number `first` on, without end, drawn by as many `processes`, or with 0 by this one."""
    return iter(
        DataLoader(
            draws,
            batch_size=None,
            sampler=itertools.count(first),
            num_workers=processes,
            prefetch_factor=_AHEAD if processes else None,
            pin_memory=torch.cuda.is_available(),
        )
    )
