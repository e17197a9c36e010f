"""A step: the result of one denoising step, and the schedule by which the steps follow each other."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a denoising; the defaults are those of the released checkpoint's generation_config.json.

    steps: denoising steps at most. t_max, t_min: the temperature falls linearly from the one to the other.
    entropy_bound: nats, of AnchoredSampler. confidence, stability: a row finishes when the mean entropy of its free
    slots is below `confidence` nats and its best tokens equal those of each of the `stability` steps before.
    """

    steps: int = 48
    t_min: float = 0.4
    t_max: float = 0.8
    entropy_bound: float = 0.1
    confidence: float = 0.005
    stability: int = 1

    def temperature(self, step: int) -> Tensor:
        """The temperature of step `step` (counted from 1), a 0-d tensor as transformers computes it."""
        left = torch.tensor(self.steps - step + 1, dtype=torch.int32)
        return self.t_min + ((self.t_max - self.t_min) * (left / self.steps))


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one denoising step for all rows.

    number: counted from 1. best: int64 [rows, length], the most likely token of each free slot, and the anchors.
    canvas: int64 [rows, length], the tokens that the next step starts from. accepted: bool [rows, length], True at
    anchors. entropy: nats [rows, length], 0 at anchors. neg_log_likelihood: nats [W], -log p of each watched anchor
    under the raw logits (before temperature). finished: bool [rows].
    """

    number: int
    best: Tensor
    canvas: Tensor
    accepted: Tensor
    entropy: Tensor
    neg_log_likelihood: Tensor
    finished: Tensor
