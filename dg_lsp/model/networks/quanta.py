"""Quantised matrices as their numbers, scales and zeros, and the rounding that makes them. Knows tensors only.

A matrix has groups of neighbouring inputs, each with a scale and a zero of its own: a weight is
(q - middle) * scale + zero, where q is a whole number of four or eight bits and `middle` is 8 or 128.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

GROUPS = (128, 64, 32)  # inputs of a group; the larger, the fewer scales
_AT_ONCE = 1 << 18  # weights that are rounded at a time, so that they stay in the CPU's cache


class QuantizedError(Exception):
    """The matrices cannot be used here; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Format:
    """bits: 4 or 8. group: inputs that share a scale and a zero, a multiple of 32."""

    bits: int
    group: int

    def check(self, inputs: int) -> None:
        """Raise QuantizedError unless a matrix of `inputs` inputs can be kept in this format."""
        if self.bits not in (4, 8) or self.group not in GROUPS:
            raise QuantizedError(
                f"{self} is no format known here; use 4 or 8 bits and groups of 32, 64 or 128"
            )
        if inputs % self.group:
            raise QuantizedError(
                f"{inputs} inputs do not divide into groups of {self.group}; use smaller groups"
            )


@dataclass(frozen=True, slots=True)
class Quanta:
    """Quantised matrices: whole numbers uint8 [matrices, outputs, inputs], scales and zeros bf16 [..., groups]."""

    numbers: Tensor
    scale: Tensor
    zero: Tensor
    format: Format

    def dequantised(self) -> Tensor:
        """The weights in fp32 [matrices, outputs, inputs], exactly as the format defines them."""
        scale, zero = (t.float().repeat_interleave(self.format.group, -1) for t in (self.scale, self.zero))
        return (self.numbers.float() - 2 ** (self.format.bits - 1)) * scale + zero


def quantise(weight: Tensor, format_: Format) -> Quanta:
    """Round `weight` [matrices, outputs, inputs] to the nearest numbers between the extremes of each group.

    Where a weight is not finite, neither are the scale and the zero of its group.
    """
    format_.check(weight.shape[-1])
    numbers = torch.empty_like(weight, dtype=torch.uint8)
    shape = (*weight.shape[:-1], weight.shape[-1] // format_.group)
    scale, zero = (weight.new_empty(shape, dtype=torch.bfloat16) for _ in range(2))
    rows = max((_AT_ONCE if weight.device.type == "cpu" else weight.numel()) // weight.shape[-1], 1)
    parts = (t.flatten(0, 1).split(rows) for t in (weight, numbers, scale, zero))
    for some, *into in zip(*parts, strict=True):
        for tensor, found in zip(into, _rounded(some, format_), strict=True):
            tensor.copy_(found)
    return Quanta(numbers, scale, zero, format_)


def _rounded(weight: Tensor, format_: Format) -> tuple[Tensor, Tensor, Tensor]:
    """The numbers, scales and zeros of `weight` [outputs, inputs]."""
    parts = weight.float().unflatten(-1, (-1, format_.group))
    low, high = parts.amin(-1), parts.amax(-1)
    most, middle = 2**format_.bits - 1, 2 ** (format_.bits - 1)
    scale = ((high - low) / most).clamp(min=1e-8).bfloat16()
    # Numbers are chosen for the scale and the zero as bf16 rounds them.
    zero = (low + middle * scale.float()).bfloat16()
    numbers = (parts - zero.float()[..., None]).div_(scale.float()[..., None]).add_(middle)
    return numbers.round_().clamp_(0, most).flatten(-2), scale, zero


def size_in(bits: int, weights: int) -> float:
    """The most bytes of so many `weights` in `bits` bits: a group of 32 has a scale and a zero of two bytes each."""
    return weights * (bits / 8 + 4 / GROUPS[-1])
