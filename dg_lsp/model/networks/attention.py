"""Attention on a CPU, by two plain products for each head that has keys of its own. Knows tensors only.

torch 2.13's fused kernel takes two to four times as long for a canvas or a few tokens behind an encoded prefix: a step
of 64 slots behind 512 tokens spends a fifth of its time there (docs/research/speed-and-memory.md).
"""

from itertools import product
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

GROUPED = "grouped"  # the name by which transformers knows it
_SCORES = 1 << 24  # that are in memory at once: 32 MB; beyond it the fused kernel, which needs no such memory
_CACHED = 1 << 19  # scores that are turned into chances at once: 2 MB, which a CPU's cache holds


def grouped_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Attend as `sdpa_attention_forward` of transformers does, up to rounding; it is used for all but what is below.

    query: [rows, heads, slots, size]. key, value: [rows, groups, tokens, size], of which each serves heads / groups
    heads in turn (Ainslie et al. 2023, arXiv:2305.13245). attention_mask: bool, True where a slot sees a token, or a
    number that is added, [rows or 1, 1, slots, tokens]. options: those of transformers' function. Returns
    [rows, slots, heads, size].

    The queries of all heads of a group are read as one matrix, so that no key is copied. Not on a GPU, not in training,
    not for a causal pass without a mask, nor where the scores would take more than 32 MB.
    """
    rows, heads, slots, size = query.shape
    groups, tokens = key.shape[1:3]
    causal = slots > 1 and attention_mask is None and options.get("is_causal") is not False
    if query.device.type != "cpu" or query.requires_grad or causal or rows * heads * slots * tokens > _SCORES:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)  # type: ignore[no-any-return]
    together = query.reshape(rows * groups, -1, size)
    scores = torch.bmm(together, key.reshape(rows * groups, tokens, size).transpose(1, 2))
    scores = scores.view(rows, heads, slots, tokens)
    chances = _chances(scores, attention_mask, options.get("scaling") or size**-0.5)
    chances = chances.to(value.dtype).view(rows * groups, -1, tokens)
    read = torch.bmm(chances, value.reshape(rows * groups, tokens, size))
    return read.view(rows, heads, slots, size).transpose(1, 2).contiguous(), None


def _chances(scores: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """Return the softmax of `scores` [rows, heads, slots, tokens] times `scaling` behind `mask`, in the scores' type.

    It is computed in fp32, for some rows or some heads of a row at a time: memory that is new for each operation takes
    longer than the operation.
    """
    rows, heads, slots, tokens = scores.shape
    if scores.numel() <= _CACHED:
        return _softmax(scores, mask, scaling).to(scores.dtype)
    some_rows, some_heads = (max(_CACHED // (n * slots * tokens), 1) for n in (heads, 1))
    chances = torch.empty_like(scores)
    for row, head in product(range(0, rows, some_rows), range(0, heads, some_heads)):
        at = slice(row, row + some_rows), slice(head, head + some_heads)
        own = mask if mask is None or len(mask) == 1 else mask[at[0]]
        chances[at] = _softmax(scores[at], own, scaling)
    return chances


def _softmax(scores: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """Return the softmax of `scores` times `scaling` behind `mask`, in fp32."""
    whole = scores.float()
    if scaling != 1:
        whole.mul_(scaling)
    if mask is not None and mask.dtype == torch.bool:
        whole.masked_fill_(~mask, -torch.inf)
    elif mask is not None:
        whole.add_(mask)
    return whole.softmax(-1)


AttentionInterface.register(GROUPED, grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)
