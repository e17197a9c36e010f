"""Attention on a CPU, by two plain products for each head that has keys of its own. Knows tensors only.

torch 2.13's fused kernel takes two to four times as long for a canvas or a few tokens behind an encoded prefix: a step
of 64 slots behind 512 tokens spends a fifth of its time there (docs/research/speed-and-memory.md).
"""

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

GROUPED = "grouped"  # the name by which transformers knows it
_SCORES = 1 << 24  # that are in memory at once: 64 MB; beyond it the fused kernel, which needs no such memory


def grouped_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Attend as `sdpa_attention_forward` of transformers does, up to rounding; it is used for all but what is below.

    query: [rows, heads, slots, size]. key, value: [rows, groups, tokens, size], of which each serves heads / groups
    heads in turn (Ainslie et al. 2023, arXiv:2305.13245). attention_mask: bool, True where a slot sees a token, or a
    number that is added, [rows or 1, 1, slots, tokens]. options: those of transformers' function. Returns
    [rows, slots, heads, size].

    The queries of all heads of a group are read as one matrix, so that no key is copied. Not on a GPU, not in training,
    not for a causal pass without a mask, nor where the scores would take more than 64 MB.
    """
    rows, heads, slots, size = query.shape
    groups, tokens = key.shape[1:3]
    causal = slots > 1 and attention_mask is None and options.get("is_causal") is not False
    if query.device.type != "cpu" or query.requires_grad or causal or rows * heads * slots * tokens > _SCORES:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)  # type: ignore[no-any-return]
    together = query.reshape(rows * groups, -1, size)
    scores = torch.bmm(together, key.reshape(rows * groups, tokens, size).transpose(1, 2)).float()
    scores = scores.mul_(options.get("scaling") or size**-0.5).view(rows, heads, slots, tokens)
    if attention_mask is not None:
        if attention_mask.dtype == torch.bool:
            scores.masked_fill_(~attention_mask, -torch.inf)
        else:
            scores.add_(attention_mask)
    chances = scores.softmax(-1).to(value.dtype).view(rows * groups, -1, tokens)
    read = torch.bmm(chances, value.reshape(rows * groups, tokens, size))
    return read.view(rows, heads, slots, size).transpose(1, 2).contiguous(), None


AttentionInterface.register(GROUPED, grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)
