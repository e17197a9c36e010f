"""The decoder's forward pass in its parts: hidden states of a canvas, and logits of the rows that are wanted.

What `DiffusionGemmaDecoderModel.forward` and `DiffusionGemmaForBlockDiffusion.forward` (transformers) do, in their
order, but with soft embeddings as an argument instead of logits. The loop and the training share it.
"""

from typing import Any

import torch
from torch import Tensor


def decode(network: Any, cache: Any, embedded: Tensor, soft: Tensor, start: int) -> Tensor:
    """Hidden states of canvases that stand at position `start`, behind the prefix in `cache`.

    embedded: the canvas's token embeddings [rows, length, hidden]. soft: the self-conditioning signal, the same
    shape. A canvas sees all of itself and all that the cache shows, so there is no mask.
    """
    decoder, kinds = network.model.decoder, network.config.text_config.layer_types
    hidden = decoder.self_conditioning(embedded, soft)
    positions = torch.arange(start, start + embedded.shape[1], device=embedded.device)[None]
    turns = {kind: decoder.rotary_emb(hidden, positions, kind) for kind in sorted(set(kinds))}
    for layer, kind in zip(decoder.layers, kinds, strict=True):
        hidden = layer(
            hidden,
            position_embeddings=turns[kind],
            attention_mask=None,
            position_ids=positions,
            past_key_values=cache,
        )
    return decoder.norm(hidden)


def capped_logits(network: Any, hidden: Tensor) -> Tensor:
    """Soft-capped logits in fp32: [..., hidden] -> [..., vocabulary]."""
    cap = network.final_logit_softcapping
    return torch.tanh(network.lm_head(hidden).float() / cap) * cap
