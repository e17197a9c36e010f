"""The published training loss of DiffusionGemma, on canvases that may hold anchors.

L = L_diff + L_ar: the denoiser's cross-entropy on the free slots of the corrupted canvas, and the encoder's
next-token cross-entropy on the prefix. Knows the network; no data and no optimiser.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.cache_utils import DynamicCache

from dg_lsp.engine.decoder import capped_logits, decode
from dg_lsp.engine.layouts import Batch


@dataclass(frozen=True, slots=True)
class _Layer:
    """Keys and values [rows, heads, length, size] that a decoder layer reads."""

    keys: Tensor
    values: Tensor


class _Rows:
    """The first rows of an encoded prefix, cut off from the gradient."""

    is_compileable = False

    def __init__(self, cache: DynamicCache, rows: int) -> None:
        self.layers = [_Layer(x.keys[:rows].detach(), x.values[:rows].detach()) for x in cache.layers]


def corrupt(batch: Batch, times: Tensor, vocabulary: int, generator: torch.Generator) -> Tensor:
    """The canvas with each free token replaced, with the probability of its row's time, by any token.

    times: float [B]. Returns int64 [B, C]. The noise is uniform over the whole vocabulary and may hit the token
    that stood there (google-deepmind/gemma, `diffusion/hackable_diffusion_adapter`).
    """
    noise = torch.randint(vocabulary, batch.canvas.shape, generator=generator)
    hit = torch.rand(batch.canvas.shape, generator=generator) < times[:, None]
    return torch.where(hit & batch.free, noise, batch.canvas)


def losses(network: Any, batch: Batch, noisy: Tensor) -> tuple[Tensor, Tensor]:
    """(L_diff, L_ar), both scalars; the gradient reaches the encoder through the keys and values, too.

    1. Encode the clean prefix.  2. A first denoising pass for the first half of the rows, without gradient.
    3. The second pass, which those rows begin with what the first believed; an anchor is certain, so its soft
    embedding is its own.  4. A mean over each row's free slots, then over rows: a short gap counts as much as a long
    one.
    """
    table = network.model.decoder.embed_tokens
    half = len(noisy) // 2
    # 1.
    cache = DynamicCache(config=network.config.text_config)
    encoded = network.model.encoder.language_model(input_ids=batch.prefix, past_key_values=cache)
    # 2.
    start = batch.prefix.shape[1]
    embedded = table(noisy)
    with torch.no_grad():
        zeros = torch.zeros_like(embedded)
        seen = decode(network, _Rows(cache, half), embedded[:half], zeros[:half], start)
        belief = capped_logits(network, seen).softmax(-1).to(table.weight.dtype) @ table.weight
        belief = belief * table.embed_scale.to(belief.dtype)
        known = torch.where(batch.free[:half, :, None], belief, embedded[:half])
    # 3.
    hidden = decode(network, cache, embedded, torch.cat([known, zeros[half:]]), start)
    # 4.
    weight = batch.free / batch.free.sum(1, keepdim=True)
    diffusion = (wrong(network, hidden, batch.canvas) * weight).sum() / len(noisy)
    ahead = wrong(network, encoded.last_hidden_state[:, :-1], batch.prefix[:, 1:])
    return diffusion, ahead.mean()


def wrong(network: Any, hidden: Tensor, tokens: Tensor) -> Tensor:
    """Cross-entropy in nats [B, L] of `tokens` under the logits of `hidden`."""
    guessed = capped_logits(network, hidden).flatten(0, 1)
    return F.cross_entropy(guessed, tokens.flatten(), reduction="none").view(tokens.shape)
