"""The decoder's forward pass in parts: the hidden states of a canvas, and the logits of chosen hidden states.

The same operations in the same order as `DiffusionGemmaDecoderModel.forward` and
`DiffusionGemmaForBlockDiffusion.forward` (transformers, modeling_diffusion_gemma.py), except that the self-conditioning
signal is an argument instead of the previous logits. The loop and the training use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class View:
    """The positions and attention masks of a canvas.

    positions: int64 [rows or 1, length]. masks: by kind of layer, the mask [rows, 1, length, cached + length] that is
    added to the attention scores; None means that every slot sees all of the cache and of the canvas.
    """

    positions: Tensor
    masks: Mapping[str, Tensor] | None = None

    def first(self, rows: int) -> "View":
        """The view of the first `rows` rows."""
        masks = None if self.masks is None else {kind: mask[:rows] for kind, mask in self.masks.items()}
        return View(self.positions[:rows], masks)


def view_after(start: int, length: int, device: torch.device) -> View:
    """The view of a canvas of `length` slots after `start` tokens, without masks."""
    return View(torch.arange(start, start + length, device=device)[None])


def hidden_states(network: Any, cache: Any, canvas: Tensor, soft: Tensor | None) -> Tensor:
    """The hidden states [rows, length, hidden] of `canvas`, int64 [rows, length], after a `cache` of as many rows.

    soft: the self-conditioning signal [rows, length, hidden], None at the first step.
    """
    embedded = network.model.decoder.embed_tokens(canvas)
    signal = torch.zeros_like(embedded) if soft is None else soft
    view = view_after(cache.get_seq_length(), embedded.shape[1], embedded.device)
    return decode(network, cache, embedded, signal, view)


def decode(network: Any, cache: Any, embedded: Tensor, soft: Tensor, view: View) -> Tensor:
    """The hidden states [rows, length, hidden] of canvases after the prefix in `cache`.

    embedded: the token embeddings of the canvases [rows, length, hidden]. soft: the self-conditioning signal, of the
    same shape.
    """
    decoder, kinds = network.model.decoder, network.config.text_config.layer_types
    hidden = decoder.self_conditioning(embedded, soft)
    rotary = {kind: decoder.rotary_emb(hidden, view.positions, kind) for kind in sorted(set(kinds))}
    for layer, kind in zip(decoder.layers, kinds, strict=True):
        hidden = layer(
            hidden,
            position_embeddings=rotary[kind],
            attention_mask=None if view.masks is None else view.masks[kind],
            position_ids=view.positions,
            past_key_values=cache,
        )
    return decoder.norm(hidden)


def capped_logits(network: Any, hidden: Tensor) -> Tensor:
    """The soft-capped logits in fp32 of hidden states: [..., hidden] -> [..., vocabulary]."""
    return soft_cap(network, network.lm_head(hidden))


def soft_cap(network: Any, raw: Tensor) -> Tensor:
    """The soft-capped logits in fp32 of what the head gives, of the same shape."""
    cap = network.final_logit_softcapping
    return torch.tanh(raw.float() / cap) * cap
