"""The sampler: accept and re-noise slots by the Entropy Bounded sampler of transformers, on a canvas with anchors.

Knows logits and noise; knows no network and no loop.
"""

from typing import Protocol

import torch
from torch import Tensor
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSampler,
    EntropyBoundSamplerConfig,
)

from dg_lsp.model.canvas import FREE, Canvas


class Noise(Protocol):
    """The source of a request's random tokens."""

    def tokens(self, canvas: Canvas) -> Tensor:
        """Uniform random tokens, int64 [rows, length]; only those at free slots are used."""
        ...

    def pick(self, probabilities: Tensor, numbers: Tensor) -> Tensor:
        """One token drawn from each row of `probabilities` [N, vocabulary]: int64 [N].

        numbers: int64 [N], which of the canvas's free slots the rows belong to.
        """
        ...


class SeededNoise:
    """Noise from a seeded generator of its own, drawn for free slots only.

    `pick` inverts the cumulative distribution at one uniform number a row. `torch.multinomial` draws from the same
    distribution, and needs a random number for every token of the vocabulary.
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
        cumulative = probabilities.double().cumsum(-1)
        point = torch.rand(
            len(probabilities), 1, generator=self._generator, device=probabilities.device, dtype=torch.float64
        )
        # The last sum is not exactly 1, so the point is scaled by it; the clamp keeps a point at the very end in range.
        drawn = torch.searchsorted(cumulative, point * cumulative[:, -1:], right=True).squeeze(1)
        return drawn.clamp(max=probabilities.shape[-1] - 1)


def entropies(logits: Tensor) -> Tensor:
    """The entropy in nats of each distribution: logits [..., vocabulary] -> [...].

    The same operations in the same order as `torch.distributions.Categorical(logits=...).entropy()`, so that slots are
    accepted exactly as in transformers, bit for bit.
    """
    normal = logits - logits.logsumexp(-1, keepdim=True)
    return -(normal * normal.softmax(-1)).sum(-1)


class AnchoredSampler(EntropyBoundSampler):
    """`EntropyBoundSampler` (transformers, generation_diffusion_gemma.py; arXiv:2505.24857) on a canvas with anchors.

    Law 1 holds because `renoise_canvas` of the base class takes its noise from `initialize_canvas`, which returns the
    anchors in their slots; and because only the entropies of free slots are summed, so that anchors use up nothing of
    the bound.

    entropy_bound: nats. start: int64 [rows, length], the tokens that free slots hold at first; FREE, and no start at
    all, is noise.
    """

    def __init__(
        self, canvas: Canvas, entropy_bound: float, noise: Noise, start: Tensor | None = None
    ) -> None:
        super().__init__(EntropyBoundSamplerConfig(entropy_bound), canvas.length, 0, 0)
        self.canvas, self.noise, self.start = canvas, noise, start
        self.free = canvas.free_slots

    def first_canvas(self) -> Tensor:
        """The canvas that the first step starts from, int64 [rows, length]: noise, with the start's tokens in it."""
        drawn = self.initialize_canvas(self.canvas.rows, self.canvas.tokens.device)
        if self.start is None:
            return drawn
        return torch.where((self.start == FREE) | self.canvas.anchored, drawn, self.start)

    def initialize_canvas(self, batch_size: int, device: torch.device) -> Tensor:  # noqa: ARG002
        """The canvas with new noise in its free slots: int64 [rows, length]."""
        assert batch_size == self.canvas.rows
        drawn = self.noise.tokens(self.canvas)
        return torch.where(self.canvas.anchored, self.canvas.tokens, drawn)

    def accept(self, current: Tensor, drawn: Tensor, entropy: Tensor) -> Tensor:
        """`current` [rows, length] with the drawn tokens in the accepted free slots.

        In each row free slots are accepted in the order of their entropy, while the sum of the entropies accepted
        before stays within the bound. drawn: int64 [F], a token for each free slot. entropy: nats [F].
        """
        # Anchors are sorted first, as minus infinity, and cost 0, so that they add nothing to the sums of free slots.
        order = torch.full(current.shape, -torch.inf, device=current.device)
        order.view(-1)[self.free] = entropy
        values, columns = order.sort(-1)
        cost = values.masked_fill(values == -torch.inf, 0.0)
        within = cost.cumsum(-1) - cost <= self.entropy_bound
        self.accepted_token_mask = torch.zeros_like(within).scatter(-1, columns, within)
        proposal = current.clone()
        proposal.view(-1)[self.free] = drawn
        return torch.where(self.accepted_token_mask, proposal, current)
