"""The decoder's forward pass in its parts: hidden states of a canvas, and logits of the rows that are wanted.

What `DiffusionGemmaDecoderModel.forward` and `DiffusionGemmaForBlockDiffusion.forward` (transformers) do, in their
order, but with soft embeddings as an argument instead of logits. The loop and the training share it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class View:
    """Where slots stand and what they see.

    positions: int64 [rows or 1, length]. masks: for each kind of layer, what is added to the scores of what each slot
    sees of the cache and of the canvas, [rows, 1, length, cached + length]; None is nothing.
    """

    positions: Tensor
    masks: Mapping[str, Tensor] | None = None

    def first(self, rows: int) -> "View":
        """The view of the first `rows` rows."""
        masks = None if self.masks is None else {kind: mask[:rows] for kind, mask in self.masks.items()}
        return View(self.positions[:rows], masks)


def behind(start: int, length: int, device: torch.device) -> View:
    """A canvas of `length` slots behind `start` tokens, of all of which it may see what the cache shows."""
    return View(torch.arange(start, start + length, device=device)[None])


def hidden_states(network: Any, cache: Any, canvas: Tensor, soft: Tensor | None) -> Tensor:
    """What the decoder makes of `canvas` [rows, length] behind `cache`, which shows as many rows.

    soft: the self-conditioning signal [rows, length, hidden], None at the first step.
    """
    embedded = network.model.decoder.embed_tokens(canvas)
    signal = torch.zeros_like(embedded) if soft is None else soft
    view = behind(cache.get_seq_length(), embedded.shape[1], embedded.device)
    return decode(network, cache, embedded, signal, view)


def decode(network: Any, cache: Any, embedded: Tensor, soft: Tensor, view: View) -> Tensor:
    """Hidden states of canvases behind the prefix in `cache`.

    embedded: the canvas's token embeddings [rows, length, hidden]. soft: the self-conditioning signal, the same
    shape.
    """
    decoder, kinds = network.model.decoder, network.config.text_config.layer_types
    hidden = decoder.self_conditioning(embedded, soft)
    turns = {kind: decoder.rotary_emb(hidden, view.positions, kind) for kind in sorted(set(kinds))}
    for layer, kind in zip(decoder.layers, kinds, strict=True):
        hidden = layer(
            hidden,
            position_embeddings=turns[kind],
            attention_mask=None if view.masks is None else view.masks[kind],
            position_ids=view.positions,
            past_key_values=cache,
        )
    return decoder.norm(hidden)


def capped_logits(network: Any, hidden: Tensor) -> Tensor:
    """Soft-capped logits in fp32: [..., hidden] -> [..., vocabulary]."""
    cap = network.final_logit_softcapping
    return torch.tanh(network.lm_head(hidden).float() / cap) * cap
