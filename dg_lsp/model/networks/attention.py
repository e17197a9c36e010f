"""Attention on a CPU by torch's fused kernel, whose heads share keys without a copy. Knows tensors only.

Where there is a mask, transformers copies the keys for each head before it calls the same kernel, and two plain
products for each group of heads take one and a half to four times as long (docs/research/speed-and-memory.md).
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

GROUPED = "grouped"  # the name by which transformers knows it


def grouped_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Attend as `sdpa_attention_forward` of transformers does, which is used on a GPU and where there is no mask.

    query: [rows, heads, slots, size]. key, value: [rows, groups, tokens, size], of which each serves heads / groups
    heads in turn (Ainslie et al. 2023, arXiv:2305.13245). attention_mask: bool, True where a slot sees a token, or a
    number that is added, [rows or 1, 1, slots, tokens]. options: those of transformers' function. Returns
    [rows, slots, heads, size].
    """
    if query.device.type != "cpu" or attention_mask is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)  # type: ignore[no-any-return]
    read = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attention_mask,
        options.get("dropout", 0.0),
        scale=options.get("scaling"),
        enable_gqa=True,
    )
    return read.transpose(1, 2).contiguous(), None


AttentionInterface.register(GROUPED, grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)
