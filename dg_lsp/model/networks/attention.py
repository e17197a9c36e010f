"""Attention on a CPU whose heads share keys without a copy for each. Knows tensors only.

Where there is a mask, transformers copies the keys for each head before it calls torch's fused kernel. That kernel is
the quickest for many slots, and for all with AMX; elsewhere one slot takes it ten times as long as two plain products
do (docs/research/speed-and-memory.md).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

GROUPED = "grouped"  # the name by which transformers knows it
_FEW = 16  # slots at most for which plain products are quicker on a CPU without AMX


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
    scale = options.get("scaling")
    if query.shape[2] <= _FEW and not options.get("dropout") and not multiplies_tiles():
        read = _by_products(
            query, key, value, attention_mask, query.shape[-1] ** -0.5 if scale is None else scale
        )
    else:
        dropout = options.get("dropout", 0.0)
        read = F.scaled_dot_product_attention(
            query, key, value, attention_mask, dropout, scale=scale, enable_gqa=True
        )
    return read.transpose(1, 2).contiguous(), None


def multiplies_tiles() -> bool:
    """Return whether this CPU multiplies tiles of bf16 numbers (AMX)."""
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)())


def _by_products(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Attend with all numbers in fp32 at least, which the fused kernel rounds once more."""
    rows, heads, slots, size = query.shape
    kind = torch.promote_types(query.dtype, torch.float32)
    groups = rows * key.shape[1]
    asked = query.to(kind).mul(scale).reshape(groups, -1, size)
    scores = torch.bmm(asked, key.flatten(0, 1).to(kind).mT).view(rows, heads, slots, -1)
    scores = scores.masked_fill_(~mask, -torch.inf) if mask.dtype == torch.bool else scores.add_(mask)
    shares = scores.softmax(-1).view(groups, -1, key.shape[2])
    return torch.bmm(shares, value.flatten(0, 1).to(kind)).view(rows, heads, slots, size).to(query.dtype)


AttentionInterface.register(GROUPED, grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)
