"""Accepting and re-noising: the Entropy Bounded sampler of transformers, made to leave anchors alone.

Knows logits and noise; knows no network and no loop. All vocabulary work is on the free rows only.
"""

from typing import Protocol

import torch
from torch import Tensor
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSampler,
    EntropyBoundSamplerConfig,
)

from dg_lsp.engine.canvas import Canvas


class Noise(Protocol):
    """Where the random numbers of one request come from."""

    def tokens(self, canvas: Canvas) -> Tensor:
        """Uniform random tokens, int64 [rows, length]; only those at free slots are looked at."""
        ...

    def pick(self, probabilities: Tensor, numbers: Tensor) -> Tensor:
        """One token drawn from each distribution, [N, V] -> int64 [N]; `numbers` says of which free slots."""
        ...


class SeededNoise:
    """Noise that draws for the free slots only, from a generator of its own.

    `pick` inverts the cumulative distribution at one uniform number a row, V times fewer random numbers than
    the exponential race of `torch.multinomial`; both draw from the same distribution.
    """

    def __init__(self, seed: int, vocabulary: int, device: torch.device) -> None:
        self._generator = torch.Generator(device).manual_seed(seed % 2**63)
        self._vocabulary = vocabulary

    def tokens(self, canvas: Canvas) -> Tensor:
        slots = canvas.free_slots
        drawn = torch.randint(self._vocabulary, slots.shape, generator=self._generator, device=slots.device)
        tokens = canvas.tokens.clone()
        tokens.view(-1)[slots] = drawn
        return tokens

    def pick(self, probabilities: Tensor, numbers: Tensor) -> Tensor:  # noqa: ARG002
        steps = probabilities.double().cumsum(-1)
        point = torch.rand(
            len(probabilities), 1, generator=self._generator, device=probabilities.device, dtype=torch.float64
        )
        # The last step is a shade off 1, so the point is scaled by it, and the clamp keeps the end inside.
        drawn = torch.searchsorted(steps, point * steps[:, -1:], right=True).squeeze(1)
        return drawn.clamp(max=probabilities.shape[-1] - 1)


def entropies(logits: Tensor) -> Tensor:
    """Entropy in nats of each row: [..., V] -> [...].

    The operations and their order are those of `torch.distributions.Categorical(logits=...).entropy()`, so
    that acceptance is decided as transformers decides it, to the last bit, without its argument checks.
    """
    normal = logits - logits.logsumexp(-1, keepdim=True)
    return -(normal * normal.softmax(-1)).sum(-1)


class AnchoredSampler(EntropyBoundSampler):
    """`EntropyBoundSampler` (transformers; after arXiv:2505.24857) on a canvas with anchors.

    Law 1 holds by construction: `renoise_canvas` of the base class takes its noise from `initialize_canvas`,
    and what that gives already holds the anchors; the entropies that are sorted and summed are those of the
    free rows, so an anchor costs nothing of the bound.
    """

    def __init__(self, canvas: Canvas, entropy_bound: float, noise: Noise) -> None:
        super().__init__(EntropyBoundSamplerConfig(entropy_bound), canvas.length, 0, 0)
        self.canvas, self.noise = canvas, noise
        self.free = canvas.free_slots

    def initialize_canvas(self, batch_size: int, device: torch.device) -> Tensor:  # noqa: ARG002
        """The canvas with fresh noise in its free slots: int64 [rows, length]."""
        assert batch_size == self.canvas.rows
        drawn = self.noise.tokens(self.canvas)
        return torch.where(self.canvas.anchored, self.canvas.tokens, drawn)

    def accept(self, current: Tensor, drawn: Tensor, entropy: Tensor) -> Tensor:
        """`current` [rows, length] with the free slots of least entropy replaced by what was drawn.

        In each row slots are taken in the order of their entropy while the sum of those taken before stays
        within the bound. `drawn` is int64 [F], `entropy` in nats is [F].
        """
        # Anchors stand at minus infinity in the order, so that the free slots' sums are formed without them.
        order = torch.full(current.shape, -torch.inf, device=current.device)
        order.view(-1)[self.free] = entropy
        values, columns = order.sort(-1)
        cost = values.masked_fill(values == -torch.inf, 0.0)
        within = cost.cumsum(-1) - cost <= self.entropy_bound
        self.accepted_token_mask = torch.zeros_like(within).scatter(-1, columns, within)
        proposal = current.clone()
        proposal.view(-1)[self.free] = drawn
        return torch.where(self.accepted_token_mask, proposal, current)
