"""Blocks of GGUF files as quantised matrices. Knows the layouts of blocks and tensors; knows no file and no network.

A block holds 32 or 256 neighbouring weights of a row. Its layouts are those of ggml-common.h (llama.cpp). Blocks in
four bits keep their numbers; only their scales are rounded, to bf16. Others are rounded to eight bits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from torch import Tensor

from dg_lsp.model.networks.quanta import Format, Quanta, QuantizedError

Kind = GGMLQuantizationType
PLAIN = {Kind.F32: torch.float32, Kind.F16: torch.float16, Kind.BF16: torch.bfloat16}
FOUR = Format(4, 32)
# Of blocks in four bits: numbers uint8 [blocks, weights], scales and smallest values in fp32 [blocks, groups of 32]; a
# weight is number * scale + smallest.
_Parts = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The first bytes of a block's scales, which are fp16; and the function that takes one in four bits apart."""

    scales: tuple[int, ...]
    parts: Callable[[Tensor], _Parts] | None = None


def _half(blocks: Tensor, at: int) -> Tensor:
    """The fp16 number at byte `at` of each block, in fp32 [blocks, 1]."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: Tensor) -> Tensor:
    """The low halves of each run of bytes [blocks, runs, bytes], then its high halves: [blocks, weights]."""
    return torch.stack([packed & 15, packed >> 4], 2).flatten(1)


def _q4_0(blocks: Tensor) -> _Parts:
    scale = _half(blocks, 0)
    return _nibbles(blocks[:, None, 2:]), scale, -8 * scale


def _q4_1(blocks: Tensor) -> _Parts:
    return _nibbles(blocks[:, None, 4:]), _half(blocks, 0), _half(blocks, 2)


def _q4_k(blocks: Tensor) -> _Parts:
    """256 weights: two scales, then eight scales and eight minima of six bits each, then the numbers."""
    low, middle, mixed = blocks[:, 4:16].unflatten(1, (3, 4)).unbind(1)
    scale = torch.cat([low & 63, (mixed & 15) | ((low >> 2) & 48)], 1)
    least = torch.cat([middle & 63, (mixed >> 4) | ((middle >> 2) & 48)], 1)
    numbers = _nibbles(blocks[:, 16:].unflatten(1, (4, 32)))
    return numbers, _half(blocks, 0) * scale, -_half(blocks, 2) * least


def _q6_k(blocks: Tensor) -> Tensor:
    """The weights in fp32 of 256 numbers each: their low four bits, their high two, scales of 16 in eight, a scale.

    The package gguf takes five times as long for them.
    """
    low, high = _nibbles(blocks[:, :128].unflatten(1, (2, 64))), blocks[:, 128:192].unflatten(1, (2, 32))
    high = torch.stack([high >> shift & 3 for shift in (0, 2, 4, 6)], 2).flatten(1)
    numbers = (low | high << 4).view(torch.int8).sub_(32).float()
    scale = _half(blocks, 208) * blocks[:, 192:208].view(torch.int8)
    return numbers.unflatten(1, (16, 16)).mul_(scale[:, :, None]).flatten(1)


_LAYOUTS = {
    Kind.Q4_0: _Layout((0,), _q4_0),
    Kind.Q4_1: _Layout((0, 2), _q4_1),
    Kind.Q4_K: _Layout((0, 2), _q4_k),
    Kind.Q5_0: _Layout((0,)),
    Kind.Q5_1: _Layout((0, 2)),
    Kind.Q8_0: _Layout((0,)),
    Kind.Q2_K: _Layout((80, 82)),
    Kind.Q3_K: _Layout((108,)),
    Kind.Q5_K: _Layout((0, 2)),
    Kind.Q6_K: _Layout((208,)),
}
KINDS = frozenset({*PLAIN, *_LAYOUTS})


def row_bytes(kind: Kind, inputs: int) -> int:
    """The bytes of a row of `inputs` weights.

    Raises:
        QuantizedError: no whole number of blocks makes such a row, or blocks of this kind are not read.
    """
    if kind not in KINDS:
        known = ", ".join(sorted(one.name for one in KINDS))
        raise QuantizedError(f"has blocks of the kind {kind.name}, and only {known} are read")
    weights, size = GGML_QUANT_SIZES[kind]
    if inputs % weights:
        raise QuantizedError(f"has rows of {inputs} weights, which no {kind.name} blocks of {weights} make")
    return inputs // weights * size


def has_four_bits(kind: Kind) -> bool:
    """Return whether blocks of `kind` are kept in four bits."""
    return kind in _LAYOUTS and _LAYOUTS[kind].parts is not None


def check(kind: Kind, raw: Tensor) -> None:
    """Check the scales of the rows `raw`, uint8 [rows, bytes].

    Raises:
        QuantizedError: one is not finite, or is zero though its block holds different numbers.
    """
    if kind in PLAIN:
        if not bool(torch.isfinite(weights_of(kind, raw)).all()):
            raise QuantizedError("holds numbers that are not finite")
        return
    blocks = raw.view(-1, GGML_QUANT_SIZES[kind][1])
    first, *_ = found = [_half(blocks, at) for at in _LAYOUTS[kind].scales]
    if not all(bool(torch.isfinite(scale).all()) for scale in found):
        raise QuantizedError("holds scales that are not finite")
    lost = blocks[(first == 0)[:, 0]].clone()
    if not len(lost):
        return
    at, *_ = _LAYOUTS[kind].scales
    lost[:, at : at + 2] = torch.tensor([0, 0x3C], dtype=torch.uint8)  # 1 in fp16
    weights = weights_of(kind, lost)
    if bool((weights.amax(1) != weights.amin(1)).any()):
        raise QuantizedError("holds scales of zero for numbers that differ")


def weights_of(kind: Kind, raw: Tensor) -> Tensor:
    """The weights of the rows `raw`, uint8 [rows, bytes], in fp32 [rows, inputs], exactly as the blocks define them."""
    if kind in PLAIN:
        return raw.view(PLAIN[kind]).float()
    blocks = raw.view(-1, GGML_QUANT_SIZES[kind][1])
    if kind == Kind.Q6_K:
        return _q6_k(blocks).view(len(raw), -1)
    if parts := _LAYOUTS[kind].parts:
        numbers, scale, least = parts(blocks)
        numbers = numbers.unflatten(1, (scale.shape[1], -1))
        return torch.addcmul(least[:, :, None], numbers, scale[:, :, None]).view(len(raw), -1)
    return torch.from_numpy(dequantize(raw.numpy(), kind))


def quanta_of(kind: Kind, raw: Tensor) -> Quanta:
    """The rows `raw`, uint8 [rows, bytes], of blocks in four bits as a matrix of the same numbers."""
    layout, rows = _LAYOUTS[kind], len(raw)
    assert layout.parts is not None
    numbers, scale, least = layout.parts(raw.view(-1, GGML_QUANT_SIZES[kind][1]))
    scale = scale.bfloat16()
    # A weight is (number - 8) * scale + zero, with the scale as it is after rounding.
    zero = (least + 8 * scale.float()).bfloat16()
    return Quanta(numbers.view(1, rows, -1), scale.view(1, rows, -1), zero.view(1, rows, -1), FOUR)
